"""The section of a report on what the recommended model gets wrong.

Lists are cut, and say so: matrices to `_MOST_CLASSES` classes, tables to `_MOST_LISTED` rows, names
and texts to so many characters that ten thousand classes or a megabyte of text keep the page small.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.advice import Advice
from totune.advice.summary import Arrays, is_usable
from totune.metrics import METRICS, PADDING
from totune.report import errors, formatting, plots
from totune.report.axes import label_axes
from totune.report.document import Picture, Section
from totune.report.errors import ErrorRow
from totune.report.groups import best_first, by_strategy
from totune.report.table import Cell, Column, Row, Table, drop_empty_columns, number, word
from totune.runs.records import RunRecord, StudyInfo, best_run
from totune.tasks.base import task_from_json
from totune.text import counted

TITLE = "Errors"
TEXT_LENGTH = 200  # characters of a text that are shown
_MOST_CLASSES = 12  # of a confusion matrix
_MOST_LISTED = 30
_NAME_LENGTH = 60

Places = Mapping[int, Mapping[str, Any]]  # {"row": its number in the data, "text": or without}


@dataclass(frozen=True)
class ModelErrors:
    """The predictions that are looked into, and what follows from them.

    Attributes:
        strategy: the recommended one, or the one to use for now.
        rival: the best of the others; "" without one.
        run: which of its strategy's runs it is ("seed 1").
        rows: by kind (a function of `totune.report.errors`), the rows of data.
        calibration_error: of the model, or None.
    """

    strategy: str
    rival: str
    run: str
    rows: Mapping[str, Sequence[ErrorRow]]
    calibration_error: float | None = None

    @property
    def places(self) -> list[int]:
        """The places of the test rows that the section names."""
        return sorted(set().union(*(errors.places_shown(rows) for rows in self.rows.values())))


def find_errors(
    info: StudyInfo, records: Sequence[RunRecord], arrays: Arrays, advice: Advice
) -> ModelErrors | None:
    """What the best run (on dev) of the recommended strategy gets wrong on the test rows.

    Args:
        info: the study.
        records: its runs; of a cross-validation every repetition.
        arrays: their predictions, by fingerprint.
        advice: what follows from them.

    Returns:
        None where no strategy can be looked into.
    """
    strategies = [group.strategy for group in best_first(by_strategy(info, records), info.metric)]
    usable = [record for record in records if is_usable(record, arrays)]
    found = {name: best_run(usable, name, info.metric) for name in strategies}
    runs = {name: run for name, run in found.items() if run is not None}
    chosen = advice.provisional or ""
    if chosen not in runs:
        return None
    others = {name: arrays[run.fingerprint] for name, run in runs.items() if name != chosen}
    rival = next(iter(others), "")
    own = arrays[runs[chosen].fingerprint]
    rows = _rows(info, own, [each["predictions"] for each in others.values()])
    if rival:
        theirs = others[rival]["predictions"]
        if info.task != "regression":
            rows["rival"] = errors.rival_rows(own["targets"], own["predictions"], theirs)
    measured = None
    if "calibration" in rows:
        scores = own["scores"]
        measured = METRICS["calibration-error"](own["targets"], scores, scores.shape[1])
    run = f"seed {runs[chosen].seed}"
    return ModelErrors(chosen, rival, run, rows, measured)


def _rows(
    info: StudyInfo, own: Mapping[str, NDArray[Any]], others: Sequence[NDArray[Any]]
) -> dict[str, Sequence[ErrorRow]]:
    """The rows of data that the task has."""
    targets, predictions = own["targets"], own["predictions"]
    task = info.data.get("task") or {}
    labels: Sequence[str] = task.get("labels") or []
    if info.task == "regression":
        return {
            "residuals": errors.residual_rows(targets, predictions),
            "bands": errors.band_rows(targets, predictions),
        }
    if not task:
        return {}
    if info.task == "tagging" and task.get("scheme"):
        types: Sequence[str] = getattr(task_from_json(task), "types")  # noqa: B009
        return {
            "spans": errors.span_rows(targets, predictions, types),
            "confusion": errors.type_confusion(targets, predictions, types),
        }
    if info.task == "tagging":
        words = targets != PADDING
        targets, predictions = targets[words], predictions[words]
        targets = np.where(targets < len(labels), targets, -1)
    elif info.task != "classification":
        return {}
    rows: dict[str, Sequence[ErrorRow]] = {
        "confusion": errors.confusion_rows(targets, predictions, labels),
        "classes": errors.class_rows(targets, predictions, labels),
    }
    if info.task == "classification" and "scores" in own:
        doubtful, mistakes = errors.mistake_rows(
            targets, predictions, own["scores"], others, labels
        )
        calibration = errors.calibration_rows(targets, own["scores"])
        rows |= {"doubtful": doubtful, "mistakes": mistakes, "calibration": calibration}
    return rows


def error_section(info: StudyInfo, found: ModelErrors | None, places: Places) -> Section:
    """The tables and the calibration curve of what was found.

    Args:
        info: the study.
        found: of `find_errors`.
        places: by place among the test rows, where a row stands in the data, and its text if texts
            may be shown.
    """
    if found is None:
        return Section(TITLE)
    rows = found.rows
    tables = [
        *_confusion_tables(info, rows.get("confusion", ())),
        _class_table(info, rows.get("classes", ())),
        _span_table(rows.get("spans", ())),
        _band_table(rows.get("bands", ())),
        _residual_table(rows.get("residuals", ()), places),
        *_mistake_tables(rows, places),
        *_rival_tables(info, found, places),
    ]
    shown = tuple(table for table in tables if table.rows)
    pictures = _calibration_picture(rows.get("calibration", ()))
    if not shown:
        return Section(TITLE)
    return Section(TITLE, _words(info, found, places), tables=shown, pictures=pictures)


def _words(info: StudyInfo, found: ModelErrors, places: Places) -> tuple[str, ...]:
    run = f"its best run on dev ({found.run})"
    if info.folds > 1:
        run = f"the models that did not train on them (repetition {found.run})"
    words = [f"What {found.strategy} gets wrong on the test rows, as predicted by {run}."]
    if found.calibration_error is not None:
        points = formatting.score("calibration-error", found.calibration_error)
        words.append(
            f"When it gives its answer a probability, that is off by {points} points on average "
            "(expected calibration error; 0 is perfect)."
        )
    if found.places and not any("text" in place for place in places.values()):
        words.append("Texts are not shown.")
    elif found.places:
        words.append(f"Texts are cut to {TEXT_LENGTH} characters; `texts=False` leaves them out.")
    return tuple(words)


def _cut(name: Any) -> str:
    text = str(name)
    return text if len(text) <= _NAME_LENGTH else f"{text[: _NAME_LENGTH - 1]}…"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _points(value: float) -> Cell:
    return number(value, formatting.score("f1", value))


def _whole(count: int) -> Cell:
    return Cell(count, formatting.count(count))


def _listing(rows: Sequence[ErrorRow], what: str) -> tuple[Sequence[ErrorRow], tuple[str, ...]]:
    """The rows that a table shows, and a note where there are more."""
    if len(rows) <= _MOST_LISTED:
        return rows, ()
    return rows[:_MOST_LISTED], (f"The first {_MOST_LISTED} of {len(rows):,} {what}.",)


def _words_or_rows(info: StudyInfo) -> str:
    if info.task != "tagging":
        return "rows"
    return "spans" if info.data["task"].get("scheme") else "words"


def _confusion_tables(info: StudyInfo, rows: Sequence[ErrorRow]) -> list[Table]:
    """A matrix where there are few classes; else what is confused most often."""
    unit = _words_or_rows(info)
    names = dict.fromkeys(row["label"] for row in rows) | dict.fromkeys(
        row["predicted"] for row in rows
    )
    if len(names) <= _MOST_CLASSES:
        return [_matrix(rows, unit)]
    wrong = [row for row in rows if row["label"] != row["predicted"]]
    listed, notes = _listing(wrong, "pairs of classes that are confused")
    cells = [
        Row(
            (
                word(_cut(row["label"])),
                word(_cut(row["predicted"])),
                _whole(row["rows"]),
                number(row["share"], _percent(row["share"])),
                number(row["share_of_predicted"], _percent(row["share_of_predicted"])),
            )
        )
        for row in listed
    ]
    columns = (
        Column("Label", numeric=False),
        Column("Predicted", numeric=False),
        Column(unit.capitalize()),
        Column("Of this label"),
        Column("Of those predicted so"),
    )
    return [Table("What is confused", columns, tuple(cells), notes)]


def _matrix(rows: Sequence[ErrorRow], unit: str) -> Table:
    """Labels by frequency, and what was predicted for them."""
    support: dict[str, int] = {}
    for row in rows:
        support[row["label"]] = support.get(row["label"], 0) + row["rows"]
    labels = sorted(support, key=lambda name: -support[name])
    predicted = [
        *labels,
        *{row["predicted"]: None for row in rows if row["predicted"] not in labels},
    ]
    predicted = [name for name in predicted if any(row["predicted"] == name for row in rows)]
    found = {(row["label"], row["predicted"]): row for row in rows}
    columns = (
        Column("Label", numeric=False),
        *(Column(f"→ {_cut(name)}") for name in predicted),
    )
    lines = [
        Row((word(_cut(name)), *(_matrix_cell(found.get((name, other))) for other in predicted)))
        for name in labels
    ]
    note = (
        f"A row for each label of the data, a column for each prediction: {unit}, below them their "
        "share of the label (of its row), then of the prediction (of its column)."
    )
    return Table("Confusion matrix", columns, tuple(lines), (note,))


def _matrix_cell(row: ErrorRow | None) -> Cell:
    if row is None:
        return Cell(0, "0")
    detail = f"{_percent(row['share'])}, {_percent(row['share_of_predicted'])}"
    return Cell(row["rows"], formatting.count(row["rows"]), detail)


def _score_cells(row: ErrorRow) -> tuple[Cell, ...]:
    scores = (_points(row[name]) for name in ("precision", "recall", "f1"))
    return (word(_cut(row["label"])), _whole(row["support"]), *scores)


_SCORE_COLUMNS = (Column("Precision"), Column("Recall"), Column("F1"))


def _class_table(info: StudyInfo, rows: Sequence[ErrorRow]) -> Table:
    listed, notes = _listing(rows, "classes, by their test rows")
    unit = f"Test {_words_or_rows(info)}"
    columns = (Column("Class", numeric=False), Column(unit), *_SCORE_COLUMNS)
    return Table("Classes", columns, tuple(Row(_score_cells(row)) for row in listed), notes)


def _span_table(rows: Sequence[ErrorRow]) -> Table:
    fates = {
        "right": "Right",
        "boundaries": "Other boundaries",
        "type": "Other type",
        "both": "Both other",
        "missed": "Missed",
        "spurious": "Found where none is",
    }
    listed, notes = _listing(rows, "types, by their test spans")
    columns = (Column("Type", numeric=False), Column("Test spans"), *_SCORE_COLUMNS)
    lines = [Row((*_score_cells(row), *(_whole(row[fate]) for fate in fates))) for row in listed]
    every = (*columns, *(Column(name) for name in fates.values()))
    return Table("Types of spans", every, tuple(lines), notes)


def _band_table(rows: Sequence[ErrorRow]) -> Table:
    columns = (
        Column("Scores in the data", numeric=False),
        Column("Test rows"),
        Column("Mean residual"),
        Column("Mean size of residuals"),
    )
    lines = [
        Row(
            (
                word(f"{row['low']:.3g} to {row['high']:.3g}"),
                _whole(row["rows"]),
                number(row["mean"], f"{row['mean']:+.3g}"),
                number(row["absolute"], f"{row['absolute']:.3g}"),
            )
        )
        for row in rows
    ]
    note = "A residual is the prediction less the score in the data; above 0 it is too high."
    return Table("Residuals by quarters of the test rows", columns, tuple(lines), (note,))


def _place_cells(place: int, places: Places) -> tuple[Cell, Cell]:
    """Where a row stands, and its text if that may be shown."""
    known = places.get(place, {})
    row = known.get("row")
    at = Cell(place, "" if row is None else formatting.count(row))
    return (at if row is not None else Cell(None, formatting.MISSING)), word(known.get("text", ""))


_PLACE_COLUMNS = (Column("Line"), Column("Text", numeric=False))


def _residual_table(rows: Sequence[ErrorRow], places: Places) -> Table:
    columns = (*_PLACE_COLUMNS, Column("Score"), Column("Predicted"), Column("Residual"))
    lines = [
        Row(
            (
                *_place_cells(row["place"], places),
                number(row["label"], f"{row['label']:.3g}"),
                number(row["predicted"], f"{row['predicted']:.3g}"),
                number(row["residual"], f"{row['residual']:+.3g}"),
            )
        )
        for row in rows
    ]
    return drop_empty_columns(Table("Largest residuals", columns, tuple(lines)))


def _mistake_tables(rows: Mapping[str, Sequence[ErrorRow]], places: Places) -> Iterable[Table]:
    columns = (
        *_PLACE_COLUMNS,
        Column("Label", numeric=False),
        Column("Predicted", numeric=False),
        Column("Probability"),
        Column("Strategies that say so"),
    )
    named = (
        ("doubtful", "Labels to check", "Several strategies agree on another label than the data."),
        ("mistakes", "Most confident mistakes", ""),
    )
    for kind, title, note in named:
        lines = [
            Row(
                (
                    *_place_cells(row["place"], places),
                    word(_cut(row["label"])),
                    word(_cut(row["predicted"])),
                    number(row["confidence"], _percent(row["confidence"])),
                    Cell(row["agreeing"], f"{row['agreeing']} of {row['strategies']}"),
                )
            )
            for row in rows.get(kind, ())
        ]
        table = Table(title, columns, tuple(lines), (note,) if note else ())
        yield drop_empty_columns(table) if lines else table


def _rival_tables(info: StudyInfo, found: ModelErrors, places: Places) -> Iterable[Table]:
    """How many rows model and rival get right, and some that one of them alone does."""
    names = {
        "both": "both",
        "only the recommended": f"{found.strategy} alone",
        "only the other": f"{found.rival} alone",
        "neither": "neither",
    }
    rows = found.rows.get("rival", ())
    unit = "sentences" if info.task == "tagging" else "rows"
    columns = (Column("Right", numeric=False), Column(f"Test {unit}"), Column("Share"))
    lines = [
        Row(
            (
                word(names[row["right"]]),
                _whole(row["rows"]),
                number(row["share"], _percent(row["share"])),
            )
        )
        for row in rows
    ]
    yield Table(f"{found.strategy} against {found.rival}", columns, tuple(lines))
    alone = [
        Row((*_place_cells(place, places), word(names[row["right"]])))
        for row in rows
        for place in row["places"]
        if "text" in places.get(place, {})
    ]
    most = max((len(row["places"]) for row in rows), default=0)
    note = f"The first {counted(most, unit[:-1])} at most of each."
    title = f"{unit.capitalize()} that one of the two gets right"
    yield Table(title, (*_PLACE_COLUMNS, Column("Right", numeric=False)), tuple(alone), (note,))


def _calibration_picture(rows: Sequence[ErrorRow]) -> tuple[Picture, ...]:
    if not rows:
        return ()
    drawn = [{name: 100 * row[name] for name in ("confidence", "right")} for row in rows]
    line = [{"confidence": each, "right": each} for each in (0, 100)]
    with plots.picture("How often the model is right, by how sure it is", 4.9, 3.4) as plot:
        plots.lines(
            plot.axes, line, "confidence", "right", style="dashed", label="as sure as right"
        )
        color = plots.PALETTE[0]
        plots.lines(plot.axes, drawn, "confidence", "right", color=color, marker=5)
        ends = (0.0, 102.0)
        names = {"x": "Probability of its answer, %", "y": "Right, %"}
        label_axes(plot.axes, **names, xlim=ends, ylim=ends, grid="both")  # type: ignore[arg-type]
        plot.legend()
    caption = (
        "Calibration: test rows in bins by the probability of the answer. Below the dashed line "
        "the model is too sure, above it not sure enough; bins of few rows jump about."
    )
    return (Picture(plot.svg, caption),)
