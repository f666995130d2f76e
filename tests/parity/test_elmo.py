"""ELMo against AllenNLP 2.10.1's and the original TensorFlow program's numbers.

`oracles/elmo` holds every layer of five sentences; `models/elmo-fixture` three streams of ten
sentences through which state was kept.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from totune.encoders.elmo.characters import characters_of
from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.weights import load_elmo
from totune.encoders.encoder import Cached
from totune.encoders.words import WordTokenizer
from totune.inputs.batches import Batch

h5py = pytest.importorskip("h5py")

TOLERANCE = {"atol": 1e-5, "rtol": 1e-5}

Loaded = tuple[ElmoEncoder, WordTokenizer]


@pytest.fixture(scope="module")
def oracle(shared: Path) -> dict[str, np.ndarray]:
    return dict(np.load(shared / "oracles" / "elmo" / "oracle.npz"))


@pytest.fixture
def loaded(shared: Path) -> Loaded:
    return load_elmo(shared / "oracles" / "elmo")


def sentences(oracle: dict[str, np.ndarray]) -> list[list[str]]:
    return [oracle[f"tokens_{i}"].tolist() for i in range(int(oracle["n_sentences"]))]


def batch_of(rows: list[list[str]], tokenizer: WordTokenizer) -> Batch:
    joined = [" ".join(row) for row in rows]
    own = tokenizer(joined, add_special_tokens=False)["input_ids"]
    numbers = [torch.tensor(ids) for ids in own]
    ids = torch.nn.utils.rnn.pad_sequence(numbers, batch_first=True)
    return Batch(np.arange(len(rows)), ids, (ids > 0).long())


@pytest.mark.shared
def test_characters(oracle: dict[str, np.ndarray]) -> None:
    for i, words in enumerate(sentences(oracle)):
        found = [characters_of(word, 50) for word in words]
        np.testing.assert_array_equal(found, oracle[f"char_ids_{i}"])


@pytest.mark.shared
@pytest.mark.parametrize("start", [None, 0, 1])
def test_layers(oracle: dict[str, np.ndarray], loaded: Loaded, start: int | None) -> None:
    encoder, tokenizer = loaded
    batch = batch_of(sentences(oracle), tokenizer)
    with torch.no_grad():
        stack = encoder.encode(batch)
        if start is not None:
            stack = encoder.encode(batch, Cached(start, stack[start]))
    for i, words in enumerate(sentences(oracle)):
        for depth in range(stack.first, 3):
            found = stack[depth][i, : len(words)].numpy()
            np.testing.assert_allclose(found, oracle[f"layers_{i}"][depth], **TOLERANCE)


@pytest.mark.shared
def test_layers_without_residuals(oracle: dict[str, np.ndarray], loaded: Loaded) -> None:
    whole, tokenizer = loaded
    plain = ElmoEncoder(replace(whole.options, residual=False), tokenizer.vocabulary)
    plain.load_state_dict(whole.state_dict())
    with torch.no_grad():
        stack = plain.encode(batch_of(sentences(oracle), tokenizer))
    for i, words in enumerate(sentences(oracle)):
        for depth, states in enumerate(stack.states):
            found = states[i, : len(words)].numpy()
            np.testing.assert_allclose(found, oracle[f"layers_noskip_{i}"][depth], **TOLERANCE)


@pytest.mark.shared
def test_the_original_programs_values(oracle: dict[str, np.ndarray], loaded: Loaded) -> None:
    encoder, tokenizer = loaded
    rows = [oracle[f"tf_tokens_{j}"].tolist() for j in range(3)]
    with torch.no_grad():
        top = encoder.encode(batch_of(rows, tokenizer)).top
    for j, words in enumerate(rows):
        expected = np.concatenate(oracle[f"tf_top_layer_{j}"], axis=-1)
        np.testing.assert_allclose(top[j, : len(words)].numpy(), expected, **TOLERANCE)


@pytest.mark.shared
def test_streams_through_which_state_is_kept(shared: Path) -> None:
    folder = shared / "models" / "elmo-fixture"
    text = (folder / "sentences.json").read_text(encoding="utf-8")
    streams = [[sentence.split() for sentence in stream] for stream in json.loads(text)]
    encoder, tokenizer = load_elmo(folder)
    encoder.stateful = True
    files = [h5py.File(folder / f"lm_embeddings_{k}.hdf5", "r") for k in range(len(streams))]
    for i in range(10):
        rows = [stream[i] for stream in streams]
        with torch.no_grad():
            top = encoder.encode(batch_of(rows, tokenizer)).top
        for k, words in enumerate(rows):
            expected = np.concatenate(files[k][str(i)][()], axis=-1)
            np.testing.assert_allclose(top[k, : len(words)].numpy(), expected, **TOLERANCE)


@pytest.mark.shared
def test_word_vectors_of_the_fixtures_vocabulary(shared: Path) -> None:
    folder = shared / "models" / "elmo-fixture"
    words = (folder / "vocab_test.txt").read_text(encoding="utf-8").split("\n")
    with h5py.File(folder / "elmo_token_embeddings.hdf5", "r") as file:
        expected = file["embedding"][()]
    encoder, tokenizer = load_elmo(folder)
    rows = [[word] for word in words if word]
    with torch.no_grad():
        found = encoder.encode(batch_of(rows, tokenizer), stop=0).top[:, 0, :16].numpy()
    ordinary = [at for at, (word,) in enumerate(rows) if not word.startswith(("<", "</"))]
    assert len(rows) == len(expected)
    np.testing.assert_allclose(found[ordinary], expected[ordinary], **TOLERANCE)
