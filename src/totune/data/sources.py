"""The door to the data: from what a person names to a dataset in three splits, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from totune.data.audit import audit
from totune.data.columns import find_columns
from totune.data.examples import Columns, Dataset, Examples, Label, SplitName, TaskName
from totune.data.extraction import extract, has_labels
from totune.data.folders import read_mapping, read_path
from totune.data.hub import read_hub
from totune.data.inputs import read_inputs
from totune.data.samples import read_example
from totune.data.splits import Splits, complete, shrink
from totune.data.tables import Tables
from totune.errors import ConfigError

__all__ = ["load_dataset", "read_inputs"]

Source = str | Path | Mapping[str, str | Path]


def load_dataset(
    source: Source,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    task: TaskName | None = None,
    encoding: str | None = None,
    fraction: float = 1.0,
    split_seed: int = 0,
) -> Dataset:
    """Reads a labelled dataset, finds its columns and task, and makes the splits it lacks.

    Args:
        source: a file; a folder with train, dev and test files; `hub:NAME[/CONFIG]`;
            `example:NAME`; or a file for each split (`{"train": ..., "test": ...}`).
        text: the column of the (first) text; detected if not named.
        pair: the column of the second text; detected only if `text` is not named either.
        label: the column of the label; detected if not named.
        task: "classification" or "regression"; follows from the train labels if not named.
        encoding: of text files; UTF-8 if not named.
        fraction: the share of the train rows that is used, in (0, 1].
        split_seed: fixes the splits that are made and the fraction that is drawn.

    Raises:
        DataError: the data cannot be used; one message with the place and the remedy.
        ConfigError: `fraction`, `task` or `split_seed` is out of range.
    """
    _check(task, split_seed)
    tables = _open(source, encoding)
    train = tables.splits["train"]
    columns, said = find_columns(train, text, pair, label, task)
    read = _extract(tables, columns)
    splits = complete(read.parts, columns.task, split_seed, train.source)
    splits = shrink(splits, columns.task, fraction, split_seed)
    return Dataset(
        name=tables.name,
        train=splits.parts["train"],
        dev=splits.parts["dev"],
        test=splits.parts["test"],
        columns=columns,
        notes=(*tables.notes, *read.notes, *said, *splits.notes),
        warnings=(*read.warnings, *audit(splits.parts, columns.task, train.source)),
        provenance=_provenance(source, tables, splits, split_seed),
    )


@dataclass(frozen=True)
class _Read:
    """The labelled splits of a source, with what is to be said of them."""

    parts: Mapping[SplitName, Examples]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def _check(task: str | None, split_seed: int) -> None:
    faults = []
    if task not in (None, "classification", "regression"):
        faults.append(f"task is {task!r}; it must be classification or regression.")
    if split_seed < 0:
        faults.append(f"split_seed is {split_seed}; it must be 0 or more.")
    if faults:
        raise ConfigError(faults)


def _open(source: Source, encoding: str | None) -> Tables:
    if isinstance(source, Mapping):
        return read_mapping(source, encoding)
    if isinstance(source, str) and source.startswith("hub:"):
        return read_hub(source.removeprefix("hub:"))
    if isinstance(source, str) and source.startswith("example:"):
        return read_example(source.removeprefix("example:"))
    return read_path(Path(source).expanduser(), encoding)


def _extract(tables: Tables, columns: Columns) -> _Read:
    """Examples of every labelled split; dev and test files without labels are left aside."""
    parts: dict[SplitName, Examples] = {}
    notes: list[str] = []
    warnings: list[str] = []
    classes: frozenset[Label] = frozenset()
    for split, table in sorted(tables.splits.items(), key=lambda item: item[0] != "train"):
        if split != "train" and not has_labels(table, columns, classes):
            lack = "labels in" if columns.label in table.columns else "column"
            notes.append(
                f"{table.source} is not used, for it has no {lack} {columns.label!r}; "
                f"a {split} split is drawn from train instead."
            )
            continue
        extracted = extract(table, columns)
        parts[split] = extracted.examples
        notes += table.notes
        warnings += [*table.warnings, *extracted.warnings]
        if split == "train" and columns.task == "classification":
            classes = frozenset(extracted.examples.labels or ())
    return _Read(parts, tuple(notes), tuple(warnings))


def _provenance(source: Source, tables: Tables, splits: Splits, seed: int) -> dict[str, str]:
    """Where every split comes from."""
    origin = {str(name): table.source for name, table in tables.splits.items()}
    origin.update({str(name): f"drawn from train, seed {seed}" for name in splits.made})
    named = source if isinstance(source, str | Path) else tables.name
    return {"source": str(named), **origin}
