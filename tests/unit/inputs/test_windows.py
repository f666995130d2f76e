"""Sentences as encoder inputs: every word read once, with as much context as fits."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiny_runs import tagged_examples, tiny_tokenizer
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from totune.data.examples import Examples
from totune.errors import ConfigError
from totune.inputs.encodings import EncodedSplit, Ragged
from totune.inputs.windows import cuts, nearest_middle, overlapping, windows

CLS, SEP, UNKNOWN = 2, 3, 0


def words_of(found: EncodedSplit) -> Ragged:
    assert found.words is not None
    return found.words


def sentences(*texts: str, documents: tuple[int, ...] | None = None) -> Examples:
    words = tuple(tuple(text.split(" ")) for text in texts)
    return Examples(texts, words=words, documents=documents)


def inputs_of(found: EncodedSplit) -> list[list[int]]:
    offsets = found.pieces.offsets
    return [found.pieces.input_ids[a:b].tolist() for a, b in pairwise(offsets)]


def read(found: EncodedSplit, row: int) -> list[int]:
    """The pieces that are read of a sentence."""
    places = found.sides[0].row(row)
    return found.pieces.input_ids[places].tolist()


def ids(*words: str) -> list[int]:
    return tiny_tokenizer().convert_tokens_to_ids(list(words))


def test_each_sentence_alone() -> None:
    found = windows(sentences("w1 w2", "w3"), tiny_tokenizer(), 20, context=True)
    assert inputs_of(found) == [[CLS, *ids("w1", "w2"), SEP], [CLS, *ids("w3"), SEP]]
    assert [read(found, row) for row in (0, 1)] == [ids("w1", "w2"), ids("w3")]
    assert found.inputs.tolist() == found.rows.tolist() == [0, 1, 2]


def test_a_document_that_fits_is_one_input() -> None:
    data = sentences("w1 w2", "w3", "w4", documents=(5, 5, 9))
    found = windows(data, tiny_tokenizer(), 20, context=True)
    assert inputs_of(found) == [[CLS, *ids("w1", "w2", "w3"), SEP], [CLS, *ids("w4"), SEP]]
    assert [read(found, row) for row in range(3)] == [ids("w1", "w2"), ids("w3"), ids("w4")]
    assert found.rows.tolist() == [0, 2, 3]
    alone = windows(data, tiny_tokenizer(), 20, context=False)
    assert len(inputs_of(alone)) == 3
    assert alone.pieces.identity != found.pieces.identity


def test_a_longer_document_gives_every_sentence_context() -> None:
    texts = [" ".join(f"w{5 * row + word}" for word in range(5)) for row in range(6)]
    data = sentences(*texts, documents=(0,) * 6)
    found = windows(data, tiny_tokenizer(), 14, context=True)  # room for 12 pieces, cores of 9
    document = [piece for text in texts for piece in ids(*text.split())]
    assert found.rows.tolist() == list(range(7))  # two sentences are more than a core
    for row, encoded in enumerate(inputs_of(found)):
        start = max(0, min(5 * row - 3, 30 - 12))
        assert encoded == [CLS, *document[start : start + 12], SEP]
        assert read(found, row) == document[5 * row : 5 * row + 5]


def test_a_sentence_longer_than_the_encoder_is_read_whole() -> None:
    words = [f"w{number}" for number in range(30)]
    data = sentences("w40", " ".join(words), "w41", documents=(0, 0, 0))
    found = windows(data, tiny_tokenizer(), 12, context=True)  # room for 10
    assert read(found, 1) == ids(*words)
    assert [read(found, row) for row in (0, 2)] == [ids("w40"), ids("w41")]
    (first, last) = found.inputs[1], found.inputs[2]
    assert last - first == 4
    # No word is read at the cut end of an input, save where the sentence itself ends.
    places = found.sides[0].row(1)
    starts = found.pieces.offsets[first:last]
    columns = places - starts[np.searchsorted(starts, places, side="right") - 1]
    assert columns[0] == 1
    assert columns[-1] == 10
    assert set(columns[1:-1]) <= set(range(2, 10)) | {1, 10}
    assert min(columns[3:-3]) >= 2
    assert max(columns[3:-3]) <= 9


def test_words_of_several_pieces_and_of_none() -> None:
    data = sentences("w1-w2 w3 \u200b w4")
    found = windows(data, tiny_tokenizer(), 20, context=True)
    assert read(found, 0) == [*ids("w1"), UNKNOWN, *ids("w2", "w3"), UNKNOWN, *ids("w4")]
    assert words_of(found).values.tolist() == [0, 3, 4, 5]


def unigram() -> PreTrainedTokenizerFast:
    """Pieces of SentencePiece: what begins a word may be nothing but the space before it."""
    pieces = ["<unk>", "<pad>", "<s>", "</s>", "▁", "▁the", "▁a", "b", "東", "京"]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=0))
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    special = [("<s>", 2), ("</s>", 3)]
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=special
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", model_max_length=40
    )


def byte_level() -> PreTrainedTokenizerFast:
    """Bytes of RoBERTa's kind, with one pair merged."""
    pieces = ["<unk>", "<pad>", "<s>", "</s>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġa"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    backend = Tokenizer(models.BPE(vocabulary, [("Ġ", "a")]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = processors.RobertaProcessing(("</s>", 3), ("<s>", 2))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", model_max_length=40
    )


@pytest.mark.parametrize("make", [tiny_tokenizer, unigram, byte_level])
def test_first_pieces_are_those_that_transformers_aligns(
    make: Callable[[], PreTrainedTokenizerFast],
) -> None:
    tokenizer, words = make(), ("東京", "the", "東", "a", "b", "ab", "w1-w2")
    found = windows(sentences(" ".join(words)), tokenizer, 80, context=True)
    encoded = tokenizer(list(words), is_split_into_words=True, add_special_tokens=False)
    assert read(found, 0) == encoded["input_ids"]
    aligned = encoded.word_ids()
    assert words_of(found).values.tolist() == [
        aligned.index(number) for number in range(len(words))
    ]


def test_a_word_that_holds_spaces_is_one_word() -> None:
    data = Examples(("w1 w2 w3",), words=(("w1 w2", "w3"),))
    found = windows(data, tiny_tokenizer(), 20, context=True)
    assert words_of(found).values.tolist() == [0, 2]


def test_no_room_is_told() -> None:
    with pytest.raises(ConfigError, match="max_length=2 is too short"):
        windows(sentences("w1"), tiny_tokenizer(), 2, context=True)


@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=9),
    documents=st.lists(st.booleans(), min_size=9, max_size=9),
    max_length=st.integers(5, 30),
    context=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_every_piece_is_read_once_and_in_order(
    lengths: list[int], documents: list[bool], max_length: int, context: bool
) -> None:
    numbers = tuple(np.cumsum(documents[: len(lengths)]).tolist())
    data = sentences(*(" ".join(["w1-w2"] * length) for length in lengths), documents=numbers)
    found = windows(data, tiny_tokenizer(), max_length, context)
    for row, length in enumerate(lengths):
        assert read(found, row) == [*ids("w1"), UNKNOWN, *ids("w2")] * length
        starts = words_of(found).row(row)
        assert starts.tolist() == list(range(0, 3 * length, 3))
    assert max(map(len, inputs_of(found))) <= max_length
    assert found.rows[-1] == len(lengths)
    assert (np.diff(found.rows) > 0).all()
    assert (np.diff(found.inputs) > 0).all()


@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=12), room=st.integers(3, 30))
@settings(max_examples=80, deadline=None)
def test_cuts_hold_their_sentences(lengths: list[int], room: int) -> None:
    found = list(cuts(np.asarray(lengths), room))
    assert [cut.first for cut in found] == [0, *(cut.last for cut in found[:-1])]
    assert found[-1].last == len(lengths)
    ends = np.cumsum(lengths)
    for cut in found:
        start, end = ends[cut.first] - lengths[cut.first], ends[cut.last - 1]
        covered = {piece for low, high in cut.spans for piece in range(low, high)}
        assert covered >= set(range(start, end))
        assert all(0 <= low < high <= ends[-1] for low, high in cut.spans)
        assert all(high - low <= room for low, high in cut.spans)


@pytest.mark.parametrize(("start", "end", "room"), [(0, 11, 10), (7, 100, 10), (3, 30, 4)])
def test_overlapping_spans_are_read_far_from_their_edges(start: int, end: int, room: int) -> None:
    spans = overlapping(start, end, room)
    assert spans[0][0] == start
    assert spans[-1][1] == end
    pieces = np.arange(start, end)
    chosen = nearest_middle(pieces, spans)
    for piece, span in zip(pieces, chosen, strict=True):
        low, high = spans[span]
        assert low <= piece < high
        others = [min(piece - a, b - 1 - piece) for a, b in spans if a <= piece < b]
        inner = min(piece - low, high - 1 - piece)
        assert inner == max(others) or piece - start < room or end - piece <= room


def test_examples_of_tagged_words_keep_their_documents() -> None:
    data = tagged_examples([3, 4, 5, 6])
    found = windows(data, tiny_tokenizer(), 40, context=True)
    assert found.rows.tolist() == [0, 2, 4]
    assert words_of(found).lengths.tolist() == [3, 4, 5, 6]
