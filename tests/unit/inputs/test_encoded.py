"""EncodedSplit: what is encoded together, and where each row's pieces are in a batch."""

import numpy as np
import pytest
import torch
from tests.tiny_runs import tagged_examples, tiny_tokenizer

from totune.data.examples import Examples
from totune.inputs.batches import Batch, TokenIndex, shuffled_batches
from totune.inputs.encoded import EncodingOptions, frame
from totune.inputs.encodings import EncodedSplit

CLS, SEP = 2, 3
PAIRS = Examples(("w1 w2", "w3", ""), pairs=("w4", "", "w5 w6 w7"))


def framed(
    examples: Examples, encoding_options: EncodingOptions | None = None, max_length: int = 20
) -> EncodedSplit:
    return frame(examples, tiny_tokenizer(), max_length, encoding_options or EncodingOptions())


def ids(*words: str) -> list[int]:
    return tiny_tokenizer().convert_tokens_to_ids(list(words))


def read(batch: Batch, side: TokenIndex) -> list[list[int]]:
    """The pieces that a head finds at each sequence's places."""
    pieces = batch.input_ids.flatten()[side.at]
    return [row[inside].tolist() for row, inside in zip(pieces, side.mask, strict=True)]


def test_single_texts_have_no_sides() -> None:
    units = framed(Examples(("w1", "w2 w3")))
    batch = units.batch(np.array([1, 0]), sides=True)
    assert batch.sides == ()
    assert batch.words is None
    assert units.positions(np.array([1, 0])).tolist() == [1, 0]
    assert units.lengths.tolist() == [3, 4]
    assert units.sizes.tolist() == [1, 1]


def test_joint_pairs_are_read_in_two_spans() -> None:
    batch = framed(PAIRS).batch(np.array([2, 0, 1]), sides=True)
    assert batch.input_ids.shape == (3, 6)
    first, second = batch.sides
    assert read(batch, first) == [[CLS, SEP], [CLS, *ids("w1", "w2"), SEP], [CLS, *ids("w3"), SEP]]
    assert read(batch, second) == [[*ids("w5", "w6", "w7"), SEP], [*ids("w4"), SEP], [SEP]]


def test_separate_pairs_are_two_inputs_each() -> None:
    units = framed(PAIRS, EncodingOptions("separate"))
    batch = units.batch(np.array([2, 0]), sides=True)
    assert batch.indices.tolist() == [4, 5, 0, 1]
    first, second = batch.sides
    assert read(batch, first) == [[CLS, SEP], [CLS, *ids("w1", "w2"), SEP]]
    assert read(batch, second) == [[CLS, *ids("w5", "w6", "w7"), SEP], [CLS, *ids("w4"), SEP]]
    assert units.lengths.tolist() == [7, 5, 7]
    assert len(units) == 3
    assert units.pieces.identity != framed(PAIRS).pieces.identity


def test_sides_are_said_on_request() -> None:
    assert framed(PAIRS).batch(np.array([0])).sides == ()


def test_a_second_text_cut_off_entirely_leaves_its_end() -> None:
    units = framed(Examples(("w1 w2 w3",), pairs=("w4",)), max_length=5)
    (first, second) = units.batch(np.array([0]), sides=True).sides
    assert first.mask.sum() + second.mask.sum() == 5
    assert second.mask.sum() >= 1


def test_sentences_of_a_document_are_read_from_one_input() -> None:
    data = tagged_examples([3, 4, 2, 5, 1])
    units = framed(data, max_length=40)
    assert len(units) == 3
    assert units.sizes.tolist() == [2, 2, 1]
    assert units.positions(np.array([2, 0])).tolist() == [14, 0, 1, 2, 3, 4, 5, 6]
    batch = units.batch(np.array([2, 0]), sides=True)
    assert batch.input_ids.shape[0] == 2
    assert batch.words is not None
    assert batch.words.mask.sum(dim=1).tolist() == [1, 3, 4]
    (side,) = batch.sides
    assert data.words is not None
    for row, (own, starts, mask) in zip(
        (4, 0, 1),
        zip(read(batch, side), batch.words.at, batch.words.mask, strict=True),
        strict=True,
    ):
        alone = tiny_tokenizer()(data.texts[row], add_special_tokens=False)["input_ids"]
        assert own == alone
        firsts = [own[start] for start in starts[mask]]
        heads = [
            tiny_tokenizer()(w, add_special_tokens=False)["input_ids"][0] for w in data.words[row]
        ]
        assert firsts == heads


def test_sentences_alone_are_the_same_pieces_without_context() -> None:
    units = framed(tagged_examples([3, 4, 2, 5, 1]), max_length=40)
    alone = units.alone()
    assert len(alone) == 5
    assert alone.sizes.tolist() == [1] * 5
    rows = np.array([3, 0])
    batch, whole = alone.batch(rows, sides=True), units.batch_of_rows(rows)
    assert read(batch, batch.sides[0]) == read(whole, whole.sides[0])
    assert whole.input_ids.shape[0] == 2  # the two documents, once each
    assert whole.words is not None
    assert batch.words is not None
    assert torch.equal(whole.words.at, batch.words.at)
    assert alone.positions(rows).tolist() == [9, 10, 11, 12, 13, 0, 1, 2]
    assert units.batch_of_rows(np.array([1, 0])).input_ids.shape[0] == 1


@pytest.mark.parametrize("tokens", [None, 40])
def test_batches_count_rows_and_take_every_unit_once(tokens: int | None) -> None:
    units = framed(tagged_examples(list(range(1, 16))), max_length=40)
    batches = list(shuffled_batches(units.lengths, 4, 0, 0, tokens, units.sizes))
    assert sorted(np.concatenate(batches)) == list(range(len(units)))
    assert all(units.sizes[batch].sum() <= 4 for batch in batches) or tokens
    if tokens:
        assert all(units.lengths[b].max() * len(b) <= tokens or len(b) == 1 for b in batches)


def test_a_unit_larger_than_a_batch_is_a_batch() -> None:
    sizes, lengths = np.array([9, 1, 1, 1]), np.array([9, 1, 1, 1])
    batches = [batch.tolist() for batch in shuffled_batches(lengths, 2, 0, 0, None, sizes)]
    assert [0] in batches
    assert sorted(map(len, batches)) == [1, 1, 2]
