"""Trained models put to use: predict, evaluate, load."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.end_to_end.commands import Ended
from tests.end_to_end.conftest import Run
from tests.tiny_data import read_table, save_encoder

import totune as package
from totune.data.examples import Examples
from totune.data.sources import load_dataset

KINDS = {
    "reviews": ("--text", "text", "--label", "label"),
    "pairs": ("--text", "first", "--pair", "second", "--label", "label"),
    "scores": ("--text", "text", "--label", "score"),
}
TRAINED = [("reviews", "fine-tuning"), ("pairs", "last-2"), ("scores", "feature-extraction")]
INSERTED = [("reviews", "adapters"), ("scores", "lora")]
BASELINES = [
    ("reviews", "tf-idf"),
    ("scores", "sentence-embedding"),
    ("pairs", "sentence-embedding"),
]


@pytest.fixture(scope="module")
def models(totune: Run, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of trained models, `KIND-STRATEGY`."""
    folder = tmp_path_factory.mktemp("models")
    for kind, strategy in TRAINED + INSERTED + BASELINES:
        settings = [*KINDS[kind], "--model", data / "encoder", "--precision", "fp32"]
        if (kind, strategy) not in BASELINES:
            settings += ["--num-train-epochs", "1", "--learning-rate", "3e-3"]
        out = folder / f"{kind}-{strategy}"
        where = (data / f"{kind}.csv", "--out", out, "--strategy", strategy)
        ended = totune("train", *where, *settings, "--json")
        assert ended.code == 0, ended.err
        assert ended.json["metrics"] == about(out)["metrics"]
    return folder


def about(model: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((model / "totune.json").read_text(encoding="utf-8"))
    return facts


def held_out(data: Path, kind: str) -> Examples:
    """The test split that training drew."""
    options = dict(zip(KINDS[kind][::2], KINDS[kind][1::2], strict=True))
    names = {option.removeprefix("--"): column for option, column in options.items()}
    return load_dataset(data / f"{kind}.csv", **names).test  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "strategy"), BASELINES)
def test_what_a_baseline_stores_is_what_saving_it_writes(
    models: Path, kind: str, strategy: str
) -> None:
    folder = models / f"{kind}-{strategy}"
    (record,) = (folder / "training" / "runs").glob("*/record.json")
    told = json.loads(record.read_text(encoding="utf-8"))["costs"]["storage_bytes"]
    assert told == sum(path.stat().st_size for path in (folder / "baseline").iterdir())


@pytest.mark.parametrize(("kind", "strategy"), TRAINED + INSERTED + BASELINES)
def test_a_loaded_model_predicts_what_its_record_says(
    data: Path, models: Path, kind: str, strategy: str
) -> None:
    folder = models / f"{kind}-{strategy}"
    model, test = package.load(folder), held_out(data, kind)
    recorded = next(folder.glob("training/runs/*/predictions.npz"))
    with np.load(recorded) as arrays:
        np.testing.assert_array_equal(model.task.targets(test.labels or ()), arrays["targets"])
        predictions = model.task.predictions(model.outputs(test), test.counts)
        np.testing.assert_allclose(predictions, arrays["predictions"], rtol=1e-5, atol=1e-5)
        found = model.predict_proba(test.texts, test.pairs)
        if found is None:
            assert kind == "scores"
        else:
            np.testing.assert_allclose(found, arrays["scores"], rtol=0, atol=1e-5)
    assert model.predict(test.texts, test.pairs) == model.task.decode(predictions)
    assert model.evaluate(test) == pytest.approx(model.about["metrics"]["test"], abs=1e-5)


