"""How options are drawn: Optuna's TPE, seeded trial by trial.

What a trial tries depends on the seed, its number and the trials before it, and not on which
process asks: so a search that was interrupted goes on as if it had not been.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from optuna import Study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial

from totune.ranges import Choices, Floats, Limits

Distributions = dict[str, BaseDistribution]


def distribution_of(range_: Limits) -> BaseDistribution:
    """A range as Optuna's."""
    if isinstance(range_, Choices):
        return CategoricalDistribution(range_.values)
    if isinstance(range_, Floats):
        return FloatDistribution(range_.low, range_.high, log=range_.log)
    return IntDistribution(range_.low, range_.high, log=range_.log)


class SeededSampler(BaseSampler):
    """The defaults first, then what TPE proposes (Bergstra et al. 2011; ten at random to begin).

    Args:
        defaults: the options of trial 0.
        seed: of the search.
    """

    def __init__(self, defaults: Mapping[str, Any], seed: int) -> None:
        self._defaults, self._seed = defaults, seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        if trial.number == 0:
            return {}
        return self._sampler(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: Distributions
    ) -> dict[str, Any]:
        return self._sampler(trial).sample_relative(study, trial, search_space)

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        if trial.number == 0:
            return self._defaults[param_name]
        sampler = self._sampler(trial, param_name)
        return sampler.sample_independent(study, trial, param_name, param_distribution)

    def _sampler(self, trial: FrozenTrial, option: str = "") -> TPESampler:
        text = f"{self._seed} {trial.number} {option}"
        digest = hashlib.sha256(text.encode()).digest()
        return TPESampler(seed=int.from_bytes(digest[:4], "big"))
