"""What an analysis leaves behind: a JSON file and, of its rows, a Parquet file."""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from totune import machine
from totune.analyses.base import ANALYSES, Analysis, M, Values
from totune.errors import ConfigError
from totune.outputs import check_output_folder, check_reports, has_mark
from totune.progress import Progress
from totune.registry import options_of
from totune.report.document import Section
from totune.runs.records import RunRecord
from totune.runs.store import is_study, write_json

# Inside the folder that an analysis writes to: what was found, and runs by training rows.
FOLDER, SIZES = "analyses", "sizes"
_MARKS = ("analysis", "options", "values")


@dataclass(frozen=True)
class Findings:
    """Values with all that is needed to find them again.

    Attributes:
        options: of the analysis.
        about: data, encoder, precision, versions, seconds.
    """

    analysis: str
    options: Mapping[str, Any]
    about: Mapping[str, Any]
    values: Values

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def save(self, folder: Path) -> Path:
        """Writes `analyses/NAME.json` and `.parquet` under `folder`; returns the former."""
        path = folder / FOLDER / f"{self.analysis}.json"
        write_json(self.to_json(), path)
        rows = path.with_suffix(".parquet")
        temporary = rows.with_name(f"{rows.name}.{os.getpid()}.tmp")
        pq.write_table(pa.Table.from_pylist([dict(row) for row in self.values.rows]), temporary)
        temporary.replace(rows)
        return path

    @property
    def member(self) -> Analysis[Any]:
        """The analysis with these options."""
        return ANALYSES.create(self.analysis, self.options)

    def section(self, records: Sequence[RunRecord] = ()) -> Section:
        """What is drawn of it, in a study of these runs.

        Raises:
            ConfigError: if there is no such analysis, or it finds other facts or takes other
                options by now.
        """
        ANALYSES.get(self.analysis)
        try:
            section = self.member.section(self.values, records)
            return replace(section, warnings=(*self._outdated(records), *section.warnings))
        except (KeyError, ConfigError) as error:
            reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{FOLDER}/{self.analysis}.json is of another version of this analysis ({reason}). "
                f"Run {self.analysis} again, or remove the file."
            ) from None

    def _outdated(self, records: Sequence[RunRecord]) -> tuple[str, ...]:
        """A warning where runs have finished since."""
        created = self.about["created_at"]  # like `finished_at` in UTC, so words compare as times
        later = sum(run.status == "finished" and run.finished_at > created for run in records)
        if not later or not ANALYSES.get(self.analysis).reads_runs:
            return ()
        runs = "1 run" if later == 1 else f"{later} runs"
        return (
            f"This is older than {runs} of this study; run the analysis again to include them.",
        )


def analyse(
    analysis: Analysis[M], material: M, about: Mapping[str, Any], progress: Progress
) -> Findings:
    """Runs an analysis.

    Args:
        analysis: with its options.
        material: what it reads.
        about: data, encoder and precision, recorded beside the values.
        progress: told of what goes on.
    """
    began = time.perf_counter()
    values = analysis.run(material, progress)
    taken = {
        **about,
        "seconds": time.perf_counter() - began,
        "versions": machine.versions(),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    return Findings(analysis.name, options_of(analysis), taken, values)


def check_findings_folder(folder: Path, analysis: str) -> None:
    """Makes sure that findings may be written to a folder, before they are looked for.

    Args:
        folder: new, empty, a study's, or with what other analyses found.
        analysis: the name of the one whose findings come.

    Raises:
        ConfigError: if it holds anything else, or files under those names that are not of totune.
    """
    check_output_folder(folder, "a study or what an analysis found", _is_ours)
    path = folder / FOLDER / f"{analysis}.json"
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
    found = any(has_mark(path, *_MARKS) for path in (folder / FOLDER).glob("*.json"))
    return found or is_study(folder) or any((folder / SIZES).glob("*/runs"))


def read_findings(folder: Path) -> list[Findings]:
    """What analyses left in `folder`, by their names.

    Raises:
        ConfigError: if a file there cannot be read.
    """
    return [_read(path) for path in sorted((folder / FOLDER).glob("*.json"))]


def _read(path: Path) -> Findings:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        values = Values(**found.pop("values"))
        return Findings(**found, values=values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(
            f"{path} cannot be read as what an analysis found ({error}). Remove it, or run the "
            "analysis again."
        ) from None


def sections(folder: Path, records: Sequence[RunRecord]) -> list[Section]:
    """A section for each analysis in a study's folder.

    Raises:
        ConfigError: if a file there cannot be read, or is of an analysis that there is not.
    """
    return [found.section(records) for found in read_findings(folder)]
