"""What training tells: one record per epoch, as plain data."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class EpochRecord:
    """One epoch of one phase; metrics by name ("accuracy", "f1", "loss", ...).

    Attributes:
        phase: the phase's name.
        epoch: counted over the whole run, from 1.
        train: measured on the fly while training (dropout on); of a solved phase, after it. Of
            pairs: under the head of class means, but for the loss, which is that of pairs.
        dev: measured after the epoch.
        seconds: training and evaluations together.
        frozen_depth: the deepest frozen block, -1 if none (0 is the embeddings).
        cached: whether the frozen prefix was read from the cache.
        train_after: measured on the training split after the epoch, dropout off; empty unless the
            phase's stop compares it with `dev`.
        ended: why the phase ended with this epoch, "" if it went on.
    """

    phase: str
    epoch: int
    train: dict[str, float]
    dev: dict[str, float]
    seconds: float
    frozen_depth: int = -1
    cached: bool = False
    train_after: dict[str, float] = field(default_factory=dict)
    ended: str = ""


@dataclass
class History:
    """All epochs of a run, and what they took.

    Attributes:
        best: index into `epochs` of the best one by the dev metric, the latest of equals; -1
            before the first. At the end of training, of the one that is kept.
        step_seconds: time in training steps alone, evaluation excluded.
        examples: training examples seen.
    """

    epochs: list[EpochRecord] = field(default_factory=list)
    best: int = -1
    step_seconds: float = 0.0
    examples: int = 0

    @property
    def train_seconds(self) -> float:
        return sum(epoch.seconds for epoch in self.epochs)
