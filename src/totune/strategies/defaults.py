"""How long and at which rate a strategy trains, where the user sets neither.

Three epochs of 100 rows are twelve steps, which teaches an encoder nothing; three epochs of 20,000
rows are plenty. So the number of epochs follows from the number of training rows: enough optimizer
steps (Mosbach et al. 2021 and Zhang et al. 2021 fine-tune small sets for about 20 epochs), within
bounds. Rates follow from the width of the encoder and from the task, batch sizes and patience from
the rows.

Fitted on measured runs (`python -m benchmarks.defaults`, docs/defaults.md), but for BitFit, PEFT's
other methods and gradual unfreezing, which follow by analogy.
"""

import math
from dataclasses import dataclass
from typing import Any

USUAL_ROWS = 1_000  # where the data is not known, as in `totune plan` without data
WIDTH = 384  # of the encoder that most runs were measured with
FEW_ROWS = 500  # train rows below which batches are smaller
DEV_ROWS = 200  # dev rows from which "no better for some epochs" is more than chance


@dataclass(frozen=True)
class TrainingFacts:
    """What the defaults of a run follow from.

    Attributes:
        rows: train rows (sentences where words are tagged).
        dev_rows: dev rows.
        width: the encoder's hidden size; None for encoders other than transformers.
        task: name of the task.
    """

    rows: int
    dev_rows: int
    width: int | None = None
    task: str = "classification"


@dataclass(frozen=True)
class TrainingRule:
    """The defaults of one strategy.

    Attributes:
        learning_rate: peak rate for classification at a width of 384.
        examples: training examples that a run is to see, every epoch counted.
        least_epochs: lower bound of the number of epochs.
        most_epochs: its upper bound.
        tagging: factor of the rate where words are tagged.
        regression: factor of the rate where scores are predicted.
    """

    learning_rate: float
    examples: int
    least_epochs: int
    most_epochs: int
    tagging: float = 2.0
    regression: float = 0.5

    def epochs(self, rows: int) -> int:
        """Passes over `rows` rows."""
        wanted = math.ceil(self.examples / rows)
        return min(max(wanted, self.least_epochs), self.most_epochs)

    @property
    def usual_epochs(self) -> int:
        """Epochs where nothing is known of the data."""
        return self.epochs(USUAL_ROWS)

    def rate(self, width: int | None, task: str) -> float:
        """The peak rate, to two digits: smaller for a wider transformer, by the root of widths."""
        factor = {"tagging": self.tagging, "regression": self.regression}.get(task, 1.0)
        if width is not None:
            factor *= math.sqrt(WIDTH / width)
        return float(f"{self.learning_rate * factor:.2g}")

    def options(self, facts: TrainingFacts) -> dict[str, Any]:
        """The options of a strategy that this rule decides."""
        return {
            "learning_rate": self.rate(facts.width, facts.task),
            "num_train_epochs": self.epochs(facts.rows),
        }


FINE_TUNING = TrainingRule(1e-4, examples=6_000, least_epochs=3, most_epochs=20)
LAST_K = TrainingRule(2e-4, examples=6_000, least_epochs=3, most_epochs=20, regression=1.0)
# Every batch holds all pairs of its rows, so few passes are enough (docs/defaults.md).
CONTRASTIVE = TrainingRule(1e-4, examples=800, least_epochs=3, most_epochs=10)
GRADUAL_UNFREEZING = TrainingRule(2e-4, examples=4_000, least_epochs=2, most_epochs=15)
# What is inserted begins as no change, or is few parameters: more steps, at larger rates.
ADAPTERS = TrainingRule(1e-3, examples=12_000, least_epochs=5, most_epochs=40)
LORA = TrainingRule(2e-3, examples=12_000, least_epochs=5, most_epochs=40)
BITFIT = TrainingRule(3e-3, examples=12_000, least_epochs=5, most_epochs=40)
PEFT = TrainingRule(3e-3, examples=12_000, least_epochs=5, most_epochs=40)


def batch_size(rows: int) -> int:
    """Rows per optimizer step: half as many where that is needed for enough steps."""
    return 16 if rows < FEW_ROWS else 32


def frozen_patience(epochs: int, usual: int, dev_rows: int) -> int:
    """Epochs without a better dev score that end feature extraction; all on a small dev split."""
    return usual if dev_rows >= DEV_ROWS else epochs
