from dataclasses import replace

import pytest
from scipy import stats
from tests.unit.report.sample_study import TEST_ACCURACY

from totune.advice import Advice
from totune.report.tables import cost_table, run_table, type_table, welch_table
from totune.runs.records import RunRecord, StudyInfo


def texts(row: object) -> list[str]:
    return [cell.text for cell in row.cells]  # type: ignore[attr-defined]


def test_costs_are_means_over_usable_runs(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    table = cost_table(info, records, advice)
    by_name = {row.cells[0].text: row for row in table.rows}
    assert texts(by_name["feature-extraction"]) == [
        "feature-extraction",
        "4.1 s",
        "7.1 s",
        "31,200",
        "412 MB",
        "770",
        "3.08 kB",
        "1.9",
    ]
    assert by_name["feature-extraction"].cells[5].detail == "<0.01% of all"
    assert by_name["tf-idf"].cells[5].detail == ""
    assert by_name["fine-tuning"].mark == "recommended"


def test_a_cost_that_nobody_measured_has_no_column(
    info: StudyInfo, records: list[RunRecord], advice: Advice
):
    blind = [
        replace(run, costs=replace(run.costs, latency_milliseconds=float("nan")))
        for run in records
        if run.costs is not None
    ]
    names = [column.name for column in cost_table(info, blind, advice).columns]
    assert "Prediction, ms/example" not in names
    assert "Peak memory" in names


def test_every_run_is_listed_with_what_became_of_it(info: StudyInfo, records: list[RunRecord]):
    table = run_table(info, records)
    assert len(table.rows) == len(records) == 12
    assert table.values("Strategy")[:3] == ["feature-extraction"] * 3
    marked = {(row.mark, texts(row)[0], texts(row)[-1]) for row in table.rows if row.mark}
    assert marked == {
        ("failed", "fine-tuning", records[8].error),
        ("degenerate", "last-2", "predicts only 'neg'"),
    }
    failed = next(row for row in table.rows if row.mark == "failed")
    assert texts(failed)[1:7] == ["2", "–", "–", "–", "–", "–"]


def test_a_run_tells_its_epoch_scores_and_time(info: StudyInfo, records: list[RunRecord]):
    row = run_table(info, records).rows[0]
    assert texts(row) == [
        "feature-extraction",
        "0",
        "12 of 12",
        "78.5",
        "78.1",
        "78.7",
        "25 s",
        "float32",
        "finished",
    ]


def test_welch_agrees_with_scipy(info: StudyInfo, records: list[RunRecord]):
    table = welch_table(info, records, "accuracy")
    at = table.values("Pair").index("feature-extraction against last-2")
    expected = stats.ttest_ind(
        TEST_ACCURACY["feature-extraction"], TEST_ACCURACY["last-2"], equal_var=False
    )
    assert table.values("t")[at] == pytest.approx(expected.statistic)
    assert table.values("df")[at] == pytest.approx(expected.df)
    assert table.values("p")[at] == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert table.values("95% interval")[at] == pytest.approx([low, high])
    assert table.values("Difference")[at] == pytest.approx(0.781 - 0.707)


def test_a_welch_interval_ends_where_differences_end(info: StudyInfo, records: list[RunRecord]):
    scores = {"fine-tuning": (0.9, 0.9, 0.8), "last-2": (0.9, 0.1, 0.1)}
    runs = [
        replace(run, status="finished", test={"accuracy": scores[run.strategy][run.seed]})
        for run in records
        if run.strategy in scores
    ]
    assert welch_table(info, runs, "accuracy").rows[0].cells[2].text.endswith(" to +100.0")


def test_welch_compares_every_pair_once_best_first(info: StudyInfo, records: list[RunRecord]):
    table = welch_table(info, records, "accuracy")
    assert len(table.rows) == 6
    assert table.values("Pair")[0] == "fine-tuning against feature-extraction"
    assert all(value > 0 for value in table.values("Difference"))
    for raw, adjusted in zip(table.values("p"), table.values("p, Holm"), strict=True):
        assert raw <= adjusted <= min(1, 6 * raw)


def test_a_strategy_with_one_usable_run_is_named_as_untested(
    info: StudyInfo, records: list[RunRecord]
):
    runs = [run for run in records if run.fingerprint not in ("tf-idf-1", "tf-idf-2")]
    table = welch_table(info, runs, "accuracy")
    assert len(table.rows) == 3
    assert "tf-idf" in table.notes[-1]


def test_one_seed_each_leaves_nothing_to_test(regression: tuple[StudyInfo, list[RunRecord]]):
    info, records = regression
    assert welch_table(info, records, "pearson").rows == ()


def test_every_type_of_spans_has_its_f1(info: StudyInfo, records: list[RunRecord]):
    tagging = replace(info, metric="span-f1", metrics=["span-f1"])
    told = [
        replace(run, test={"span-f1": score, "f1:PER": score / 2, "f1:LOC": score})
        for run in records
        if (score := run.test.get("accuracy")) is not None
    ]
    table = type_table(tagging, told)
    expected = ["Type", "fine-tuning", "feature-extraction", "tf-idf", "last-2"]
    assert [column.name for column in table.columns] == expected
    assert table.values("Type") == ["LOC", "PER"]
    assert table.values("last-2") == pytest.approx([2.121 / 3, 2.121 / 6])
    assert [row.cells[2].text for row in table.rows] == ["78.1", "39.1"]


def test_every_label_has_its_rows_and_scores(info: StudyInfo, records: list[RunRecord]):
    several = replace(info, metric="micro-f1", metrics=["micro-f1"])
    given = [
        replace(
            run, test={"micro-f1": score} | label_scores("joy", score) | label_scores("fear", 0)
        )
        for run in records
        if (score := run.test.get("accuracy")) is not None
    ]
    table = type_table(several, given)
    assert table.title == "F1 by label"
    assert [column.name for column in table.columns][:3] == ["Label", "Test rows", "fine-tuning"]
    assert table.values("Label") == ["fear", "joy"]
    assert table.values("Test rows") == [7, 7]
    joy = table.rows[1].cells[3]
    assert (joy.text, joy.detail) == ("78.1", "precision 39.1, recall 78.1")


def label_scores(label: str, score: float) -> dict[str, float]:
    scores = {"support": 7.0, "precision": score / 2, "recall": score, "f1": score}
    return {f"{name}:{label}": value for name, value in scores.items()}


def test_without_spans_there_are_no_types(info: StudyInfo, records: list[RunRecord]):
    assert type_table(info, records).rows == ()
