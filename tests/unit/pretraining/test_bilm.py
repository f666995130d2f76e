"""The biLM's loss against a plain loop, and its recurrence against PyTorch's kernel."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from totune.encoders.elmo.encoder import ElmoEncoder
from totune.encoders.elmo.lstm import ElmoLayer
from totune.encoders.elmo.steps import Steps
from totune.encoders.words import BEGIN, END, Vocabulary, WordTokenizer
from totune.errors import ModelError
from totune.pretraining.bilm import (
    SOFTMAX,
    BilmObjective,
    WordSoftmax,
    read_softmax,
    run_lstm_kernel,
)
from totune.pretraining.corpus import hold_out, read_corpus
from totune.pretraining.rows import PackedRows, pack_rows
from totune.pretraining.settings import ELMO_PRESETS
from totune.pretraining.tokens import open_store
from totune.progress import Progress


@pytest.fixture(scope="module")
def word_rows(corpus_file: Path) -> PackedRows:
    train, held = hold_out(read_corpus([corpus_file]))
    store = open_store(train, held, WordTokenizer(Vocabulary(), 512), Progress())
    return pack_rows(store, 0, len(train), 20, train.words)


@pytest.fixture
def objective(word_rows: PackedRows) -> BilmObjective:
    torch.manual_seed(0)
    vocabulary = Vocabulary()
    for word in word_rows.store.words:
        vocabulary.number(word)
    encoder = ElmoEncoder(ELMO_PRESETS["tiny"].architecture, vocabulary)
    softmax = WordSoftmax(16, word_rows.store.words[:-3])
    return BilmObjective(encoder, WordTokenizer(vocabulary, 512), softmax)


def plain_direction(objective: BilmObjective, layers: list[nn.LSTM], vectors: Tensor) -> Tensor:
    """States [T, P] of word vectors [T, P] in reading order, through PyTorch's own LSTMs."""
    states = vectors
    for depth, lstm in enumerate(layers):
        above = lstm(states)[0]
        states = above + states if depth else above
    return states


def plain_lstm(layer: ElmoLayer, way: int) -> nn.LSTM:
    lstm = nn.LSTM(16, 64, proj_size=16)
    with torch.no_grad():
        lstm.weight_ih_l0.copy_(layer.input_weight[way])
        lstm.weight_hh_l0.copy_(layer.hidden_weight[way])
        lstm.bias_ih_l0.copy_(layer.bias[way])
        lstm.bias_hh_l0.zero_()
        lstm.weight_hr_l0.copy_(layer.projection_weight[way])
    return lstm


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_each_word_is_predicted_from_those_before_and_from_those_after(
    objective: BilmObjective, word_rows: PackedRows
) -> None:
    which = np.arange(6)
    batch = objective.collate(word_rows, which, seed=0)
    sums = objective(objective.micro_batch(batch, which))
    classes = objective.softmax.classes_of(objective.tokenizer.vocabulary)
    wanted = {"forward": 0.0, "backward": 0.0}
    for row in which:
        ids = np.concatenate([[BEGIN], word_rows.read(int(row))])
        assert ids[-1] == END
        vectors = objective.encoder.embedder(torch.from_numpy(objective._characters.of(ids)).long())
        for way, name in enumerate(wanted):
            order = np.arange(len(ids)) if way == 0 else np.arange(len(ids))[::-1].copy()
            layers = [plain_lstm(layer, way) for layer in objective.encoder.layers]
            states = plain_direction(objective, layers, vectors[order])
            log_probabilities = objective.softmax.adaptive.log_prob(states[:-1])
            targets = torch.from_numpy(classes[ids[order]][1:])
            wanted[name] -= float(log_probabilities.gather(1, targets[:, None]).sum().detach())
    assert batch.targets["forward"] == sum(len(word_rows.read(int(row))) for row in which)
    for name, value in wanted.items():
        assert float(sums[name].detach()) == pytest.approx(value, rel=1e-5)


def test_a_row_that_was_cut_inside_a_sentence_still_ends(
    objective: BilmObjective, word_rows: PackedRows
) -> None:
    cut = pack_rows(word_rows.store, 0, 2, 4, 10)
    batch = objective.collate(cut, np.arange(len(cut)), seed=0)
    ids, lengths = batch.tensors["ids"].numpy(), batch.tensors["lengths"].numpy()
    assert (ids[:, 0] == BEGIN).all()
    assert (ids[np.arange(len(ids)), lengths - 1] == END).all()
    assert batch.tokens == (lengths - 2).sum()


def test_words_outside_the_softmax_are_one_class(
    objective: BilmObjective, word_rows: PackedRows
) -> None:
    vocabulary = objective.tokenizer.vocabulary
    classes = objective.softmax.classes_of(vocabulary)
    rare = [classes[vocabulary.number(word)] for word in word_rows.store.words[-3:]]
    known = [classes[vocabulary.number(word)] for word in word_rows.store.words[:-3]]
    assert set(rare) == {1}
    assert known == list(range(3, 3 + len(known)))


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_the_kernel_computes_what_the_layer_does() -> None:
    torch.manual_seed(0)
    for residual in (False, True):
        layer = ElmoLayer(4, 8, None, None, residual)
        steps = Steps.of(np.array([5, 2, 4]), 5, torch.device("cpu"))
        tokens = torch.randn(2, 11, 4, requires_grad=True)
        mine, theirs = layer(tokens, steps.sizes)[0], run_lstm_kernel(layer, tokens, steps.sizes)
        assert torch.allclose(mine, theirs, atol=1e-6)
        gradients = [
            torch.autograd.grad(found.square().sum(), [tokens, *layer.parameters()])
            for found in (mine, theirs)
        ]
        for own, other in zip(*gradients, strict=True):
            assert torch.allclose(own, other, atol=1e-5)


def test_a_softmax_is_read_as_it_was_saved(objective: BilmObjective, tmp_path: Path) -> None:
    assert read_softmax(tmp_path, 16) is None
    objective.save(tmp_path)
    again = read_softmax(tmp_path, 16)
    assert again is not None
    assert again.words == objective.softmax.words
    assert torch.equal(again.adaptive.head.weight, objective.softmax.adaptive.head.weight)
    (tmp_path / SOFTMAX).write_bytes(b"damaged")
    with pytest.raises(ModelError, match="cannot be read"):
        read_softmax(tmp_path, 16)
