from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.unit.report.sample_study import run_of, stacked

from totune.report.figures import curve_limits, curve_rows, draw_curves
from totune.report.phases import (
    align_phases,
    draw_phases,
    gap_limit,
    merge_reasons,
    phase_rows,
    phase_table,
)
from totune.runs.records import EpochRecord, RunRecord, StudyInfo

RUNS = [stacked(0, 2, 0.061), stacked(1, 4, 0.055), stacked(2, 3, 0.072)]


@pytest.fixture
def phases_info(info: StudyInfo) -> StudyInfo:
    return replace(info, strategies=["fine-tuning", "stack-and-finetune"])


@pytest.fixture
def rows_of_phases(phases_info: StudyInfo) -> list[dict[str, Any]]:
    return phase_rows(phases_info, RUNS)


def unfreezing(layers: int) -> RunRecord:
    """Gradual unfreezing: a phase of one epoch per block."""
    names = ["head", *(f"layer {depth}" for depth in range(layers, 0, -1)), "all"]
    epochs = [
        EpochRecord(name, at + 1, {"accuracy": 0.7}, {"accuracy": 0.7}, 1.0, layers - at, True)
        for at, name in enumerate(names)
    ]
    return replace(run_of("fine-tuning", 0), strategy="gradual-unfreezing", epochs=epochs)


def words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]


def values(rows: list[dict[str, Any]], name: str, seed: int = 0) -> list[Any]:
    return [row[name] for row in rows if row["seed"] == seed]


def test_each_phase_begins_at_the_same_place_for_all_seeds(rows_of_phases: list[dict[str, Any]]):
    placed, spans = align_phases(rows_of_phases)
    assert spans == [
        {"phase": "stack", "start": 0, "epochs": 4},
        {"phase": "all", "start": 4, "epochs": 3},
    ]
    assert [values(placed, "at", seed) for seed in (0, 1, 2)] == [
        [1, 2, 5, 6, 7],
        [1, 2, 3, 4, 5, 6, 7],
        [1, 2, 3, 5, 6, 7],
    ]
    assert [row["at"] for row in placed if row["kept"]] == [6, 6, 6]


def test_the_gap_is_what_the_stop_looked_at_in_points(rows_of_phases: list[dict[str, Any]]):
    assert values(rows_of_phases, "dev") == pytest.approx([71, 72, 80, 82, 84])
    assert values(rows_of_phases, "train")[:2] == pytest.approx([74.05, 78.1])
    assert values(rows_of_phases, "gap")[:2] == pytest.approx([3.05, 6.1])
    assert (
        values(rows_of_phases, "gap")[2:]
        == values(rows_of_phases, "train")[2:]
        == [None, None, None]
    )
    assert gap_limit(RUNS, "stack-and-finetune", "accuracy") == pytest.approx(5)


def test_what_was_measured_while_training_is_kept_apart(rows_of_phases: list[dict[str, Any]]):
    assert values(rows_of_phases, "live")[:2] == [None, None]
    assert values(rows_of_phases, "live")[2:] == pytest.approx([78, 81, 84])


def test_for_an_error_the_gap_is_how_much_smaller_it_is_on_train(phases_info: StudyInfo):
    epochs = [EpochRecord("stack", 1, {}, {"mse": 0.9}, 1.0, 6, True, {"mse": 0.5})]
    run = replace(RUNS[0], epochs=epochs, config={}, best_epoch=1)
    (row,) = phase_rows(replace(phases_info, metric="mse", metrics=["mse"]), [run])
    assert row["gap"] == pytest.approx(0.4)
    assert gap_limit([run], "stack-and-finetune", "mse") is None


def test_strategies_of_one_phase_are_left_out(phases_info: StudyInfo):
    assert phase_rows(phases_info, [run_of("fine-tuning", 0)]) == []
    assert phase_table(phases_info, [run_of("fine-tuning", 0)]).rows == ()


def test_runs_that_do_not_count_are_left_out(phases_info: StudyInfo):
    lost = [replace(run, status="failed") for run in RUNS[:2]]
    assert phase_rows(phases_info, lost) == []
    assert {row["seed"] for row in phase_rows(phases_info, [*lost, RUNS[2]])} == {2}


def test_every_phase_has_its_row(phases_info: StudyInfo):
    table = phase_table(phases_info, RUNS)
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        [
            "stack-and-finetune",
            "stack",
            "3",
            "the encoder",
            "yes",
            "73.0",
            "train leads dev by 0.055 to 0.072, more than 0.05",
        ],
        ["stack-and-finetune", "all", "3", "nothing", "no", "84.0", "all 3 epochs are done"],
    ]
    assert table.values("Epochs") == [3.0, 3.0]
    assert [row.cells[2].detail for row in table.rows] == ["2 to 4", ""]


def test_frozen_blocks_are_told_by_their_depth(info: StudyInfo):
    info = replace(info, model={"layers": 6})
    table = phase_table(info, [unfreezing(6)])
    assert table.values("Frozen") == [
        "the encoder",
        *(f"up to layer {depth}" for depth in range(5, 0, -1)),
        "embeddings",
        "nothing",
    ]


def test_reasons_that_differ_are_counted():
    converged = "dev has not improved for 3 epochs"
    gaps = ["train leads dev by 0.061, more than 0.05", "train leads dev by 0.108, more than 0.05"]
    assert merge_reasons([converged, *gaps]) == (
        "train leads dev by 0.061 to 0.108, more than 0.05 (2 of 3 runs); "
        "dev has not improved for 3 epochs (1 of 3 runs)"
    )
    assert merge_reasons([converged, ""]) == f"{converged} (1 of 2 runs)"
    assert merge_reasons(["", ""]) == ""


def test_the_picture_tells_its_lines_phases_and_limit(rows_of_phases: list[dict[str, Any]]):
    drawn = draw_phases(rows_of_phases, "accuracy", "#0072B2", limit=5.0)
    told = words(drawn)
    for text in ("stack", "all", "dev", "train, dropout off", "limit", "Gap, points"):
        assert text in told
    assert "train, measured while training, dropout on" in told
    assert "the gap rule would stop" not in told
    assert draw_phases(rows_of_phases, "accuracy", "#0072B2", limit=5.0) == drawn


def test_where_a_rule_would_stop_is_marked_and_named_once(rows_of_phases: list[dict[str, Any]]):
    asked = [{**row, "stop": row["epoch"] == 2, "live_gap": 1.0} for row in rows_of_phases]
    drawn = draw_phases(asked, "accuracy", "#0072B2", gap_limits=(-1.0, 9.0))
    assert words(drawn).count("the gap rule would stop") == 1


def test_without_a_gap_there_is_no_curve_of_it(info: StudyInfo):
    told = words(draw_phases(phase_rows(info, [unfreezing(3)]), "accuracy", "#0072B2"))
    assert "Gap, points" not in told
    assert "train, dropout off" not in told
    assert {"head", "layer 3", "layer 1", "all"} <= set(told)


@pytest.mark.parametrize(("layers", "named"), [(1, True), (12, False)])
def test_learning_curves_name_phases_where_there_is_room(info: StudyInfo, layers: int, named: bool):
    rows = curve_rows(info, [unfreezing(layers)])
    drawn = draw_curves(rows, "accuracy", "#0072B2", curve_limits(rows))
    assert ("layer 1" in words(drawn)) == named


def test_a_strategy_without_any_score_is_not_drawn(phases_info: StudyInfo):
    unknown = replace(phases_info, metric="span-f1", metrics=["span-f1"])
    assert phase_rows(unknown, RUNS) == []
    assert len(phase_table(unknown, RUNS).rows) == 2
