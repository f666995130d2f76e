"""Where names stand beside points, so that none covers another."""

from collections.abc import Iterator, Sequence

HEIGHT = 12.0
Box = tuple[float, float, float, float]  # left, bottom, right, top
Spot = tuple[float, float]


def place_labels(
    points: Sequence[Spot], widths: Sequence[float], sheet: Spot
) -> list[tuple[float, float]]:
    """How far from its point each label's lower left corner stands.

    Each label takes the nearest free place: right of its point, left of it, then further up or
    down. Where all are taken it stands at the first.

    Args:
        points: places on the sheet, in typographic points, as all lengths here.
        widths: of the labels.
        sheet: width and height, which no label leaves.
    """
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    offsets = []
    for (x, y), width in zip(points, widths, strict=True):
        spots = list(_spots(width))
        free = (spot for spot in spots if _is_free((x, y), spot, width, taken, sheet))
        offset = next(free, spots[0])
        taken.append(_box((x, y), offset, width))
        offsets.append(offset)
    return offsets


def _spots(width: float) -> Iterator[Spot]:
    """Offsets in the order of preference."""
    for step in range(8):
        for rise in (4 + step * HEIGHT, -4 - (step + 1) * HEIGHT):
            yield 7.0, rise
            yield -7.0 - width, rise


def _box(point: Spot, offset: Spot, width: float) -> Box:
    left, bottom = point[0] + offset[0], point[1] + offset[1]
    return left, bottom, left + width, bottom + HEIGHT


def _is_free(point: Spot, offset: Spot, width: float, taken: Sequence[Box], sheet: Spot) -> bool:
    left, bottom, right, top = _box(point, offset, width)
    inside = left >= 0 and bottom >= 0 and right <= sheet[0] and top <= sheet[1]
    return inside and not any(
        left < other[2] and other[0] < right and bottom < other[3] and other[1] < top
        for other in taken
    )
