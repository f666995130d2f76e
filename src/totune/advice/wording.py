"""The sentences of an advice, for people who label texts: "87 of 100 right" for an accuracy.

Other bounded scores, and differences, are given in points (times 100).
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from totune.advice.compare import Comparison
from totune.advice.decide import Decision
from totune.advice.summary import StrategySummary
from totune.metrics import Metric
from totune.text import format_bytes, format_duration, plural

FEW_SEEDS = 5
TINY_TEST_ROWS = 200
MOST_REMEDIES = 2  # in the headline

# The answer that each strategy, by its label, is to the question "to tune or not to tune?".
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
        metric: the study's metric.
        tolerance: how much worse than the best is still good enough.
        constant: score of the best constant answer.
        undertrained: by strategy that is possibly under-trained, the option that trains it longer.
        folds: of a cross-validation, whose repetitions seeds are; 1 of one split.
    """

    metric: Metric
    tolerance: float
    constant: float
    undertrained: Mapping[str, str]
    folds: int = 1

    def seeds(self, count: int) -> str:
        """What is repeated, for so many of them."""
        return plural(count, "seed" if self.folds == 1 else "repetition")

    @property
    def limit(self) -> str:
        """The tolerance with its unit."""
        return amount(self.tolerance, self.metric)


def headline(decision: Decision, basis: Basis) -> str:
    """Which strategy to use, how good it is, and what would settle an open case."""
    choice, best, limit = decision.provisional, decision.best, basis.limit
    if decision.verdict == "none" or choice is None:
        text = _no_verdict(best, alone=len(decision.strategies) == 1, basis=basis)
        if choice is not None and choice.is_constant:
            text += f" {choice.strategy} is kept: its probabilities may still rank texts."
        return text
    right = score(choice.score.mean, basis.metric)
    if decision.verdict == "undecided":
        start = f"Use {choice.strategy} for now ({right}); not yet certain."
        return " ".join([start, *doubts(decision, basis)])
    answer = _answer(choice.strategy)
    start = f"{answer}: {choice.strategy}" if answer else f"Use {choice.strategy}: it"
    if choice is not best:
        near = f"is within {limit} of the best ({best.strategy})"
        return f"{start} {near} and {_saving(choice, best)} ({right})."
    below = sum(each.cost_order < best.cost_order for each in decision.strategies)
    if not below:
        return f"{start} scores best ({right}) and is the cheapest."
    if not decision.cheaper:
        return f"{start} scores best ({right}), and nothing cheaper beats a constant answer."
    or_constant = " or does not beat a constant answer" if below > decision.cheaper else ""
    worse = f"every cheaper strategy is worse by more than {limit}{or_constant}"
    return f"{start} scores best ({right}), and {worse}."


def doubts(decision: Decision, basis: Basis) -> list[str]:
    """What keeps an undecided study open, and what would settle it."""
    if decision.verdict != "undecided":
        return []
    sentences = [_blocked(decision, basis)] if decision.blockers else []
    if decision.undertrained:
        sentences.append(_train_longer(decision.undertrained, basis))
    return sentences


def _answer(strategy: str) -> str:
    if _LAST_K.fullmatch(strategy):
        return "Tune the top layers"
    if strategy.startswith("peft-"):
        return "Tune few parameters"
    return _ANSWERS.get(strategy, "")


def _no_verdict(best: StrategySummary, alone: bool, basis: Basis) -> str:
    if alone:
        text = f"No verdict: only {best.strategy} has usable runs, so it has no rival."
    else:
        constant = score(basis.constant, basis.metric)
        text = f"Neither: nothing beats a constant answer (the same for every text: {constant})."
    if basis.undertrained:
        text += f" {_train_longer(sorted(basis.undertrained), basis)}"
    return text


