"""What a run leaves behind: plain data, written once, from which every table is drawn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from totune.data.examples import ALL_ROWS
from totune.metrics import METRICS
from totune.training.history import EpochRecord

__all__ = ["Costs", "EpochRecord", "RunRecord", "StudyInfo", "best_run"]

Status = Literal["finished", "failed"]


def place_of(seed: int, fold: int | None) -> str:
    """Which of a strategy's runs one is, in words."""
    if fold is None:
        return f"seed {seed}"
    return "all rows" if fold == ALL_ROWS else f"seed {seed} fold {fold}"


@dataclass(frozen=True)
class Costs:
    """What a run costs.

    Attributes:
        trainable_parameters: what trained in one phase or another.
        total_parameters: encoder, mixing and head together.
        train_seconds: training proper, evaluations included.
        feature_seconds: time to compute the frozen features this run read, whichever run of
            whichever study computed them: what the run would have cost alone.
        examples_per_second: training examples per second of training proper.
        peak_memory_bytes: peak resident memory of the process while it ran (device memory on a
            GPU).
        storage_bytes: what must be stored per task on top of the shared encoder; of a baseline all
            that saving it writes, vocabulary included.
        latency_milliseconds: prediction time per example in batches, from raw text.
    """

    trainable_parameters: int
    total_parameters: int
    train_seconds: float
    feature_seconds: float
    examples_per_second: float
    peak_memory_bytes: int
    storage_bytes: int
    latency_milliseconds: float


@dataclass(frozen=True)
class RunRecord:
    """One run: one task, one strategy, one seed.

    Attributes:
        fingerprint: hash of the canonical configuration and the data: the run's identity.
        strategy: the name it is compared under ("last-2", "tf-idf").
        config: the whole canonical configuration.
        seeds: {"init": ..., "order": ...}: initialisation and data order, drawn apart.
        degenerate: that the run gives one answer for every row ("predicts only 'neg'"), or None;
            its score counts like any other.
        error: the message of a failed run, or None.
        thresholds: the probability from which on a row is of a class, where it was tuned on dev:
            of two classes one number, for the second; empty where the usual ones hold.
        predictions: name of the npz file beside the record with arrays `targets`, `predictions`
            (class indices or scores) and `scores` (class probabilities [N, C]; classification);
            of a fold also `rows` [N], their numbers among all rows.
        parts: of a repetition of a cross-validation (`totune.runs.repetitions`), which is never
            written, the runs of its folds.
        files: SHA-256 of predictions and weights, by path beside the record; empty of an
            earlier version.
    """

    fingerprint: str
    strategy: str
    seed: int
    status: Status
    config: dict[str, Any]
    seeds: dict[str, int]
    precision: str
    epochs: list[EpochRecord] = field(default_factory=list)
    best_epoch: int = -1
    dev: dict[str, float] = field(default_factory=dict)
    test: dict[str, float] = field(default_factory=dict)
    costs: Costs | None = None
    predictions: str | None = None
    degenerate: str | None = None
    error: str | None = None
    thresholds: list[float] = field(default_factory=list)
    finished_at: str = ""
    parts: "tuple[RunRecord, ...]" = ()

    @property
    def fold(self) -> int | None:
        """The fold of a cross-validation whose rows it predicts, from 1; None of one split."""
        found: int | None = self.config.get("fold")
        return found

    @property
    def place(self) -> str:
        """Which of its strategy's runs it is, as messages call it."""
        return place_of(self.seed, self.fold)

    files: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "parts"}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "RunRecord":
        costs = data.get("costs")
        return cls(
            **{
                **data,
                "epochs": [EpochRecord(**epoch) for epoch in data.get("epochs", [])],
                "costs": None if costs is None else Costs(**costs),
            }
        )


@dataclass(frozen=True)
class StudyInfo:
    """`study.json`: what was compared, on what, where.

    Attributes:
        data: name, digest, split sizes, columns, label names (classification), notes, warnings,
            cautions (what stands beside the advice).
        model: reference as given, resolved name, kind, fingerprint, parameters; empty where no
            run reads an encoder.
        metric: the metric that strategies are compared on ("accuracy", "pearson", ...).
        metrics: every reported metric, the main one first.
        settings: seeds, precision, batch size, max_length, budget and the like.
        strategies: names in the order asked for.
        runs: fingerprints of the runs that belong to it; the folder may hold others, of earlier
            settings.
        final: fingerprint of the run that trained the model in `best/` on all rows, after a
            cross-validation; "" where that model is of one of `runs`.
        versions: of totune, torch, transformers, Python ...
        machine: processor, cores, memory, devices.
        command: the command line that made it, if any.
    """

    name: str
    task: str
    data: dict[str, Any]
    model: dict[str, Any]
    metric: str
    metrics: list[str]
    strategies: list[str]
    seeds: list[int]
    settings: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, Any]
    command: str = ""
    created_at: str = ""
    runs: list[str] = field(default_factory=list)
    final: str = ""

    @property
    def folds(self) -> int:
        """Folds of its cross-validation; 1 where there is one test split."""
        return int(self.settings.get("folds") or 1)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "StudyInfo":
        return cls(**data)


def best_run(records: Sequence[RunRecord], label: str, metric: str) -> RunRecord | None:
    """The finished run of a strategy with the best dev score, of equals the lowest seed.

    A run whose predictions are useless comes after all others. Where there were no dev rows it is
    the lowest seed.
    """
    sign = METRICS[metric].sign
    runs = [r for r in records if r.strategy == label and r.status == "finished"]
    return max(
        runs,
        key=lambda r: (r.degenerate is None, sign * r.dev.get(metric, 0.0), -r.seed),
        default=None,
    )
