import json
import os
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
    record = store.save(record, arrays)
    assert record.files.keys() == {"predictions.npz"}
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


def damage(path: Path) -> None:
    """Flips a bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 16
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["empty", "cut", "flipped", "of another run"])
@pytest.mark.parametrize("hashed", [True, False])
def test_damaged_predictions_are_told_and_none(tmp_path: Path, kind: str, hashed: bool) -> None:
    store, other = Store(tmp_path), record_of("other", predictions="predictions.npz")
    record = store.save(record_of(predictions="predictions.npz"), {"targets": np.zeros(200)})
    store.save(other, {"targets": np.ones(200)})
    path = store.run_folder(record.fingerprint) / "predictions.npz"
    if not hashed:  # as an earlier version wrote records
        facts = {**record.to_json(), "files": {}}
        (path.parent / "record.json").write_text(json.dumps(facts))
    whole = path.read_bytes()
    if kind == "of another run":
        path.write_bytes((store.run_folder(other.fingerprint) / path.name).read_bytes())
    elif kind == "flipped":
        damage(path)
    else:
        path.write_bytes(b"" if kind == "empty" else whole[: len(whole) // 2])
    said: list[str] = []
    found = store.record(record.fingerprint, said.append)
    if kind == "of another run" and not hashed:
        assert found is not None
        return
    assert found is None
    [sentence] = said
    assert sentence.startswith(f"The predictions beside {path.parent / 'record.json'} cannot be ")


def test_a_changed_score_is_not_believed(tmp_path: Path) -> None:
    store, said = Store(tmp_path), list[str]()
    record = store.save(record_of(dev=0.75), {})
    path = store.run_folder(record.fingerprint) / "record.json"
    text = path.read_text()
    path.write_text(text.replace("0.75", "0.95"))
    assert store.record(record.fingerprint, said.append) is None
    assert "damaged or was changed" in said[0]
    path.write_text(json.dumps(json.loads(text)))  # another layout of the same
    assert store.record(record.fingerprint) == record


def test_weights_are_kept_if_they_are_what_was_written(tmp_path: Path) -> None:
    store, said = Store(tmp_path), list[str]()
    record = record_of()
    weights = store.weights(record.fingerprint)
    assert not store.has_weights(record)
    weights.mkdir(parents=True)
    assert not store.has_weights(record)
    (weights / "trained.safetensors").write_bytes(bytes(100))
    (weights / "trained.safetensors").chmod(0o600)
    record = store.save(record, {})
    assert (weights / "trained.safetensors").stat().st_mode & 0o400 == 0o400
    assert weights.parent.joinpath("record.json").stat().st_mode == (
        (weights / "trained.safetensors").stat().st_mode
    )
    assert store.has_weights(record, said.append)
    damage(weights / "trained.safetensors")
    assert not store.has_weights(record, said.append)
    assert said == [
        f"The weights in {weights} cannot be used (weights/trained.safetensors is damaged or was "
        "changed: it does not match its hash)."
    ]
    (weights / "trained.safetensors").unlink()
    assert not store.has_weights(record)


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    folder = store.run_folder(store.save(record_of(), {}).fingerprint)
    gone = 2**22 + 1  # beyond the largest number of a process
    old, own = folder / f"checkpoint.pt.{gone}.tmp", folder / f"checkpoint.pt.{os.getpid()}.tmp"
    fresh, foreign = folder / f"record.json.{gone}.tmp", tmp_path / "notes.tmp"
    for path in (old, own, fresh, foreign, folder / "checkpoint.pt"):
        path.write_text("half")
    for path in (old, own, foreign):
        os.utime(path, (0, 0))
    store.sweep([])
    assert (folder / "checkpoint.pt").exists()
    assert [path.exists() for path in (old, own, fresh, foreign)] == [False, True, True, True]
    store.sweep([folder.name])
    assert not (folder / "checkpoint.pt").exists()


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
