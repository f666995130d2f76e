"""What identifies a run: everything its numbers depend on, as plain data, and its hash."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from totune.baselines.base import BASELINES, Baseline
from totune.errors import ConfigError
from totune.heads.base import HEADS, Head
from totune.registry import build, did_you_mean, option_names
from totune.runs.records import place_of
from totune.strategies.base import STRATEGIES, Strategy
from totune.strategies.defaults import TrainingFacts

FORMAT = 2  # raised whenever the meaning of a configuration changes


@dataclass(frozen=True)
class Candidate:
    """One row of a study: a strategy or a baseline with its options, under a label.

    Attributes:
        strategy: a name of `totune list strategies` or `totune list baselines`, such as "last-2".
        options: what differs from the member's defaults; `head.NAME` sets an option of the head.
        label: what the row is called; the strategy's own name if empty.
        head: the task network (strategies only).
    """

    strategy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    head: str = "linear"

    @classmethod
    def parse(
        cls, spec: "str | Mapping[str, Any] | Candidate", head: str = "linear"
    ) -> "Candidate":
        """A member from its name, from a mapping {strategy, head, options, label}, or itself.

        Args:
            spec: what a person gave.
            head: the task network of those that name none.

        Raises:
            ConfigError: a mapping has other names than these, or no strategy, or gives a baseline a
                head.
        """
        if isinstance(spec, Candidate):
            return spec
        if isinstance(spec, str):
            return cls(spec, head=head)
        made = build(cls, {"head": head, **spec}, f"candidate {spec.get('label') or dict(spec)}")
        if made.is_baseline and "head" in spec:
            raise ConfigError(
                f"candidate {made.label or made.strategy}: head={made.head!r} is of no use to "
                f"{made.strategy!r}, a baseline without a task network. Leave it out."
            )
        return made

    @property
    def is_baseline(self) -> bool:
        return self.strategy in BASELINES.names()

    @property
    def reads_encoder(self) -> bool:
        """Whether it needs the pretrained encoder, as all but some baselines do."""
        return not self.is_baseline or BASELINES.get(self.strategy).needs_encoder

    def create(self, facts: TrainingFacts | None = None) -> Strategy | Baseline:
        """The strategy or baseline with its options checked.

        Args:
            facts: of data and encoder, from which options follow that were not set; None leaves
                them as they are without data.
        """
        if self.is_baseline:
            return BASELINES.create(self.strategy, self.own_options)
        try:
            made = STRATEGIES.create(self.strategy, self.own_options)
            return made if facts is None else replace(made, **self.by_rule(made, facts))
        except ConfigError as error:
            if self.strategy in STRATEGIES.names() or "called" not in str(error):
                raise
            known = STRATEGIES.names() + BASELINES.names()
            message = f"There is no strategy or baseline called {self.strategy!r}. "
            raise ConfigError(message + did_you_mean(self.strategy, known)) from None

    def by_rule(self, made: Strategy, facts: TrainingFacts) -> dict[str, Any]:
        """The options of `made` that a rule decides, since they were not set."""
        decided = made.data_defaults(facts)
        return {name: value for name, value in decided.items() if name not in self.own_options}

    def create_head(self, defaults: Mapping[str, Any]) -> Head:
        """The head: the strategy's `defaults` where the head has them, then the user's options."""
        known = option_names(HEADS.get(self.head))
        suited = {name: value for name, value in defaults.items() if name in known}
        return HEADS.create(self.head, suited | self.head_options)

    @property
    def own_options(self) -> dict[str, Any]:
        return {k: v for k, v in self.options.items() if not k.startswith("head.")}

    @property
    def head_options(self) -> dict[str, Any]:
        prefix = "head."
        return {k[len(prefix) :]: v for k, v in self.options.items() if k.startswith(prefix)}


@dataclass(frozen=True)
class RunConfig:
    """One run, canonical: two runs with equal configurations give equal numbers.

    Attributes:
        label: the name it is compared under.
        strategy: name and all options, defaults included.
        head: name and all options (empty for baselines).
        seed: the study's seed; initialisation and data order are drawn from it apart.
        data: digest of the dataset.
        task: the label space.
        model: fingerprint of the encoder (empty where none is used).
        settings: batch size, length limit, precision, metric and the like.
        fold: of a cross-validation the fold whose rows are predicted, from 1, where `seed` is the
            repetition; `ALL_ROWS` where the model trains on all rows; None of one split.
        by_rule: which options and settings follow from data and encoder rather than from the user;
            not part of the identity, since the numbers are the same either way.
    """

    label: str
    strategy: dict[str, Any]
    head: dict[str, Any]
    seed: int
    data: str
    task: dict[str, Any]
    model: str
    settings: dict[str, Any]
    format: int = FORMAT
    fold: int | None = None
    by_rule: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def fingerprint(self) -> str:
        identity = {k: v for k, v in self.to_json().items() if k != "by_rule"}
        if self.fold is None:  # which older runs do not know
            del identity["fold"]
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def place(self) -> str:
        """Which of its strategy's runs it is: "seed 1", "seed 1 fold 3", "all rows"."""
        return place_of(self.seed, self.fold)

    @property
    def seeds(self) -> dict[str, int]:
        """Seeds for initialisation (and dropout) and for the order of the data."""
        entropy = self.seed if self.fold is None else [self.seed, self.fold]
        init, order = np.random.SeedSequence(entropy).generate_state(2)
        return {"init": int(init), "order": int(order)}


