import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.data.examples import Examples
from totune.data.extraction import gather, number_documents, stand_together
from totune.data.splits import can_be_drawn, draw_documents, share_of_documents

SIZES = st.lists(st.integers(1, 12), min_size=10, max_size=40)


def documents(sizes: list[int]) -> list[int]:
    return [number for number, size in enumerate(sizes) for _ in range(size)]


def test_numbers_follow_the_order_and_rows_without_one_stand_alone() -> None:
    assert number_documents(["b", "b", "a", None, None, "b"]) == (0, 0, 1, 2, 3, 0)


def test_rows_of_a_document_are_brought_together() -> None:
    examples = Examples(tuple("abcd"), rows=(1, 2, 3, 4), documents=(0, 1, 0, 1))
    assert not stand_together(examples.documents or ())
    assert gather(examples).texts == ("a", "c", "b", "d")
    assert gather(gather(examples)) == gather(examples)


def test_few_documents_are_not_drawn() -> None:
    assert not can_be_drawn(None)
    assert not can_be_drawn(documents([5] * 9))
    assert can_be_drawn(documents([5] * 10))
    assert not can_be_drawn(list(range(20)), np.arange(20) < 9)


@given(SIZES, st.integers(0, 1000))
def test_whole_documents_are_drawn(sizes: list[int], seed: int) -> None:
    of_row = np.asarray(documents(sizes))
    wanted = [max(1, len(of_row) // 10)] * 2
    dev, test = draw_documents(
        of_row.tolist(), np.ones(len(of_row), bool), wanted, np.random.default_rng(seed)
    )
    left = np.setdiff1d(np.arange(len(of_row)), [*dev, *test])
    kept = [set(of_row[rows].tolist()) for rows in (dev, test, left)]
    assert len(set.union(*kept)) == sum(map(len, kept)) == len(sizes)
    for rows in (dev, test):
        assert wanted[0] <= len(rows) <= wanted[0] + max(sizes)


def test_documents_without_an_eligible_row_are_not_drawn() -> None:
    of_row = documents([2] * 20)
    eligible = np.arange(40) % 4 == 0  # the first row of every second document
    (drawn,) = draw_documents(of_row, eligible, [3], np.random.default_rng(0))
    assert eligible[drawn].sum() == 3
    assert len(drawn) == 6


def test_a_large_document_stays_in_train() -> None:
    of_row = documents([500, *[5] * 40])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        (drawn,) = draw_documents(of_row, np.ones(700, bool), [70], rng)
        assert drawn.min() >= 500


@given(SIZES, st.floats(0.01, 1), st.integers(0, 1000))
def test_a_share_is_near_and_grows(sizes: list[int], share: float, seed: int) -> None:
    of_row = documents(sizes)
    rows = share_of_documents(of_row, share, np.random.default_rng(seed))
    more = share_of_documents(of_row, min(1, share + 0.2), np.random.default_rng(seed))
    assert set(rows) <= set(more)
    assert len(rows) == pytest.approx(share * len(of_row), abs=max(sizes))
    assert len(rows)
