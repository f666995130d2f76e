"""Row filters and label maps: what is used, what it is called, what is said of the rest."""

from pathlib import Path

import pytest

from totune.data.sources import load_dataset
from totune.errors import ConfigError, DataError

GENRES = ("travel", "fiction", "slate")
STANCES = ("1", "9", "", "Can't Decide")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """120 rows, of three genres and four kinds of labels (one of them none)."""
    lines = ["text,genre,stance"]
    for row in range(120):
        words = f"a sentence of some words number {row}"
        lines.append(f"{words},{GENRES[row % 3]},{STANCES[row % 4]}")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def labels_of(data) -> set[str]:
    return {str(label) for split in data.splits().values() for label in split.labels}


def test_rows_of_one_value_or_of_several_are_used(table: Path) -> None:
    one = load_dataset(table, text="text", label="genre", where={"stance": ["1", "9"]})
    assert sum(len(split) for split in one.splits().values()) == 60
    assert any("60 rows of 120 with stance=1 or 9" in note for note in one.notes)
    both = load_dataset(table, text="text", label="genre", where={"stance": "1", "3": ["1", "9"]})
    assert sum(len(split) for split in both.splits().values()) == 30
    assert one.digest() != both.digest()


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ({"genre": "travl"}, r"no row whose 'genre' is 'travl' \(`where`\).*'travel'"),
        ({"gender": "travel"}, r"no column 'gender' \(`where`\). Did you mean 'genre'"),
        ({"genre": "travel", "text": "x"}, r"no row whose 'text' is 'x'"),
    ],
)
def test_a_filter_that_leaves_nothing_is_told(table: Path, where: dict, told: str) -> None:
    with pytest.raises(DataError, match=told):
        load_dataset(table, where=where)


def test_labels_get_other_names_or_leave_with_their_rows(table: Path) -> None:
    names = {"": "no", "1": "yes", "9": "yes", "Can't Decide": None}
    data = load_dataset(table, text="text", label="stance", label_map=names)
    assert data.columns.task == "classification"
    assert labels_of(data) == {"no", "yes"}
    assert sum(len(split) for split in data.splits().values()) == 90
    assert any('30 rows labelled "Can\'t Decide" left out' in note for note in data.notes)
    assert not any("without a usable" in warning for warning in data.warnings)


def test_the_task_follows_from_the_new_names(table: Path) -> None:
    names = {"": "0.25", "1": "1.5", "9": "9.5", "Can't Decide": ""}
    assert load_dataset(table, text="text", label="stance", label_map=names).columns.task == (
        "regression"
    )


def test_a_label_that_is_not_there_is_told(table: Path) -> None:
    with pytest.raises(DataError, match=r"holds no 'Cant Decide' \(`label_map`\)"):
        load_dataset(table, text="text", label="stance", label_map={"Cant Decide": None})


def test_tags_of_words_are_not_mapped(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text('{"tokens": ["a", "b"], "tags": ["O", "B-X"]}\n' * 20, encoding="utf-8")
    with pytest.raises(ConfigError, match="label_map renames labels of which a text has one"):
        load_dataset(path, task="tagging", label_map={"O": "X"})


def test_phrases_stay_with_training_alone(tmp_path: Path) -> None:
    lines = [f"(3 (2 word{row}) (4 good{row}))" for row in range(30)]
    lines += [f"(1 (2 thing{row}) (0 bad{row}))" for row in range(30)]
    path = tmp_path / "trees.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    plain = load_dataset(path)
    names = {label: f"is {label}" for label in labels_of(plain)}
    mapped = load_dataset(path, label_map=names)
    assert labels_of(mapped) == {f"is {label}" for label in labels_of(plain)}
    assert mapped.dev.texts == plain.dev.texts
