import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.unit.report.sample_study import stacked

from totune.advice import Advice, Ensemble
from totune.report.document import Section
from totune.report.table import Column, Row, Table, word
from totune.report.write import ReportPaths, write_report
from totune.runs.records import RunRecord, StudyInfo

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Checker(HTMLParser):
    """Every element is closed where it should be; tags and links are gathered."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if re.search("href|src", name)]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(
    tmp_path_factory: pytest.TempPathFactory,
    info: StudyInfo,
    records: list[RunRecord],
    advice: Advice,
) -> ReportPaths:
    return write_report(tmp_path_factory.mktemp("report"), info, records, advice)


@pytest.fixture(scope="module")
def page(report: ReportPaths) -> str:
    return report.html.read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_needs_nothing_else(page: str):
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert not checker.tags & {"script", "link", "img", "iframe"}
    assert all(link.startswith("#") for link in checker.links)
    assert re.findall(r"@import|url\((?!#)", page) == []


def test_the_page_reads_in_a_practitioners_order(page: str):
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings == [
        "Use fine-tuning: it gets 85 of 100 right; the cheapest rival, tf-idf, 76.",
        "At a glance",
        "Scores and costs",
        "Comparison",
        "Costs",
        "Learning curves",
        "Phases",
        "Tests",
        "Data",
        "Setup",
        "Every run",
        "Glossary",
    ]


def test_lost_runs_are_on_the_page_with_their_message(page: str, records: list[RunRecord]):
    assert records[8].error in page
    assert "predicts only &#39;neg&#39;" in page


def test_both_files_hold_the_same_numbers(report: ReportPaths, page: str, info: StudyInfo):
    text = report.markdown.read_text(encoding="utf-8")
    for shown in (
        "84.9 ± 0.4",
        "81.7 to 88.0",
        "22,713,986",
        "90.9 MB",
        "3 min 31 s",
        info.command,
    ):
        assert shown in page
        assert shown in text


def test_the_same_study_gives_the_same_bytes_and_leaves_no_scraps(
    report: ReportPaths, tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    second = write_report(tmp_path / "two", info, records, advice)
    assert report.html.read_bytes() == second.html.read_bytes()
    assert report.markdown.read_bytes() == second.markdown.read_bytes()
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == [
        "report.html",
        "report.md",
    ]


def test_analyses_add_sections(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    table = Table("Layers", (Column("Layer", numeric=False),), (Row((word("layer.1"),)),))
    more = Section("Layer probe", ("What each layer knows.",), tables=(table,), html="<b>own</b>")
    paths = write_report(tmp_path, info, records, advice, [more])
    page, text = (path.read_text(encoding="utf-8") for path in (paths.html, paths.markdown))
    assert page.index("<h2>Tests") < page.index("<h2>Layer probe") < page.index("<h2>Data")
    assert "<b>own</b>" in page
    assert "## Layer probe" in text
    assert "layer.1" in text


def test_one_seed_of_a_regression_is_reported(
    tmp_path: Path, regression: tuple[StudyInfo, list[RunRecord]], undecided: Advice
):
    info, records = regression
    text = write_report(tmp_path, info, records, undecided).markdown.read_text(encoding="utf-8")
    assert "## Undecided: last-2 keeps up" in text
    assert "## Tests" not in text
    assert "nan" not in text


def test_a_study_in_which_everything_failed_is_reported(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    failed = [
        replace(run, status="failed", test={}, dev={}, epochs=[], costs=None, error="out of memory")
        for run in records
    ]
    nothing = replace(
        advice,
        verdict="none",
        headline="No verdict: no run is usable.",
        recommended=None,
        best=None,
        provisional=None,
        comparisons=(),
    )
    paths = write_report(tmp_path, info, failed, nothing)
    page, text = (path.read_text(encoding="utf-8") for path in (paths.html, paths.markdown))
    assert text.count("out of memory") == 12
    assert '<section class="answer no-verdict">' in page
    assert "<svg" not in page


def test_a_study_that_is_not_complete_says_so(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    planned = replace(info, runs=[run.fingerprint for run in records])
    whole = write_report(tmp_path, planned, records, advice).markdown.read_text(encoding="utf-8")
    part = write_report(tmp_path, planned, records[:7], advice).markdown.read_text(encoding="utf-8")
    assert "12 runs\n" in whole
    assert "7 of 12 runs so far\n" in part


def test_a_study_of_tagging_is_reported_by_type_and_sentence(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    metrics = ["span-f1", "span-precision", "span-recall", "token-accuracy"]
    tagging = replace(info, task="tagging", metric="span-f1", metrics=metrics)
    found = [
        replace(run, test={**dict.fromkeys([*metrics, "f1:PER", "f1:<b>"], run.test["accuracy"])})
        for run in records
        if run.test
    ]
    paths = write_report(tmp_path, tagging, found, advice)
    page, text = (path.read_text(encoding="utf-8") for path in (paths.html, paths.markdown))
    assert "<h2>F1 by type</h2>" in page
    assert "&lt;b&gt;" in page
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert "## F1 by type" in text
    assert "over seeds and test sentences" in text
    assert "| Sentences | train 6,824, dev 853, test 853 |" in text
    assert "| Rows |" not in text
    assert "Test span F1" in text


def test_ten_thousand_labels_keep_the_page_small(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    names = [f"label {number:05}" for number in range(10_000)]
    task = {"name": "multi-label", "labels": names}
    many = replace(info, task="multi-label", data={**info.data, "task": task})
    scores = {f"f1:{name}": 0.5 for name in names}
    found = [replace(run, test={**run.test, **scores}) for run in records if run.test]
    paths = write_report(tmp_path, many, found, advice)
    page = paths.html.read_text(encoding="utf-8")
    assert len(page) < 1_000_000
    assert "The first 200 of 10,000 labels." in page or "The first 200 of 10,000 types." in page
    assert "label 00049, and 9,950 more" in page
    assert "label 00200" not in page


def test_ensembles_have_a_section_of_their_own(
    tmp_path: Path, info: StudyInfo, records: list[RunRecord], advice: Advice
):
    ensemble = Ensemble("last-2 x 2 seeds", ("last-2 seed 0",), {}, {}, {}, 28e6, 3.96)
    paths = write_report(tmp_path, info, records, advice, ensembles=[ensemble])
    page, text = (path.read_text(encoding="utf-8") for path in (paths.html, paths.markdown))
    assert page.index("<h2>Ensembles") < page.index("<h2>Learning curves")
    assert "last-2 x 2 seeds" in page
    assert "## Ensembles" in text
    assert "choosing on test" in text


def test_phases_tell_why_they_ended(tmp_path: Path, info: StudyInfo, advice: Advice):
    runs = [stacked(0, 2, 0.061), stacked(1, 4, 0.055)]
    paths = write_report(tmp_path, info, runs, advice)
    page, text = (path.read_text(encoding="utf-8") for path in (paths.html, paths.markdown))
    for shown in (page, text):
        assert "train leads dev by 0.055 to 0.061, more than 0.05" in shown
    assert "on the axis a phase begins where the longest" in page
