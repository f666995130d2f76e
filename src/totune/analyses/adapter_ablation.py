"""Which layers' trained adapters matter: the score without those of every span of layers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from totune.adapters.adapters import Adapters
from totune.adapters.sharing import Span
from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.drawing.span_report import ablation_section
from totune.analyses.materials.trained import Trained, without_adapters
from totune.analyses.measuring.known import finite
from totune.analyses.measuring.span_walk import Walk, naive_evaluations, removable, spans_of
from totune.data.examples import SplitName
from totune.encoders.transformers import TransformersEncoder
from totune.errors import DataError
from totune.inputs.batches import ordered_batches
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord
from totune.training.inputs import EVAL_TOKENS, Source, Split, open_source

Scores = dict[Span | None, float | None]


@ANALYSES.register("adapter-ablation")
@dataclass(frozen=True)
class AdapterAblation(Analysis[Iterable[Trained]]):
    """Scores a model without the trained adapters of layers first..last, for each such span.

    Nothing is trained again (Mohebbi and Rajaee, section 6.4 and Figure 8, after Houlsby et al.
    2019). For models with bottleneck adapters, which are also removed where layers share them:
    a shared adapter remains in the layers outside the span.

    Attributes:
        split: the rows that are scored: train, dev or test.
    """

    title: ClassVar[str] = "Adapters removed"
    reads_runs: ClassVar[bool] = True

    split: SplitName = "dev"

    def run(self, material: Iterable[Trained], progress: Progress) -> Values:
        """A row per model and span: its score, that with all adapters, the relative change.

        Of the relative change (score - intact) / |intact| there is None where intact is 0.

        Raises:
            ModelError: if a model has no bottleneck adapters.
            DataError: if no row has a label that the model knows.
        """
        rows: list[dict[str, Any]] = []
        facts: dict[str, Any] = {}
        done = naive = 0
        for trained in material:
            adapters, encoder = _adapters_of(trained)
            split = _checked(trained.split(self.split), trained)
            walk = Walk(trained.model, adapters, removable(encoder))
            scores = _scores(walk, split, trained, progress)
            rows += _rows(trained, scores)
            done += walk.evaluations
            naive += walk.batches * naive_evaluations(encoder.depth, len(scores) - 1)
            facts = {"metric": trained.metric, "rows": len(split.units.counts)}
            facts["layers"] = [list(span) for span in walk.layers]
        facts |= {"split": self.split, "block_evaluations": done, "naive_block_evaluations": naive}
        return Values(rows, facts)

    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        """What is lost without which adapters, as heatmaps and tables."""
        return ablation_section(self.title, values, records)


def _adapters_of(trained: Trained) -> tuple[Adapters, TransformersEncoder]:
    encoder = trained.model.encoder
    inserted = encoder.inserted
    if not isinstance(inserted, Adapters) or not isinstance(encoder, TransformersEncoder):
        raise without_adapters(f"{trained.label} (seed {trained.seed})")
    return inserted, encoder


def _checked(split: Split, trained: Trained) -> Split:
    """The split, if there is something to score."""
    task = trained.model.task
    if split.flat is None or not task.known(split.flat).any():
        raise DataError(
            f"No row of {split.name} has a label that the model of {trained.label} knows "
            f"({task.to_json()}). Name data of the task that it was trained on."
        )
    return split


def _scores(walk: Walk, split: Split, trained: Trained, progress: Progress) -> Scores:
    """The score with all adapters (under None), and without those of each span."""
    source = open_source(split, walk.model, None, -1)
    batches = list(ordered_batches(source.units.lengths, EVAL_TOKENS, EVAL_TOKENS))
    values = _empty(walk, split)
    told = f"Removing adapters of {trained.label}, seed {trained.seed}"
    with torch.no_grad(), progress.bar(told, len(batches)) as bar:
        for indices in batches:
            _fill(values, walk, source, indices)
            bar.advance()
    return {span: _score(outputs, split, trained) for span, outputs in values.items()}


def _empty(walk: Walk, split: Split) -> dict[Span | None, np.ndarray]:
    """Room for the outputs [P, C] without each span."""
    shape = split.positions, walk.model.task.outputs
    spans = [None, *spans_of(walk.layers)]
    return {span: np.zeros(shape, dtype=np.float32) for span in spans}


def _fill(
    values: Mapping[Span | None, np.ndarray], walk: Walk, source: Source, indices: np.ndarray
) -> None:
    """Writes the outputs of one batch of units."""
    model, at = walk.model, source.units.positions(indices)
    batch, _ = source.batch(indices, model.encoder.device)
    for span, outputs in walk.outputs(batch):
        values[span][at] = model.best(outputs, batch).float().cpu().numpy()


def _score(outputs: np.ndarray, split: Split, trained: Trained) -> float | None:
    """The deciding metric; None if it is not a number."""
    task = trained.model.task
    predictions = task.predictions(outputs, split.units.counts)
    assert split.targets is not None, "checked before"
    return finite(task.evaluate(split.targets, predictions)[trained.metric])


def _rows(trained: Trained, scores: Scores) -> list[dict[str, Any]]:
    intact = scores[None]
    return [
        {
            "strategy": trained.label,
            "seed": trained.seed,
            "first": span[0],
            "last": span[1],
            "score": score,
            "intact": intact,
            "change": _relative(score, intact),
        }
        for span, score in scores.items()
        if span is not None
    ]


def _relative(score: float | None, intact: float | None) -> float | None:
    """By what share of its size the score changes."""
    if score is None or not intact:
        return None
    return (score - intact) / abs(intact)
