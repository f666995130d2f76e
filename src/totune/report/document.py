"""A report as plain data; the page and the Markdown file are two drawings of the same document."""

import re
from dataclasses import dataclass

from totune.report.table import Table

CODE = re.compile(r"`([\w='\"./-]+)`")  # parameters in sentences: `max_length`, `seeds=5`


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Attributes:
        svg: an `<svg>` element, trusted: only this package's drawing functions make them.
        caption: one sentence, or "".
        small: three of them fit side by side, else two.
    """

    svg: str
    caption: str = ""
    small: bool = False


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it, in this order.

    Attributes:
        title: the heading.
        paragraphs: plain sentences.
        warnings: what may spoil the result; drawn so that it is seen.
        tables: each under its own title (one equal to the heading is not repeated).
        pictures: shown on the page only, side by side where there is room.
        code: a command to copy, or ""; it stands before the tables.
        html: extra trusted HTML for the page, after everything else.
        folded: whether the page shows no more than the heading until a reader opens it.
    """

    title: str
    paragraphs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()
    code: str = ""
    html: str = ""
    folded: bool = False

    def is_empty(self) -> bool:
        return not (self.has_words() or self.pictures or self.html)

    def has_words(self) -> bool:
        """Whether a text file has something to show: words about pictures alone are nothing."""
        words = () if self.pictures else self.paragraphs
        return any((words, self.warnings, self.tables, self.code))


@dataclass(frozen=True)
class Answer:
    """What the reader came for.

    Attributes:
        headline: one sentence.
        verdict: one word that sets the tone ("undecided"), or "".
        parts: named lists of sentences; a single one stands beside its name.
        caveats: what to mind.
    """

    headline: str
    verdict: str = ""
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    caveats: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report: the answer first, then the sections that are not empty."""

    title: str
    subtitle: str
    answer: Answer
    sections: tuple[Section, ...]
    footer: str = ""
