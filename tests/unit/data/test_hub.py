from typing import Any

import datasets
import pytest

from totune.data.sources import load_dataset
from totune.errors import DataError

FEATURES = datasets.Features(
    {
        "premise": datasets.Value("string"),
        "hypothesis": datasets.Value("string"),
        "label": datasets.ClassLabel(names=["entailment", "neutral"]),
        "idx": datasets.Value("int32"),
        "tokens": datasets.List(datasets.Value("string")),
    }
)


def split(start: int, stop: int, hidden: bool = False) -> datasets.Dataset:
    numbers = list(range(start, stop))
    return datasets.Dataset.from_dict(
        {
            "premise": [f"the first sentence number {i}" for i in numbers],
            "hypothesis": [f"the second sentence number {i}" for i in numbers],
            "label": [-1 if hidden else i % 2 for i in numbers],
            "idx": numbers,
            "tokens": [["a"] for _ in numbers],
        },
        features=FEATURES,
    )


@pytest.fixture
def hub_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The arguments of every call of a `datasets.load_dataset` that knows one dataset."""
    calls: list[tuple[Any, ...]] = []

    def load(*args: Any) -> datasets.DatasetDict:
        calls.append(args)
        if args != ("glue", "tiny") and args[0] != "owner/tiny":
            raise datasets.exceptions.DatasetNotFoundError(f"Dataset {args[0]!r} doesn't exist.")
        return datasets.DatasetDict(
            train=split(0, 40), validation=split(40, 50), test=split(50, 60, hidden=True)
        )

    monkeypatch.setattr(datasets, "load_dataset", load)
    return calls


def test_splits_and_class_names(hub_calls: list[tuple[Any, ...]]) -> None:
    data = load_dataset("hub:owner/tiny")
    assert hub_calls == [("owner/tiny", None)]
    assert (data.columns.text, data.columns.pair) == ("premise", "hypothesis")
    assert [len(part) for part in data.splits().values()] == [36, 10, 4]
    assert set(data.train.labels or ()) == {"entailment", "neutral"}
    assert data.classes == ("entailment", "neutral")
    assert data.name == "owner/tiny"
    assert any("hub:owner/tiny test is not used" in note for note in data.notes)


@pytest.mark.parametrize(
    ("reference", "calls"),
    [
        ("hub:glue/tiny", [("glue/tiny", None), ("glue", "tiny")]),
        ("hub:owner/tiny/small", [("owner/tiny", "small")]),
    ],
)
def test_configurations(
    hub_calls: list[tuple[Any, ...]], reference: str, calls: list[tuple[Any, ...]]
) -> None:
    load_dataset(reference)
    assert hub_calls == calls


def test_what_the_library_says_is_told(hub_calls: list[tuple[Any, ...]]) -> None:
    with pytest.raises(DataError, match="hub:nothing cannot be loaded: Dataset 'nothing' doesn't"):
        load_dataset("hub:nothing")


@pytest.mark.parametrize("reference", ["hub:", "hub:a//b", "hub:a/b/c/d"])
def test_a_malformed_name_is_not_asked_for(
    hub_calls: list[tuple[Any, ...]], reference: str
) -> None:
    with pytest.raises(DataError, match="is no dataset name"):
        load_dataset(reference)
    assert hub_calls == []


def test_a_dataset_needs_a_train_split(monkeypatch: pytest.MonkeyPatch) -> None:
    held = datasets.DatasetDict(test=split(0, 5), extra=split(0, 5))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: held)
    with pytest.raises(DataError, match="no train split; it has test, extra"):
        load_dataset("hub:owner/tiny")


def test_token_lists_are_words_and_tags_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = datasets.ClassLabel(names=["O", "B-PER", "I-PER"])
    features = datasets.Features(
        {
            "id": datasets.Value("string"),
            "tokens": datasets.List(datasets.Value("string")),
            "pos_tags": datasets.List(datasets.ClassLabel(names=["NN", "VB"])),
            "ner_tags": datasets.List(names),
            "boxes": datasets.List(datasets.List(datasets.Value("int32"))),
        }
    )
    columns = {
        "id": [str(i) for i in range(40)],
        "tokens": [["Mr", f"Smith{i}", "left"] for i in range(40)],
        "pos_tags": [[0, 0, 1]] * 40,
        "ner_tags": [[1, 2, 0]] * 39 + [[-1, -1, -1]],
        "boxes": [[[1]]] * 40,
    }
    held = datasets.DatasetDict(train=datasets.Dataset.from_dict(columns, features=features))
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: held)
    data = load_dataset("hub:owner/tiny")
    assert (data.columns.text, data.columns.label, data.columns.task) == (
        "tokens",
        "ner_tags",
        "tagging",
    )
    assert set(data.train.labels or ()) == {("B-PER", "I-PER", "O")}
    assert [len(part) for part in data.splits().values()] == [31, 4, 4]
    assert any("1 sentence without usable 'ner_tags'" in warning for warning in data.warnings)
    assert load_dataset("hub:owner/tiny", label="pos_tags").dev.labels == (("NN", "NN", "VB"),) * 4
