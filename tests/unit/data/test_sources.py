import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from totune.data.examples import Columns
from totune.data.sources import load_dataset
from totune.errors import ConfigError, DataError


def rows(start: int, stop: int, header: str = "text,label") -> str:
    labels = ("good", "bad")
    lines = [f"a sentence of some words number {i},{labels[i % 2]}" for i in range(start, stop)]
    return "\n".join([header, *lines] if header else lines) + "\n"


def folder(path: Path, **files: str) -> Path:
    for name, content in files.items():
        (path / name.replace("__", ".")).write_text(content, encoding="utf-8")
    return path


def test_a_file_becomes_three_splits(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text(rows(0, 100), encoding="utf-8")
    data = load_dataset(path)
    assert data.name == "reviews.csv"
    assert [len(split) for split in data.splits().values()] == [80, 10, 10]
    assert data.columns == Columns("text", "label")
    assert data.warnings == ()
    assert data.provenance == {
        "source": str(path),
        "train": str(path),
        "dev": "drawn from train, seed 0",
        "test": "drawn from train, seed 0",
    }
    assert load_dataset(str(path)).digest() == data.digest()
    assert load_dataset(path, split_seed=1).digest() != data.digest()


def test_a_folder_is_read_as_its_splits(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 40), valid__csv=rows(40, 50), test__csv=rows(50, 70))
    (tmp_path / "notes.md").write_text("nothing", encoding="utf-8")
    data = load_dataset(tmp_path)
    assert [len(split) for split in data.splits().values()] == [40, 10, 20]
    assert data.name == tmp_path.name


def test_files_can_be_named_for_each_split(tmp_path: Path) -> None:
    folder(tmp_path, a__csv=rows(0, 40), b__csv=rows(40, 50))
    data = load_dataset({"train": tmp_path / "a.csv", "validation": str(tmp_path / "b.csv")})
    assert [len(split) for split in data.splits().values()] == [36, 10, 4]
    assert data.name == "a.csv"


def test_an_unknown_split_name_gets_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no split called 'trian'. Did you mean 'train'"):
        load_dataset({"trian": tmp_path})
    with pytest.raises(DataError, match="A train split is needed; only dev was given"):
        load_dataset({"dev": tmp_path / "a.csv"})
    with pytest.raises(DataError, match="Two sources are named for the dev split"):
        load_dataset({"dev": "a.csv", "validation": "b.csv"})


def test_one_of_several_files_for_a_split_is_chosen_and_said(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 40), train__txt="x", val__csv="x", dev__csv=rows(40, 50))
    data = load_dataset(tmp_path)
    assert len(data.dev) == 10
    assert f"{tmp_path}: the train split is train.csv, not train.txt." in data.notes
    assert f"{tmp_path}: the dev split is dev.csv, not val.csv." in data.notes


def test_a_folder_without_train_lists_what_it_holds(tmp_path: Path) -> None:
    folder(tmp_path, dev__csv=rows(0, 9))
    with pytest.raises(DataError, match=r"no train file.*it holds dev\.csv"):
        load_dataset(tmp_path)


def test_an_unlabelled_test_file_is_set_aside_and_said(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 50), test__csv="id,text\n1,some words\n2,more words\n")
    data = load_dataset(tmp_path)
    assert [len(split) for split in data.splits().values()] == [40, 5, 5]
    assert (
        f"{tmp_path / 'test.csv'} is not used, for it has no column 'label'; a test split is drawn "
        "from train instead." in data.notes
    )


def test_a_test_file_of_placeholders_is_set_aside(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 50), test__csv="text,label\nsome words,-1\nmore,-1\n")
    data = load_dataset(tmp_path)
    assert data.provenance["test"] == "drawn from train, seed 0"
    assert any("has no labels in 'label'" in note for note in data.notes)


def test_a_label_only_in_test_is_warned_of(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 50), test__csv=rows(50, 60) + "new words here,ugly\n")
    assert (
        "Train lacks the labels of 1 test row ('ugly': 1); no model can predict them."
        in load_dataset(tmp_path).warnings
    )


def test_a_headerless_split_takes_the_names_of_train(tmp_path: Path) -> None:
    folder(tmp_path, train__csv=rows(0, 50), test__csv=rows(50, 60, header=""))
    assert len(load_dataset(tmp_path).test) == 10


