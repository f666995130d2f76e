import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from totune.report import plots
from totune.report.axes import (
    LABEL_HEIGHT,
    draw_level,
    label_axes,
    log_axis,
    mark_phases,
    place_labels,
)

SHEET = (270.0, 190.0)
EPOCHS = [
    {"seed": seed, "epoch": epoch, "dev": 70.0 + 3 * epoch + seed, "low": 69.0, "high": None}
    for seed in (0, 1)
    for epoch in (1, 2, 3)
]


def words(svg: str) -> list[str]:
    return ["".join(node.itertext()) for node in ElementTree.fromstring(svg).iter() if node.text]


def draw_everything() -> list[str]:
    """A picture of each kind."""
    with plots.picture("Curves", 4.7, 3.4) as curves:
        panels = curves.grid(2, sharex=True)
        plots.lines(panels[0], EPOCHS, "epoch", "dev", by="seed", color={0: "red", 1: "blue"})
        plots.lines(panels[1], EPOCHS, "epoch", "dev", band=("low", "high"), step=True)
        mark_phases(panels, [{"phase": "head", "start": 0, "epochs": 3}], upright=True)
        draw_level(panels[1], 75, name="limit")
        label_axes(panels[1], x="Epoch", y="Accuracy, points", ticks=6)
        curves.legend()
    with plots.picture("Costs", 4.7, 3.4) as costs:
        rows = [{"name": "a<b> & $x^2$", "x": 0.3, "y": 1.0, "low": 0.5, "high": 2.0}]
        log_axis(costs.axes, {0.1: "0.1 s", 1: "1 s", 10: "10 s"}, (0.1, 2))
        plots.scatter(costs.axes, rows, "x", "y", interval=("low", "high"), names="name")
    with plots.picture("Scores", 4.7, 2.0) as scores:
        groups = [
            {
                "name": "lora",
                "values": (80.0, 81.0),
                "odd": (50.0,),
                "mean": 70.3,
                "low": None,
                "high": None,
                "quartiles": (80.0, 80.5, 81.0),
            }
        ]
        plots.boxes(scores.axes, groups, color=plots.colors_of(["lora"]), limits=(65.0, 82.0))
    with plots.picture("Chances", 4.7, 2.0) as chances:
        bars = [{"family": "frozen", "share": 40, "low": 20, "high": 60, "prior": 30}]
        plots.bars(chances.axes, bars, "family", "share", interval=("low", "high"), mark="prior")
    with plots.picture("Change", 1, 1) as change:
        cells = [
            {"first": "1", "last": "1", "change": -2.0},
            {"first": "1", "last": "2", "change": -11.4},
            {"first": "2", "last": "2", "change": 0.01},
        ]
        plots.heatmap(
            change, cells, "last", "first", "change", limit=12, label="Percent", low_is_bad=True
        )
    return [curves.svg, costs.svg, scores.svg, chances.svg, change.svg]


@pytest.fixture(scope="module")
def pictures() -> list[str]:
    return draw_everything()


def test_pictures_are_svg_elements_with_a_description_and_text_as_text(pictures: list[str]):
    told = [("0", "head", "limit"), ("a<b> & $x^2$",), ("lora", "× 50.0"), ("frozen",), ("−2.0",)]
    for svg, texts in zip(pictures, told, strict=True):
        assert svg.startswith('<svg role="img" aria-label=')
        assert set(texts) <= set(words(svg))


def test_the_same_rows_give_the_same_bytes(pictures: list[str]):
    assert draw_everything() == pictures


def test_names_inside_pictures_are_all_referred_to(pictures: list[str]):
    for svg in pictures:
        for name in re.findall(r' id="([^"]+)"', svg):
            assert f"#{name}" in svg
        for name in re.findall(r"url\(#([^)]+)\)", svg):
            assert f'id="{name}"' in svg


def test_nothing_is_loaded_from_outside(pictures: list[str]):
    for svg in pictures:
        assert re.findall(r'(?:href|src)="(?!#)', svg) == []


def test_a_heatmap_prints_few_digits_and_no_sign_on_a_zero(pictures: list[str]):
    assert {"−2.0", "−11", "0"} <= set(words(pictures[-1]))


def test_what_is_not_known_leaves_a_gap():
    rows = [{"x": at, "y": None if at == 2 else at} for at in range(5)]
    with plots.picture("Gap", 3, 2) as plot:
        plots.lines(plot.axes, rows, "x", "y")
        (line,) = plot.axes.lines
    assert [str(value) for value in line.get_ydata()] == ["0.0", "1.0", "nan", "3.0", "4.0"]


def test_a_line_of_many_seeds_is_named_once_in_the_legend():
    with plots.picture("Seeds", 3, 2) as plot:
        plots.lines(plot.axes, EPOCHS, "epoch", "dev", by="seed", label="dev")
        plot.legend()
    assert words(plot.svg).count("dev") == 1


def test_names_of_ticks_that_would_touch_are_left_out():
    sizes = {size: f"{size:,}" for size in (1000, 1010, 4000)}
    with plots.picture("Sizes", 4.7, 3) as plot:
        log_axis(plot.axes, sizes, (800, 5000))
    assert {"1,000", "4,000"} <= set(words(plot.svg))
    assert "1,010" not in words(plot.svg)


@pytest.mark.parametrize("upright", [True, False])
def test_names_of_phases_without_room_stand_upright_or_are_left_out(upright: bool):
    rows = [{"phase": f"layer {at}", "start": at, "epochs": 1} for at in range(14)]
    with plots.picture("Phases", 3.1, 2) as plot:
        mark_phases([plot.axes], rows, upright=upright)
    assert ("layer 1" in words(plot.svg)) == upright
    assert ("rotate(-90)" in plot.svg) == upright


def test_every_common_number_of_strategies_has_its_colour():
    names = [str(number) for number in range(len(plots.PALETTE))]
    assert len(set(plots.colors_of(names).values())) == len(plots.PALETTE)
    assert plots.colors_of([*names, "more"])["more"] == plots.PALETTE[0]
    assert plots.colors_of(["a", "a", "b"]) == {"a": plots.PALETTE[0], "b": plots.PALETTE[1]}


def test_matplotlib_is_imported_only_to_draw():
    code = "import totune.report.plots, sys; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def boxes(points, widths, offsets):
    return [
        (x + dx, y + dy, x + dx + width, y + dy + LABEL_HEIGHT)
        for (x, y), width, (dx, dy) in zip(points, widths, offsets, strict=True)
    ]


def overlap(one, other) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_a_point_alone_has_its_label_above_on_the_right():
    assert place_labels([(50, 50)], [60], SHEET) == [(7, 4)]


def test_a_label_without_room_on_the_right_stands_on_the_left():
    assert place_labels([(260, 50)], [60], SHEET) == [(-67, 4)]


def test_labels_of_points_that_nearly_coincide_do_not_cover_each_other():
    points = [(150 + at, 100 + at % 3) for at in range(6)]
    widths = [100.0] * 6
    found = boxes(points, widths, place_labels(points, widths, SHEET))
    assert not any(overlap(one, other) for one, other in itertools.combinations(found, 2))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(100, 170), st.floats(20, 170)), min_size=1, max_size=4))
def test_labels_stay_on_the_sheet(points):
    widths = [80.0] * len(points)
    for left, bottom, right, top in boxes(points, widths, place_labels(points, widths, SHEET)):
        assert left >= 0
        assert bottom >= 0
        assert right <= SHEET[0]
        assert top <= SHEET[1]
