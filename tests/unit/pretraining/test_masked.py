"""What is masked, what is paired, and the loss against transformers' own."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForPreTraining, BertTokenizer

from totune.errors import DataError
from totune.pretraining.corpus import hold_out, read_corpus
from totune.pretraining.masked import MaskedObjective
from totune.pretraining.rows import PackedRows, pack_rows, sample_pair, select_pairable
from totune.pretraining.tokens import open_store
from totune.pretraining.vocabulary import learn_pieces
from totune.progress import Progress


@pytest.fixture(scope="module")
def piece_rows(corpus_file: Path) -> tuple[PackedRows, BertTokenizer]:
    train, held = hold_out(read_corpus([corpus_file]))
    tokenizer = learn_pieces(
        train, 50, cased=False, exact=False, max_length=64, progress=Progress()
    )
    store = open_store(train, held, tokenizer, Progress())
    return pack_rows(store, 0, len(train), 61, train.words), tokenizer


def network(tokenizer: BertTokenizer, pairs: bool = False) -> BertForMaskedLM | BertForPreTraining:
    torch.manual_seed(0)
    kind = BertForPreTraining if pairs else BertForMaskedLM
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    return kind(config).eval()


@pytest.mark.parametrize("pairs", [False, True])
def test_the_loss_is_that_of_transformers(
    piece_rows: tuple[PackedRows, BertTokenizer], pairs: bool
) -> None:
    text, tokenizer = piece_rows
    model = network(tokenizer, pairs)
    objective = MaskedObjective(model, tokenizer, pairs=pairs)
    batch = objective.collate(select_pairable(text) if pairs else text, np.arange(12), seed=1)
    with torch.no_grad():
        sums = objective(objective.micro_batch(batch, np.arange(12)))
    mine = sum(sums[name] / asked for name, asked in batch.targets.items())
    assert float(mine) == pytest.approx(model(**batch.tensors).loss.item(), rel=1e-5)
    logits = model(**batch.tensors)[1]
    labels = batch.tensors["labels"]
    right = (logits.argmax(-1) == labels)[labels != -100].sum()
    assert int(sums["masked_right"]) == int(right)


def test_other_heads_are_read_from_the_whole_model(
    piece_rows: tuple[PackedRows, BertTokenizer],
) -> None:
    text, tokenizer = piece_rows
    objective = MaskedObjective(network(tokenizer), tokenizer)
    batch = objective.collate(text, np.arange(8), seed=1)
    part = objective.micro_batch(batch, np.arange(8))
    gathered = objective(part)["masked"].item()
    objective._head = None
    assert objective(part)["masked"].item() == pytest.approx(gathered, rel=1e-5)


def test_fifteen_in_a_hundred_are_masked(piece_rows: tuple[PackedRows, BertTokenizer]) -> None:
    text, tokenizer = piece_rows
    objective = MaskedObjective(network(tokenizer), tokenizer)
    batch = objective.collate(text, np.arange(len(text)), seed=2)
    inputs, labels = batch.tensors["input_ids"], batch.tensors["labels"]
    chosen = labels != -100
    special = torch.isin(labels, torch.tensor(tokenizer.all_special_ids))
    assert not special.any()
    assert float(chosen.sum() / batch.tokens) == pytest.approx(0.15, abs=0.03)
    masked = inputs[chosen] == tokenizer.mask_token_id
    same = inputs[chosen] == labels[chosen]
    assert float(masked.float().mean()) == pytest.approx(0.8, abs=0.08)
    assert float(same.float().mean()) == pytest.approx(0.1, abs=0.06)
    assert batch.tokens == sum(len(text.read(row)) for row in range(len(text)))
    again = objective.collate(text, np.arange(len(text)), seed=2)
    assert torch.equal(again.tensors["input_ids"], inputs)


def test_words_are_masked_whole(piece_rows: tuple[PackedRows, BertTokenizer]) -> None:
    text, tokenizer = piece_rows
    objective = MaskedObjective(network(tokenizer), tokenizer, whole_words=True)
    batch = objective.collate(text, np.arange(len(text)), seed=2)
    inputs, labels = batch.tensors["input_ids"].numpy(), batch.tensors["labels"].numpy()
    chosen = labels != -100
    assert (inputs[chosen] == tokenizer.mask_token_id).all()
    restored = np.where(chosen, labels, inputs)
    pieces = np.asarray(tokenizer.convert_ids_to_tokens(range(len(tokenizer))))[restored]
    continues = np.char.startswith(pieces.astype(str), "##")
    assert continues[:, 1:][chosen[:, 1:]].any(), "no word of several pieces was masked"
    assert (chosen[:, 1:] == chosen[:, :-1])[continues[:, 1:]].all()


def test_half_of_the_pairs_follow_each_other_and_the_rest_are_of_two_documents(
    piece_rows: tuple[PackedRows, BertTokenizer],
) -> None:
    text = select_pairable(piece_rows[0])
    random = np.random.default_rng(0)
    apart = 0
    for row in range(len(text)):
        pair = sample_pair(text, row, random)
        own = text.read(row)
        assert len(pair.first) + len(pair.second) <= text.limit
        assert np.array_equal(pair.first, own[: len(pair.first)])
        assert len(pair.first) in text.sentence_starts(row)
        if not pair.is_random:
            assert np.array_equal(np.concatenate([pair.first, pair.second]), own)
        apart += pair.is_random
    assert apart / len(text) == pytest.approx(0.5, abs=0.15)


def test_what_does_not_follow_is_from_another_document(
    piece_rows: tuple[PackedRows, BertTokenizer],
) -> None:
    text = select_pairable(piece_rows[0])
    store = text.store
    numbered = PackedRows(  # pieces that say their document
        store.__class__(
            np.repeat(
                np.arange(len(store.documents) - 1), np.diff(store.sentences[store.documents])
            ),
            *(store.sentences, store.documents, store.train_documents, [], store.counts),
        ),
        *(text.spans, text.documents, text.words, text.limit),
    )
    random = np.random.default_rng(1)
    pairs = [sample_pair(numbered, row, random) for row in range(len(text))]
    for pair in pairs:
        assert (pair.first[0] != pair.second[0]) == pair.is_random
        assert len(np.unique(pair.second)) == 1


def test_pairs_need_two_documents(piece_rows: tuple[PackedRows, BertTokenizer]) -> None:
    text = piece_rows[0]
    with pytest.raises(DataError, match="next_sentence needs two documents"):
        select_pairable(text.select(text.documents == 0))
