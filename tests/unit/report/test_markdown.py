import re

from totune.report.document import Picture, Section
from totune.report.markdown import escape, section_markdown, table_markdown
from totune.report.table import Cell, Column, Row, Table, word


def test_a_table_is_github_flavoured():
    table = Table(
        "Scores",
        (Column("Name", numeric=False), Column("Score")),
        (Row((word("a|b"), Cell(0.5, "50.0", "48 to 52")), "recommended"),),
        ("Higher is *better*.",),
    )
    assert table_markdown(table).splitlines() == [
        "### Scores",
        "",
        "| Name | Score |",
        "| --- | ---: |",
        "| **a\\|b** (recommended) | 50.0 (48 to 52) |",
        "",
        "Higher is \\*better\\*.",
    ]


def test_text_cannot_become_markup():
    assert escape("a | b\n<script> [x](y) `c d` \\") == (
        "a \\| b \\<script\\> \\[x\\](y) \\`c d\\` \\\\"
    )
    assert escape("raise `max_length`, or `seeds=5`") == "raise `max_length`, or `seeds=5`"
    assert escape("# title") == "\\# title"
    assert escape("- item") == "\\- item"
    assert escape("−1.2 to +3") == "−1.2 to +3"


def test_every_row_has_as_many_cells_as_the_heading():
    rows = tuple(Row((word(text), word("x"))) for text in ("a|b", "c\\|d", "e\\", "|"))
    table = Table("T", (Column("A", numeric=False), Column("B", numeric=False)), rows)
    for line in table_markdown(table, titled=False).splitlines():
        bars = [bar for bar in re.finditer(r"(\\*)\|", line) if len(bar[1]) % 2 == 0]
        assert len(bars) == 3


def test_a_section_keeps_its_order():
    table = Table("Data", (Column("A"),), (Row((Cell(1, "1"),)),))
    section = Section("Data", ("A note.",), ("Beware.",), (table,), code="totune compare a`b")
    lines = [line for line in section_markdown(section).splitlines() if line]
    assert lines[:4] == ["## Data", "A note.", "- **Warning:** Beware.", "    totune compare a`b"]
    assert lines[4] == "| A |"


def test_words_about_pictures_need_pictures():
    assert not Section("Curves", ("A line per seed.",), pictures=(Picture("<svg/>"),)).has_words()
    assert Section("Notes", ("A note.",)).has_words()
    assert Section("Empty").is_empty()
