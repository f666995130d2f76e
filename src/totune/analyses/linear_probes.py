"""Linear probes: how well a linear model predicts the labels from one block's vectors.

Logistic regression for classes, ridge regression for scores, on standardised features. The strength
of the penalty is chosen by cross-validation inside the training rows. With the same strength
a control is trained on permuted labels (Hewitt and Liang 2019): what the probe scores above it, its
selectivity, comes from the vectors.

Fast enough for every block of several encoders: logistic regression by L-BFGS on float32 features,
warm started from the next stronger penalty, and stopped at a gradient that moves accuracy by a
fraction of its error. On one core a block of 8,551 rows and 384 features takes about a second with
two classes, some with six, and a third of one with scores.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from totune.analyses.inputs.hidden_states import check_varied
from totune.errors import DataError
from totune.metrics import get_metric

if TYPE_CHECKING:
    from totune.linear_model import Fold
    from totune.tasks.base import Task

STRENGTHS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)  # C; ridge's alpha is 1 / (2 C)
RESAMPLES = 1_000

_AT_ONCE = 100  # resamples whose weights are in memory together
_LOW, _HIGH = 2.5, 97.5  # percentiles

Features = NDArray[Any]  # floats
Floats = NDArray[np.float64]


class Probed(NamedTuple):
    """What the probe of one block predicts for the dev rows.

    Attributes:
        strength: C, as cross-validation chose it; infinite without a penalty.
        predictions: of the probe, on the scale of `task.targets`, [N].
        control: of the same probe trained on permuted labels, [N].
    """

    strength: float
    predictions: NDArray[Any]
    control: NDArray[Any]


class Prober:
    """Trains probes on one set of rows and labels.

    Args:
        task: the task that the labels belong to.
        metric: the metric that a strength is chosen by.
        targets: of the training rows, [N].
        folds: number of folds of the cross-validation, stratified where labels are classes.
        seed: seed of the folds.
        penalised: whether there is a penalty; otherwise plain logistic or linear regression.

    Raises:
        DataError: if there are too few rows, or fewer than two labels that occur twice.
    """

    def __init__(
        self,
        task: "Task",
        metric: str,
        targets: NDArray[Any],
        folds: int,
        seed: int,
        penalised: bool = True,
    ) -> None:
        self.task, self.metric, self.targets = task, metric, targets
        self.penalised = penalised
        self.regression = task.name == "regression"
        self.folds = self._draw_folds(folds, seed)

    @property
    def model(self) -> str:
        """What a probe is."""
        if not self.penalised:
            return f"{'linear' if self.regression else 'logistic'} regression without penalty"
        return "ridge regression" if self.regression else "logistic regression"

    def probe(self, train: Features, dev: Features, permuted: NDArray[Any]) -> Probed:
        """Probes one block.

        Args:
            train: vectors of the training rows, [N, H].
            dev: vectors of the rows to predict, [M, H].
            permuted: the labels of the control, [N].
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.preprocessing import StandardScaler
        from threadpoolctl import threadpool_limits

        wide = np.float64 if self.regression else np.float32  # ridge inverts
        scaler = StandardScaler().fit(train)
        train, dev = (scaler.transform(part).astype(wide) for part in (train, dev))
        # One thread: the matrices are small, and threads wait for each other on a busy machine.
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            strength = self._choose(train) if self.penalised else math.inf
            probe, control = (
                self._new(strength).fit(train, labels).predict(dev)
                for labels in (self.targets, permuted)
            )
            return Probed(strength, probe, control)

    def _choose(self, features: Features) -> float:
        """The strength that scores best over the folds; of equals the strongest penalty."""
        sign = get_metric(self.metric).sign
        scores = np.array([self._path(features, fold) for fold in self.folds])  # [folds, strengths]
        return STRENGTHS[int(np.argmax(sign * scores.mean(axis=0)))]

    def _path(self, features: Features, fold: "Fold") -> list[float]:
        """The score on the held-out rows for each strength, the strongest penalty first."""
        rows, held_out = fold
        model, train = self._new(STRENGTHS[0]), features[rows]
        scores = []
        for strength in STRENGTHS:
            model.set_params(**self._penalty(strength))
            predictions = model.fit(train, self.targets[rows]).predict(features[held_out])
            metric, classes = get_metric(self.metric), self.task.outputs
            scores.append(metric(self.targets[held_out], predictions, classes))
        return scores

    def _new(self, strength: float) -> Any:
        from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

        from totune.linear_model import RANKING_MAX_ITER, RANKING_TOLERANCE

        if self.regression and math.isinf(strength):
            return LinearRegression()
        penalty = self._penalty(strength)
        if self.regression:
            return Ridge(**penalty)
        return LogisticRegression(
            **penalty, tol=RANKING_TOLERANCE, max_iter=RANKING_MAX_ITER, warm_start=True
        )

    def _penalty(self, strength: float) -> dict[str, float]:
        from totune.linear_model import ridge_alpha

        return {"alpha": ridge_alpha(strength)} if self.regression else {"C": strength}

    def _draw_folds(self, folds: int, seed: int) -> "list[Fold]":
        from totune.linear_model import draw_folds

        task, targets = self.task, self.targets
        check_varied(targets, task, "train")
        if len(targets) < 2 * folds:
            raise DataError(
                f"train has {len(targets)} rows that can be used, too few for a probe whose "
                f"penalty {folds} folds choose: at least {2 * folds} are needed. Use more rows."
            )
        classes, counts = np.unique(targets, return_counts=True)
        if not self.regression and (counts > 1).sum() < 2:
            rare = repr(task.decode(classes[counts == 1])[0])
            raise DataError(
                f"Only one label of train occurs more than once ({rare} has a single row), so a "
                "probe has nothing to hold out: at least two labels need two rows each. Use more "
                "rows."
            )
        return draw_folds(task, targets, folds, seed)


