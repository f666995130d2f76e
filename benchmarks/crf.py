"""The CRF against the pytorch-crf package: a training step and decoding, a few calls each in turn.

Both score the same random sentences with the same parameters. They are compared in float64, where
rounding cannot hide a difference, and timed in float32, as they are used: with one thread, and with
as many as PyTorch takes, which such small steps gain nothing from and wait for on a busy machine.
"""

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.common import ratio, save
from totune.modules.crf import LinearChainCrf

PEER = "pytorch-crf==0.7.2"
SENTENCES = 32
WORDS = 64
TAGS = 9  # of CoNLL-2003
ROUNDS = 20
CALLS = 10  # of each in a round
LARGEST_DIFFERENCE = 1e-5

Step = Callable[[], Any]


class Sentences:
    """Random logits [S, W, C], tags [S, W] and which of them are words, [S, W]."""

    def __init__(self, lengths: Tensor, dtype: torch.dtype) -> None:
        generator = torch.Generator().manual_seed(0)
        logits = 3 * torch.randn(SENTENCES, WORDS, TAGS, generator=generator)
        self.logits = logits.to(dtype).requires_grad_()
        self.tags = torch.randint(TAGS, (SENTENCES, WORDS), generator=generator)
        self.mask = torch.arange(WORDS) < lengths.unsqueeze(1)


def lengths_of(kind: str) -> Tensor:
    """Words of each sentence: all as many as there can be, or any number up to that."""
    if kind == "full":
        return torch.full((SENTENCES,), WORDS)
    lengths = torch.randint(1, WORDS + 1, (SENTENCES,), generator=torch.Generator().manual_seed(0))
    lengths[0] = WORDS
    return lengths


def make_both() -> tuple[LinearChainCrf, Any]:
    """Ours and the package's, with the same parameters."""
    from torchcrf import CRF

    torch.manual_seed(0)
    own, peer = LinearChainCrf(TAGS), CRF(TAGS, batch_first=True)
    own.load_state_dict({name: torch.randn_like(p) for name, p in own.named_parameters()})
    peer.load_state_dict(own.state_dict())
    return own, peer


def training_steps(
    own: LinearChainCrf, peer: Any, data: Sentences
) -> tuple[Callable[[], list[Tensor]], Callable[[], list[Tensor]]]:
    """Forward and backward of each: the log-likelihoods, and gradients of their sum."""

    def step(module: nn.Module, likelihood: Callable[[], Tensor]) -> list[Tensor]:
        inputs = [data.logits, *dict(sorted(module.named_parameters())).values()]
        found = likelihood()
        return [found.detach(), *torch.autograd.grad(found.sum(), inputs)]

    return (
        lambda: step(own, lambda: own.log_likelihood(data.logits, data.tags, data.mask)),
        lambda: step(peer, lambda: peer(data.logits, data.tags, data.mask, reduction="none")),
    )


def largest_difference(lengths: Tensor) -> float:
    """Of likelihoods and gradients in float64.

    Raises:
        AssertionError: if it is too large, or a decoded tag differs.
    """
    own, peer = make_both()
    own, peer = own.double(), peer.double()
    data = Sentences(lengths, torch.float64)
    ours, theirs = (step() for step in training_steps(own, peer, data))
    found = max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
    assert found <= LARGEST_DIFFERENCE, f"likelihoods or gradients differ by {found}"
    best = own.decode(data.logits, data.mask)
    rows = [row[mask].tolist() for row, mask in zip(best, data.mask, strict=True)]
    assert rows == peer.decode(data.logits, data.mask), "decoded tags differ"
    return found


def alternate(own: Step, peer: Step) -> tuple[list[float], list[float]]:
    """Seconds per call of both in each round, after a round to warm up."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(1 + ROUNDS):
        for step, kept in zip((own, peer), seconds, strict=True):
            start = time.perf_counter()
            for _ in range(CALLS):
                step()
            kept.append((time.perf_counter() - start) / CALLS)
    return seconds[0][1:], seconds[1][1:]


def compare(own: Step, peer: Step) -> dict[str, float]:
    """Medians of both, and how many times ours is as fast."""
    ours, theirs = alternate(own, peer)
    return {
        "totune_seconds": statistics.median(ours),
        "pytorch_crf_seconds": statistics.median(theirs),
        "ratio": ratio(theirs, ours),
    }


def measure(kind: str, threads: int) -> dict[str, Any]:
    """Both jobs on sentences of one kind of length."""
    lengths = lengths_of(kind)
    own, peer = make_both()
    data = Sentences(lengths, torch.float32)
    step, peer_step = training_steps(own, peer, data)
    usual = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        training = compare(step, peer_step)
        with torch.no_grad():
            decoding = compare(
                lambda: own.decode(data.logits, data.mask),
                lambda: peer.decode(data.logits, data.mask),
            )
    finally:
        torch.set_num_threads(usual)
    return {
        "words": int(lengths.sum()),
        "largest_difference": largest_difference(lengths),
        "forward_backward": training,
        "decode": decoding,
    }


def main() -> None:
    """Measures with the package where it is installed and writes the results."""
    if importlib.util.find_spec("torchcrf") is None:
        print(f"crf: left out, as there is nothing to compare with; `pip install {PEER}` first")
        return
    usual = torch.get_num_threads()
    figures = [
        {"lengths": lengths, "threads": threads, **measure(lengths, threads)}
        for lengths in ("full", "random")
        for threads in sorted({1, usual})
    ]
    what = f"{SENTENCES} sentences of up to {WORDS} words, {TAGS} tags, float32"
    how = f"medians of {ROUNDS} rounds of {CALLS} calls"
    path = save("crf", {"what": what, "how": how, "peer": PEER, "runs": figures})
    for found in figures:
        training, decoding = found["forward_backward"]["ratio"], found["decode"]["ratio"]
        print(
            f"crf ({found['lengths']} lengths, threads: {found['threads']}): {training:.1f}x as "
            f"fast as pytorch-crf in training, {decoding:.1f}x in decoding, differing by "
            f"{found['largest_difference']:.0e} -> {path.name}"
        )


if __name__ == "__main__":
    main()
