"""The Python interface: data in memory, members as objects, and what a study gives back."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import totune
from totune import Study
from totune.errors import ConfigError, DataError
from totune.registry import given_options
from totune.runs.arguments import read_settings
from totune.runs.settings import OF_STUDIES, Settings

CHOSEN = {
    "folds": 1,
    "strategies": [totune.TfIdf(), totune.FeatureExtraction(layers="mean")],
    "seeds": 2,
}


@pytest.fixture(scope="module")
def frame(data: Path) -> pd.DataFrame:
    return pd.read_csv(data / "reviews.csv")


@pytest.fixture(scope="module")
def study(
    frame: pd.DataFrame, data: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path
) -> Study:
    out = tmp_path_factory.mktemp("python") / "study"
    return totune.compare(frame, model=str(data / "encoder"), out=out, cache_dir=cache, **CHOSEN)


def test_a_frame_is_compared_and_its_study_resumed(
    study: Study, frame: pd.DataFrame, data: Path
) -> None:
    options = study.records[-1].config["strategy"]["options"]
    assert options["layers"] == "mean"
    begun: list[str] = []

    class Watch(totune.Callback):
        def on_run_begin(self, config: Any) -> None:
            begun.append(config.label)

    same = (frame["text"], frame["label"])
    again = totune.compare(
        same, model=str(data / "encoder"), out=study.folder, callbacks=[Watch()], **CHOSEN
    )
    assert begun == []
    assert [r.test for r in again.records] == [r.test for r in study.records]
    with pytest.raises(ConfigError, match=r"other data \(texts and labels\)"):
        totune.compare(frame[:100], model=str(data / "encoder"), out=study.folder, **CHOSEN)


def test_the_best_model_reads_frames(study: Study, frame: pd.DataFrame) -> None:
    model = study.best_model()
    labels = model.predict(frame)
    assert labels == model.predict(frame["text"]) == model.predict(list(frame["text"]))
    assert model.predict(frame.to_dict("records")) == labels
    right = float(np.mean(np.array(labels) == frame["label"]))
    assert model.evaluate(frame)["accuracy"] == pytest.approx(right)
    assert model.evaluate((frame["text"], frame["label"])) == model.evaluate(frame)
    unlabelled = frame.assign(label=None)
    with pytest.raises(DataError, match="no labels to compare with"):
        model.evaluate(unlabelled)
    with pytest.raises(DataError, match="DataFrame has no column 'text'"):
        model.predict(frame.rename(columns={"text": "review"}))


def test_a_study_reads_into_data_frames(study: Study) -> None:
    runs = study.to_pandas()
    assert list(runs["strategy"]) == ["tf-idf", "tf-idf", *["feature-extraction"] * 2]
    assert list(runs["test_accuracy"]) == [record.test["accuracy"] for record in study.records]
    epochs = study.to_pandas("epoch")
    assert len(epochs) == sum(len(record.epochs) for record in study.records)
    rows = study.to_pandas("prediction")
    for (strategy, seed), group in rows.groupby(["strategy", "seed"]):
        run = runs[(runs["strategy"] == strategy) & (runs["seed"] == seed)]
        right = (group["target"] == group["prediction"]).mean()
        assert right == pytest.approx(float(run["test_accuracy"].iloc[0]))
    chances = rows[["probability_blame", "probability_praise"]]
    assert chances.sum(axis=1).to_numpy() == pytest.approx(1)
    with pytest.raises(ConfigError, match="per='fold' is none of run, epoch, prediction"):
        study.to_pandas("fold")  # type: ignore[arg-type]


def test_studies_are_compared_over_the_same_rows(
    study: Study, frame: pd.DataFrame, data: Path, tmp_path: Path
) -> None:
    strategies = ["tf-idf", "majority"]
    chosen = {"model": str(data / "encoder"), "strategies": strategies, "seeds": 2, "folds": 1}
    other = totune.compare(frame, out=tmp_path / "other", **chosen)
    table = study.compare_to(other.folder)
    assert table.values("Strategy") == ["tf-idf", "feature-extraction", "majority"]
    assert table.values("Difference") == [0.0, None, None]
    assert "paired over the test rows" in table.notes[0]
    fewer = totune.compare(frame[:100], out=tmp_path / "fewer", **chosen)
    assert "over seeds alone" in study.compare_to(fewer).notes[0]


def test_a_notebook_shows_the_answer_escaped(study: Study) -> None:
    html = study._repr_html_()
    assert study.advice.headline in html
    assert "<td>tf-idf</td>" in html
    study = Study(study.folder)
    study.info.strategies[0] = "<script>"
    object.__setattr__(study.records[0], "strategy", "<script>")
    assert "<script>" not in study._repr_html_()
    assert "&lt;script&gt;" in study._repr_html_()
    assert repr(study).startswith("Study('")


def test_what_an_object_was_given_is_what_is_set() -> None:
    given = read_settings(
        {
            "strategies": [
                totune.LoRA(r=8),
                "last-2",
                {"strategy": totune.LastK(k=1), "label": "top", "head": totune.Esim(dropout=0.1)},
                totune.Candidate("tf-idf", {"min_df": 2}),
            ],
            "head": totune.Esim(hidden_size=150),
            "options": {"head.dropout": 0.3},
        },
        "compare",
    )
    assert given.strategies is not None
    lora, name, top, candidate = given.strategies
    assert (lora, name) == ({"strategy": "lora", "options": {"r": 8}}, "last-2")
    assert top == {
        "strategy": "last-k",
        "label": "top",
        "head": "esim",
        "options": {"k": 1, "head.dropout": 0.1},
    }
    assert candidate == {"strategy": "tf-idf", "options": {"min_df": 2}, "label": ""}
    assert given.head == "esim"
    assert given.options == {"head.hidden_size": 150, "head.dropout": 0.3}


def test_an_object_made_by_name_keeps_what_it_was_given() -> None:
    assert given_options(totune.STRATEGIES.create("last-3", {"layers": "mean"})) == {
        "k": 3,
        "layers": "mean",
    }


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learning_rate": 1e-3}, r"option of .*options={'learning_rate': 0.001}.*FineTuning\("),
        ({"hidden_size": 3}, r"head=totune.Bcn\(hidden_size=3\), or as options={'head.hidden_"),
        ({"sedes": 3}, "compare has no option 'sedes'. Did you mean 'seeds'"),
        ({"strategies": [totune.LoRA(r="four")]}, "strategy lora: r='four': Input should be"),
        ({"strategies": totune.LoRA()}, "is one member, not a list"),
        ({"head": totune.Esim(hidden_size=0)}, "head esim: hidden_size=0"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_settings(settings, "compare").candidates()


def test_train_takes_no_settings_of_studies(tmp_path: Path, frame: pd.DataFrame) -> None:
    with pytest.raises(ConfigError, match="it takes no jobs, seeds, which compare does"):
        totune.train(frame, out=tmp_path, seeds=3, jobs=2)  # type: ignore[call-arg]


def test_help_shows_every_keyword_with_its_default_and_meaning() -> None:
    parameters = inspect.signature(totune.compare).parameters
    for name, field in Settings.__dataclass_fields__.items():
        assert name in parameters
        assert f"{name}: {field.metadata['description']}" in (totune.compare.__doc__ or "")
    assert parameters["tolerance"].default == 0.005
    assert not OF_STUDIES & inspect.signature(totune.train).parameters.keys()


def test_every_member_is_offered_as_a_class() -> None:
    for registry in (totune.STRATEGIES, totune.HEADS, totune.BASELINES):
        for name in registry.names():
            member = registry.get(name)
            if member.__module__.startswith("totune."):
                message = f"add {member.__name__} to src/totune/__init__.pyi"
                assert getattr(totune, member.__name__, None) is member, message


def test_vectors_of_texts_in_memory(frame: pd.DataFrame, data: Path, tmp_path: Path) -> None:
    chosen = {"model": str(data / "encoder"), "max_length": 16}
    expected = totune.extract_features(data / "reviews.csv", out=tmp_path / "file", **chosen)
    for number, rows in enumerate((frame, frame["text"], list(frame["text"]))):
        found = totune.extract_features(rows, out=tmp_path / str(number), **chosen)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.vectors, other.vectors)
    with pytest.raises(ConfigError, match="these rows are in memory: write them to a file"):
        totune.extract_features(frame, out=tmp_path / "ray", executor="ray")
