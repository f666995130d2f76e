import json
import math

import pytest

from totune.report.table import (
    Cell,
    Column,
    Row,
    Table,
    drop_empty_columns,
    fact_table,
    number,
    span,
    word,
)

COLUMNS = (Column("Name", numeric=False), Column("Score"), Column("Never known"))


def two_rows() -> Table:
    return Table(
        "Scores",
        COLUMNS,
        (
            Row((word("a"), number(0.5, "50.0"), number(math.nan, "–"))),
            Row((word("b"), number(math.inf, "–"), Cell(None, "–")), "recommended"),
        ),
        ("A note.",),
    )


def test_a_row_of_another_width_is_refused():
    with pytest.raises(ValueError, match="Scores: row 0 has 1 cells for 3 columns"):
        Table("Scores", COLUMNS, (Row((word("a"),)),))


def test_values_that_are_not_finite_are_unknown():
    assert two_rows().values("Score") == [0.5, None]
    assert span(math.nan, 1.0, "–").value is None
    assert span(0.0, 1.0, "0 to 1").value == [0.0, 1.0]


def test_a_table_is_json():
    data = json.loads(json.dumps(two_rows().to_json(), allow_nan=False))
    assert data["rows"][1]["mark"] == "recommended"
    assert data["columns"][1] == {"name": "Score", "numeric": True}


def test_columns_that_nobody_knows_are_dropped():
    kept = drop_empty_columns(two_rows())
    assert [column.name for column in kept.columns] == ["Name", "Score"]
    assert kept.rows[1].mark == "recommended"
    assert kept.notes == ("A note.",)


def test_facts_leave_out_what_is_not_known():
    table = fact_table("Machine", {"memory_bytes": 2_000_000_000, "budget": None, "flags": []})
    assert [[cell.text for cell in row.cells] for row in table.rows] == [["Memory", "2.00 GB"]]
    assert table.rows[0].cells[1].value == 2_000_000_000


def test_printed_it_is_aligned_text() -> None:
    columns = (Column("Strategy", numeric=False), Column("Accuracy"))
    rows = (Row((word("last-2"), number(0.8, "80.0"))), Row((word("a"), number(0.05, "5.0"))))
    table = Table("Comparison", columns, rows, ("One seed.",))
    assert str(table).splitlines() == [
        "Comparison",
        "Strategy  Accuracy",
        "last-2        80.0",
        "a              5.0",
        "One seed.",
    ]
