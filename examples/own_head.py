"""A head of one's own: registered, compared, saved, and loaded in a new process."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

import totune


class TwoLayers(totune.HeadModule):
    """Two linear layers."""

    def __init__(self, width: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, outputs))

    def forward(self, states: totune.States) -> torch.Tensor:
        outputs: torch.Tensor = self.net(states.vectors[0])
        return outputs


@totune.HEADS.register("two-layers")
@dataclass(frozen=True)
class TwoLayersHead(totune.Head):
    """Two layers on the vector of a text.

    Attributes:
        hidden: width between them.
    """

    hidden: int = 64
    wants: ClassVar[tuple[totune.InputKind, ...]] = ("pooled",)

    def build(self, width: int, task: totune.Task) -> totune.HeadModule:
        return TwoLayers(width, self.hidden, task.outputs)


if __name__ == "__main__":
    texts = [f"{how} film, number {n}" for n in range(60) for how in ("A joyful", "A dull")]
    data = (texts, ["good", "bad"] * 60)
    chosen = [totune.FeatureExtraction(num_train_epochs=3)]
    study = totune.compare(
        data, strategies=chosen, head=TwoLayersHead(hidden=32), seeds=2, out="studies/own-head"
    )
    use = "import own_head, sys, totune; print(totune.load(sys.argv[1]).predict(['A dull day']))"
    command = [sys.executable, "-c", use, str(study.best.resolve())]
    subprocess.run(command, check=True, cwd=Path(__file__).parent)
