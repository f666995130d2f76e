"""Data that a program has in memory, as tables: frames, Arrow tables, datasets, lists.

Values are known by what they can do, not by their class, so that no library is imported that is
not there: Arrow's PyCapsule interface (`__arrow_c_stream__`: polars, pyarrow, DuckDB, narwhals),
the columns of pandas, the features of `datasets.Dataset`. Rows are counted from 0, as in Python.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from totune.data.examples import SplitName, split_of
from totune.data.hub import HubRows
from totune.data.tables import Cell, SourceTable, as_cell, table_of
from totune.errors import DataError
from totune.text import counted, first_line

UNIT = "position"
_BATCH = 1000  # rows of a dataset that are read at once
_SHOWN = 80  # characters of a value that a message shows
_KINDS = (
    "a data frame, an Arrow table, a datasets.Dataset, a list of records (dicts), a dict of "
    "columns, or (texts, labels)"
)


class ArrowStream(Protocol):
    """A table that offers Arrow's PyCapsule interface: frames of pandas and polars, and others."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class DatasetRows(Protocol):
    """A dataset of the library datasets."""

    @property
    def features(self) -> Any: ...


# A mapping is of columns, or of splits; a sequence holds records, or texts and labels.
MemoryTable = ArrowStream | DatasetRows | Mapping[str, Any] | Sequence[Any]


def is_table(value: object) -> bool:
    """Whether a value in memory has columns by name, unlike a list of texts."""
    if isinstance(value, Mapping):
        return True
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], Mapping)
    return any(hasattr(value, name) for name in ("columns", "column_names", "schema"))


def memory_splits(data: Any) -> Mapping[str, Any] | None:
    """The values by the names of their splits, where `data` is a mapping of splits; else None.

    Of a `datasets.DatasetDict`, splits of other names ("unsupervised") are left aside.
    """
    if not isinstance(data, Mapping):
        return None
    named = any(split_of(str(name)) for name in data)
    if not named and not all(isinstance(value, str | Path) for value in data.values()):
        return None
    if hasattr(data, "column_names"):
        return {name: rows for name, rows in data.items() if split_of(str(name))}
    return data


def memory_table(data: Any, split: SplitName | None = None) -> SourceTable:
    """All rows of a value in memory.

    Args:
        data: one of `MemoryTable`.
        split: that it is, for messages.

    Raises:
        DataError: it is none of these, its columns share a name or differ in length, or it holds
            no rows.
    """
    source = " ".join(filter(None, (_name(data), split)))
    table = _read(data, source)
    if not len(table):
        raise DataError(f"{source} holds no rows.")
    return table


def memory_name(data: Any) -> str:
    """What reports call data in memory."""
    return "splits in memory" if type(data) is dict and memory_splits(data) else _name(data)


def _name(data: Any) -> str:
    kind = type(data).__name__
    names = {"list": "list of records", "tuple": "texts and labels", "dict": "dict of columns"}
    return names.get(kind, kind)


def _read(data: Any, source: str) -> SourceTable:
    if hasattr(data, "features") and hasattr(data, "select_columns"):
        table = HubRows(data, source, _BATCH).table()
        return _table(source, table.columns, table.classes)
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        return _from_pandas(data, source)
    if hasattr(data, "__arrow_c_stream__") and is_table(data):
        return _from_arrow(data, source)
    if isinstance(data, Mapping):
        return _table(source, {str(name): _values(cells, name) for name, cells in data.items()})
    if isinstance(data, tuple) and len(data) == 2:
        return _from_texts(*data, source)
    if isinstance(data, list) and data:
        return _from_records(data, source)
    raise DataError(f"{_short(data)} ({type(data).__name__}) is no data: give {_hint(data)}.")


def _hint(data: Any) -> str:
    if hasattr(data, "collect"):
        return "what its collect() returns"
    if isinstance(data, Iterator):
        return "a list (`list(...)`), since the rows are read more than once"
    if hasattr(data, "tolist") or hasattr(data, "to_list"):
        return "(texts, labels), since texts alone have no labels"
    return f"a file, a folder, {_KINDS}"


