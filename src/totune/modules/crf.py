"""A linear-chain conditional random field (Lafferty et al. 2001; Lample et al. 2016).

With e the logits, A the transitions, s and f the scores of the first and of the last tag, n words:

    score(y) = s[y1] + sum_t e[t, yt] + sum_{t<n} A[yt, yt+1] + f[yn]
    log-likelihood(y) = score(y) - logsumexp of score over all paths

All is computed in float64 where a device has it: the steps are so small that it costs nothing, and
probabilities scaled at every step then reach far enough to stand for logarithms of nearly
everything a network gives.

Shapes: S sentences, W words (padded), C tags.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from totune.modules.chains import both_ways, reversal
from totune.modules.viterbi import TransitionScores, best_path

# Within these, every message is a normal float64: with a and r for the two limits, a tag's share is
# at least exp(-(2a + r)) / C and its products with a move and the next logit stay above exp(-660),
# where the range ends at exp(-708).
SCALED_SCORES = 60.0  # largest size of a transition, start or end score
SCALED_LOGITS = 300.0  # largest difference between two logits of a word


WITHOUT_FLOAT64 = ["mps"]  # kinds of devices


class LinearChainCrf(nn.Module):
    """Scores of tag sequences: their likelihood for training, the best of them for prediction.

    Begins with zero scores, as if every word were tagged alone.

    Args:
        tags: C.
        allowed: [C + 2, C + 2] bool, which moves decoding may make: from a row to a column, where
            row C is the sentence's start and column C + 1 its end; None for all. The likelihood
            and its gradients sum over forbidden paths too, as AllenNLP's CRF does. Where no path
            is allowed, the best of those with fewest forbidden moves is taken.
    """

    forbidden: Tensor | None

    def __init__(self, tags: int, allowed: Tensor | None = None) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(tags, tags))
        self.start_transitions = nn.Parameter(torch.zeros(tags))
        self.end_transitions = nn.Parameter(torch.zeros(tags))
        # Not saved: it follows from the task.
        self.register_buffer("forbidden", None if allowed is None else ~allowed, persistent=False)

    def log_likelihood(self, logits: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The log-likelihood of each sentence's tags.

        Args:
            logits: [S, W, C]; padding is never read.
            tags: [S, W], on words from 0 to C - 1; anything on padding.
            mask: [S, W] bool, true on words: a prefix of at least one word in every row.

        Returns:
            [S], float64 if the logits are, else float32.
        """
        with torch.autocast(logits.device.type, enabled=False):
            exact = _zeroed(logits, mask)
            scores = self._scores()
            wide = _score(exact, tags, mask, scores) - log_partition(exact, mask, scores)
            return wide.to(torch.promote_types(logits.dtype, torch.float32))

    def decode(self, logits: Tensor, mask: Tensor) -> Tensor:
        """The best allowed tags of each sentence, [S, W] with 0 on padding (Viterbi).

        Args:
            logits: [S, W, C]; padding is never read.
            mask: [S, W] bool, true on words: a prefix of at least one word in every row.
        """
        # A sixth faster than without gradients; what is copied outside is a tensor like others.
        with torch.inference_mode(), torch.autocast(logits.device.type, enabled=False):
            exact = _zeroed(logits, mask)
            tags = best_path(exact, mask, self._allowed_scores(exact))
        return tags.clone()

    def _scores(self) -> TransitionScores:
        return TransitionScores(
            _precise(self.transitions),
            _precise(self.start_transitions),
            _precise(self.end_transitions),
        )

    def _allowed_scores(self, logits: Tensor) -> TransitionScores:
        """The scores, forbidden moves so low that whole sentences cannot outvote one of them."""
        scores = self._scores()
        if self.forbidden is None:
            return scores
        largest = logits.abs().amax() + sum(score.abs().amax() for score in scores)
        penalty = self.forbidden * (2 * (logits.shape[1] + 1) * largest + 1)
        tags = len(scores.start)
        return TransitionScores(
            scores.moves - penalty[:tags, :tags],
            scores.start - penalty[tags, :tags],
            scores.end - penalty[:tags, tags + 1],
        )


def log_partition(logits: Tensor, mask: Tensor, scores: TransitionScores) -> Tensor:
    """The score of all paths together: logits [S, W, C], zero on padding -> [S]."""
    if logits.dtype != torch.float64:
        return _log_partition_in_logs(logits, mask, scores)
    size = torch.stack([score.detach().abs().amax() for score in scores]).amax()
    spread = (logits.detach().amax(dim=2) - logits.detach().amin(dim=2)).amax()
    if (size <= SCALED_SCORES) & (spread <= SCALED_LOGITS):
        apply: Callable[..., Tensor] = _ScaledLogPartition.apply
        return apply(logits, mask, *scores)
    return _log_partition_in_logs(logits, mask, scores)


