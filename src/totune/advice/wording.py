"""The sentences of an advice. Bounded scores are told as points (times 100)."""

import math
import re
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from totune.advice.comparing import Comparison
from totune.advice.deciding import Decision
from totune.advice.standings import Entrant, Standing
from totune.metrics import Metric
from totune.statistics import MOST_SEEDS

FEW_SEEDS = 5
TINY_TEST_ROWS = 200

# The question is "to tune or not to tune?"; what each strategy, by its label, says to it.
_ANSWERS = {
    "fine-tuning": "Tune",
    "gradual-unfreezing": "Tune",
    "stack-and-finetune": "Tune",
    "frozen-embeddings": "Tune",
    "adapters": "Tune few parameters",
    "lora": "Tune few parameters",
    "bitfit": "Tune few parameters",
    "feature-extraction": "Do not tune",
}
_LAST_K = re.compile(r"last-\d+")


def headline(decision: Decision, metric: Metric, tolerance: float, alone: bool) -> str:
    """One sentence that answers the question; `alone` if there is one usable strategy."""
    limit = amount(tolerance, metric)
    if decision.verdict == "none":
        return _no_verdict(decision.best.strategy, alone)
    if decision.verdict == "undecided":
        return _undecided(decision, limit, metric)
    choice, best = decision.leaning, decision.best
    answer = _answer(choice.strategy)
    start = f"{answer}: {choice.strategy}" if answer else f"Use {choice.strategy}: it"
    if choice is not best:
        return f"{start} is within {limit} of the best ({best.strategy}) and {_saving(decision)}."
    if not decision.cheaper:
        return f"{start} scores best and is the cheapest."
    return f"{start} scores best, and every cheaper strategy is worse by more than {limit}."


def _answer(strategy: str) -> str:
    if _LAST_K.fullmatch(strategy):
        return "Tune the top layers"
    if strategy.startswith("peft-"):
        return "Tune few parameters"
    return _ANSWERS.get(strategy, "")


def _no_verdict(best: str, alone: bool) -> str:
    if alone:
        return f"No verdict: only {best} has usable runs, so it has no rival."
    return f"Neither: no strategy beats a constant answer, not even the best ({best})."


def _undecided(decision: Decision, limit: str, metric: Metric) -> str:
    choice, best = decision.leaning, decision.best
    state = "leads" if choice is best else f"keeps up with the best ({best.strategy})"
    names = [blocker.strategy for blocker in decision.blockers]
    return (
        f"Undecided: {choice.strategy} {state} so far, but whether the cheaper {_either(names)} "
        f"keeps up within {limit} is open; {what_decides(decision, metric)}."
    )


def what_decides(decision: Decision, metric: Metric) -> str:
    """What would settle the open comparisons: more seeds, more test rows, or neither."""
    if decision.more_seeds is not None:
        seeds = f"{decision.more_seeds} more {_plural(decision.more_seeds, 'seed')} per strategy"
        single = any(math.isnan(blocker.low) for blocker in decision.blockers)
        return f"{seeds} {'would show how far seeds matter' if single else 'should decide'}"
    if decision.test_rows is not None:
        return (
            "more seeds cannot decide it on this test set; that takes at least "
            f"{decision.test_rows:,} test {metric.row}s"
        )
    return f"it is so close to the limit that {MOST_SEEDS} seeds would not decide it"


def reasons(
    winner: Entrant, comparisons: Sequence[Comparison], metric: Metric, tolerance: float
) -> list[str]:
    """Who is best, and what is known of each other strategy, nearest first."""
    best = winner.standing
    spread = (
        f"mean of {best.seeds} seeds, 95% interval {_range(best.low, best.high, metric)}"
        if best.seeds > 1
        else "one seed"
    )
    lines = [
        f"{best.strategy} scores best: {amount(best.mean, metric, 1)} {metric.name} ({spread})."
    ]
    for comparison in sorted(comparisons, key=lambda c: (c.difference, c.strategy)):
        lines.append(_finding(comparison, metric, tolerance))
    return lines


def _finding(comparison: Comparison, metric: Metric, tolerance: float) -> str:
    limit = amount(tolerance, metric)
    gap = f"{amount(comparison.difference, metric)} behind {comparison.best}"
    if math.isnan(comparison.low):
        return (
            f"{comparison.strategy} is open: {gap}, but with one seed on either side how far "
            "seeds matter is unknown."
        )
    gap += f" (simultaneous 95% interval {_range(comparison.low, comparison.high, metric, 2)})"
    return {
        "credibly worse": f"{comparison.strategy} is credibly worse by more than {limit}: {gap}.",
        "as good": f"{comparison.strategy} is as good within {limit}: {gap}.",
        "open": f"{comparison.strategy} is open: {gap}; the limit of {limit} lies inside.",
    }[comparison.verdict]


def costs(choice: Entrant, others: Sequence[Entrant]) -> list[str]:
    """What the choice costs beside each other strategy, cheapest first."""
    ordered = sorted(others, key=lambda entrant: entrant.standing.cost)
    lines = [_cost(choice.standing, other.standing) for other in ordered]
    return [line for line in lines if line]


