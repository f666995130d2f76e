"""One summary of a strategy, with one definition of a usable run, for advice, race and report."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit.runs.samples import info_of, record_of

from totune.advice import advise
from totune.advice.summary import StrategySummary, is_usable, summarize
from totune.metrics import METRICS
from totune.report.groups import by_strategy
from totune.runs.records import RunRecord

TARGETS = np.linspace(0, 5, 300)
Arrays = dict[str, dict[str, np.ndarray]]


@pytest.fixture
def mixed_study() -> tuple[list[RunRecord], Arrays]:
    """A run that is sound, one that is degenerate, one with a nan, one that failed."""
    rng = np.random.default_rng(0)
    sound, constant = TARGETS + rng.normal(size=300), np.full(300, 2.5)
    broken = np.where(TARGETS < 1, math.nan, TARGETS)
    records, arrays = [], {}
    for seed, predictions in enumerate((sound, constant, broken)):
        test = {name: METRICS[name](TARGETS, predictions) for name in ("pearson", "mse")}
        records.append(record_of("last-2", seed, test=test))
        arrays[records[-1].fingerprint] = {"targets": TARGETS, "predictions": predictions}
    records[1] = replace(records[1], degenerate="predicts 2.500 for every row")
    records.append(record_of("last-2", 3, status="failed", test={}, costs=None, error="it broke"))
    return records, arrays


def test_records_alone_and_predictions_tell_the_same_runs_usable(
    mixed_study: tuple[list[RunRecord], Arrays],
) -> None:
    records, arrays = mixed_study
    assert [is_usable(run, arrays) for run in records] == [True, True, False, False]
    assert [is_usable(run) for run in records] == [True, True, False, False]


def test_report_and_advice_count_the_same_runs(mixed_study: tuple[list[RunRecord], Arrays]) -> None:
    records, arrays = mixed_study
    (reported,) = by_strategy(info_of(strategies=["last-2"], metric="mse"), records)
    (advised,) = advise(records, arrays, "mse").standings
    for found in (reported, advised):
        kinds = found.records, found.usable, found.degenerate, found.failed
        assert [len(kind) for kind in kinds] == [4, 2, 1, 1]
        assert (found.seeds, found.unscored, found.trouble) == (2, 1, "it broke")
    assert advised.score.mean == pytest.approx(reported.mean("mse"))
    assert advised.seconds() == reported.seconds() == 1.75


def test_strategies_come_in_the_order_wanted_and_have_a_summary_before_they_run() -> None:
    records = [record_of("tf-idf", 1), record_of("lora"), record_of("tf-idf", 0)]
    found = summarize(records, ["tf-idf", "last-2"])
    assert [each.strategy for each in found] == ["tf-idf", "last-2", "lora"]
    assert [record.seed for record in found[0].records] == [0, 1]
    assert found[1] == StrategySummary("last-2")
    assert (found[1].seconds(), found[1].cost("storage_bytes"), found[1].fixed) == (
        None,
        None,
        False,
    )
    assert found[1].cost_order == (math.inf, math.inf, "last-2")


def test_a_summary_is_json_without_runs_too() -> None:
    found = json.loads(json.dumps(StrategySummary("lora").to_json(), allow_nan=False))
    assert (found["runs"], found["seeds"], found["mean"], found["seconds"]) == (0, 0, None, None)
