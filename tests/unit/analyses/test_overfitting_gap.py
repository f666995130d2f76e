import json
from dataclasses import asdict, replace

import pytest
from tests.unit.analyses.small_inputs import INFO, RUNS
from tests.unit.report.sample_study import run_of

from totune.analyses.base import ANALYSES, AnalysisResult
from totune.analyses.overfitting_gap import OverfittingGap
from totune.analyses.overfitting_gap_section import gap_figures, gap_limits, gap_section
from totune.errors import ConfigError, DataError
from totune.progress import Progress
from totune.report.phases import align_phases
from totune.runs.records import EpochRecord, RunRecord, StudyInfo


def run_with(dev: list[float], train: list[float], phase: str = "all") -> RunRecord:
    """A fine-tuned run with these scores, train measured while training."""
    epochs = [
        EpochRecord(phase, at, {"accuracy": one}, {"accuracy": other}, 1.0)
        for at, (one, other) in enumerate(zip(train, dev, strict=True), start=1)
    ]
    best = max(range(len(dev)), key=dev.__getitem__) + 1
    return replace(run_of("fine-tuning", 0), epochs=epochs, best_epoch=best)


def found(records: list[RunRecord], info: StudyInfo = INFO, **options: float) -> AnalysisResult:
    return OverfittingGap(**options).run((info, records), Progress())


def summary(values: AnalysisResult, strategy: str, phase: str) -> dict:
    (one,) = (
        one
        for one in values.facts["phases"]
        if (one["strategy"], one["phase"]) == (strategy, phase)
    )
    return one


def test_there_is_a_row_per_epoch_with_what_was_measured():
    values = found(RUNS)
    rows = [
        row for row in values.rows if row["strategy"] == "stack-and-finetune" and not row["seed"]
    ]
    assert [row["phase"] for row in rows] == ["stack", "stack", "all", "all", "all"]
    assert [row["epoch_in_phase"] for row in rows] == [1, 2, 1, 2, 3]
    assert [row["dropout_off"] for row in rows] == [True, True, False, False, False]
    assert [row["gap"] for row in rows] == pytest.approx([0.0305, 0.061, -0.02, -0.01, 0])
    assert [row["kept"] for row in rows] == [False, False, False, True, False]
    assert not any(row["strategy"] == "tf-idf" for row in values.rows)


def test_the_rule_stops_where_training_by_it_has_stopped():
    values = found(RUNS)
    stops = [(row["strategy"], row["seed"], row["epoch"]) for row in values.rows if row["rule"]]
    assert stops == [
        ("stack-and-finetune", 0, 2),
        ("stack-and-finetune", 1, 4),
        ("fine-tuning", 0, 3),
    ]
    stack = summary(values, "stack-and-finetune", "stack")
    assert (stack["stopped"], stack["stop"], stack["epochs"], stack["cost"]) == (2, 3, 3, 0)
    assert stack["why"] == [
        "train leads dev by 0.061, more than 0.05",
        "train leads dev by 0.055, more than 0.05",
    ]
    assert stack["dropout_off"]


def test_another_tolerance_and_patience_move_the_stop():
    run = run_with([0.7, 0.71, 0.72, 0.73], [0.70, 0.75, 0.80, 0.85])
    stop = [
        summary(found([run], **options), "fine-tuning", "all")["stop"]
        for options in ({}, {"tolerance": 0.03}, {"gap_patience": 2}, {"tolerance": 0.5})
    ]
    assert stop == [3, 2, 4, None]


def test_a_stop_costs_what_dev_would_still_have_gained():
    run = run_with([0.70, 0.72, 0.71, 0.78], [0.70, 0.72, 0.80, 0.90])
    one = summary(found([run]), "fine-tuning", "all")
    assert (one["stop"], one["dev_there"], one["best_dev"]) == (3, 0.71, 0.78)
    assert one["cost"] == pytest.approx(0.06)  # the run would keep its second epoch
    assert one["gap_there"] == pytest.approx(0.09)


def test_a_plateau_ends_a_phase_too():
    run = run_with([0.7, 0.69, 0.69, 0.69, 0.71], [0.7] * 5)
    one = summary(found([run]), "fine-tuning", "all")
    assert (one["stop"], one["why"]) == (4, ["dev has not improved for 3 epochs"])


def test_for_an_error_train_leads_where_it_is_smaller():
    epochs = [
        EpochRecord("all", at, {"mse": 1 - at / 2}, {"mse": 1.0 - at / 20}, 1.0) for at in (1, 2)
    ]
    run = replace(run_of("fine-tuning", 0), epochs=epochs, best_epoch=2)
    values = found([run], replace(INFO, metric="mse", metrics=["mse"]), tolerance=0.5)
    assert [row["gap"] for row in values.rows] == pytest.approx([0.45, 0.9])
    one = summary(values, "fine-tuning", "all")
    assert (one["stop"], one["best_dev"], one["cost"]) == (2, 0.9, 0)
    assert gap_section("Gap", values).tables[0].rows[0].cells[2].text == "+0.900"


