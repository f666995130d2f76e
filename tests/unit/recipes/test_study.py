import numpy as np
import pytest

from totune.errors import RunError
from totune.progress import Progress
from totune.recipes import study as module
from totune.recipes.check import CheckedStudy
from totune.recipes.loading import load_recipe
from totune.recipes.planned import plan_studies
from totune.runs.records import RunRecord, StudyInfo
from totune.runs.store import Store

RECIPE = load_recipe("hart-bert")
TARGETS = np.array([0, 0, 1, 1])


def record(store, label, seed, predictions, **fields):
    fingerprint = f"{label}-{seed}".replace(" ", "-")
    made = RunRecord(
        fingerprint,
        label,
        seed,
        "finished",
        {},
        {},
        "fp32",
        predictions="predictions.npz",
        **fields,
    )
    store.save(made, {"targets": TARGETS, "predictions": np.array(predictions)})
    return made


class FakeStudy:
    """What `compare` would give: two seeds; the last row failed once, one run is degenerate."""

    def __init__(self, folder):
        self.folder = folder
        store = Store(folder)
        self.records = [
            record(store, "frozen", 0, [0, 0, 0, 1]),
            record(store, "frozen", 1, [0, 0, 0, 0], degenerate="predicts only '0'"),
            record(store, "unfrozen", 0, [0, 0, 1, 1]),
            record(store, "unfrozen", 1, [0, 1, 1, 1]),
            RunRecord("x", "last two layers", 0, "failed", {}, {}, "fp32", error="no"),
            record(store, "last two layers", 1, [0, 0, 1, 1]),
        ]
        task = {"name": "classification", "labels": ["0", "1"]}
        data = {"name": "train.csv", "digest": "d", "rows": {"test": 4}, "task": task}
        self.info = StudyInfo(
            "train.csv", "classification", data, {"name": "tiny"}, "accuracy", [], [], [0, 1], {},
            {}, {},
        )  # fmt: skip


@pytest.fixture
def compare_call(monkeypatch):
    calls = {}

    def compare(data, **settings):
        calls.update(settings, data=data)
        return FakeStudy(settings["out"])

    monkeypatch.setattr(module, "compare", compare)
    return calls


def run(tmp_path, keep_going=False, **chosen):
    (tmp_path / "train.csv").touch()
    studies = plan_studies(RECIPE, tmp_path, {"fraction": 0.5, "seeds": 2, **chosen})
    checked = [CheckedStudy(study, {}) for study in studies]
    return module.run_studies(RECIPE, checked, tmp_path, Progress(), keep_going)[0]


def test_the_study_is_asked_for_what_the_recipe_says(compare_call, tmp_path):
    run(tmp_path)
    assert compare_call["data"] == tmp_path / "train.csv"
    assert compare_call["out"] == tmp_path / "study"
    assert compare_call["model"] == "minilm"
    assert (compare_call["text"], compare_call["label"]) == ("text", "target")
    assert (compare_call["fraction"], compare_call["seeds"]) == (0.5, 2)
    assert [member["label"] for member in compare_call["strategies"]] == [
        r.label for r in RECIPE.rows
    ]
    assert compare_call["strategies"][0]["options"]["learning_rate"] == 5e-5


def test_another_model_may_be_named(compare_call, tmp_path):
    run(tmp_path, model="bert-base-uncased")
    assert compare_call["model"] == "bert-base-uncased"


def test_rows_come_from_the_runs_predictions(compare_call, tmp_path):
    frozen, unfrozen, last, *others = run(tmp_path).groups[0].outcomes
    assert frozen.scores["accuracy"] == (0.75, 0.5)
    assert frozen.scores["f1 of class 0"] == pytest.approx((0.8, 2 / 3))
    assert (frozen.failed, frozen.degenerate) == (0, 1)
    assert unfrozen.scores["accuracy"] == (1.0, 0.75)
    assert (last.failed, last.count) == (1, 1)
    assert [other.count for other in others] == [0, 0]


def test_tests_are_run_where_there_are_runs(compare_call, tmp_path):
    first, second, *own = run(tmp_path).tests
    assert first.ours is not None
    assert first.ours["t"] < 0
    assert first.paper == {"t": -0.91, "df": 13, "p": 0.38}
    assert second.ours is None
    assert [test.paper for test in own] == [None, None]


def test_a_study_without_a_finished_run_is_an_error(monkeypatch, tmp_path):
    def compare(data, **settings):
        raise RunError("No run finished.")

    monkeypatch.setattr(module, "compare", compare)
    with pytest.raises(RunError, match="No run finished"):
        run(tmp_path)
    with pytest.raises(RunError, match=r"Nothing of hart-bert ran\. No run finished\."):
        run(tmp_path, keep_going=True)
