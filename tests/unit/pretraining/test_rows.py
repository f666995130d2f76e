"""Rows respect documents; an order reads every row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from totune.errors import DataError
from totune.pretraining.rows import RowOrder, pack_rows
from totune.pretraining.tokens import TokenStore


@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=6), min_size=1, max_size=5))
def test_rows_hold_every_piece_once_and_never_two_documents(documents: list[list[int]]) -> None:
    lengths = [length for document in documents for length in document]
    ends = np.cumsum([0, *lengths])
    borders = np.cumsum([0, *map(len, documents)])
    store = TokenStore(np.arange(ends[-1]), ends, borders, len(documents), [], np.zeros(0))
    rows = pack_rows(store, 0, len(documents), 6, 100)
    held = [rows.read(row) for row in range(len(rows))]
    assert np.concatenate(held).tolist() == list(range(ends[-1]))
    assert max(map(len, held)) <= 6
    for row, tokens in enumerate(held):
        own = ends[borders[rows.documents[row]]], ends[borders[rows.documents[row] + 1]]
        assert own[0] <= tokens[0]
        assert tokens[-1] < own[1]
        starts = {int(tokens[0] + at) for at in rows.sentence_starts(row)}
        assert starts == {end for end in ends.tolist() if tokens[0] < end <= tokens[-1]}


def test_an_order_reads_every_row_in_each_pass() -> None:
    order = RowOrder(10, 4, seed=3, limit=8)
    read = np.concatenate([order.rows_of(step) for step in range(5)])
    assert sorted(read[:10]) == list(range(10))
    assert sorted(read[10:]) == list(range(10))
    assert read[:10].tolist() != read[10:].tolist()
    assert read.tolist() == np.concatenate([order.rows_of(step) for step in range(5)]).tolist()


def test_fewer_rows_than_a_batch_are_reported() -> None:
    with pytest.raises(DataError, match=r"makes 3 rows of up to 8 tokens.*batch_size of at most 3"):
        RowOrder(3, 4, seed=0, limit=8)
