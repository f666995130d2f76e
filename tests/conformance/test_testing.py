"""The shipped checks: what conforms passes, and each fault is found."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import totune
from totune.registry import Registry
from totune.testing import check_baseline, check_head, check_strategy

OTHERS = pytest.mark.slow  # the suites beside this one hold them to more


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("linear", "siamese") else OTHERS)
        for name in totune.HEADS.names()
    ],
)
def test_every_head_passes(name: str) -> None:
    check_head(totune.HEADS.create(name))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "bitfit" else OTHERS)
        for name in totune.STRATEGIES.names()
    ],
)
def test_every_strategy_passes(name: str) -> None:
    check_strategy(totune.STRATEGIES.create(name, {"layers": "top"}))


@pytest.mark.parametrize("name", totune.BASELINES.names())
def test_every_baseline_passes(name: str) -> None:
    check_baseline(totune.BASELINES.create(name))


class Faulty(totune.HeadModule):
    """A linear layer with one fault."""

    def __init__(self, fault: str, width: int, outputs: int) -> None:
        super().__init__()
        self.fault = fault
        self.out = nn.Linear(width, outputs + (fault == "shape"))
        self.unused = nn.Linear(2, 2) if fault == "gradient" else nn.Identity()
        self.noise = torch.rand(1) if fault == "saving" else torch.zeros(1)

    def forward(self, states: totune.States) -> Tensor:
        vectors = states.tokens[0].states.sum(dim=1) if self.fault == "padding" else None
        outputs: Tensor = self.out(states.tokens[0].mean() if vectors is None else vectors)
        if self.fault == "company":
            outputs = outputs - outputs.mean(dim=0)
        if self.fault == "seed":
            outputs = outputs + torch.rand(1)
        return outputs + self.noise


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("shape", "outputs have shape"),
        ("gradient", "no gradient reaches unused"),
        ("padding", "padding, or the rows beside it, change"),
        ("company", "padding, or the rows beside it, change"),
        ("seed", "padding, or the rows beside it, change|the same seed gives other"),
        ("saving", "saved and loaded, it predicts something else"),
        ("", None),
    ],
)
def test_a_faulty_head_is_found(
    fault: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry: Registry[Any] = totune.HEADS
    registry.names()  # modules register once, so all of the package's own must have
    monkeypatch.setattr(registry, "_members", dict(registry._members))

    @registry.register("faulty")
    @dataclass(frozen=True)
    class FaultyHead(totune.Head):
        wants: ClassVar[tuple[totune.InputKind, ...]] = ("tokens",)

        def build(self, width: int, task: totune.Task) -> Faulty:
            return Faulty(fault, width, task.outputs)

    if message is None:
        check_head(FaultyHead())
        return
    with pytest.raises(AssertionError, match=message):
        check_head(FaultyHead())


def test_what_is_not_registered_or_not_frozen_is_found() -> None:
    class Plain(totune.Head):
        wants: ClassVar[tuple[totune.InputKind, ...]] = ("pooled",)

        def build(self, width: int, task: totune.Task) -> Any:
            raise NotImplementedError

    with pytest.raises(AssertionError, match="Plain has no name: decorate it"):
        check_head(Plain())
