import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from totune.advice import Ensemble, find_ensembles
from totune.advice.ensembles import combine
from totune.errors import ConfigError, DataError
from totune.metrics import METRICS
from totune.runs.records import Costs, RunRecord

ROWS, CLASSES = 60, 4
METRIC_NAMES = ["accuracy", "f1"]
Arrays = dict[str, dict[str, np.ndarray]]


def record(strategy: str, seed: int, dev: float, head: bool = True) -> RunRecord:
    return RunRecord(
        f"{strategy}/{seed}",
        strategy,
        seed,
        "finished",
        {"head": {"name": "linear"} if head else {}},
        {},
        "float32",
        dev={"accuracy": dev, "mse": dev, "span-f1": dev},
        costs=Costs(10, 100, 5.0, 0.0, 100.0, 10**9, 1000 + seed, 1.5),
    )


def classified(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(CLASSES), ROWS).astype(np.float32)
    targets = np.random.default_rng(99).integers(0, CLASSES, ROWS)
    return {"targets": targets, "predictions": scores.argmax(axis=1), "scores": scores}


@pytest.fixture
def ensemble_study() -> tuple[list[RunRecord], Arrays]:
    """Four strategies on the encoder and a baseline; of each two seeds."""
    dev = {"lora": 0.80, "last-2": 0.78, "adapters": 0.90, "bitfit": 0.70}
    records = [record(name, s, value + 0.01 * s) for name, value in dev.items() for s in (0, 1)]
    records += [record("tf-idf", seed, 0.99, head=False) for seed in (0, 1)]
    return records, {run.fingerprint: classified(at) for at, run in enumerate(records)}


def by_name(found: tuple[Ensemble, ...]) -> dict[str, Ensemble]:
    return {ensemble.name: ensemble for ensemble in found}


def test_runs_with_tuned_thresholds_decide_by_their_mean():
    def member(probabilities: list[float], threshold: float) -> dict[str, np.ndarray]:
        second = np.array(probabilities)
        return {
            "predictions": (second >= threshold).astype(int),
            "scores": np.stack([1 - second, second], axis=1),
            "thresholds": np.array([threshold]),
        }

    members = [member([0.1, 0.3, 0.5], 0.2), member([0.1, 0.1, 0.1], 0.3)]
    assert combine(members).tolist() == [0, 0, 1]  # means .1, .2 and .3; threshold .25


def test_ensembles_are_scored_by_their_mean_probabilities(
    ensemble_study: tuple[list[RunRecord], Arrays],
):
    records, arrays = ensemble_study
    records = [replace(run, dev={"log-loss": run.dev["accuracy"]}) for run in records]
    found = by_name(find_ensembles(records, arrays, ["log-loss"]))["lora x 2 seeds"]
    own = [arrays[f"lora/{seed}"] for seed in (0, 1)]
    mean = np.mean([each["scores"] for each in own], axis=0)
    targets = own[0]["targets"]
    assert found.test["log-loss"] == pytest.approx(METRICS["log-loss"](targets, mean))
    assert found.gain["log-loss"] > 0  # an error that fell


def test_every_strategy_and_the_best_three_make_an_ensemble(
    ensemble_study: tuple[list[RunRecord], Arrays],
):
    found = find_ensembles(*ensemble_study, METRIC_NAMES)
    assert [ensemble.name for ensemble in found] == [
        "lora x 2 seeds",
        "last-2 x 2 seeds",
        "adapters x 2 seeds",
        "bitfit x 2 seeds",
        "tf-idf x 2 seeds",
        "3 best strategies",
    ]
    assert found[-1].members == ("adapters seed 1", "lora seed 1", "last-2 seed 1")


def test_classes_are_those_of_the_highest_mean_probability(
    ensemble_study: tuple[list[RunRecord], Arrays],
):
    records, arrays = ensemble_study
    found = by_name(find_ensembles(records, arrays, METRIC_NAMES))["3 best strategies"]
    members = [arrays[name] for name in ("adapters/1", "lora/1", "last-2/1")]
    targets = members[0]["targets"]
    answers = []
    for row in range(ROWS):
        sums = [sum(float(m["scores"][row, label]) for m in members) for label in range(CLASSES)]
        answers.append(sums.index(max(sums)))
    accuracy = sum(a == t for a, t in zip(answers, targets, strict=True)) / ROWS
    alone = [(m["predictions"] == targets).mean() for m in members]
    assert found.test["accuracy"] == pytest.approx(accuracy)
    assert found.alone["accuracy"] == pytest.approx(np.mean(alone))
    assert found.gain["accuracy"] == pytest.approx(accuracy - np.mean(alone))
    assert found.test["f1"] == METRICS["f1"](targets, np.array(answers), CLASSES)


def test_costs_are_those_of_all_members(ensemble_study: tuple[list[RunRecord], Arrays]):
    found = by_name(find_ensembles(*ensemble_study, METRIC_NAMES))
    assert found["lora x 2 seeds"].storage_bytes == 2001
    assert found["3 best strategies"].latency_milliseconds == pytest.approx(4.5)


