"""Pseudonyms of visitors."""

from __future__ import annotations

from datetime import date

import pytest

from plaza.core.reach.model import hash_visitor, monday_of


def test_visitors_are_distinct_pseudonyms() -> None:
    visitors = [
        hash_visitor(7, None, "203.0.113.7"),
        hash_visitor(8, None, "203.0.113.7"),
        hash_visitor(None, None, "203.0.113.7"),
        hash_visitor(None, None, "203.0.113.8"),
        hash_visitor(None, None, "2001:db8::1"),
        hash_visitor(None, None, "2001:db8:0:1::1"),
        hash_visitor(None, "a", "203.0.113.7"),
        hash_visitor(None, "b", "203.0.113.7"),
    ]
    assert len(set(visitors)) == 8
    assert hash_visitor(7, "a", "203.0.113.9") == visitors[0], "a user is one visitor everywhere"
    assert hash_visitor(None, None, "2001:db8::ffff") == visitors[4], "a /64 is one network"
    assert hash_visitor(None, "a", "198.51.100.1") == visitors[6], "an id is not of a network"
    assert all(len(visitor) == 16 and int(visitor, 16) >= 0 for visitor in visitors), (
        "16 hex digits"
    )


@pytest.mark.parametrize("day", ["2026-11-16", "2026-11-19", "2026-11-22"])
def test_a_week_begins_on_monday(day: str) -> None:
    assert monday_of(date.fromisoformat(day)) == date(2026, 11, 16)
