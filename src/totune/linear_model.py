"""Linear models on fixed features: logistic regression, ridge for scores, and their penalty.

Where rows have several labels, logistic regression is one-vs-rest: a model for each label.

Under the trained baselines, the solved phases of a plan, and the probes of analyses. scikit-learn,
which takes a second to load, is imported where something is fitted, before the number of threads is
set: that holds for libraries that are loaded.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax
from threadpoolctl import threadpool_limits

from totune.errors import DataError
from totune.tasks.base import UNKNOWN, Task
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression

Features: TypeAlias = "sparse.csr_matrix | NDArray[Any]"  # [N, F]
Fold: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]  # rows to train on, rows held out

STRENGTHS = (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)  # C for standardised features, rising
USUAL_STRENGTH = 1e-2  # where rows are too few to choose: what 100 to 600 rows mostly choose
MAX_ITER = 5_000  # raw counts need some hundreds, and stop once the gradient is small
TOLERANCE = 1e-6  # of that gradient; scikit-learn's 1e-4 moves probabilities in their 4th digit
ABSENT = -100.0  # log-probability of a class without a training row

# Enough to rank penalties that lie a factor of ten apart; the chosen one is fitted to TOLERANCE.
RANKING_TOLERANCE, RANKING_MAX_ITER = 1e-3, 300


@dataclass(frozen=True)
class LinearModel:
    """A trained linear model.

    Attributes:
        coefficients: [K, U]; K is 1 with two classes (for the second) or a score, C with labels of
            which a row can have several.
        intercept: [K].
        columns: which of the F features the model reads, [U]: those that training rows hold.
        classes: the class index of each probability; empty for a score and for several labels.
        outputs: C, how many numbers the task wants per row.
    """

    coefficients: NDArray[np.float64]
    intercept: NDArray[np.float64]
    columns: NDArray[np.int64]
    classes: NDArray[np.int64]
    outputs: int

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        return int(self.coefficients.size + self.intercept.size)

    def predict(self, features: Features) -> NDArray[np.float64]:
        """Outputs of features [N, F].

        Returns:
            Log-probabilities [N, C], log-odds [N, C] of labels of which a row can have several, or
            scores [N, 1] on the 0..1 scale of the training range.
        """
        values = np.asarray(features[:, self.columns] @ self.coefficients.T) + self.intercept
        if not len(self.classes):
            return values
        if values.shape[1] == 1:
            values = np.hstack([np.zeros_like(values), values])  # [N, 2]
        found = np.full((len(values), self.outputs), ABSENT)
        found[:, self.classes] = log_softmax(values, axis=1)
        return found

    def layer(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The model as a linear layer with C outputs: weight [C, U] and bias [C].

        A softmax of two classes gets half of the coefficients for each, with opposite signs. A
        class without a training row gets a bias of `ABSENT` and no weight.
        """
        weight, bias = self.coefficients, self.intercept
        if not len(self.classes):
            return weight, bias
        if len(weight) == 1:
            weight, bias = np.vstack([-weight, weight]) / 2, np.hstack([-bias, bias]) / 2
        whole = np.zeros((self.outputs, weight.shape[1])), np.full(self.outputs, ABSENT)
        whole[0][self.classes], whole[1][self.classes] = weight, bias
        return whole

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The model as named arrays; `from_arrays` reads them."""
        return {
            "coefficients": self.coefficients,
            "intercept": self.intercept,
            "columns": self.columns,
            "classes": self.classes,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], task: Task) -> "LinearModel":
        return cls(
            arrays["coefficients"],
            arrays["intercept"],
            arrays["columns"],
            arrays["classes"],
            task.outputs,
        )


def fit_linear(features: Features, targets: NDArray[Any], task: Task, C: float) -> LinearModel:
    """Trains logistic regression on classes, ridge regression on scores.

    Both are strictly convex: the answer depends on no seed. Rows count as `task.row_weights` says,
    which for `class_weight=balanced` is scikit-learn's option of that name.

    Args:
        features: [N, F], sparse or dense. Columns without any entry are left out, which changes
            nothing but memory: their coefficients would be 0.
        targets: [N] or [N, C + 1], as `task.targets` gives them.
        task: what is predicted.
        C: inverse strength of the L2 penalty; ridge's alpha is 1 / (2 C), scikit-learn's relation
            between the two.

    Raises:
        DataError: if the rows are of one class.
    """
    from sklearn.linear_model import Ridge

    columns = _columns(features)
    seen = features[:, columns]
    # One thread: the solver's vectors are short, and threads that wait for each other on a busy
    # machine make it many times slower.
    with threadpool_limits(1):
        if isinstance(task, Regression):
            model = Ridge(alpha=ridge_alpha(C)).fit(seen, unit_scale(targets, task))
        elif isinstance(task, MultiLabel):
            return _fit_one_vs_rest(seen, task.flat(targets), columns, C)
        else:
            model = _fit_logistic(seen, targets, task, C)
    return _linear_model(model, columns, task)


def _linear_model(model: Any, columns: NDArray[np.int64], task: Task) -> LinearModel:
    """What scikit-learn has fitted."""
    return LinearModel(
        np.atleast_2d(model.coef_).astype(np.float64),
        np.atleast_1d(model.intercept_).astype(np.float64),
        columns,
        np.asarray(getattr(model, "classes_", ()), dtype=np.int64),
        task.outputs,
    )


def ridge_alpha(C: float) -> float:
    """Ridge's alpha for the inverse strength C: 1 / (2 C), scikit-learn's relation."""
    return 1 / (2 * C)


def _columns(features: Any) -> NDArray[np.int64]:
    """The columns that hold an entry; all of them if the features are dense."""
    if sparse.issparse(features):
        return np.unique(features.indices).astype(np.int64)
    return np.arange(features.shape[1], dtype=np.int64)


def _fit_logistic(features: Features, targets: NDArray[Any], task: Task, C: float) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    known = targets != UNKNOWN
    classes = np.unique(targets[known])
    if len(classes) < 2:
        labels = ", ".join(repr(label) for label in task.decode(classes)) or "none"
        raise DataError(
            f"Logistic regression needs rows of at least two labels to learn from; "
            f"the {len(targets):,} training rows have {labels}."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, tol=TOLERANCE, max_iter=MAX_ITER)
        return model.fit(features[known], targets[known], task.row_weights(targets[known]))


def _fit_one_vs_rest(
    features: Features,
    labels: NDArray[Any],
    columns: NDArray[np.int64],
    C: float,
    tolerance: float = TOLERANCE,
    max_iter: int = MAX_ITER,
) -> LinearModel:
    """Logistic regression for each of the labels [N, C].

    A label that all rows have, or none, gets log-odds of +-`ABSENT` and no weight.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    coefficients = np.zeros((labels.shape[1], features.shape[1]))
    intercept = np.where(labels.mean(axis=0) > 0, -ABSENT, ABSENT)
    contrast = np.flatnonzero(labels.min(axis=0) < labels.max(axis=0))
    model = LogisticRegression(C=C, tol=tolerance, max_iter=max_iter)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for label in contrast:
            model.fit(features, labels[:, label])
            coefficients[label], intercept[label] = model.coef_[0], model.intercept_[0]
    return LinearModel(coefficients, intercept, columns, np.empty(0, np.int64), labels.shape[1])


