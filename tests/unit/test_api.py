"""What the Python calls do beyond what they compose."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from tests.unit.report.sample_search import RANGES, search, trial
from tests.unit.runs.samples import failed, info_of, record_of

from totune.runs.records import Costs
from totune.runs.store import Store
from totune.search.records import write_search
from totune.study.study import Study, summary_rows

RATE = {"learning_rate": RANGES["learning_rate"]}


def test_the_live_table_counts_all_runs_but_failed_ones() -> None:
    info = info_of(strategies=["tf-idf", "last-2"], seeds=[0, 1, 2], metrics=["accuracy"])
    records = [
        record_of("tf-idf", 0, dev=0.5),
        record_of("tf-idf", 1, dev=0.6),
        record_of("tf-idf", 2, dev=0.1, degenerate="predicts only 'a'"),
        failed("last-2", 0),
    ]
    done, waiting = summary_rows(records, info)
    assert done == {
        "strategy": "tf-idf",
        "runs": "3/3",
        "test accuracy": "40.0 ± 26.5",
        "time per run": "1.8 s",
    }
    assert waiting == {
        "strategy": "last-2",
        "runs": "0/3",
        "test accuracy": "–",
        "time per run": "–",
    }


def test_a_study_tells_the_searches_that_led_to_its_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    options = {"learning_rate": 2e-4}
    config = {"strategy": {"name": "last-2", "options": options}, "head": {}}
    runs = [replace(record_of("last-2", 0), config=config), record_of("tf-idf", 0)]
    for run in runs:
        store.save(replace(run, predictions="predictions.npz"), answers())
    fingerprints = [run.fingerprint for run in runs]
    store.save_info(info_of(strategies=["tf-idf", "last-2"], runs=fingerprints))
    trials = [trial(0, 0.8), trial(1, 0.82, options=options)]
    write_search(tmp_path, search(trials, strategy="last-2", ranges=RATE))
    write_search(tmp_path, search([trial(0, 0.8)], strategy="other"))

    study = Study(tmp_path)
    assert [found.strategy for found in study.searches] == ["last-2"]
    assert study.advice.effort == (
        "Options were searched on dev with 2 trials per strategy (last-2 1 min); the winners ran "
        "over 1 seed.",
        "Not searched: tf-idf.",
    )
    text = study.report().markdown.read_text(encoding="utf-8")
    assert "## Search" in text
    assert "learning rate 0.0002 (0.0001)" in text
    assert all(sentence in text for sentence in study.advice.effort)


def test_what_the_encoder_does_not_see_stands_beside_the_advice(tmp_path: Path) -> None:
    store, run = Store(tmp_path), record_of("tf-idf", 0)
    store.save(replace(run, predictions="predictions.npz"), answers())
    caution = "Many texts are longer than 8 word pieces."
    data = {"digest": "d1", "cautions": [caution]}
    store.save_info(info_of(data=data, runs=[run.fingerprint]))

    study = Study(tmp_path)
    assert study.advice.caveats[-1] == caution
    text = study.report().markdown.read_text(encoding="utf-8")
    assert text.count(caution) == 1
    assert text.index(caution) < text.index("## Comparison")


def test_json_tells_what_each_strategy_costs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    runs = [record_of("last-2", 0), record_of("last-2", 1), failed("tf-idf", 0)]
    costs = [
        Costs(10, 40, 2.0, 1.0, 50.0, 1000, 400, 0.5),
        Costs(10, 40, 4.0, 3.0, 50.0, 2000, 400, 1.5),
    ]
    runs = [replace(run, costs=cost) for run, cost in zip(runs, [*costs, None], strict=True)]
    for run in runs:
        store.save(run, {} if run.predictions is None else answers())
    store.save_info(
        info_of(strategies=["last-2", "tf-idf"], runs=[run.fingerprint for run in runs])
    )
    tuned, failing = Study(tmp_path).to_json()["strategies"]
    assert tuned == {
        "strategy": "last-2",
        "usable_runs": 2,
        "seconds": 5.0,
        "trainable_parameters": 10,
        "total_parameters": 40,
        "peak_memory_bytes": 1500,
        "storage_bytes": 400,
        "latency_milliseconds": 1.0,
    }
    assert failing == {**dict.fromkeys(tuned), "strategy": "tf-idf", "usable_runs": 0}


def answers() -> dict[str, np.ndarray]:
    """Predictions of a run, one of four wrong."""
    targets = np.array([0, 1, 0, 1])
    return {"targets": targets, "predictions": np.array([0, 1, 0, 0]), "scores": np.eye(4, 2)}
