"""The CRF against an enumeration of all paths, and where numbers or sentences are extreme."""

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from totune.modules import crf as crf_module
from totune.modules.crf import LinearChainCrf


@pytest.fixture(params=["scaled", "in logarithms"])
def recursion(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "in logarithms":
        monkeypatch.setattr(crf_module, "SCALED_SCORES", -1.0)


def crf_of(
    tags: int, scale: float = 1.0, seed: int = 0, allowed: Tensor | None = None
) -> LinearChainCrf:
    torch.manual_seed(seed)
    crf = LinearChainCrf(tags, allowed).double()
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(scale * torch.randn_like(parameter))
    return crf


def batch_of(lengths: list[int], tags: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """Logits, tags and mask."""
    words = max(lengths)
    mask = torch.arange(words) < torch.tensor(lengths).unsqueeze(1)
    logits = scale * torch.randn(len(lengths), words, tags, dtype=torch.float64)
    return logits, torch.randint(tags, mask.shape), mask


def paths_of(crf: LinearChainCrf, logits: Tensor) -> tuple[Tensor, Tensor]:
    """All paths of one sentence [n, C] and their scores: [C ** n, n] and [C ** n]."""
    words, tags = logits.shape
    paths = torch.tensor(list(itertools.product(range(tags), repeat=words)))
    scores = crf.start_transitions[paths[:, 0]] + crf.end_transitions[paths[:, -1]]
    for word in range(words):
        scores = scores + logits[word, paths[:, word]]
    for before, after in itertools.pairwise(range(words)):
        scores = scores + crf.transitions[paths[:, before], paths[:, after]]
    return paths, scores


def is_allowed(path: list[int], allowed: Tensor) -> bool:
    tags = len(allowed) - 2
    return all(allowed[a, b] for a, b in itertools.pairwise([tags, *path, tags + 1]))


@pytest.mark.usefixtures("recursion")
@pytest.mark.parametrize("tags", [1, 2, 3])
@pytest.mark.parametrize("lengths", [[1], [5], [4, 1, 6, 2], [3, 3]], ids=str)
def test_equals_the_enumeration_of_all_paths(lengths: list[int], tags: int) -> None:
    crf = crf_of(tags)
    logits, gold, mask = batch_of(lengths, tags)
    logits.requires_grad_()
    found = crf.log_likelihood(logits, gold, mask)
    best = crf.decode(logits, mask)
    expected = []
    for row, length in enumerate(lengths):
        paths, scores = paths_of(crf, logits[row, :length])
        at = (paths == gold[row, :length]).all(dim=1)
        expected.append(torch.log_softmax(scores, dim=0)[at].squeeze())
        assert best[row, :length].tolist() == paths[scores.argmax()].tolist()
        assert not best[row, length:].any()
    weights = torch.randn(len(lengths), dtype=torch.float64)
    inputs = [logits, *crf.parameters()]
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-12, rtol=1e-12)
    ours = torch.autograd.grad(found @ weights, inputs)
    theirs = torch.autograd.grad(torch.stack(expected) @ weights, inputs, materialize_grads=True)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, atol=1e-12, rtol=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    tags=st.integers(1, 3),
    moves=st.sampled_from([0.1, 3.0, 30.0, 1e3, 1e5]),
    scale=st.sampled_from([0.1, 10.0, 100.0, 1e3, 1e5]),
    seed=st.integers(0, 99),
)
def test_scores_of_every_size(
    lengths: list[int], tags: int, moves: float, scale: float, seed: int
) -> None:
    crf = crf_of(tags, moves, seed)
    logits, gold, mask = batch_of(lengths, tags, scale)
    logits.requires_grad_()
    found = crf.log_likelihood(logits, gold, mask)
    best = crf.decode(logits, mask)
    expected, best_scores, found_scores = [], [], []
    for row, length in enumerate(lengths):
        paths, scores = paths_of(crf, logits[row, :length])
        at = (paths == gold[row, :length]).all(dim=1)
        expected.append((scores[at] - torch.logsumexp(scores, dim=0)).squeeze())
        best_scores.append(scores.max())
        found_scores.append(scores[(paths == best[row, :length]).all(dim=1)].squeeze())
    size = 1e-12 * (moves + scale) * max(lengths)
    torch.testing.assert_close(found, torch.stack(expected), atol=1e-12 + size, rtol=0)
    gap = torch.stack(best_scores) - torch.stack(found_scores)
    assert gap.max() <= size
    inputs = [logits, *crf.parameters()]
    ours = torch.autograd.grad(found.sum(), inputs)
    theirs = torch.autograd.grad(torch.stack(expected).sum(), inputs, materialize_grads=True)
    for own, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(own, other, atol=1e-12 + 100 * size, rtol=0)