def _blocked(decision: Decision, basis: Basis) -> str:
    """Which cheaper strategies may keep up, and what would settle it."""
    names = [blocker.strategy for blocker in decision.blockers]
    start = f"The cheaper {_listed(names, 'or')} may do as well (within {basis.limit})"
    if decision.more_seeds is not None:
        seeds = min(each.seeds for each in decision.strategies) + decision.more_seeds
        single = any(math.isnan(blocker.low) for blocker in decision.blockers)
        effect = f"would show how much {basis.seeds(2)} matter" if single else "should settle it"
        more = f"{decision.more_seeds} more {basis.seeds(decision.more_seeds)} per strategy"
        return f"{start}: {more} {effect} (`seeds={seeds}`)."
    if decision.test_rows is not None:
        test = "test" if basis.folds == 1 else "labelled"
        rows = f"{decision.test_rows:,} {test} {basis.metric.row}s"
        now = f"{decision.best.predictions.shape[1]:,}"
        repeated = basis.seeds(2)
        return f"{start}: more {repeated} would not settle it, about {rows} might (now {now})."
    rows = f"{'test ' if basis.folds == 1 else ''}{basis.metric.row}s"
    return (
        f"{start}: neither more {basis.seeds(2)} nor more {rows} would soon settle it, so choose "
        "by cost."
    )


def _train_longer(names: Sequence[str], basis: Basis) -> str:
    """The advice for strategies that are possibly under-trained.

    The settings to use are named if there are few; the reasons name each of them too.
    """
    are, each = ("is", "it") if len(names) == 1 else ("are", "them")
    text = f"{_listed(names, 'and')} {are} possibly under-trained: train {each} longer"
    if len(names) > MOST_REMEDIES:
        return f"{text} (settings below)."
    return f"{text} ({' '.join(_remedy(name, basis) for name in names)})."


def _remedy(strategy: str, basis: Basis) -> str:
    name, _, value = basis.undertrained[strategy].partition("=")
    return f"`options={{{name!r}: {value}}}`"


def reasons(best: StrategySummary, comparisons: Sequence[Comparison], basis: Basis) -> list[str]:
    """The best strategy, and the finding on each other one, nearest first."""
    found, metric = best.score, basis.metric
    seeds = f"{best.seeds} {basis.seeds(best.seeds)}"
    spread = f"mean of {seeds}, 95% interval {_range(found.low, found.high, metric)}"
    if best.seeds == 1:
        spread = f"one {basis.seeds(1)}"
    elif best.fixed:
        spread = f"the same with each of {seeds}"
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
        one, many = basis.seeds(1), basis.seeds(2)
        return f"{name} is open: {gap}, but one {one} does not show how much {many} matter.{longer}"
    gap += f" (95% interval {_range(comparison.low, comparison.high, metric, 2)})"
    return {
        "credibly worse": f"{name} is credibly worse by more than {limit}: {gap}.",
        "as good": f"{name} is as good within {limit}: {gap}.{longer}",
        "open": f"{name} may or may not be worse by more than {limit}: {gap}.{longer}",
        "worse as trained": f"{name} is worse as trained here: {gap}.{longer}",
    }[comparison.verdict]


def costs(
    decision: Decision,
    others: Sequence[StrategySummary],
    smallest: StrategySummary | None,
    basis: Basis,
) -> list[str]:
    """The cost of the choice against that of each other strategy, cheapest first."""
    choice = decision.provisional
    if choice is None:
        return []
    ordered = sorted(others, key=lambda each: each.cost_order)
    lines = [_cost(choice, each) for each in ordered if each is not choice]
    if smallest is not None:
        lines.insert(0, _saves_storage(smallest, choice, decision.best, basis))
    return [line for line in lines if line]


def _cost(mine: StrategySummary, other: StrategySummary) -> str:
    """One sentence, or "" where seconds are not recorded."""
    seconds = mine.seconds(), other.seconds()
    time = _times(*seconds, ("faster than", "about as fast as", "slower than"))
    if not time:
        return ""
    durations = " against ".join(format_duration(each) for each in seconds if each is not None)
    line = f"{mine.strategy} trains {time} {other.strategy} ({durations} per run)"
    storage = _times(mine.storage, other.storage, ("less", "about as much", "more"))
    if storage:
        sizes = f"{format_bytes(mine.storage)} against {format_bytes(other.storage)}"
        line += f" and stores {storage} per task ({sizes})"
    return f"{line}."


