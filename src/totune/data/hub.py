"""Datasets of the Hugging Face hub, through the `datasets` library."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from totune.data.examples import SplitName
from totune.data.folders import split_of
from totune.data.tables import Cell, Table, Tables, as_cell
from totune.errors import DataError


def read_hub(reference: str) -> Tables:
    """The tables of `NAME` or `NAME/CONFIG`, where NAME may be `OWNER/NAME`.

    Loading scripts never run: `datasets` 4 and later refuse them, and nothing here asks for them.

    Raises:
        DataError: with the library's reason, if the dataset cannot be had or has no train split.
    """
    dataset = _load(reference)
    tables: dict[SplitName, Table] = {}
    for name, rows in dataset.items():
        split = split_of(str(name))
        if split is not None and split not in tables:
            tables[split] = _table(rows, f"hub:{reference} {name}")
    if "train" not in tables:
        held = ", ".join(str(name) for name in dataset)
        raise DataError(f"hub:{reference} has no train split; it has {held}.")
    return Tables(reference, tables)


def stream_hub(reference: str) -> tuple[Any, Mapping[str, Callable[[Any], Cell]]]:
    """The train split of a dataset, whose rows come as they are asked for.

    Returns:
        An iterable of rows (mappings), and what reads the values of each usable column; of none
        where the dataset does not say which columns it has.

    Raises:
        DataError: as `read_hub`.
    """
    rows = _load(reference, split="train", streaming=True)
    features = rows.features or {}
    found = {name: _cell_reader(feature) for name, feature in features.items()}
    return rows, {name: read for name, read in found.items() if read is not None}


def _load(reference: str, **options: Any) -> Any:
    import datasets

    reasons = []
    for name, config in _readings(reference):
        try:
            return datasets.load_dataset(name, config, **options)
        except Exception as error:  # the library raises dozens of kinds, each a user's message here
            told = str(error).strip().splitlines()[0] if str(error) else repr(error)
            reasons.append(told.rstrip(".") + ".")
    raise DataError(
        f"hub:{reference} cannot be loaded: {reasons[0]} Write hub:NAME or hub:NAME/CONFIG, "
        "with NAME as the hub shows it; without a network, give a file or a folder."
    )


def _readings(reference: str) -> Sequence[tuple[str, str | None]]:
    """What a reference may mean: "a/b" is owner and name, or else name and configuration."""
    parts = reference.split("/")
    if not all(parts) or len(parts) > 3:
        raise DataError(
            f"hub:{reference} is no dataset name; write hub:NAME, hub:OWNER/NAME or "
            "hub:OWNER/NAME/CONFIG."
        )
    if len(parts) == 3:
        return [("/".join(parts[:2]), parts[2])]
    if len(parts) == 2:
        return [(reference, None), (parts[0], parts[1])]
    return [(reference, None)]


def _table(rows: Any, source: str) -> Table:
    """The columns of plain values and of lists of them.

    Classes are given by their names, -1 (a hidden label) as None.
    """
    columns: dict[str, list[Cell]] = {}
    classes: dict[str, tuple[str, ...]] = {}
    for name, feature in rows.features.items():
        read = _cell_reader(feature)
        if read is not None:
            columns[name] = [read(value) for value in rows[name]]
        if getattr(feature, "names", None) is not None:
            classes[name] = tuple(feature.names)
    return Table(source, columns, range(1, len(rows) + 1), classes=classes)


def _cell_reader(feature: Any) -> Callable[[Any], Cell] | None:
    """How a cell of a column is read, a plain value or a list; None if it is neither."""
    item = getattr(feature, "feature", None)
    read = _reader(feature if item is None else item)
    if read is None:
        return None
    if item is None:
        return lambda value: as_cell(read(value))
    return lambda values: as_cell(_each(read, values))


def _reader(feature: Any) -> Callable[[Any], object] | None:
    """How a plain value of a feature is read; None for images, nested lists and the like."""
    names = getattr(feature, "names", None)
    if names is not None:
        return lambda value: _class_name(names, value)
    return (lambda value: value) if hasattr(feature, "dtype") else None


def _each(read: Callable[[Any], object], values: Sequence[Any] | None) -> list[object] | None:
    return None if values is None else [read(value) for value in values]


def _class_name(names: Sequence[str], value: int | None) -> Cell:
    return None if value is None or value < 0 else names[value]
