"""A forecast before anything is trained: which family of strategies will win?"""

import shlex
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult
from totune.analyses.forecast_model import (
    FAMILIES,
    FEWEST_ROWS,
    Chance,
    Family,
    Kind,
    Shape,
    Signals,
    forecast,
    prior_of,
)
from totune.analyses.forecast_section import forecast_section
from totune.analyses.inputs.hidden_states import HiddenStates
from totune.analyses.layer_probe import LayerProbe
from totune.data.examples import Examples, SplitName
from totune.data.splits import shrink
from totune.information import corpus_divergence
from totune.metrics import METRICS
from totune.progress import Progress
from totune.registry import options_of
from totune.report.document import Section
from totune.runs.records import RunRecord

if TYPE_CHECKING:
    from totune.runs.context import Context

TRIED: dict[Family, str] = {  # the strategy of each family that is costed and recommended
    "frozen": "feature-extraction",
    "top layers": "last-2",
    "whole encoder": "fine-tuning",
    "inserted modules": "lora",
}
ENOUGH = 0.8  # strategies are recommended until their families' chances come to this
_TIMED_ROWS, _WARM_UP_ROWS = 128, 16
_TRAINING = 3.0  # forward passes of a training step: one forward, two for the backward one
_INSERTED = _TRAINING / 1.39  # docs/results.md, "Parameter-efficient tuning is no faster"


class ForecastInputs(NamedTuple):
    """What a forecast is made from.

    Attributes:
        context: data, task and encoder.
        corpus: texts like those that the encoder was pretrained on, if there are any.
        command: the words of `totune compare DATA` with its options.
    """

    context: "Context"
    corpus: Iterable[str] | None = None
    command: Sequence[str] = ("totune", "compare", "DATA")


@ANALYSES.register("forecast")
@dataclass(frozen=True)
class FamilyForecast(Analysis[ForecastInputs]):
    """Which family will win: frozen features, top layers, the whole encoder, inserted modules?

    From signals that take a minute: linear probes of every block, a tf-idf baseline, rows, kind of
    encoder and data. `analyses/forecast_model.py` says how they become probabilities, and on what
    results they rest. The test split is not looked at.

    Attributes:
        rows: largest number of rows of train, and of dev, that probes and baseline see, drawn at
            random.
        seed: seed of the draw and of the probes.
    """

    title: ClassVar[str] = "Forecast"

    rows: Annotated[int, Field(ge=20)] = 1_000
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def run(self, inputs: ForecastInputs, progress: Progress) -> AnalysisResult:
        """Measures the signals and weighs them; only the times differ from call to call.

        Raises:
            DataError: if the labels leave nothing to probe.
        """
        context = inputs.context
        measured = self._measure(context, progress)
        signals = Signals(
            _kind(context), _shape(context), len(context.dataset.train), measured.get("headroom")
        )
        if inputs.corpus is not None:
            texts = context.dataset.train
            every = [*texts.texts, *(texts.pairs or ())]
            measured["divergence"] = corpus_divergence(every, inputs.corpus)
        chances = forecast(signals)
        seconds = seconds_per_row(context)
        rows = [
            {"family": family, **chance._asdict(), "strategy": TRIED[family]}
            | {"seconds": seconds * passes(family, context)}
            for family, chance in chances.items()
        ]
        facts = {
            "metric": context.settings.metric,
            **signals._asdict(),
            **measured,
            **_evidence(signals),
            "classes": _classes(context),
            "depth": context.loaded.encoder.depth,
            "seconds_per_row": seconds,
            "leading": max(chances, key=lambda family: chances[family].probability),
            "command": _command(inputs.command, chances, context),
        }
        return AnalysisResult(rows, facts)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """What is forecast and why; in a study with runs, whether it came true."""
        return forecast_section(self.title, result.rows, result.facts, records)

    def _measure(self, context: "Context", progress: Progress) -> dict[str, Any]:
        """What a probe, tf-idf and a constant answer score on dev; nothing for tagged words."""
        if context.task.per_word:
            return {}
        splits: Sequence[SplitName] = ("train", "dev")
        parts = {name: self._sample(context.dataset.splits()[name], context) for name in splits}
        small = context.with_splits(parts)
        probe = LayerProbe(max_train_rows=self.rows, seed=self.seed)
        (best,) = probe.run(HiddenStates(small), progress).facts["leading"]
        floor = _scored("majority", small)
        return {
            "probe": best["score"],
            "block": best["block"],
            "control": best["control"],
            "selective": best["selective"],
            "tf_idf": _scored("tf-idf", small),
            "floor": floor,
            "headroom": headroom(context.settings.metric, best["score"], floor),
            "probe_rows": len(parts["train"]),
            "dev_rows": len(parts["dev"]),
        }

    def _sample(self, rows: Examples, context: "Context") -> Examples:
        share = min(1.0, self.rows / len(rows))
        task = context.dataset.columns.task
        return shrink({"train": rows}, task, share, self.seed)["train"]


