"""What is searched of a candidate, the options that nobody has set, and how values are drawn."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
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

from totune.ranges import Choices, Floats, Ints, Limits, contains, ranges_about
from totune.registry import options_of
from totune.runs.config import Candidate
from totune.runs.context import Context
from totune.runs.model_spec import ModelSpec
from totune.search.records import HEAD
from totune.strategies.base import Strategy

_KINDS = {Floats: "floats", Ints: "ints", Choices: "choices"}


@dataclass(frozen=True)
class Space:
    """Where a search looks; options are called as in a `Candidate`, `head.NAME` for the head's.

    Attributes:
        ranges: of the options that are searched; none if there is nothing to search.
        fixed: options that were set by hand.
        defaults: of every option that is searched.
    """

    ranges: dict[str, Limits]
    fixed: dict[str, Any]
    defaults: dict[str, Any]


def space_of(member: Candidate, context: Context) -> Space:
    """What is left to search of a member, on this task and encoder.

    What was set by hand is not searched, the number in `last-2` neither. A default that follows
    from the encoder and lies outside its range is left as it is.
    """
    made = member.create(context.facts)
    options = options_of(made)
    ranges = ranges_about(options, type(made))
    unused: frozenset[str] = frozenset()
    if isinstance(made, Strategy):
        encoder = context.loaded.encoder
        spec = ModelSpec.of_candidate(member, context.facts, context.task, encoder)
        ranges |= _of_head(ranges_about(options_of(spec.head), type(spec.head)))
        options |= _of_head(options_of(spec.head))
        unused = made.unused_options(spec.hollow_model())
    numbered = {"k": options["k"]} if member.strategy != made.name else {}
    fixed = {**numbered, **member.options}
    searched = {
        name: range_
        for name, range_ in ranges.items()
        if name not in fixed and name not in unused and contains(range_, options[name])
    }
    return Space(searched, fixed, {name: options[name] for name in searched})


def label_of(member: Candidate, space: Space) -> str:
    """What the searched member is called.

    It keeps its name unless the name contains an option that is searched: `last-k` is then not
    called `last-2`.
    """
    own = member.label or member.create().label
    others = {name: _other(space, name) for name in space.ranges}
    changed = replace(member, options={**member.options, **others})
    seen = member.label or changed.create().label
    return own if seen == own else member.strategy


def _other(space: Space, name: str) -> Any:
    """Another value than the default."""
    range_ = space.ranges[name]
    values = range_.values if isinstance(range_, Choices) else (range_.low, range_.high)
    return next(value for value in values if value != space.defaults[name])


def range_to_json(range_: Limits) -> dict[str, Any]:
    """A range as a `SearchRecord` has it."""
    facts = asdict(range_)
    if isinstance(range_, Choices):
        facts["values"] = list(range_.values)
    return {"kind": _KINDS[type(range_)], **facts}


def _of_head(options: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{HEAD}{name}": value for name, value in options.items()}


def distribution_of(range_: Limits) -> BaseDistribution:
    """A range as Optuna's."""
    if isinstance(range_, Choices):
        return CategoricalDistribution(range_.values)
    if isinstance(range_, Floats):
        return FloatDistribution(range_.low, range_.high, log=range_.log)
    return IntDistribution(range_.low, range_.high, log=range_.log)


class SeededSampler(BaseSampler):
    """The defaults first, then what TPE proposes (Bergstra et al. 2011; ten at random to begin).

    What a trial tries depends on the seed, its number and the trials before it, and not on which
    process asks: so a search that was interrupted goes on as if it had not been.

    Args:
        defaults: the options of trial 0.
        seed: of the search.
    """

    def __init__(self, defaults: Mapping[str, Any], seed: int) -> None:
        self._defaults, self._seed = defaults, seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        if trial.number == 0:
            return {}
        return self._sampler(trial).infer_relative_search_space(study, trial)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
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
