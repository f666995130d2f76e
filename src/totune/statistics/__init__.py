"""Statistics for comparing runs: intervals, tests, effect sizes, seeds needed."""

from totune.statistics.paired import MOST_SEEDS, Paired, SeedsNeeded, paired_bootstrap, seeds_needed
from totune.statistics.permutation import Permutation, paired_permutation
from totune.statistics.samples import (
    Alternative,
    Summary,
    Welch,
    cohens_d,
    hedges_g,
    holm,
    paired_dz,
    summary,
    welch,
)

__all__ = [
    "MOST_SEEDS",
    "Alternative",
    "Paired",
    "Permutation",
    "SeedsNeeded",
    "Summary",
    "Welch",
    "cohens_d",
    "hedges_g",
    "holm",
    "paired_bootstrap",
    "paired_dz",
    "paired_permutation",
    "seeds_needed",
    "summary",
    "welch",
]
