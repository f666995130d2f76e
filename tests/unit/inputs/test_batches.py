import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from totune.data.examples import Examples
from totune.errors import ConfigError, ModelError
from totune.inputs.batches import ordered_batches, shuffled_batches
from totune.inputs.encoded import tokenize
from totune.inputs.encodings import Encodings

WORDS = ["the", "film", "is", "good", "bad", "##ly", "a", "b", "c"]
LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=80).map(np.array)


def build(pad: bool = True, segments: bool = True) -> PreTrainedTokenizerFast:
    vocabulary = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if segments else [])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token="[PAD]" if pad else None,
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=names,
        model_max_length=12,
    )


@pytest.fixture(scope="module")
def piece_tokenizer() -> PreTrainedTokenizerBase:
    return build()


def row(pieces: Encodings, at: int) -> list[int]:
    return pieces.input_ids[pieces.offsets[at] : pieces.offsets[at + 1]].tolist()


def test_single_texts(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    pieces = tokenize(Examples(("The film is goodly", "bad", "")), piece_tokenizer, 16)
    assert row(pieces, 0) == [2, 4, 5, 6, 7, 9, 3]
    assert row(pieces, 1) == [2, 8, 3]
    assert row(pieces, 2) == [2, 3]
    assert pieces.lengths.tolist() == [7, 3, 2]
    assert (len(pieces), pieces.truncated, pieces.pad_token_id) == (3, 0, 0)


def test_pairs_are_one_sequence_of_two_segments(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    pieces = tokenize(Examples(("a b",), pairs=("c",)), piece_tokenizer, 16)
    assert row(pieces, 0) == [2, 10, 11, 3, 12, 3]
    assert pieces.token_type_ids is not None
    assert pieces.token_type_ids.tolist() == [0, 0, 0, 0, 1, 1]


@settings(deadline=None, max_examples=30)
@given(
    lengths=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=9),
    max_length=st.integers(5, 20),
)
def test_truncation_is_counted_exactly(lengths: list[tuple[int, int]], max_length: int) -> None:
    tokenizer = build()
    texts = tuple("a " * first for first, _ in lengths)
    pairs = tuple("b " * second for _, second in lengths)
    pieces = tokenize(Examples(texts, pairs=pairs), tokenizer, max_length)
    wanted = np.array([first + second + 3 for first, second in lengths])
    assert pieces.truncated == (wanted > max_length).sum()
    assert pieces.lengths.tolist() == np.minimum(wanted, max_length).tolist()


def test_the_longer_text_of_a_pair_is_cut_first(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    pieces = tokenize(Examples(("a " * 9,), pairs=("b b",)), piece_tokenizer, 9)
    assert row(pieces, 0) == [2, 10, 10, 10, 10, 3, 11, 11, 3]


def test_long_texts_raise_no_warning(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pieces = tokenize(Examples(("a " * 50_000,) * 3), piece_tokenizer, 20)
    assert (pieces.truncated, pieces.lengths.tolist()) == (3, [20] * 3)


def test_many_rows_are_tokenised_in_chunks(
    piece_tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Examples(tuple("a " * (i % 7) for i in range(25)), pairs=("b",) * 25)
    whole = tokenize(data, piece_tokenizer, 8)
    monkeypatch.setattr("totune.inputs.encoded.CHUNK", 4)
    parts = tokenize(data, piece_tokenizer, 8)
    assert parts.input_ids.tolist() == whole.input_ids.tolist()
    assert parts.offsets.tolist() == whole.offsets.tolist()
    assert (parts.truncated, parts.identity) == (whole.truncated, whole.identity)


def test_no_segments_without_token_types() -> None:
    pieces = tokenize(Examples(("a",), pairs=("b",)), build(segments=False), 8)
    assert pieces.token_type_ids is None
    assert pieces.batch(np.array([0])).token_type_ids is None


def test_identity_follows_from_tokenizer_limit_and_data() -> None:
    data = Examples(("a", "b"))
    tokenizer = build()
    before = tokenize(data, tokenizer, 8).identity
    tokenizer(["a"], padding="max_length", truncation=True, max_length=6)  # leaves state behind
    assert tokenize(data, tokenizer, 8).identity == before == tokenize(data, build(), 8).identity
    others = [
        tokenize(data, tokenizer, 9),
        tokenize(replace(data, texts=("a", "c")), tokenizer, 8),
        tokenize(data, build(segments=False), 8),
    ]
    assert len({before, *(pieces.identity for pieces in others)}) == 4


def test_a_tokenizer_that_cannot_pad_is_an_error() -> None:
    with pytest.raises(ModelError, match="no padding token"):
        tokenize(Examples(("a",)), build(pad=False), 8)


def test_a_limit_without_room_is_an_error(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    with pytest.raises(ConfigError, match=r"max_length=2 is too short: .* must be 3 or more"):
        tokenize(Examples(("a",)), piece_tokenizer, 2)
    with pytest.raises(ConfigError, match="must be 5 or more"):
        tokenize(Examples(("a",), pairs=("b",)), piece_tokenizer, 4)


def test_a_batch_is_padded_to_its_longest_row(piece_tokenizer: PreTrainedTokenizerBase) -> None:
    pieces = tokenize(Examples(("a", "a b c a b c", "a b")), piece_tokenizer, 16)
    batch = pieces.batch(np.array([2, 0]))
    assert batch.input_ids.tolist() == [[2, 10, 11, 3], [2, 10, 3, 0]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch.indices.tolist() == [2, 0]
    assert len(batch) == 2
    assert batch.input_ids.dtype == batch.attention_mask.dtype == torch.int64
    assert batch.token_type_ids is not None
    assert batch.token_type_ids.shape == (2, 4)


@given(LENGTHS, st.integers(1, 20), st.integers(0, 99), st.integers(0, 9))
def test_by_size_every_row_comes_once(
    lengths: np.ndarray, batch_size: int, seed: int, epoch: int
) -> None:
    for batches in (
        list(shuffled_batches(lengths, batch_size, seed, epoch)),
        list(ordered_batches(lengths, batch_size)),
    ):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        sizes = sorted((len(batch) for batch in batches), reverse=True)
        assert set(sizes[:-1]) <= {batch_size}
        assert 0 < sizes[-1] <= batch_size


@given(LENGTHS, st.integers(1, 300), st.integers(0, 99))
def test_by_tokens_every_row_comes_once_within_the_budget(
    lengths: np.ndarray, budget: int, seed: int
) -> None:
    for batches in (
        list(shuffled_batches(lengths, 1, seed, 0, tokens_per_batch=budget)),
        list(ordered_batches(lengths, 1, tokens_per_batch=budget)),
    ):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
        for batch in batches:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= budget


def test_the_order_is_fixed_by_seed_and_epoch() -> None:
    lengths = np.random.default_rng(0).integers(3, 60, size=500)

    def batches(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in shuffled_batches(lengths, 16, seed, epoch)]

    assert batches(1, 2) == batches(1, 2)
    orders = [batches(1, 2), batches(1, 3), batches(2, 2)]
    compositions = [sorted(map(sorted, order)) for order in orders]
    for at, other in [(0, 1), (0, 2), (1, 2)]:
        assert orders[at] != orders[other]
        assert compositions[at] != compositions[other]


def test_rows_of_one_length_are_shuffled_too() -> None:
    first = next(iter(shuffled_batches(np.full(100, 8), 10, 0, 0)))
    assert first.tolist() != sorted(first.tolist())


def test_similar_lengths_share_a_batch() -> None:
    lengths = np.random.default_rng(0).integers(3, 100, size=2000)

    def padded(batches: list[np.ndarray]) -> float:
        return sum(len(batch) * lengths[batch].max() for batch in batches) / lengths.sum()

    assert padded(list(shuffled_batches(lengths, 32, 0, 0))) < 1.15
    assert padded(list(ordered_batches(lengths, 32))) < 1.03
    assert padded(np.split(np.arange(2000), 50)) > 1.7


def test_ordered_batches_begin_with_the_longest() -> None:
    lengths = np.array([3, 9, 9, 1])
    assert [batch.tolist() for batch in ordered_batches(lengths, 2)] == [[1, 2], [0, 3]]