def _saves_storage(
    smallest: StrategySummary, choice: StrategySummary, best: StrategySummary, basis: Basis
) -> str:
    """One sentence on the strategy that stores least, for many tasks on one encoder."""
    state = "scores best" if smallest is best else f"keeps within {basis.limit} of the best"
    time = _trains(smallest, choice)
    speed = f"; it trains {time}" if time else ""
    return (
        f"If many tasks share one encoder, look at {smallest.strategy}: it {state} and stores "
        f"{format_bytes(smallest.storage)} per task instead of the "
        f"{format_bytes(choice.storage)} of {choice.strategy}{speed}."
    )


def _saving(choice: StrategySummary, best: StrategySummary) -> str:
    time = _trains(choice, best)
    return f"trains {time}" if time else "costs less"


def _trains(mine: StrategySummary, other: StrategySummary) -> str:
    """How fast one trains against another, or "" where seconds are not recorded."""
    return _times(mine.seconds(), other.seconds(), ("faster", "about as fast", "slower"))


def _times(mine: float | None, other: float | None, words: tuple[str, str, str]) -> str:
    """How much less or more one is than the other, in words; "" where one is not known."""
    if mine is None or other is None or not (0 < mine < math.inf and 0 < other < math.inf):
        return ""
    ratio = max(mine, other) / min(mine, other)
    if ratio < 1.05:
        return words[1]
    shown = f"{ratio:,.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
    return f"{shown} times {words[0] if mine < other else words[2]}"


def caveats(
    summaries: Sequence[StrategySummary],
    decision: Decision,
    constant: Collection[str],
    targets: NDArray[Any],
    basis: Basis,
) -> list[str]:
    """Reservations: lost runs, few seeds, a tiny test set, strategies no better than chance."""
    metric = basis.metric
    rows, seeds = len(targets), min(each.seeds for each in decision.strategies)
    classes = targets.dtype.kind in "iu" and not metric.per_word
    unseen = int((targets < 0).sum()) if classes else 0
    if metric.multi_label and targets.ndim == 2:
        unseen = int((targets[:, -1] > 0).sum())
    lines = lost(summaries)
    if seeds < FEW_SEEDS and (basis.folds == 1 or seeds < 2):
        lines.append(
            f"The fewest usable {basis.seeds(2)} of a strategy are {seeds}: with fewer than "
            f"{FEW_SEEDS if basis.folds == 1 else 2}, how much {basis.seeds(2)} matter is not well "
            "known."
        )
    if rows < TINY_TEST_ROWS:
        lines.append(
            f"The {'test set' if basis.folds == 1 else 'data'} is tiny: {rows} "
            f"{plural(rows, metric.row)}, so one {metric.row} is {100 / rows:.1f}% of it."
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
        each.strategy for each in decision.strategies if each.is_constant and not each.degenerate
    }
    bad = sorted(set(constant) - baselines)
    if bad:
        does = "does" if len(bad) == 1 else "do"
        lines.append(f"{_listed(bad, 'and')} {does} not beat a constant answer.")
    return lines


def lost(summaries: Sequence[StrategySummary]) -> list[str]:
    """Runs that do not count, runs that give one answer, and costs that are not known."""
    return [line for summary in summaries for line in _lost(summary)]


def _lost(summary: StrategySummary) -> list[str]:
    name, runs, failed = summary.strategy, len(summary.records), len(summary.failed)
    repeated = any(record.parts for record in summary.records)
    of = f"of {runs} {plural(runs, 'repetition' if repeated else 'run')} of {name}"
    why = f" ({summary.trouble.rstrip('.')})" if summary.trouble else ""
    lines = []
    if failed:
        lines.append(f"{failed} {of} failed{why}; the mean leaves them out.")
    if summary.degenerate:
        cause = "" if failed else why
        count = len(summary.degenerate)
        lines.append(f"{count} {of} came out degenerate{cause}; the mean counts them in.")
    elif folds := [run for run in summary.runs if run.degenerate]:
        lines.append(
            f"{len(folds)} of {len(summary.runs)} folds of {name} came out degenerate "
            f"({folds[0].degenerate}); their rows count like any other."
        )
    if summary.unscored:
        lines.append(f"{summary.unscored} {of} left no finite test predictions.")
    if not summary.usable:
        lines.append(f"{name} has no usable run, so nothing is said about it.")
    elif summary.seconds() is None:
        lines.append(f"The costs of {name} are not recorded; it counts as the most expensive.")
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


def _listed(names: Sequence[str], last: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"