def headroom(metric: str, score: float, floor: float) -> float:
    """The share of a constant answer's errors that a score leaves; 1 where it is no better."""
    if not METRICS[metric].higher_is_better:
        return score / floor if floor else 1.0
    return (1 - score) / (1 - floor) if floor < 1 else 1.0


def seconds_per_row(context: "Context") -> float:
    """Seconds that the frozen encoder takes for a training row, measured on up to 128."""
    from totune.encoders.mixing import View
    from totune.features import compute
    from totune.inputs.encoded import tokenize

    train, encoder = context.dataset.train, context.loaded.encoder
    view, bf16 = View((encoder.depth,), "mean"), context.precision == "bf16"
    timed = 0.0
    for count in (_WARM_UP_ROWS, _TIMED_ROWS):
        count = min(count, len(train))
        chosen = train.take(np.linspace(0, len(train) - 1, count).astype(int))
        pieces = tokenize(chosen, context.loaded.tokenizer, context.max_length)
        began = time.perf_counter()
        compute(encoder, pieces, view, bf16)
        timed = (time.perf_counter() - began) / count
    return timed


def passes(family: Family, context: "Context") -> float:
    """What one run of a family costs in forward passes of a row through the whole encoder.

    Steps are counted with default epochs: three passes for what trains, one for what is evaluated,
    a frozen prefix once. The time a head takes is left out.
    """
    train, dev, test = (len(split) for split in context.dataset.splits().values())
    if family == "frozen":
        return train + dev + test
    from totune.runs.config import Candidate

    options = options_of(Candidate(TRIED[family]).create(context.facts))
    epochs = int(options["num_train_epochs"])
    if family == "top layers":
        share = min(1.0, int(options["k"]) / context.loaded.encoder.depth)
        prefix = (1 - share) * (train + dev + test)
        return prefix + share * (epochs * (_TRAINING * train + dev) + test)
    step = _INSERTED if family == "inserted modules" else _TRAINING
    return epochs * (step * train + dev) + test


def _kind(context: "Context") -> Kind:
    return "language model" if context.loaded.encoder.reads_words else "transformer"


def _shape(context: "Context") -> Shape:
    if context.task.per_word:
        return "tagged words"
    if context.task.name == "regression":
        return "scores"
    return "single texts" if context.dataset.train.pairs is None else "pairs"


def _classes(context: "Context") -> int | None:
    return context.task.outputs if context.task.name == "classification" else None


def _evidence(signals: Signals) -> dict[str, Any]:
    """What results say of this kind of encoder and data: how often each family won."""
    prior = prior_of(signals.kind, signals.shape)
    wins = {family: list(found) for family, found in prior.wins.items() if any(found)}
    return {"results": prior.results, "wins": wins, "fewest_rows": FEWEST_ROWS}


def _scored(name: str, context: "Context") -> float:
    """What a baseline scores on dev."""
    from totune.baselines.base import BASELINES

    baseline = BASELINES.create(name)
    data, task = context.dataset, context.task
    fitted = baseline.fit(data.train, task.targets(data.train.labels or ()), task, 0, None)
    dev = task.targets(data.dev.labels or ())
    scores = task.measure(dev, fitted.outputs(data.dev), data.dev.counts)
    return scores[context.settings.metric]


def _command(words: Sequence[str], chances: Mapping[Family, Chance], context: "Context") -> str:
    """The comparison that should settle it: a baseline, frozen features, and the likely winners."""
    chosen, total = [TRIED["frozen"]], 0.0
    for family in sorted(chances, key=lambda name: -chances[name].probability):
        if total < ENOUGH and TRIED[family] not in chosen:
            chosen.append(TRIED[family])
        total += chances[family].probability
    first = "most-frequent-tag" if context.task.per_word else "tf-idf"
    order = [TRIED[family] for family in FAMILIES if TRIED[family] in chosen]
    return shlex.join([*words, "--strategies", ",".join([first, *order])])
