"""What may spoil a dataset's results: repeats, contradictions, classes missing where needed.

Which texts a model was trained on is kept as hashes: known again by who has them, read by nobody.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from totune.data.examples import Examples, Label, SplitName, TaskName, classes_of
from totune.data.label_sets import check_label_sets
from totune.errors import DataError
from totune.text import counted

MOST_HASHES = 100_000  # of a split's texts that are kept: 0.8 MB beside any model
_HASH_BYTES = 8  # two different texts have the same hash in 1 of 2^64 cases
FEW_ROWS = 5  # a class with fewer rows in train can hardly be learnt
RARE_ROWS, RARE_SHARE = 50, 0.1  # fewer, and at most this share of the most frequent class: rare
_SHOWN = 5
_MANY = 10  # classes that are all shown with their counts
_LEAKS: tuple[tuple[SplitName, SplitName], ...] = (
    ("dev", "train"),
    ("test", "train"),
    ("test", "dev"),
)
TELLING_WORDS = 6  # sentences of fewer words (headings, results) recur by themselves

Key = tuple[str, ...]


def audit(parts: Mapping[SplitName, Examples], task: TaskName, source: str) -> list[str]:
    """Warnings on the splits, one sentence each, with counts.

    Raises:
        DataError: train holds one class, one score, one tag, or a class per row.
    """
    if task == "multi-label":
        warnings = check_label_sets(parts["train"], source)
        found = (_repeats(parts), _contradictions(parts), _unseen(parts), _rare(parts))
        return warnings + [warning for group in found for warning in group]
    _check_variety(parts["train"], task, source)
    if task == "tagging":
        return [*_repeated_sentences(parts), *_unseen_tags(parts), *_untagged(parts)]
    warnings = [*_repeats(parts), *_contradictions(parts)]
    if task == "classification":
        warnings += [*_unseen(parts), *_rare(parts)]
    return warnings


def count_classes(train: Examples) -> str:
    """A sentence with the classes and how many rows of train each has, the most frequent first."""
    found = Counter(train.labels)
    counts = sorted(found.items(), key=lambda item: (-item[1], str(item[0])))
    shown = ", ".join(f"{label!r} {count:,}" for label, count in counts[:_MANY])
    rest = [count for _, count in counts[_MANY:]]
    if rest:
        rows = f"{rest[-1]:,} to {rest[0]:,}" if rest[-1] < rest[0] else f"{rest[0]:,}"
        shown += f" and {len(rest):,} more of {rows} rows each"
    return f"{len(counts):,} classes (train rows): {shown}."


def text_key(row: Iterable[str]) -> Key:
    """What makes two rows duplicates: their texts but for case and white space."""
    return tuple(" ".join(text.casefold().split()) for text in row)


def _check_variety(train: Examples, task: TaskName, source: str) -> None:
    counts = Counter(value for label in train.labels or () for value in classes_of(label))
    if len(counts) == 1:
        only = next(iter(counts))
        noun = {"classification": "class", "regression": "score", "tagging": "tag"}[task]
        what = f"{noun}, {only!r}" if isinstance(only, str) else f"{noun}, {only}"
        raise DataError(
            f"{source}: all {len(train):,} usable train rows have one {what}; there is nothing to "
            "learn. Is it the right `label` column?"
        )
    if task == "classification" and len(counts) == len(train) > 2:
        raise DataError(
            f"{source}: the {len(train):,} usable train rows have {len(counts):,} different "
            "labels, so no class repeats. Is it the right `label` column? For scores, say "
            "`task='regression'`."
        )


def _repeats(parts: Mapping[SplitName, Examples]) -> list[str]:
    warnings = []
    keys = {name: [text_key(row) for row in split] for name, split in parts.items()}
    for name, other in _LEAKS:
        known = set(keys[other])
        count = sum(key in known for key in keys[name])
        if count:
            share = count / len(keys[name])
            warnings.append(
                f"In {counted(count, f'{name} row')} ({share:.1%}) the text is also in {other}: "
                f"{name} scores may be too high."
            )
    return warnings


def _repeated_sentences(parts: Mapping[SplitName, Examples]) -> list[str]:
    warnings = []
    keys = {
        name: [text_key(row) for row in split if len(row[0].split()) >= TELLING_WORDS]
        for name, split in parts.items()
    }
    for name, other in _LEAKS:
        known = set(keys[other])
        count = sum(key in known for key in keys[name])
        if count:
            warnings.append(
                f"Also in {other}: {counted(count, f'{name} sentence')} of {TELLING_WORDS} or "
                f"more words ({count / len(keys[name]):.1%} of those); {name} scores may be too "
                "high."
            )
    return warnings


def _unseen_tags(parts: Mapping[SplitName, Examples]) -> list[str]:
    known = {tag for tags in parts["train"].labels or () for tag in classes_of(tags)}
    warnings = []
    for name, split in parts.items():
        tags = (tag for tags in split.labels or () for tag in classes_of(tags))
        unseen = Counter(tag for tag in tags if tag not in known)
        if unseen:
            warnings.append(
                f"Train lacks the tags of {counted(unseen.total(), f'{name} word')} "
                f"({name_classes(unseen)}); no model can predict them."
            )
    return warnings


def _untagged(parts: Mapping[SplitName, Examples]) -> list[str]:
    return [
        f"Every {name} word is tagged 'O': {name} scores cannot tell models apart."
        for name, split in parts.items()
        if {tag for tags in split.labels or () for tag in classes_of(tags)} == {"O"}
    ]


def _contradictions(parts: Mapping[SplitName, Examples]) -> list[str]:
    labels: dict[Key, list[Label]] = defaultdict(list)
    for split in parts.values():
        for row, label in zip(split, split.labels or (), strict=True):
            labels[text_key(row)].append(label)
    opposed = [given for given in labels.values() if len(set(given)) > 1]
    if not opposed:
        return []
    rows = sum(len(given) for given in opposed)
    return [f"Labels contradict each other for {counted(len(opposed), 'text')} (in {rows:,} rows)."]


def _unseen(parts: Mapping[SplitName, Examples]) -> list[str]:
    known = {name for label in parts["train"].labels or () for name in classes_of(label)}
    warnings = []
    for name, split in parts.items():
        labels = [set(classes_of(label)) - known for label in split.labels or ()]
        unseen = Counter(label for lacking in labels for label in lacking)
        if unseen:
            rows = sum(bool(lacking) for lacking in labels)
            warnings.append(
                f"Train lacks the labels of {counted(rows, f'{name} row')} "
                f"({name_classes(unseen)}); no model can predict them."
            )
    return warnings


def _rare(parts: Mapping[SplitName, Examples]) -> list[str]:
    counts = _class_counts(parts["train"])
    nouns = ("class", "classes")
    if any(isinstance(label, tuple) for label in parts["train"].labels or ()):
        nouns = ("label", "labels")
    few = Counter({label: count for label, count in counts.items() if count < FEW_ROWS})
    warnings = []
    if few:
        has = "has" if len(few) == 1 else "have"
        warnings.append(
            f"{len(few):,} {nouns[len(few) > 1]} {has} fewer than {FEW_ROWS} train rows "
            f"({name_classes(few)})."
        )
    most, rows = counts.most_common(1)[0]
    limit = min(RARE_ROWS, RARE_SHARE * rows + 1)
    rare = [label for label, count in counts.items() if FEW_ROWS <= count < limit]
    if rare:
        of_splits = {name: _class_counts(split) for name, split in parts.items()}
        told = "; ".join(
            f"{name} {name_classes({label: found[label] for label in rare})}"
            for name, found in of_splits.items()
        )
        be = "is" if len(rare) == 1 else "are"
        warnings.append(
            f"{len(rare):,} {nouns[len(rare) > 1]} {be} rare, with fewer than {RARE_ROWS} train "
            f"rows and at most {RARE_SHARE:.0%} of the {rows:,} of {most!r} ({told}): what is said "
            f"of {'it' if len(rare) == 1 else 'them'} rests on few rows."
        )
    return warnings


def _class_counts(split: Examples) -> Counter[str | float]:
    return Counter(name for label in split.labels or () for name in classes_of(label))


def name_classes(counts: Mapping[Label, int] | Mapping[str | float, int]) -> str:
    """Classes with their counts, the first few by name."""
    ordered = sorted(counts.items(), key=lambda item: str(item[0]))
    shown = ", ".join(f"{label!r}: {count:,}" for label, count in ordered[:_SHOWN])
    return shown + (f" and {len(ordered) - _SHOWN:,} more" if len(ordered) > _SHOWN else "")


@dataclass(frozen=True)
class SeenTexts:
    """The texts of a training split.

    Attributes:
        hashes: of texts that differ in more than case and white space, sorted, [at most
            `MOST_HASHES`] uint64; of more texts the smallest, a random sample (Broder 1997).
    """

    hashes: np.ndarray

    @classmethod
    def of(cls, train: Examples) -> "SeenTexts":
        return cls(np.unique(_hashes(train))[:MOST_HASHES])

    def count(self, rows: Examples) -> tuple[int, int]:
        """How many rows have a text of training, and of how many this is known.

        It is known of all rows, or of a random sample where training had more texts than are kept.
        Sentences of few words, which recur by themselves, are left aside where words are tagged.
        """
        hashes = _hashes(rows)
        if len(self.hashes) == MOST_HASHES:
            hashes = hashes[hashes <= self.hashes[-1]]
        return int(np.isin(hashes, self.hashes).sum()), len(hashes)


def _hashes(examples: Examples) -> np.ndarray:
    keys = [text_key(row) for row in examples]
    if examples.words is not None:
        keys = [key for key in keys if len(key[0].split()) >= TELLING_WORDS]
    return np.array([_hash(key) for key in keys], dtype=np.uint64)


def _hash(texts: Sequence[str]) -> int:
    content = "\x1f".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=_HASH_BYTES).digest(), "big")
