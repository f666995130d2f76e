"""The heads that score tag sequences, on states made by hand."""

import itertools

import pytest
import torch
from torch import Tensor

from totune.errors import ConfigError
from totune.heads.base import Head, HeadModule, States, first_pieces
from totune.heads.bilstm import Bilstm
from totune.heads.crf import Crf
from totune.inputs.batches import TokenIndex
from totune.modules.crf import LinearChainCrf
from totune.modules.tokens import Tokens
from totune.registry import build
from totune.tasks.classification import Classification
from totune.tasks.tagging import Tagging

WIDTH = 6
TAGS = ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")
TASK = Tagging(TAGS, "iob2")
STARTS = [[0, 1, 4], [0], [0, 2]]  # where the words of three sentences start among their pieces
PIECES = [5, 3, 3]
COUNTS = torch.tensor([3, 1, 2])
CRF_HEADS = [Crf(), Bilstm(hidden_size=4, crf=True)]
HEADS = [*CRF_HEADS, Bilstm(hidden_size=4), Bilstm(num_layers=1, hidden_size=4)]
FREE_HEADS = [Crf(constrained=False), Bilstm(hidden_size=4, crf=True, constrained=False)]


def states_of(rows: list[int], junk: float = 0.0) -> States:
    """Some of the three sentences as one batch; padding holds `junk`."""
    torch.manual_seed(0)
    every = torch.randn(3, 5, WIDTH)
    pieces = max(PIECES[row] for row in rows)
    words = max(len(STARTS[row]) for row in rows)
    mask = torch.arange(pieces) < torch.tensor([[PIECES[row]] for row in rows])
    counts = torch.tensor([[len(STARTS[row])] for row in rows])
    starts = [STARTS[row] + [0] * (words - len(STARTS[row])) for row in rows]
    states = every[rows, :pieces].masked_fill(~mask.unsqueeze(2), junk)
    return States(
        tokens=(Tokens(states, mask),),
        words=TokenIndex(torch.tensor(starts), torch.arange(words) < counts),
    )


def module_of(head: Head, scale: float = 0.5) -> HeadModule:
    """The head in eval mode, weights spread so that a fault shows."""
    torch.manual_seed(0)
    module = head.build(WIDTH, TASK)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(scale * torch.randn_like(parameter))
    return module.eval()


def crf_in(module: HeadModule) -> LinearChainCrf:
    (crf,) = (part for part in module.modules() if isinstance(part, LinearChainCrf))
    return crf


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_one_output_per_word_whatever_the_padding_and_the_batch(head: Head) -> None:
    module = module_of(head)
    with torch.no_grad():
        found = module(states_of([0, 1, 2], junk=1e30))
        best = module.best(found, COUNTS)
        alone = [module(states_of([row])) for row in range(3)]
        best_alone = [module.best(alone[row], COUNTS[row : row + 1]) for row in range(3)]
    assert found.shape == best.shape == (6, len(TAGS))
    torch.testing.assert_close(found, torch.cat(alone))
    torch.testing.assert_close(best, torch.cat(best_alone))


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_gradients_reach_every_parameter(head: Head) -> None:
    module = module_of(head).train()
    targets = torch.tensor([0, 2, 4, 1, 0, 0])
    outputs = module(states_of([0, 1, 2]))
    losses = module.losses(outputs, targets, COUNTS)
    (TASK.losses(outputs, targets) if losses is None else losses).sum().backward()
    assert all(parameter.grad.any() for parameter in module.parameters())


@pytest.mark.parametrize("head", CRF_HEADS, ids=str)
def test_losses_sum_to_negative_log_likelihoods(head: Head) -> None:
    module = module_of(head)
    outputs = module(states_of([0, 1, 2]))
    targets = torch.tensor([0, 2, 4, 1, 3, 0])
    losses = module.losses(outputs, targets, COUNTS)
    start = 0
    for count in COUNTS.tolist():
        at = slice(start, start + count)
        one = torch.ones(1, count, dtype=torch.bool)
        expected = -crf_in(module).log_likelihood(outputs[None, at], targets[None, at], one)
        torch.testing.assert_close(losses[at], (expected / count).expand(count))
        start += count


@pytest.mark.parametrize("head", CRF_HEADS, ids=str)
def test_a_sentence_with_an_unknown_tag_costs_nothing(head: Head) -> None:
    module = module_of(head)
    outputs = module(states_of([0, 1, 2])).detach().requires_grad_()
    targets = torch.tensor([0, -100, 4, 1, 0, 0])
    losses = module.losses(outputs, targets, COUNTS)
    losses.sum().backward()
    assert losses[:3].tolist() == [0, 0, 0]
    assert (losses[3:] > 0).all()
    assert not outputs.grad[:3].any()
    assert outputs.grad[3:].any()


