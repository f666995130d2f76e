"""The tables of a study beside the comparison: costs, tests, every run."""

from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

from totune.advice import Advice, StrategySummary
from totune.metrics import METRICS
from totune.report import formatting
from totune.report.comparison import mark_of
from totune.report.groups import best_first, by_strategy
from totune.report.table import Cell, Column, Row, Table, drop_empty_columns, number, span, word
from totune.runs.records import RunRecord, StudyInfo
from totune.statistics import Welch, hedges_g, holm, welch

_MOST_PARTS = 200  # types of spans or labels in a table


def cost_table(info: StudyInfo, records: Sequence[RunRecord], advice: Advice) -> Table:
    """What each strategy costs, means over its usable runs."""
    columns = (
        Column("Strategy", numeric=False),
        Column("Training per run"),
        Column("Features per run"),
        Column("Examples/s in training"),
        Column("Peak memory"),
        Column("Trainable parameters"),
        Column("Stored per task"),
        Column("Prediction, ms/example"),
    )
    rows = tuple(
        Row(_cost_cells(group), mark_of(group.strategy, advice))
        for group in best_first(by_strategy(info, records), info.metric)
        if group.usable
    )
    notes = (
        "Means over the usable runs. Features per run is what computing the frozen features it "
        "reads took; they are kept, so only the first run that needs them waits for it. What is "
        "stored per task comes on top of the encoder that tasks share.",
    )
    return drop_empty_columns(Table("Costs", columns, rows, notes))


def _cost_cells(group: StrategySummary) -> tuple[Cell, ...]:
    trainable, total = group.cost("trainable_parameters"), group.cost("total_parameters")
    part = f"{formatting.share(trainable or 0, total)} of all" if total else ""
    train, features = group.cost("train_seconds"), group.cost("feature_seconds")
    speed, memory = group.cost("examples_per_second"), group.cost("peak_memory_bytes")
    storage, latency = group.cost("storage_bytes"), group.cost("latency_milliseconds")
    return (
        word(group.strategy),
        number(train, formatting.duration(train)),
        number(features, formatting.duration(features)),
        number(speed, formatting.rate(speed)),
        number(memory, formatting.byte_size(memory)),
        number(trainable, formatting.count(trainable), part),
        number(storage, formatting.byte_size(storage)),
        number(latency, formatting.significant(latency, 2)),
    )


def type_table(info: StudyInfo, records: Sequence[RunRecord]) -> Table:
    """The test F1 of every type of spans or label, a row each; no rows where there is neither.

    Labels of which a row can have several have their test rows, precision and recall beside it.
    """
    every = best_first(by_strategy(info, records), info.metric)
    groups = [group for group in every if group.usable]
    found = {name for group in groups for record in group.usable for name in record.test}
    parts = sorted(name.removeprefix("f1:") for name in found if name.startswith("f1:"))
    of_labels = any(f"support:{part}" in found for part in parts)
    what = "label" if of_labels else "type"
    columns = (
        Column(what.capitalize(), numeric=False),
        *([Column("Test rows")] if of_labels else []),
        *(Column(group.strategy) for group in groups),
    )
    rows = tuple(
        Row(
            (
                word(part),
                *([_support_cell(groups[0], part)] if of_labels else []),
                *(_f1_cell(group, part, of_labels) for group in groups),
            )
        )
        for part in parts[:_MOST_PARTS]
    )
    below = "; below it precision and recall" if of_labels else ""
    notes: tuple[str, ...] = (f"Test F1 in points{below}, means over the usable runs.",)
    if len(parts) > _MOST_PARTS:
        notes += (f"The first {_MOST_PARTS} of {len(parts):,} {what}s.",)
    return Table(f"F1 by {what}", columns, rows, notes)


def _support_cell(group: StrategySummary, label: str) -> Cell:
    support = group.mean(f"support:{label}")
    return number(support, formatting.count(support))


def _f1_cell(group: StrategySummary, part: str, of_labels: bool) -> Cell:
    mean = group.mean(f"f1:{part}")
    names = ("precision", "recall") if of_labels else ()
    means = {name: group.mean(f"{name}:{part}") for name in names}
    detail = ", ".join(f"{name} {formatting.score(name, value)}" for name, value in means.items())
    return number(mean, formatting.score("f1", mean), detail)