def check_candidates(members: Sequence[Candidate]) -> list[Strategy | Baseline]:
    """Builds every member, so that all faults are found before any weights load.

    Raises:
        ConfigError: with every fault of every member.
    """
    made: list[Strategy | Baseline] = []
    labels: list[str] = []
    faults: list[str] = []
    for member in members:
        try:
            made.append(member.create())
            labels.append(member.label or made[-1].label)
            if not member.is_baseline:
                member.create_head({})
        except ConfigError as error:
            owner = f"candidate {member.label}: " if member.label else ""
            faults += [f"{owner}{fault}" for fault in error.faults]
    faults += [
        f"two members are called {label!r}: give one another label"
        for label in sorted({label for label in labels if labels.count(label) > 1})
    ]
    if faults:
        raise ConfigError(list(dict.fromkeys(faults)))
    return made


def assign_options(members: Sequence[Candidate], settings: Mapping[str, Any]) -> list[Candidate]:
    """Distributes `options`: `NAME` to all members that have it, `MEMBER.NAME` to one.

    A member goes by its label, by the name of its strategy, which several may share, and by what
    its strategy is called in reports: `last-3` is also `last-k` with `k=3`.

    What is said to one member, by its own options too, holds against what is said to all; and what
    is said to a label against what is said to a strategy; whatever their order.

    Raises:
        ConfigError: if a value fits no member.
    """
    if not settings:
        return list(members)
    assigned = [dict(member.options) for member in members]
    faults = []
    labels = tuple(f"{member.label}." for member in members if member.label)
    own = tuple(f"{name}." for member in members for name in _own_names(member))

    def narrowness(item: tuple[str, Any]) -> int:
        return item[0].startswith(own) + item[0].startswith(labels)

    for key, value in sorted(settings.items(), key=narrowness):
        fitting = [i for i, member in enumerate(members) if fits(member, key)]
        for i in fitting:
            name = _unprefixed(members[i], key)
            if name != key or key not in members[i].options:
                assigned[i][name] = value
        if not fitting:
            known = sorted({name for member in members for name in _names(member)})
            faults.append(f"no chosen strategy has an option {key!r}. {did_you_mean(key, known)}")
    if faults:
        raise ConfigError(faults)
    return [
        replace(member, options=options) for member, options in zip(members, assigned, strict=True)
    ]


def addressed(members: Sequence[Candidate], settings: Mapping[str, Any]) -> set[str]:
    """Labels of the members that some of `settings` is meant for alone."""
    found = set()
    for key in settings:
        fitting = [member for member in members if fits(member, key)]
        if len(fitting) == 1:
            found.add(fitting[0].label or fitting[0].create().label)
    return found


def _names(member: Candidate) -> list[str]:
    made = member.create()
    heads = [] if member.is_baseline else option_names(HEADS.get(member.head))
    return option_names(type(made)) + [f"head.{name}" for name in heads]


def fits(member: Candidate, key: str) -> bool:
    """Whether a candidate has the option that `assign_options` would set by this name."""
    return _unprefixed(member, key) in _names(member)


def _own_names(member: Candidate) -> list[str]:
    return [name for name in (member.label, member.strategy, member.create().label) if name]


def _unprefixed(member: Candidate, key: str) -> str:
    for name in _own_names(member):
        if key.startswith(f"{name}."):
            return key.removeprefix(f"{name}.")
    return key