@pytest.mark.parametrize(("kind", "strategy"), [*TRAINED, *INSERTED, BASELINES[0]])
def test_predict_answers_every_row_in_order(
    totune: Run, data: Path, models: Path, tmp_path: Path, kind: str, strategy: str
) -> None:
    folder, output = models / f"{kind}-{strategy}", tmp_path / "predictions.csv"
    ended = totune("predict", folder, data / f"{kind}.csv", "--output", output)
    assert ended.code == 0, ended.err
    assert f"predictions written to {output}" in ended.err
    rows, found = read_table(data / f"{kind}.csv"), read_table(output)
    model = package.load(folder)
    texts = [row[KINDS[kind][1]] for row in rows]
    pairs = [row["second"] for row in rows] if kind == "pairs" else None
    expected = model.predict(texts, pairs)
    assert len(found) == len(rows)
    if kind == "scores":
        assert [float(row["prediction"]) for row in found] == pytest.approx(expected, abs=1e-5)
    else:
        assert [row["prediction"] for row in found] == expected
        chances = model.predict_proba(texts, pairs)
        assert chances is not None
        assert [float(row["probability"]) for row in found] == pytest.approx(
            chances.max(axis=1).tolist(), abs=1e-5
        )


def test_predict_reads_a_text_a_line_and_pairs_with_a_tab(
    totune: Run, data: Path, models: Path, tmp_path: Path
) -> None:
    for kind, strategy in TRAINED[:2]:
        columns = KINDS[kind][1:4:2] if kind == "pairs" else KINDS[kind][1:2]
        rows = [[row[name] for name in columns] for row in read_table(data / f"{kind}.csv")[:7]]
        lines = tmp_path / f"{kind}.txt"
        lines.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        folder = models / f"{kind}-{strategy}"
        ended = totune("predict", folder, lines, "--json")
        assert ended.code == 0, ended.err
        expected = package.load(folder).predict(*zip(*rows, strict=True))
        assert [row["prediction"] for row in ended.json["predictions"]] == expected


def test_predict_writes_a_table_to_the_screen(totune: Run, data: Path, models: Path) -> None:
    ended = totune("predict", models / "reviews-tf-idf", data / "reviews.csv")
    assert ended.code == 0, ended.err
    rows = list(csv.DictReader(ended.out.splitlines()))
    assert len(rows) == len(read_table(data / "reviews.csv"))
    assert {row["prediction"] for row in rows} == {"praise", "blame"}


@pytest.mark.parametrize(("kind", "strategy"), TRAINED[1:] + BASELINES[:1])
def test_evaluate_scores_a_labelled_file(
    totune: Run, data: Path, models: Path, kind: str, strategy: str
) -> None:
    folder = models / f"{kind}-{strategy}"
    ended = totune("evaluate", folder, data / f"{kind}.csv", "--json")
    assert ended.code == 0, ended.err
    assert ended.json["rows"] == len(read_table(data / f"{kind}.csv"))
    if strategy == "tf-idf":
        assert ended.json["metrics"]["accuracy"] > 0.9
    assert set(ended.json["metrics"]) == set(about(folder)["metrics"]["test"])


@pytest.mark.parametrize(("kind", "strategy"), INSERTED)
def test_of_inserted_modules_the_folder_holds_no_encoder(
    totune: Run, data: Path, models: Path, tmp_path: Path, kind: str, strategy: str
) -> None:
    folder, moved = models / f"{kind}-{strategy}", tmp_path / "moved"
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        *("adapter_config.json", "adapter_model.safetensors", "head.safetensors", "totune.json"),
        "train_texts.npy",
    ]
    expected = totune("evaluate", folder, data / f"{kind}.csv", "--json")
    assert expected.code == 0, expected.err
    shutil.copytree(data / "encoder", moved)
    named = totune("evaluate", folder, data / f"{kind}.csv", "--model", moved, "--json")
    assert named.json["metrics"] == expected.json["metrics"]
    save_encoder(moved, seed=1)
    wrong = totune("predict", folder, data / f"{kind}.csv", "--model", moved)
    refused(wrong, str(data / "encoder"), str(moved), "fingerprint", "with --model")