def test_costs_that_are_not_recorded_are_not_known(ensemble_study: tuple[list[RunRecord], Arrays]):
    records, arrays = ensemble_study
    blind = [replace(run, costs=None) if run.seed else run for run in records]
    plain = json.loads(json.dumps(find_ensembles(blind, arrays, METRIC_NAMES)[0].to_json()))
    assert plain["storage_bytes"] is plain["latency_milliseconds"] is None
    assert plain["members"] == ["lora seed 1", "lora seed 0"]


def test_runs_that_do_not_count_are_no_members(ensemble_study: tuple[list[RunRecord], Arrays]):
    records, arrays = ensemble_study
    records[0] = replace(records[0], status="failed")
    records[2] = replace(records[2], status="failed")
    arrays["adapters/1"]["scores"][3, 0] = np.nan
    found = by_name(find_ensembles(records, arrays, METRIC_NAMES))
    assert set(found) == {"bitfit x 2 seeds", "tf-idf x 2 seeds", "3 best strategies"}
    assert "adapters seed 0" in found["3 best strategies"].members


def test_copies_are_no_ensemble(ensemble_study: tuple[list[RunRecord], Arrays]):
    records, arrays = ensemble_study
    arrays["tf-idf/1"] = arrays["tf-idf/0"]
    assert "tf-idf x 2 seeds" not in by_name(find_ensembles(records, arrays, METRIC_NAMES))


def test_one_strategy_of_one_seed_makes_none(ensemble_study: tuple[list[RunRecord], Arrays]):
    records, arrays = ensemble_study
    assert find_ensembles([records[0], *records[-2:-1]], arrays, METRIC_NAMES) == ()
    assert find_ensembles([], {}, METRIC_NAMES) == ()


def test_numbers_are_averaged_and_smaller_errors_are_a_gain():
    targets = np.linspace(0, 5, 50, dtype=np.float32)
    records = [record("lora", 0, 0.4), record("adapters", 0, 0.3), record("last-2", 0, 0.1)]
    arrays = {
        run.fingerprint: {"targets": targets, "predictions": targets + np.float32(shift)}
        for run, shift in zip(records, (1.0, -1.0, 0.5), strict=True)
    }
    (found,) = find_ensembles(records, arrays, ["mse"])
    assert found.members == ("last-2 seed 0", "adapters seed 0", "lora seed 0")
    assert found.test["mse"] == pytest.approx((0.5 / 3) ** 2, rel=1e-4)
    assert found.alone["mse"] == pytest.approx(0.75)
    assert found.gain["mse"] == pytest.approx(0.75 - (0.5 / 3) ** 2, rel=1e-4)


def voted(column: list[int]) -> int:
    """The most frequent code; among equals that of the first voter who gave one of them."""
    counts = Counter(column)
    return next(code for code in column if counts[code] == max(counts.values()))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_tags_are_voted_for(members: int, salt: int):
    rng = np.random.default_rng(salt)
    words = np.arange(5) < rng.integers(1, 6, (7, 1))
    runs = [
        np.where(words, rng.integers(0, 4, (7, 5)), -1).astype(np.int16) for _ in range(members)
    ]
    found = combine([{"predictions": run} for run in runs])
    expected = [[voted([int(run[n, w]) for run in runs]) for w in range(5)] for n in range(7)]
    assert found.tolist() == expected
    assert found.dtype == np.int16


def test_taggers_are_an_ensemble_from_three_on_and_ties_go_to_the_best_dev_run():
    targets = np.array([[1, 2, 0], [1, 0, -1]], dtype=np.int16)
    others = np.array([[0, 0, 0], [0, 0, -1]], dtype=np.int16)
    third = np.array([[5, 6, 5], [6, 5, -1]], dtype=np.int16)
    records = [record("lora", seed, dev) for seed, dev in enumerate((0.5, 0.9, 0.6))]
    arrays = {
        run.fingerprint: {"targets": targets, "predictions": codes}
        for run, codes in zip(records, (others, targets, third), strict=True)
    }
    (found,) = find_ensembles(records, arrays, ["span-f1", "token-accuracy"])
    assert found.test == {"span-f1": 1.0, "token-accuracy": 1.0}
    assert find_ensembles(records[:2], arrays, ["span-f1"]) == ()


def test_what_is_wrong_is_refused(ensemble_study: tuple[list[RunRecord], Arrays]):
    records, arrays = ensemble_study
    with pytest.raises(ConfigError, match="Did you mean 'accuracy'"):
        find_ensembles(records, arrays, ["acuracy"])
    arrays["lora/1"]["targets"] = 1 - arrays["lora/1"]["targets"]
    with pytest.raises(DataError, match="different test rows"):
        find_ensembles(records, arrays, METRIC_NAMES)


def test_labels_of_which_a_row_has_several_are_those_of_the_mean_probability():
    scores = [np.array([[0.9, 0.2], [0.4, 0.6]]), np.array([[0.2, 0.3], [0.7, 0.3]])]
    members = [
        {"scores": own, "predictions": np.hstack([own >= 0.5, np.zeros((2, 1))]).astype(np.int16)}
        for own in scores
    ]
    assert combine(members).tolist() == [[1, 0, 0], [1, 0, 0]]
