"""How fast the language models over characters read: words per second of ELMo and of Flair.

An ELMo layer of the official shape (projection 512, memory 4096), both directions, 16 sentences of
8 to 40 words: our clipped recurrence, a plain loop over steps under autograd, and PyTorch's own
LSTM kernel, which has no clips. All in float32, with the same weights, in one process and in turn.
Flair's models, where they are at hand, read English sentences.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common import SHARED, save
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.steps import Steps
from totune.encoders.loading import load_encoder
from totune.inputs.batches import Batch

PROJECTION, MEMORY, CLIP = 512, 4096, 3.0
LENGTHS = np.linspace(40, 8, 16).astype(np.int64)
SENTENCE = "The committee said on Friday that it would publish the report within two weeks ."

Read = Callable[[Tensor], Tensor]


def plain_loop(layer: ElmoLayer, steps: Steps) -> Read:
    """Step by step, as one would write it, gradients by autograd."""

    def read(tokens: Tensor) -> Tensor:
        ways = []
        for way in (0, 1):
            output = tokens.new_zeros(steps.sizes[0], PROJECTION)
            memory = tokens.new_zeros(steps.sizes[0], MEMORY)
            found, at = [], 0
            for size in steps.sizes:
                sums = (
                    tokens[way, at : at + size] @ layer.input_weight[way].T
                    + output[:size] @ layer.hidden_weight[way].T
                    + layer.bias[way]
                )
                admit, forget, candidate, emit = sums.chunk(4, dim=-1)
                memory = forget.sigmoid() * memory[:size] + admit.sigmoid() * candidate.tanh()
                memory = memory.clamp(-CLIP, CLIP)
                output = (emit.sigmoid() * memory.tanh()) @ layer.projection_weight[way].T
                output = output.clamp(-CLIP, CLIP)
                found.append(output)
                at += size
            ways.append(torch.cat(found))
        return torch.stack(ways)

    return read


def kernel(layer: ElmoLayer, steps: Steps) -> Read:
    """PyTorch's LSTM with a projection, one direction after the other, on packed sequences."""
    lstms = []
    for way in (0, 1):
        lstm = nn.LSTM(PROJECTION, MEMORY, proj_size=PROJECTION)
        own = (layer.input_weight, layer.hidden_weight, layer.bias, layer.projection_weight)
        weights = [weight[way].detach() for weight in own]
        with torch.no_grad():
            lstm.weight_ih_l0.copy_(weights[0])
            lstm.weight_hh_l0.copy_(weights[1])
            lstm.bias_ih_l0.copy_(weights[2])
            lstm.bias_hh_l0.zero_()
            lstm.weight_hr_l0.copy_(weights[3])
        lstms.append(lstm)

    def read(tokens: Tensor) -> Tensor:
        sizes = torch.tensor(steps.sizes)
        packed = [nn.utils.rnn.PackedSequence(tokens[way], sizes) for way in (0, 1)]
        return torch.stack([lstm(own)[0].data for lstm, own in zip(lstms, packed, strict=True)])

    return read


def words_per_second(reads: dict[str, Read], tokens: Tensor, train: bool, rounds: int) -> dict:
    """Medians of several calls of each in turn."""
    found: dict[str, list[float]] = {name: [] for name in reads}
    for number in range(rounds + 1):
        for name, read in reads.items():
            began = time.perf_counter()
            with torch.set_grad_enabled(train):
                outputs = read(tokens)
                if train:
                    outputs.square().mean().backward()
            if number:  # the first call warms up
                found[name].append(tokens.shape[1] / (time.perf_counter() - began))
    return {name: statistics.median(values) for name, values in found.items()}


def flair_words_per_second(rounds: int) -> float | None:
    """Words that Flair's two models read in a second, frozen, in bfloat16; None without them."""
    folder = SHARED / "models" / "flair-news-fast"
    if not folder.is_dir():
        return None
    loaded = load_encoder(str(folder))
    ids = torch.tensor(loaded.tokenizer([SENTENCE] * 32)["input_ids"])
    batch = Batch(np.arange(32), ids, torch.ones_like(ids))
    found = []
    for number in range(rounds + 1):
        began = time.perf_counter()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            loaded.encoder.encode(batch)
        if number:
            found.append(ids.numel() / (time.perf_counter() - began))
    return statistics.median(found)


def main(rounds: int = 3) -> None:
    """Measures everything and writes `benchmarks/results/language_models.json`."""
    torch.manual_seed(0)
    layer = ElmoLayer(PROJECTION, MEMORY, CLIP, CLIP, residual=False)
    steps = Steps.of(LENGTHS, int(LENGTHS.max()), torch.device("cpu"))
    tokens = torch.randn(2, int(LENGTHS.sum()), PROJECTION)
    reads: dict[str, Read] = {
        "clipped, ours": lambda given: layer(given, steps.sizes)[0],
        "clipped, plain loop": plain_loop(layer, steps),
        "no clips, PyTorch's kernel": kernel(layer, steps),
    }
    with torch.no_grad():
        ours, loop = (reads[name](tokens) for name in list(reads)[:2])
    rates = {
        "forward": words_per_second(reads, tokens, train=False, rounds=rounds),
        "forward and backward": words_per_second(reads, tokens, train=True, rounds=rounds),
    }
    figures = {
        "what": f"an ELMo layer {PROJECTION}/{MEMORY}, both directions, {LENGTHS.sum()} words",
        "largest_difference_to_the_loop": float((ours - loop).abs().max()),
        "words_per_second": rates,
        "flair_words_per_second_bf16": flair_words_per_second(rounds),
    }
    path = save("language_models", figures)
    for what, found in rates.items():
        shown = ", ".join(f"{name} {rate:.0f}" for name, rate in found.items())
        print(f"language models, {what}, words/s: {shown}")
    print(f"language models: -> {path.name}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    main(parser.parse_args().rounds)