@pytest.mark.parametrize(("kind", "strategy"), INSERTED)
def test_merge_makes_a_model_whole(
    totune: Run, data: Path, models: Path, tmp_path: Path, kind: str, strategy: str
) -> None:
    folder, out = models / f"{kind}-{strategy}", tmp_path / "whole"
    ended = totune("merge", folder, "--out", out, "--json")
    assert ended.code == 0, ended.err
    linear = strategy == "lora"
    assert ended.json["model"] == str(out)
    assert ended.json["merged"] == linear
    part = "AutoModelForSequenceClassification" if linear else "gelu"
    assert part in ended.json["note"]
    rows = Examples(tuple(row["text"] for row in read_table(data / f"{kind}.csv")))
    found, expected = package.load(out).outputs(rows), package.load(folder).outputs(rows)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert (out / "train_texts.npy").read_bytes() == (folder / "train_texts.npy").read_bytes()
    refused(totune("merge", folder, "--out", out), "so nothing is written to it", "--out")
    said = totune("merge", folder, "--out", tmp_path / "again")
    assert said.out.startswith("Merged: " if linear else "Not merged, but with its encoder")
    assert f"totune predict {tmp_path / 'again'}" in said.out


def test_a_plain_model_has_nothing_to_merge(totune: Run, models: Path, tmp_path: Path) -> None:
    for name in ("reviews-fine-tuning", "reviews-tf-idf"):
        refused(totune("merge", models / name, "--out", tmp_path / "out"), "nothing to merge")


def refused(ended: Ended, *parts: str) -> None:
    assert ended.code == 2
    assert "Traceback" not in ended.err
    assert ended.err.startswith("error: ")
    for part in parts:
        assert part in ended.err


def test_what_does_not_fit_the_model_gets_one_message(
    totune: Run, data: Path, models: Path, tmp_path: Path
) -> None:
    reviews = models / "reviews-fine-tuning"
    refused(totune("predict", reviews, data / "pairs.csv"), "'text'", "first")
    refused(totune("predict", reviews, data / "nothing.csv"), "nothing.csv")
    refused(totune("evaluate", models / "pairs-last-2", data / "reviews.csv"), "'first'")
    refused(totune("predict", data, data / "reviews.csv"), "holds no model", "totune train")
    unlabelled = tmp_path / "unlabelled.txt"
    unlabelled.write_text("w1 w2\n", encoding="utf-8")
    refused(totune("evaluate", reviews, unlabelled), "no labels")


def test_a_study_of_python_gives_its_best_model(data: Path, tmp_path: Path) -> None:
    study = package.compare(
        data / "reviews.csv",
        out=tmp_path / "study",
        model=str(data / "encoder"),
        strategies=["tf-idf", {"strategy": "last-2", "label": "top two"}],
        options={"num_train_epochs": 1, "last-2.learning_rate": 1e-3},
        folds=1,
        seeds=[4],
    )
    assert [record.strategy for record in study.records] == ["tf-idf", "top two"]
    assert study.records[1].config["strategy"]["options"]["learning_rate"] == 1e-3
    assert study.advice.provisional == "tf-idf"
    assert [row.cells[0].text for row in study.table().rows]
    best = package.load(study.best)
    assert best.about["strategy"] == "tf-idf"
    train = load_dataset(data / "reviews.csv").train
    assert best.seen is not None
    assert best.seen.count(train) == (len(train), len(train))
    assert best.evaluate(held_out(data, "reviews")) == study.records[0].test


def test_evaluate_draws_the_test_split_that_training_drew(
    totune: Run, data: Path, tmp_path: Path
) -> None:
    folder, model = tmp_path / "data", tmp_path / "model"
    folder.mkdir()
    (folder / "train.csv").write_bytes((data / "reviews.csv").read_bytes())
    options = ("--strategy", "hashing", "--split-seed", "3", "--out", model)
    assert totune("train", folder, *options).code == 0
    ended = totune("evaluate", model, folder, "--json")
    assert ended.code == 0, ended.err
    assert ended.json["rows"] == 20
    assert ended.json["metrics"] == pytest.approx(about(model)["metrics"]["test"])
    drawn = load_dataset(folder, split_seed=3).test
    assert package.load(model).evaluate(drawn) == pytest.approx(ended.json["metrics"])
    assert drawn.texts != load_dataset(folder, split_seed=0).test.texts
