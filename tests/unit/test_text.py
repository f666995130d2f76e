"""Counts, sizes, times and errors in words."""

import pytest

from totune.text import (
    counted,
    first_line,
    format_bytes,
    format_duration,
    hide_secrets,
    listed,
)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 s"),
        (0.0421, "0.042 s"),
        (4.1, "4.1 s"),
        (48.2, "48 s"),
        (59.7, "1 min"),
        (200, "3 min 20 s"),
        (3599.7, "1 h"),
        (3900, "1 h 5 min"),
    ],
)
def test_durations(seconds: float, expected: str):
    assert format_duration(seconds) == expected


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (3080, "3.08 kB"),
        (90_855_944, "90.9 MB"),
        (999_600_000, "1.00 GB"),
        (5e12, "5.00 TB"),
    ],
)
def test_sizes(count: float, expected: str):
    assert format_bytes(count) == expected


def test_counts_and_places():
    assert [counted(count, "row") for count in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert listed([3], "line") == "line 3"
    assert listed(range(1, 46), "line") == "lines 1, 2, 3, 4, 5 and 40 more"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("It is wrong.\nAnd more."), "It is wrong"),
        (ValueError("\n it is wrong: "), "it is wrong"),
        (ValueError(), "ValueError"),
        (KeyError("no such key."), "no such key"),
        (OSError(28, "No space left"), "[Errno 28] No space left"),
    ],
)
def test_the_first_line_of_an_error(error: Exception, expected: str):
    assert first_line(error) == expected


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a postgresql://me:pw@host/db b", "a postgresql://***@host/db b"),
        ("postgresql+psycopg://me:p:w@host:5432/db", "postgresql+psycopg://***@host:5432/db"),
        ("mysql://me:p@ss/w@host/db?ssl=1", "mysql://***@host/db?ssl=1"),
        ("https://secrettoken@host/api", "https://***@host/api"),
        (
            "totune --search-storage 'x://me:pw@h/db' -q",
            "totune --search-storage 'x://***@h/db' -q",
        ),
        ("postgresql://h/db?password=a&sslmode=b", "postgresql://h/db?password=***&sslmode=b"),
        ("http://h/?a=1&api_key=abc;Token=x y", "http://h/?a=1&api_key=***;Token=*** y"),
        ("hub token hf_abcdefghijklmnopqrstuvwx.", "hub token hf_***."),
        ("sqlite:////x.db hub:glue/mrpc me@example.org", None),
        ("see https://host/path?page=2#keys and --set monkey=5", None),
    ],
)
def test_secrets_are_hidden(text: str, hidden: str | None):
    assert hide_secrets(text) == (text if hidden is None else hidden)
