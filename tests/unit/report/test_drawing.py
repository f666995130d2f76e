import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from tests.unit.report.sample_study import run_of

from totune.report.figures import (
    cost_rows,
    curve_limits,
    curve_rows,
    draw_costs,
    draw_curves,
    draw_scores,
    rows_by_strategy,
    score_rows,
    strategy_colors,
)
from totune.runs.records import RunRecord, StudyInfo


def draw_all(info: StudyInfo, records: list[RunRecord]) -> list[str]:
    colors, metric = strategy_colors(info, records), info.metric
    curves = curve_rows(info, records)
    drawn = [
        draw_curves(rows, metric, colors[rows[0]["strategy"]], curve_limits(curves))
        for rows in rows_by_strategy(curves)
    ]
    return [
        draw_scores(score_rows(info, records, metric), metric, colors),
        draw_costs(cost_rows(info, records), metric, colors),
        *drawn,
    ]


@pytest.fixture
def study_pictures(info: StudyInfo, records: list[RunRecord]) -> list[str]:
    return draw_all(info, records)


def words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]


def test_pictures_are_svg_elements_with_text_as_text(study_pictures: list[str]):
    for svg in study_pictures:
        assert svg.startswith('<svg role="img" aria-label=')
        assert "fine-tuning" in words(study_pictures[0])
        assert "Accuracy, points" in words(svg)


def test_the_same_data_gives_the_same_bytes(
    study_pictures: list[str], info: StudyInfo, records: list[RunRecord]
):
    assert draw_all(info, records) == study_pictures


def test_names_inside_pictures_are_all_referred_to(study_pictures: list[str]):
    for svg in study_pictures:
        for name in re.findall(r' id="([^"]+)"', svg):
            assert f"#{name}" in svg
        for name in re.findall(r"url\(#([^)]+)\)", svg):
            assert f'id="{name}"' in svg


def test_nothing_is_loaded_from_outside(study_pictures: list[str]):
    for svg in study_pictures:
        assert re.findall(r'(?:href|src)="(?!#)', svg) == []


def test_strange_names_are_drawn_literally(info: StudyInfo):
    name = 'a<b> & "c" $x^2$'
    runs = [replace(run_of("fine-tuning", seed), strategy=name) for seed in (0, 1, 2)]
    for svg in draw_all(replace(info, strategies=[name]), runs):
        assert name in words(svg)


def test_a_degenerate_run_off_the_scale_is_written_at_its_edge(study_pictures: list[str]):
    assert "× 50.0" in words(study_pictures[0])


def test_pictures_of_one_run_draw_without_a_warning(
    regression: tuple[StudyInfo, list[RunRecord]],
):
    info, records = regression
    assert len(draw_all(info, records[:1])) == 2