class ProbeScorer(NamedTuple):
    """Scores the predictions of probes for one set of rows.

    Attributes:
        task: the task that is predicted.
        metric: name of the metric.
        targets: of the rows, [N].
        permuted: what the control of each block is scored against, [L + 1, N].
    """

    task: "Task"
    metric: str
    targets: NDArray[Any]
    permuted: NDArray[Any]

    def scores(self, probes: Sequence[Probed]) -> tuple[Floats, Floats]:
        """Of the probes of every block, and of their controls: [L + 1] each."""
        once = np.ones((1, len(self.targets)))
        controls = [self._of_control(at, probe, once)[0] for at, probe in enumerate(probes)]
        return self._of_probes(probes, once)[:, 0], np.array(controls)

    def best_block(self, runs: Sequence[Sequence[Probed]], seed: int) -> dict[str, Any]:
        """The block that scores best on average over the seeds of one subject.

        Which others might be best is decided by a bootstrap over the rows. All seeds and blocks are
        scored on the same resamples, so differences are paired; the seeds are taken as they are.

        Args:
            runs: a probe per block, of each seed.
            seed: seed of the resamples.

        Returns:
            `block`, 0..L; `score`, its mean over seeds; `low` and `high`, its 95% interval over
            resampled rows; `ties`, other blocks whose difference from it has an interval that
            reaches 0; `control`, the best control of any block, its mean over seeds; `selective`,
            whether the 95% interval of the lead over that control lies above 0. Best is compared
            with best, since the best of many blocks is lucky even where none holds anything.
        """
        sign = get_metric(self.metric).sign
        scored = [self.scores(probes) for probes in runs]
        real, control = (np.mean(both, axis=0) for both in zip(*scored, strict=True))  # [L + 1]
        best, luckiest = int(np.argmax(sign * real)), int(np.argmax(sign * control))
        drawn = [self._means(runs, luckiest, weights) for weights in self._resamples(seed)]
        reals, lucky = (np.concatenate(both, axis=-1) for both in zip(*drawn, strict=True))
        leads = np.percentile(sign * (reals[best] - reals), _LOW, axis=1)  # [L + 1]
        low, high = np.percentile(reals[best], (_LOW, _HIGH))
        return {
            "block": best,
            "score": float(real[best]),
            "low": float(low),
            "high": float(high),
            "ties": [at for at in range(len(real)) if at != best and leads[at] <= 0],
            "control": float(control[luckiest]),
            "selective": bool(np.percentile(sign * (reals[best] - lucky), _LOW) > 0),
        }

    def _of_probes(self, probes: Sequence[Probed], weights: Floats) -> Floats:
        """Scores of every block under row weights [R, N]: [L + 1, R]."""
        predictions = np.stack([probe.predictions for probe in probes])
        metric, classes = get_metric(self.metric), self.task.outputs
        return metric.resampled(self.targets, predictions, weights, classes)

    def _of_control(self, block: int, probe: Probed, weights: Floats) -> Floats:
        """Scores of one block's control under row weights [R, N]: [R]."""
        metric, classes = get_metric(self.metric), self.task.outputs
        found = metric.resampled(self.permuted[block], probe.control[None], weights, classes)
        return np.asarray(found[0])

    def _means(
        self, runs: Sequence[Sequence[Probed]], luckiest: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Means over seeds: of every block's probe [L + 1, R], of one block's control [R]."""
        real = np.mean([self._of_probes(probes, weights) for probes in runs], axis=0)
        lucky = [self._of_control(luckiest, probes[luckiest], weights) for probes in runs]
        return real, np.mean(lucky, axis=0)

    def _resamples(self, seed: int) -> Iterator[Floats]:
        """How often each row is drawn, [R, N] at a time."""
        generator, rows = np.random.default_rng(seed), len(self.targets)
        even = np.full(rows, 1 / rows)
        for _ in range(RESAMPLES // _AT_ONCE):
            yield generator.multinomial(rows, even, _AT_ONCE).astype(np.float64)
