"""Scores of predictions: arrays in, floats out."""

from totune.errors import ConfigError
from totune.metrics import classes, label_sets, numeric, spans, words
from totune.metrics.metric import PADDING, UNSEEN, Metric, Scorer
from totune.metrics.spans import SpanScore, span_scores
from totune.registry import did_you_mean

__all__ = [
    "METRICS",
    "PADDING",
    "UNSEEN",
    "Metric",
    "Scorer",
    "SpanScore",
    "get_metric",
    "is_higher_better",
    "span_scores",
]

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric("accuracy", classes.accuracy),
        Metric("f1", classes.f1),
        Metric("matthews", classes.matthews, lowest=-1.0),
        Metric("pearson", numeric.pearson, lowest=-1.0),
        Metric("spearman", numeric.spearman, lowest=-1.0),
        Metric("mse", numeric.mse, higher_is_better=False, unit="squared label units"),
        Metric("span-f1", spans.f1, per_word=True),
        Metric("span-precision", spans.precision, per_word=True),
        Metric("span-recall", spans.recall, per_word=True),
        Metric("token-accuracy", words.accuracy, per_word=True),
        Metric("token-f1", words.f1, per_word=True),
        Metric("micro-f1", label_sets.micro_f1, multi_label=True),
        Metric("macro-f1", label_sets.macro_f1, multi_label=True),
        Metric("exact-match", label_sets.exact_match, multi_label=True),
    )
}


def get_metric(name: str) -> Metric:
    """The metric called `name`; raises `ConfigError` with the nearest name if there is none."""
    if name not in METRICS:
        raise ConfigError(f"There is no metric called {name!r}. {did_you_mean(name, METRICS)}")
    return METRICS[name]


def is_higher_better(name: str) -> bool:
    """Whether a higher score is better; so it is of scores that name no metric of ours."""
    return name not in METRICS or METRICS[name].higher_is_better
