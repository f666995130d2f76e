"""The tables of scores: every strategy's with how far it is behind the best, and of ensembles."""

import math
from collections.abc import Sequence

from totune.advice import Advice, Comparison, Ensemble, StrategySummary
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.groups import best_first, by_strategy, summaries, unit_of
from totune.report.table import Cell, Column, Row, Table, number, word
from totune.runs.records import RunRecord, StudyInfo
from totune.statistics import Summary

_RULES = {
    "classification": "the class with the highest mean probability",
    "multi-label": "every label whose mean probability is at least 0.5",
    "regression": "the mean of their numbers",
    "tagging": "for each word the tag that most of them give (a tie goes to the tag of the run "
    "with the best dev score)",
}


def comparison_table(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Table:
    """Every strategy's test metrics, its runs and its distance to the best, best first."""
    against = {comparison.strategy: comparison for comparison in advice.comparisons}
    groups = by_strategy(info, records)
    scores = {metric: summaries(info, groups, metric, advice.standings) for metric in info.metrics}
    rows = tuple(
        Row(
            (
                word(group.strategy),
                *(_score_cell(found.get(group.strategy), name) for name, found in scores.items()),
                _runs_cell(group, info.metric),
                *_against_cells(info, group, against.get(group.strategy), advice),
            ),
            mark_of(group.strategy, advice),
        )
        for group in best_first(groups, info.metric)
    )
    columns = (
        Column("Strategy", numeric=False),
        *(Column(formatting.metric_label(metric)) for metric in info.metrics),
        Column("Runs" if info.folds == 1 else "Repetitions"),
        Column("Behind the best"),
        Column("p, adjusted"),
        Column("Finding", numeric=False),
    )
    return Table("Comparison", columns, rows, _comparison_notes(info, advice))


def _comparison_notes(info: StudyInfo, advice: Advice) -> tuple[str, ...]:
    bounded = [metric for metric in info.metrics if formatting.is_bounded(metric)]
    names = ", ".join(formatting.metric_name(metric) for metric in bounded)
    points = f"{names} in points (× 100); " if bounded else ""
    limit = formatting.tolerance(info.metric, advice.tolerance)
    unit = unit_of(info.metric)
    apart = ", which count as independent" if unit == "sentences" else ""
    over, on = ("runs", "this test set") if info.folds == 1 else ("repetitions", "these rows")
    seeds = "seeds" if info.folds == 1 else "repetitions"
    folds = ""
    if info.folds > 1:
        folds = (
            f" Of {info.folds}-fold cross-validation: a repetition predicts all "
            f"{(info.data.get('rows') or {}).get('all', 0):,} rows, and its score is that of all "
            "of them together. The interval behind the best allows for folds sharing training rows."
        )
    return (
        f"Test scores: {points}mean ± standard deviation over the usable {over}, below it the 95% "
        f"interval of the mean over {seeds} on {on}; how far {seeds} move a score is estimated "
        f"from all strategies together.{_averaged(info)}{folds}",
        f"Behind the best in {formatting.metric_name(info.metric)}, with its interval "
        f"over {seeds} and test {unit}{apart}; the intervals hold together with 95% confidence. p, "
        "adjusted is for no difference, and allows for the best having been picked by the same "
        f"scores. As good: credibly within {limit} of the best. Credibly worse: credibly "
        "further. Open: neither. Worse as trained: further, but possibly for want of training.",
    )


def _averaged(info: StudyInfo) -> str:
    """What the deciding metric is, where its name does not say so, and whose F1 an F1 is."""
    known = METRICS.get(info.metric)
    meaning = ""
    if known is not None and known.meaning:
        meaning = f" {formatting.metric_label(info.metric)} is {known.meaning}."
    if info.settings.get("tune_threshold"):
        meaning += (
            " Each run decides by the threshold that scored best on dev (in the table of every "
            "run), so its dev score is too high; test rows have no part in it."
        )
    return meaning + _of_classes(info)


def _of_classes(info: StudyInfo) -> str:
    """The class whose F1 the metric gives."""
    labels: Sequence[str] = (info.data.get("task") or {}).get("labels") or []
    if "f1" in info.metrics and len(labels) == 2:
        return f" F1 is that of the class {labels[1]!r}."
    if "f1" in info.metrics and labels:
        return " F1 is the macro average: the mean of every class's own F1."
    if "token-f1" in info.metrics:
        return " Token F1 is the macro average: the mean of every tag's own F1."
    return ""


def _score_cell(found: Summary | None, metric: str) -> Cell:
    if found is None:
        return Cell(None, formatting.MISSING)
    text = formatting.score(metric, found.mean)
    if found.n < 2:
        return Cell(found.mean, text)
    text += f" ± {formatting.spread(metric, found.std)}"
    return Cell(found.mean, text, formatting.interval(metric, found.low, found.high))


def _runs_cell(group: StrategySummary, metric: str) -> Cell:
    """How many runs count, what became of the others, and how many are degenerate."""
    usable, total = len(group.values(metric)), len(group.records)
    failed, degenerate = len(group.failed), len(group.degenerate)
    unscored = total - usable - failed
    kinds = ((failed, "failed"), (degenerate, "degenerate"), (unscored, "without a score"))
    detail = ", ".join(f"{count} {what}" for count, what in kinds if count)
    return Cell(usable, str(usable) if usable == total else f"{usable} of {total}", detail)


def _against_cells(
    info: StudyInfo, group: StrategySummary, found: Comparison | None, advice: Advice
) -> tuple[Cell, Cell, Cell]:
    metric = info.metric
    dash = Cell(None, formatting.MISSING)
    brief = "possibly under-trained" if group.strategy in advice.undertrained else ""
    if found is None:
        waiting = "not run on all rows" if info.settings.get("race_fraction") else "not run yet"
        lost = "no usable run" if group.records else waiting
        return dash, dash, word("best" if group.strategy == advice.best else lost, brief)
    ends = formatting.interval(metric, found.low, found.high)
    behind = number(
        found.difference,
        formatting.score(metric, found.difference),
        "" if ends == formatting.MISSING else ends,
    )
    known = math.isfinite(found.p)
    p = number(found.p_adjusted, formatting.p_value(found.p_adjusted)) if known else dash
    return behind, p, word(found.verdict, brief)


def mark_of(strategy: str, advice: Advice) -> str:
    """Why a strategy's row stands out: it is recommended, or the one to use meanwhile."""
    if strategy == advice.recommended:
        return "recommended"
    return "for now" if advice.verdict == "undecided" and strategy == advice.provisional else ""


def ensemble_table(info: StudyInfo, ensembles: Sequence[Ensemble]) -> Table:
    """Every ensemble's test scores beside those of its members, and what it costs to predict."""
    columns = (
        Column("Ensemble", numeric=False),
        *(Column(formatting.metric_label(metric)) for metric in info.metrics),
        Column("Stored per task"),
        Column("Prediction, ms/example"),
    )
    rows = tuple(Row(_ensemble_cells(info, ensemble)) for ensemble in ensembles)
    notes = (
        "Below a score: the mean score of the members alone and what the ensemble gains, positive "
        "where it is better. The best strategies are those by dev score. Storage and prediction "
        "time are the sums of all members'.",
    )
    return Table("Ensembles", columns, rows, notes)


def ensemble_words(info: StudyInfo) -> str:
    """What the members do together, and what these scores are not good for."""
    rule = _RULES.get(info.task, "one answer")
    return (
        f"Several trained models that answer together: {rule}. This is for information and is "
        "no part of the advice: choosing an ensemble by these scores would be choosing on test."
    )


def _ensemble_cells(info: StudyInfo, ensemble: Ensemble) -> tuple[Cell, ...]:
    storage, latency = ensemble.storage_bytes, ensemble.latency_milliseconds
    return (
        word(ensemble.name, _members(ensemble)),
        *(_gain_cell(metric, ensemble) for metric in info.metrics),
        number(storage, formatting.byte_size(storage)),
        number(latency, formatting.significant(latency, 2)),
    )


def _members(ensemble: Ensemble) -> str:
    """The members, where the name does not contain them."""
    one_strategy = " x " in ensemble.name
    return "" if one_strategy else ", ".join(ensemble.members)


def _gain_cell(metric: str, ensemble: Ensemble) -> Cell:
    found = ensemble.test.get(metric, math.nan)
    alone = formatting.score(metric, ensemble.alone.get(metric))
    gain = formatting.score(metric, ensemble.gain.get(metric), signed=True)
    return number(found, formatting.score(metric, found), f"alone {alone}, {gain}")
