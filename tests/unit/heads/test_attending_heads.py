"""What ESIM, BCN and the light pair heads share, on tensors alone."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from totune.heads.base import Head, HeadModule, States
from totune.heads.bcn import Bcn
from totune.heads.cross_attention import CrossAttention
from totune.heads.esim import Esim
from totune.heads.siamese import Siamese
from totune.modules.tokens import Tokens
from totune.tasks.base import Task
from totune.tasks.classification import Classification
from totune.tasks.regression import Regression

WIDTH = 6
LENGTHS = ([5, 1, 3], [2, 4, 1])  # of the first and of the second texts
HEADS = [Esim(hidden_size=5), Bcn(hidden_size=5), CrossAttention(), Siamese()]
OF_TOKENS = HEADS[:3]
CLASSES = Classification(("no", "perhaps", "yes"))


def head_id(head: object) -> str | None:
    return head.name if isinstance(head, Head) else None


def tokens_of(lengths: list[int], seed: int, junk: float, padding: int) -> Tokens:
    mask = torch.arange(max(lengths) + padding) < torch.tensor(lengths).unsqueeze(1)
    generator = torch.Generator().manual_seed(seed)
    states = torch.full((*mask.shape, WIDTH), junk, dtype=torch.float64)
    # Drawn token by token, so that the same tokens come whatever the padding.
    states[mask] = torch.randn(sum(lengths), WIDTH, generator=generator, dtype=torch.float64)
    return Tokens(states, mask)


def states_for(head: Head, junk: float = 0.0, padding: int = 0) -> States:
    """The same random batch for whatever the head wants."""
    texts = tuple(tokens_of(at, seed, junk, padding) for seed, at in enumerate(LENGTHS))
    match head.wants[0]:
        case "pair":
            return States(tokens=texts)
        case "tokens":
            return States(tokens=texts[:1])
        case _:
            return States(vectors=tuple(text.mean() for text in texts))


def row_of(states: States, row: int) -> States:
    """One row without padding."""
    texts = (
        Tokens(t.states[row, t.mask[row]][None], t.mask[row, t.mask[row]][None])
        for t in states.tokens
    )
    return States(tuple(v[row : row + 1] for v in states.vectors), tuple(texts))


def built(head: Head, task: Task = CLASSES, seed: int = 0) -> HeadModule:
    torch.manual_seed(seed)
    return head.build(WIDTH, task).double().eval()


def gradients(module: HeadModule, states: States) -> Iterator[tuple[str, Tensor]]:
    module.zero_grad()
    module(states).square().sum().backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        yield name, parameter.grad.clone()


@pytest.mark.parametrize("head", HEADS, ids=head_id)
@pytest.mark.parametrize(("task", "outputs"), [(CLASSES, 3), (Regression(0.0, 5.0), 1)])
def test_as_many_outputs_as_the_task_asks(head: Head, task: Task, outputs: int) -> None:
    module, states = built(head, task), states_for(head)
    for mode in (True, False):
        found = module.train(mode)(states)
        assert found.shape == (3, outputs)
        assert found.dtype == torch.float64
        assert torch.isfinite(found).all()


@pytest.mark.parametrize("head", HEADS, ids=head_id)
def test_gradients_reach_every_parameter(head: Head) -> None:
    for name, gradient in gradients(built(head), states_for(head)):
        assert gradient.abs().sum() > 0, name


@pytest.mark.parametrize("head", OF_TOKENS, ids=head_id)
@pytest.mark.parametrize("junk", [1e3, float("nan"), float("inf")])
def test_what_padding_holds_changes_nothing(head: Head, junk: float) -> None:
    module, clean = built(head), states_for(head)
    padded = states_for(head, junk, padding=3)
    torch.testing.assert_close(module(padded), module(clean))
    expected = dict(gradients(module, clean))
    for name, gradient in gradients(module, padded):
        torch.testing.assert_close(gradient, expected[name], msg=name)


@pytest.mark.parametrize("head", OF_TOKENS, ids=head_id)
def test_training_reads_no_padding_either(head: Head) -> None:
    module = built(head).train()
    padded = states_for(head, float("nan"), padding=3)
    assert torch.isfinite(module(padded)).all()
    for name, gradient in gradients(module, padded):
        assert torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("head", HEADS, ids=head_id)
def test_a_row_alone_is_as_in_its_batch(head: Head) -> None:
    module, states = built(head), states_for(head, junk=7.0)
    together = module(states)
    for row in range(3):  # two of them with a text of one token
        torch.testing.assert_close(module(row_of(states, row))[0], together[row])


@pytest.mark.parametrize("head", HEADS, ids=head_id)
def test_a_batch_of_one_trains(head: Head) -> None:
    module, one = built(head).train(), row_of(states_for(head), 1)
    for name, gradient in gradients(module, one):
        assert torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("head", HEADS, ids=head_id)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_equal_inputs_give_equal_finite_outputs(head: Head, value: float) -> None:
    text = Tokens(torch.full((4, 3, WIDTH), value).double(), torch.ones(4, 3, dtype=torch.bool))
    vectors = (text.mean(),) * 2
    states = States(vectors, (text,) * (2 if head.wants == ("pair",) else 1))
    module = built(head)
    outputs = module(states)
    assert torch.isfinite(outputs).all()
    torch.testing.assert_close(outputs, outputs[:1].expand(4, -1))
    for name, gradient in gradients(module, states):
        assert torch.isfinite(gradient).all(), name


@pytest.mark.parametrize("head", HEADS, ids=head_id)
def test_dropout_is_for_training_alone(head: Head) -> None:
    module, states = built(head), states_for(head)
    torch.testing.assert_close(module(states), module(states), atol=0, rtol=0)
    module.train()
    assert not torch.equal(module(states), module(states))


@pytest.mark.parametrize("head", HEADS, ids=head_id)
def test_the_seed_decides_the_weights(head: Head) -> None:
    states = states_for(head)
    first = built(head)(states)
    assert torch.equal(built(head)(states), first)
    assert not torch.equal(built(head, seed=1)(states), first)
