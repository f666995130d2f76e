"""Tagging without context: each word gets the tag it has most often in training."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from totune.baselines import saving
from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.data.examples import Examples
from totune.linear_model import ABSENT
from totune.tasks.base import UNKNOWN, Task


@BASELINES.register("most-frequent-tag")
@dataclass(frozen=True)
class WordLookup(Baseline):
    """The most frequent training tag of each word, case kept; of new words that of all words."""

    tasks: ClassVar[tuple[str, ...]] = ("tagging",)

    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        classes = task.flat(targets).tolist()
        pairs = zip(_words(train), classes, strict=True)
        counts = Counter(pair for pair in pairs if pair[1] != UNKNOWN)
        overall: Counter[int] = Counter()
        for (_, found), count in counts.items():
            overall[found] += count
        # of tags as frequent as each other the first class stays: whoever comes last wins
        rising = sorted(counts.items(), key=lambda item: (item[1], -item[0][1]))
        tags = {word: found for (word, found), _ in rising}
        other = min(overall, key=lambda found: (-overall[found], found), default=0)
        return FittedLookup(self, tags, other, task.outputs)

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        facts, arrays = saving.read(folder, self)
        tags = dict(zip(facts["words"], arrays["classes"].tolist(), strict=True))
        return FittedLookup(self, tags, int(facts["other"]), task.outputs)


@dataclass(frozen=True)
class FittedLookup(FittedBaseline):
    """The class of every training word, that of other words, and how many classes there are."""

    baseline: WordLookup
    tags: dict[str, int]
    other: int
    classes: int

    def outputs(self, examples: Examples) -> NDArray[Any]:
        found = [self.tags.get(word, self.other) for word in _words(examples)]
        outputs = np.full((len(found), self.classes), ABSENT)
        outputs[np.arange(len(found)), found] = 0.0
        return outputs

    @property
    def parameters(self) -> int:
        return len(self.tags) + 1

    def save(self, folder: Path) -> None:
        words = sorted(self.tags)
        classes = np.array([self.tags[word] for word in words], dtype=np.int64)
        facts = {"words": words, "other": self.other}
        saving.write(folder, self.baseline, facts, {"classes": classes})


def _words(examples: Examples) -> list[str]:
    assert examples.words is not None, "only rows of tagged words come here"
    return [word for row in examples.words for word in row]
