"""What a metric is: arrays in, floats out.

Every metric is written once, over rows that carry weights: all ones for a plain score, how often
each row was drawn for a bootstrap resample. What does not depend on the weights is computed once.
So thousands of resamples of many seeds cost a few matrix products, and the score in a table and the
score in a test can never differ.

Class metrics take class indices. A target below 0 (`UNSEEN`) is a label that training never saw:
no prediction can match it, and it counts as one more class.

Some metrics score class probabilities [N, C] in place of predictions: how rows are ranked, or how
sure a prediction is.

Where words are tagged a row is a sentence, its words stand in one row of an array [N, W], and the
rest of the row is `PADDING`. A tag that training never saw has a code of its own there, above those
of the label space. Where rows have several labels they are matrices, see
`totune.metrics.label_sets`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Scorer = Callable[[Floats], Floats]  # weights [R, N] -> scores [S, R]
# targets [N] or [N, W]; predictions [S, N] or [S, N, W], or probabilities [S, N, C]; classes
Rule = Callable[[Array, Array, int], Scorer]

UNSEEN = -100
PADDING = -1


@dataclass(frozen=True)
class Metric:
    """A way to score predictions.

    Attributes:
        name: as in `METRICS`.
        rule: from targets and predictions to their score under row weights.
        higher_is_better: the direction of progress.
        unit: "points" where a score is bounded by 1 and told times 100; otherwise what one unit
            of the score is.
        per_word: whether every word of a row has a target of its own, in arrays [N, W].
        multi_label: whether rows may have any number of labels, in arrays [N, C + 1].
        lowest: the smallest score there is: 0, or -1 for correlations.
        of_probabilities: whether it scores class probabilities [N, C] in place of predictions.
        meaning: what it is, where its name does not say so to everyone; ends a sentence.
        resamples: of a bootstrap; fewer where each costs a call of a person's function.
        code: hash of the source of a person's function; empty of our own.
    """

    name: str
    rule: Rule
    higher_is_better: bool = True
    unit: str = "points"
    per_word: bool = False
    lowest: float = 0.0
    multi_label: bool = False
    of_probabilities: bool = False
    meaning: str = ""
    resamples: int = 1000
    code: str = ""

    @property
    def scale(self) -> tuple[float, float]:
        """The smallest and the largest score there is."""
        return self.lowest, 1.0 if self.unit == "points" else math.inf

    @property
    def reads(self) -> str:
        """Which of a run's arrays it scores."""
        return "scores" if self.of_probabilities else "predictions"

    @property
    def sign(self) -> int:
        """1, or -1 for an error: a score times it is better when higher."""
        return 1 if self.higher_is_better else -1

    @property
    def row(self) -> str:
        """What one row is called, which is what resamples are drawn from."""
        return "sentence" if self.per_word else "row"

    def standard_error(self, score: float, rows: int) -> float:
        """About how far the choice of `rows` rows moves a score, in its own scale.

        A bounded score counts as a proportion on its scale, p = (score - lowest) / (1 - lowest),
        with one success and one failure added, so that no score is certain: exact for accuracy but
        for those two, and near enough for the others to tell noise from progress. A mean squared
        error has that of a mean of squared normal deviates, score * sqrt(2 / rows).
        """
        if self.unit != "points":
            return abs(score) * math.sqrt(2 / rows)
        scale = 1 - self.lowest
        p = ((score - self.lowest) / scale * rows + 1) / (rows + 2)
        return scale * math.sqrt(max(0.0, p * (1 - p)) / rows)

    def __call__(self, targets: Array, predictions: Array, n_classes: int | None = None) -> float:
        """The score of `predictions` against `targets`, both [N] or [N, W].

        Args:
            targets: class indices (below 0: never seen in training), numbers, or codes of tags.
            predictions: the same; or class probabilities, [N, C].
            n_classes: the size of the label space; read from the data if None.

        Returns:
            The score; nan if a prediction is not finite.

        Raises:
            ValueError: if the arrays are empty or differ in shape or padding.
        """
        scorer = self.scorer(targets, np.asarray(predictions)[None], n_classes)
        return float(scorer(np.ones((1, len(targets))))[0, 0])

    def resampled(
        self, targets: Array, predictions: Array, weights: Array, n_classes: int | None = None
    ) -> Floats:
        """The scores of S predictions on R resamples of the rows.

        Args:
            targets: [N] or [N, W].
            predictions: [S, N] or [S, N, W], one per seed; or class probabilities, [S, N, C].
            weights: [R, N], how often each row is in each resample.
            n_classes: the size of the label space; read from the data if None.

        Returns:
            Scores [S, R]; nan for predictions that are not finite throughout.

        Raises:
            ValueError: if there are no rows, or the arrays disagree about shape or padding.
        """
        return self.scorer(targets, predictions, n_classes)(weights)

    def scorer(self, targets: Array, predictions: Array, n_classes: int | None = None) -> Scorer:
        """`resampled` in two steps, for many sets of weights; takes and raises the same."""
        targets, predictions = np.asarray(targets), np.asarray(predictions)
        self._check(targets, predictions)
        flat = predictions.reshape(len(predictions), -1)
        finite: Array = np.asarray(np.isfinite(flat).all(axis=1))  # [S]
        kept = finite.reshape(-1, *[1] * (predictions.ndim - 1))
        clean = np.where(kept, predictions, 0).astype(predictions.dtype)
        rule = self.rule(targets, clean, n_classes or 0)

        def scores(weights: Floats) -> Floats:
            if weights.shape[-1] != len(targets):
                raise ValueError(f"{weights.shape[-1]} weights for {len(targets)} rows")
            found = rule(weights.astype(np.float64, copy=False))
            return np.where(finite[:, None], found, np.nan)

        return scores

    def _check(self, targets: Array, predictions: Array) -> None:
        columns = int(self.of_probabilities)
        if predictions.ndim != 1 + targets.ndim + columns:
            wanted = "class probabilities [N, C]" if columns else "one prediction per target"
            raise ValueError(f"{self.name} takes {wanted}, got shape {predictions.shape[1:]}")
        if targets.shape != predictions.shape[1 : 1 + targets.ndim] or not len(targets):
            raise ValueError(
                f"{self.name} needs as many predictions as targets, got {predictions.shape[1:]} "
                f"for {targets.shape}"
            )
        wanted_axes = (2,) if self.per_word else (1, 2) if self.multi_label else (1,)
        if targets.ndim not in wanted_axes:
            kind = "a row per sentence" if self.per_word else "one target per row"
            raise ValueError(f"{self.name} takes {kind}, got targets of shape {targets.shape}")
        if self.per_word and ((targets == PADDING) != (predictions == PADDING)).any():
            raise ValueError(f"{self.name} needs sentences of the same words on both sides")


def product(values: Array, weights: Floats) -> Floats:
    """The weighted sums of values [S, N] under weights [R, N]: [S, R]."""
    return np.asarray(values @ weights.T, dtype=np.float64)


def ratio(part: Array, whole: Array) -> Floats:
    """`part` / `whole`, and 0 where `whole` is 0."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
