from dataclasses import replace

import numpy as np
import pytest
from tests.unit.report.sample_study import run_of

from totune.report.figures import box_figure, cost_figure, learning_curves
from totune.runs.records import RunRecord, StudyInfo


def test_boxes_hold_every_run_in_points(info: StudyInfo, records: list[RunRecord]):
    figure = box_figure(info, records, "accuracy")
    assert figure is not None
    groups = {group.strategy: group for group in figure.groups}
    assert groups["fine-tuning"].values == pytest.approx((84.6, 85.1))
    assert groups["last-2"].values == pytest.approx((81.2, 80.9))
    assert groups["last-2"].odd == pytest.approx((50.0,))
    assert groups["last-2"].mean == pytest.approx((81.2 + 80.9 + 50) / 3)
    assert figure.groups[0].strategy == "fine-tuning"
    assert figure.strategies == tuple(info.strategies)


def test_few_runs_get_no_box_and_five_do(info: StudyInfo):
    values = [0.80, 0.81, 0.79, 0.83, 0.78]
    runs = [
        replace(run_of("tf-idf", 0), seed=seed, test={"accuracy": value})
        for seed, value in enumerate(values)
    ]
    five, four = box_figure(info, runs, "accuracy"), box_figure(info, runs[:4], "accuracy")
    assert five is not None
    assert four is not None
    expected = tuple(100 * np.quantile(values, [0.25, 0.5, 0.75]))
    assert five.groups[0].box == pytest.approx(expected)
    assert four.groups[0].box is None


def test_the_scale_shows_means_and_is_not_stretched_by_degenerate_runs(
    info: StudyInfo, records: list[RunRecord]
):
    figure = box_figure(info, records, "accuracy")
    assert figure is not None
    low, high = figure.limits
    assert 50 < low < 70.7
    assert 85.1 < high <= 102
    assert all(low <= value <= high for group in figure.groups for value in group.values)


def test_only_degenerate_runs_are_still_shown(info: StudyInfo, records: list[RunRecord]):
    runs = [replace(run, degenerate="predicts only 'neg'") for run in records]
    figure = box_figure(info, runs, "accuracy")
    assert figure is not None
    assert not any(group.values for group in figure.groups)
    assert figure.limits[0] < 70.7 < figure.limits[1]


def test_a_metric_nobody_knows_has_no_figure(info: StudyInfo, records: list[RunRecord]):
    assert box_figure(info, records, "matthews") is None
    assert cost_figure(replace(info, metric="matthews"), records) is None
    assert learning_curves(replace(info, metric="matthews"), records) is None


def test_curves_have_a_line_per_seed_and_mark_the_phases(info: StudyInfo, records: list[RunRecord]):
    figure = learning_curves(info, records)
    assert figure is not None
    panels = {panel.strategy: panel for panel in figure.panels}
    assert set(panels) == {"fine-tuning", "last-2", "feature-extraction"}
    panel = panels["last-2"]
    assert panel.phases == (("head", 0), ("head and top layers", 2))
    assert panel.epochs == 5
    assert [line.seed for line in panel.lines] == [0, 1, 2]
    assert [line.odd for line in panel.lines] == [False, False, True]
    first = panel.lines[0]
    assert first.best == 5
    assert first.dev == pytest.approx([100 * one.dev["accuracy"] for one in records[3].epochs])
    assert first.train == pytest.approx([100 * one.train["accuracy"] for one in records[3].epochs])


def test_a_failed_run_shows_the_epochs_it_had(info: StudyInfo, records: list[RunRecord]):
    figure = learning_curves(info, records)
    assert figure is not None
    line = next(p for p in figure.panels if p.strategy == "fine-tuning").lines[2]
    assert len(line.dev) == 1
    assert line.best is None


def test_costs_are_mean_seconds_with_features(info: StudyInfo, records: list[RunRecord]):
    figure = cost_figure(info, records)
    assert figure is not None
    points = {point.strategy: point for point in figure.points}
    assert points["feature-extraction"].seconds == pytest.approx(4.1 + 21.3 / 3)
    assert points["fine-tuning"].mean == pytest.approx(84.85)
    assert points["fine-tuning"].low < 84.85 < points["fine-tuning"].high


def test_one_seed_has_no_interval_and_an_open_scale_is_kept(
    regression: tuple[StudyInfo, list[RunRecord]],
):
    info, records = regression
    figure = box_figure(info, records, "mse")
    assert figure is not None
    assert {group.values for group in figure.groups} == {(0.7312,), (12.345,)}
    assert all(group.low is None for group in figure.groups)