def test_what_is_not_known_is_no_number_and_no_stop():
    run = run_with([0.7, 0.71], [float("nan"), 0.9])
    values = found([run])
    assert [row["gap"] for row in values.rows] == [None, pytest.approx(0.19)]
    assert summary(values, "fine-tuning", "all")["stopped"] == 0
    json.dumps(asdict(values), allow_nan=False)
    unmeasured = replace(run, epochs=[replace(epoch, train={}) for epoch in run.epochs])
    section = gap_section("Gap", found([unmeasured]))
    assert section.paragraphs[0] == "The train metric was not measured, so no gap is known."
    assert section.pictures == ()


def test_a_study_without_epochs_has_no_gap():
    lost = replace(run_of("fine-tuning", 0), status="failed")
    for records in ([], [run_of("tf-idf", 0)], [lost]):
        with pytest.raises(DataError, match="No usable run of films trained in epochs"):
            found(records)


def test_options_are_checked():
    with pytest.raises(ConfigError, match="gap_patience=0"):
        ANALYSES.create("overfitting-gap", {"gap_patience": 0})


def test_the_section_says_what_was_found_and_how_train_was_measured():
    section = gap_section("Gap", found(RUNS))
    assert section.paragraphs[0] == (
        "At the epochs that runs keep, the gap between train and dev is widest under fine-tuning "
        "(+6.0 points of accuracy) and narrowest under stack-and-finetune (−1.0 points)."
    )
    assert "with dropout off in stack-and-finetune (stack); elsewhere" in section.paragraphs[1]
    gaps, rule = section.tables
    assert gaps.values("Strategy") == ["fine-tuning", "stack-and-finetune"]
    assert rule.values("Phase") == ["stack", "all", "everything"]
    assert rule.rows[0].cells[3].text == "3"
    assert rule.rows[0].cells[-1].text == "train leads dev by 0.055 to 0.061, more than 0.05"
    assert len(section.pictures) == 2


def test_phases_of_one_epoch_are_no_place_to_stop():
    epochs = [
        EpochRecord(name, at, {"accuracy": 0.9}, {"accuracy": 0.7}, 1.0)
        for at, name in enumerate(("head", "layer 1", "all"), start=1)
    ]
    run = replace(run_of("fine-tuning", 0), epochs=epochs, best_epoch=1)
    values = found([run])
    assert all(row["rule"] for row in values.rows)
    assert [table.title for table in gap_section("Gap", values).tables] == ["Gap"]
    (rows,) = gap_figures(values.rows, values.facts)
    assert [span["start"] for span in align_phases(rows)[1]] == [0, 1, 2]
    assert not any(row["stop"] for row in rows)
    (picture,) = gap_section("Gap", values).pictures
    assert "the gap rule would stop" not in picture.svg


def test_in_the_picture_each_phase_begins_at_the_same_place_for_all_seeds():
    values = found(RUNS)
    stack, tuned = gap_figures(values.rows, values.facts)
    assert {row["strategy"] for row in stack} == {"stack-and-finetune"}
    assert {row["strategy"] for row in tuned} == {"fine-tuning"}
    placed, spans = align_phases(stack)
    assert spans == [
        {"phase": "stack", "start": 0, "epochs": 4},
        {"phase": "all", "start": 4, "epochs": 3},
    ]
    runs = [[row for row in placed if row["seed"] == seed] for seed in (0, 1)]
    assert [[row["at"] for row in run] for run in runs] == [[1, 2, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7]]
    assert [[row["at"] for row in run if row["stop"]] for run in runs] == [[2], [4]]
    assert [[row["at"] for row in run if row["kept"]] for run in runs] == [[6], [6]]


def test_the_picture_shows_train_and_dev_and_where_the_rule_stops():
    values = found(RUNS)
    stack = gap_figures(values.rows, values.facts)[0]
    first = {name: [row[name] for row in stack if not row["seed"]] for name in stack[0]}
    assert first["dev"] == pytest.approx([71, 72, 80, 82, 84])
    assert first["train"][:2] == pytest.approx([74.05, 78.1])
    assert first["live"][2:] == pytest.approx([78, 81, 84])
    assert first["gap"][:2] == pytest.approx([3.05, 6.1])
    assert first["live_gap"][2:] == pytest.approx([-2, -1, 0])
    assert first["live"][:2] == first["live_gap"][:2] == [None, None]
    assert first["train"][2:] == first["gap"][2:] == [None] * 3
    drawn = gap_section("Gap", values).pictures[0]
    for text in ("dev", "train, dropout off", "the gap rule would stop", "limit", "Gap, points"):
        assert f">{text}<" in drawn.svg
    assert drawn == gap_section("Gap", values).pictures[0]


def test_gaps_have_one_scale_and_limit_in_all_pictures():
    values = found(RUNS)
    figures = gap_figures(values.rows, values.facts)
    low, high = gap_limits(figures, 5.0)
    assert low < -2
    assert high > 7.5


def test_values_read_from_a_file_draw_the_same_section():
    values = found(RUNS)
    read = AnalysisResult(**json.loads(json.dumps(asdict(values))))
    assert gap_section(OverfittingGap.title, read) == OverfittingGap().section(values, RUNS)
