from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.unit.report.sample_study import run_of, stacked

from totune.report.drawing import draw_curves
from totune.report.figures import learning_curves
from totune.report.phase_drawing import draw_phases
from totune.report.phase_figure import PhaseFigure, PhaseSpan, phase_figures
from totune.report.phase_table import merge_reasons, phase_table
from totune.runs.records import EpochRecord, RunRecord, StudyInfo

RUNS = [stacked(0, 2, 0.061), stacked(1, 4, 0.055), stacked(2, 3, 0.072)]


@pytest.fixture
def study(info: StudyInfo) -> StudyInfo:
    return replace(info, strategies=["fine-tuning", "stack-and-finetune"])


@pytest.fixture
def figure(study: StudyInfo) -> PhaseFigure:
    (found,) = phase_figures(study, RUNS)
    return found


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


def test_each_phase_begins_at_the_same_place_for_all_seeds(figure: PhaseFigure):
    assert figure.spans == (PhaseSpan("stack", 0, 4), PhaseSpan("all", 4, 3))
    assert [line.at for line in figure.lines] == [
        (1, 2, 5, 6, 7),
        (1, 2, 3, 4, 5, 6, 7),
        (1, 2, 3, 5, 6, 7),
    ]
    assert [line.kept for line in figure.lines] == [6, 6, 6]


def test_the_gap_is_what_the_stop_looked_at_in_points(figure: PhaseFigure):
    first = figure.lines[0]
    assert first.dev == pytest.approx((71, 72, 80, 82, 84))
    assert first.train[:2] == pytest.approx((74.05, 78.1))
    assert first.gap[:2] == pytest.approx((3.05, 6.1))
    assert first.gap[2:] == first.train[2:] == (None, None, None)
    assert figure.gap_limit == pytest.approx(5)


def test_what_was_measured_while_training_is_kept_apart(figure: PhaseFigure):
    first = figure.lines[0]
    assert first.live[:2] == (None, None)
    assert first.live[2:] == pytest.approx((78, 81, 84))


def test_for_an_error_the_gap_is_how_much_smaller_it_is_on_train(study: StudyInfo):
    epochs = [EpochRecord("stack", 1, {}, {"mse": 0.9}, 1.0, 6, True, {"mse": 0.5})]
    run = replace(RUNS[0], epochs=epochs, config={}, best_epoch=1)
    (found,) = phase_figures(replace(study, metric="mse", metrics=["mse"]), [run])
    assert found.lines[0].gap == pytest.approx((0.4,))
    assert found.gap_limit is None


def test_strategies_of_one_phase_are_left_out(study: StudyInfo):
    assert phase_figures(study, [run_of("fine-tuning", 0)]) == []
    assert phase_table(study, [run_of("fine-tuning", 0)]).rows == ()


def test_runs_that_do_not_count_are_left_out(study: StudyInfo):
    lost = [replace(run, status="failed") for run in RUNS[:2]]
    assert phase_figures(study, lost) == []
    (found,) = phase_figures(study, [*lost, RUNS[2]])
    assert [line.seed for line in found.lines] == [2]


def test_every_phase_has_its_row(study: StudyInfo):
    table = phase_table(study, RUNS)
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


def test_the_picture_tells_its_lines_phases_and_limit(figure: PhaseFigure):
    told = words(draw_phases(figure))
    for text in ("stack", "all", "dev", "train, dropout off", "limit", "Gap, points"):
        assert text in told
    assert "train, measured while training, dropout on" in told
    assert draw_phases(figure) == draw_phases(figure)


def test_without_a_gap_there_is_no_curve_of_it(info: StudyInfo):
    (figure,) = phase_figures(info, [unfreezing(3)])
    told = words(draw_phases(figure))
    assert "Gap, points" not in told
    assert "train, dropout off" not in told
    assert {"head", "layer 3", "layer 1", "all"} <= set(told)


@pytest.mark.parametrize(("layers", "named"), [(1, True), (12, False)])
def test_learning_curves_name_phases_where_there_is_room(info: StudyInfo, layers: int, named: bool):
    curves = learning_curves(info, [unfreezing(layers)])
    assert curves is not None
    assert ("layer 1" in words(draw_curves(curves, curves.panels[0]))) == named
