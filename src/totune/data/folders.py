"""Files as sources: one file, a folder of splits, or a file named for each split."""

from collections.abc import Mapping
from pathlib import Path

from totune.data.examples import SplitName
from totune.data.files import TABLE_SUFFIXES, missing_file, table_stem, table_suffix
from totune.data.readers import read_table
from totune.data.tables import Table, Tables
from totune.errors import DataError
from totune.registry import did_you_mean

SPLIT_ALIASES: Mapping[SplitName, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val", "dev_matched", "validation_matched"),
    "test": ("test", "testing"),
}
_FORMATS = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt")


def read_path(path: Path, encoding: str | None) -> Tables:
    """The tables of a file (all of it train) or of a folder with train, dev and test files."""
    if not path.exists():
        raise missing_file(path)
    if path.is_dir():
        return _read_folder(path, encoding)
    return Tables(path.name, {"train": read_table(path, encoding)})


def read_mapping(paths: Mapping[str, str | Path], encoding: str | None) -> Tables:
    """The tables of `{"train": path, "dev": path, "test": path}`; dev and test may be missing."""
    named: dict[SplitName, Path] = {}
    for key, path in paths.items():
        split = split_of(key)
        if split is None:
            names = [alias for aliases in SPLIT_ALIASES.values() for alias in aliases]
            raise DataError(f"There is no split called {key!r}. {did_you_mean(key, names)}")
        if split in named:
            raise DataError(f"Two files are named for the {split} split; give one.")
        named[split] = Path(path)
    if "train" not in named:
        raise DataError(f"A train file is needed; only {', '.join(named) or 'nothing'} was given.")
    return Tables(named["train"].name, _read_splits(named, encoding))


def split_of(name: str) -> SplitName | None:
    """Which split a file's stem or a hub's split name stands for, if any."""
    for split, aliases in SPLIT_ALIASES.items():
        if name.lower() in aliases:
            return split
    return None


def _read_folder(folder: Path, encoding: str | None) -> Tables:
    files = sorted(f for f in folder.iterdir() if f.is_file() and table_suffix(f.name))
    chosen: dict[SplitName, Path] = {}
    notes = []
    for split in SPLIT_ALIASES:
        candidates = sorted(
            (file for file in files if split_of(table_stem(file.name)) == split), key=_preference
        )
        if candidates:
            chosen[split] = candidates[0]
        if len(candidates) > 1:
            others = ", ".join(file.name for file in candidates[1:])
            notes.append(f"{folder}: the {split} split is {candidates[0].name}, not {others}.")
    if "train" not in chosen:
        held = ", ".join(file.name for file in files) or "no table at all"
        raise DataError(
            f"{folder} has no train file (train{TABLE_SUFFIXES[0]}, train{TABLE_SUFFIXES[1]}, ...; "
            f"it holds {held}). Rename one, or give the file itself instead of the folder."
        )
    return Tables(folder.resolve().name, _read_splits(chosen, encoding), tuple(notes))


def _preference(file: Path) -> tuple[int, int, str]:
    """Order among files for one split: usual names first, then formats that hold types."""
    split = split_of(table_stem(file.name)) or "train"
    alias = SPLIT_ALIASES[split].index(table_stem(file.name).lower())
    suffix = table_suffix(file.name) or ""
    return alias, _FORMATS.index(suffix) if suffix in _FORMATS else len(_FORMATS), file.name


def _read_splits(paths: Mapping[SplitName, Path], encoding: str | None) -> dict[SplitName, Table]:
    train = read_table(paths["train"], encoding)
    tables: dict[SplitName, Table] = {"train": train}
    for split, path in paths.items():
        if split != "train":
            tables[split] = _like(train, path, encoding)
    return tables


def _like(train: Table, path: Path, encoding: str | None) -> Table:
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
