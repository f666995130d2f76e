"""What is said in Python goes to a logger that is silent until a program asks for it."""

import logging

import pytest

from totune.progress import Progress


def test_notes_and_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="totune")
    Progress().say("3 rows read 100%")
    Progress().warn("2 were cut")
    assert [(r.name, r.levelname, r.getMessage()) for r in caplog.records] == [
        ("totune", "INFO", "3 rows read 100%"),
        ("totune", "WARNING", "2 were cut"),
    ]


def test_nobody_who_does_not_ask_hears_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    Progress().warn("2 were cut")
    assert capsys.readouterr() == ("", "")
