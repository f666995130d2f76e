"""The sentences of an advice, for someone who labels texts: "87 of 100 right" for an accuracy.

Other bounded scores, and differences, are given in points (times 100).
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from totune.advice.comparing import Comparison
from totune.advice.deciding import Decision
from totune.advice.standings import Entrant, Standing
from totune.metrics import Metric

FEW_SEEDS = 5
TINY_TEST_ROWS = 200
MOST_REMEDIES = 2  # in the headline

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
_RIGHT = {"accuracy": "right", "token-accuracy": "words right"}
_LAST_K = re.compile(r"last-\d+")


@dataclass(frozen=True)
class Basis:
    """What all sentences of an advice refer to.

    Attributes:
        metric: the study's.
        tolerance: how much worse than the best is still good enough.
        constant: score of the best constant answer.
        undertrained: by strategy that is possibly under-trained, the setting that trains it longer.
    """

    metric: Metric
    tolerance: float
    constant: float
    undertrained: Mapping[str, str]

    @property
    def limit(self) -> str:
        """The tolerance with its unit."""
        return amount(self.tolerance, self.metric)


def headline(decision: Decision, basis: Basis) -> str:
    """What to use, how good it is, and what would settle what is not certain."""
    choice, best, limit = decision.provisional, decision.best, basis.limit
    if decision.verdict == "none" or choice is None:
        return _no_verdict(best, alone=len(decision.entrants) == 1, basis=basis)
    right = score(choice.standing.mean, basis.metric)
    if decision.verdict == "undecided":
        told = [f"Use {choice.strategy} for now ({right}); not yet certain."]
        if decision.blockers:
            told.append(_blocked(decision, basis))
        if decision.undertrained:
            told.append(_train_longer(decision.undertrained, basis))
        return " ".join(told)
    answer = _answer(choice.strategy)
    start = f"{answer}: {choice.strategy}" if answer else f"Use {choice.strategy}: it"
    if choice is not best:
        near = f"is within {limit} of the best ({best.strategy})"
        return f"{start} {near} and {_saving(choice, best)} ({right})."
    below = sum(each.standing.cost < best.standing.cost for each in decision.entrants)
    if not below:
        return f"{start} scores best ({right}) and is the cheapest."
    if not decision.cheaper:
        return f"{start} scores best ({right}), and nothing cheaper beats a constant answer."
    or_constant = " or does not beat a constant answer" if below > decision.cheaper else ""
    worse = f"every cheaper strategy is worse by more than {limit}{or_constant}"
    return f"{start} scores best ({right}), and {worse}."


def _answer(strategy: str) -> str:
    if _LAST_K.fullmatch(strategy):
        return "Tune the top layers"
    if strategy.startswith("peft-"):
        return "Tune few parameters"
    return _ANSWERS.get(strategy, "")


def _no_verdict(best: Entrant, alone: bool, basis: Basis) -> str:
    if alone:
        told = f"No verdict: only {best.strategy} has usable runs, so it has no rival."
    else:
        constant = score(basis.constant, basis.metric)
        told = f"Neither: nothing beats a constant answer (the same for every text: {constant})."
    if basis.undertrained:
        told += f" {_train_longer(sorted(basis.undertrained), basis)}"
    return told


def _blocked(decision: Decision, basis: Basis) -> str:
    """Which cheaper strategies may keep up, and what would settle it."""
    names = [blocker.strategy for blocker in decision.blockers]
    told = f"The cheaper {_listed(names, 'or')} may do as well (within {basis.limit})"
    if decision.more_seeds is not None:
        seeds = min(entrant.standing.seeds for entrant in decision.entrants) + decision.more_seeds
        single = any(math.isnan(blocker.low) for blocker in decision.blockers)
        effect = "would show how much seeds matter" if single else "should settle it"
        more = f"{decision.more_seeds} more {_plural(decision.more_seeds, 'seed')} per strategy"
        return f"{told}: {more} {effect} (--seeds {seeds})."
    if decision.test_rows is not None:
        rows = f"{decision.test_rows:,} test {basis.metric.row}s"
        now = f"{decision.best.predictions.shape[1]:,}"
        return f"{told}: more seeds would not settle it, about {rows} might (now {now})."
    rows = f"test {basis.metric.row}s"
    return f"{told}: neither more seeds nor more {rows} would soon settle it, so choose by cost."


def _train_longer(names: Sequence[str], basis: Basis) -> str:
    """What to do about strategies that are possibly under-trained; few are named with the remedy.

    The remedy of each other one stands in its own sentence.
    """
    are, each = ("is", "it") if len(names) == 1 else ("are", "them")
    told = f"{_listed(names, 'and')} {are} possibly under-trained: train {each} longer"
    if len(names) > MOST_REMEDIES:
        return f"{told} (settings below)."
    return f"{told} ({' '.join(_remedy(name, basis) for name in names)})."


def _remedy(strategy: str, basis: Basis) -> str:
    return f"--set {basis.undertrained[strategy]}"


def reasons(best: Entrant, comparisons: Sequence[Comparison], basis: Basis) -> list[str]:
    """Who is best, and what is known of each other strategy, nearest first."""
    found, metric = best.standing, basis.metric
    spread = f"mean of {found.seeds} seeds, 95% interval {_range(found.low, found.high, metric)}"
    if found.seeds == 1:
        spread = "one seed"
    elif found.fixed:
        spread = f"the same with each of {found.seeds} seeds"
    lines = [f"{best.strategy} scores best: {score(found.mean, metric, 1)} ({spread})."]
    for comparison in sorted(comparisons, key=lambda c: (c.difference, c.strategy)):
        lines.append(_finding(comparison, basis))
    return lines


def _finding(comparison: Comparison, basis: Basis) -> str:
    name, limit, metric = comparison.strategy, basis.limit, basis.metric
    gap = f"{amount(comparison.difference, metric)} behind {comparison.best}"
    longer = ""
    if name in basis.undertrained:
        longer = f" It is possibly under-trained: train it longer ({_remedy(name, basis)})."
    if math.isnan(comparison.low):
        return f"{name} is open: {gap}, but one seed does not show how much seeds matter.{longer}"
    gap += f" (95% interval {_range(comparison.low, comparison.high, metric, 2)})"
    return {
        "credibly worse": f"{name} is credibly worse by more than {limit}: {gap}.",
        "as good": f"{name} is as good within {limit}: {gap}.{longer}",
        "open": f"{name} may or may not be worse by more than {limit}: {gap}.{longer}",
        "worse as trained": f"{name} is worse as trained here: {gap}.{longer}",
    }[comparison.verdict]


def costs(
    decision: Decision, others: Sequence[Entrant], smallest: Entrant | None, basis: Basis
) -> list[str]:
    """What the choice costs beside each other strategy, cheapest first."""
    choice = decision.provisional
    if choice is None:
        return []
    ordered = sorted(others, key=lambda entrant: entrant.standing.cost)
    lines = [_cost(choice.standing, each.standing) for each in ordered if each is not choice]
    if smallest is not None:
        lines.insert(0, _saves_storage(smallest, choice, decision.best, basis))
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


def _saves_storage(smallest: Entrant, choice: Entrant, best: Entrant, basis: Basis) -> str:
    """One sentence on what stores least, for who keeps many tasks on one encoder."""
    mine, theirs = smallest.standing, choice.standing
    state = "scores best" if smallest is best else f"keeps within {basis.limit} of the best"
    time = _times(mine.seconds, theirs.seconds, ("faster", "about as fast", "slower"))
    speed = f"; it trains {time}" if time else ""
    return (
        f"If many tasks share one encoder, look at {smallest.strategy}: it {state} and stores "
        f"{size(mine.storage_bytes)} per task instead of the {size(theirs.storage_bytes)} of "
        f"{theirs.strategy}{speed}."
    )


def _saving(choice: Entrant, best: Entrant) -> str:
    mine, theirs = choice.standing.seconds, best.standing.seconds
    time = _times(mine, theirs, ("faster", "about as fast", "slower"))
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
    decision: Decision,
    constant: Collection[str],
    targets: NDArray[Any],
    basis: Basis,
) -> list[str]:
    """What may spoil the advice: lost runs, few seeds, a tiny test set, no better than chance."""
    metric = basis.metric
    rows, seeds = len(targets), min(entrant.standing.seeds for entrant in decision.entrants)
    classes = targets.dtype.kind in "iu" and not metric.per_word
    unseen = int((targets < 0).sum()) if classes else 0
    lines = lost(standings)
    if seeds < FEW_SEEDS:
        lines.append(
            f"The fewest usable seeds of a strategy are {seeds}: with fewer than {FEW_SEEDS}, how "
            "much seeds matter is not well known."
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
    choice = "" if decision.provisional is None else decision.provisional.strategy
    if decision.verdict != "none" and choice in basis.undertrained:
        lines.append(_train_longer([choice], basis))
    baselines = {
        e.strategy for e in decision.entrants if e.is_constant and not e.standing.degenerate
    }
    bad = sorted(set(constant) - baselines)
    if bad:
        does = "does" if len(bad) == 1 else "do"
        lines.append(f"{_listed(bad, 'and')} {does} not beat a constant answer.")
    return lines


def lost(standings: Sequence[Standing]) -> list[str]:
    """Which runs do not count, which give one answer, and which costs are not known."""
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
            f"{standing.degenerate} {of} came out degenerate{cause}; the mean counts them in."
        )
    if standing.unscored:
        lines.append(f"{standing.unscored} {of} left no finite test predictions.")
    if not standing.seeds:
        lines.append(f"{standing.strategy} has no usable run, so nothing is said about it.")
    elif math.isinf(standing.seconds):
        lines.append(f"The costs of {standing.strategy} are not recorded; it counts as dearest.")
    return lines


def score(value: float, metric: Metric, decimals: int = 0) -> str:
    """A mean score in a sentence: "87 of 100 right", or "62.5 points span-f1"."""
    if metric.name not in _RIGHT:
        return f"{amount(value, metric, 1)} {metric.name}"
    text = f"{100 * value:.{decimals}f}"
    if value < 1 and float(text) == 100:
        text = f"{100 * value:.1f}"
    return f"{text} of 100 {_RIGHT[metric.name]}"


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


def _listed(names: Sequence[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
