import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from totune.report.labels import HEIGHT, place_labels

SHEET = (270.0, 190.0)


def boxes(points, widths, offsets):
    return [
        (x + dx, y + dy, x + dx + width, y + dy + HEIGHT)
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
