"""Tables, sections and the page as HTML that needs nothing but the file itself."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from totune.report.document import CODE, Document, Section
from totune.report.table import Table


def _with_code(value: Any) -> Any:
    """Parameters in backticks, as messages have them, as code."""
    if not isinstance(value, str) or isinstance(value, Markup) or not CODE.search(value):
        return value
    parts = CODE.split(value)  # what stands between backticks is at odd places
    code = Markup("<code>{}</code>")
    marked = (code.format(part) if at % 2 else escape(part) for at, part in enumerate(parts))
    return Markup("").join(marked)


_ENVIRONMENT = Environment(
    loader=PackageLoader("totune.report", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    finalize=_with_code,
)


def table_html(table: Table, *, titled: bool = True) -> Markup:
    """A table with its title and notes, escaped; classes are styled by the page."""
    return Markup(_render("table.html", table=table, titled=titled, headed=_is_headed(table)))


def _is_headed(table: Table) -> bool:
    return any(column.name for column in table.columns)


def section_html(section: Section) -> Markup:
    """A section with everything in it; pictures and `html` go in as they are."""
    return Markup(
        _render(
            "section.html",
            section=section,
            tables=[
                table_html(table, titled=table.title != section.title) for table in section.tables
            ],
            facts=not any(_is_headed(table) for table in section.tables),
            pictures=[(Markup(picture.svg), picture.caption) for picture in section.pictures],
            small=all(picture.small for picture in section.pictures),
            extra=Markup(section.html),
        )
    )


def document_html(document: Document) -> str:
    """The whole page, with its styles inside it."""
    sections = [section_html(one) for one in document.sections if not one.is_empty()]
    return _render("page.html", document=document, answer=document.answer, sections=sections)


def _render(template: str, **values: Any) -> str:
    return _ENVIRONMENT.get_template(template).render(**values)
