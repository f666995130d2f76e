"""What a labelled dataset is, once read: plain columns, split into train, dev and test.

Everything downstream (tasks, batches, baselines, statistics) sees only these types; where rows
came from (a file, a hub, a wheel) is kept for messages alone.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

T = TypeVar("T")

SplitName = Literal["train", "dev", "test"]
ALL_ROWS = 0  # stands for a fold where nothing is held out for testing
SPLIT_ALIASES: Mapping[SplitName, tuple[str, ...]] = {
    "train": ("train", "training"),
    "dev": ("dev", "validation", "valid", "val", "dev_matched", "validation_matched"),
    "test": ("test", "testing"),
}
TaskName = Literal["classification", "multi-label", "regression", "tagging"]
Label = str | float | tuple[str, ...]  # of tagging: one tag per word; or any number of labels


@dataclass(frozen=True)
class Examples:
    """The rows of one split, as parallel columns.

    Attributes:
        texts: the first (or only) text of each row.
        pairs: the second text of each row, or None when the task has single texts.
        labels: one label per row: strings for classification, floats for regression, a tuple of
            tags for tagging, a sorted tuple of names where rows have several; None when the file
            has none (prediction).
        words: the words of each row where words are tagged; `texts` then joins them by spaces.
        documents: which document each row comes from; rows of one document stand together, in
            order. None where documents are not known.
        whole: whether each row stands for itself, where the others are parts of such rows (phrases
            of a sentence) that only training sees; None where all do.
        rows: where each row stood in its source, for messages ("train.csv row 12").
        groups: which group each row belongs to, where a person has named groups: rows of one are
            drawn into one split. Not part of the digest, which splits follow from.
    """

    texts: tuple[str, ...]
    labels: tuple[Label, ...] | None = None
    pairs: tuple[str, ...] | None = None
    rows: tuple[int, ...] = ()
    words: tuple[tuple[str, ...], ...] | None = None
    documents: tuple[int, ...] | None = None
    whole: tuple[bool, ...] | None = None
    groups: tuple[int, ...] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        """The text columns of each row: one string, or two for a pair."""
        if self.pairs is None:
            return ((text,) for text in self.texts)
        return zip(self.texts, self.pairs, strict=True)

    @property
    def counts(self) -> np.ndarray:
        """How many positions each row has, [N]: its words where words are tagged, else one."""
        if self.words is None:
            return np.ones(len(self), dtype=np.int64)
        return np.array([len(words) for words in self.words], dtype=np.int64)

    def take(self, indices: Sequence[int] | np.ndarray) -> "Examples":
        """The rows at `indices`, in that order."""
        at = [int(i) for i in indices]

        def taken(column: tuple[T, ...] | None) -> tuple[T, ...] | None:
            return None if column is None else tuple(column[i] for i in at)

        return Examples(
            texts=tuple(self.texts[i] for i in at),
            labels=taken(self.labels),
            pairs=taken(self.pairs),
            rows=tuple(self.rows[i] for i in at) if self.rows else (),
            words=taken(self.words),
            documents=taken(self.documents),
            whole=taken(self.whole),
            groups=taken(self.groups),
        )

    def digest(self) -> str:
        """A hash of the texts and labels in their order: the identity of this data."""
        hasher = hashlib.sha256()
        for row in self:
            for text in row:
                hasher.update(text.encode("utf-8", "surrogatepass") + b"\x1f")
            hasher.update(b"\x1e")
        for label in self.labels or ():
            hasher.update(repr(label).encode() + b"\x1e")
        for words in self.words or ():
            hasher.update("\x1f".join(words).encode("utf-8", "surrogatepass") + b"\x1e")
        for document in self.documents or ():
            hasher.update(str(document).encode() + b"\x1e")
        return hasher.hexdigest()[:32]


def classes_of(label: Label) -> tuple[str | float, ...]:
    """What a label is made of: one class or score, the tag of each word, or several labels."""
    return label if isinstance(label, tuple) else (label,)


def split_of(name: str) -> SplitName | None:
    """Which split a file's stem or a hub's split name stands for, if any."""
    for split, aliases in SPLIT_ALIASES.items():
        if name.lower() in aliases:
            return split
    return None


@dataclass(frozen=True)
class Columns:
    """Which columns of the source were read as what, and the task that follows from them.

    Attributes:
        text: the (first) text, or the words where words are tagged.
        label: the labels; of several columns of 0 and 1 their names with commas between.
        document: what tells documents apart, None where that is not known.
        label_separator: between several labels of a row where they are one text; None where a
            row has one.
        group: what tells groups apart that are drawn whole, None where a person named none.
    """

    text: str
    label: str | None
    pair: str | None = None
    task: TaskName = "classification"
    document: str | None = None
    label_separator: str | None = None
    group: str | None = None


@dataclass(frozen=True)
class Folds:
    """The cross-validation of a dataset; `totune.data.folds` makes its splits.

    Attributes:
        rows: all of them.
        task: decides the strata.
        count: number of folds.
        seed: fixes the folds, with the number of a repetition.
        dev: the dev split that the data has; where it has none, each fold holds out 10% of the
            rows that it does not test on.
    """

    rows: Examples
    task: TaskName
    count: int
    seed: int
    dev: Examples | None = None


@dataclass(frozen=True)
class Dataset:
    """A labelled dataset in three splits.

    Attributes:
        name: short name for reports ("rotten-tomatoes", "train.csv").
        train: of a cross-validation this and the other splits are those of its first fold.
        dev: no rows where none are held out for choosing an epoch.
        columns: what was detected or named.
        notes: what a person should be told, one sentence each ("3 rows without text dropped: ...").
        warnings: what may spoil the result, one sentence each, with counts.
        classes: the classes in the order that the source declares; empty where it declares none.
        folds: the cross-validation of all rows, or None.
    """

    name: str
    train: Examples
    dev: Examples
    test: Examples
    columns: Columns
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    provenance: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    folds: Folds | None = None

    def splits(self) -> dict[SplitName, Examples]:
        return {"train": self.train, "dev": self.dev, "test": self.test}

    def digest(self) -> str:
        """The identity of the whole dataset: its splits and their order."""
        parts = "".join(split.digest() for split in self.splits().values())
        return hashlib.sha256(parts.encode()).hexdigest()[:32]
