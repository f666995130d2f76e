from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.report.sample_study import run_of

from totune.report.figures import (
    cost_rows,
    curve_limits,
    curve_rows,
    score_limits,
    score_rows,
    strategy_colors,
)
from totune.runs.records import RunRecord, StudyInfo


def curves_of(
    info: StudyInfo, records: list[RunRecord], strategy: str, seed: int
) -> list[dict[str, Any]]:
    rows = curve_rows(info, records)
    return [row for row in rows if (row["strategy"], row["seed"]) == (strategy, seed)]


def test_rows_hold_every_run_in_points(info: StudyInfo, records: list[RunRecord]):
    rows = score_rows(info, records, "accuracy")
    groups = {row["name"]: row for row in rows}
    assert groups["fine-tuning"]["values"] == pytest.approx([84.6, 85.1])
    assert groups["last-2"]["values"] == pytest.approx([81.2, 80.9])
    assert groups["last-2"]["odd"] == pytest.approx([50.0])
    assert groups["last-2"]["mean"] == pytest.approx((81.2 + 80.9 + 50) / 3)
    assert rows[0]["name"] == "fine-tuning"
    assert list(strategy_colors(info, records)) == info.strategies


def test_few_runs_get_no_box_and_five_do(info: StudyInfo):
    values = [0.80, 0.81, 0.79, 0.83, 0.78]
    runs = [
        replace(run_of("tf-idf", 0), seed=seed, test={"accuracy": value})
        for seed, value in enumerate(values)
    ]
    (five,), (four,) = (score_rows(info, some, "accuracy") for some in (runs, runs[:4]))
    expected = [100 * np.quantile(values, share) for share in (0.25, 0.5, 0.75)]
    assert five["quartiles"] == pytest.approx(expected)
    assert four["quartiles"] is None


def test_the_scale_shows_means_and_is_not_stretched_by_degenerate_runs(
    info: StudyInfo, records: list[RunRecord]
):
    rows = score_rows(info, records, "accuracy")
    low, high = score_limits(rows, "accuracy")
    assert 50 < low < 70.7
    assert 85.1 < high <= 102
    assert all(low <= value <= high for row in rows for value in row["values"])


def test_only_degenerate_runs_are_still_shown(info: StudyInfo, records: list[RunRecord]):
    runs = [replace(run, degenerate="predicts only 'neg'") for run in records]
    rows = score_rows(info, runs, "accuracy")
    assert rows
    assert not any(row["values"] for row in rows)
    low, high = score_limits(rows, "accuracy")
    assert low < 70.7 < high


def test_a_metric_nobody_knows_has_no_figure(info: StudyInfo, records: list[RunRecord]):
    assert score_rows(info, records, "matthews") == []
    assert cost_rows(replace(info, metric="matthews"), records) == []
    assert curve_rows(replace(info, metric="matthews"), records) == []


def test_curves_have_a_row_per_epoch_and_tell_its_phase(info: StudyInfo, records: list[RunRecord]):
    rows = curve_rows(info, records)
    assert {row["strategy"] for row in rows} == {"fine-tuning", "last-2", "feature-extraction"}
    own = [row for row in rows if row["strategy"] == "last-2"]
    assert {row["seed"]: row["degenerate"] for row in own} == {0: False, 1: False, 2: True}
    first = curves_of(info, records, "last-2", 0)
    assert [row["phase"] for row in first] == ["head"] * 2 + ["head and top layers"] * 3
    assert [(row["place"], row["epoch_in_phase"]) for row in first][1:3] == [(1, 2), (2, 1)]
    assert [row["epoch"] for row in first] == [1, 2, 3, 4, 5]
    assert [row["kept"] for row in first] == [False] * 4 + [True]
    for name, values in (
        ("dev", [epoch.dev["accuracy"] for epoch in records[3].epochs]),
        ("live", [epoch.train["accuracy"] for epoch in records[3].epochs]),
    ):
        assert [row[name] for row in first] == pytest.approx([100 * value for value in values])


def test_a_failed_run_shows_the_epochs_it_had(info: StudyInfo, records: list[RunRecord]):
    (row,) = curves_of(info, records, "fine-tuning", 2)
    assert not row["kept"]
    assert not row["usable"]


def test_a_degenerate_run_does_not_stretch_the_scale_of_curves(
    info: StudyInfo, records: list[RunRecord]
):
    low, high = curve_limits(curve_rows(info, records))
    assert 50 < low < 71
    assert 85 < high < 95


def test_costs_are_mean_seconds_with_features(info: StudyInfo, records: list[RunRecord]):
    rows = {row["strategy"]: row for row in cost_rows(info, records)}
    assert rows["feature-extraction"]["seconds"] == pytest.approx(4.1 + 21.3 / 3)
    tuned = rows["fine-tuning"]
    assert tuned["mean"] == pytest.approx(84.85)
    assert tuned["low"] < 84.85 < tuned["high"]


def test_one_seed_has_no_interval_and_an_open_scale_is_kept(
    regression: tuple[StudyInfo, list[RunRecord]],
):
    info, records = regression
    rows = score_rows(info, records, "mse")
    assert sorted(row["values"] for row in rows) == [[0.7312], [12.345]]
    assert all(row["low"] is None for row in rows)
