"""The linear model under every trained baseline: logistic regression, or ridge for scores.

Shared by the members of this folder; itself no member.
"""

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from threadpoolctl import threadpool_limits

from totune.errors import DataError
from totune.tasks.base import UNKNOWN, Task
from totune.tasks.regression import Regression

Features: TypeAlias = "sparse.csr_matrix | NDArray[Any]"  # [N, F]

MAX_ITER = 5_000  # raw counts need some hundreds, and stop once the gradient is small
TOLERANCE = 1e-6  # of that gradient; scikit-learn's 1e-4 moves probabilities in their 4th digit
ABSENT = -100.0  # log-probability of a class without a training row


@dataclass(frozen=True)
class LinearModel:
    """A trained linear model.

    Attributes:
        coefficients: [K, U]; K is 1 with two classes (for the second) or a score.
        intercept: [K].
        columns: which of the F features the model reads, [U]: those that training rows hold.
        classes: the class index of each probability; empty for a score.
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
            Log-probabilities [N, C], or scores [N, 1] on the 0..1 scale of the training range.
        """
        values = np.asarray(features[:, self.columns] @ self.coefficients.T) + self.intercept
        if not len(self.classes):
            return values
        if values.shape[1] == 1:
            values = np.hstack([np.zeros_like(values), values])  # [N, 2]
        found = np.full((len(values), self.outputs), ABSENT)
        found[:, self.classes] = log_softmax(values, axis=1)
        return found

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

    Both are strictly convex: the answer depends on no seed.

    Args:
        features: [N, F], sparse or dense. Columns without any entry are left out, which changes
            nothing but memory: their coefficients would be 0.
        targets: [N], as `task.targets` gives them.
        task: what is predicted.
        C: inverse strength of the L2 penalty; ridge's alpha is 1 / (2 C), scikit-learn's relation
            between the two.

    Raises:
        DataError: if the rows are of one class.
    """
    columns = _columns(features)
    seen = features[:, columns]
    # One thread: the solver's vectors are short, and threads that wait for each other on a busy
    # machine make it many times slower.
    with threadpool_limits(1):
        if isinstance(task, Regression):
            model = Ridge(alpha=1 / (2 * C)).fit(seen, unit_scale(targets, task))
            classes = np.empty(0)
        else:
            model = _fit_logistic(seen, targets, task, C)
            classes = model.classes_
    return LinearModel(
        np.atleast_2d(model.coef_).astype(np.float64),
        np.atleast_1d(model.intercept_).astype(np.float64),
        columns,
        classes.astype(np.int64),
        task.outputs,
    )


def _columns(features: Any) -> NDArray[np.int64]:
    """The columns that hold an entry; all of them if the features are dense."""
    if sparse.issparse(features):
        return np.unique(features.indices).astype(np.int64)
    return np.arange(features.shape[1], dtype=np.int64)


def _fit_logistic(features: Features, targets: NDArray[Any], task: Task, C: float) -> Any:
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
        return LogisticRegression(C=C, tol=TOLERANCE, max_iter=MAX_ITER).fit(
            features[known], targets[known]
        )


def unit_scale(targets: NDArray[Any], task: Regression) -> NDArray[np.float64]:
    """Scores on the 0..1 scale that a regression's outputs have."""
    return np.asarray((targets.astype(np.float64) - task.low) / (task.high - task.low))