def test_without_a_header_in_train_no_split_has_one(tmp_path: Path) -> None:
    short = "tiny,good\nsmall,bad\n"  # alone, its first line would look like a header
    folder(tmp_path, train__csv=rows(0, 50, header=""), test__csv=short)
    data = load_dataset(tmp_path)
    assert data.test.texts == ("tiny", "small")


def test_the_task_follows_from_train_alone(tmp_path: Path) -> None:
    test = "text,label\nsome words,0.5\nmore words,0.7\nother words,1\n"
    train = rows(0, 50).replace(",good", ",1").replace(",bad", ",0")
    data = load_dataset(folder(tmp_path, train__csv=train, test__csv=test))
    assert data.columns.task == "classification"
    assert data.test.labels == ("0.5", "0.7", "1")


def test_options_reach_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    content = "a,b,c\n" + "".join(f"un café {i},un thé {i},{i / 7:.2f}\n" for i in range(40))
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(DataError, match=r"a\.csv is not UTF-8: line 2"):
        load_dataset(path)
    data = load_dataset(path, text="b", pair="a", label="c", encoding="latin-1", fraction=0.5)
    assert data.columns == Columns("b", "c", "a", "regression")
    assert len(data.train) == 16
    assert data.train.texts[0].startswith("un thé")
    assert isinstance((data.train.labels or ())[0], float)


def test_dirt_is_counted_with_its_place(tmp_path: Path) -> None:
    dirt = ",good\n  ,bad\nno label here,\ntoo,many,fields\n" + "long " * 40_000 + ",good\n"
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress((rows(0, 50) + dirt).encode("utf-8-sig")))
    warnings = load_dataset(path).warnings
    assert warnings == (
        f"{path}: of 55 rows, 1 did not have 2 fields (line 55); left out.",
        f"{path}: 2 rows without text in 'text', left out (lines 52, 53).",
        f"{path}: 1 row without a usable 'label', left out (line 54).",
        f"{path}: 1 text, cut to the first 100,000 characters (line 56).",
    )


def test_one_class_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(rows(0, 40).replace("bad", "good"), encoding="utf-8")
    with pytest.raises(DataError, match="one class, 'good'"):
        load_dataset(path)


def test_a_missing_path_gets_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "reviews").mkdir()
    with pytest.raises(DataError, match=r"Did you mean .*reviews"):
        load_dataset(tmp_path / "review")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    suffix=st.sampled_from(
        [".csv", ".tsv", ".txt", ".jsonl", ".json", ".parquet", ".csv.gz", ".conll"]
    ),
    junk=st.binary(max_size=40) | st.text('ab1",\t\n\r{}[]:\ufeff\0', max_size=80).map(str.encode),
    at=st.integers(0, 1500),
)
def test_junk_gets_a_message_or_a_dataset(
    tmp_path: Path, suffix: str, junk: bytes, at: int
) -> None:
    whole = rows(0, 30).encode()
    path = tmp_path / f"a{suffix}"
    path.write_bytes(whole[:at] + junk + whole[at:] if at < len(whole) else junk)
    with suppress(DataError):
        data = load_dataset(path)
        assert all(len(split) for split in data.splits().values())


def test_settings_out_of_range_are_reported_together() -> None:
    with pytest.raises(ConfigError) as raised:
        load_dataset("a.csv", task="ranking", split_seed=-1, tag_scheme="bio")  # type: ignore[arg-type]
    assert len(raised.value.faults) == 3


@pytest.mark.shared
def test_glue_folders(shared: Path) -> None:
    mrpc = load_dataset(shared / "data" / "mrpc", fraction=0.1)
    assert [len(split) for split in mrpc.splits().values()] == [330, 408, 367]
    assert any("test.tsv.gz is not used" in note for note in mrpc.notes)
    sick = load_dataset(shared / "data" / "sick")
    assert [len(split) for split in sick.splits().values()] == [4500, 500, 4927]
    assert any(warning.startswith("In 49 test rows") for warning in sick.warnings)


@pytest.mark.shared
def test_disaster_tweets_contradict_each_other(shared: Path) -> None:
    tweets = load_dataset(shared / "data" / "disaster_tweets" / "train.csv.gz")
    assert [len(split) for split in tweets.splits().values()] == [6091, 761, 761]
    assert any(warning.startswith("Labels contradict") for warning in tweets.warnings)