def _cost(mine: Standing, theirs: Standing) -> str:
    """One sentence, or "" where seconds are not recorded."""
    time = _times(mine.seconds, theirs.seconds, ("faster than", "about as fast as", "slower than"))
    if not time:
        return ""
    seconds = f"{duration(mine.seconds)} against {duration(theirs.seconds)} per run"
    line = f"{mine.strategy} trains {time} {theirs.strategy} ({seconds})"
    bytes_each = mine.storage_bytes, theirs.storage_bytes
    storage = _times(*bytes_each, ("less", "about as much", "more"))
    if storage:
        sizes = f"{size(bytes_each[0])} against {size(bytes_each[1])}"
        line += f" and stores {storage} per task ({sizes})"
    return f"{line}."


def saves_storage(smallest: Entrant, decision: Decision, metric: Metric, tolerance: float) -> str:
    """One sentence on what stores least, for who keeps many tasks on one encoder."""
    mine, theirs = smallest.standing, decision.leaning.standing
    near = f"keeps within {amount(tolerance, metric)} of the best"
    state = "scores best" if smallest is decision.best else near
    time = _times(mine.seconds, theirs.seconds, ("faster", "about as fast", "slower"))
    speed = f"; it trains {time}" if time else ""
    return (
        f"If many tasks share one encoder, look at {smallest.strategy}: it {state} and stores "
        f"{size(mine.storage_bytes)} per task instead of the {size(theirs.storage_bytes)} of "
        f"{theirs.strategy}{speed}."
    )


def _saving(decision: Decision) -> str:
    mine, best = decision.leaning.standing, decision.best.standing
    time = _times(mine.seconds, best.seconds, ("faster", "about as fast", "slower"))
    return f"trains {time}" if time else "costs less"


def _times(mine: float, theirs: float, words: tuple[str, str, str]) -> str:
    """How much less or more one is than the other, in words; "" where one is not known."""
    if not (0 < mine < math.inf and 0 < theirs < math.inf):
        return ""
    ratio = max(mine, theirs) / min(mine, theirs)
    if ratio < 1.05:
        return words[1]
    shown = f"{ratio:,.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
    return f"{shown} times {words[0] if mine < theirs else words[2]}"


def caveats(
    standings: Sequence[Standing],
    entrants: Sequence[Entrant],
    constant: Sequence[str],
    targets: NDArray[Any],
    metric: Metric,
) -> list[str]:
    """What may spoil the advice: lost runs, few seeds, a tiny test set, no better than chance."""
    rows, seeds = len(targets), min(entrant.standing.seeds for entrant in entrants)
    classes = targets.dtype.kind in "iu" and not metric.per_word
    unseen = int((targets < 0).sum()) if classes else 0
    lines = lost(standings)
    if seeds < FEW_SEEDS:
        lines.append(
            f"The fewest usable seeds of a strategy are {seeds}: with fewer than {FEW_SEEDS}, "
            "intervals are wide."
        )
    if rows < TINY_TEST_ROWS:
        lines.append(
            f"The test set is tiny: {rows} {_plural(rows, metric.row)}, so one {metric.row} is "
            f"{100 / rows:.1f}% of it."
        )
    if unseen:
        lines.append(
            f"{unseen} of {rows} test rows have a label that training never saw; no strategy "
            "can get them right."
        )
    return lines + [f"{strategy} does not beat a constant answer." for strategy in constant]


def lost(standings: Sequence[Standing]) -> list[str]:
    """What became of the runs that do not count, and which costs are not known."""
    return [line for standing in standings for line in _lost(standing)]


def _lost(standing: Standing) -> list[str]:
    of = f"of {standing.runs} {_plural(standing.runs, 'run')} of {standing.strategy}"
    why = f" ({standing.trouble.rstrip('.')})" if standing.trouble else ""
    lines = []
    if standing.failed:
        lines.append(f"{standing.failed} {of} failed{why}; the mean leaves them out.")
    if standing.degenerate:
        cause = "" if standing.failed else why
        lines.append(
            f"{standing.degenerate} {of} came out degenerate{cause}; the mean leaves them out, "
            "but it may happen again."
        )
    if standing.unscored:
        lines.append(f"{standing.unscored} {of} left no finite test predictions.")
    if not standing.seeds:
        lines.append(f"{standing.strategy} has no usable run, so nothing is said about it.")
    elif math.isinf(standing.seconds):
        lines.append(f"The costs of {standing.strategy} are not recorded; it counts as dearest.")
    return lines


def amount(value: float, metric: Metric, decimals: int = 2) -> str:
    """A score or difference with its unit: "0.5 points", or "0.0312" for an open scale."""
    text = _number(value, metric, decimals)
    return f"{text} points" if metric.unit == "points" else text


def _number(value: float, metric: Metric, decimals: int) -> str:
    if metric.unit != "points":
        return f"{value:.3g}"
    text = f"{100 * value:.{decimals}f}"
    if decimals > 1:
        text = text.removesuffix("0")
    return "0.0" if float(text) == 0 else text


def _range(low: float, high: float, metric: Metric, decimals: int = 1) -> str:
    return f"{_number(low, metric, decimals)} to {_number(high, metric, decimals)}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them: 0.42 s, 12 s, 3.5 min, 2.1 h."""
    for limit, unit, length in ((60, "s", 1), (3600, "min", 60), (math.inf, "h", 3600)):
        if seconds < limit:
            return f"{seconds / length:.2g} {unit}"
    return "unknown"


def size(count: float) -> str:
    """Bytes in decimal units: 3.1 kB, 91 MB."""
    for limit, unit, length in ((1e3, "B", 1), (1e6, "kB", 1e3), (1e9, "MB", 1e6)):
        if count < limit:
            return f"{count / length:.3g} {unit}"
    return f"{count / 1e9:.3g} GB"


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
