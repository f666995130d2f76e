"""What each block of an encoder tells a linear model (Peters et al. 2019, Figure 1)."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.drawing.probe_section import probe_section
from totune.analyses.materials.states import Pool, States, Subject
from totune.analyses.measuring.blocks import (
    block_name,
    check_varied,
    checked_vectors,
    name_of,
    sampled_rows,
    tell_missing,
)
from totune.analyses.measuring.leading import Scoring
from totune.analyses.measuring.probing import Probed, Prober
from totune.metrics import get_metric
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord


@ANALYSES.register("layer-probe")
@dataclass(frozen=True)
class LayerProbe(Analysis[States]):
    """A linear probe on every block: trained on train, scored on dev, with a control.

    Logistic regression, or ridge regression for scores, on the hidden states of a block, pooled
    over the tokens of the text or texts and standardised (Peters et al. 2019, section 5). The
    penalty is chosen by cross-validation inside train, by the study's metric, from C = 0.0001,
    0.001, ... 1. The control is the same probe with labels permuted, on train and on dev, and a
    probe's selectivity is what it scores above that (Hewitt and Liang 2019; they give every word a
    random label for good, and since texts do not repeat, here every row draws one).

    Attributes:
        pooling: of a text's tokens: `mean`, `max`, or the first (`cls`).
        max_train_rows: the most rows a probe is trained on, drawn at random; with 10,000 an encoder
            of 12 blocks takes about half a minute where labels are two classes.
        folds: of the cross-validation.
        seed: of the drawn rows, the folds, the permutations and the resamples.
    """

    title: ClassVar[str] = "What each layer tells about the labels"
    reads_runs: ClassVar[bool] = True

    pooling: Pool = "mean"
    max_train_rows: Annotated[int, Field(ge=20)] = 10_000
    folds: Annotated[int, Field(ge=2)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0

    def run(self, material: States, progress: Progress) -> Values:
        """Probes every block of every subject.

        Returns:
            A row per subject, seed and block, with scores of the study's metric in its own scale;
            the leading block of each subject as a fact.

        Raises:
            ConfigError: if the encoder has no token that `pooling` reads.
            DataError: if labels or hidden states leave nothing to probe.
        """
        bench = self._bench(material, progress)
        rows: list[dict[str, Any]] = []
        found: dict[str, list[list[Probed]]] = {}
        for subject in material.subjects():
            probes = self._probe(subject, material, bench, progress)
            rows += bench.rows(subject, probes)
            found.setdefault(subject.label, []).append(probes)
        leading = [
            {"subject": label, **asdict(bench.scoring.leading(runs, self.seed))}
            for label, runs in found.items()
        ]
        facts = {
            "metric": bench.scoring.metric,
            "depth": material.depth,
            "pooling": self.pooling,
            "model": bench.prober.model,
            "train_rows": len(bench.train),
            "dev_rows": len(bench.dev),
            "leading": leading,
        }
        return Values(rows, facts)

    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        return probe_section(self.title, values, records)

    def _bench(self, material: States, progress: Progress) -> "_Bench":
        """Rows, labels, permuted labels and folds, which all probes share."""
        task, metric = material.task, material.context.settings.metric
        every, dev = material.targets("train"), material.targets("dev")
        train, _ = sampled_rows(every, task, self.max_train_rows, self.seed)
        if len(train) < len(every):
            progress.say(f"Probes train on {len(train):,} rows, drawn from {len(every):,}.")
        check_varied(dev[task.known(dev)], task, "dev")
        tell_missing(every[train], dev, task, progress)
        blocks = material.depth + 1
        shuffled = _permuted(dev, blocks, [self.seed, 1])
        return _Bench(
            train=train,
            dev=np.arange(len(dev)),
            prober=Prober.of(task, metric, every[train], self.folds, self.seed),
            shuffled=_permuted(every[train], blocks, [self.seed, 0]),
            scoring=Scoring(task, metric, dev, shuffled),
        )

    def _probe(
        self, subject: Subject, material: States, bench: "_Bench", progress: Progress
    ) -> list[Probed]:
        """A probe per block."""
        train = checked_vectors(material, subject, "train", self.pooling, bench.train)
        dev = checked_vectors(material, subject, "dev", self.pooling, bench.dev)
        found = []
        with progress.bar(f"probes, {name_of(subject)}", material.depth + 1) as bar:
            for block, shuffled in enumerate(bench.shuffled):
                found.append(bench.prober.probe(train[:, block], dev[:, block], shuffled))
                bar.advance()
        return found


@dataclass(frozen=True)
class _Bench:
    """What the probes of all subjects share.

    Attributes:
        train: rows of train that probes are trained on.
        dev: rows that they are scored on.
        shuffled: labels of `train` permuted, another permutation for each block: [L + 1, N].
    """

    train: NDArray[np.int64]
    dev: NDArray[np.int64]
    prober: Prober
    shuffled: NDArray[Any]
    scoring: Scoring

    def rows(self, subject: Subject, probes: Sequence[Probed]) -> list[dict[str, Any]]:
        sign = get_metric(self.scoring.metric).sign
        scores = zip(probes, *self.scoring.scores(probes), strict=True)
        return [
            {
                "subject": subject.label,
                "seed": subject.seed,
                "block": block,
                "name": block_name(block),
                "score": float(score),
                "control": float(control),
                "selectivity": sign * float(score - control),
                "C": probe.strength,
                "n_train": len(self.train),
            }
            for block, (probe, score, control) in enumerate(scores)
        ]


def _permuted(targets: NDArray[Any], times: int, seed: Sequence[int]) -> NDArray[Any]:
    """Targets in so many random orders, [times, N]."""
    generator = np.random.default_rng(seed)
    return np.stack([generator.permutation(targets) for _ in range(times)])
