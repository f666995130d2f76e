"""Which class F1 is of: the data's own order decides, unless a person does."""

from pathlib import Path
from typing import Any

import datasets
import pytest
from sklearn.metrics import f1_score
from tests.recorder import Recorder
from tests.tiny_data import save_encoder, write_reviews

import totune
from totune.runs.records import RunRecord
from totune.runs.reopen import reopen
from totune.runs.store import Store

NAMES = ["not_equivalent", "equivalent"]  # as GLUE's MRPC declares them


@pytest.fixture
def mrpc(monkeypatch: pytest.MonkeyPatch) -> datasets.Dataset:
    """Pairs of which three of four are equivalent."""
    features = datasets.Features(
        {
            "sentence1": datasets.Value("string"),
            "sentence2": datasets.Value("string"),
            "label": datasets.ClassLabel(names=NAMES),
        }
    )
    texts = [f"the first sentence number {i}" for i in range(40)]
    others = [f"the second sentence number {i}" for i in range(40)]
    columns = {
        "sentence1": texts,
        "sentence2": others,
        "label": [int(i % 4 > 0) for i in range(40)],
    }
    rows = datasets.Dataset.from_dict(columns, features=features)
    parts = datasets.DatasetDict(train=rows, validation=rows, test=rows)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_: parts)
    return rows


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    return {"model": str(save_encoder(tmp_path / "encoder")), "out": tmp_path / "out"}


def test_the_hub_s_order_decides(mrpc: datasets.Dataset, settings: dict[str, Any]) -> None:
    told = Recorder()
    model = totune.train("hub:tiny/mrpc", "majority", progress=told, **settings)
    names = [NAMES[label] for label in mrpc["label"]]
    expected = f1_score(names, ["equivalent"] * 40, pos_label="equivalent")
    assert model.about["metrics"]["test"]["f1"] == pytest.approx(expected)
    said = "F1 is that of the class 'equivalent' (`positive_label` names the class)."
    assert told.said.index(said) < told.said.index("run 1/1: majority, seed 0")
    assert totune.load(settings["out"]).task.positive == "equivalent"


def test_a_person_decides(tmp_path: Path, settings: dict[str, Any]) -> None:
    data = write_reviews(tmp_path / "reviews.csv")
    kept = {**settings, "strategies": ["majority"], "seeds": 1, "folds": 1}
    runs = []
    for positive in (None, "praise", "blame"):
        study = totune.compare(data, positive_label=positive, **kept)
        runs.append(study.info.runs)
    assert runs[0] == runs[1]  # the second by alphabet is positive in any case
    assert runs[2] != runs[0]
    [record] = [Store(study.folder).record(run) for run in runs[2]]
    assert isinstance(record, RunRecord)
    assert record.config["task"]["labels"] == ["praise", "blame"]
    assert "F1 is that of the class 'blame'" in " ".join(study.table().notes)


def test_a_study_keeps_the_order_of_classes_that_it_was_run_with(
    mrpc: datasets.Dataset, settings: dict[str, Any]
) -> None:
    study = totune.compare("hub:tiny/mrpc", strategies=["majority"], seeds=1, **settings)
    store = Store(study.folder)
    info = store.info()
    info.data["task"]["labels"].reverse()  # as of versions that sorted the hub's classes
    store.save_info(info)
    context, *_ = reopen(study.folder, "hub:tiny/mrpc", {}, Recorder())
    assert context.task.positive == "not_equivalent"
