"""Every analysis: options, a command, plain data, determinism, a section drawn from a file."""

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.tiny_data import save_encoder, write_reviews
from tests.unit.analyses.fake_states import classes, scores
from tests.unit.analyses.small_inputs import (
    CHAT,
    INFO,
    RUNS,
    SCORES,
    WIKI,
    forecast_inputs,
    setup_in,
    trained_on,
)

import totune as package
from totune.analyses.base import ANALYSES, Analysis, AnalysisResult
from totune.analyses.findings import Findings, analyse, read_findings
from totune.analyses.inputs.corpora import DivergenceInputs
from totune.analyses.label_cost import LabelCost
from totune.cli.analyze.app import app as analyze
from totune.cli.app import app as totune
from totune.cli.catalogue import describe
from totune.progress import Progress
from totune.registry import options_of
from totune.report.document import Section

NAMES = ANALYSES.names()
PLAIN = (str, int, float, bool, type(None))
ADVISED = {"forecast": "advise"}  # by a command of totune, the others by one of totune analyze

# Options with which an analysis is fast.
FAST: dict[str, dict[str, Any]] = {
    "forecast": {"rows": 40},
    "label-cost": {"sizes": (20, "all"), "strategies": ("tf-idf", "fine-tuning"), "seeds": 2},
    "mutual-information": {"draws": 2},
}
# What is measured in seconds: columns of rows, and facts.
TIMED = {"forecast": {"seconds", "seconds_per_row"}, "label-cost": {"seconds"}}


def fast(case: str) -> Analysis[Any]:
    name = case.partition(",")[0]
    return ANALYSES.create(name, FAST.get(name))


def files(folder: Path) -> Path:
    """`folder`, with reviews and an encoder in it."""
    write_reviews(folder / "reviews.csv", rows=60)
    save_encoder(folder / "encoder")
    return folder


def three_corpora() -> DivergenceInputs:
    """One without scores; too few with them for a correlation."""
    again, codes = (WIKI._replace(name=name) for name in ("wiki again", "wiki too"))
    return DivergenceInputs(WIKI, [again, codes, CHAT], SCORES)


def setup(folder: Path) -> Any:
    analysis = fast("label-cost")
    assert isinstance(analysis, LabelCost)
    return setup_in(files(folder), folder / "out", analysis)


# Small inputs by analysis and what is special, made anew at each call, in a folder if need be.
INPUTS: dict[str, Callable[[Path], Any]] = {
    "adapter-ablation": lambda _: [trained_on("classification", seed=seed)[0] for seed in (0, 1)],
    "divergence": lambda _: three_corpora(),
    "divergence, no scores": lambda _: DivergenceInputs(WIKI, [CHAT]),
    "forecast": lambda folder: forecast_inputs(files(folder), corpus=WIKI.texts),
    "label-cost": setup,
    "layer-probe": lambda _: classes((0, 2), adapted=[(0, 3), (0, 4)]),
    "layer-probe, scores": lambda _: scores((0, 2)),
    "mutual-information": lambda _: classes((0, 2), adapted=[(0, 3), (0, 4)]),
    "mutual-information, scores": lambda _: scores((0, 2)),
    "overfitting-gap": lambda _: (INFO, RUNS),
}


@pytest.fixture(params=NAMES)
def analysis(request: pytest.FixtureRequest) -> Analysis[Any]:
    return ANALYSES.create(request.param)


