"""Words and their numbers, and a tokenizer that the data modules can use like any other."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from totune.data.examples import Examples
from totune.encoders.words import (
    EMPTY,
    END,
    PADDING,
    RULES_FILE,
    Vocabulary,
    WordTokenizer,
    read_tokenizer,
)
from totune.errors import ConfigError, ModelError
from totune.inputs.encoded import EncodingOptions, frame, tokenize
from totune.inputs.encodings import identity_of


@pytest.fixture
def word_tokenizer() -> WordTokenizer:
    return WordTokenizer(Vocabulary(), 20)


def split(text: str) -> list[str]:
    """The words of a text, found by its spans."""
    encoded = WordTokenizer(Vocabulary(), 20)(text, return_offsets_mapping=True)
    return [text[start:end] for start, end in encoded["offset_mapping"]]


def read(tokenizer: WordTokenizer, ids: np.ndarray) -> list[str]:
    names = {PADDING: "<pad>", END: "<end>", EMPTY: "<empty>"}
    words = tokenizer.vocabulary.words(0)
    return [names.get(int(number), words[number]) for number in ids]


def test_numbers_are_given_once_and_stay() -> None:
    vocabulary = Vocabulary()
    numbers = [vocabulary.number(word) for word in ["a", "b", "a", ""]]
    assert numbers == [EMPTY + 1, EMPTY + 2, EMPTY + 1, EMPTY]
    assert len(vocabulary) == EMPTY + 3
    assert vocabulary.words(EMPTY + 1) == ["a", "b"]


def test_copies_know_words_that_come_later() -> None:
    vocabulary = Vocabulary()
    twin = copy.deepcopy({"inside": vocabulary})["inside"]
    assert twin.number("later") == vocabulary.number("later")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A good, old film.", "A|good|,|old|film|."),
        ("It's Murray\u2019s: don't, we'll!", "It|'s|Murray|\u2019s|:|don|'t|,|we|'ll|!"),
        ("does n't 's", "does|n't|'s"),  # set apart already
        ("an e-mail to a.b@c.org at 10:30 (3.50, or 10,000)", None),
        ("the U.S. and e.g. O'Neil", "the|U.S.|and|e.g.|O'Neil"),
        ("Wait... what?! -- no ``quotes''", "Wait|...|what|?|!|--|no|``|quotes|''"),
        ("  na\u00efve\tcaf\u00e9\n\u2014\U0001f600 ", "na\u00efve|caf\u00e9|\u2014|\U0001f600"),
        ("one,two $5", "one|,|two|$|5"),
        ("", ""),
    ],
)
def test_words_of_a_text(text: str, words: str | None) -> None:
    expected = words or "an|e-mail|to|a.b@c.org|at|10:30|(|3.50|,|or|10,000|)"
    assert split(text) == ([""] if words == "" else expected.split("|"))


@given(st.text(max_size=30))
def test_nothing_but_white_space_is_lost(text: str) -> None:
    assert "".join(split(text)) == "".join(text.split())


def test_one_text_and_several(word_tokenizer: WordTokenizer) -> None:
    single = word_tokenizer("a", return_special_tokens_mask=True)
    assert dict(single) == {
        "input_ids": [EMPTY + 1],
        "attention_mask": [1],
        "special_tokens_mask": [0],
    }
    several = word_tokenizer(["a b", ""], return_attention_mask=False)
    assert dict(several) == {"input_ids": [[EMPTY + 1, EMPTY + 2], [EMPTY]]}


def test_a_pair_has_an_end_between_its_texts(word_tokenizer: WordTokenizer) -> None:
    encoded = word_tokenizer(["a b"], ["c"], return_special_tokens_mask=True)
    assert encoded["input_ids"] == [[EMPTY + 1, EMPTY + 2, END, EMPTY + 3]]
    assert encoded["special_tokens_mask"] == [[0, 0, 1, 0]]
    assert encoded.encodings[0].sequence_ids == [0, 0, None, 1]
    assert word_tokenizer.num_special_tokens_to_add(pair=True) == 1
    assert word_tokenizer.num_special_tokens_to_add() == 0


@given(st.integers(1, 9), st.integers(1, 9), st.integers(3, 20))
def test_pairs_are_cut_as_tokenizers_cuts_them(first: int, second: int, limit: int) -> None:
    words = [*(f"a{i}" for i in range(first)), *(f"b{i}" for i in range(second))]
    theirs = Tokenizer(models.WordLevel({w: i for i, w in enumerate([*words, "<end>"])}, "<end>"))
    theirs.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    theirs.post_processor = processors.TemplateProcessing(
        pair="$A <end> $B:1", special_tokens=[("<end>", len(words))]
    )
    theirs.enable_truncation(limit, strategy="longest_first")
    texts = " ".join(words[:first]), " ".join(words[first:])
    expected = theirs.encode(*texts)
    tokenizer = WordTokenizer(Vocabulary(), 20)
    ours = tokenizer([texts[0]], [texts[1]], truncation="longest_first", max_length=limit)
    assert read(tokenizer, ours["input_ids"][0]) == expected.tokens
    assert ours.encodings[0].overflowing == bool(expected.overflowing)
    assert ours.encodings[0].sequence_ids == expected.sequence_ids


def test_texts_become_pieces(word_tokenizer: WordTokenizer) -> None:
    pieces = tokenize(Examples(("a b c d", "", "e, a")), word_tokenizer, 3)
    batch = pieces.batch(np.arange(3))
    assert [read(word_tokenizer, row) for row in batch.input_ids.numpy()] == [
        ["a", "b", "c"],
        ["<empty>", "<pad>", "<pad>"],
        ["e", ",", "a"],
    ]
    assert batch.attention_mask.sum(dim=1).tolist() == [3, 1, 3]
    assert batch.token_type_ids is None
    assert pieces.truncated == 1


def test_pairs_become_pieces(word_tokenizer: WordTokenizer) -> None:
    pairs = Examples(("a b", "", "c"), pairs=("d", "", "e f"))
    joint = tokenize(pairs, word_tokenizer, 20)
    assert joint.lengths.tolist() == [4, 3, 4]
    assert joint.second_starts is not None
    assert joint.second_starts.tolist() == [3, 2, 2]
    apart = frame(pairs, word_tokenizer, 20, EncodingOptions(pair_encoding="separate"))
    assert apart.pieces.lengths.tolist() == [2, 1, 1, 1, 1, 2]


def test_tagged_words_stay_as_they_are(word_tokenizer: WordTokenizer) -> None:
    words = (("U.S.", "don't", "3,", "", "New\u00a0York"), ("New York", "x"))
    texts = tuple(" ".join(row) for row in words)
    units = frame(Examples(texts, words=words), word_tokenizer, 20)
    assert read(word_tokenizer, units.pieces.input_ids) == [
        *("U.S.", "don't", "3,", "<empty>", "New\u00a0York"),
        *("New", "York", "x"),
    ]
    assert units.words is not None
    assert units.words.values.tolist() == [0, 1, 2, 3, 4, 0, 2]
    assert units.pieces.lengths.tolist() == [5, 3]


def test_long_sentences_overlap(word_tokenizer: WordTokenizer) -> None:
    words = (tuple("abcdefghijklmnopqrstuvwxy"),)
    units = frame(Examples((" ".join(words[0]),), words=words), word_tokenizer, 20)
    assert len(units.pieces) == 2
    read_from = units.pieces.input_ids[units.sides[0].values]
    assert read(word_tokenizer, read_from) == list(words[0])


def test_too_short_a_limit_is_refused(word_tokenizer: WordTokenizer) -> None:
    with pytest.raises(ConfigError, match="it must be 3 or more"):
        tokenize(Examples(("a",), pairs=("b",)), word_tokenizer, 2)


def test_identity_is_of_rules_and_data_not_of_numbers(word_tokenizer: WordTokenizer) -> None:
    examples = Examples(("a b",))
    before = identity_of(examples, word_tokenizer, 9)
    word_tokenizer(["other words first"])
    assert identity_of(examples, word_tokenizer, 9) == before
    assert identity_of(examples, WordTokenizer(Vocabulary(), 20), 9) == before
    assert identity_of(examples, word_tokenizer, 8) != before
    assert identity_of(Examples(("a c",)), word_tokenizer, 9) != before


def test_saved_rules_are_known_again(word_tokenizer: WordTokenizer, tmp_path: Path) -> None:
    word_tokenizer.save_pretrained(tmp_path)
    again = read_tokenizer(tmp_path, Vocabulary(), 7, "here")
    assert (again.model_max_length, again.name_or_path) == (7, "here")
    file = tmp_path / RULES_FILE
    other = json.loads(file.read_text(encoding="utf-8")) | {"version": 0}
    for content, message in ((json.dumps(other), "by other rules"), ("{", "is damaged")):
        file.write_text(content, encoding="utf-8")
        with pytest.raises(ModelError, match=message):
            read_tokenizer(tmp_path, Vocabulary(), 7)
    file.unlink()
    assert read_tokenizer(tmp_path, Vocabulary(), 7).is_fast
