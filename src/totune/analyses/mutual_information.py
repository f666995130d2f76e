"""How many bits each block holds about the labels (Peters et al. 2019, Figure 2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.drawing.information_section import information_section
from totune.analyses.materials.states import Pool, SplitName, States, Subject
from totune.analyses.measuring.blocks import (
    block_name,
    check_varied,
    checked_vectors,
    name_of,
    sampled_rows,
)
from totune.errors import DataError
from totune.information import Edge, NearestNeighbours, label_entropy
from totune.information.edge import LEAST_ROWS
from totune.information.neighbours import COMPONENTS, principal_components
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord
from totune.tasks.regression import Regression

EstimatorName = Literal["edge", "neighbours"]


@ANALYSES.register("mutual-information")
@dataclass(frozen=True)
class MutualInformation(Analysis[States]):
    """Mutual information I(H; Y) in bits between each block's hidden states and the labels.

    By EDGE (Noshad et al. 2018) with its default options on the pooled states of dev, as Peters et
    al. 2019 (section 5). Their two checks stand beside the result, and should give 0: the states
    against permuted labels, and Gaussian noise of the states' shape against permuted labels. For
    comparison, an estimator that looks at nearest neighbours on five principal components. Where
    labels are scores there is no entropy that bounds the information.

    Attributes:
        estimators: `edge`, `neighbours` on principal components, or both; the first decides.
        passes: of EDGE: 2, its default, widens its cells where a first pass finds little, so that
            little becomes none; 1 does not.
        draws: of EDGE's random projections, and of permutations; an estimate is their mean. The
            first projection is the authors' own.
        pooling: of a text's tokens: `mean`, `max`, or the first (`cls`).
        split: whose rows are looked at.
        max_rows: the most of them, drawn at random. Estimates shift with the number of rows.
        seed: of the drawn rows, the permutations, the noise, the projections after the first.
    """

    title: ClassVar[str] = "Information about the labels in each layer"
    reads_runs: ClassVar[bool] = True

    estimators: Annotated[tuple[EstimatorName, ...], Field(min_length=1)] = ("edge", "neighbours")
    passes: Literal[1, 2] = 2
    draws: Annotated[int, Field(ge=1)] = 5
    pooling: Pool = "mean"
    split: SplitName = "dev"
    max_rows: Annotated[int, Field(ge=LEAST_ROWS)] = 5_000
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0

    def run(self, material: States, progress: Progress) -> Values:
        """Estimates for every block of every subject.

        Returns:
            A row per estimator, subject, seed, block and kind of labels, in bits; random
            representations belong to no subject. `spread` is the deviation over draws, or None.

        Raises:
            ConfigError: if the encoder has no token that `pooling` reads.
            DataError: if labels or hidden states allow no estimate.
        """
        kept, labels = self._labels(material, progress)
        scores = isinstance(material.task, Regression)
        estimators = self._estimators(scores)
        rows: list[dict[str, Any]] = []
        for subject in material.subjects():
            vectors = checked_vectors(material, subject, self.split, self.pooling, kept)
            rows += self._rows(subject, vectors, labels, estimators, progress)
        rows += self._null_rows(vectors.shape, labels, estimators, progress)
        facts = {
            "depth": material.depth,
            "pooling": self.pooling,
            "split": self.split,
            "rows": len(kept),
            "passes": self.passes,
            "components": COMPONENTS,
            "estimators": [estimator.name for estimator in estimators],
            "entropy": None if scores else label_entropy(labels),
            "classes": None if scores else len(np.unique(labels)),
            "told_apart": None if scores else _told_apart(labels),
        }
        return Values(rows, facts)

    def section(self, values: Values, records: Sequence[RunRecord]) -> Section:
        return information_section(self.title, values, records)

    def _labels(
        self, material: States, progress: Progress
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Rows of the split that are looked at, and their targets."""
        every, task = material.targets(self.split), material.task
        kept, unseen = sampled_rows(every, task, self.max_rows, self.seed)
        if unseen:
            progress.warn(
                f"{unseen:,} of {len(every):,} rows of {self.split} have a label that no row of "
                "train has; they are left out."
            )
        if len(kept) + unseen < len(every):
            progress.say(f"{len(kept):,} rows are looked at, drawn from {len(every):,}.")
        if len(kept) < LEAST_ROWS:
            raise DataError(
                f"{self.split} has {len(kept):,} rows with known labels; mutual information needs "
                f"at least {LEAST_ROWS}, and hundreds to mean something. Use split=train, or a "
                "larger fraction of the data."
            )
        check_varied(every[kept], task, self.split)
        return kept, every[kept]

    def _estimators(self, scores: bool) -> list["_Estimator"]:
        known: dict[EstimatorName, _Estimator] = {
            "edge": _Edge(self.passes, self.draws, self.seed),
            "neighbours": _Neighbours(scores, self.seed),
        }
        return [known[name] for name in dict.fromkeys(self.estimators)]

    def _rows(
        self,
        subject: Subject,
        vectors: NDArray[np.float32],
        labels: NDArray[Any],
        estimators: Sequence["_Estimator"],
        progress: Progress,
    ) -> Iterator[dict[str, Any]]:
        """Of one subject: with its labels, and with permuted ones."""
        whose = {"subject": subject.label, "seed": subject.seed}
        with progress.bar(f"information, {name_of(subject)}", vectors.shape[1]) as bar:
            for block in range(vectors.shape[1]):
                for estimator in estimators:
                    states = estimator.reduced(vectors[:, block])
                    for what in ("labels", "random labels"):
                        yield whose | self._row(estimator, states, labels, what, block)
                bar.advance()

    def _null_rows(
        self,
        shape: tuple[int, ...],
        labels: NDArray[Any],
        estimators: Sequence["_Estimator"],
        progress: Progress,
    ) -> Iterator[dict[str, Any]]:
        """Gaussian noise of the shape of the states [N, L + 1, H], with permuted labels."""
        whose = {"subject": None, "seed": None}
        generator = np.random.default_rng([self.seed, 0])
        with progress.bar("information, random representations", shape[1]) as bar:
            for block in range(shape[1]):
                noise = generator.standard_normal((shape[0], shape[2]), dtype=np.float32)
                for estimator in estimators:
                    x, what = estimator.reduced(noise), "random representations"
                    yield whose | self._row(estimator, x, labels, what, block)
                bar.advance()

    def _row(
        self,
        estimator: "_Estimator",
        x: NDArray[Any],
        labels: NDArray[Any],
        what: str,
        block: int,
    ) -> dict[str, Any]:
        """The mean over draws; but for the labels themselves each permutes them anew."""
        real, bits = what == "labels", []
        for draw in range(estimator.draws if real else self.draws):
            generator = np.random.default_rng([self.seed, 1, block, draw])
            bits.append(estimator.bits(x, labels if real else generator.permutation(labels), draw))
        return {
            "block": block,
            "name": block_name(block),
            "estimator": estimator.name,
            "what": what,
            "bits": float(np.mean(bits)),
            "spread": float(np.std(bits, ddof=1)) if len(bits) > 1 else None,
        }


