from dataclasses import replace

import pytest
from tests.unit.racing.samples import runs

from totune.advice import Advice, advise
from totune.report.comparison import comparison_table
from totune.report.figures import cost_rows, score_rows
from totune.report.table import Cell, Table
from totune.runs.records import RunRecord, StudyInfo

Study = tuple[StudyInfo, list[RunRecord]]


def cell(table: Table, strategy: str, column: str) -> Cell:
    at = [one.name for one in table.columns].index(column)
    return next(row.cells[at] for row in table.rows if row.cells[0].text == strategy)


@pytest.fixture
def table(info: StudyInfo, records: list[RunRecord], advice: Advice) -> Table:
    return comparison_table(info, records, advice)


def test_strategies_stand_best_first(table: Table):
    assert table.values("Strategy") == ["fine-tuning", "feature-extraction", "tf-idf", "last-2"]


def test_only_the_recommended_row_is_marked(table: Table):
    assert [row.mark for row in table.rows] == ["recommended", "", "", ""]


def test_means_and_intervals_are_those_of_the_usable_runs(table: Table):
    found = cell(table, "feature-extraction", "Accuracy")
    assert found.value == pytest.approx(0.781)
    assert found.text == "78.1 ± 0.2"
    assert cell(table, "last-2", "Accuracy").value == pytest.approx((0.812 + 0.809 + 0.5) / 3)


def test_table_figures_and_advice_tell_one_interval_inside_the_scale(info: StudyInfo):
    """A plain t interval of .98, .97 and .9 goes to 1.06."""
    made = runs("last-2", [2, 3, 10], rows=100) + runs("lora", [6, 8, 5], rows=100)
    made += runs("tf-idf", [7, 7, 7], rows=100)
    scores = {"last-2": [0.98, 0.97, 0.9], "lora": [0.94, 0.92, 0.95], "tf-idf": [0.93] * 3}
    records = [replace(r, test={"accuracy": scores[r.strategy][r.seed]}) for r in made.records]
    study = replace(
        info, strategies=list(scores), metrics=["accuracy"], data={"rows": {"test": 100}}
    )
    advice = advise(records, made.arrays, "accuracy")
    table = comparison_table(study, records, advice)
    scores = score_rows(study, records, "accuracy", advice.standings)
    costs = cost_rows(study, records, advice.standings)
    for one in advice.standings:
        assert 0 <= one.low <= one.mean <= one.high <= 1
        ends = f"{100 * one.low:.1f} to {100 * one.high:.1f}"
        assert cell(table, one.strategy, "Accuracy").detail == ends
        for drawn in (*scores, *costs):
            if drawn.get("name", drawn.get("strategy")) == one.strategy:
                ends = drawn["low"], drawn["high"]
                assert ends == pytest.approx((100 * one.low, 100 * one.high))
    told = {one.strategy: (one.low, one.high, one.fixed) for one in advice.standings}
    assert told["last-2"][1] == 1
    assert "the same with each of 3 seeds" in str(advise(records[6:], made.arrays, "accuracy"))
    assert told["tf-idf"] == (0.93, 0.93, True)


def test_lost_runs_are_counted(table: Table):
    failed, degenerate = cell(table, "fine-tuning", "Runs"), cell(table, "last-2", "Runs")
    assert (failed.value, failed.text, failed.detail) == (2, "2 of 3", "1 failed")
    assert (degenerate.value, degenerate.text, degenerate.detail) == (3, "3", "1 degenerate")
    assert cell(table, "tf-idf", "Runs").text == "3"


def test_a_finished_run_without_a_score_is_counted(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    runs = [replace(run, test={}) if run.fingerprint == "tf-idf-0" else run for run in records]
    found = cell(comparison_table(info, runs, advice), "tf-idf", "Runs")
    assert (found.text, found.detail) == ("2 of 3", "1 without a score")


def test_the_distance_to_the_best_is_the_advice(table: Table):
    behind = cell(table, "last-2", "Behind the best")
    assert (behind.text, behind.detail) == ("3.8", "1.6 to 6.1")
    assert cell(table, "last-2", "p, adjusted").text == "0.003"
    assert cell(table, "last-2", "Finding").text == "credibly worse"
    assert cell(table, "fine-tuning", "Finding").text == "best"
    assert cell(table, "fine-tuning", "Behind the best").text == "–"


def test_what_is_possibly_undertrained_is_marked(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    brief = dict.fromkeys(("last-2", "fine-tuning"), "last-2.num_train_epochs=9")
    table = comparison_table(info, records, replace(advice, undertrained=brief))
    details = {name: cell(table, name, "Finding").detail for name in table.values("Strategy")}
    assert details == {
        "last-2": "possibly under-trained",
        "fine-tuning": "possibly under-trained",
        "feature-extraction": "",
        "tf-idf": "",
    }


def test_one_seed_shows_no_spread_and_no_p(regression: Study, undecided: Advice):
    info, records = regression
    table = comparison_table(info, records, replace(undecided, provisional="feature-extraction"))
    assert cell(table, "feature-extraction", "Pearson correlation").text == "81.2"
    assert cell(table, "feature-extraction", "Mean squared error").text == "0.731"
    assert cell(table, "feature-extraction", "Behind the best").detail == ""
    assert cell(table, "feature-extraction", "p, adjusted").text == "–"
    assert [row.mark for row in table.rows] == ["", "for now"]
    assert table.notes[0].startswith("Test scores: Pearson correlation in points")


def test_an_error_is_best_when_it_is_lowest(regression: Study, undecided: Advice):
    info, records = regression
    table = comparison_table(replace(info, metric="mse"), records, undecided)
    assert table.values("Strategy") == ["feature-extraction", "fine-tuning"]


def test_a_strategy_that_has_not_run_is_not_hidden(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    some = [run for run in records if run.strategy != "tf-idf"]
    others = replace(advice, comparisons=advice.comparisons[:2])
    table = comparison_table(info, some, others)
    assert cell(table, "tf-idf", "Finding").text == "not run yet"
    lost = [replace(run, status="failed", test={}) for run in records if run.strategy == "tf-idf"]
    table = comparison_table(info, some + lost, others)
    assert cell(table, "tf-idf", "Finding").text == "no usable run"
    assert cell(table, "tf-idf", "Accuracy").text == "–"


def test_sentences_are_the_unit_where_words_are_tagged(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    tagging = replace(info, metric="span-f1", metrics=["span-f1"])
    told = " ".join(comparison_table(tagging, records, advice).notes)
    assert "over seeds and test sentences, which count as independent;" in told
    assert "span F1 in points" in told
    assert "test examples;" in " ".join(comparison_table(info, records, advice).notes)


@pytest.mark.parametrize(
    ("metrics", "labels", "told"),
    [
        (["accuracy", "f1"], ["neg", "pos"], "F1 is that of the class 'pos'."),
        (["accuracy", "f1"], ["a", "b", "c"], "F1 is the macro average"),
        (["token-accuracy", "token-f1"], ["O", "N", "V"], "Token F1 is the macro average"),
        (["pearson"], [], ""),
    ],
)
def test_it_is_said_whose_f1_it_is(
    info: StudyInfo,
    records: list[RunRecord],
    advice: Advice,
    metrics: list[str],
    labels: list[str],
    told: str,
):
    study = replace(info, metric=metrics[0], metrics=metrics, data={"task": {"labels": labels}})
    note = comparison_table(study, records, advice).notes[0]
    assert told in note
    assert ("F1 is" in note) == bool(told)
