"""The grid of cells: numbers as Redis encodes places, and bounds that leave no place out."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from plaza.commerce.shops import cells
from plaza.commerce.shops.cells import CELL_SIDE
from plaza.commerce.shops.model import MAX_LATITUDE, MAX_LONGITUDE, Area, Place

longitudes = st.floats(-MAX_LONGITUDE, MAX_LONGITUDE)
latitudes = st.floats(-MAX_LATITUDE, MAX_LATITUDE)


def distance_m(start: Place, end: Place) -> float:
    """Return the distance as GEO commands of Redis measure it."""
    half_y = math.sin(math.radians(start.y - end.y) / 2)
    half_x = math.sin(math.radians(start.x - end.x) / 2)
    cosines = math.cos(math.radians(start.y)) * math.cos(math.radians(end.y))
    return 2 * 6_372_797.560856 * math.asin(min(1, math.sqrt(half_y**2 + cosines * half_x**2)))


@given(longitudes, latitudes, st.integers(1, 50_000), st.floats(0, 1), st.floats(0, 2 * math.pi))
@example(180.0, 0.0, 50_000, 0.99, 1.57)
@example(-180.0, MAX_LATITUDE, 50_000, 0.99, 3.0)
@example(13.4, -85.0, 50_000, 1.0, 0.5)
def test_the_cell_of_each_place_in_an_area_is_found_within_its_bounds(
    x: float, y: float, radius_m: int, part: float, angle: float
) -> None:
    centre = Place(x, y)
    north = math.degrees(part * radius_m * math.cos(angle) / 6_372_797.560856)
    other_y = max(-MAX_LATITUDE, min(MAX_LATITUDE, y + north))
    east = math.degrees(part * radius_m * math.sin(angle) / 6_372_797.560856)
    other_x = (x + east / math.cos(math.radians(other_y)) + 180) % 360 - 180
    place = cells.fit(Place(other_x, other_y))
    metres = distance_m(centre, place)
    if metres > radius_m:
        return
    results = {cell.number: cell for cell in cells.find_cells(Area(centre, radius_m, None), -1)}
    cell = results[cells.cell_of(place)]
    assert cell.nearest <= metres * 10_000 <= cell.farthest


@given(longitudes, latitudes)
def test_a_cell_has_the_scores_of_its_places(x: float, y: float) -> None:
    """The number of a cell is the number of its lowest corner, by the same interleaving."""
    number = cells.cell_of(cells.fit(Place(x, y)))
    assert 0 <= number < (2**26 // CELL_SIDE) ** 2


def test_cells_are_sorted_and_behind_a_cursor_left_out() -> None:
    area = Area(Place(13.4, 52.52), 50_000, None)
    whole = cells.find_cells(area, -1)
    assert [cell.nearest for cell in whole] == sorted(cell.nearest for cell in whole)
    ahead = cells.find_cells(area, 30_000 * 10_000)
    assert ahead == [cell for cell in whole if cell.farthest >= 30_000 * 10_000]
    assert 0 < len(ahead) < len(whole) < 600


def test_an_area_near_a_pole_has_a_bounded_number_of_cells() -> None:
    result = cells.find_cells(Area(Place(0.0, MAX_LATITUDE), 50_000, None), -1)
    assert len(result) == len({cell.number for cell in result}) < 4_000
