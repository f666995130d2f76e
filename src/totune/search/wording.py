"""What a search tells the person who waits."""

from collections.abc import Mapping
from typing import Any

from totune.metrics import METRICS
from totune.search import outcomes
from totune.search.records import SearchRecord, TrialRecord


def tell_trial(trial: TrialRecord, best: TrialRecord | None, of: int | None, metric: str) -> str:
    """A trial that has ended; the job's title has told which strategy is searched.

    Args:
        trial: which has ended.
        best: of all so far; None if none is complete.
        of: how many there will be; None if that depends on time.
        metric: the dev metric.
    """
    count = f"{trial.number + 1}" if of is None else f"{trial.number + 1}/{of}"
    told = f"trial {count}"
    if trial.state == "failed":
        return f"{told} failed: {trial.error}"
    ended = " (ended early)" if trial.state == "pruned" else ""
    again = "" if trial.same_as is None else f", the same as trial {trial.same_as + 1}"
    so_far = "" if best is None else f"; best {_score(metric, best.score)}"
    return f"{told}: {_score(metric, trial.score)}{ended}{again}{so_far}"


def tell_end(search: SearchRecord) -> str:
    """What the search of a strategy came to."""
    count = len(search.trials)
    told = f"{search.strategy}: {count} trial{'' if count == 1 else 's'} on dev"
    won, first = outcomes.winner(search), outcomes.defaults(search)
    if won is None:
        return f"{told}, none with a score; it runs with its defaults"
    usual = "" if first is None else f"{_score(search.metric, first.score)} with the defaults"
    if won.number == 0:
        return f"{told}; {search.metric} {usual}, which no other options beat"
    best = f"{_score(search.metric, won.score)} with {_options(won.options)}"
    return f"{told}; {search.metric} {', '.join(filter(None, [usual, best]))}"


def _score(metric: str, score: float | None) -> str:
    """In points where the metric has them."""
    if score is None:
        return "no score"
    return f"{100 * score:.1f}" if METRICS[metric].unit == "points" else f"{score:.4g}"


def _options(options: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {value:.3g}" if isinstance(value, float) else f"{name} {value}"
        for name, value in options.items()
    )
