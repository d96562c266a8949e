"""docs/how-long.md has the durations of the code and of the template, and all of them."""

from __future__ import annotations

import re

import pytest

from tools.how_long import PAGE, ROW, Unknown, find, render


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(PAGE.read_text()), "run `make docs`"


def test_a_duration_without_a_row_is_found() -> None:
    page = ROW.sub(lambda row: "" if "HYDRATE_WAIT_S" in row[0] else row[0], PAGE.read_text())
    with pytest.raises(Unknown, match=r"no row has core\.reactions\.hydration\.HYDRATE_WAIT_S"):
        render(page)


def test_a_row_without_a_duration_is_found() -> None:
    with pytest.raises(Unknown, match=r"gone_S does not exist"):
        render(PAGE.read_text().replace("HYDRATE_WAIT_S", "gone_S"))


def test_a_constant_that_moved_is_found_by_its_module() -> None:
    name, duration = find("reactions.store.hydration.HYDRATE_WAIT_S")
    assert (name, duration) == ("core.reactions.hydration.HYDRATE_WAIT_S", "0.5 s")


def test_a_constant_that_is_gone_is_not_taken_for_another() -> None:
    page = PAGE.read_text().replace("cache.WAIT_S", "gone.MAX_AGE_S")
    with pytest.raises(Unknown, match=r"two rows|does not exist"):
        render(page)


def test_each_row_says_what_happens_then() -> None:
    assert len(ROW.findall(PAGE.read_text())) > 100
    assert not re.findall(r"^\|.*\|\s*\|$", PAGE.read_text(), re.MULTILINE)
