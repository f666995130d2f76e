"""One tag per word: cross-entropy, F1 of spans where tags mark spans, else accuracy of words.

Targets and predictions are codes of tags, [N, W], -1 after a sentence's last word: those of
`totune.metrics.spans` where tags follow a scheme, class indices where they follow none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

import numpy as np

from totune.data.examples import Examples, Label
from totune.data.tagging.schemes import Scheme, detect, follows, is_tag
from totune.errors import DataError
from totune.metrics import METRICS, PADDING, span_scores
from totune.metrics.spans import OUTSIDE, PREFIXES
from totune.tasks.base import TASKS, UNKNOWN, Task

if TYPE_CHECKING:
    from torch import Tensor

USED = {"iob1": "BI", "iob2": "BI", "iobes": "BIES"}  # the prefixes of each scheme
HIGHEST = np.iinfo(np.int16).max


@TASKS.register("tagging")
@dataclass(frozen=True)
class Tagging(Task):
    """A tag for every word of a row.

    Attributes:
        labels: the tags that can be predicted, O first, the others sorted. Of a scheme every type
            of training has all prefixes, also those it happens not to have there: so each span that
            the scheme can write can be predicted, at the price of a row of weights.
        scheme: how tags mark spans, "" if they mark none.
    """

    labels: tuple[str, ...]
    scheme: Scheme | Literal[""] = ""

    per_word: ClassVar[bool] = True

    @property
    def outputs(self) -> int:
        return len(self.labels)

    @property
    def metrics(self) -> tuple[str, ...]:
        if self.scheme:
            return ("span-f1", "span-precision", "span-recall", "token-accuracy")
        return ("token-accuracy", "token-f1")

    @cached_property
    def types(self) -> tuple[str, ...]:
        """The types of spans that can be predicted, sorted; empty without a scheme."""
        return _types(self.labels) if self.scheme else ()

    @classmethod
    def from_examples(cls, train: Examples, order: Sequence[str] = ()) -> "Tagging":
        sentences = _sentences(train.labels or ())
        found = {tag for tags in sentences for tag in tags}
        scheme = detect(sentences)
        if scheme is not None:
            kinds = _types(found)
            found = {"O"} | {_tag(mark, kind) for kind in kinds for mark in USED[scheme]}
        return cls(tuple(sorted(found, key=lambda tag: (tag != "O", tag))), scheme or "")

    def targets(self, labels: Sequence[Label]) -> np.ndarray:
        """Tags as codes [N, W].

        What training never saw gets a code of its own, above those of training: a type the next
        numbers of types, a tag without scheme the next number, in sorted order of these labels.

        Raises:
            DataError: if a tag does not fit the scheme, or there are more than int16 can number.
        """
        sentences = _sentences(labels)
        codes = self._codes({tag for tags in sentences for tag in tags})
        flat = np.array([codes[tag] for tags in sentences for tag in tags], dtype=np.int64)
        return _padded(flat, np.array([len(tags) for tags in sentences], dtype=np.int64))

    def flat(self, targets: np.ndarray) -> np.ndarray:
        codes = targets[targets != PADDING]
        classes = np.full(1 + max(codes.max(initial=0), self._known.max()), UNKNOWN, dtype=np.int64)
        classes[self._known] = np.arange(self.outputs)
        return np.asarray(classes[codes])

    def known(self, flat: np.ndarray) -> np.ndarray:
        return np.asarray(flat != UNKNOWN)

    def losses(self, outputs: "Tensor", targets: "Tensor") -> "Tensor":
        from torch.nn import functional  # not at the top: baselines need no PyTorch

        return functional.cross_entropy(outputs, targets, ignore_index=UNKNOWN, reduction="none")

    def predictions(self, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
        return _padded(self._known[outputs.argmax(axis=1)], counts)

    def scores(self, outputs: np.ndarray) -> np.ndarray | None:
        return None

    def evaluate(
        self, targets: np.ndarray, predictions: np.ndarray, scores: np.ndarray | None = None
    ) -> dict[str, float]:
        """Every metric of the task by name, and the F1 of each type as "f1:PER"."""
        found = {name: METRICS[name](targets, predictions, self.outputs) for name in self.metrics}
        by_type = span_scores(targets, predictions, len(self.types)) if self.scheme else []
        parts = zip(self.types, by_type, strict=True)
        return found | {f"f1:{kind or '_'}": score.f1 for kind, score in parts}

    def decode(self, predictions: np.ndarray) -> list[Label]:
        names = dict(zip(self._known.tolist(), self.labels, strict=True))
        rows = predictions.tolist()
        return [tuple(names[code] for code in row if code != PADDING) for row in rows]

    def degenerate(self, targets: np.ndarray, predictions: np.ndarray) -> str | None:
        if self.scheme:
            nothing = (targets > OUTSIDE).any() and not (predictions > OUTSIDE).any()
            return "predicts no span" if nothing else None
        found = np.unique(predictions[predictions != PADDING])
        if len(found) == 1 and len(np.unique(targets[targets != PADDING])) > 1:
            return f"predicts only {self.labels[int(found[0])]!r}"
        return None

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "labels": list(self.labels), "scheme": self.scheme}

    def allowed_transitions(self) -> np.ndarray | None:
        """Which class may follow which under the scheme; None without one.

        Returns:
            [C + 2, C + 2] bool, from row to column; C stands for the start of a sentence, C + 1 for
            its end. No sentence is empty, so the end does not follow the start.
        """
        if not self.scheme:
            return None
        count = len(self.labels)
        allowed = np.zeros((count + 2, count + 2), dtype=bool)
        # Both ends of a sentence are as an O beyond them.
        for row, before in enumerate((*self.labels, "O")):
            allowed[row, :count] = [follows(before, tag, self.scheme) for tag in self.labels]
        allowed[:count, count + 1] = [follows(tag, "O", self.scheme) for tag in self.labels]
        return allowed

    @cached_property
    def _known(self) -> np.ndarray:
        """The code of each class, [C]."""
        codes = self._codes(set(self.labels))
        return np.array([codes[tag] for tag in self.labels], dtype=np.int64)

    def _codes(self, tags: set[str]) -> dict[str, int]:
        """The code of each of these tags, whether they are classes or not."""
        if not self.scheme:
            return _numbered(self.labels, tags)
        for tag in tags:
            if not is_tag(tag):
                raise DataError(
                    f"The tag {tag!r} is neither O nor begins with B-, I-, E- or S-, as those of "
                    f"training do ({self.scheme}). Check which column is read as tags."
                )
        numbers = _numbered(self.types, _types(tags))
        return {tag: _code(tag, numbers) for tag in tags}


def _sentences(labels: Sequence[Label]) -> list[tuple[str, ...]]:
    return [cast("tuple[str, ...]", tags) for tags in labels]


def _parts(tag: str) -> tuple[str, str]:
    """The prefix and the type of a tag: "B-PER" -> "B", "PER"; O is its own prefix."""
    prefix, _, kind = tag.partition("-")
    return prefix, kind


def _tag(prefix: str, kind: str) -> str:
    return f"{prefix}-{kind}" if kind else prefix


def _types(tags: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({_parts(tag)[1] for tag in tags if tag != "O"}))


def _numbered(first: Sequence[str], others: Iterable[str]) -> dict[str, int]:
    """The place of each name: those of `first` in their order, then the others sorted."""
    names = [*first, *sorted(set(others).difference(first))]
    return {name: number for number, name in enumerate(names)}


def _code(tag: str, numbers: dict[str, int]) -> int:
    """The code of a tag by the numbers of types; see `totune.metrics.spans`."""
    prefix, kind = _parts(tag)
    return OUTSIDE if tag == "O" else 1 + 4 * numbers[kind] + PREFIXES.index(prefix)


def _padded(flat: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Codes [P] by rows of `counts` [N] words: [N, W] int16, padded."""
    if flat.max(initial=0) > HIGHEST:
        raise DataError(
            f"There are too many different tags: their codes go up to {flat.max():,}, and "
            f"{HIGHEST:,} is the limit. Check which column is read as tags."
        )
    inside = np.arange(counts.max(initial=0)) < counts[:, None]
    rows = np.full(inside.shape, PADDING, dtype=np.int16)
    rows[inside] = flat
    return rows
