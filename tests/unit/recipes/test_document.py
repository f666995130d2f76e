import pytest

from totune.recipes.document import (
    averages_table,
    caveats,
    comparison_table,
    findings,
    headline,
    recipe_document,
    welch_table,
)
from totune.recipes.loading import load_recipe
from totune.recipes.results import Outcome, ProtocolGroup, Results, run_test
from totune.report.html import document_html
from totune.report.markdown import document_markdown

SPARSE, BERT = load_recipe("hart-sparse"), load_recipe("hart-bert")


def results_of(*outcomes: Outcome, tests=(), fraction=1.0, seeds=10) -> Results:
    return Results(
        (ProtocolGroup("All rows", "Why.", outcomes),), tuple(tests), fraction, seeds, {}
    )


@pytest.fixture
def near():
    return Outcome(
        "TF-IDF", {"accuracy": (0.79, 0.81), "f1": (0.70, 0.74)}, SPARSE.rows[0].paper["tweets"]
    )


def two_rows(ours, others):
    first = Outcome("frozen", {"accuracy": ours}, BERT.rows[0].paper["tweets"])
    second = Outcome("unfrozen", {"accuracy": others}, BERT.rows[1].paper["tweets"])
    test = run_test(first, second, "accuracy", BERT.tests[0].paper.model_dump())
    return results_of(first, second, tests=[test])


def test_means_are_held_to_the_tolerance(near):
    results = results_of(near)
    assert headline(SPARSE, results) == "1 of 2 means lie within the tolerance of the paper's."
    assert findings(SPARSE, results) == (
        "TF-IDF, Accuracy: +0.005 against the paper's 0.795, within 0.010.",
        "TF-IDF, F1: −0.022 against the paper's 0.742, OUTSIDE 0.015.",
    )


def test_the_table_sets_ours_beside_the_papers(near):
    table = comparison_table(SPARSE, results_of(near).groups[0])
    assert [column.name for column in table.columns] == [
        "Row",
        "Accuracy, ours",
        "Accuracy, paper",
        "Difference",
        "F1, ours",
        "F1, paper",
        "Difference",
        "Values",
    ]
    assert [cell.text for cell in table.rows[0].cells] == [
        "TF-IDF",
        "0.800 ± 0.014",
        "0.795",
        "+0.005",
        "0.720 ± 0.028",
        "0.742",
        "−0.022",
        "2",
    ]


def test_a_row_that_is_not_the_papers_or_failed_shows_dashes():
    failed = Outcome("own", {}, {}, failed=2)
    cells = comparison_table(BERT, results_of(failed).groups[0]).rows[0].cells
    assert [cell.text for cell in cells] == ["own", *["–"] * 6, "0"]
    assert findings(BERT, results_of(failed)) == (
        "own: 2 runs failed, 0 are degenerate (they count in the mean).",
    )


def test_tests_are_judged_by_their_conclusions():
    same = two_rows((0.80, 0.82, 0.81), (0.81, 0.80, 0.82))
    assert headline(BERT, same).startswith("1 of the paper's 1 tests end as in the paper")
    assert findings(BERT, same) == (
        "frozen against unfrozen, Accuracy: no significant difference (p = 1.00) here, "
        "no significant difference (p = 0.38) in the paper.",
    )
    other = two_rows((0.70, 0.71, 0.72), (0.81, 0.80, 0.82))
    assert headline(BERT, other).startswith("0 of the paper's 1 tests")
    assert "a difference (p <0.001) here" in findings(BERT, other)[0]


def test_a_test_without_runs_is_said_and_never_agrees():
    results = two_rows((0.8,), (0.9, 0.8))
    assert headline(BERT, results).startswith("0 of the paper's 1 tests")
    assert findings(BERT, results) == (
        "frozen against unfrozen, Accuracy: no test, for fewer than two runs finished.",
    )
    assert [cell.text for cell in welch_table(results.tests).rows[0].cells] == [
        "frozen against unfrozen",
        "Accuracy",
        "–",
        "−0.910",
        "–",
        "13.0",
        "–",
        "0.38",
    ]


def test_a_smaller_run_says_so(near):
    assert caveats(BERT, results_of(near)) == ()
    told = caveats(BERT, results_of(near, fraction=0.1, seeds=2))
    assert "A fraction of 0.1 was used" in told[0]
    assert "2 seeds instead of 10" in told[1]


def test_averages_are_shown_where_they_were_computed(near):
    assert averages_table(results_of(near).groups[0]) is None
    scores = {name: (0.5,) for name in ("f1", "f1 of class 0", "f1 macro")}
    scores |= {"f1 weighted": (0.6,), "f1 micro": (0.7,)}
    table = averages_table(results_of(Outcome("a", scores, {"f1": 0.9})).groups[0])
    assert table is not None
    texts = [cell.text for cell in table.rows[0].cells]
    assert texts == ["a", "0.900", "0.500", "0.500", "0.500", "0.600", "0.700"]


def test_the_page_and_the_text_hold_everything(near):
    second = Outcome("Count", {"accuracy": (0.7,) * 6, "f1": (0.6,) * 6}, {})
    document = recipe_document(SPARSE, results_of(near, second), "totune reproduce hart-sparse")
    assert len(document.sections[0].pictures) == 2
    page, text = document_html(document), document_markdown(document)
    assert page.count("<svg") == 2
    for part in (SPARSE.title, "0.800 ± 0.014", "totune reproduce hart-sparse"):
        assert part in page
        assert part in text
