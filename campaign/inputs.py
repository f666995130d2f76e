"""Dirty inputs by generation: every one is read, or refused in one message with exit code 2.

Hypothesis makes files (bytes, csv, json lines, CoNLL, wide encodings) and options, and shrinks what
goes wrong to the smallest example.
"""

import contextlib
import io
import json
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st
from tests.end_to_end.commands import Ended

from campaign.common import HANGING, Place, Tally
from totune.cli.app import _run

_CELL = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ['"', '""', "a,b", "\t", "\r", "\x00", "nan", "1e308", "1" * 400, "-0", "", " ", "=1+1"]
    ),
    st.sampled_from(["\ufeff", "\u2028", "\x85", "<script>", "[bold]", "\ud83d", "NULL", "[]"]),
)
_ENCODINGS = st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
_ROWS = st.sampled_from([40, 30, 60, 12, 1, 0])  # the first is what most examples shrink to
_ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | _CELL,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_CELL, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def delimited(draw: st.DrawFn) -> tuple[str, bytes]:
    """A csv or tsv file, whose rows have a text and a class, and here and there something else."""
    delimiter, end = draw(st.sampled_from(",;\t|")), draw(_ENDS)
    header = draw(st.sampled_from([["text", "label"], [], ["a", "a"], ["text", ""]]))
    rows = [[f"some words {at}", "ab"[at % 2]] for at in range(draw(_ROWS))]
    for _ in range(draw(st.integers(0, 4))):
        rows.insert(draw(st.integers(0, len(rows))), draw(st.lists(_CELL, max_size=4)))
    lines = [delimiter.join(row) for row in ([header] if header else []) + rows]
    suffix = draw(st.sampled_from([".csv", ".tsv", ".txt", ".csv.gz"]))
    return suffix, end.join(lines).encode(draw(_ENCODINGS), "replace")


@st.composite
def json_lines(draw: st.DrawFn) -> tuple[str, bytes]:
    """Objects, one a line, of which some are others."""
    rows = [{"text": f"w {at}", "label": "ab"[at % 2]} for at in range(draw(_ROWS))]
    lines = [json.dumps(row) for row in rows]
    for _ in range(draw(st.integers(0, 3))):
        value = draw(_JSON | st.fixed_dictionaries({"text": _JSON, "label": _JSON}))
        lines.insert(draw(st.integers(0, len(lines))), json.dumps(value))
    whole = draw(st.sampled_from(["\n".join(lines), f"[{','.join(lines)}]", "[" * 5000]))
    return draw(st.sampled_from([".jsonl", ".json"])), whole.encode("utf-8", "replace")


@st.composite
def conll(draw: st.DrawFn) -> tuple[str, bytes]:
    """Sentences of words and tags, with lines that do not fit."""
    tags = st.sampled_from(["O", "B-X", "I-X", "E-X", "S-Y", "B-", "", "-X", "I-\x00"])
    lines: list[str] = []
    for _ in range(draw(_ROWS)):
        lines += [f"word {draw(tags)}" for _ in range(3)] + [""]
    for _ in range(draw(st.integers(0, 3))):
        lines.insert(draw(st.integers(0, len(lines))), draw(_CELL))
    return draw(st.sampled_from([".conll", ".txt"])), "\n".join(lines).encode("utf-8", "replace")


_BYTES = st.tuples(
    st.sampled_from([".csv", ".jsonl", ".parquet", ".csv.gz", ".csv.xz", ".zip", ".conll", ".txt"]),
    st.binary(max_size=300),
)
_VALUE = st.one_of(
    st.sampled_from(["0", "-1", "1e400", "nan", "inf", "x", "", "9" * 30, "1,1", "~nobody!"]),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8),
)
_OPTION = st.tuples(
    st.sampled_from(
        [
            *("--text", "--label", "--task", "--seeds", "--fraction", "--split-seed", "--metric"),
            *("--max-length", "--precision", "--budget", "--set", "--encoding", "--tolerance"),
            *("--cache-budget", "--positive-label", "--learning-rate", "--num-train-epochs"),
            *("--keep-weights", "--search", "--race-fraction", "--pair", "--head"),
        ]
    ),
    _VALUE,
)
FILES = st.one_of(delimited(), json_lines(), conll(), _BYTES)


def run(place: Place, count: int, seed: int) -> Tally:
    """Gives `compare` `count` generated inputs, in this process."""
    tally = Tally("inputs", seed)
    plain = count * 3 // 4
    with place.scratch() as folder:

        def examine(file: tuple[str, bytes], chosen: list[tuple[str, str]]) -> None:
            _try(folder, file, chosen, tally)

        _generate(examine, FILES, st.just([]), plain, seed)
        options = st.lists(_OPTION, min_size=1, max_size=2)
        _generate(examine, delimited(), options, count - plain, seed)
    return tally


def _generate(
    examine: Callable[..., None],
    files: st.SearchStrategy[tuple[str, bytes]],
    options: st.SearchStrategy[list[tuple[str, str]]],
    count: int,
    seed: int,
) -> None:
    """Runs until something is found; Hypothesis then shows the smallest example."""
    rules = settings(
        max_examples=max(1, count),
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    with contextlib.suppress(AssertionError):  # the tally has it
        seeded(seed)(rules(given(files, options)(examine)))()


def _try(
    folder: Path, file: tuple[str, bytes], chosen: list[tuple[str, str]], tally: Tally
) -> None:
    path, study = folder / f"input{file[0]}", folder / "study"
    path.write_bytes(file[1])
    words = [word for name, value in chosen for word in (name, value)]
    arguments = ["compare", str(path), "--out", str(study), "--strategies", "majority,tf-idf"]
    began = time.monotonic()
    ended = here([*arguments, "--seeds", "1", *words])
    shutil.rmtree(study, ignore_errors=True)
    tally.tried += 1
    before = len(tally.found)
    tally.judge(f"{file} {words}", ended, (0, 1, 2))
    if time.monotonic() - began > HANGING:
        tally.found.append(f"hang: {file} {words}")
    if len(tally.found) > before:
        raise AssertionError(tally.found[-1])


def here(arguments: list[str]) -> Ended:
    """A command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            code = _run(arguments, False)
        except Exception:  # is what is looked for
            code = 1
            err.write(traceback.format_exc())
    return Ended(code, out.getvalue(), err.getvalue())