def _told_apart(labels: NDArray[Any]) -> int:
    """Cells that EDGE's first pass puts classes into: fewer where many classes are rare."""
    return int(Edge().project(labels, labels)[1].cells(1.0, 0).max()) + 1


@dataclass(frozen=True)
class _Edge:
    """EDGE with its default options but passes and seed."""

    passes: Literal[1, 2]
    draws: int
    seed: int

    name: ClassVar[EstimatorName] = "edge"

    def reduced(self, x: NDArray[np.float32]) -> NDArray[Any]:
        return x

    def bits(self, x: NDArray[Any], y: NDArray[Any], draw: int) -> float:
        # The first draw is the authors' own whatever the seed: it is what others compare with.
        seed = Edge().seed + (draw + 1_000 * self.seed if draw else 0)
        return Edge(passes=self.passes, seed=seed % 2**32).estimate(x, y)


@dataclass(frozen=True)
class _Neighbours:
    """Nearest neighbours on principal components; nothing is drawn but noise that breaks ties."""

    scores: bool
    seed: int

    name: ClassVar[EstimatorName] = "neighbours"
    draws: ClassVar[int] = 1

    def reduced(self, x: NDArray[np.float32]) -> NDArray[Any]:
        """The principal components that the estimator reads, found once for all labels."""
        return principal_components(x)

    def bits(self, x: NDArray[Any], y: NDArray[Any], draw: int) -> float:
        estimator = NearestNeighbours(n_components=None, seed=self.seed)
        return estimator.with_numbers(x, y) if self.scores else estimator.with_labels(x, y)


_Estimator = _Edge | _Neighbours