def unit_scale(targets: NDArray[Any], task: Regression) -> NDArray[np.float64]:
    """Scores on the 0..1 scale that a regression's outputs have."""
    return np.asarray((targets.astype(np.float64) - task.low) / (task.high - task.low))


def draw_folds(task: Task, targets: NDArray[Any], count: int, seed: int) -> list[Fold]:
    """Folds of a cross-validation, stratified where the task has strata.

    Args:
        task: what is predicted.
        targets: [N] or [N, C + 1], as `task.targets` gives them, all known.
        count: how many folds; fewer where no class has so many rows.
        seed: what the folds are drawn from.

    Returns:
        Folds whose rows to train on have at least two labels; none where there are too few rows.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    strata = task.strata(targets)
    if strata is None:
        count = min(count, len(targets))
        splitter: Any = KFold
    else:
        count = min(count, int(np.unique(strata, return_counts=True)[1].max(initial=0)))
        splitter = StratifiedKFold
    if count < 2:
        return []
    with warnings.catch_warnings():  # a class of fewer rows than folds is missing from some
        warnings.simplefilter("ignore", UserWarning)
        drawn = splitter(count, shuffle=True, random_state=seed)
        folds = list(drawn.split(np.zeros(len(targets)), strata))
    return [fold for fold in folds if len(np.unique(targets[fold[0]])) > 1]


def choose_strength(
    features: NDArray[Any], targets: NDArray[Any], task: Task, folds: Sequence[Fold]
) -> float:
    """The C of `STRENGTHS` with the lowest loss on held-out rows.

    The loss (log loss, squared error) says more than the metric where rows are few: it counts how
    sure a prediction is. Logistic regression goes from the strongest penalty to weaker ones, starts
    from the solution before, and stops once the loss rises.

    Args:
        features: [N, F], dense and standardised.
        targets: [N] or [N, C + 1], as `task.targets` gives them, all known.
        task: what is predicted.
        folds: from `draw_folds`; where there are none the answer is `USUAL_STRENGTH`.
    """
    if not folds:
        return USUAL_STRENGTH
    with threadpool_limits(1):  # as in `fit_linear`
        if isinstance(task, Regression):
            losses = _ridge_losses(features, unit_scale(targets, task), folds).tolist()
        elif isinstance(task, MultiLabel):
            losses = _one_vs_rest_losses(features.astype(np.float32), task.flat(targets), folds)
        else:
            losses = _logistic_losses(features.astype(np.float32), targets, task, folds)
    return STRENGTHS[int(np.argmin(losses))]


def _ridge_losses(
    features: NDArray[Any], scores: NDArray[np.float64], folds: Sequence[Fold]
) -> NDArray[np.float64]:
    """Squared errors on held-out rows, summed, for each strength."""
    from sklearn.linear_model import Ridge

    alphas = [ridge_alpha(strength) for strength in STRENGTHS]
    losses = np.zeros(len(alphas))
    for rows, held_out in folds:
        copies = np.repeat(
            scores[rows, None], len(alphas), axis=1
        )  # one per alpha: one Gram matrix
        found = Ridge(alpha=alphas).fit(features[rows], copies).predict(features[held_out])
        losses += ((found - scores[held_out, None]) ** 2).sum(axis=0)
    return losses


def _logistic_losses(
    features: NDArray[np.float32], targets: NDArray[np.int64], task: Task, folds: Sequence[Fold]
) -> list[float]:
    """Log loss on held-out rows, weighted and summed, for each strength until it rises."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    columns, weights = np.arange(features.shape[1]), task.row_weights(targets)
    models = [
        LogisticRegression(tol=RANKING_TOLERANCE, max_iter=RANKING_MAX_ITER, warm_start=True)
        for _ in folds
    ]
    losses: list[float] = []
    for strength in STRENGTHS:
        loss = 0.0
        for model, (rows, held_out) in zip(models, folds, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                own = None if weights is None else weights[rows]
                model.set_params(C=strength).fit(features[rows], targets[rows], own)
            found = _linear_model(model, columns, task).predict(features[held_out])
            logs = found[np.arange(len(held_out)), targets[held_out]]
            loss -= float((logs if weights is None else logs * weights[held_out]).sum())
        losses.append(loss)
        if len(losses) > 1 and loss > losses[-2]:
            break
    return losses


def _one_vs_rest_losses(
    features: NDArray[np.float32], labels: NDArray[Any], folds: Sequence[Fold]
) -> list[float]:
    """Log loss of all labels [N, C] on held-out rows, summed, for each strength until it rises."""
    columns = np.arange(features.shape[1])
    limits = RANKING_TOLERANCE, RANKING_MAX_ITER
    losses: list[float] = []
    for strength in STRENGTHS:
        loss = 0.0
        for rows, held_out in folds:
            model = _fit_one_vs_rest(features[rows], labels[rows], columns, strength, *limits)
            odds = model.predict(features[held_out])  # log-odds [N, C]
            loss += float((np.logaddexp(0, odds) - labels[held_out] * odds).sum())
        losses.append(loss)
        if len(losses) > 1 and loss > losses[-2]:
            break
    return losses
