from collections import Counter
from pathlib import Path

import pytest

from totune.data.examples import Columns
from totune.data.inputs import read_inputs
from totune.data.readers import read_table
from totune.data.sources import load_dataset
from totune.data.sst import is_trees, read_trees
from totune.errors import DataError

LOVELY = "(3 (2 It) (4 (2 's) (3 (3 lovely) (2 (2 -LRB-) (2 and\\/or)))))"


def tree(number: int) -> str:
    """A sentence of its own, by turns good, bad and neutral, with "film" in every one."""
    label = (3, 1, 2)[number % 3]
    return f"({label} (2 (2 Film) (2 {number})) ({label} (2 is) ({label} {mood(number)})))"


def mood(number: int) -> str:
    return ("good", "bad", "round")[number % 3]


def trees(start: int, stop: int) -> str:
    return "\n".join(tree(number) for number in range(start, stop)) + "\n"


def test_a_row_per_phrase_the_sentence_first() -> None:
    table = read_trees(LOVELY + "\n", Path("a.txt"))
    assert list(table.columns) == ["sentence", "label", "polarity", "tree"]
    assert table.columns["sentence"] == [
        *("It 's lovely ( and/or", "It", "'s lovely ( and/or", "'s", "lovely ( and/or", "lovely"),
        *("( and/or", "(", "and/or"),
    ]
    assert table.columns["label"] == ["3", "2", "4", "2", "3", "3", "2", "2", "2"]
    assert table.columns["polarity"][:3] == ["positive", None, "positive"]
    assert set(table.columns["tree"]) == {"1"}
    assert table.without_parts().columns["sentence"] == ["It 's lovely ( and/or"]


def test_phrases_are_kept_once_and_sentences_always() -> None:
    text = f"{tree(1)}\n\n{tree(1)}\n(2 (2 Film) (3 good))\n(3 good)\n"
    table = read_trees(text, Path("a.txt"))
    assert len(table) == 7 + 1 + 1 + 1
    assert Counter(table.columns["sentence"])["Film"] == 1
    assert [table.rows[at] for at in sorted(table.whole or ())] == [1, 3, 4, 5]
    assert table.columns["tree"][-2:] == ["4", "5"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("(2 (2 It) (3 works)", "brackets left open: 1"),
        ("(2 (2 It) (3 works)))", r"at '\)', character 21"),
        ("(2 (7 It) (3 works))", r"at '\(7 It\) \(3 works\)\)', character 4"),
        ("(2 (2 It works) (3 now))", r"at '\(2 It works"),
        ("(2 It) (3 works)", r"at ' \(3 works\)'"),
        ("(2 )", r"at '\(2 \)', character 1"),
        ("It works", "at 'It works', character 1"),
    ],
)
def test_a_malformed_tree_is_placed(line: str, reason: str) -> None:
    with pytest.raises(DataError, match=rf"a\.txt line 2 is no sentiment tree \({reason}"):
        read_trees(f"{LOVELY}\n{line}\n", Path("a.txt"))


def test_recognition_by_content() -> None:
    assert is_trees(trees(0, 5) + "broken\n")
    assert not is_trees("(1) a text\n(2) another\n")
    assert not is_trees("")


def test_train_learns_phrases_and_dev_is_of_sentences(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(trees(0, 30))
    (tmp_path / "dev.txt").write_text(trees(30, 40))
    (tmp_path / "test.txt").write_text(trees(40, 50))
    data = load_dataset(tmp_path)
    assert data.columns == Columns("sentence", "label", document="tree")
    assert set(data.dev.texts) == {f"Film {number} is {mood(number)}" for number in range(30, 40)}
    assert len(set(data.train.texts)) == len(data.train) > 30
    assert "Other columns that could hold labels: 'polarity'; name one with `label`." in data.notes
    assert data.notes[0] == (
        f"Train holds {len(data.train)} different phrases of sentiment trees, 30 of them whole "
        "sentences; dev and test are whole sentences alone."
    )


def test_two_classes_leave_the_neutral_out(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(trees(0, 30))
    (tmp_path / "dev.txt").write_text(trees(30, 40))
    data = load_dataset(tmp_path, label="polarity")
    assert set(data.train.labels or ()) == {"negative", "positive"}
    assert len(data.dev) == 6 + 1  # of 10, every third is neutral
    assert f"{tmp_path / 'dev.txt'}: 3 neutral rows left out." in data.notes
    assert not any("usable" in warning for warning in data.warnings)


@pytest.mark.parametrize("label", ["label", "polarity"])
def test_no_phrase_of_a_drawn_sentence_stays_in_train(tmp_path: Path, label: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text(trees(0, 60))
    data = load_dataset(path, label=label)
    held_out = {text.split()[1] for split in (data.dev, data.test) for text in split.texts}
    assert all(text.startswith("Film ") for split in (data.dev, data.test) for text in split.texts)
    assert len(held_out) == len(data.dev) + len(data.test) == (12 if label == "label" else 8)
    assert not any(number in text.split() for text in data.train.texts for number in held_out)
    assert any("drawn from train (whole sentences with their phrases" in n for n in data.notes)


def test_too_few_trees_cannot_be_split(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(trees(0, 9))
    with pytest.raises(DataError, match="fewer than 10 usable sentences"):
        load_dataset(path)


def test_a_fraction_takes_sentences_with_all_their_phrases(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text(trees(0, 60))
    (tmp_path / "dev.txt").write_text(trees(60, 70))
    (tmp_path / "test.txt").write_text(trees(70, 80))
    whole, half = load_dataset(tmp_path), load_dataset(tmp_path, fraction=0.5)
    chosen = set(half.train.documents or ())
    expected = [d for d in whole.train.documents or () if d in chosen]
    assert list(half.train.documents or ()) == expected
    assert len(half.train) == pytest.approx(len(whole.train) / 2, abs=5)


def test_sentences_of_a_tree_file_are_predicted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(trees(0, 4))
    examples = read_inputs(path, Columns("sentence", "label"))
    assert examples.texts == (
        "Film 0 is good",
        "Film 1 is bad",
        "Film 2 is round",
        "Film 3 is good",
    )
    assert examples.labels == ("3", "1", "2", "3")


@pytest.mark.shared
def test_the_stanford_trees(shared: Path) -> None:
    folder = shared / "data" / "sst_trees"
    five = load_dataset({"train": folder / "dev.txt", "test": folder / "test.txt.gz"})
    assert Counter(five.test.labels) == {"0": 279, "1": 633, "2": 389, "3": 510, "4": 399}
    assert len(read_table(folder / "dev.txt").without_parts()) == 1101


@pytest.mark.slow
@pytest.mark.shared
def test_the_binary_stanford_trees(shared: Path) -> None:
    folder = shared / "data" / "sst_trees"
    assert len(read_table(folder / "train.txt.gz").whole or ()) == 8544
    data = load_dataset(folder, label="polarity")
    assert (len(data.dev), len(data.test)) == (872, 1821)
    assert Counter(data.test.labels) == {"negative": 912, "positive": 909}
    assert len(data.train) == 77_625  # of 98,794 annotated phrases; GLUE's SST-2 has 67,349
