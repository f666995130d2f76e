"""Which block leads, and which others might: a bootstrap over the rows that are scored."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from totune.analyses.measuring.probing import Probed
from totune.metrics import get_metric
from totune.tasks.base import Task

RESAMPLES = 1_000

_AT_ONCE = 100  # resamples whose weights are in memory together
_LOW, _HIGH = 2.5, 97.5  # percentiles

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Leading:
    """The block that scores best on average over the seeds of a subject.

    Attributes:
        block: 0..L.
        score: its mean over seeds, on the rows as they are.
        low: of its 95% interval over resampled rows.
        high: of the same.
        ties: other blocks that resampled rows do not set apart from it: the 95% interval of the
            difference reaches 0.
        control: the best control of any block, its mean over seeds.
        selective: whether the 95% interval of the lead over that control lies above 0. Best is
            held against best, since the best of many blocks is lucky even where none tells
            anything.
    """

    block: int
    score: float
    low: float
    high: float
    ties: list[int]
    control: float
    selective: bool


@dataclass(frozen=True)
class Scoring:
    """How predictions for one set of rows are scored.

    Attributes:
        task: what is predicted.
        metric: the score.
        targets: of the rows, [N].
        shuffled: what the control of each block is scored against, [L + 1, N].
    """

    task: Task
    metric: str
    targets: NDArray[Any]
    shuffled: NDArray[Any]

    def scores(self, probes: Sequence[Probed]) -> tuple[Floats, Floats]:
        """Of the probes of every block, and of their controls: [L + 1] each."""
        whole = np.ones((1, len(self.targets)))
        controls = [self.of_control(at, probe, whole)[0] for at, probe in enumerate(probes)]
        return self.of_probes(probes, whole)[:, 0], np.array(controls)

    def of_probes(self, probes: Sequence[Probed], weights: Floats) -> Floats:
        """Scores of every block under row weights [R, N]: [L + 1, R]."""
        predictions = np.stack([probe.predictions for probe in probes])
        return get_metric(self.metric).resampled(
            self.targets, predictions, weights, self.task.outputs
        )

    def of_control(self, block: int, probe: Probed, weights: Floats) -> Floats:
        """Scores of one block's control under row weights [R, N]: [R]."""
        metric, classes = get_metric(self.metric), self.task.outputs
        found = metric.resampled(self.shuffled[block], probe.control[None], weights, classes)
        return np.asarray(found[0])

    def leading(self, runs: Sequence[Sequence[Probed]], seed: int) -> Leading:
        """The leading block of one subject.

        All seeds and blocks are scored on the same resamples, so differences are paired; the
        seeds are taken as they are.

        Args:
            runs: a probe per block, of each seed.
            seed: of the resamples.
        """
        sign = get_metric(self.metric).sign
        scored = [self.scores(probes) for probes in runs]
        real, control = (np.mean(both, axis=0) for both in zip(*scored, strict=True))  # [L + 1]
        best, luckiest = int(np.argmax(sign * real)), int(np.argmax(sign * control))
        drawn = [self._means(runs, luckiest, weights) for weights in self._resamples(seed)]
        reals, lucky = (np.concatenate(both, axis=-1) for both in zip(*drawn, strict=True))
        leads = np.percentile(sign * (reals[best] - reals), _LOW, axis=1)  # [L + 1]
        low, high = np.percentile(reals[best], (_LOW, _HIGH))
        return Leading(
            block=best,
            score=float(real[best]),
            low=float(low),
            high=float(high),
            ties=[at for at in range(len(real)) if at != best and leads[at] <= 0],
            control=float(control[luckiest]),
            selective=bool(np.percentile(sign * (reals[best] - lucky), _LOW) > 0),
        )

    def _means(
        self, runs: Sequence[Sequence[Probed]], luckiest: int, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Means over seeds: of every block's probe [L + 1, R], of one block's control [R]."""
        real = np.mean([self.of_probes(probes, weights) for probes in runs], axis=0)
        lucky = [self.of_control(luckiest, probes[luckiest], weights) for probes in runs]
        return real, np.mean(lucky, axis=0)

    def _resamples(self, seed: int) -> Iterator[Floats]:
        """How often each row is drawn, [R, N] at a time."""
        generator, rows = np.random.default_rng(seed), len(self.targets)
        even = np.full(rows, 1 / rows)
        for _ in range(RESAMPLES // _AT_ONCE):
            yield generator.multinomial(rows, even, _AT_ONCE).astype(np.float64)
