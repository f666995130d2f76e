"""How much each strategy's options were searched, in sentences: equal effort makes it fair."""

from collections.abc import Sequence

from totune.advice.summary import StrategySummary
from totune.search.records import SearchRecord
from totune.text import format_duration

NOT_SEARCHED = (
    "No options were searched; with `search_trials=20` every strategy gets 20 trials on dev."
)


def describe_effort(
    searches: Sequence[SearchRecord], summaries: Sequence[StrategySummary]
) -> list[str]:
    """The search effort of every strategy, then what was unequal.

    Args:
        searches: those whose winners the runs are.
        summaries: those of all strategies.
    """
    done = sorted((s for s in searches if s.ranges and s.trials), key=lambda s: s.strategy)
    if not done:
        return [NOT_SEARCHED]
    names = {search.strategy for search in done}
    others = [each.strategy for each in summaries if each.strategy not in names]
    lines = [_searched(done, [each for each in summaries if each.strategy in names])]
    lines += [line for search in done for line in (_cut_short(search), _failures(search)) if line]
    if others:
        lines.append(f"Not searched: {', '.join(others)}.")
    return lines


def _searched(searches: Sequence[SearchRecord], summaries: Sequence[StrategySummary]) -> str:
    """The common budget of trials (or time), and the time (or trials) that each search took."""
    budgets = [search.budget for search in searches]
    equal = all(budget == budgets[0] for budget in budgets)
    trials = {search.strategy: _count(len(search.trials), "trial") for search in searches}
    times = {search.strategy: format_duration(search.seconds) for search in searches}
    if not equal:
        each = [f"{name} {trials[name]} in {times[name]}" for name in trials]
        text = f"Options were searched on dev with unequal effort ({', '.join(each)})"
    elif "trials" in budgets[0]:
        each = [f"{name} {time}" for name, time in times.items()]
        budget = _count(int(budgets[0]["trials"]), "trial")
        text = f"Options were searched on dev with {budget} per strategy ({', '.join(each)})"
    else:
        each = [f"{name} {count}" for name, count in trials.items()]
        budget = format_duration(budgets[0]["seconds"])
        text = f"Options were searched on dev for {budget} per strategy ({', '.join(each)})"
    return f"{text}{_seeds(summaries)}."


def _seeds(summaries: Sequence[StrategySummary]) -> str:
    """The number of seeds that the winners ran over."""
    runs = sorted({len(each.records) for each in summaries})
    if any(each.n_folds > 1 for each in summaries):
        return " of the first fold, some of which other folds test on"
    if not runs:
        return ""
    several = f"{runs[0]} to {runs[-1]}" if len(runs) > 1 else str(runs[0])
    return f"; the winners ran over {several} {'seed' if runs[-1] == 1 else 'seeds'}"


def _cut_short(search: SearchRecord) -> str:
    asked, had = int(search.budget.get("trials", 0)), len(search.trials)
    if had >= asked:
        return ""
    return f"The search of {search.strategy} was cut short: it had {had} of its {asked} trials."


def _failures(search: SearchRecord) -> str:
    failed, total = search.failed, len(search.trials)
    if not failed:
        return ""
    reason = next((trial.error for trial in failed if trial.error), "").rstrip(".")
    why = f" ({reason})" if reason else ""
    if len(failed) == total:
        return f"No trial of {search.strategy} succeeded{why}, so it ran with its defaults."
    return f"{len(failed)} of {total} trials of {search.strategy} failed{why}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
