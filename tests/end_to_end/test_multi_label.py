"""Rows of several labels from a table to a compared study, its report, and what it trained."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from tests.tiny_data import BAD, GOOD, OTHER, write_table

import totune
from totune.study.study import Study

SPLITS = {"train": 120, "dev": 20, "test": 40}
FAST = {"num_train_epochs": 12, "learning_rate": 3e-3}


def write_label_sets(folder: Path) -> Path:
    """text, labels: which words a text holds decides which of three labels apply."""
    folder.mkdir()
    for seed, (name, count) in enumerate(SPLITS.items()):
        rng = random.Random(seed)
        rows = []
        for _ in range(count):
            words, labels = rng.sample(OTHER, 4), []
            for label, sign in (("praise", GOOD[0]), ("blame", BAD[0]), ("joke", GOOD[1])):
                if rng.random() < 0.4:
                    words.append(sign)
                    labels.append(label)
            rng.shuffle(words)
            rows.append((" ".join(words), "|".join(labels)))
        write_table(folder / f"{name}.csv", ("text", "labels"), rows)
    return folder


@pytest.fixture(scope="module")
def study(data: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("several")
    return totune.compare(
        write_label_sets(folder / "data"),
        out=folder / "study",
        model=str(data / "encoder"),
        strategies=[
            "majority",
            "tf-idf",
            "feature-extraction",
            "fine-tuning",
        ],
        seeds=1,
        options={"fine-tuning." + name: value for name, value in FAST.items()},
        precision="fp32",
        max_length=20,
        per_device_train_batch_size=8,
    )


def test_every_kind_of_method_learns_and_is_compared(study: Study) -> None:
    scores = {record.strategy: record.test for record in study.records}
    assert all(record.status == "finished" for record in study.records)
    assert scores["tf-idf"]["micro-f1"] > 0.8
    assert scores["fine-tuning"]["micro-f1"] > scores["majority"]["micro-f1"]
    assert study.advice.metric == "micro-f1"
    assert study.advice.provisional in scores
    assert scores["tf-idf"]["support:praise"] > 0


def test_the_report_names_labels_and_scores(study: Study) -> None:
    report = study.folder / "report.md"
    text = report.read_text(encoding="utf-8")
    assert "F1 by label" in text
    assert "precision" in text
    assert "3 labels: " in text
    assert "Exact match" in text


def test_what_it_trained_predicts_sets_of_labels(study: Study, tmp_path: Path) -> None:
    best = totune.load(study.folder / "best")
    assert best.predict(f"w20 {GOOD[0]} {BAD[0]}") == ("blame", "praise")
    assert best.predict("w20 w21") == ()
    assert best.predict_proba("w20 w21").shape == (3,)
    facts = json.loads((study.folder / "study.json").read_text(encoding="utf-8"))
    assert facts["data"]["task"]["thresholds"] == []  # 0.5 for every label
    fingerprint = study.records[0].fingerprint
    arrays = np.load(study.folder / "runs" / fingerprint / "predictions.npz")
    assert arrays["targets"].shape == arrays["predictions"].shape == (SPLITS["test"], 4)
