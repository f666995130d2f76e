"""The answer that needs no text: what every real method must beat."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from totune.baselines import saving
from totune.baselines.base import BASELINES, Baseline, Embed, FittedBaseline
from totune.data.examples import Examples
from totune.linear_model import ABSENT, unit_scale
from totune.tasks.base import UNKNOWN, Task
from totune.tasks.multi_label import MultiLabel
from totune.tasks.regression import Regression


@BASELINES.register("majority")
@dataclass(frozen=True)
class Majority(Baseline):
    """The most frequent class for every row, the labels of most rows, or the mean of scores."""

    reads_text: ClassVar[bool] = False

    def fit(
        self, train: Examples, targets: np.ndarray, task: Task, seed: int, embed: Embed | None
    ) -> FittedBaseline:
        if isinstance(task, Regression):
            return FittedMajority(self, np.array([unit_scale(targets, task).mean()]))
        if isinstance(task, MultiLabel):
            shares = task.flat(targets).mean(axis=0, dtype=np.float64)
            return FittedMajority(self, np.clip(logit(shares), ABSENT, -ABSENT))
        counts = np.bincount(targets[targets != UNKNOWN], minlength=task.outputs)
        shares = counts / max(1, counts.sum())
        return FittedMajority(self, np.log(np.maximum(shares, np.exp(ABSENT))))

    def load(self, folder: Path, task: Task, embed: Embed | None) -> FittedBaseline:
        _, arrays = saving.read(folder, self)
        return FittedMajority(self, arrays["answer"])


@dataclass(frozen=True)
class FittedMajority(FittedBaseline):
    """The same outputs for every row: logarithms of the labels' shares [C], or the mean [1].

    Where rows have several labels they are log-odds [C].
    """

    baseline: Majority
    answer: NDArray[np.float64]

    def outputs(self, examples: Examples) -> NDArray[Any]:
        return np.tile(self.answer, (len(examples), 1))

    @property
    def parameters(self) -> int:
        return int(self.answer.size)

    def save(self, folder: Path) -> None:
        saving.write(folder, self.baseline, {}, {"answer": self.answer})
