"""Data in memory: whatever holds the rows, the dataset is the same."""

from collections.abc import Callable
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from totune.data.examples import Columns
from totune.data.inputs import read_inputs
from totune.data.memory import is_table, memory_table
from totune.data.sources import load_dataset
from totune.errors import DataError

TEXTS = [f"number {i} is {'good' if i % 2 else 'bad'}" for i in range(30)]
LABELS = [i % 2 for i in range(30)]
COLUMNS = {"text": TEXTS, "label": LABELS}
FRAME = pd.DataFrame(COLUMNS)


class Stream:
    """What offers Arrow's PyCapsule interface and nothing else, as frames of any library may."""

    schema = None

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


HOLDERS: dict[str, Any] = {
    "frame": FRAME,
    "frame with an index": FRAME.set_index(pd.Index(range(5, 35), name="id")),
    "categories": FRAME.assign(label=FRAME["label"].astype("category")),
    "arrow": pa.table(COLUMNS),
    "stream": Stream(pa.table(COLUMNS)),
    "stream of categories": Stream(
        pa.table({"text": TEXTS, "label": pa.array(map(str, LABELS)).dictionary_encode()})
    ),
    "dataset": datasets.Dataset.from_dict(COLUMNS),
    "records": FRAME.to_dict("records"),
    "columns": COLUMNS,
    "lists": (TEXTS, LABELS),
    "arrays": (np.array(TEXTS), np.array(LABELS)),
    "series": (FRAME["text"], FRAME["label"]),
    "splits": {"train": FRAME},
    "dataset dict": datasets.DatasetDict(
        train=datasets.Dataset.from_dict(COLUMNS), unsupervised=datasets.Dataset.from_dict(COLUMNS)
    ),
}


@pytest.mark.parametrize("data", HOLDERS.values(), ids=HOLDERS)
def test_whatever_holds_the_rows_the_data_is_the_same(data: Any) -> None:
    found = load_dataset(data)
    assert found.digest() == load_dataset(FRAME).digest()
    assert found.columns == Columns("text", "label")


def test_splits_may_be_of_any_kind(tmp_path: Any) -> None:
    FRAME[20:25].to_csv(tmp_path / "dev.csv", index=False)
    found = load_dataset(
        {"train": FRAME[:20], "validation": tmp_path / "dev.csv", "test": (TEXTS[25:], LABELS[25:])}
    )
    assert [len(split) for split in found.splits().values()] == [20, 5, 5]
    assert found.test.texts == tuple(TEXTS[25:])


def test_the_order_of_categories_is_that_of_classes() -> None:
    kind = pd.CategoricalDtype(["poor", "fair", "good"])
    labels = pd.Series(["good", "poor", "fair"] * 10, dtype=kind)
    assert load_dataset(pd.DataFrame({"text": TEXTS, "label": labels})).classes == (
        *("poor", "fair", "good"),
    )


def test_texts_of_pairs_and_of_words() -> None:
    pairs = memory_table(([("a", "b"), ("c", "d")], ["x", "y"]))
    assert pairs.columns == {"text": ["a", "c"], "pair": ["b", "d"], "label": ["x", "y"]}
    words = memory_table(([["a", "b"]], [np.array(["O", "B-X"])]))
    assert words.columns == {"tokens": ['["a", "b"]'], "tags": ['["O", "B-X"]']}


def test_missing_values_are_counted_with_their_places() -> None:
    frame = FRAME.astype({"label": "Int64"})
    frame.loc[3, "text"], frame.loc[5, "label"] = np.nan, pd.NA
    assert load_dataset(frame).warnings == (
        "DataFrame: 1 row without text in 'text', left out (position 3).",
        "DataFrame: 1 row without a usable 'label', left out (position 5).",
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FRAME[["text", "text", "label"]], "2 columns called 'text'; rename or drop"),
        (lambda: pa.Table.from_arrays([pa.array("a"), pa.array("b")], ["x", "x"]), "called 'x'"),
        (lambda: (TEXTS, LABELS[1:]), "differ in length: 'text' has 30, 'label' has 29"),
        (lambda: {"text": TEXTS, "label": LABELS[1:]}, "differ in length"),
        (lambda: ((text for text in TEXTS), LABELS), r"texts is <generator .* Give a list: `list"),
        (lambda: iter(HOLDERS["records"]), r"give a list \(`list\(...\)`\), since the rows are"),
        (lambda: FRAME["text"], r"\(Series\) is no data: give \(texts, labels\), since"),
        (lambda: TEXTS, "Item 0 of the list is 'number 0 is bad', not a record"),
        (lambda: FRAME[:0], "DataFrame holds no rows"),
        (list, r"\[\] \(list\) is no data: give a file, a folder, a data frame"),
        (lambda: 3, r"3 \(int\) is no data: give a file"),
        (lambda: ("a", "b"), r"texts is 'a' \(str\), not a list"),
        (lambda: {"dev": FRAME}, "A train split is needed; only dev was given"),
        (lambda: {"train": FRAME, "trial": FRAME}, "no split called 'trial'. Did you mean"),
    ],
)
def test_what_is_no_data_is_refused_with_the_remedy(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_dataset(make())


@pytest.mark.parametrize("name", ["frame", "arrow", "stream", "dataset", "records", "columns"])
def test_a_table_is_predicted_by_the_columns_of_training(name: str) -> None:
    data = HOLDERS[name]
    assert is_table(data)
    read = read_inputs(data, Columns("text", "label"))
    assert read.texts == tuple(TEXTS)
    assert read.labels == tuple(map(str, LABELS))


def test_texts_and_labels_are_evaluated_whatever_the_columns_of_training_are_called() -> None:
    read = read_inputs((TEXTS, [None, *LABELS[1:]]), Columns("review", "stars"), labelled=True)
    assert read.texts == tuple(TEXTS[1:])
