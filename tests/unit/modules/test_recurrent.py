import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from totune.modules.recurrent import BiLstm, run_in_bf16
from totune.modules.tokens import Tokens

LENGTHS = [6, 1, 4, 9]
MASK = torch.arange(9) < torch.tensor(LENGTHS).unsqueeze(1)
WIDTH, HIDDEN = 5, 3


def bilstm(num_layers: int = 1, dropout: float = 0.0) -> BiLstm:
    torch.manual_seed(0)
    return BiLstm(WIDTH, HIDDEN, num_layers, dropout).double()


def states_with(junk: float = 0.0) -> Tensor:
    torch.manual_seed(1)
    states = torch.randn(len(LENGTHS), 9, WIDTH, dtype=torch.float64)
    return states.masked_fill(~MASK.unsqueeze(2), junk)


def pytorchs(module: BiLstm) -> nn.LSTM:
    """PyTorch's bidirectional LSTM with the same weights."""
    layers = len(module.ahead)
    lstm = nn.LSTM(WIDTH, HIDDEN, layers, batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for layer in range(layers):
            for suffix, own in (("", module.ahead[layer]), ("_reverse", module.back[layer])):
                for name, weights in own.named_parameters():
                    getattr(lstm, f"{name[:-1]}{layer}{suffix}").copy_(weights)
    return lstm


def packed(lstm: nn.LSTM, states: Tensor) -> Tensor:
    run = pack_padded_sequence(
        states, torch.tensor(LENGTHS), batch_first=True, enforce_sorted=False
    )
    return pad_packed_sequence(lstm(run)[0], batch_first=True)[0]


@pytest.mark.parametrize("junk", [0.0, 1e30, float("nan")])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_equals_pytorchs_on_packed_sequences(num_layers: int, junk: float) -> None:
    module, states = bilstm(num_layers), states_with(junk)
    found = module(Tokens(states, MASK))
    expected = packed(pytorchs(module), states)
    assert found.shape == (len(LENGTHS), 9, module.width)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    assert not found[~MASK].any()


@pytest.mark.parametrize("num_layers", [1, 2])
def test_gradients_equal_pytorchs(num_layers: int) -> None:
    module, weights = bilstm(num_layers), torch.randn(2 * HIDDEN, dtype=torch.float64)
    theirs = pytorchs(module)
    ours_in, theirs_in = states_with(1e30).requires_grad_(), states_with().requires_grad_()
    (module(Tokens(ours_in, MASK)) @ weights).square().sum().backward()
    (packed(theirs, theirs_in) @ weights).square().sum().backward()
    torch.testing.assert_close(ours_in.grad, theirs_in.grad, atol=1e-12, rtol=0)
    for layer in range(num_layers):
        for suffix, own in (("", module.ahead[layer]), ("_reverse", module.back[layer])):
            for name, parameter in own.named_parameters():
                other = getattr(theirs, f"{name[:-1]}{layer}{suffix}")
                torch.testing.assert_close(parameter.grad, other.grad, atol=1e-12, rtol=0)


def test_dropout_lies_between_the_layers_alone() -> None:
    tokens = Tokens(states_with(), MASK)
    one, two = bilstm(1, dropout=0.5), bilstm(2, dropout=0.5)
    assert torch.equal(one(tokens), one(tokens))
    assert not torch.equal(two(tokens), two(tokens))
    two.eval()
    torch.testing.assert_close(two(tokens), packed(pytorchs(two), tokens.states))


def test_bfloat16_is_near_and_comes_back_as_it_went_in() -> None:
    module, tokens = bilstm().float(), Tokens(states_with().float(), MASK)
    exact = module(tokens)
    run_in_bf16(nn.Sequential(module), True)
    near = module(tokens)
    assert near.dtype == torch.float32
    assert not torch.equal(near, exact)
    torch.testing.assert_close(near, exact, atol=0.02, rtol=0)
    run_in_bf16(module, False)
    assert torch.equal(module(tokens), exact)


def test_full_precision_inside_autocast() -> None:
    module, tokens = bilstm().float(), Tokens(states_with().float(), MASK)
    exact = module(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(module(tokens), exact)
