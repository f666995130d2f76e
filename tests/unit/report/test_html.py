from totune.report.document import Answer, Document, Picture, Section
from totune.report.html import document_html, section_html, table_html
from totune.report.table import Cell, Column, Row, Table, word

NASTY = "<script>alert('x')</script> & \"q\""


def test_cells_headings_and_notes_are_escaped():
    table = Table(
        NASTY,
        (Column(NASTY, numeric=False), Column("B")),
        (Row((word(NASTY), Cell(1, NASTY, NASTY)), NASTY),),
        (NASTY,),
    )
    page = str(table_html(table))
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 6


def test_numbers_are_aligned_and_marks_shown():
    table = Table(
        "Scores",
        (Column("Name", numeric=False), Column("Score")),
        (Row((word("a"), Cell(0.5, "50.0", "48 to 52")), "for now"), Row((word("b"), word("")))),
    )
    page = " ".join(str(table_html(table)).split())
    assert '<th scope="col" class="number">Score</th>' in page
    assert '<tr class="for-now">' in page
    assert '<span class="mark">for now</span>' in page
    assert "50.0<small>48 to 52</small>" in page.replace(" <small>", "<small>")
    assert page.count('<span class="mark">') == 1


def test_long_words_get_room_and_numbers_do_not():
    columns = (Column("Name", numeric=False), Column("Why", numeric=False), Column("Score"))
    text = "a reason " * 10
    table = Table("Why", columns, (Row((word(text), word(text), Cell(1, text))),))
    page = str(table_html(table))
    assert page.count('<td class="long">') == 1
    assert page.count('<td class="number">') == 1


def test_a_table_called_like_its_section_is_not_titled_twice():
    table = Table("Costs", (Column("A"),), (Row((Cell(1, "1"),)),))
    assert "<h3>" not in section_html(Section("Costs", tables=(table,)))
    assert "<h3>Costs</h3>" in section_html(Section("Money", tables=(table,)))


def test_trusted_parts_go_in_as_they_are_and_words_do_not():
    section = Section(
        "Analysis",
        paragraphs=(NASTY,),
        warnings=(NASTY,),
        pictures=(Picture("<svg></svg>", NASTY),),
        code=NASTY,
        html="<p id='own'>more</p>",
    )
    page = section_html(section)
    assert "<script" not in page
    assert "<svg></svg>" in page
    assert "<p id='own'>more</p>" in page


def test_the_answer_comes_first_and_empty_sections_not_at_all():
    answer = Answer(
        "Tune.", "recommended", (("Why", ("It scores best.",)), ("Costs", ())), ("Hm.",)
    )
    sections = (Section("Nothing"), Section("Something", ("Some words.",)))
    page = document_html(Document("t", "s", answer, sections, "made"))
    places = [
        page.index(text)
        for text in ("<h1>t</h1>", "Tune.", "It scores best.", "Hm.", "Some words.")
    ]
    assert places == sorted(places)
    assert "Nothing" not in page
    assert "<h3>Costs</h3>" not in page
