"""Which layers' trained adapters matter: the score without those of every span of layers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from totune.adapters.sharing import Span
from totune.analyses.adapter_ablation_section import ablation_section, spans_of
from totune.analyses.base import ANALYSES, Analysis, AnalysisResult, finite
from totune.analyses.inputs.studies import AblationModel, without_adapters
from totune.data.examples import SplitName
from totune.errors import DataError
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from totune.adapters.adapters import Adapters
    from totune.encoders.transformers import TransformersEncoder
    from totune.inputs.batches import Batch
    from totune.model import Model
    from totune.training.inputs import InputSource, Split

SpanScores = dict[Span | None, float | None]  # None is the model with all adapters


@ANALYSES.register("adapter-ablation")
@dataclass(frozen=True)
class AdapterAblation(Analysis[Iterable[AblationModel]]):
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

    def run(self, inputs: Iterable[AblationModel], progress: Progress) -> AnalysisResult:
        """A row per model and span: its score, that with all adapters, the relative change.

        The relative change is (score - intact) / |intact|; it is None where intact is 0.

        Raises:
            ModelError: if a model has no bottleneck adapters.
            DataError: if no row has a label that the model knows.
        """
        from totune.adapters.adapters import layer_spans

        rows: list[dict[str, Any]] = []
        facts: dict[str, Any] = {}
        computed = naive = 0
        for trained in inputs:
            adapters, encoder = _adapters_of(trained)
            split = _checked(trained.split(self.split), trained)
            spans = SpanOutputs(trained.model, adapters, layer_spans(encoder))
            scores = _scores(spans, split, trained, progress)
            rows += _rows(trained, scores)
            computed += spans.evaluations
            # As many layers as if the whole model, and it without each span, ran alone.
            naive += spans.batches * encoder.depth * len(scores)
            facts = {"metric": trained.metric, "rows": len(split)}
            facts["layers"] = [list(span) for span in spans.layers]
        counts = {"block_evaluations": computed, "naive_block_evaluations": naive}
        return AnalysisResult(rows, {**facts, "split": self.split, **counts})

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """What is lost without which adapters, as heatmaps and tables."""
        return ablation_section(self.title, result, records)


def _adapters_of(trained: AblationModel) -> "tuple[Adapters, TransformersEncoder]":
    from totune.adapters.adapters import Adapters
    from totune.encoders.transformers import TransformersEncoder

    encoder = trained.model.encoder
    inserted = encoder.inserted
    if not isinstance(inserted, Adapters) or not isinstance(encoder, TransformersEncoder):
        raise without_adapters(f"{trained.label} (seed {trained.seed})")
    return inserted, encoder


def _checked(split: "Split", trained: AblationModel) -> "Split":
    """The split, if there is something to score."""
    task = trained.model.task
    if split.flat is None or not task.known(split.flat).any():
        raise DataError(
            f"No row of {split.name} has a label that the model of {trained.label} knows "
            f"({task.to_json()}). Name data of the task that it was trained on."
        )
    return split


def _scores(
    spans: "SpanOutputs", split: "Split", trained: AblationModel, progress: Progress
) -> SpanScores:
    """The score with all adapters (under None), and without those of each span."""
    import torch

    from totune.inputs.batches import ordered_batches
    from totune.training.inputs import EVAL_TOKENS, open_source

    source = open_source(split, spans.model, None, -1)
    batches = list(ordered_batches(source.units.lengths, EVAL_TOKENS, EVAL_TOKENS))
    shape = split.positions, spans.model.task.outputs
    every = [None, *spans_of(spans.layers)]
    outputs = {span: np.zeros(shape, dtype=np.float32) for span in every}  # [P, C] each
    name = f"Removing adapters of {trained.label}, seed {trained.seed}"
    with torch.no_grad(), progress.bar(name, len(batches)) as bar:
        for indices in batches:
            _fill(outputs, spans, source, indices)
            bar.advance()
    return {span: _score(found, split, trained) for span, found in outputs.items()}


def _fill(
    outputs: Mapping[Span | None, np.ndarray],
    spans: "SpanOutputs",
    source: "InputSource",
    indices: np.ndarray,
) -> None:
    """Writes the outputs of one batch of units."""
    model, at = spans.model, source.units.positions(indices)
    batch, _ = source.batch(indices, model.encoder.device)
    for span, found in spans.outputs(batch):
        outputs[span][at] = model.best(found, batch).float().cpu().numpy()


def _score(outputs: np.ndarray, split: "Split", trained: AblationModel) -> float | None:
    """The deciding metric; None if it is not a number."""
    task = trained.model.task
    assert split.targets is not None, "checked before"
    return finite(task.measure(split.targets, outputs, split.units.counts)[trained.metric])


def _rows(trained: AblationModel, scores: SpanScores) -> Iterator[dict[str, Any]]:
    intact = scores[None]
    for span, score in scores.items():
        if span is not None:
            yield {
                "strategy": trained.label,
                "seed": trained.seed,
                "first": span[0],
                "last": span[1],
                "score": score,
                "intact": intact,
                "change": (score - intact) / abs(intact) if score is not None and intact else None,
            }


class SpanOutputs:
    """Outputs of a model without the adapters of each span, computing once what spans share.

    L layers make L (L + 1) / 2 spans first..last. Below `first` a span's states are those of the
    whole model. Spans of one `first` share the layers first..last that are computed without
    adapters: each goes on from the last one's. Only the layers above `last`, with their adapters,
    are a span's own.

    Args:
        model: in eval mode.
        adapters: those in its encoder.
        layers: as `layer_spans` gives them.

    Attributes:
        batches: number of batches so far.
        evaluations: number of layers computed for them.
    """

    def __init__(self, model: "Model", adapters: "Adapters", layers: list[Span]) -> None:
        self.model, self.adapters, self.layers = model, adapters, layers
        self.batches = self.evaluations = 0

    def outputs(self, batch: "Batch") -> "Iterator[tuple[Span | None, Tensor]]":
        """Outputs [P, C] with all adapters (None), then without those of each span."""
        depth = self.model.encoder.depth
        self.batches += 1
        whole = self._whole(batch)
        yield None, self._read(whole, batch)
        for at, (first, _) in enumerate(self.layers):
            removed = {below: whole[below] for below in range(first)}
            for start, last in self.layers[at:]:
                with self.adapters.removed(start, last):
                    removed |= self._run(batch, removed[start - 1], start - 1, last)
                above = self._run(batch, removed[last], last, depth)
                yield (first, last), self._read(removed | above, batch)

    def _whole(self, batch: "Batch") -> "dict[int, Tensor]":
        """States of every block, by depth."""
        self.evaluations += self.model.encoder.depth
        with self._autocast():
            return dict(enumerate(self.model.encoder.encode(batch).states))

    def _run(self, batch: "Batch", states: "Tensor", start: int, stop: int) -> "dict[int, Tensor]":
        """States of blocks start + 1..stop, by depth, from those of `start`."""
        from totune.encoders.encoder import Cached

        if start == stop:
            return {}
        self.evaluations += stop - start
        with self._autocast():
            stack = self.model.encoder.encode(batch, Cached(start, states), stop)
        return {depth: stack[depth] for depth in range(start + 1, stop + 1)}

    def _autocast(self) -> "torch.autocast":
        import torch

        bf16 = self.model.precision == "bf16"
        return torch.autocast(self.model.encoder.device.type, torch.bfloat16, enabled=bf16)

    def _read(self, states: "dict[int, Tensor]", batch: "Batch") -> "Tensor":
        """Mixing and head over the states of every block."""
        import torch

        from totune.encoders.mixing import reduce_tokens
        from totune.model import Viewed

        view = self.model.readout.view(self.model.encoder.depth)
        read = [states[depth] for depth in view.depths]  # each [B, T, H]; of the top maybe T = 1
        if view.reduction is not None:
            read = [reduce_tokens(each, batch.attention_mask, view.reduction) for each in read]
        outputs: Tensor = self.model(batch, Viewed(view, torch.stack(read, dim=1)))
        return outputs
