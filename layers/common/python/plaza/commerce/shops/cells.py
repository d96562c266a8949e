"""The grid of cells in which Redis stores places: which cell has a place, which cells an area has.

A cell is a square of ``CELL_SIDE`` steps of the GEO encoding of Redis, about 9.8 by 4.6 km at the
equator. Its places have the scores from ``cell * CELL_SIDE**2`` on. No I/O.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from plaza.commerce.shops.model import MAX_LATITUDE, MAX_LONGITUDE, Area, Place

_STEPS = 2**26  # of a GEO set, on each side of the map
CELL_SIDE = 2**14
_CELLS = _STEPS // CELL_SIDE
_GLOBE_M = 6_372_797.560856
SLACK = 10  # tenths of a millimetre: exceeds the rounding errors of the bounds of cells
# The eastern and northern edges of the map lie beyond the last cell of a GEO set.
_MAX_GRID_X = MAX_LONGITUDE - MAX_LONGITUDE / 2**26
_MAX_GRID_Y = MAX_LATITUDE - MAX_LATITUDE / 2**26


class Cell(NamedTuple):
    """A cell: its number, its column and row, and bounds of the distances in it, in tenths of a
    millimetre."""

    number: int
    column: int
    row: int
    nearest: int
    farthest: int


def fit(place: Place) -> Place:
    """Return the place within the grid."""
    return Place(min(place.x, _MAX_GRID_X), min(place.y, _MAX_GRID_Y))


def cell_of(place: Place) -> int:
    """Return the number of the cell in which Redis stores a place of the grid."""
    column, row = _steps_of(place)
    return _interleave(row // CELL_SIDE, column // CELL_SIDE)


def score_of(place: Place) -> int:
    """Return the score with which Redis stores a place of the grid."""
    column, row = _steps_of(place)
    return _interleave(row, column)


def _steps_of(place: Place) -> tuple[int, int]:
    """Return the column and the row of a place, in steps."""
    return (
        int((place.x + MAX_LONGITUDE) / (2 * MAX_LONGITUDE) * _STEPS),
        int((place.y + MAX_LATITUDE) / (2 * MAX_LATITUDE) * _STEPS),
    )


def find_cells(area: Area, after: int) -> list[Cell]:
    """Return the cells that may have places of an area farther than ``after``, nearest first."""
    x, y = area.place
    cos_y, limit = math.cos(math.radians(y)), area.radius_m * 10_000
    rows = [(row, *_row_bounds(y, row)) for row in _rows(y, area.radius_m)]
    cells = []
    for column in _columns(x, y, area.radius_m):
        near_x, far_x = _column_bounds(x, column)
        for row, near_y, far_y, min_cos, max_cos in rows:
            nearest = int(_metres(near_y + cos_y * min_cos * near_x) * 10_000) - SLACK
            farthest = int(_metres(far_y + cos_y * max_cos * far_x) * 10_000) + SLACK
            if nearest <= limit and farthest >= after:
                cells.append(Cell(_interleave(row, column), column, row, nearest, farthest))
    return sorted(cells, key=lambda cell: cell.nearest)


def _rows(y: float, radius_m: float) -> range:
    reach = math.degrees(radius_m / _GLOBE_M) + 1e-6
    first, last = ((y + d + MAX_LATITUDE) / (2 * MAX_LATITUDE) * _CELLS for d in (-reach, reach))
    return range(max(0, math.floor(first)), min(_CELLS - 1, math.floor(last)) + 1)


def _columns(x: float, y: float, radius_m: float) -> Iterator[int]:
    """Yield the columns that a circle may touch, around the date line too."""
    angle = radius_m / _GLOBE_M
    cosine = math.cos(math.radians(y))
    reach = math.degrees(math.asin(min(1.0, math.sin(angle) / cosine))) + 1e-6
    first, last = (
        math.floor((x + d + MAX_LONGITUDE) / (2 * MAX_LONGITUDE) * _CELLS) for d in (-reach, reach)
    )
    for column in range(first, min(last, first + _CELLS - 1) + 1):
        yield column % _CELLS


def _column_bounds(x: float, column: int) -> tuple[float, float]:
    """Return the haversines from a longitude to the nearer and the farther side of a column."""
    half = MAX_LONGITUDE / _CELLS
    middle = column / _CELLS * 2 * MAX_LONGITUDE - MAX_LONGITUDE + half - x
    middle = abs(middle - 360 * math.floor(middle / 360 + 0.5))
    return _haversine(0, max(0.0, middle - half)), _haversine(0, min(180.0, middle + half))


def _row_bounds(y: float, row: int) -> tuple[float, float, float, float]:
    """Return the haversines from a latitude to the nearer and the farther side of a row, and the
    smallest and the largest cosine in it."""
    south, north = _latitude(row), _latitude(row + 1)
    cosines = math.cos(math.radians(south)), math.cos(math.radians(north))
    max_cos = 1.0 if south < 0 < north else max(cosines)
    near = _haversine(y, min(max(y, south), north))
    return near, max(_haversine(y, south), _haversine(y, north)), min(cosines), max_cos


def _latitude(row: int) -> float:
    return row / _CELLS * 2 * MAX_LATITUDE - MAX_LATITUDE


def _haversine(start: float, end: float) -> float:
    half = math.sin(math.radians(start - end) / 2)
    return half * half


def _metres(haversine: float) -> float:
    return 2 * _GLOBE_M * math.asin(math.sqrt(min(haversine, 1.0)))


def _interleave(row: int, column: int) -> int:
    number = 0
    for bit in range(26):
        number |= (row >> bit & 1) << 2 * bit | (column >> bit & 1) << 2 * bit + 1
    return number