def test_without_a_crf_the_tasks_own_loss_is_used() -> None:
    module = module_of(Bilstm(hidden_size=4))
    outputs = module(states_of([0, 1, 2]))
    assert module.losses(outputs, torch.zeros(6, dtype=torch.long), COUNTS) is None
    assert module.best(outputs, COUNTS) is outputs


def decoded(module: HeadModule, outputs: Tensor) -> list[int]:
    best = module.best(outputs, torch.tensor([len(outputs)]))
    assert best.dtype == outputs.dtype
    assert torch.equal(best.sum(dim=1), torch.ones(len(outputs)))
    return best.argmax(dim=1).tolist()


@pytest.mark.parametrize(
    ("head", "constrained"),
    [*((head, True) for head in CRF_HEADS), *((head, False) for head in FREE_HEADS)],
    ids=str,
)
def test_best_is_the_best_path_that_the_scheme_allows(head: Head, constrained: bool) -> None:
    module = module_of(head)
    allowed = TASK.allowed_transitions()
    crf, end = crf_in(module), len(TAGS) + 1
    for seed in range(8):
        torch.manual_seed(seed)
        outputs = 2 * torch.randn(4, len(TAGS))
        paths = [
            path
            for path in itertools.product(range(len(TAGS)), repeat=4)
            if not constrained
            or all(allowed[a, b] for a, b in itertools.pairwise([len(TAGS), *path, end]))
        ]
        tags = torch.tensor(paths)
        logits = outputs.expand(len(paths), -1, -1)
        with torch.no_grad():
            scores = crf.log_likelihood(logits, tags, torch.ones_like(tags, dtype=torch.bool))
        assert decoded(module, outputs) == list(paths[int(scores.argmax())])


@pytest.mark.parametrize("head", CRF_HEADS, ids=str)
def test_without_a_scheme_any_tag_may_follow_any(head: Head) -> None:
    module = head.build(WIDTH, Tagging(("DET", "NOUN", "VERB")))
    assert crf_in(module).forbidden is None


@pytest.mark.parametrize("head", [Crf(), Bilstm()], ids=str)
def test_texts_with_one_label_are_refused_with_the_remedy(head: Head) -> None:
    with pytest.raises(ConfigError, match=r"tags words, but classification .* such as 'linear'"):
        head.build(WIDTH, Classification(("a", "b")))


def test_bilstm_reads_all_pieces_and_first_pieces_are_read() -> None:
    module = module_of(Bilstm(num_layers=1, hidden_size=4))
    states = states_of([0])
    outputs = module(states)
    (tokens,) = states.tokens
    changed = tokens.states.clone()
    changed[0, 3] += 1.0  # a later piece of the second word
    other = module(States(tokens=(Tokens(changed, tokens.mask),), words=states.words))
    assert not torch.isclose(outputs, other).all(dim=1).any()
    encoded = module.encoder(tokens)[0, STARTS[0]]
    torch.testing.assert_close(outputs, module.output.out(encoded))


def test_kaiming_draws_lstm_and_linear_layer_and_leaves_the_crf() -> None:
    module = Bilstm(hidden_size=64, crf=True, initialisation="kaiming").build(256, TASK)
    drawn = module.encoder.ahead[0].weight_ih_l0
    assert drawn.std().item() == pytest.approx((2 / 256) ** 0.5, rel=0.05)
    assert not any(p.any() for name, p in module.encoder.named_parameters() if "bias" in name)
    usual = Bilstm(hidden_size=64, crf=True).build(256, TASK)
    spread = [crf_in(each).transitions.std().item() for each in (module, usual)]
    assert spread[0] == pytest.approx(spread[1], rel=0.5)


def test_crf_reads_first_pieces_alone() -> None:
    module = module_of(Crf())
    states = states_of([0, 1, 2])
    torch.testing.assert_close(module(states), module.output.out(first_pieces(states)))


@pytest.mark.parametrize(
    ("member", "option", "value"),
    [(Crf, "dropout", 1.0), (Bilstm, "num_layers", 3), (Bilstm, "hidden_size", 0)],
)
def test_options_out_of_range_are_refused(member: type, option: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"the head: {option}={value}"):
        build(member, {option: value}, "the head")


def test_sizes_by_default() -> None:
    module = Bilstm().build(768, TASK)
    assert [layer.input_size for layer in module.encoder.ahead] == [768, 400]
    assert module.output.out.in_features == 400
