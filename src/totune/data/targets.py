"""Labels as written in a source, and as a task wants them."""

import math
from collections.abc import Iterable, Sequence

from totune.data.delimited import NUMBER
from totune.data.examples import Label, TaskName
from totune.data.tables import Cell
from totune.data.word_lists import read_tags

MAX_NUMBERED_CLASSES = 20  # whole numbers with more different values are scores
NUMERIC_SHARE = 0.95  # share of numbers from which on a column is numeric, the rest being dirt


def infer_task(cells: Iterable[Cell]) -> TaskName:
    """Classification for words and for few different whole numbers, regression for scores."""
    values = [cell.strip() for cell in cells if cell is not None and cell.strip()]
    numbers = [float(value) for value in values if NUMBER.fullmatch(value)]
    if not numbers or len(numbers) < NUMERIC_SHARE * len(values):
        return "classification"
    whole = all(number.is_integer() for number in numbers)
    few = len(set(numbers)) <= MAX_NUMBERED_CLASSES
    return "classification" if whole and few else "regression"


def read_labels(cells: Sequence[Cell], task: TaskName) -> list[Label | None]:
    """Each cell as a label: a class name, a score, or a tuple of tags; None where there is none.

    A class that is a whole number is written without a point, so that "1.0" and "1" agree.
    """
    if task == "tagging":
        return [read_tags(cell) for cell in cells]
    stripped = [(cell or "").strip() for cell in cells]
    return [_score(cell) if task == "regression" else _class_name(cell) for cell in stripped]


def classes_of(label: Label) -> tuple[str | float, ...]:
    """What a label is made of: one class or score, or the tag of each word."""
    return label if isinstance(label, tuple) else (label,)


def _score(cell: str) -> float | None:
    value = float(cell) if NUMBER.fullmatch(cell) else math.nan
    return value if math.isfinite(value) else None


def _class_name(cell: str) -> str | None:
    if NUMBER.fullmatch(cell) and "." in cell and float(cell).is_integer():
        return str(int(float(cell)))
    return cell or None
