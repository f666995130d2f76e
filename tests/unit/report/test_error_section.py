from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.unit.report.sample_study import run_of

from totune.advice import Advice
from totune.report.document import Section
from totune.report.error_section import Places, error_section, find_errors
from totune.report.html import section_html
from totune.report.markdown import section_markdown
from totune.report.table import Table
from totune.runs.records import RunRecord, StudyInfo

NASTY = "<script>alert('x')</script>"
RIVALS = ("fine-tuning", "last-2", "tf-idf")


def study_of(
    info: StudyInfo, targets: np.ndarray, answers: np.ndarray, labels: list[str], **task: Any
) -> tuple[StudyInfo, list[RunRecord], dict[str, dict[str, np.ndarray]]]:
    """Three strategies of one seed that answer alike, with probabilities if there are classes."""
    records = [run_of(name, 0) for name in RIVALS]
    arrays = {"targets": targets, "predictions": answers}
    if task["name"] == "classification":
        arrays["scores"] = np.full((len(targets), len(labels)), 0.1 / len(labels))
        arrays["scores"][np.arange(len(targets)), answers] = 0.9
    data = {"task": {**task, "labels": labels}}
    known = replace(info, task=task["name"], data=data, strategies=list(RIVALS))
    return known, records, {record.fingerprint: dict(arrays) for record in records}


def section_of(
    info: StudyInfo, advice: Advice, study: tuple[Any, ...], places: Places | None = None
) -> Section:
    known, records, arrays = study
    found = find_errors(known, records, arrays, advice)
    return error_section(known, found, places or {})


def tables_of(section: Section) -> dict[str, Table]:
    return {table.title: table for table in section.tables}


@pytest.fixture
def classes(info: StudyInfo) -> tuple[Any, ...]:
    targets = np.array([0] * 8 + [1] * 4)
    answers = np.array([0] * 6 + [1] * 6)
    return study_of(info, targets, answers, [NASTY, "pos"], name="classification")


def test_classes_have_a_matrix_scores_a_curve_and_labels_to_check(
    info: StudyInfo, advice: Advice, classes: tuple[Any, ...]
):
    places = {6: {"row": 8, "text": f"{NASTY} indeed"}, 7: {"row": 9, "text": "dull"}}
    section = section_of(info, advice, classes, places)
    tables = tables_of(section)
    assert [cell.text for cell in tables["Confusion matrix"].rows[0].cells[1:]] == ["6", "2"]
    assert tables["Confusion matrix"].rows[0].cells[2].detail == "25%, 33%"
    assert tables["Classes"].values("Recall") == [0.75, 1.0]
    checked = tables["Labels to check"]
    assert checked.values("Text") == [f"{NASTY} indeed", "dull"]
    assert [row.cells[0].text for row in checked.rows] == ["8", "9"]
    assert checked.rows[0].cells[-1].text == "3 of 3"
    assert len(section.pictures) == 1
    assert "expected calibration error" in " ".join(section.paragraphs)
    page, text = section_html(section), section_markdown(section)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert text.count("<script") == text.count("\\<script") > 0


def test_rows_without_texts_have_their_numbers_alone(
    info: StudyInfo, advice: Advice, classes: tuple[Any, ...]
):
    section = section_of(info, advice, classes, {6: {"row": 8}, 7: {"row": 9}})
    checked = tables_of(section)["Labels to check"]
    assert [row.cells[0].text for row in checked.rows] == ["8", "9"]
    assert "Text" not in [column.name for column in checked.columns]
    assert "Texts are not shown." in section.paragraphs


def test_ten_thousand_classes_and_long_names_keep_the_page_small(info: StudyInfo, advice: Advice):
    count = 10_000
    labels = [f"{number} {'x' * 1000}" for number in range(count)]
    targets = np.arange(count)
    study = study_of(info, targets, (targets + 1) % count, labels, name="tagging", scheme="")
    known, records, arrays = study
    known = replace(known, task="classification")  # without 100 million probabilities
    page = section_html(error_section(known, find_errors(known, records, arrays, advice), {}))
    assert len(page) < 60_000
    assert "The first 30 of 10,000 classes" in page
    assert "The first 30 of 10,000 pairs of classes that are confused." in page


def test_tags_are_shown_by_type_and_fate(info: StudyInfo, advice: Advice):
    labels = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    targets, answers = np.array([[1, 2, 0, 5]]), np.array([[1, 0, 0, 1]])
    study = study_of(info, targets, answers, labels, name="tagging", scheme="iob2")
    known, records, arrays = study
    known = replace(known, metric="accuracy")
    tables = tables_of(section_of(info, advice, (known, records, arrays)))
    assert tables["Types of spans"].values("Type") == ["LOC", "PER"]
    assert tables["Types of spans"].values("Other boundaries") == [1, 0]
    assert tables["Types of spans"].values("Other type") == [0, 1]
    assert tables["Confusion matrix"].values("→ LOC") == [1, 1]


def test_tags_without_a_scheme_are_classes_of_words(info: StudyInfo, advice: Advice):
    targets, answers = np.array([[0, 1, 2], [1, -1, -1]]), np.array([[0, 1, 1], [0, -1, -1]])
    study = study_of(info, targets, answers, ["DET", "NOUN"], name="tagging", scheme="")
    tables = tables_of(section_of(info, advice, study))
    assert tables["Classes"].values("Test words") == [2, 1]
    assert tables["Confusion matrix"].values("Label")[-1] == "(not in training)"


def test_scores_have_residuals(info: StudyInfo, advice: Advice):
    targets, answers = np.linspace(0, 5, 40), np.linspace(0, 5, 40)[::-1].copy()
    study = study_of(info, targets, answers, [], name="regression")
    section = section_of(info, advice, study, {0: {"row": 2, "text": "far off"}})
    tables = tables_of(section)
    assert list(tables) == ["Residuals by quarters of the test rows", "Largest residuals"]
    assert len(tables["Largest residuals"].rows) == 20
    assert tables["Largest residuals"].values("Text")[0] == "far off"
    assert section.pictures == ()


def test_nothing_is_said_where_no_run_can_be_looked_into(
    info: StudyInfo, advice: Advice, classes: tuple[Any, ...]
):
    known, records, arrays = classes
    assert find_errors(known, records, arrays, replace(advice, provisional=None)) is None
    assert find_errors(known, [], {}, advice) is None
    assert error_section(known, None, {}).is_empty()
