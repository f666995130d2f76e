"""The heads of Wang et al. 2019 against plain per-example, per-step networks (float64)."""

from collections.abc import Callable

import pytest
import torch
from tests.parity import plain_networks as plain
from torch import Tensor

from totune.heads.base import HEADS, HeadModule, States
from totune.modules.tokens import Tokens
from totune.tasks.classification import Classification

WIDTH = 6
SMALL = {"hidden_size": 4, "num_perspectives": 3}


def bimpm(head: HeadModule, first: Tensor, second: Tensor) -> Tensor:
    contexts = [plain.bilstm(head.matching.context, text) for text in (first, second)]
    found = plain.both_matches(head.matching.matching, *contexts)
    return plain.feed_forward(head.classifier, plain.last_states(head.aggregation.lstm, found))


def bimpm_no_input_lstm(head: HeadModule, first: Tensor, second: Tensor) -> Tensor:
    found = plain.both_matches(head.matching, (first, first), (second, second))
    return plain.feed_forward(head.classifier, plain.last_states(head.aggregation.lstm, found))


def sim_transformer(head: HeadModule, first: Tensor, second: Tensor) -> Tensor:
    contexts = [plain.bilstm(head.matching.context, text) for text in (first, second)]
    found = plain.both_matches(head.matching.matching, *contexts)
    return plain.feed_forward(head.classifier, plain.transformer_maxima(head.aggregation, found))


def densenet(head: HeadModule, pieces: Tensor) -> Tensor:
    states = pieces
    for transition, block, norm in zip(head.transitions, head.blocks, head.norms, strict=True):
        states = torch.stack([plain.linear(transition, s) for s in states])
        for part in block:
            states = plain.convolution(part, states)
        states = torch.stack([plain.layer_norm(norm, s).clamp_min(0) for s in states])
    return plain.linear(head.out, torch.cat([states.amax(0), pieces[0]]))


def highway_lstm(head: HeadModule, pieces: Tensor) -> Tensor:
    states = pieces
    for layer in head.layers:
        ahead, back = plain.bilstm(layer.lstm, states)
        new = []
        for t, state in enumerate(states):
            gate = plain.linear(layer.gate, state).sigmoid()
            carried = state if len(state) == len(gate) else plain.linear(layer.carry, state)
            new.append(gate * torch.cat([ahead[t], back[t]]) + (1 - gate) * carried)
        states = torch.stack(new)
    return plain.linear(head.out, states.amax(0))


CASES = [
    ("bimpm", bimpm, SMALL),
    ("bimpm-no-input-lstm", bimpm_no_input_lstm, SMALL),
    ("sim-transformer", sim_transformer, SMALL),
    ("sim-transformer", sim_transformer, {**SMALL, "num_layers": 1}),
    ("densenet", densenet, {"hidden_size": 5}),
    ("highway-lstm", highway_lstm, {"hidden_size": 4, "num_layers": 3}),
    ("highway-lstm", highway_lstm, {"hidden_size": 3}),  # as wide as its input: nothing projected
]


def texts(lengths: list[int]) -> Tokens:
    states = torch.randn(len(lengths), max(lengths) + 1, WIDTH, dtype=torch.float64)
    return Tokens(states, torch.arange(max(lengths) + 1) < torch.tensor(lengths)[:, None])


@pytest.mark.parametrize(("name", "reference", "options"), CASES)
def test_outputs_are_those_of_the_plain_network(
    name: str, reference: Callable[..., Tensor], options: dict[str, int]
) -> None:
    torch.manual_seed(0)
    member = HEADS.create(name, options)
    head = member.build(WIDTH, Classification(("a", "b", "c"))).double().eval()
    given = (texts([4, 1, 6, 2]),)
    if member.wants == ("pair",):
        given = (*given, texts([3, 5, 1, 2]))
    with torch.no_grad():
        for parameter in head.parameters():  # so that biases and scales of norms count
            parameter.add_(0.1 * torch.randn_like(parameter))
        outputs = head(States(tokens=given))
        alone = [
            reference(head, *(text.states[row, : text.lengths[row]] for text in given))
            for row in range(4)
        ]
    torch.testing.assert_close(outputs, torch.stack(alone), atol=1e-9, rtol=0)
