"""How many bits each block holds about the labels (Peters et al. 2019, Figure 2)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult
from totune.analyses.inputs.hidden_states import (
    HiddenStates,
    Pool,
    block_name,
    check_varied,
    finite_vectors,
    sample_rows,
)
from totune.analyses.mutual_information_section import information_section
from totune.data.examples import SplitName
from totune.errors import DataError
from totune.information import Edge, NearestNeighbours, label_entropy
from totune.information.edge import LEAST_ROWS
from totune.information.neighbours import COMPONENTS, principal_components
from totune.progress import Progress
from totune.report.document import Section
from totune.runs.records import RunRecord

EstimatorName = Literal["edge", "neighbours"]


class _Estimator(NamedTuple):
    """One way to estimate information.

    Attributes:
        name: as options call it.
        draws: estimates whose mean is taken.
        reduce: hidden states [N, H] to what is read, computed once for all labels.
        bits: an estimate from reduced states [N, H'], labels [N] and the number of the draw.
    """

    name: EstimatorName
    draws: int
    reduce: Callable[[NDArray[Any]], NDArray[Any]]
    bits: Callable[[NDArray[Any], NDArray[Any], int], float]


@ANALYSES.register("mutual-information")
@dataclass(frozen=True)
class MutualInformation(Analysis[HiddenStates]):
    """Mutual information I(H; Y) in bits between each block's hidden states and the labels.

    By EDGE (Noshad et al. 2018) with its default options on the pooled states of dev, as Peters et
    al. 2019 (section 5). Their two checks stand beside the result, and should give 0: the states
    against permuted labels, and Gaussian noise of the states' shape against permuted labels. For
    comparison, an estimator that looks at nearest neighbours on five principal components. Where
    labels are scores there is no entropy that bounds the information.

    Attributes:
        estimators: `edge`, `neighbours` on principal components, or both; the first decides.
        passes: number of passes of EDGE: 2, its default, widens its cells where a first pass finds
            little, so that little becomes none; 1 does not.
        draws: number of EDGE's random projections, and of permutations; an estimate is their mean.
            The first projection is the authors' own.
        pooling: how a text's tokens become one vector: `mean`, `max`, or the first (`cls`).
        split: the split whose rows are used.
        max_rows: largest number of them, drawn at random. Estimates shift with the number of rows.
        seed: seed of the drawn rows, the permutations, the noise, the projections after the first.
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

    def run(self, inputs: HiddenStates, progress: Progress) -> AnalysisResult:
        """Estimates for every block of every subject.

        Returns:
            A row per estimator, subject, seed, block and kind of labels, in bits; random
            representations belong to no subject. `spread` is the deviation over draws, or None.

        Raises:
            ConfigError: if the encoder has no token that `pooling` reads.
            DataError: if labels or hidden states allow no estimate.
        """
        kept, labels = self._labels(inputs, progress)
        has_classes = inputs.task.name != "regression"
        estimators = [self._estimator(name, has_classes) for name in dict.fromkeys(self.estimators)]
        rows: list[dict[str, Any]] = []
        for subject in inputs.subjects():
            vectors = finite_vectors(inputs, subject, self.split, self.pooling, kept)
            own = {"subject": subject.label, "seed": subject.seed}
            with progress.bar(f"information, {subject}", vectors.shape[1]) as bar:
                for found in self._subject_rows(vectors, labels, estimators):
                    rows += [own | row for row in found]
                    bar.advance()
        with progress.bar("information, random representations", vectors.shape[1]) as bar:
            for found in self._noise_rows(vectors.shape, labels, estimators):
                rows += [{"subject": None, "seed": None} | row for row in found]
                bar.advance()
        facts = {
            "depth": inputs.depth,
            "pooling": self.pooling,
            "split": self.split,
            "rows": len(kept),
            "passes": self.passes,
            "components": COMPONENTS,
            "estimators": [estimator.name for estimator in estimators],
            "entropy": label_entropy(labels) if has_classes else None,
            "classes": len(np.unique(labels)) if has_classes else None,
            "told_apart": _distinguished_classes(labels) if has_classes else None,
        }
        return AnalysisResult(rows, facts)

    def section(self, result: AnalysisResult, records: Sequence[RunRecord]) -> Section:
        """The finding of the first estimator, its checks, then what the other one says."""
        return information_section(self.title, result, records)

    def _labels(
        self, states: HiddenStates, progress: Progress
    ) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Rows of the split that are used, and their targets."""
        every, task = states.targets(self.split), states.task
        kept, unseen = sample_rows(every, task, self.max_rows, self.seed)
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

    def _estimator(self, name: EstimatorName, has_classes: bool) -> _Estimator:
        def edge(x: NDArray[Any], y: NDArray[Any], draw: int) -> float:
            # The first draw is the authors' own whatever the seed, to compare with others'.
            seed = Edge().seed + (draw + 1_000 * self.seed if draw else 0)
            return Edge(passes=self.passes, seed=seed % 2**32).estimate(x, y)

        def neighbours(x: NDArray[Any], y: NDArray[Any], _: int) -> float:
            found = NearestNeighbours(n_components=None, seed=self.seed)
            return found.with_labels(x, y) if has_classes else found.with_numbers(x, y)

        if name == "edge":
            return _Estimator(name, self.draws, lambda x: x, edge)
        # Nothing is drawn but noise that breaks ties, so that one draw is enough.
        return _Estimator(name, 1, principal_components, neighbours)

    def _subject_rows(
        self, vectors: NDArray[np.float32], labels: NDArray[Any], estimators: Sequence[_Estimator]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of each block of states [N, L + 1, H]: with its labels, and permuted ones."""
        for block in range(vectors.shape[1]):
            reduced = [(each, each.reduce(vectors[:, block])) for each in estimators]
            yield [
                self._row(estimator, states, labels, kind, block)
                for estimator, states in reduced
                for kind in ("labels", "random labels")
            ]

    def _noise_rows(
        self, shape: tuple[int, ...], labels: NDArray[Any], estimators: Sequence[_Estimator]
    ) -> Iterator[list[dict[str, Any]]]:
        """The rows of Gaussian noise of the shape of states [N, L + 1, H], with permuted labels."""
        generator = np.random.default_rng([self.seed, 0])
        for block in range(shape[1]):
            noise = generator.standard_normal((shape[0], shape[2]), dtype=np.float32)
            yield [
                self._row(each, each.reduce(noise), labels, "random representations", block)
                for each in estimators
            ]

    def _row(
        self,
        estimator: _Estimator,
        x: NDArray[Any],
        labels: NDArray[Any],
        kind: str,
        block: int,
    ) -> dict[str, Any]:
        """The mean over draws, each of which permutes the labels unless they are the kind."""
        real, bits = kind == "labels", []
        for draw in range(estimator.draws if real else self.draws):
            generator = np.random.default_rng([self.seed, 1, block, draw])
            bits.append(estimator.bits(x, labels if real else generator.permutation(labels), draw))
        return {
            "block": block,
            "name": block_name(block),
            "estimator": estimator.name,
            "what": kind,
            "bits": float(np.mean(bits)),
            "spread": float(np.std(bits, ddof=1)) if len(bits) > 1 else None,
        }


def _distinguished_classes(labels: NDArray[Any]) -> int:
    """Cells that EDGE's first pass puts classes into: fewer where many classes are rare."""
    return int(Edge().project(labels, labels)[1].cells(1.0, 0).max()) + 1
