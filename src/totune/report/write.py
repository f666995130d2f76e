"""Writes a study's report: one page and one Markdown file, each whole or not at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from totune.advice import Advice, Ensemble
from totune.io import write_text
from totune.report.document import Document, Section
from totune.report.html import document_html
from totune.report.markdown import document_markdown
from totune.report.study_report import study_document
from totune.runs.records import RunRecord, StudyInfo


@dataclass(frozen=True)
class ReportPaths:
    """Where the report lies."""

    html: Path
    markdown: Path


def write_report(
    folder: Path,
    info: StudyInfo,
    records: Sequence[RunRecord],
    advice: Advice,
    sections: Sequence[Section] = (),
    ensembles: Sequence[Ensemble] = (),
    model: Sequence[Section] = (),
) -> ReportPaths:
    """Writes `report.html` and `report.md` into `folder`, which is made if need be.

    The page needs nothing but itself: no request leaves it. Equal input gives equal bytes.

    Args:
        folder: the study's folder.
        info: what was compared.
        records: every run, failed ones too.
        advice: what follows from them.
        sections: further sections, such as those of searches and analyses.
        ensembles: what its runs score together, of `totune.advice.find_ensembles`.
        model: sections on the recommended model: how to use it, its errors.
    """
    document = study_document(info, records, advice, sections, ensembles, model)
    paths = ReportPaths(folder / "report.html", folder / "report.md")
    write_document(paths.html, document)
    write_text(paths.markdown, document_markdown(document))
    return paths


def write_document(path: Path, document: Document) -> None:
    """Writes a document as a page that needs nothing but itself."""
    write_text(path, document_html(document))
