"""How well each block of an encoder predicts the labels (Peters et al. 2019, Figure 1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import (
    ANALYSES,
    Analysis,
    AnalysisResult,
    Rows,
    degenerate_warning,
    finite,
)
from totune.analyses.blocks import (
    POOLED,
    block_table,
    describe_block,
    describe_blocks,
    describe_subject,
    draw_blocks,
    figure_rows,
    only,
    spread_over_seeds,
    subject_colors,
    subjects_of,
    values_by_block,
)
from totune.analyses.inputs.hidden_states import (
    HiddenStates,
    Pool,
    Subject,
    block_name,
    check_varied,
    finite_vectors,
    sample_rows,
    warn_of_missing_classes,
)
from totune.analyses.linear_probes import Probed, Prober, ProbeScorer
from totune.metrics import get_metric
from totune.progress import Progress
from totune.report.document import Picture, Section
from totune.report.formatting import interval, is_bounded, metric_name, score, spread
from totune.report.plots import axis_label
from totune.report.table import Cell, number
from totune.runs.records import RunRecord

Facts = Mapping[str, Any]
_CHOSEN = "; the penalty is chosen by cross-validation among these"


@ANALYSES.register("layer-probe")
@dataclass(frozen=True)
class LayerProbe(Analysis[HiddenStates]):
    """A linear probe on every block: trained on train, scored on dev, with a control.

    Logistic regression, or ridge regression for scores, on the hidden states of a block, pooled
    over the tokens of the text or texts and standardised (Peters et al. 2019, section 5). The
    penalty is chosen by cross-validation inside train, by the study's metric (of one of
    probabilities by balanced accuracy), from C = 0.0001,
    0.001, ... 1. The control is the same probe with labels permuted, on train and on dev, and a
    probe's selectivity is what it scores above that (Hewitt and Liang 2019; they give every word a
    fixed random label, and since texts do not repeat, here every row draws one).

    Attributes:
        pooling: how a text's tokens become one vector: `mean`, `max`, or the first (`cls`).
        max_train_rows: largest number of rows a probe is trained on, drawn at random; with 10,000
            an encoder of 12 blocks takes about half a minute where labels are two classes.
        penalty: `chosen` by cross-validation, or `none`: plain logistic or linear regression, as
            the paper has it, which over-fits where rows are few.
        folds: number of folds of the cross-validation.
        seed: seed of the drawn rows, the folds, the permutations and the resamples.
    """

    title: ClassVar[str] = "What each layer tells about the labels"
    reads_runs: ClassVar[bool] = True

    pooling: Pool = "mean"
    max_train_rows: Annotated[int, Field(ge=20)] = 10_000
    penalty: Literal["chosen", "none"] = "chosen"
    folds: Annotated[int, Field(ge=2)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def run(self, inputs: HiddenStates, progress: Progress) -> AnalysisResult:
        """Probes every block of every subject.

        Returns:
            A row per subject, seed and block, with scores of the study's metric in its own scale;
            the leading block of each subject as a fact.

        Raises:
            ConfigError: if the encoder has no token that `pooling` reads.
            DataError: if labels or hidden states leave nothing to probe.
        """
        task, metric, blocks = inputs.task, inputs.context.settings.metric, inputs.depth + 1
        if get_metric(metric).of_probabilities:  # a probe gives decisions alone
            metric = "balanced-accuracy"
        every, dev = inputs.targets("train"), inputs.targets("dev")
        train, _ = sample_rows(every, task, self.max_train_rows, self.seed)
        if len(train) < len(every):
            progress.say(f"Probes train on {len(train):,} rows, drawn from {len(every):,}.")
        check_varied(dev[task.known(dev)], task, "dev")
        warn_of_missing_classes(every[train], dev, task, progress)
        penalised = self.penalty == "chosen"
        prober = Prober(task, metric, every[train], self.folds, self.seed, penalised)
        permuted = _permutations(every[train], blocks, [self.seed, 0])
        scorer = ProbeScorer(task, metric, dev, _permutations(dev, blocks, [self.seed, 1]))
        rows: list[dict[str, Any]] = []
        runs: dict[str, list[list[Probed]]] = {}
        for subject in inputs.subjects():
            probes = self._probe(subject, inputs, train, prober, permuted, progress)
            rows += _rows(subject, probes, scorer, len(train))
            runs.setdefault(subject.label, []).append(probes)
        facts = {
            "metric": metric,
            "depth": inputs.depth,
            "pooling": self.pooling,
            "model": prober.model,
            "penalty": self.penalty,
            "train_rows": len(train),
            "dev_rows": len(dev),
            "leading": [
                {"subject": label, **scorer.best_block(found, self.seed)}
                for label, found in runs.items()
            ],
        }
        return AnalysisResult(rows, facts)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """The finding first, then how sure it is, a table and a picture."""
        return _section(self.title, result, records)

    def _probe(
        self,
        subject: Subject,
        states: HiddenStates,
        rows: NDArray[np.int64],
        prober: Prober,
        permuted: NDArray[Any],
        progress: Progress,
    ) -> list[Probed]:
        """A probe per block, trained on these rows of train."""
        train = finite_vectors(states, subject, "train", self.pooling, rows)
        every = np.arange(len(states.targets("dev")))
        dev = finite_vectors(states, subject, "dev", self.pooling, every)
        probes = []
        with progress.bar(f"probes, {subject}", len(permuted)) as bar:
            for block, control in enumerate(permuted):
                probes.append(prober.probe(train[:, block], dev[:, block], control))
                bar.advance()
        return probes


def _permutations(targets: NDArray[Any], count: int, seed: Sequence[int]) -> NDArray[Any]:
    """Targets [N] in random orders, [count, N]."""
    generator = np.random.default_rng(seed)
    return np.stack([generator.permutation(targets) for _ in range(count)])


def _rows(
    subject: Subject, probes: Sequence[Probed], scorer: ProbeScorer, train_rows: int
) -> Iterator[dict[str, Any]]:
    sign = get_metric(scorer.metric).sign
    scores = zip(probes, *scorer.scores(probes), strict=True)
    for block, (probe, real, control) in enumerate(scores):
        yield {
            "subject": subject.label,
            "seed": subject.seed,
            "block": block,
            "name": block_name(block),
            "score": float(real),
            "control": float(control),
            "selectivity": sign * float(real - control),
            "C": finite(probe.strength),
            "n_train": train_rows,
        }


# The section


def _section(title: str, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
    facts, metric = result.facts, result.facts["metric"]
    columns = {
        subject: list(_cells(only(result.rows, subject=subject), metric))
        for subject in subjects_of(result.rows)
    }
    drawn = probe_figure(result)
    has_seeds = any(row["low"] is not None for row in drawn)
    caption = (
        f"Dev {metric_name(metric)} of a linear probe on each block"
        f"{', band: one standard deviation over seeds' if has_seeds else ''}. "
        "Dotted: the same probe on permuted labels."
    )
    svg = draw_blocks(
        "Probe score by block",
        f"Dev {metric_name(metric)}{', points' if is_bounded(metric) else ''}",
        drawn,
        subject_colors(result.rows, records),
        control="permuted labels (control)",
    )
    runs = ((row["subject"], row["seed"]) for row in result.rows)
    return Section(
        title,
        paragraphs=(_finding(facts), _uncertainty(facts), _control(result)),
        warnings=degenerate_warning(runs, records),
        tables=(block_table("Probe score by block", columns, _notes(facts, has_seeds)),),
        pictures=(Picture(svg, caption),),
    )


def probe_figure(result: AnalysisResult) -> list[dict[str, Any]]:
    """Rows of the figure, those of each subject together; bounded metrics in points."""
    unit = 100 if is_bounded(result.facts["metric"]) else 1
    rows = []
    for subject in subjects_of(result.rows):
        own = only(result.rows, subject=subject)
        scores, controls = (unit * values_by_block(own, key) for key in ("score", "control"))
        rows += figure_rows(subject, scores, controls)
    return rows


def _cells(rows: Rows, metric: str) -> Iterator[Cell]:
    """Mean and deviation over seeds of each block, and below them the selectivity."""
    scores, selectivity = values_by_block(rows, "score"), values_by_block(rows, "selectivity")
    deviations = spread_over_seeds(scores)
    for block, mean in enumerate(scores.mean(axis=0)):
        over = "" if deviations is None else f" ± {spread(metric, deviations[block])}"
        above = score(metric, float(selectivity[:, block].mean()), signed=True)
        yield number(float(mean), f"{score(metric, float(mean))}{over}", above)


def _finding(facts: Facts) -> str:
    """Which block leads for each subject, in one sentence."""
    metric, parts, verb = facts["metric"], [], "tells a linear probe most about the labels"
    for lead in facts["leading"]:
        best, who = score(metric, lead["score"]), describe_subject(lead["subject"])
        if not lead["selective"]:
            chance = f"{best}, on permuted labels {score(metric, lead['control'])}"
            parts.append(f"{who}, no layer tells more than chance would (at best {chance})")
            continue
        where = describe_block(lead["block"], facts["depth"])
        named = "" if verb == "does" else f"{metric_name(metric)} "
        parts.append(f"{who}, {where} {verb} ({named}{best})")
        verb = "does"
    sentence = "; ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}."


def _uncertainty(facts: Facts) -> str:
    """What other dev rows could have said."""
    parts = []
    for lead in facts["leading"]:
        ends = interval(facts["metric"], lead["low"], lead["high"])
        ties = describe_blocks(lead["ties"]) if lead["ties"] else "no other block"
        parts.append(f"{lead['subject']}, {ends}, level with {ties}")
    return (
        f"How sure that is: over resamples of the {facts['dev_rows']:,} dev rows, the 95% interval "
        f"of the best block, and the blocks that they do not set apart from it: {'; '.join(parts)}."
    )


def _control(result: AnalysisResult) -> str:
    controls = [row["control"] for row in result.rows]
    ends = interval(result.facts["metric"], min(controls), max(controls))
    return f"The same probes score {ends} on permuted labels, which is chance."


def _notes(facts: Facts, has_seeds: bool) -> list[str]:
    metric = axis_label(facts["metric"])
    over = "; ± is the standard deviation over seeds" if has_seeds else ""
    return [
        f"{metric} on dev{over}. Below it the selectivity: what the probe scores above the same "
        "probe on permuted labels.",
        f"Probes: {facts['model']} on standardised states, {POOLED[facts['pooling']]}, trained on "
        f"{facts['train_rows']:,} rows{_CHOSEN if facts.get('penalty') != 'none' else ''}.",
    ]
