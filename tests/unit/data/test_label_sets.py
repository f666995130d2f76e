"""Several labels per row: the shapes they come in, how they are found, what is said of them."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from totune.data.columns import find_columns
from totune.data.examples import Columns, Examples
from totune.data.inputs import read_inputs
from totune.data.sources import load_dataset
from totune.data.splits import complete, shrink
from totune.data.tables import Remarks, SourceTable
from totune.errors import ConfigError, DataError

SETS = [("joy",), ("anger", "joy"), (), ("anger",), ("fear", "joy"), ("fear",)] * 5
TEXTS = [f"a sentence of several words, number {at}" for at in range(len(SETS))]
NAMES = ("anger", "fear", "joy")


def table(**columns: list[str | None]) -> SourceTable:
    texts: list[str | None] = list(TEXTS)
    return SourceTable("a.csv", {"text": texts, **columns}, range(2, len(texts) + 2), unit="line")


def joined(separator: str = "|") -> list[str | None]:
    return [separator.join(names) for names in SETS]


def flags(name: str) -> list[str | None]:
    return [str(int(name in names)) for names in SETS]


def cycle(*values: str) -> list[str | None]:
    return [values[at % len(values)] for at in range(len(SETS))]


def columns_of_flags() -> dict[str, list[str | None]]:
    return {name: flags(name) for name in NAMES}


def write(path: Path, found: SourceTable) -> Path:
    rows = zip(*found.columns.values(), strict=True)
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(found.columns, row, strict=True))) for row in rows]
    else:
        quoted = [",".join(f'"{cell}"' for cell in row) for row in rows]
        lines = [",".join(f'"{name}"' for name in found.columns), *quoted]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def labels_of(found: Examples) -> dict[str, object]:
    return dict(zip(found.texts, found.labels or (), strict=True))


EXPECTED = dict(zip(TEXTS, SETS, strict=True))
SHAPES = {
    "joined": {"labels": joined()},
    "flags": columns_of_flags(),
    "lists": {"labels": [json.dumps(names) for names in SETS]},
    "lists as Python writes them": {"labels": [str(list(names)) for names in SETS]},
    "flags that are true or false": {
        name: [str(cell == "1") for cell in cells] for name, cells in columns_of_flags().items()
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_detected_said_and_read_alike(shape: str, tmp_path: Path) -> None:
    suffix = ".jsonl" if shape == "lists" else ".csv"
    file = write(tmp_path / f"rows{suffix}", table(id=list(map(str, range(30))), **SHAPES[shape]))
    data = load_dataset(file)
    assert data.columns.task == "multi-label"
    assert "the task is multi-label" in " ".join(data.notes)
    whole = labels_of(data.train) | labels_of(data.dev) | labels_of(data.test)
    assert whole == EXPECTED
    again = read_inputs(file, data.columns)
    assert labels_of(again) == EXPECTED


def test_labels_are_named_with_their_counts(tmp_path: Path) -> None:
    notes = load_dataset(write(tmp_path / "rows.csv", table(labels=joined()))).notes
    assert "stratified by each row's rarest label" in " ".join(notes)
    assert notes[-1] == (
        "Train rows have 1.12 labels on average (4 of 24 have none). 3 labels: joy: 11, anger: 8, "
        "fear: 8."
    )


@pytest.mark.parametrize(
    ("columns", "label"),
    [
        ({"label": cycle("a", "b", "c"), **columns_of_flags()}, "label"),
        ({"party": cycle("red", "blue"), **columns_of_flags()}, "party"),
        (
            {"stance": cycle("0", "1"), "retweet": cycle("1", "0"), "fresh": cycle("0", "1")},
            "stance",
        ),
        ({"fresh": cycle("0", "1"), "retweet": cycle("1", "0")}, "fresh"),
        ({"topic": cycle("sport|football", "sport|tennis")}, "topic"),
        ({"topic": cycle("a;b", "a", "b")}, "topic"),
        ({"label": cycle("x", "y"), "hashtags": joined()}, "label"),
        ({"verdict": cycle("x", "y"), "tags": joined()}, "verdict"),
    ],
)
def test_ordinary_data_stays_classification(columns: dict, label: str) -> None:
    found, _ = find_columns(table(**columns))
    assert (found.task, found.label) == ("classification", label)


@pytest.mark.parametrize(
    ("columns", "note"),
    [
        ({"fresh": cycle("0", "1"), "retweet": cycle("1", "0")}, "`label='fresh,retweet'`"),
        ({"topic": cycle("a;b", "a", "b")}, "'a;b' are read as one class each.*separator=';'"),
        ({"topic": cycle("a,b", "a", "b")}, "separator=','"),
        ({"topic": cycle("sport|football", "sport|tennis")}, "read as one class each"),
    ],
)
def test_what_might_be_several_labels_is_asked_about(columns: dict, note: str) -> None:
    _, notes = find_columns(table(**columns))
    assert any(re.search(note, one) for one in notes)


def test_several_columns_are_named_by_name_or_number() -> None:
    for label in ("joy, fear", "4,3"):
        found, _ = find_columns(table(**columns_of_flags()), label=label)
        assert found == Columns("text", "joy,fear", task="multi-label", label_separator="|")


def test_a_column_whose_name_holds_a_comma_is_one() -> None:
    found, _ = find_columns(table(**{"good,bad": cycle("x", "y")}), label="good,bad")
    assert (found.label, found.task) == ("good,bad", "classification")


def test_another_separator_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", table(labels=joined(";")))
    data = load_dataset(file, label_separator=";")
    assert labels_of(data.train).items() <= EXPECTED.items()
    with pytest.raises(DataError, match=r"no row of column 'labels' .*`label_separator=';'`"):
        load_dataset(file, task="multi-label")
    with pytest.raises(ConfigError, match="for the task multi-label, not regression"):
        load_dataset(file, label_separator=";", task="regression")
    with pytest.raises(ConfigError, match="label_separator is empty"):
        load_dataset(file, label_separator=" ")


@pytest.mark.parametrize(
    ("columns", "named", "message"),
    [
        (
            {**columns_of_flags(), "joy": cycle("0", "2")},
            {"label": "anger,joy"},
            "line 3: .*'joy' holds '2', not 0 or 1",
        ),
        (
            columns_of_flags(),
            {"label": "anger,joy", "task": "classification"},
            "several columns, which is for `task='multi-label'`",
        ),
        (columns_of_flags(), {"label": "anger,pride"}, "no column 'pride'"),
        (columns_of_flags(), {"label": "anger,anger"}, "'anger' is named for two purposes"),
        (
            {"labels": SHAPES["lists"]["labels"]},
            {"label": "labels", "task": "classification"},
            "say `task='multi-label'`",
        ),
        (
            {"labels": cycle("joy", "")},
            {"task": "multi-label"},
            "one label only, 'joy'.*`task='classification'`",
        ),
        (
            {"labels": cycle("joy|anger")},
            {"task": "multi-label", "label": "labels"},
            "have the same labels",
        ),
    ],
)
def test_bad_input_gets_one_message(
    columns: dict, named: dict, message: str, tmp_path: Path
) -> None:
    suffix = "jsonl" if "labels" in columns else "csv"
    with pytest.raises(DataError, match=message):
        load_dataset(write(tmp_path / f"rows.{suffix}", table(**columns)), **named)


def test_repeated_and_empty_labels_are_noted_with_their_rows(tmp_path: Path) -> None:
    cells = joined()
    cells[1], cells[7] = "joy|joy", "joy||anger"
    data = load_dataset(write(tmp_path / "rows.csv", table(labels=cells)))
    assert any("1 row with the same label twice, counted once (line 3)" in n for n in data.notes)
    assert any("1 row with an empty label, which is ignored (line 9)" in n for n in data.notes)


def test_a_row_without_a_value_is_left_out_and_one_without_labels_stays(tmp_path: Path) -> None:
    cells: list[str | None] = [json.dumps(names) for names in SETS]
    cells[0] = None
    path = tmp_path / "rows.jsonl"
    rows = [
        {"text": text, "labels": None if cell is None else json.loads(cell)}
        for text, cell in zip(TEXTS, cells, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    data = load_dataset(path)
    assert sum(map(len, data.splits().values())) == len(SETS) - 1
    assert any("1 row without a usable 'labels', left out (line 1)" in w for w in data.warnings)


def test_labels_that_train_lacks_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "train.csv", table(labels=joined()))
    unseen = [cell.replace("fear", "pride") if cell else cell for cell in joined()]
    write(tmp_path / "test.csv", table(labels=unseen))
    warnings = load_dataset(tmp_path).warnings
    assert any("Train lacks the labels of 10 test rows ('pride': 10)" in w for w in warnings)


def test_one_label_in_every_row_is_better_read_as_classes(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.csv", table(labels=cycle("joy", "anger")))
    warnings = load_dataset(file, task="multi-label").warnings
    assert any("exactly one label" in warning for warning in warnings)


def test_splits_and_shares_keep_the_labels_in_proportion() -> None:
    rng = np.random.default_rng(0)
    shares = {"common": 0.6, "usual": 0.3, "rare": 0.05}
    labels = tuple(
        tuple(name for name, share in shares.items() if rng.random() < share) for _ in range(1000)
    )
    train = Examples(tuple(f"text {at}" for at in range(1000)), labels)
    parts = complete({"train": train}, "multi-label", 0, "a.csv", Remarks())
    tenth = shrink({"train": train}, "multi-label", 0.1, 0)["train"]
    whole = Counter(name for names in labels for name in names)
    for part in (parts["dev"], parts["test"], tenth):
        found = Counter(name for names in part.labels or () for name in names)
        assert found["rare"] == pytest.approx(whole["rare"] / 10, abs=1)
        assert found["usual"] == pytest.approx(whole["usual"] / 10, abs=3)
        assert found["common"] == pytest.approx(whole["common"] / 10, abs=8)
