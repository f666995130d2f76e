import gzip
import json
from pathlib import Path

import pytest

from totune.data.examples import Columns
from totune.data.sources import load_dataset
from totune.errors import DataError


def sentence(number: int, scheme: str = "iob2") -> str:
    first = "I" if scheme == "iob1" else "B"
    lines = [f"Mr{number} N {first}-PER", f"Smith{number} N I-PER", "left V O", "Rome N B-LOC"]
    return "\n".join(lines).replace(" B-LOC", f" {first}-LOC") + "\n\n"


def conll(start: int, stop: int, per_document: int = 0, scheme: str = "iob2") -> str:
    return "".join(
        ("-DOCSTART- X O\n\n" if per_document and number % per_document == 0 else "")
        + sentence(number, scheme)
        for number in range(start, stop)
    )


def test_a_folder_of_conll_files(tmp_path: Path) -> None:
    for name, rows in {"train": (0, 20), "dev": (20, 25), "test": (25, 30)}.items():
        path = tmp_path / f"{name}.txt.gz"
        path.write_bytes(gzip.compress(conll(*rows, per_document=5, scheme="iob1").encode()))
        (tmp_path / f"{name}.other.txt").write_text("ignored", encoding="utf-8")
    data = load_dataset(tmp_path)
    assert data.columns == Columns("tokens", "tags", task="tagging", document="document")
    assert [len(split) for split in data.splits().values()] == [20, 5, 5]
    assert (data.train.words or ())[0] == ("Mr0", "Smith0", "left", "Rome")
    assert set(data.train.labels or ()) == {("B-PER", "I-PER", "O", "B-LOC")}
    assert data.train.documents == tuple(number // 5 for number in range(20))
    assert "The tags in 'tags' follow IOB1; they are converted to IOB2." in data.notes
    assert data.warnings == ()
    assert load_dataset(tmp_path, tag_scheme="iobes").dev.labels == (
        (("B-PER", "E-PER", "O", "S-LOC"),) * 5
    )


def test_the_scheme_of_train_is_that_of_all_splits(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(conll(0, 20))
    (tmp_path / "test.conll").write_text("Mr N O\nRome N I-LOC\n\n")
    data = load_dataset(tmp_path)
    assert data.test.labels == (("O", "B-LOC"),)
    assert any("1 tag where IOB2 does not allow it" in warning for warning in data.warnings)


def test_tags_of_no_scheme_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(conll(0, 20))
    data = load_dataset(path, label="column2")
    assert set(data.train.labels or ()) == {("N", "N", "V", "N")}
    assert any("follow no scheme of spans" in note for note in data.notes)


def test_whole_documents_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(conll(0, 100, per_document=4))
    data = load_dataset(path)
    assert [len(split) for split in data.splits().values()] == [76, 12, 12]
    held = [set(split.documents or ()) for split in data.splits().values()]
    assert sum(map(len, held)) == len(set.union(*held)) == 25
    assert data.notes[-1] == (
        "Dev (12 rows) and test (12 rows) drawn from train (whole documents, seed 0); 76 rows stay."
    )
    half = load_dataset(path, fraction=0.5).train
    assert len(half) == 36 or len(half) == 40
    assert all((half.documents or ()).count(number) == 4 for number in half.documents or ())


def test_without_documents_rows_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text(conll(0, 40) + "nothing N O\n\n" * 10)
    data = load_dataset(path)
    assert [len(split) for split in data.splits().values()] == [40, 5, 5]
    assert data.train.documents is None
    assert data.dev.texts.count("nothing") == 1  # a stratum: no word is tagged


def test_jsonl_with_tokens_and_tags(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [
        {"tokens": ["Mr", f"Smith{i}"], "tags": ["O", "B-PER"], "document_id": i // 4}
        for i in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = load_dataset(path)
    assert data.columns == Columns("tokens", "tags", task="tagging", document="document_id")
    assert [len(split) for split in data.splits().values()] == [44, 8, 8]
    rows[10]["tags"] = ["O"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"a\.jsonl line 11 has 2 words in 'tokens' but 1 tag"):
        load_dataset(path)


def test_a_test_file_without_tags_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "train.conll").write_text(conll(0, 40))
    (tmp_path / "test.conll").write_text("Mr N _\nRome N _\n\n")
    data = load_dataset(tmp_path)
    assert data.provenance["test"] == "drawn from train, seed 0"
    assert any("has no labels in 'tags'" in note for note in data.notes)


def test_tags_all_alike_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("nothing O\nhere O\n\n" * 20)
    with pytest.raises(DataError, match="all 16 usable train rows have one tag, 'O'"):
        load_dataset(path)


@pytest.mark.shared
def test_conll_2003_is_the_same_in_both_schemes(shared: Path) -> None:
    folder = shared / "data" / "conll2003"
    new, old = (
        load_dataset({"train": folder / f"dev{kind}", "test": folder / f"test{kind}"})
        for kind in (".txt.gz", ".iob1.txt.gz")
    )
    assert len(new.test) == 3453
    assert len(set(new.test.documents or ())) == 231
    assert old.digest() == new.digest()


@pytest.mark.slow
@pytest.mark.shared
def test_conll_2003(shared: Path) -> None:
    data = load_dataset(shared / "data" / "conll2003")
    assert [len(split) for split in data.splits().values()] == [14041, 3250, 3453]
    assert [len(set(s.documents or ())) for s in data.splits().values()] == [946, 216, 231]
    folder = shared / "data" / "conll2003"
    older = {name: folder / f"{name}.iob1.txt.gz" for name in data.splits()}
    other = load_dataset(older)  # type: ignore[arg-type]
    assert other.digest() == data.digest()
    assert [warning for warning in other.warnings if "does not allow" in warning] == [
        f"{older['train']}: 2 tags where IOB1 does not allow it (such as B-PER after O), in 2 "
        "sentences (lines 152416, 175432); read as conlleval reads them."
    ]
