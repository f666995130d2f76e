"""From what a person names to a dataset in three splits, checked."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from totune.data.audit import audit, count_classes
from totune.data.columns import find_columns
from totune.data.examples import (
    SPLIT_ALIASES,
    Columns,
    Dataset,
    Examples,
    SplitName,
    TaskName,
    classes_of,
    split_of,
)
from totune.data.extraction import extract, has_labels
from totune.data.files import TABLE_SUFFIXES, missing_file, table_stem, table_suffix
from totune.data.folds import fold_splits, make_folds
from totune.data.hub import open_hub, open_saved, read_example
from totune.data.inputs import read_inputs
from totune.data.label_sets import SEPARATOR, describe_label_sets, label_columns
from totune.data.memory import MemoryTable, memory_name, memory_splits, memory_table
from totune.data.profiles import infer_task
from totune.data.readers import read_table
from totune.data.selection import LabelMap, Where, check_label_map, keep_where, map_labels
from totune.data.splits import TEST_SHARE, complete, shrink
from totune.data.tables import Remarks, SourceTable
from totune.data.tagging.schemes import SCHEMES, Scheme, detect
from totune.data.tagging.sentences import extract_tagged, rewrite, scheme_note
from totune.errors import ConfigError, DataError
from totune.registry import did_you_mean

__all__ = ["load_dataset", "read_inputs"]

DataSource = str | Path | MemoryTable
SplitTables = Mapping[SplitName, SourceTable]  # always with a train split
_FORMATS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt", ".xlsx")  # best first


def load_dataset(
    source: DataSource,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    task: TaskName | None = None,
    encoding: str | None = None,
    fraction: float = 1.0,
    split_seed: int = 0,
    tag_scheme: Scheme = "iob2",
    label_separator: str | None = None,
    group: str | None = None,
    folds: int | None = 1,
    test_size: float | None = None,
    evaluate_on: SplitName = "test",
    where: Where | None = None,
    label_map: LabelMap | None = None,
) -> Dataset:
    """Reads a labelled dataset, finds its columns and task, and makes the splits it lacks.

    Args:
        source: a file; a folder with train, dev and test files, or one that `save_to_disk` of the
            library datasets wrote; `hub:NAME[/CONFIG]`;
            `example:NAME`; data in memory (a data frame, an Arrow table, a `datasets.Dataset`, a
            list of records, a dict of columns, or (texts, labels)); or a file, or data in memory,
            for each split (`{"train": ..., "test": ...}`), as a `datasets.DatasetDict` is.
        text: the column of the (first) text, or of the words that are tagged; detected if not
            named.
        pair: the column of the second text; detected only if `text` is not named either.
        label: the column of the label or the tags; or columns of 0 and 1, one for each label, with
            commas between; detected if not named.
        task: "classification", "multi-label", "regression" or "tagging"; follows from the columns
            and the train labels if not named.
        encoding: of text files; UTF-8 if not named.
        fraction: the share of the train rows that is used, in (0, 1].
        split_seed: fixes the splits that are made and the fraction that is drawn.
        tag_scheme: "iob1", "iob2" or "iobes", which tags of spans are converted to.
        label_separator: what stands between several labels of a row, "|" if not named; naming it
            asks for the task "multi-label".
        group: the column of groups that are drawn whole, if rows of one are alike.
        folds: of a cross-validation; 1 for one split, None for what suits the data.
        test_size: share of the rows that a drawn test split gets; 10% if None.
        evaluate_on: "dev" has the dev split that the data has stand for test; nothing is drawn
            from train then, and no rows choose an epoch.
        where: which rows of every split are used: for each column the value wanted, or several.
        label_map: what labels are called from here on, None to leave their rows out, "" for rows
            without a label; labels that are not in it keep their names.

    Raises:
        DataError: the data cannot be used; one message with the place and the remedy.
        ConfigError: `fraction`, `task`, `split_seed` or `tag_scheme` is out of range.
    """
    _check(task, split_seed, tag_scheme, label_separator)
    if label_separator is not None:
        task = "multi-label"
    remarks = Remarks()
    name, tables = read_splits(source, encoding, remarks)
    if where:
        tables = {split: keep_where(table, where, remarks) for split, table in tables.items()}
    separator = label_separator or SEPARATOR
    columns, said = find_columns(tables["train"], text, pair, label, task, separator, group)
    if label_map:
        tables, columns = _with_labels(tables, columns, label_map, task, remarks)
    train = tables["train"]
    parts = _extract(tables, columns, remarks)
    if columns.task == "tagging":
        parts = _in_scheme(parts, tables, columns, tag_scheme, remarks)
    remarks.notes += said
    origin: dict[SplitName, str] = {name: table.source for name, table in tables.items()}
    validation = None
    if evaluate_on == "dev":
        parts, origin = _on_dev(parts, origin, remarks)
    elif folds != 1:
        validation = make_folds(
            parts, columns.task, folds, split_seed, train.source, remarks, fraction
        )
    _check_unused(parts, train.source, group, test_size)
    if validation is not None:
        splits: Mapping[SplitName, Examples] = fold_splits(validation, 0, 1)
    else:
        share = TEST_SHARE if test_size is None else test_size
        splits = complete(parts, columns.task, split_seed, train.source, remarks, share)
        splits = shrink(splits, columns.task, fraction, split_seed, remarks)
    every = splits["train"] if validation is None else validation.rows
    if columns.task == "multi-label":
        remarks.notes.append(describe_label_sets(every))
    remarks.warnings += audit(splits, columns.task, train.source)
    if columns.task == "classification":
        remarks.notes.append(count_classes(every))
    drawn = f"{validation.count} folds" if validation else "drawn from train"
    places = {
        str(name): origin[name] if name in parts else f"{drawn}, seed {split_seed}"
        for name in splits
    }
    return Dataset(
        name=name,
        train=splits["train"],
        dev=splits["dev"],
        test=splits["test"],
        columns=columns,
        notes=tuple(remarks.notes),
        warnings=tuple(remarks.warnings),
        provenance={"source": str(source if isinstance(source, str | Path) else name), **places},
        classes=train.classes.get(columns.label or "", ()),
        folds=validation,
    )


def _with_labels(
    tables: SplitTables,
    columns: Columns,
    names: LabelMap,
    task: TaskName | None,
    remarks: Remarks,
) -> tuple[SplitTables, Columns]:
    """Every split with its labels renamed; the task follows from the new names, if not named."""
    if columns.task in ("tagging", "multi-label") or columns.label is None:
        raise ConfigError(
            "label_map renames labels of which a text has one; those of several per row and tags "
            "of words it cannot map."
        )
    check_label_map(tables["train"], columns.label, names)
    mapped = {
        split: map_labels(table, columns.label, names, remarks) for split, table in tables.items()
    }
    found = task or infer_task(mapped["train"].columns[columns.label])
    return mapped, replace(columns, task=found)


def _check(task: str | None, split_seed: int, tag_scheme: str, label_separator: str | None) -> None:
    faults = []
    if label_separator is not None and task not in (None, "multi-label"):
        faults.append(
            f"label_separator={label_separator!r} stands between several labels of a row, which is "
            f"for the task multi-label, not {task}. Leave out one of them."
        )
    if label_separator is not None and not label_separator.strip():
        faults.append("label_separator is empty; it must be what stands between labels, as in ';'.")
    if task not in (None, *get_args(TaskName)):
        faults.append(f"task is {task!r}; it must be one of {', '.join(get_args(TaskName))}.")
    if tag_scheme not in SCHEMES:
        faults.append(f"tag_scheme is {tag_scheme!r}. {did_you_mean(tag_scheme, SCHEMES)}")
    if split_seed < 0:
        faults.append(f"split_seed is {split_seed}; it must be 0 or more.")
    if faults:
        raise ConfigError(faults)


def _on_dev(
    parts: Mapping[SplitName, Examples], origin: Mapping[SplitName, str], remarks: Remarks
) -> tuple[Mapping[SplitName, Examples], dict[SplitName, str]]:
    """The splits with dev in place of test, and none in place of dev; where each is from."""
    train, dev = parts["train"], parts.get("dev")
    if dev is None:
        raise DataError(
            f"{origin['train']}: `evaluate_on='dev'` needs a dev split, and there is none with "
            "labels. Name a dev file with `dev`, or leave it out."
        )
    unread = " The test split is not read." if "test" in parts else ""
    remarks.notes.append(
        f"Scores are measured on dev ({len(dev):,} rows). Train is not shrunk, so no rows are held "
        f"out for choosing an epoch: the last one is kept.{unread}"
    )
    places = {**origin, "test": origin["dev"], "dev": "none held out"}
    return {"train": train, "dev": train.take(()), "test": dev}, places


def _check_unused(
    parts: Mapping[SplitName, Examples], source: str, group: str | None, test_size: float | None
) -> None:
    """Refuses what was asked of splits that nobody draws.

    Raises:
        DataError: with what is of no use, and why.
    """
    if test_size is not None and "test" in parts:
        raise DataError(
            f"{source}: there is a test split, so `test_size={test_size:g}` has nothing to do. "
            "Leave it out, or name the train file alone."
        )
    if group is not None and {"dev", "test"} <= set(parts):
        raise DataError(
            f"{source}: no split is drawn, so `group={group!r}` has nothing to keep together. "
            "Leave it out, or name the train file alone."
        )


def _extract(
    tables: SplitTables, columns: Columns, remarks: Remarks
) -> Mapping[SplitName, Examples]:
    """Examples of every labelled split; dev and test files without labels are left aside."""
    parts: dict[SplitName, Examples] = {}
    take = extract_tagged if columns.task == "tagging" else extract
    classes: frozenset[str | float] = frozenset()
    for split, table in sorted(tables.items(), key=lambda item: item[0] != "train"):
        if split != "train" and not has_labels(table, columns, classes):
            named = label_columns(table, columns.label)
            present = all(name in table.columns for name in named)
            lack = "labels in" if present else "column"
            remarks.notes.append(
                f"{table.source} is not used, for it has no {lack} {columns.label!r}; "
                f"a {split} split is drawn from train instead."
            )
            continue
        remarks.add(table.remarks)
        if split != "train":
            parts[split] = take(table.without_parts(), columns, remarks)
            continue
        train = parts[split] = take(table, columns, remarks)
        if train.whole is not None:
            remarks.notes.append(
                f"Train holds {len(train):,} different phrases of sentiment trees, "
                f"{sum(train.whole):,} of them whole sentences; dev and test are whole sentences "
                "alone."
            )
        if columns.task != "regression":
            classes = frozenset(c for label in train.labels or () for c in classes_of(label))
    return parts


def _in_scheme(
    parts: Mapping[SplitName, Examples],
    tables: SplitTables,
    columns: Columns,
    target: Scheme,
    remarks: Remarks,
) -> Mapping[SplitName, Examples]:
    """The same splits with their tags in one scheme; what tags follow is judged on train."""
    labels = parts["train"].labels or ()
    found = detect([label for label in labels if isinstance(label, tuple)])
    remarks.notes.append(scheme_note(columns.label or "", found, target))
    if found is None:
        return parts
    return {
        split: rewrite(examples, tables[split], found, target, remarks)
        for split, examples in parts.items()
    }


def read_splits(
    source: DataSource, encoding: str | None, remarks: Remarks
) -> tuple[str, SplitTables]:
    """A short name for reports, and the table of every split there is.

    Args:
        source: as of `load_dataset`.
        encoding: of text files; UTF-8 if None.
        remarks: is told which of several files stands for a split.

    Raises:
        DataError: the source cannot be read, or has no train split.
    """
    splits = memory_splits(source)
    if splits is not None:
        return _read_named(source, _named_splits(splits), encoding)
    if isinstance(source, str) and source.startswith("hub:"):
        reference = source.removeprefix("hub:")
        return reference, {split: rows.table() for split, rows in open_hub(reference).items()}
    if isinstance(source, str) and source.startswith("example:"):
        example = source.removeprefix("example:")
        return example, {"train": read_example(example)}
    if not isinstance(source, str | Path):
        return memory_name(source), {"train": memory_table(source)}
    path = Path(source).expanduser()
    if not path.exists():
        raise missing_file(path)
    if any((path / name).is_file() for name in ("dataset_dict.json", "dataset_info.json")):
        return path.resolve().name, read_splits(open_saved(path), encoding, remarks)[1]
    if path.is_dir():
        return path.resolve().name, _read_files(_files_of_folder(path, remarks), encoding)
    return path.name, {"train": read_table(path, encoding)}


def _named_splits(given: Mapping[str, Any]) -> Mapping[SplitName, Any]:
    """What `{"train": ..., "dev": ..., "test": ...}` holds; dev and test may be missing."""
    named: dict[SplitName, Any] = {}
    for key, rows in given.items():
        split = split_of(str(key))
        if split is None:
            names = [alias for aliases in SPLIT_ALIASES.values() for alias in aliases]
            raise DataError(f"There is no split called {key!r}. {did_you_mean(key, names)}")
        if split in named:
            raise DataError(f"Two sources are named for the {split} split; give one.")
        named[split] = rows
    if "train" not in named:
        raise DataError(f"A train split is needed; only {', '.join(named) or 'nothing'} was given.")
    return named


def _read_named(
    source: Any, named: Mapping[SplitName, Any], encoding: str | None
) -> tuple[str, SplitTables]:
    """A name and the tables of splits that are files, or in memory."""
    if all(isinstance(rows, str | Path) for rows in named.values()):
        files = {split: Path(path) for split, path in named.items()}
        return files["train"].name, _read_files(files, encoding)
    return memory_name(source), {
        split: read_table(Path(rows), encoding)
        if isinstance(rows, str | Path)
        else memory_table(rows, split)
        for split, rows in named.items()
    }


def _files_of_folder(folder: Path, remarks: Remarks) -> Mapping[SplitName, Path]:
    files = sorted(f for f in folder.iterdir() if f.is_file() and table_suffix(f.name))
    chosen: dict[SplitName, Path] = {}
    for split in SPLIT_ALIASES:
        candidates = sorted(
            (file for file in files if split_of(table_stem(file.name)) == split), key=_preference
        )
        if candidates:
            chosen[split] = candidates[0]
        if len(candidates) > 1:
            others = ", ".join(file.name for file in candidates[1:])
            remarks.notes.append(
                f"{folder}: the {split} split is {candidates[0].name}, not {others}."
            )
    if "train" not in chosen:
        held = ", ".join(file.name for file in files) or "no table at all"
        raise DataError(
            f"{folder} has no train file (train{TABLE_SUFFIXES[0]}, train{TABLE_SUFFIXES[1]}, ...; "
            f"it holds {held}). Rename one, or give the file itself instead of the folder."
        )
    return chosen


def _preference(file: Path) -> tuple[int, int, str]:
    """Order among files for one split: usual names first, then formats that hold types."""
    split = split_of(table_stem(file.name)) or "train"
    alias = SPLIT_ALIASES[split].index(table_stem(file.name).lower())
    suffix = table_suffix(file.name) or ""
    return alias, _FORMATS.index(suffix) if suffix in _FORMATS else len(_FORMATS), file.name


def _read_files(files: Mapping[SplitName, Path], encoding: str | None) -> SplitTables:
    train = read_table(files["train"], encoding)
    return {
        split: train if split == "train" else _read_like(train, path, encoding)
        for split, path in files.items()
    }


def _read_like(train: SourceTable, path: Path, encoding: str | None) -> SourceTable:
    """Reads a split whose columns should be those of train: they are if both lack a header.

    A split without header beside a train file with one, of as many columns, takes train's names;
    what looked like a header is a row if train has none.
    """
    table = read_table(path, encoding)
    if list(table.columns) == list(train.columns) or len(table.columns) != len(train.columns):
        return table
    if not train.header and table.unit == "line":
        return read_table(path, encoding, header=False)
    return table if table.header else table.renamed(list(train.columns))
