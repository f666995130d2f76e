from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from totune.errors import ConfigError, DataError
from totune.information import (
    TermOptions,
    corpus_divergence,
    count_terms,
    jensen_shannon,
    shared_vocabulary,
    term_distribution,
)

TEXTS = ["The cat sat, the CAT slept.", "A cat!"]
amounts = st.lists(st.integers(0, 50), min_size=6, max_size=6).filter(any)


def shares(counts: list[int]) -> np.ndarray:
    return np.array(counts) / sum(counts)


@settings(max_examples=50, deadline=None)
@given(amounts, amounts)
def test_divergence_is_symmetric_and_bounded(a: list[int], b: list[int]):
    found = jensen_shannon(shares(a), shares(b))
    assert found == pytest.approx(jensen_shannon(shares(b), shares(a)), abs=1e-15)
    assert 0 <= found <= 1


@settings(max_examples=50, deadline=None)
@given(amounts, amounts)
def test_divergence_is_zero_for_equal_distributions_alone(a: list[int], b: list[int]):
    p, q = shares(a), shares(b)
    assert jensen_shannon(p, p) == 0
    assert (jensen_shannon(p, q) < 1e-12) == np.allclose(p, q, rtol=0, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(amounts, amounts)
def test_the_order_of_terms_does_not_matter(a: list[int], b: list[int]):
    found = jensen_shannon(shares(a[::-1]), shares(b[::-1]))
    assert found == pytest.approx(jensen_shannon(shares(a), shares(b)), abs=1e-15)


def test_known_divergences():
    assert jensen_shannon([1, 0], [0, 1]) == 1
    assert jensen_shannon([1, 0], [0, 1], "e") == pytest.approx(np.log(2), abs=1e-15)
    # m = (3/4, 1/4): (log2(4/3) + (log2(2/3) + log2(2)) / 2) / 2
    expected = (np.log2(4 / 3) + (np.log2(2 / 3) + 1) / 2) / 2
    assert jensen_shannon([1, 0], [0.5, 0.5]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("p", "q", "message"),
    [
        ([1.0], [0.5, 0.5], r"\[1\] and \[2\]"),
        ([[1.0]], [[1.0]], r"\[1, 1\] and \[1, 1\]"),
        ([0.5, 0.4], [0.5, 0.5], "The first is no distribution.*the sum 0.9"),
        ([0.5, 0.5], [1.5, -0.5], "The second is no distribution.*the least is -0.5"),
        ([np.nan, 0.5], [0.5, 0.5], "The first is no distribution"),
        ([], [], "The first is no distribution"),
    ],
)
def test_what_is_no_pair_of_distributions(p: list[float], q: list[float], message: str):
    with pytest.raises(DataError, match=message):
        jensen_shannon(p, q)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (TermOptions(), {"the": 2, "cat": 3, "sat": 1, "slept": 1, "a": 1}),
        (
            TermOptions(lowercase=False),
            {"The": 1, "the": 1, "cat": 2, "CAT": 1, "sat": 1, "slept": 1, "A": 1},
        ),
        (TermOptions(stop_words="english"), {"cat": 3, "sat": 1, "slept": 1}),
        (TermOptions(token_pattern=r"(\w\w)\w*t\b"), {"ca": 3, "sa": 1, "sl": 1}),
    ],
)
def test_terms(options: TermOptions, expected: dict[str, int]):
    assert count_terms(TEXTS, options) == expected


def test_the_vocabulary_is_the_most_frequent_of_all_in_a_fixed_order():
    corpora = [Counter(b=2, a=1, z=3), Counter(a=1, c=4, z=2)]
    assert shared_vocabulary(corpora) == ["z", "c", "a", "b"]
    assert shared_vocabulary(corpora, 3) == ["z", "c", "a"]


def test_a_distribution_is_of_the_vocabularys_terms():
    found = term_distribution(Counter(a=1, b=3, other=90), ["b", "missing", "a"])
    np.testing.assert_array_equal(found, [0.75, 0, 0.25])


def once(texts: list[str]) -> Iterator[str]:
    yield from texts


def test_corpora_are_read_once_as_streams():
    found = corpus_divergence(once(TEXTS), once(["the dog slept"]))
    # Of cat, the, a, dog, sat, slept: their shares by hand.
    p, q = np.array([3, 2, 1, 0, 1, 1]) / 8, np.array([0, 1, 0, 1, 0, 1]) / 3
    assert found == pytest.approx(jensen_shannon(p, q), abs=1e-15)


def test_repeating_a_corpus_changes_nothing():
    assert corpus_divergence(TEXTS, TEXTS * 5) == 0
    assert corpus_divergence(["one two"], ["three four"]) == 1


def test_only_the_vocabulary_is_compared():
    first, second = ["x x x x y"], ["x x x x z"]
    assert corpus_divergence(first, second, TermOptions(max_vocabulary=1)) == 0
    assert corpus_divergence(first, second, TermOptions(max_vocabulary=None)) > 0.1


@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ([], ["a"], TermOptions(), "the first corpus is empty"),
        (["a"], once([]), TermOptions(), "the second corpus is empty"),
        (["a"], ["!", "?"], TermOptions(), "None of the 2 texts of the second corpus holds a term"),
        (["the"], ["cat"], TermOptions(stop_words="english"), "texts of the first corpus"),
        (["a", None], ["a"], TermOptions(), r"the first corpus: row 2 .* is None, no text"),
        ("text", ["a"], TermOptions(), "the first corpus is one string"),
        (["a a"], ["b"], TermOptions(max_vocabulary=1), "second .*Raise max_vocabulary"),
    ],
)
def test_corpora_that_cannot_be_compared(
    first: Any, second: Any, options: TermOptions, message: str
):
    with pytest.raises(DataError, match=message):
        corpus_divergence(first, second, options)


@pytest.mark.parametrize("pattern", ["(", "(a)(b)"])
def test_all_faults_of_options_are_told(pattern: str):
    options: Any = {"max_vocabulary": 0, "stop_words": "french", "token_pattern": pattern}
    with pytest.raises(ConfigError) as caught:
        TermOptions(**options)
    assert [fault.split()[0] for fault in caught.value.faults] == list(options)
