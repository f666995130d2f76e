"""What a study's searches tried and found: words, a row and a picture per strategy."""

from collections.abc import Mapping, Sequence
from typing import Any

from totune.metrics import is_higher_better
from totune.report import formatting
from totune.report.document import Picture, Section
from totune.report.plots import colors_of
from totune.report.search_figure import (
    draw_search,
    option_name,
    option_value,
    score_span,
    shown_options,
    trial_rows,
)
from totune.report.table import Cell, Column, Row, Table, drop_empty_columns, number, word
from totune.search.records import SearchRecord

TITLE = "Search"
_LEAST_IMPORTANCE = 0.1  # the least share of the variance that is worth a word in the table


def search_section(searches: Sequence[SearchRecord], strategies: Sequence[str]) -> Section:
    """The searches of a study; an empty section where nothing was searched.

    Args:
        searches: of the study, in any order.
        strategies: all of the study, in the order of their colours.
    """
    order = list(dict.fromkeys([*strategies, *(search.strategy for search in searches)]))
    done = [search for search in searches if search.ranges and search.trials]
    done.sort(key=lambda search: order.index(search.strategy))
    if not done:
        return Section(TITLE)
    colors = colors_of(order)
    pictures = tuple(
        Picture(draw_search(search, colors[search.strategy]), _caption(search))
        for search in done
        if search.scored
    )
    return Section(
        TITLE,
        (_words(done[0].metric),),
        _warnings(done),
        (_table(done, [name for name in order if name not in {s.strategy for s in done}]),),
        pictures,
    )


def _words(metric: str) -> str:
    best = "highest" if is_higher_better(metric) else "lowest"
    return (
        "Options were searched on dev: every trial trains on train and is scored by the "
        f"{formatting.metric_name(metric)} on dev of the epoch that it keeps (of its best, if it "
        "was ended early); the first one has the defaults. A winner's dev score is the "
        f"{best} of many and thus flattered. Of each search only the winner was run over the "
        "study's seeds and scored on test."
    )


def _warnings(searches: Sequence[SearchRecord]) -> tuple[str, ...]:
    hopeless = [search for search in searches if not search.scored]
    return tuple(
        f"No trial of {search.strategy} has a score: {_first_error(search)}" for search in hopeless
    )


def _first_error(search: SearchRecord) -> str:
    errors = (trial.error for trial in search.trials if trial.error)
    return f"{next(errors, 'no message was kept').rstrip('.')}."


def _table(searches: Sequence[SearchRecord], others: Sequence[str]) -> Table:
    metric = formatting.metric_name(searches[0].metric)
    columns = (
        Column("Strategy", numeric=False),
        Column("Trials", numeric=False),  # so that what became of them wraps
        Column("Time"),
        Column(f"Dev {metric}, defaults"),
        Column(f"Dev {metric}, winner"),
        Column("Options that won", numeric=False),
    )
    rows = tuple(Row(_cells(search)) for search in searches)
    return drop_empty_columns(Table(TITLE, columns, rows, _notes(searches, others)))


def _notes(searches: Sequence[SearchRecord], others: Sequence[str]) -> tuple[str, ...]:
    metric = searches[0].metric
    points = " Scores in points (× 100)." if formatting.is_bounded(metric) else ""
    notes = [
        "Time is that of all trials of a search, without computing frozen features." + points,
        "In brackets the default, where the winner has another value.",
    ]
    if any(trial.same_as is not None for search in searches for trial in search.trials):
        notes.append("A repeated trial asked for the same options as an earlier one, and took none")
        notes[-1] += " of the time."
    if others:
        notes.append(f"Not searched: {', '.join(others)}.")
    return (" ".join(notes),)


def _cells(search: SearchRecord) -> tuple[Cell, ...]:
    seconds, first = search.seconds, search.defaults
    default = None if first is None else first.score
    return (
        word(search.strategy),
        _trials(search),
        number(seconds, formatting.duration(seconds)),
        number(default, formatting.score(search.metric, default)),
        _won(search, default),
        _options(search),
    )


def _trials(search: SearchRecord) -> Cell:
    total = len(search.trials)
    counts = {
        "pruned": sum(trial.state == "pruned" for trial in search.trials),
        "failed": len(search.failed),
        "repeated": sum(trial.same_as is not None for trial in search.trials),
    }
    detail = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return Cell(total, str(total), detail)


def _won(search: SearchRecord, default: float | None) -> Cell:
    """The winner's score, below it how far it is from the defaults'."""
    won = search.winner
    if won is None or won.score is None:
        return Cell(None, formatting.MISSING)
    text = formatting.score(search.metric, won.score)
    if default is None or won.number == 0:
        return Cell(won.score, text)
    change = formatting.score(search.metric, won.score - default, signed=True)
    return Cell(won.score, text, change)


def _options(search: SearchRecord) -> Cell:
    """All that were searched and won; below them what mattered, and what was set by hand."""
    won, first = search.winner, search.trials[0]
    detail = "; ".join(text for text in (_mattered(search), _by_hand(search)) if text)
    if won is None:
        return Cell(None, formatting.MISSING, detail)
    if won.number == 0:
        return Cell(dict(won.options), "the defaults", detail)
    usual = first.options if first.number == 0 else {}
    text = ", ".join(
        _assignment(name, won.options[name], usual) for name in search.ranges if name in won.options
    )
    return Cell(dict(won.options), text, detail)


def _by_hand(search: SearchRecord) -> str:
    fixed = ", ".join(_assignment(name, value) for name, value in search.fixed.items())
    return f"set by hand: {fixed}" if fixed else ""


def _assignment(name: str, value: Any, usual: Mapping[str, Any] | None = None) -> str:
    """An option with its value, and in brackets the usual one where that is shown differently."""
    text, default = option_value(value), option_value((usual or {}).get(name, value))
    other = f" ({default})" if default != text else ""
    return f"{option_name(name)} {text}{other}"


def _mattered(search: SearchRecord) -> str:
    """The one or two options that explain most; nothing where one alone was searched."""
    if len(search.ranges) < 2:
        return ""
    ranked = sorted(search.importance.items(), key=lambda item: -item[1])[:2]
    shares = [f"{option_name(n)} {100 * s:.0f}%" for n, s in ranked if s >= _LEAST_IMPORTANCE]
    return f"most important: {', '.join(shares)}" if shares else ""


def _caption(search: SearchRecord) -> str:
    """What is in the picture, and no more than that."""
    rows, (low, high) = trial_rows(search), score_span(search)
    beyond = any(not low <= row["score"] <= high for row in rows)
    parts = (
        "Every trial's score, by trial with the best so far, and by the value of each option.",
        "The winner is dark.",
        "Crosses were ended early." if any(row["pruned"] for row in rows) else "",
        "A triangle lies beyond the scale." if beyond else "",
        "Failed trials are not shown." if search.failed else "",
        _importance(search),
        _left_out(search),
    )
    return " ".join(part for part in parts if part)


def _importance(search: SearchRecord) -> str:
    """What the percentages are, or why there are none."""
    if len(search.ranges) == 1:
        return "One option was searched."
    if not search.importance:
        return "Too few trials to say which options matter."
    return "In percent: how much of the variance of scores over trials an option explains (fANOVA)."


def _left_out(search: SearchRecord) -> str:
    shown, total = len(shown_options(search)), len(search.ranges)
    which = "most important" if search.importance else "first"
    return "" if shown == total else f"The {shown} {which} of {total} options."
