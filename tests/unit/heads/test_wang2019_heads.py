"""What must hold of the heads of Wang et al. 2019, on tensors; values are in `tests/parity`."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from totune.errors import ConfigError
from totune.heads.base import HEADS, HeadModule, States
from totune.modules.tokens import Tokens
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

WIDTH = 12
CLASSES = Classification(("a", "b", "c"))
LENGTHS = ([4, 1, 6, 2], [3, 5, 1, 2])
PAIR_HEADS = ("bimpm", "bimpm-no-input-lstm", "sim-transformer")
NAMES = (*PAIR_HEADS, "densenet", "highway-lstm")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def built(name: str, task: Task = CLASSES, **options: Any) -> HeadModule:
    """The head in eval mode, its weights spread so that a fault shows."""
    torch.manual_seed(0)
    small = {"hidden_size": 7, **({"num_perspectives": 3} if name in PAIR_HEADS else {})}
    head = HEADS.create(name, {**small, **options}).build(WIDTH, task)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return head.eval()


def texts(lengths: list[int], longest: int | None = None) -> Tokens:
    longest = longest or max(lengths)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return Tokens(torch.randn(len(lengths), longest, WIDTH), mask)


def states_for(name: str, lengths: tuple[list[int], list[int]] = LENGTHS) -> States:
    wanted = 2 if name in PAIR_HEADS else 1
    return States(tokens=tuple(texts(part) for part in lengths[:wanted]))


def doubled(given: States) -> States:
    return States(tokens=tuple(Tokens(t.states.double(), t.mask) for t in given.tokens))


def with_padding(tokens: Tokens, value: float, extra: int) -> Tokens:
    states = tokens.states.masked_fill(~tokens.mask.unsqueeze(-1), value)
    more = torch.full((len(states), extra, WIDTH), value, dtype=states.dtype)
    missing = torch.zeros(len(states), extra, dtype=torch.bool)
    return Tokens(torch.cat([states, more], 1), torch.cat([tokens.mask, missing], 1))


def test_a_row_of_outputs_per_example(name: str) -> None:
    for task in (CLASSES, Regression(0.0, 5.0)):
        head = built(name, task)
        for mode in (True, False):
            for lengths in (LENGTHS, ([1], [1]), ([5], [2]), ([1, 1], [1, 1])):
                found = head.train(mode)(states_for(name, lengths))
                assert found.shape == (len(lengths[0]), task.outputs)
                assert torch.isfinite(found).all()


@pytest.mark.parametrize("value", [0.0, 1e6, -1e6, float("nan")])
def test_padding_changes_nothing(name: str, value: float) -> None:
    head, given = built(name).double(), doubled(states_for(name))
    with torch.no_grad():
        expected = head(given)
        for extra in (0, 5):
            padded = States(tokens=tuple(with_padding(t, value, extra) for t in given.tokens))
            torch.testing.assert_close(head(padded), expected, atol=1e-11, rtol=0)


def test_batch_mates_change_nothing(name: str) -> None:
    head, given = built(name).double(), doubled(states_for(name))
    with torch.no_grad():
        together = head(given)
        for row in range(len(LENGTHS[0])):
            own = (int(text.lengths[row]) for text in given.tokens)
            alone = tuple(
                Tokens(text.states[row : row + 1, :n], text.mask[row : row + 1, :n])
                for text, n in zip(given.tokens, own, strict=True)
            )
            found = head(States(tokens=alone))[0]
            torch.testing.assert_close(found, together[row], atol=1e-11, rtol=0)


def test_rows_differ_and_equal_rows_agree(name: str) -> None:
    head = built(name)
    with torch.no_grad():
        outputs = head(states_for(name))
        assert torch.cdist(outputs, outputs).add(torch.eye(4)).min() > 1e-3
        one = states_for(name, ([5], [3]))
        copies = States(
            tokens=tuple(Tokens(t.states.repeat(4, 1, 1), t.mask.repeat(4, 1)) for t in one.tokens)
        )
        found = head(copies)
        torch.testing.assert_close(found, found[:1].expand(4, -1), atol=1e-6, rtol=0)


def junk(given: States, kind: str) -> None:
    for text in given.tokens:
        if kind == "equal":
            text.states.copy_(text.states[:1, :1].clone().expand_as(text.states))
        else:
            text.states.zero_()


@pytest.mark.parametrize("kind", ["equal", "zero"])
def test_equal_and_zero_tokens_have_finite_gradients(name: str, kind: str) -> None:
    head, given = built(name), states_for(name)
    junk(given, kind)
    for text in given.tokens:
        text.states.requires_grad_()
    outputs = head(given)
    outputs.square().sum().backward()
    gradients = [p.grad for p in head.parameters()] + [t.states.grad for t in given.tokens]
    for gradient in gradients:
        assert gradient is not None
        assert torch.isfinite(gradient).all()


def test_gradients_reach_every_parameter_and_token_and_no_padding(name: str) -> None:
    head, given = built(name), states_for(name)
    for text in given.tokens:
        text.states.requires_grad_()
    outputs = head(given)
    (outputs * torch.randn_like(outputs)).sum().backward()
    for key, parameter in head.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.abs().sum() > 0, key
    for text in given.tokens:
        gradient = text.states.grad
        assert gradient is not None
        assert gradient.abs().sum(-1)[text.mask].min() > 0
        assert not gradient[~text.mask].any()


def test_it_starts_from_kaimings_draw_with_moderate_outputs(name: str) -> None:
    torch.manual_seed(0)
    head = HEADS.create(name).build(384, CLASSES).eval()
    for key, parameter in head.named_parameters():
        if parameter.dim() > 1 and parameter.numel() > 2000:
            scale = math.sqrt(2 / parameter[0].numel())
            assert float(parameter.detach().std()) == pytest.approx(scale, rel=0.1), key
        elif "bias" in key.rpartition(".")[2]:
            assert not parameter.any(), key
    mask = torch.arange(20) < torch.tensor([20, 7, 12, 3])[:, None]
    pair = tuple(Tokens(torch.randn(4, 20, 384), mask) for _ in range(2))
    with torch.no_grad():
        outputs = head(States(tokens=pair if name in PAIR_HEADS else pair[:1]))
    assert 0.01 < outputs.abs().mean() < 10


def test_dropout_is_for_training_alone(name: str) -> None:
    given = states_for(name)
    assert HEADS.create(name).dropout == 0.1  # type: ignore[attr-defined]
    with torch.no_grad():
        head = built(name).train()
        assert not torch.equal(head(given), head(given))
        assert torch.equal(head.eval()(given), head(given))
        without = built(name, dropout=0.0)
        torch.testing.assert_close(without.train()(given), without.eval()(given))


def test_it_runs_in_bfloat16_beside_float32(name: str) -> None:
    head, given = built(name), states_for(name)
    with torch.no_grad():
        expected = head(given)
        with torch.autocast("cpu", torch.bfloat16):
            found = head(given).float()
    spread = expected.std()
    assert (found - expected).abs().max() < 0.2 * spread
    outputs: Tensor
    with torch.autocast("cpu", torch.bfloat16):
        outputs = head.train()(given)
    outputs.float().sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in head.parameters())


@pytest.mark.parametrize("name", PAIR_HEADS)
def test_it_learns_whether_two_texts_hold_the_same_tokens(name: str) -> None:
    head = built(name, Regression(0.0, 1.0), hidden_size=16, dropout=0.0)
    first, targets = texts([5] * 16), (torch.arange(16) % 2).float()
    other = torch.where(targets.bool()[:, None, None], first.states.flip(1), texts([5] * 16).states)
    assert_learnt(head, States(tokens=(first, Tokens(other, first.mask))), targets)


@pytest.mark.parametrize("name", ["densenet", "highway-lstm"])
def test_it_learns_whether_a_token_is_somewhere_in_the_text(name: str) -> None:
    head = built(name, Regression(0.0, 1.0), hidden_size=16, dropout=0.0)
    text, targets = texts([5] * 16), (torch.arange(16) % 2).float()
    text.states[targets.bool(), 3] = 1.5
    assert_learnt(head, States(tokens=(text,)), targets)


def assert_learnt(head: HeadModule, given: States, targets: Tensor) -> None:
    optimizer = torch.optim.AdamW(head.train().parameters(), lr=3e-3)
    for _ in range(50):
        loss = (head(given).squeeze(-1) - targets).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = (head.eval()(given).squeeze(-1) > 0.5) == targets.bool()
    assert right.all()


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("bimpm", "num_perspectives", 0),
        ("bimpm-no-input-lstm", "hidden_size", 0),
        ("sim-transformer", "num_layers", 0),
        ("densenet", "dropout", 1.0),
        ("highway-lstm", "num_layers", 0),
    ],
)
def test_options_out_of_range_are_refused(name: str, option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"head {name}: {option}={value!r}"):
        HEADS.create(name, {option: value})
