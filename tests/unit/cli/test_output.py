"""Results as JSON and as tables, on standard output."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from totune.cli.output import emit, plain, show_metrics, show_table


@dataclass(frozen=True)
class Point:
    x: float
    tags: tuple[str, ...]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1.5, ("a",)), {"x": 1.5, "tags": ["a"]}),
        ({1: float("nan"), "b": float("inf")}, {"1": None, "b": None}),
        (np.array([[1, 2]]), [[1, 2]]),
        (np.float32(0.5), 0.5),
        (np.array([np.nan, 1.0]), [None, 1.0]),
        (Path("a/b"), str(Path("a/b"))),
        (True, True),
        (None, None),
    ],
)
def test_plain(value: object, expected: object):
    assert plain(value) == expected


def test_emit_prints_one_line_of_valid_json(capsys: pytest.CaptureFixture[str]):
    emit({"name": "films –\nreview", "score": float("nan")})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert json.loads(out) == {"name": "films –\nreview", "score": None}


def test_cells_are_text_not_markup(capsys: pytest.CaptureFixture[str]):
    show_table(["name", "n"], [["[bold]x[/bold]", "[1]"]])
    assert "[bold]x[/bold]  [1]" in capsys.readouterr().out


def test_metrics_of_types_stand_in_rows_of_their_own(capsys: pytest.CaptureFixture[str]):
    show_metrics(
        {
            "dev": {"span-f1": 0.91, "token-accuracy": 0.98, "f1:LOC": 0.5, "f1:PER": 1.0},
            "test": {"span-f1": 0.87, "token-accuracy": 0.97, "f1:LOC": 0.25, "f1:PER": 0.75},
        }
    )
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["Span", "F1", "Token", "accuracy"],
        ["dev", "91.0", "98.0"],
        ["test", "87.0", "97.0"],
        [],
        ["dev", "test"],
        ["F1", "of", "LOC", "50.0", "25.0"],
        ["F1", "of", "PER", "100.0", "75.0"],
    ]


def test_metrics_of_labels_stand_in_a_row_for_each(capsys: pytest.CaptureFixture[str]):
    scores = {"support:joy": 1200.0, "precision:joy": 0.5, "recall:joy": 0.25, "f1:joy": 1 / 3}
    show_metrics({"test": {"micro-f1": 0.4, "exact-match": 0.1} | scores})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Micro", "F1", "Exact", "match"],
        ["test", "40.0", "10.0"],
        [],
        ["Label", "Support", "Precision", "Recall", "F1"],
        ["joy", "1,200", "50.0", "25.0", "33.3"],
    ]


def test_metrics_of_rows_are_one_table(capsys: pytest.CaptureFixture[str]):
    show_metrics({"test": {"accuracy": 0.5}})
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["Accuracy"],
        ["test", "50.0"],
    ]
