"""What an analysis leaves behind: JSON and Parquet files, a page, and a section of a report."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from totune.analyses.base import ANALYSES, Analysis, AnalysisResult, In
from totune.errors import ConfigError
from totune.io import read_checked_json, replacing, write_checked_json
from totune.outputs import MADE_BY, check_output_folder, check_reports, has_mark
from totune.progress import Progress
from totune.registry import options_of
from totune.report.document import Answer, Document, Section
from totune.report.table import fact_table
from totune.runs.records import RunRecord
from totune.runs.store import is_study

# Inside the folder that an analysis writes to: findings, and runs by number of training rows.
FOLDER, SIZES = "analyses", "sizes"
_MARKS = ("analysis", "options", "values")


@dataclass(frozen=True)
class Findings:
    """A result with all that is needed to produce it again.

    Attributes:
        analysis: the analysis's name.
        options: the analysis's options.
        about: data, encoder, precision, versions, seconds.
        result: what was measured; files call it `values`.
    """

    analysis: str
    options: Mapping[str, Any]
    about: Mapping[str, Any]
    result: AnalysisResult

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        plain["values"] = plain.pop("result")
        return plain

    def save(self, folder: Path) -> Path:
        """Writes `analyses/NAME.json` and `.parquet` under `folder`; returns the former."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = folder / FOLDER / f"{self.analysis}.json"
        rows = path.with_suffix(".parquet")
        with replacing(rows) as temporary:
            pq.write_table(pa.Table.from_pylist([dict(row) for row in self.result.rows]), temporary)
        write_checked_json(path, self.to_json())
        return path

    @property
    def member(self) -> Analysis[Any]:
        """The analysis with these options."""
        return ANALYSES.create(self.analysis, self.options)

    def section(self, records: Sequence[RunRecord] = ()) -> Section:
        """The section of these findings in a report of these runs.

        Raises:
            ConfigError: if there is no such analysis, or by now it gives other facts or takes other
                options.
        """
        ANALYSES.get(self.analysis)
        try:
            section = self.member.section(self.result, records)
            return replace(section, warnings=(*self._outdated(records), *section.warnings))
        except (KeyError, ConfigError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{FOLDER}/{self.analysis}.json is of another version of this analysis ({reason}). "
                f"Run {self.analysis} again, or remove the file."
            ) from None

    def _outdated(self, records: Sequence[RunRecord]) -> tuple[str, ...]:
        """A warning where runs have finished since."""
        created = self.about["created_at"]  # like `finished_at` in UTC, so text compares as times
        later = sum(run.status == "finished" and run.finished_at > created for run in records)
        if not later or not ANALYSES.get(self.analysis).reads_runs:
            return ()
        runs = "1 run" if later == 1 else f"{later} runs"
        return (
            f"This is older than {runs} of this study; run the analysis again to include them.",
        )


def analyse(
    analysis: Analysis[In], inputs: In, about: Mapping[str, Any], progress: Progress
) -> Findings:
    """Runs an analysis.

    Args:
        analysis: the analysis with its options.
        inputs: what the analysis reads.
        about: data, encoder and precision, recorded beside the result.
        progress: receives messages.
    """
    from totune import machine

    began = time.perf_counter()
    result = analysis.run(inputs, progress)
    recorded = {
        **about,
        "seconds": time.perf_counter() - began,
        "versions": machine.versions(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Findings(analysis.name, options_of(analysis), recorded, result)


def check_findings_folder(folder: Path, analysis: str) -> None:
    """Makes sure that findings may be written to a folder, before they are computed.

    Args:
        folder: new, empty, a study's, or with findings of other analyses.
        analysis: name of the analysis that is about to run.

    Raises:
        ConfigError: if it holds anything else, files under those names that are not of totune, or
            findings that cannot be read.
    """
    path = folder / FOLDER / f"{analysis}.json"
    if is_study(folder) or (folder / FOLDER).is_dir():
        read_findings(folder, except_for=analysis)
    check_output_folder(folder, "a study or what an analysis found", _is_ours)
    check_reports(path.parent, f"{analysis}.html")
    if is_study(folder):
        check_reports(folder)
    for taken in (path, path.with_suffix(".parquet")):
        if taken.exists() and not has_mark(path, *_MARKS):
            raise ConfigError(
                f"{taken} is not what an analysis of totune found, so it is not replaced. Move it "
                "elsewhere, or name another folder with `out`."
            )


def _is_ours(folder: Path) -> bool:
    findings = any(has_mark(path, *_MARKS) for path in (folder / FOLDER).glob("*.json"))
    return findings or is_study(folder) or any((folder / SIZES).glob("*/runs"))


def read_findings(folder: Path, except_for: str = "") -> list[Findings]:
    """The findings in `folder`, by the names of their analyses.

    Args:
        folder: a study's, or any other.
        except_for: name of an analysis whose findings are not read.

    Raises:
        ConfigError: if a file there cannot be read.
    """
    paths = sorted((folder / FOLDER).glob("*.json"))
    return [_read(path) for path in paths if path.stem != except_for]


def _read(path: Path) -> Findings:
    try:
        facts = read_checked_json(path)
        result = AnalysisResult(**facts.pop("values"))
        return Findings(**facts, result=result)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise ConfigError(
            f"{path} cannot be read as what an analysis found ({reason}). Run the analysis again, "
            "or move the file elsewhere."
        ) from None


def sections(folder: Path, records: Sequence[RunRecord]) -> list[Section]:
    """A section for each analysis in a study's folder.

    Raises:
        ConfigError: if a file there cannot be read, or is of an analysis that does not exist.
    """
    return [findings.section(records) for findings in read_findings(folder)]


def write_page(findings: Findings, folder: Path, records: Sequence[RunRecord] = ()) -> Path:
    """Writes `analyses/NAME.html` under `folder`, a page that needs no other file.

    Args:
        findings: what is shown.
        folder: a study's, or any other.
        records: the runs of that study.
    """
    from totune.report.write import write_document

    section = findings.section(records)
    about = dict(findings.about)
    versions, title = about.pop("versions", {}), str(about.pop("data", "") or section.title)
    about.pop("created_at", None)
    setup = (
        fact_table("Options", findings.options),
        fact_table("Input", about),
        fact_table("Versions", versions),
    )
    answer = Answer(section.paragraphs[0] if section.paragraphs else section.title)
    body = replace(section, paragraphs=section.paragraphs[1:])
    shown = (body, Section("Setup", tables=tuple(table for table in setup if table.rows)))
    made = f"{MADE_BY} {versions.get('totune', '')}".strip()
    subtitle = " · ".join(filter(None, (findings.analysis, str(about.get("model") or ""))))
    path = folder / FOLDER / f"{findings.analysis}.html"
    write_document(path, Document(title, subtitle, answer, shown, made))
    return path