def _from_pandas(frame: Any, source: str) -> SourceTable:
    names = [str(name) for name in frame.columns]
    _check_names(names, source)
    classes = {}
    for at, name in enumerate(names):
        kind = frame.dtypes.iloc[at]
        if hasattr(kind, "categories"):
            classes[name] = tuple(as_cell(_plain(one)) or "" for one in kind.categories)
    return _table(source, {n: frame.iloc[:, at].tolist() for at, n in enumerate(names)}, classes)


def _from_arrow(data: Any, source: str) -> SourceTable:
    import pyarrow as pa

    try:
        table = pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{source} cannot be read as an Arrow table: {first_line(error)}") from None
    _check_names(table.column_names, source)
    classes = {}
    for name in table.column_names:
        column = table.column(name).unify_dictionaries()
        if pa.types.is_dictionary(column.type) and column.num_chunks:
            words = column.chunk(0).dictionary.to_pylist()
            classes[name] = tuple(as_cell(word) or "" for word in words)
    return _table(source, table.to_pydict(), classes)


def _from_texts(texts: Any, labels: Any, source: str) -> SourceTable:
    """Texts and labels apart: lists, arrays or columns of frames; a text may be a pair."""
    values, given = _values(texts, "texts"), _values(labels, "labels")
    if given and isinstance(_plain(given[0]), list):
        return _table(source, {"tokens": values, "tags": given})
    if values and all(isinstance(value, tuple | list) and len(value) == 2 for value in values):
        first, second = ([value[at] for value in values] for at in (0, 1))
        return _table(source, {"text": first, "pair": second, "label": given})
    return _table(source, {"text": values, "label": given})


def _from_records(rows: Sequence[Any], source: str) -> SourceTable:
    wrong = next((at for at, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if wrong is not None:
        raise DataError(
            f"Item {wrong} of the list is {_short(rows[wrong])}, not a record such as "
            '{"text": "...", "label": "..."}. Texts and labels apart are given as a tuple, '
            "(texts, labels)."
        )
    plain = ({str(name): _plain(value) for name, value in row.items()} for row in rows)
    return table_of(plain, source, range(len(rows)), UNIT)


def _values(column: Any, name: object) -> list[Any]:
    """The values of a column: a list, an array of one dimension, or a column of a frame."""
    bad = isinstance(column, str | bytes | Mapping | Iterator | set | frozenset)
    if not bad and not is_table(column):
        try:
            return list(column)
        except TypeError:  # nothing that has items, or an array without dimensions
            pass
    remedy = " Give a list: `list(...)`." if isinstance(column, Iterator) else ""
    raise DataError(
        f"{name} is {_short(column)} ({type(column).__name__}), not a list, an array or a column "
        f"of a frame.{remedy}"
    )


def _table(
    source: str,
    columns: Mapping[str, Sequence[Any]],
    classes: Mapping[str, tuple[str, ...]] | None = None,
) -> SourceTable:
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{name!r} has {size:,}" for name, size in sizes.items())
        raise DataError(f"The columns of {source} differ in length: {shown}. Every row needs all.")
    cells: dict[str, list[Cell]] = {
        name: [as_cell(_plain(value)) for value in values] for name, values in columns.items()
    }
    rows = range(next(iter(sizes.values()), 0))
    return SourceTable(source, cells, rows, UNIT, classes=classes or {})


def _check_names(names: Sequence[str], source: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(
            f"{source} has {counted(names.count(twice[0]), 'column')} called {twice[0]!r}; rename "
            "or drop all but one."
        )


def _plain(value: Any) -> Any:
    """A value as Python has it: scalars and arrays of numpy converted, what is missing None."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return None if type(value).__name__ in ("NAType", "NaTType") else value


def _short(value: object) -> str:
    shown = " ".join(repr(value).split())
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