@pytest.fixture(scope="module", params=INPUTS)
def inputs_case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def found(inputs_case: str, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    inputs = INPUTS[inputs_case](tmp_path_factory.mktemp("inputs"))
    return analyse(fast(inputs_case), inputs, {"data": "made up"}, Progress())


def test_every_analysis_has_inputs() -> None:
    assert {case.partition(",")[0] for case in INPUTS} == set(NAMES)
    assert {*FAST, *TIMED, *ADVISED} <= set(NAMES)


def test_every_analysis_has_a_command_and_every_command_an_analysis() -> None:
    assert set(commands(analyze)) == set(NAMES) - set(ADVISED)
    callbacks = [command.callback for command in commands(analyze).values()]
    assert len(set(callbacks)) == len(callbacks)


def test_listing_them_loads_no_heavy_library() -> None:
    code = (
        "import sys; from totune.analyses.base import ANALYSES; ANALYSES.names(); "
        "print(*sorted(set(sys.modules) & set(sys.argv[1:])))"
    )
    heavy = ("torch", "transformers", "scipy", "sklearn", "matplotlib", "pandas", "pyarrow")
    ended = subprocess.run(
        [sys.executable, "-c", code, *heavy],
        env={**os.environ, "PYTHONPATH": str(Path(package.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.split() == []


def commands(app: typer.Typer) -> Mapping[str, Any]:
    group = typer.main.get_command(app)
    found: Mapping[str, Any] = group.commands  # type: ignore[attr-defined]
    return found


def test_its_name_is_that_of_its_command(analysis: Analysis[Any]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", analysis.name)
    assert type(analysis).__module__.endswith(analysis.name.replace("-", "_"))
    advised = ADVISED.get(analysis.name)
    command = commands(analyze)[analysis.name] if advised is None else commands(totune)[advised]
    assert command.help


def test_options_are_a_frozen_dataclass_with_defaults(analysis: Analysis[Any]) -> None:
    assert type(analysis).__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = dataclasses.fields(analysis)  # type: ignore[arg-type]
    assert all({field.default, field.default_factory} != {dataclasses.MISSING} for field in fields)


def test_options_are_plain_data(analysis: Analysis[Any]) -> None:
    options = json.loads(json.dumps(options_of(analysis)))
    assert ANALYSES.create(analysis.name, options) == analysis


def test_it_says_what_it_is_and_what_its_options_do(analysis: Analysis[Any]) -> None:
    entry = describe("analyses", analysis.name, type(analysis))
    assert entry.summary
    assert not re.match(r"\w+\(", entry.summary)  # dataclasses make such a docstring of their own
    assert [option.name for option in entry.options if not option.summary] == []
    assert analysis.title
    assert not analysis.title.endswith(".")


def test_values_are_plain_and_survive_json(found: Findings) -> None:
    assert found.result.rows
    written = found.to_json()
    read = json.loads(json.dumps(written, allow_nan=False))
    assert read["values"] == written["values"]
    assert ANALYSES.create(found.analysis, read["options"]) == found.member
    for row in found.result.rows:
        assert list(row) == list(found.result.rows[0])
        assert all(isinstance(value, PLAIN) for value in row.values())


def test_a_column_is_of_one_type(found: Findings) -> None:
    for name in found.result.rows[0]:
        types = {type(row[name]) for row in found.result.rows} - {type(None)}
        assert len(types) <= 1, name


def test_equal_inputs_give_equal_results(inputs_case: str, found: Findings, tmp_path: Path) -> None:
    again = fast(inputs_case).run(INPUTS[inputs_case](tmp_path), Progress())
    assert untimed(inputs_case, again) == untimed(inputs_case, found.result)


def untimed(case: str, values: AnalysisResult) -> AnalysisResult:
    """AnalysisResult without those that are measured in seconds."""
    timed = TIMED.get(case.partition(",")[0], set())
    rows = [{name: row[name] for name in row if name not in timed} for row in values.rows]
    return AnalysisResult(
        rows, {name: fact for name, fact in values.facts.items() if name not in timed}
    )


@pytest.mark.parametrize("inputs_case", TIMED, scope="module")
def test_what_is_timed_is_seconds(inputs_case: str, found: Findings) -> None:
    measured: dict[str, list[Any]] = {name: [] for name in TIMED[inputs_case]}
    for held in (*found.result.rows, found.result.facts):
        for name in set(held) & set(measured):
            measured[name].append(held[name])
    for name, seconds in measured.items():
        assert seconds, name
        assert all(value > 0 for value in seconds)


def test_a_section_drawn_from_its_file_is_the_same(found: Findings, tmp_path: Path) -> None:
    found.save(tmp_path)
    (read,) = read_findings(tmp_path)
    assert (read.result, read.about, read.member) == (found.result, found.about, found.member)
    section = read.section()
    assert section == found.section()
    check_section(section, read.member)


def check_section(section: Section, member: Analysis[Any]) -> None:
    assert section.title == member.title
    assert re.search(r"\w.*\.$", section.paragraphs[0])
    assert section.tables
    assert all(table.rows for table in section.tables)
    for picture in section.pictures:
        assert picture.svg.startswith('<svg role="img" aria-label=')
        assert picture.caption or picture.small


def test_values_need_no_facts() -> None:
    assert AnalysisResult([{"a": 1}]).facts == {}
