"""What an analysis leaves behind, and the sections drawn of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest
from tests.unit.runs.samples import record_of

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult
from totune.analyses.findings import (
    Findings,
    analyse,
    check_findings_folder,
    read_findings,
    sections,
    write_page,
)
from totune.errors import ConfigError
from totune.progress import Progress
from totune.report.document import Section


@dataclass(frozen=True)
class Count(Analysis[str]):
    """Counts letters."""

    title: ClassVar[str] = "Letters"
    upper: bool = False

    def run(self, inputs: str, progress: Progress) -> AnalysisResult:
        text = inputs.upper() if self.upper else inputs
        rows = [{"letter": letter, "count": text.count(letter)} for letter in sorted({*text})]
        return AnalysisResult(rows, {"letters": len(text)})

    def section(self, result: AnalysisResult, records: Any) -> Section:
        return Section(self.title, (f"{result.facts['letters']} letters.", f"{len(records)} runs."))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    ANALYSES.names()  # read before the member is added
    ANALYSES.register("count")(Count)
    yield
    del ANALYSES._members["count"]


def test_findings_are_read_as_they_were_saved(tmp_path: Path) -> None:
    found = analyse(Count(upper=True), "banana", {"data": "fruit"}, Progress())
    path = found.save(tmp_path)
    (read,) = read_findings(tmp_path)
    assert read == found
    assert read.member == Count(upper=True)
    assert json.loads(path.read_text(encoding="utf-8"))["about"]["data"] == "fruit"
    rows = pq.read_table(path.with_suffix(".parquet")).to_pylist()
    assert rows == [
        {"letter": "A", "count": 3},
        {"letter": "B", "count": 1},
        {"letter": "N", "count": 2},
    ]


def test_a_study_shows_a_section_for_each(tmp_path: Path) -> None:
    assert sections(tmp_path, ()) == []
    analyse(Count(), "aa", {}, Progress()).save(tmp_path)
    (section,) = sections(tmp_path, ())
    assert section == Section("Letters", ("2 letters.", "0 runs."))


def test_a_page_of_its_own_says_the_finding_first(tmp_path: Path) -> None:
    found = analyse(Count(), "aa", {"data": "fruit <1>", "metric": "accuracy"}, Progress())
    text = write_page(found, tmp_path).read_text(encoding="utf-8")
    assert "fruit &lt;1&gt;" in text
    assert text.index("2 letters.") < text.index("0 runs.") < text.index("Upper")
    assert text.count("2 letters.") == 1


@pytest.mark.parametrize("content", ["{", "[]", '{"values": {}}', '{"values": {"rows": []}}'])
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "analyses" / "count.json"
    path.parent.mkdir()
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"count\.json cannot be read as what an analysis found"):
        read_findings(tmp_path)


@pytest.mark.parametrize("content", ["{", '{"values": {}}'])
def test_unreadable_findings_of_another_analysis_are_named_before_one_runs(
    tmp_path: Path, content: str
) -> None:
    analyse(Count(), "aa", {}, Progress()).save(tmp_path)
    check_findings_folder(tmp_path, "count")
    other = tmp_path / "analyses" / "divergence.json"
    other.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"divergence\.json cannot be read as what an analysis"):
        check_findings_folder(tmp_path, "count")
    check_findings_folder(tmp_path / "elsewhere", "count")


def test_a_fact_that_an_older_file_lacks_is_told_with_the_remedy() -> None:
    old = replace(analyse(Count(), "aa", {}, Progress()), result=AnalysisResult([{"letter": "a"}]))
    with pytest.raises(
        ConfigError, match=r"count\.json is .*'letters' is missing.* Run count again"
    ):
        old.section()


def test_an_option_that_an_older_file_has_is_told_with_the_remedy() -> None:
    old = replace(analyse(Count(), "aa", {}, Progress()), options={"lower": True})
    with pytest.raises(ConfigError, match=r"has no option 'lower'.* Run count again"):
        old.section()


def test_a_file_of_an_analysis_that_there_is_not_is_told_as_such() -> None:
    strange = replace(analyse(Count(), "aa", {}, Progress()), analysis="cont")
    with pytest.raises(ConfigError, match=r"no analysis called 'cont'\. Did you mean 'count'"):
        strange.section()


def found_at(time: str) -> Findings:
    found = analyse(Count(), "aa", {}, Progress())
    return replace(found, about={**found.about, "created_at": time})


def test_runs_that_finished_since_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Count, "reads_runs", True)
    times = ("2026-05-01T10:00:00+00:00", "2026-05-01T10:00:01+00:00", "2026-05-02T09:00:00+00:00")
    runs = [replace(record_of("lora", seed), finished_at=at) for seed, at in enumerate(times)]
    assert found_at(times[0]).section(runs).warnings == (
        "This is older than 2 runs of this study; run the analysis again to include them.",
    )
    assert found_at(times[1]).section(runs).warnings[0].startswith("This is older than 1 run of")
    assert found_at(times[2]).section(runs).warnings == ()
    failed = [replace(run, status="failed") for run in runs]
    assert found_at(times[0]).section(failed).warnings == ()


def test_what_reads_no_runs_is_never_older_than_they() -> None:
    run = replace(record_of("lora"), finished_at="2026-05-02T09:00:00+00:00")
    assert found_at("2026-05-01T10:00:00+00:00").section([run]).warnings == ()
