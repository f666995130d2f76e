"""Flair's published English models against a plain float64 loop, and how well they know English."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import Tensor

from totune.encoders.flair.encoder import FlairLmEncoder
from totune.encoders.flair.weights import holds_flair, load_flair
from totune.encoders.words import WordTokenizer
from totune.inputs.batches import Batch

NEWS = (
    "Shares of the company fell 3 percent in early trading after it reported lower profits for "
    "the third quarter ."
)
ROWS = ["The river 's bank was closed .", "Ελλάδα 😀 says yes"]

Loaded = tuple[FlairLmEncoder, WordTokenizer]


@pytest.fixture(scope="module")
def loaded(shared: Path) -> Loaded:
    folder = shared / "models" / "flair-news-fast"
    assert holds_flair(folder)
    return load_flair(folder)


def batch_of(rows: list[str], tokenizer: WordTokenizer) -> Batch:
    own = tokenizer(rows, add_special_tokens=False)["input_ids"]
    numbers = [torch.tensor(ids) for ids in own]
    ids = torch.nn.utils.rnn.pad_sequence(numbers, batch_first=True)
    return Batch(np.arange(len(rows)), ids, (ids > 0).long())


def read(text: str, weights: dict[str, np.ndarray], numbers: dict[str, int]) -> list[np.ndarray]:
    """The state after each character, one step at a time."""
    h = c = np.zeros(1024)
    states = []
    for item in text:
        sums = weights["rnn.bias_ih_l0"] + weights["rnn.bias_hh_l0"]
        sums = sums + weights["rnn.weight_ih_l0"] @ weights["encoder.weight"][numbers.get(item, 0)]
        i, f, g, o = np.split(sums + weights["rnn.weight_hh_l0"] @ h, 4)
        c = c / (1 + np.exp(-f)) + np.tanh(g) / (1 + np.exp(-i))
        h = np.tanh(c) / (1 + np.exp(-o))
        states.append(h)
    return states


@pytest.mark.shared
def test_states_of_words(shared: Path, loaded: Loaded) -> None:
    encoder, tokenizer = loaded
    stored = load_file(shared / "models" / "flair-news-fast" / "model.safetensors")
    with torch.no_grad():
        top: Tensor = encoder.encode(batch_of(ROWS, tokenizer)).top
    for at, (way, alphabet) in enumerate(
        (("forward", encoder.options.forward), ("backward", encoder.options.backward))
    ):
        own = {n.split(".", 1)[1]: w.astype(float) for n, w in stored.items() if n.startswith(way)}
        numbers = {item: number for number, item in enumerate(alphabet)}
        for row, text in enumerate(ROWS):
            states = read("\n" + (text[::-1] if at else text), own, numbers)
            begin = 0
            for place, word in enumerate(text.split()):
                end = begin + len(word)
                expected = states[len(text) - begin if at else end]
                found = top[row, place, 1024 * at : 1024 * (at + 1)].numpy()
                np.testing.assert_allclose(found, expected, atol=1e-5)
                begin = end + 1


@pytest.mark.shared
def test_bits_per_character(loaded: Loaded) -> None:
    """The folder's README has 0.74 and 0.72 bits on a news sentence, 6.9 and 7.0 scrambled."""
    letters = list(NEWS)
    random.Random(0).shuffle(letters)
    encoder, _ = loaded
    assert max(encoder.bits_per_character(NEWS)) < 1
    assert min(encoder.bits_per_character("".join(letters))) > 5


@pytest.mark.shared
def test_sizes(loaded: Loaded) -> None:
    encoder, _ = loaded
    assert (encoder.width, encoder.depth) == (2048, 1)
    decoders = sum(buffer.numel() for buffer in encoder.buffers())
    assert sum(p.numel() for p in encoder.parameters()) + decoders == 9_842_942