@pytest.mark.parametrize(("moves", "scale"), [(59.9, 299.0), (60.1, 1.0), (1.0, 301.0)])
def test_scaled_and_in_logarithms_agree_at_the_limit(
    moves: float, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each tag's best neighbour is another word's worst: messages spread as far as they can."""
    crf = crf_of(3)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.copy_(moves * parameter.sign())
    logits, gold, mask = batch_of([40, 7], 3)
    logits = scale / 2 * logits.sign()
    found = gradients(crf, logits, gold, mask)
    monkeypatch.setattr(crf_module, "SCALED_SCORES", -1.0)
    for own, other in zip(found, gradients(crf, logits, gold, mask), strict=True):
        assert own.isfinite().all()
        torch.testing.assert_close(own, other, atol=1e-9, rtol=0)


def gradients(crf: LinearChainCrf, logits: Tensor, gold: Tensor, mask: Tensor) -> list[Tensor]:
    """Log-likelihoods, and gradients of their sum."""
    logits = logits.clone().requires_grad_()
    found = crf.log_likelihood(logits, gold, mask)
    return [found.detach(), *torch.autograd.grad(found.sum(), [logits, *crf.parameters()])]


class LikelihoodOf(torch.nn.Module):
    """The log-likelihood as a module's forward pass."""

    def __init__(self, crf: LinearChainCrf, gold: Tensor, mask: Tensor) -> None:
        super().__init__()
        self.crf, self.gold, self.mask = crf, gold, mask

    def forward(self, logits: Tensor) -> Tensor:
        return self.crf.log_likelihood(logits, self.gold, self.mask)


@pytest.mark.usefixtures("recursion")
def test_gradients_are_those_of_finite_differences() -> None:
    logits, gold, mask = batch_of([4, 1, 2], 3)
    module = LikelihoodOf(crf_of(3), gold, mask)
    names = [name for name, _ in module.named_parameters()]

    def likelihood(logits: Tensor, *parameters: Tensor) -> Tensor:
        chosen = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, chosen, logits)

    inputs = [tensor.detach().requires_grad_() for tensor in (logits, *module.parameters())]
    assert torch.autograd.gradcheck(likelihood, inputs)


@pytest.mark.usefixtures("recursion")
@pytest.mark.parametrize("junk", [1e30, float("nan"), float("inf")])
def test_padding_and_batch_mates_change_nothing(junk: float) -> None:
    crf = crf_of(4)
    lengths = [5, 1, 9, 4]
    logits, gold, mask = batch_of(lengths, 4)
    logits, gold = logits.masked_fill(~mask.unsqueeze(2), junk), gold.masked_fill(~mask, 7)
    likelihoods, on_logits, *_ = gradients(crf, logits, gold, mask)
    best = crf.decode(logits, mask)
    for row, length in enumerate(lengths):
        own = (logits[row : row + 1, :length], gold[row : row + 1, :length])
        alone, on_own, *_ = gradients(crf, *own, mask[row : row + 1, :length])
        torch.testing.assert_close(likelihoods[row : row + 1], alone, atol=1e-12, rtol=0)
        torch.testing.assert_close(on_logits[row, :length], on_own[0], atol=1e-12, rtol=0)
        assert torch.equal(best[row, :length], crf.decode(own[0], mask[row : row + 1, :length])[0])
    assert not on_logits[~mask].any()


