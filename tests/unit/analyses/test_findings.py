"""What an analysis leaves behind, and the sections drawn of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.parquet as pq
import pytest

from totune.analyses import page
from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.findings import analyse, read_findings, sections
from totune.errors import ConfigError
from totune.progress import Progress
from totune.report.document import Section


@dataclass(frozen=True)
class Count(Analysis[str]):
    """Counts letters."""

    title: ClassVar[str] = "Letters"
    upper: bool = False

    def run(self, material: str, progress: Progress) -> Values:
        text = material.upper() if self.upper else material
        rows = [{"letter": letter, "count": text.count(letter)} for letter in sorted({*text})]
        return Values(rows, {"letters": len(text)})

    def section(self, values: Values, records: Any) -> Section:
        return Section(self.title, (f"{values.facts['letters']} letters.", f"{len(records)} runs."))


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
    text = page.write_page(found, tmp_path).read_text(encoding="utf-8")
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
