"""A person's own metric: `module:function`, imported when that person names it.

The function takes `y_true` and `y_pred`, two arrays [N], and returns a number. For classes they
hold indices in the order of the label space, so that of two classes 1 is the positive one, and -100
in `y_true` for a label that training never saw; for scores they hold numbers. Larger is better,
unless the function has an attribute `greater_is_better = False`.
"""

import hashlib
import importlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from totune.errors import ConfigError
from totune.metrics.metric import Array, Floats, Metric, Rule, Scorer

RESAMPLES = 200  # each is a call per run; a variance of so many is known to a tenth of itself

Function = Callable[[Array, Array], Any]


def import_metric(name: str) -> Metric:
    """The metric that a name like "my_metrics:cost" stands for.

    Modules of the working directory are found too.

    Raises:
        ConfigError: if the name is not of this form, or the function cannot be imported or called.
    """
    if not re.fullmatch(r"[\w.]+:\w+", name):
        raise ConfigError(
            f"metric {name!r} is not of the form module:function, such as my_metrics:cost for the "
            "function cost in my_metrics.py."
        )
    place, _, attribute = name.partition(":")
    try:
        with _working_directory_importable():
            module = importlib.import_module(place)
    except Exception as error:
        raise ConfigError(
            f"metric {name!r}: the module {place!r} cannot be imported ({type(error).__name__}: "
            f"{error}). It must be installed, or be a file in the working directory."
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ConfigError(f"metric {name!r}: the module {place!r} has no function {attribute!r}.")
    return Metric(
        name,
        _rule(name, function),
        higher_is_better=bool(getattr(function, "greater_is_better", True)),
        unit=f"units of {attribute}",
        lowest=-math.inf,
        resamples=RESAMPLES,
        code=_hash(module),
    )


def _rule(name: str, function: Function) -> Rule:
    def rule(targets: Array, predictions: Array, n_classes: int) -> Scorer:
        whole = [_call(name, function, targets, one) for one in predictions]  # [S]

        def scores(weights: Floats) -> Floats:
            if (weights == 1).all():
                return np.tile(np.array(whole)[:, None], len(weights))
            drawn = [np.repeat(np.arange(len(targets)), row.astype(int)) for row in weights]
            pairs = zip(predictions, whole, strict=True)
            return np.array([[_on(function, targets, p, d, w) for d in drawn] for p, w in pairs])

        return scores

    return rule


def _call(name: str, function: Function, targets: Array, predictions: Array) -> float:
    """The score of all rows.

    Raises:
        ConfigError: if the function fails, or gives no finite number.
    """
    try:
        score = float(function(targets, predictions))
    except Exception as error:
        raise ConfigError(
            f"metric {name!r} failed on {len(targets)} rows ({type(error).__name__}: {error}). It "
            "is called with two arrays, y_true and y_pred, and must return a number."
        ) from error
    if not math.isfinite(score):
        raise ConfigError(
            f"metric {name!r} returned {score} for {len(targets)} rows; it must return a finite "
            "number whatever the predictions are."
        )
    return score


def _on(function: Function, targets: Array, predictions: Array, rows: Array, whole: float) -> float:
    """The score of drawn rows, [D]; that of all rows where these have none (a class is missing)."""
    try:
        score = float(function(targets[rows], predictions[rows]))
    except Exception:
        return whole
    return score if math.isfinite(score) else whole


def _hash(module: Any) -> str:
    """A hash of the module's source: other code is another metric."""
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):  # compiled
        source = str(getattr(module, "__version__", ""))
    return hashlib.sha256(source.encode()).hexdigest()[:16]


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    sys.path.insert(0, "")
    try:
        yield
    finally:
        sys.path.remove("")