def test_mask_wider_than_every_sentence() -> None:
    crf = crf_of(3)
    logits, gold, _ = batch_of([6, 6], 3)
    mask = torch.zeros(2, 6, dtype=torch.bool)
    mask[:, :3] = True
    for own, other in zip(
        gradients(crf, logits, gold, mask)[2:],
        gradients(crf, logits[:, :3], gold[:, :3], mask[:, :3])[2:],
        strict=True,
    ):
        torch.testing.assert_close(own, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_best_allowed_paths(length: int, scale: float) -> None:
    torch.manual_seed(length)
    for seed in range(10):
        allowed = torch.rand(5, 5) < 0.6
        crf = crf_of(3, scale, seed, allowed)
        logits, _, mask = batch_of([length], 3, scale)
        paths, scores = paths_of(crf, logits[0])
        legal = torch.tensor([is_allowed(path, allowed) for path in paths.tolist()])
        found = crf.decode(logits, mask)[0].tolist()
        if legal.any():
            assert found == paths[scores.masked_fill(~legal, -torch.inf).argmax()].tolist()
        else:
            broken = [
                sum(not allowed[a, b] for a, b in itertools.pairwise([3, *path, 4]))
                for path in (found, *paths.tolist())
            ]
            assert broken[0] == min(broken)


def test_no_score_outvotes_a_forbidden_move() -> None:
    allowed = torch.ones(4, 4, dtype=torch.bool)
    allowed[0, 1] = False
    crf = LinearChainCrf(2, allowed)
    logits = torch.zeros(1, 64, 2)
    logits[0, ::2, 0] = 1e6
    logits[0, 1::2, 1] = 1e6  # asks for the forbidden move at every second word
    found = crf.decode(logits, torch.ones(1, 64, dtype=torch.bool))[0].tolist()
    assert (0, 1) not in set(itertools.pairwise(found))


def test_equal_paths_give_the_first_tag() -> None:
    mask = torch.ones(2, 5, dtype=torch.bool)
    assert not LinearChainCrf(3).decode(torch.zeros(2, 5, 3), mask).any()


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        (torch.float32, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float64, torch.float64),
    ],
)
def test_never_below_float32(given_type: torch.dtype, expected: torch.dtype) -> None:
    crf = crf_of(3).float()
    logits, gold, mask = batch_of([7, 3], 3)
    rounded = logits.to(given_type)
    with torch.autocast("cpu", torch.bfloat16):
        found = crf.log_likelihood(rounded, gold, mask)
        best = crf.decode(rounded, mask)
    assert found.dtype == expected
    exact = crf.double().log_likelihood(rounded.double(), gold, mask)
    torch.testing.assert_close(found, exact.to(expected))
    assert torch.equal(best, crf.decode(rounded.double(), mask))


def test_starts_as_if_every_word_were_alone() -> None:
    logits, gold, mask = batch_of([7, 3], 3)
    found = LinearChainCrf(3).double().log_likelihood(logits, gold, mask)
    alone = logits.log_softmax(dim=2).gather(2, gold.unsqueeze(2)).squeeze(2)
    torch.testing.assert_close(found, (alone * mask).sum(dim=1))


def test_constraints_are_not_saved() -> None:
    crf = LinearChainCrf(2, torch.ones(4, 4, dtype=torch.bool))
    assert set(crf.state_dict()) == {"transitions", "start_transitions", "end_transitions"}


def test_devices_without_float64_get_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    crf = crf_of(4)
    logits, gold, mask = batch_of([5, 2, 7], 4)
    exact, best = crf.log_likelihood(logits, gold, mask), crf.decode(logits, mask)
    monkeypatch.setattr(crf_module, "WITHOUT_FLOAT64", ["cpu"])
    single = crf.float()
    likelihood = single.log_likelihood(logits.float(), gold, mask)
    assert likelihood.dtype == torch.float32
    torch.testing.assert_close(likelihood.double(), exact, atol=1e-4, rtol=0)
    assert torch.equal(single.decode(logits.float(), mask), best)
