"""Texts of training are known again."""

import numpy as np
import pytest

from totune.data import audit
from totune.data.audit import SeenTexts
from totune.data.examples import Examples


def texts(*numbers: int) -> Examples:
    return Examples(tuple(f"the text number {number}" for number in numbers))


def test_rows_of_training_are_counted_whatever_their_case_and_spaces() -> None:
    known = SeenTexts.of(texts(1, 2, 3))
    assert known.count(texts(3, 4, 1)) == (2, 3)
    assert known.count(Examples(("The  text number 1 ", "text number 1"))) == (1, 2)


def test_a_pair_is_known_by_both_texts() -> None:
    known = SeenTexts.of(Examples(("a", "b"), pairs=("c", "d")))
    assert known.count(Examples(("a", "a", "ac"), pairs=("c", "d", ""))) == (1, 3)


def test_short_sentences_that_are_tagged_are_left_aside() -> None:
    short, long = ("so", "it", "is"), tuple("this sentence is long enough to tell".split())
    rows = Examples((" ".join(short), " ".join(long)), words=(short, long))
    assert SeenTexts.of(rows).count(rows) == (1, 1)


def test_of_many_texts_a_sample_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "MOST_HASHES", 500)
    known = SeenTexts.of(texts(*range(5000)))
    assert known.hashes.shape == (500,)
    found, checked = known.count(texts(*range(2500, 7500)))  # half of them are of training
    assert 400 < checked < 600
    assert found / checked == pytest.approx(0.5, abs=0.1)
    assert known.hashes.dtype == np.uint64
