"""Statistics for comparing runs: intervals, tests, effect sizes, seeds needed."""

from totune.statistics.folds import run_variance
from totune.statistics.moderation import (
    FIXED,
    SeedVariance,
    moderate,
    moderated_summaries,
    usual_variance,
)
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
from totune.statistics.selection import adjusted_level, steps_p

__all__ = [
    "FIXED",
    "MOST_SEEDS",
    "Alternative",
    "Paired",
    "Permutation",
    "SeedVariance",
    "SeedsNeeded",
    "Summary",
    "Welch",
    "adjusted_level",
    "cohens_d",
    "hedges_g",
    "holm",
    "moderate",
    "moderated_summaries",
    "paired_bootstrap",
    "paired_dz",
    "paired_permutation",
    "run_variance",
    "seeds_needed",
    "steps_p",
    "summary",
    "usual_variance",
    "welch",
]
