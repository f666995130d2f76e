"""Scores of predictions: arrays in, floats out."""

from totune.errors import ConfigError
from totune.metrics import classes, label_sets, numeric, probabilities, spans, words
from totune.metrics.functions import import_metric
from totune.metrics.metric import PADDING, UNSEEN, Metric, Scorer
from totune.metrics.spans import SpanScore, span_scores
from totune.metrics.thresholds import USUAL_THRESHOLD, best_threshold
from totune.registry import did_you_mean

__all__ = [
    "METRICS",
    "PADDING",
    "UNSEEN",
    "USUAL_THRESHOLD",
    "Metric",
    "Scorer",
    "SpanScore",
    "best_threshold",
    "get_metric",
    "is_higher_better",
    "load_metric",
    "span_scores",
]

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", classes.accuracy),
        Metric("f1", classes.f1),
        Metric("matthews", classes.matthews, lowest=-1.0),
        Metric(
            "balanced-accuracy",
            classes.balanced_accuracy,
            meaning="the mean over the classes of the share of their rows that is found",
        ),
        Metric(
            "macro-f1",
            label_sets.macro_f1,
            multi_label=True,
            meaning="the mean of every class's own F1",
        ),
        Metric(
            "micro-f1",
            label_sets.micro_f1,
            multi_label=True,
            meaning="F1 of all decisions together, which is accuracy where every row has one class",
        ),
        Metric(
            "weighted-f1",
            classes.weighted_f1,
            meaning="the mean of every class's own F1, by its share of the rows",
        ),
        Metric(
            "roc-auc",
            probabilities.roc_auc,
            of_probabilities=True,
            meaning="how often a row of the class gets a higher probability than another row "
            "(of several classes the mean)",
        ),
        Metric(
            "pr-auc",
            probabilities.pr_auc,
            of_probabilities=True,
            meaning="average precision, the area under precision over recall (of several classes "
            "the mean)",
        ),
        Metric(
            "log-loss",
            probabilities.log_loss,
            higher_is_better=False,
            unit="nats",
            of_probabilities=True,
            meaning="the mean negative logarithm of the right class's probability",
        ),
        Metric(
            "calibration-error",
            probabilities.calibration_error,
            higher_is_better=False,
            of_probabilities=True,
            meaning=f"how far the share of right answers is from their probability, in "
            f"{probabilities.BINS} bins of that",
        ),
        Metric("pearson", numeric.pearson, lowest=-1.0),
        Metric("spearman", numeric.spearman, lowest=-1.0),
        Metric("mse", numeric.mse, higher_is_better=False, unit="squared label units"),
        Metric("span-f1", spans.f1, per_word=True),
        Metric("span-precision", spans.precision, per_word=True),
        Metric("span-recall", spans.recall, per_word=True),
        Metric("token-accuracy", words.accuracy, per_word=True),
        Metric("token-f1", words.f1, per_word=True),
        Metric("exact-match", label_sets.exact_match, multi_label=True),
    )
}


def load_metric(name: str) -> Metric:
    """The metric that a person names: one of ours, or a function of theirs, which is imported.

    Only what a person has named in this process is imported, never what a folder names.

    Raises:
        ConfigError: if there is no such metric, or the function cannot be imported.
    """
    if name not in METRICS and ":" in name:
        METRICS[name] = import_metric(name)
    return get_metric(name)


def get_metric(name: str) -> Metric:
    """The metric called `name`.

    Raises:
        ConfigError: with the nearest name if there is none; if it is a function that nobody has
            named in this process.
    """
    if name not in METRICS and ":" in name:
        raise ConfigError(
            f"The metric {name!r} is a function that this folder names and does not hold. To run "
            f"its code, name it yourself: `metric={name!r}`, or call totune.metrics.load_metric."
        )
    if name not in METRICS:
        raise ConfigError(f"There is no metric called {name!r}. {did_you_mean(name, METRICS)}")
    return METRICS[name]


def is_higher_better(name: str) -> bool:
    """Whether a higher score is better; so it is of scores that name no metric of ours."""
    return name not in METRICS or METRICS[name].higher_is_better
