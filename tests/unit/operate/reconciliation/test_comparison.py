"""Comparisons: what differs, what may be in transit and what is unreadable. No servers."""

from __future__ import annotations

from typing import Any

import pytest

from plaza.core import counters
from plaza.core.counters import UserCounter
from plaza.core.reactions.drift import (
    MysqlState,
    compare_comment_total,
    compare_target,
    compare_user_totals,
)
from plaza.core.reactions.model import CachedTarget, Fingerprint, Unreadable
from plaza.infra.derived.comparisons import compare_counts
from plaza.infra.queues.messages import InvalidMessage
from plaza.operate.reconciliation import ComparePart, RepairFindings
from plaza.operate.reconciliation.queues import COMPARISONS, REPAIRS

ACTORS = Fingerprint(2, 15, 30)
CACHED = CachedTarget(
    base=2, db_version=7, delta=0, outbox_count=0, entries=0, complete=True, bloom=0, floor_us=0,
    blocked=False, newest=ACTORS,
)  # fmt: skip
RECORDED = MysqlState(True, 2, 7, ACTORS)
COUNTER = UserCounter(1, 2, 3, 4, 5, 9)


def test_counters_are_compared_in_both_directions() -> None:
    counters = {(1, "like"): 5, (2, "like"): 1, (4, "like"): 3}
    rows = {(1, "like"): 4, (3, "collect"): 1, (4, "like"): 3}
    assert [
        (f.subject.what, f.subject.id, f.details) for f in compare_counts("post", counters, rows)
    ] == [
        ("like", 1, "counter 5, rows 4"),
        ("like", 2, "counter 1, rows 0"),
        ("collect", 3, "counter 0, rows 1"),
    ]


@pytest.mark.parametrize(
    ("cached", "recorded", "reasons", "is_conclusive"),
    [
        ({}, {}, set(), True),
        ({"db_version": 5}, {}, set(), False),
        ({"base": 3}, {}, {"total"}, True),
        ({"base": 3, "db_version": 5}, {}, {"total"}, False),
        ({"newest": Fingerprint(2, 15, 31)}, {}, {"members"}, True),
        ({"db_version": 8}, {}, {"ahead"}, True),
        ({"db_version": 8, "base": 3}, {}, {"ahead", "total"}, True),
        ({"outbox_count": 1}, {}, {"stuck"}, True),
        ({"outbox_count": -1}, {}, {"stuck"}, True),
        ({}, {"has_counter": False, "total": 0, "version": 0}, {"unknown"}, True),
    ],
)
def test_a_target_that_differs_has_a_reason(
    cached: dict[str, Any], recorded: dict[str, Any], reasons: set[str], is_conclusive: bool
) -> None:
    comparison = compare_target(CACHED._replace(**cached), RECORDED._replace(**recorded))
    assert set(comparison.reasons) == reasons
    assert comparison.is_conclusive is is_conclusive


def test_pending_entries_are_not_compared() -> None:
    pending = CACHED._replace(outbox_count=1, entries=1, delta=1)
    assert compare_target(pending, RECORDED) == compare_target(CACHED, RECORDED)
    assert set(compare_target(pending._replace(base=9), RECORDED).reasons) == {"total"}


def test_a_target_without_reactions_needs_no_counter() -> None:
    empty = Fingerprint(0, 0, 0)
    cached = CACHED._replace(base=0, db_version=0, newest=empty)
    assert not compare_target(cached, MysqlState(False, 0, 0, empty)).reasons


def test_an_unreadable_target_differs() -> None:
    assert set(compare_target(Unreadable("total x"), RECORDED).reasons) == {"unreadable"}


@pytest.mark.parametrize(
    ("version", "shown", "reasons", "is_conclusive"),
    [
        ("9", COUNTER, set(), True),
        ("8", COUNTER._replace(version=8), set(), False),
        ("8", COUNTER._replace(version=8, posts_total=2), {"projection"}, False),
        ("9", COUNTER._replace(posts_total=2), {"projection"}, True),
        ("10", COUNTER._replace(version=10), {"ahead"}, True),
        ("10", COUNTER, {"unreadable"}, True),
        ("new", COUNTER, {"unreadable"}, True),
        ("", COUNTER, {"unreadable"}, True),
        (str(2**60), COUNTER._replace(version=2**60), {"unreadable"}, True),
    ],
)
def test_user_totals_that_differ_have_a_reason(
    version: str, shown: UserCounter, reasons: set[str], is_conclusive: bool
) -> None:
    comparison = compare_user_totals((version, counters.USER_COUNTER.encode(shown)), COUNTER)
    assert (set(comparison.reasons), comparison.is_conclusive) == (reasons, is_conclusive)


@pytest.mark.parametrize("value", ["", "{", "[]", "{}", "null", '{"likes": 1}', '"version"', "7"])
def test_an_unreadable_projection_of_a_user_differs(value: str) -> None:
    assert set(compare_user_totals(("9", value), COUNTER).reasons) == {"unreadable"}


@pytest.mark.parametrize(
    ("cached", "reasons"),
    [
        (("9", "4"), set()),
        (("8", "4"), set()),
        (("9", "5"), {"projection"}),
        (("9", "-1"), {"projection"}),
        (("10", "4"), {"ahead"}),
        (("9", "many"), {"unreadable"}),
        (("9", "\u0664"), {"unreadable"}),
    ],
)
def test_comments_that_differ_have_a_reason(cached: tuple[str, str], reasons: set[str]) -> None:
    assert set(compare_comment_total(cached, 4, 9).reasons) == reasons


def test_a_decoded_message_equals_the_encoded_one() -> None:
    part, repairs = ComparePart(3, "targets:post"), RepairFindings((1, 2))
    assert COMPARISONS.decode(COMPARISONS.encode(part)) == part
    assert REPAIRS.decode(REPAIRS.encode(repairs)) == repairs


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{}", '{"run":1}', '{"run":"1","part":"users"}', '{"run":0,"part":"users"}',
     '{"run":true,"part":"users"}', '{"run":1,"part":""}', '{"run":1,"part":7}',
     '{"run":1,"part":"\u00e9"}'],
)  # fmt: skip
def test_an_invalid_compare_part_message_is_refused(body: str) -> None:
    with pytest.raises(InvalidMessage):
        COMPARISONS.decode(body)


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{}", '{"findings":[]}', '{"findings":7}', '{"findings":["1"]}',
     '{"findings":[0]}', '{"findings":[true]}', f'{{"findings":{list(range(1, 102))}}}'],
)  # fmt: skip
def test_an_invalid_repair_findings_message_is_refused(body: str) -> None:
    with pytest.raises(InvalidMessage):
        REPAIRS.decode(body)