def run_table(info: StudyInfo, records: Sequence[RunRecord]) -> Table:
    """Every run, failed ones with their message; none is left out."""
    columns = (
        Column("Strategy", numeric=False),
        Column("Seed"),
        Column("Fold"),
        Column("Kept epoch"),
        Column(f"Dev {formatting.metric_name(info.metric)}"),
        *(Column(f"Test {formatting.metric_name(metric)}") for metric in info.metrics),
        Column("Threshold"),
        Column("Time"),
        Column("Precision", numeric=False),
        Column("Status", numeric=False),
    )
    rows = tuple(
        _run_row(info, record) for group in by_strategy(info, records) for record in group.records
    )
    return drop_empty_columns(Table("Every run", columns, rows))


def _run_row(info: StudyInfo, record: RunRecord) -> Row:
    costs = record.costs
    seconds = None if costs is None else costs.train_seconds + costs.feature_seconds
    status, mark = _status(record)
    dev = record.dev.get(info.metric)
    cells = (
        word(record.strategy),
        Cell(record.seed, str(record.seed)),
        number(record.fold, str(record.fold)),
        _epoch(record),
        number(dev, formatting.score(info.metric, dev)),
        *(
            number(value := record.test.get(metric), formatting.score(metric, value))
            for metric in info.metrics
        ),
        _thresholds(record),
        number(seconds, formatting.duration(seconds)),
        word(record.precision),
        word(status),
    )
    return Row(cells, mark)


def _thresholds(record: RunRecord) -> Cell:
    """The probabilities that were tuned on dev; "–" where the usual ones hold."""
    if not record.thresholds:
        return Cell(None, formatting.MISSING)
    told = ", ".join(formatting.significant(each) for each in record.thresholds)
    return Cell(record.thresholds[0], told)


def _epoch(record: RunRecord) -> Cell:
    """The epoch that was kept, counted from 1, of how many there were."""
    if not 1 <= record.best_epoch <= len(record.epochs):
        return Cell(None, formatting.MISSING)
    return Cell(record.best_epoch, f"{record.best_epoch} of {len(record.epochs)}")


def _status(record: RunRecord) -> tuple[str, str]:
    if record.status == "failed":
        return record.error or "failed without a message", "failed"
    return (record.degenerate, "degenerate") if record.degenerate else ("finished", "")


def welch_table(info: StudyInfo, records: Sequence[RunRecord], metric: str) -> Table:
    """Welch's t-test of every pair of strategies, best first, with Holm's correction.

    A pair in which a strategy has fewer than two usable runs has no test and is not listed.
    """
    groups = best_first(by_strategy(info, records), metric)
    ready = [group for group in groups if len(group.values(metric)) > 1]
    pairs = list(combinations(ready, 2))
    tests = [welch(one.values(metric), other.values(metric)) for one, other in pairs]
    adjusted: Sequence[float] = holm([test.p for test in tests]).tolist() if tests else []
    rows = tuple(
        Row(_test_cells(metric, pair, test, p))
        for pair, test, p in zip(pairs, tests, adjusted, strict=True)
    )
    columns = (
        Column("Pair", numeric=False),
        Column("Difference"),
        Column("95% interval"),
        Column("t"),
        Column("df"),
        Column("p"),
        Column("p, Holm"),
        Column("Hedges' g"),
    )
    return Table(
        f"Welch t-tests on test {formatting.metric_name(metric)}",
        columns,
        rows,
        _test_notes([group.strategy for group in groups if group not in ready and group.records]),
    )


def _test_cells(
    metric: str, pair: tuple[StrategySummary, StrategySummary], test: Welch, p: float
) -> tuple[Cell, ...]:
    one, other = pair
    first, second = one.values(metric), other.values(metric)
    difference = fmean(first) - fmean(second)
    effect = hedges_g(first, second)
    lowest, highest = METRICS[metric].scale
    low, high = max(test.low, lowest - highest), min(test.high, highest - lowest)
    return (
        word(f"{one.strategy} against {other.strategy}"),
        number(difference, formatting.score(metric, difference, signed=True)),
        span(low, high, formatting.interval(metric, low, high, signed=True)),
        number(test.t, formatting.significant(test.t)),
        number(test.df, formatting.significant(test.df)),
        number(test.p, formatting.p_value(test.p)),
        number(p, formatting.p_value(p)),
        number(effect, formatting.significant(effect)),
    )


def _test_notes(untested: list[str]) -> tuple[str, ...]:
    notes: tuple[str, ...] = (
        "Asks only whether the means over seeds differ on this very test set; other texts could "
        "show otherwise, so findings rest on the comparison above. p, Holm is corrected for the "
        "number of pairs.",
    )
    if untested:
        notes += (f"Fewer than two usable runs, so no test: {', '.join(untested)}.",)
    return notes
