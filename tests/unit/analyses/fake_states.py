"""Hidden states made up for tests: what analyses read, without an encoder."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from totune.analyses.inputs.hidden_states import Subject
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

NO_ENCODER: Any = None
ROWS = {"train": 120, "dev": 100}


@dataclass
class FakeStates:
    """Noise, into which each block mixes the labels as strongly as `strengths` says.

    Attributes:
        labels: targets by split.
        strengths: by subject, one per block.
        change: what is done to vectors before they are handed out.
    """

    task: Task
    labels: dict[str, np.ndarray]
    strengths: dict[tuple[str, int | None], Sequence[float]]
    metric: str
    width: int = 8
    change: Callable[[Subject, str, np.ndarray], np.ndarray] = lambda _, __, vectors: vectors

    @property
    def context(self) -> Any:
        return SimpleNamespace(settings=SimpleNamespace(metric=self.metric))

    @property
    def depth(self) -> int:
        return len(next(iter(self.strengths.values()))) - 1

    def subjects(self) -> Iterator[Subject]:
        return (Subject(*subject, encoder=NO_ENCODER) for subject in self.strengths)

    def targets(self, split: str) -> np.ndarray:
        return self.labels[split]

    def vectors(
        self,
        subject: Subject,
        split: str,
        pooling: str = "mean",
        kept: np.ndarray | None = None,
    ) -> np.ndarray:
        """[N, L + 1, width]; equal calls give equal vectors."""
        labels = self.labels[split]
        key = [len(subject.label), subject.seed or 0, len(split)]
        noise = np.random.default_rng(key).standard_normal(
            (len(labels), self.depth + 1, self.width)
        )
        strengths = np.array(self.strengths[subject.label, subject.seed])
        noise[:, :, : self.width // 2] += (labels[:, None] * strengths)[:, :, None]
        vectors = self.change(subject, split, noise.astype(np.float32))
        return vectors if kept is None else vectors[kept]


def classes(
    strengths: Sequence[float] = (0, 1, 3),
    *,
    count: int = 2,
    metric: str = "accuracy",
    adapted: Sequence[Sequence[float]] = (),
) -> FakeStates:
    """Labels of `count` classes in turn; a fine-tuned subject per seed in `adapted`."""
    names = tuple("abcdefgh"[:count])
    labels = {split: np.arange(rows) % count for split, rows in ROWS.items()}
    subjects: dict[tuple[str, int | None], Sequence[float]] = {("pretrained", None): strengths}
    subjects |= {("fine-tuning", seed): given for seed, given in enumerate(adapted)}
    return FakeStates(Classification(names), labels, subjects, metric)


def scores(strengths: Sequence[float] = (0, 1, 3), metric: str = "pearson") -> FakeStates:
    """Scores between 0 and 1."""
    random = np.random.default_rng(5)
    labels = {split: random.random(rows).astype(np.float32) for split, rows in ROWS.items()}
    return FakeStates(Regression(0.0, 1.0), labels, {("pretrained", None): strengths}, metric)
