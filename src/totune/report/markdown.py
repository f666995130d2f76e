"""Tables and sections as GitHub-flavoured Markdown."""

import re
from itertools import zip_longest
from textwrap import indent

from totune.report.document import CODE, Document, Section
from totune.report.table import Cell, Column, Row, Table


def escape(text: str) -> str:
    """`text` as literal Markdown on one line: no markup, no table cell ends, no raw HTML.

    Parameters in backticks, as messages have them, stay code.
    """
    parts = CODE.split(" ".join(text.split()))  # what stands between backticks is at odd places
    plain = [re.sub(r"([\\`*_\[\]<>|~])", r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" for part in parts[1::2]]
    line = "".join(piece for pair in zip_longest(plain, code, fillvalue="") for piece in pair)
    return re.sub(r"^(#|[-+] )", r"\\\1", line)


def table_markdown(table: Table, *, titled: bool = True) -> str:
    """A table with its title and notes; a marked row is bold in its first cell."""
    lines = [f"### {escape(table.title)}", ""] if titled and table.title else []
    lines.append(_line([escape(column.name) for column in table.columns]))
    lines.append(_line([_rule(column) for column in table.columns]))
    lines += [_line(_cells(row)) for row in table.rows]
    for note in table.notes:
        lines += ["", escape(note)]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _rule(column: Column) -> str:
    return "---:" if column.numeric else "---"


def _cells(row: Row) -> list[str]:
    cells = [_cell(cell) for cell in row.cells]
    if row.mark and cells:
        cells[0] = f"**{cells[0]}** ({escape(row.mark)})"
    return cells


def _cell(cell: Cell) -> str:
    detail = f" ({escape(cell.detail)})" if cell.detail else ""
    return f"{escape(cell.text)}{detail}"


def section_markdown(section: Section) -> str:
    """A section without its pictures and HTML, which a text file cannot hold."""
    parts = [f"## {escape(section.title)}"]
    parts += [escape(paragraph) for paragraph in section.paragraphs]
    if section.warnings:
        parts.append("\n".join(f"- **Warning:** {escape(text)}" for text in section.warnings))
    if section.code:
        parts.append(indent(section.code, "    "))
    parts += [
        table_markdown(table, titled=table.title != section.title) for table in section.tables
    ]
    return "\n\n".join(parts)


def document_markdown(document: Document) -> str:
    """The whole report, without its pictures."""
    answer = document.answer
    parts = [f"# {escape(document.title)}", escape(document.subtitle)]
    parts.append(f"## {escape(answer.headline)}")
    for name, sentences in (*answer.parts, ("Mind", answer.caveats)):
        if len(sentences) == 1 and name != "Mind":
            parts.append(f"**{escape(name)}** {escape(sentences[0])}")
        elif sentences:
            parts += [f"**{escape(name)}**", "\n".join(f"- {escape(text)}" for text in sentences)]
    parts += [section_markdown(one) for one in document.sections if one.has_words()]
    parts.append(escape(document.footer))
    return "\n\n".join(part for part in parts if part) + "\n"
