"""Lists of Redis beside rows of MySQL: what differs is named, at most five entries of a kind."""

from __future__ import annotations

from plaza.infra.derived.list_state import compare_entries


def test_equal_lists_do_not_differ_in_any_order() -> None:
    first = compare_entries({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert first.differences == ""
    assert first == compare_entries({"b": 2, "a": 1}, {"a": 1, "b": 2})


def test_each_kind_of_difference_is_named() -> None:
    state = compare_entries({"a": 1, "b": 2}, {"b": 3, "c": 4})
    assert state.differences == (
        "in Redis and not in MySQL: a; in MySQL and not in Redis: c; another value: b"
    )


def test_what_was_observed_depends_on_redis_only() -> None:
    cached = {"a": 1, "b": 2}
    observed = compare_entries(cached, {}).observed
    assert observed == compare_entries(cached, cached).observed
    for other in ({"a": 1}, {"a": 1, "b": 3}, {"a": 1, "c": 2}):
        assert compare_entries(other, {}).observed != observed


def test_long_differences_name_five_entries() -> None:
    state = compare_entries({f"entry {n}": n for n in range(9)}, {})
    assert state.differences == (
        "in Redis and not in MySQL: entry 0, entry 1, entry 2, entry 3, entry 4 and 4 more"
    )
