"""The door to the data: from what a person names to a dataset in three splits, checked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from totune.data.audit import audit
from totune.data.columns import find_columns
from totune.data.examples import Columns, Dataset, Examples, SplitName, TaskName
from totune.data.extraction import Extracted, extract, has_labels
from totune.data.folders import read_mapping, read_path
from totune.data.hub import read_hub
from totune.data.inputs import read_inputs
from totune.data.samples import read_example
from totune.data.splits import Splits, complete, shrink
from totune.data.tables import Tables
from totune.data.tag_extraction import extract_tagged, rewrite, scheme_note
from totune.data.tag_schemes import SCHEMES, Scheme, detect
from totune.data.targets import classes_of
from totune.errors import ConfigError
from totune.registry import did_you_mean

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
    tag_scheme: Scheme = "iob2",
) -> Dataset:
    """Reads a labelled dataset, finds its columns and task, and makes the splits it lacks.

    Args:
        source: a file; a folder with train, dev and test files; `hub:NAME[/CONFIG]`;
            `example:NAME`; or a file for each split (`{"train": ..., "test": ...}`).
        text: the column of the (first) text, or of the words that are tagged; detected if not
            named.
        pair: the column of the second text; detected only if `text` is not named either.
        label: the column of the label or the tags; detected if not named.
        task: "classification", "regression" or "tagging"; follows from the columns and the train
            labels if not named.
        encoding: of text files; UTF-8 if not named.
        fraction: the share of the train rows that is used, in (0, 1].
        split_seed: fixes the splits that are made and the fraction that is drawn.
        tag_scheme: "iob1", "iob2" or "iobes", which tags of spans are converted to.

    Raises:
        DataError: the data cannot be used; one message with the place and the remedy.
        ConfigError: `fraction`, `task`, `split_seed` or `tag_scheme` is out of range.
    """
    _check(task, split_seed, tag_scheme)
    tables = _open(source, encoding)
    train = tables.splits["train"]
    columns, said = find_columns(train, text, pair, label, task)
    read = _extract(tables, columns)
    if columns.task == "tagging":
        read = _in_scheme(read, tables, columns, tag_scheme)
    splits = complete(read.parts, columns.task, split_seed, train.source, read.whole)
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
        classes=train.classes.get(columns.label or "", ()),
    )


@dataclass(frozen=True)
class _Read:
    """The labelled splits of a source, with what is to be said of them.

    Attributes:
        whole: the rows of train that stand for themselves; None if all do.
    """

    parts: Mapping[SplitName, Examples]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    whole: frozenset[int] | None = None


def _check(task: str | None, split_seed: int, tag_scheme: str) -> None:
    faults = []
    if task not in (None, *get_args(TaskName)):
        faults.append(f"task is {task!r}; it must be one of {', '.join(get_args(TaskName))}.")
    if tag_scheme not in SCHEMES:
        faults.append(f"tag_scheme is {tag_scheme!r}. {did_you_mean(tag_scheme, SCHEMES)}")
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
    classes: frozenset[str | float] = frozenset()
    whole = None
    for split, table in sorted(tables.splits.items(), key=lambda item: item[0] != "train"):
        if split != "train" and not has_labels(table, columns, classes):
            lack = "labels in" if columns.label in table.columns else "column"
            notes.append(
                f"{table.source} is not used, for it has no {lack} {columns.label!r}; "
                f"a {split} split is drawn from train instead."
            )
            continue
        used = table if split == "train" else table.without_parts()
        extracted = (extract_tagged if columns.task == "tagging" else extract)(used, columns)
        parts[split] = extracted.examples
        notes += [*table.notes, *extracted.notes]
        warnings += [*table.warnings, *extracted.warnings]
        if split == "train":
            whole = extracted.whole
            notes += _phrases(extracted)
        if split == "train" and columns.task != "regression":
            labels = extracted.examples.labels or ()
            classes = frozenset(value for label in labels for value in classes_of(label))
    return _Read(parts, tuple(notes), tuple(warnings), whole)


def _phrases(train: Extracted) -> list[str]:
    """What is learnt from where rows are parts of others."""
    if train.whole is None:
        return []
    return [
        f"Train holds {len(train.examples):,} different phrases of sentiment trees, "
        f"{len(train.whole):,} of them whole sentences; dev and test are whole sentences alone."
    ]


def _in_scheme(read: _Read, tables: Tables, columns: Columns, target: Scheme) -> _Read:
    """The same splits with their tags in one scheme; what tags follow is judged on train."""
    labels = read.parts["train"].labels or ()
    found = detect([label for label in labels if isinstance(label, tuple)])
    parts = dict(read.parts)
    warnings = list(read.warnings)
    if found is not None:
        for split, examples in read.parts.items():
            parts[split], said = rewrite(examples, tables.splits[split], found, target)
            warnings += said
    note = scheme_note(columns.label or "", found, target)
    return replace(read, parts=parts, notes=(*read.notes, note), warnings=tuple(warnings))


def _provenance(source: Source, tables: Tables, splits: Splits, seed: int) -> dict[str, str]:
    """Where every split comes from."""
    origin = {str(name): table.source for name, table in tables.splits.items()}
    origin.update({str(name): f"drawn from train, seed {seed}" for name in splits.made})
    named = source if isinstance(source, str | Path) else tables.name
    return {"source": str(named), **origin}
