"""A small real encoder and what a separate process does with the cache, for `test_features`."""

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from tests.recorder import Recorder
from torch import nn

from totune.encoders.encoder import Cached, Encoder, LayerStack
from totune.encoders.mixing import View
from totune.features import FeatureCache
from totune.inputs.batches import Batch
from totune.inputs.encodings import Encodings

WIDTH = 8


class SmallEncoder(Encoder):
    """Embeddings and two layers in which every token sees every other; counts its calls."""

    kind = "small"
    width = WIDTH
    depth = 2
    max_length = 64
    pooler = None

    def __init__(self, seed: int = 0, delay: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.embeddings = nn.Sequential(nn.Embedding(50, WIDTH), nn.Dropout(0.5))
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.Tanh(), nn.Dropout(0.5)) for _ in range(2)
        )
        self.register_buffer("scale", torch.ones(1))
        self.calls = 0
        self.deepest = -1
        self.delay = delay

    def encode(
        self, batch: Batch, start: Cached | None = None, stop: int | None = None
    ) -> LayerStack:
        self.calls += 1
        time.sleep(self.delay)
        mask = batch.attention_mask.unsqueeze(-1)  # [B, T, 1]
        first = 0 if start is None else start.depth
        states = [self.embeddings(batch.input_ids) if start is None else start.states]
        last = self.depth if stop is None else stop
        self.deepest = max(self.deepest, last)
        for layer in self.layers[first:last]:
            below = states[-1]
            mean = (below * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)
            states.append(layer(torch.cat([below, mean.expand_as(below)], dim=-1)))
        return LayerStack(first, tuple(states))

    def block_modules(self, depth: int) -> Mapping[str, nn.Module]:
        if depth == 0:
            return {"embeddings": self.embeddings}
        return {f"layers.{depth - 1}": self.layers[depth - 1]}

    def save(self, folder: Path) -> None:
        raise AssertionError("a cache saves no encoder")

    def fingerprint(self) -> str:
        raise AssertionError("the whole encoder must not be hashed for a prefix")


def some_pieces(rows: int = 40, longest: int = 12, seed: int = 0) -> Encodings:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, longest + 1, size=rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = rng.integers(1, 50, size=offsets[-1])
    return Encodings(ids, offsets, None, 0, 0, f"pieces {rows} {longest} {seed}")


def work(root: Path, view: View, rows: int, delay: float, answer: Path) -> None:
    """Asks the cache for one view and writes what it got, and how often it ran the encoder."""
    torch.set_num_threads(1)
    encoder, notes = SmallEncoder(delay=delay), Recorder()
    pieces = some_pieces(rows)
    found = FeatureCache(root, progress=notes).features(encoder, pieces, view, "fp32", "toy")
    assert found is not None
    read = found.rows(np.arange(rows)).numpy()
    with answer.open("wb") as file:
        np.savez(file, rows=read, calls=encoder.calls, warned=len(notes.warned))
