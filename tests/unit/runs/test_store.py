import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.runs.samples import failed, info_of, record_of

from totune.errors import ConfigError
from totune.runs.store import Store


def test_a_record_comes_back_with_its_predictions(tmp_path: Path) -> None:
    store = Store(tmp_path / "study")
    record = record_of(predictions="predictions.npz")
    arrays = {"targets": np.array([0, 1, 1]), "predictions": np.array([0, 1, 0])}
    store.save(record, arrays)
    assert store.record(record.fingerprint) == record
    found = store.predictions(record)
    assert found.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(found[name], arrays[name])


def test_a_failed_run_has_a_record_without_predictions(tmp_path: Path) -> None:
    store, record = Store(tmp_path), failed()
    store.save(record, {})
    assert store.record(record.fingerprint) == record
    assert store.predictions(record) == {}
    assert [path.name for path in store.run_folder(record.fingerprint).iterdir()] == ["record.json"]


def test_a_record_ends_its_checkpoint(tmp_path: Path) -> None:
    store, record = Store(tmp_path), record_of()
    checkpoint = store.checkpoint(record.fingerprint)
    checkpoint.parent.mkdir(parents=True)
    checkpoint.touch()
    store.save(record, {})
    assert not checkpoint.exists()


@pytest.mark.parametrize("content", ["", "{", "null", "[]", "{}", '{"epochs": [1]}'])
def test_an_unreadable_record_is_no_record(tmp_path: Path, content: str) -> None:
    store, whole = Store(tmp_path), record_of("last-2")
    store.save(whole, {})
    store.run_folder("damaged").mkdir()
    (store.run_folder("damaged") / "record.json").write_text(content, encoding="utf-8")
    said: list[str] = []
    assert store.record("damaged", said.append) is None
    assert [sentence.split(" cannot be read (")[0] for sentence in said] == [
        f"The record {store.run_folder('damaged') / 'record.json'}"
    ]
    assert store.record("missing", said.append) is None
    assert len(said) == 1
    assert store.records() == [whole]


def test_a_record_whose_predictions_are_gone_is_no_record(tmp_path: Path) -> None:
    store, record = Store(tmp_path), record_of(predictions="predictions.npz")
    store.save(record, {"targets": np.zeros(2)})
    (store.run_folder(record.fingerprint) / "predictions.npz").unlink()
    assert store.record(record.fingerprint) is None


def test_records_are_ordered_by_strategy_and_seed(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.records() == []
    for label, seed in (("tf-idf", 1), ("last-2", 10), ("last-2", 9), ("tf-idf", 0)):
        store.save(record_of(label, seed), {})
    found = [(record.strategy, record.seed) for record in store.records()]
    assert found == [("last-2", 9), ("last-2", 10), ("tf-idf", 0), ("tf-idf", 1)]


def test_a_study_is_described_in_words_of_any_script(tmp_path: Path) -> None:
    store = Store(tmp_path / "study")
    info = info_of(name="отзывы", seeds=[3, 1], runs=["a", "b"])
    store.save_info(info)
    assert store.info() == info
    assert "отзывы" in (store.folder / "study.json").read_text(encoding="utf-8")
    assert [path.name for path in store.folder.iterdir()] == ["study.json"]


def test_a_folder_without_a_study_says_so(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with pytest.raises(ConfigError, match=r"holds no study \(there is no study\.json in it\)"):
        store.info()
    for content in ("{", "[]", json.dumps({"name": "x"})):
        (tmp_path / "study.json").write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match="cannot be read as a study"):
            store.info()
