"""A page of its own for what one analysis found."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from totune.analyses.findings import FOLDER, Findings
from totune.outputs import MADE_BY
from totune.report.document import Answer, Document, Section
from totune.report.table import fact_table
from totune.report.write import write_document
from totune.runs.records import RunRecord

_APART = ("versions", "created_at", "data")


def write_page(found: Findings, folder: Path, records: Sequence[RunRecord] = ()) -> Path:
    """Writes `analyses/NAME.html` under `folder`, which needs nothing but itself.

    Args:
        found: what is shown.
        folder: a study's, or any other.
        records: the runs of that study.
    """
    section = found.section(records)
    about = {name: value for name, value in found.about.items() if name not in _APART}
    setup = (
        fact_table("Options", found.options),
        fact_table("Input", about),
        fact_table("Versions", found.about.get("versions", {})),
    )
    answer = Answer(section.paragraphs[0] if section.paragraphs else section.title)
    body = replace(section, paragraphs=section.paragraphs[1:])
    sections = (body, Section("Setup", tables=tuple(table for table in setup if table.rows)))
    title = str(found.about.get("data") or section.title)
    made = f"{MADE_BY} {found.about.get('versions', {}).get('totune', '')}".strip()
    path = folder / FOLDER / f"{found.analysis}.html"
    subtitle = " · ".join(filter(None, (found.analysis, str(found.about.get("model") or ""))))
    write_document(path, Document(title, subtitle, answer, sections, made))
    return path
