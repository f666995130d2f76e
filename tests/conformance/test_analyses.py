"""Every analysis, whatever it is: options, plain data, determinism, a section drawn from a file."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.analyses.fake_states import classes, scores

from totune.analyses.base import ANALYSES, Analysis, Values
from totune.analyses.findings import Findings, analyse, read_findings
from totune.cli.analyze.app import COMMANDS
from totune.cli.catalogue import describe
from totune.progress import Progress
from totune.registry import options_of
from totune.report.document import Section

NAMES = ANALYSES.names()
PLAIN = (str, int, float, bool, type(None))

# Small material, made anew at each call, by analysis and what is special; options to be fast.
MATERIALS: dict[str, Callable[[], Any]] = {
    "layer-probe": lambda: classes((0, 2), adapted=[(0, 3), (0, 4)]),
    "layer-probe, scores": lambda: scores((0, 2)),
    "mutual-information": lambda: classes((0, 2), adapted=[(0, 3), (0, 4)]),
    "mutual-information, scores": lambda: scores((0, 2)),
}
ELSEWHERE = {"forecast"}  # totune advise
FAST: dict[str, dict[str, Any]] = {"mutual-information": {"draws": 2}}


def fast(case: str) -> Analysis[Any]:
    name = case.partition(",")[0]
    return ANALYSES.create(name, FAST.get(name))


@pytest.fixture(params=NAMES)
def member(request: pytest.FixtureRequest) -> Analysis[Any]:
    return ANALYSES.create(request.param)


@pytest.fixture(scope="module", params=MATERIALS)
def case(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def found(case: str) -> Findings:
    return analyse(fast(case), MATERIALS[case](), {"data": "made up"}, Progress())


def test_material_is_of_analyses_that_there_are() -> None:
    assert {case.partition(",")[0] for case in MATERIALS} | {*FAST, *ELSEWHERE} <= set(NAMES)


def test_its_values_are_looked_at_here(member: Analysis[Any]) -> None:
    if member.name not in {case.partition(",")[0] for case in MATERIALS}:
        pytest.skip(f"no material for {member.name}: see its own tests")


def test_its_name_is_that_of_its_command(member: Analysis[Any]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", member.name)
    assert (member.name in COMMANDS) != (member.name in ELSEWHERE)
    assert type(member).__module__.endswith(member.name.replace("-", "_"))


def test_options_are_a_frozen_dataclass_with_defaults(member: Analysis[Any]) -> None:
    assert type(member).__dataclass_params__.frozen  # type: ignore[attr-defined]
    fields = dataclasses.fields(member)  # type: ignore[arg-type]
    assert all({field.default, field.default_factory} != {dataclasses.MISSING} for field in fields)


def test_options_are_plain_data(member: Analysis[Any]) -> None:
    options = json.loads(json.dumps(options_of(member)))
    assert ANALYSES.create(member.name, options) == member


def test_it_says_what_it_is_and_what_its_options_do(member: Analysis[Any]) -> None:
    entry = describe("analyses", member.name, type(member))
    assert entry.summary
    assert not re.match(r"\w+\(", entry.summary)  # dataclasses make such a docstring of their own
    assert [option.name for option in entry.options if not option.summary] == []
    assert member.title
    assert not member.title.endswith(".")


def test_values_are_plain_and_survive_json(found: Findings) -> None:
    assert found.values.rows
    assert json.loads(json.dumps(found.to_json(), allow_nan=False)) == found.to_json()
    for row in found.values.rows:
        assert list(row) == list(found.values.rows[0])
        assert all(isinstance(value, PLAIN) for value in row.values())


def test_a_column_is_of_one_type(found: Findings) -> None:
    for name in found.values.rows[0]:
        types = {type(row[name]) for row in found.values.rows} - {type(None)}
        assert len(types) <= 1, name


def test_equal_material_gives_equal_values(case: str, found: Findings) -> None:
    again = fast(case).run(MATERIALS[case](), Progress())
    assert again == found.values


def test_a_section_drawn_from_its_file_is_the_same(found: Findings, tmp_path: Path) -> None:
    found.save(tmp_path)
    (read,) = read_findings(tmp_path)
    assert read == found
    section = read.section()
    assert section == found.section()
    check_section(section, read.member)


def check_section(section: Section, member: Analysis[Any]) -> None:
    assert section.title == member.title
    assert section.paragraphs[0].endswith(".")
    assert section.tables
    for picture in section.pictures:
        assert picture.svg.startswith('<svg role="img" aria-label=')
        assert picture.caption


def test_values_need_no_facts() -> None:
    assert Values([{"a": 1}]).facts == {}