def _zeroed(logits: Tensor, mask: Tensor) -> Tensor:
    return _precise(logits).masked_fill(~mask.unsqueeze(-1), 0.0)


def _precise(values: Tensor) -> Tensor:
    """In float64, or in float32 on devices that have no more (Apple's)."""
    return values.float() if values.device.type in WITHOUT_FLOAT64 else values.double()


def _score(logits: Tensor, tags: Tensor, mask: Tensor, scores: TransitionScores) -> Tensor:
    """The score of one path per sentence, [S]; logits are zero on padding."""
    tags = tags.masked_fill(~mask, 0)
    last = tags.gather(1, mask.sum(dim=1, keepdim=True) - 1).squeeze(1)  # [S]
    moves = scores.moves[tags[:, :-1], tags[:, 1:]] * mask[:, 1:]  # [S, W - 1]
    words = logits.gather(2, tags.unsqueeze(-1)).squeeze(-1)  # [S, W]
    return scores.start[tags[:, 0]] + words.sum(dim=1) + moves.sum(dim=1) + scores.end[last]


def _log_partition_in_logs(logits: Tensor, mask: Tensor, scores: TransitionScores) -> Tensor:
    """The forward recursion in logarithms: right for every score, and several times slower."""
    ways = scores.start + logits[:, 0]  # [S, C]
    for step, inside in zip(logits.unbind(1)[1:], mask.unbind(1)[1:], strict=True):
        onward = torch.logsumexp(ways.unsqueeze(2) + scores.moves, dim=1) + step
        ways = torch.where(inside.unsqueeze(1), onward, ways)
    return torch.logsumexp(ways + scores.end, dim=1)


class _ScaledLogPartition(torch.autograd.Function):
    """The same by probabilities that are scaled at every step (Rabiner 1989, section V.A).

    The gradient is the expected count of each tag and move, which follows from the messages of
    both directions: autograd need not follow the steps.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, mask: Tensor, moves: Tensor, start: Tensor, end: Tensor
    ) -> Tensor:
        mirror = reversal(mask.sum(dim=1), mask.shape[1])  # [S, W]
        top = logits.amax(dim=2, keepdim=True)  # [S, W, 1], so that no exponential is above 1
        moves = moves.exp()
        before, after, scale = _messages(
            both_ways((logits - top).exp(), mirror),
            torch.stack([moves.T, moves]),
            torch.stack([start, end]).exp(),
        )
        at = mirror.T.unsqueeze(1).expand_as(before[:, 1])  # [W, C, S]
        # In the words' order: the words up to each one, those after it, those from it on.
        until, beyond, onward = after[:, 0], before[:, 1].gather(0, at), after[:, 1].gather(0, at)
        together = (until * beyond).sum(dim=1, keepdim=True)  # [W, 1, S]
        ctx.save_for_backward(until / together, beyond, onward, moves, mask)
        last = together.squeeze(1).gather(0, mask.sum(dim=1).unsqueeze(0) - 1).squeeze(0)  # [S]
        steps = (scale[:, 0, 0].log() + top.squeeze(2).T) * mask.T  # [W, S]
        return steps.sum(dim=0) + last.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        until, beyond, onward, moves, mask = ctx.saved_tensors
        tags = len(moves)
        inside = mask.T.unsqueeze(1)  # [W, 1, S]
        until = until * (grad * inside)
        expected = until * beyond  # [W, C, S], times the gradient
        left = (until[:-1] * inside[1:]).transpose(0, 1).reshape(tags, -1)  # [C, (W - 1) * S]
        right = onward[1:].transpose(0, 1).reshape(tags, -1)
        last = (mask.sum(dim=1) - 1).expand(1, tags, -1)  # [1, C, S]
        return (
            expected.permute(2, 0, 1),
            None,
            moves * (left @ right.T),
            expected[0].sum(dim=1),
            expected.gather(0, last)[0].sum(dim=1),
        )


def _messages(steps: Tensor, moves: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both recursions in one pass: each tag's share of the words so far.

    Args:
        steps: exponentials of the logits, [W, 2, C, S].
        moves: exponentials of the transitions, [2, C to, C from].
        first: exponentials of the scores of each direction's first tag, [2, C].

    Returns:
        The messages before and after each step's logits, [W, 2, C, S] each, and what the latter
        were divided by so that they sum to 1, [W, 2, 1, S].
    """
    before, after, scale = [first.unsqueeze(-1).expand_as(steps[0])], [], []
    with torch.inference_mode():  # the steps; stacked, they are tensors like others
        for step in steps.unbind():
            way = before[-1] * step  # [2, C, S]
            scale.append(way.sum(dim=1, keepdim=True))
            after.append(way / scale[-1])
            before.append(torch.bmm(moves, after[-1]))  # `@` takes three times as long
    return torch.stack(before[:-1]), torch.stack(after), torch.stack(scale)
