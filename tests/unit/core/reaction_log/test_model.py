"""When a day of the log is closed, which partitions are planned, and the format of an archive."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest

from plaza.core.reaction_log.model import (
    MANIFEST,
    PROGRESS,
    ArchiveLine,
    ArchivePart,
    ArchiveProgress,
    Checksum,
    LoggedEvent,
    Manifest,
    Partition,
    checksum,
    is_closed,
    last_key,
    partition_of,
    plan_days,
    read_lines,
)
from plaza.core.reactions.model import MAX_ID

TODAY = date(2026, 11, 21)
ROWS = [
    LoggedEvent("post", 7, "like", 3, 1_700_000_000_000_001, 1, 1),
    LoggedEvent("comment", MAX_ID, "like", MAX_ID, 2**53 - 1, 0, 0),
    LoggedEvent("user", 1, "follow", 2, 1, 0, -1),
]


def line_of(row: LoggedEvent) -> ArchiveLine:
    """Render a row as MySQL does."""
    fields = {
        "target_type": row.target_type,
        "target_id": row.target_id,
        "kind": row.kind,
        "actor_id": row.actor_id,
        "state": row.state,
        "version": row.version_us,
        "change": row.change,
        "commit": 12,
    }
    return ArchiveLine(json.dumps(fields, separators=(",", ":")), row.version_us)


LINES = [line_of(row) for row in ROWS]


def days_ago(count: int) -> date:
    return TODAY - timedelta(days=count)


@pytest.mark.parametrize(("ago", "closed"), [(9, True), (100, True), (8, False), (0, False)])
def test_a_day_is_closed_when_it_is_older_than_eight_days(ago: int, closed: bool) -> None:
    assert is_closed(partition_of(days_ago(ago)), TODAY) is closed


def test_the_catch_all_partition_is_never_closed() -> None:
    assert not is_closed(Partition("p_max", None), TODAY)


def test_a_partition_is_named_after_its_last_day() -> None:
    assert partition_of(TODAY) == ("p20261121", date(2026, 11, 22))


def test_today_and_the_next_fourteen_days_are_planned() -> None:
    days = plan_days(None, None, TODAY)
    assert (days[0], days[-1], len(days)) == (TODAY, TODAY + timedelta(days=14), 15)
    assert plan_days(days[-1] + timedelta(days=1), None, TODAY) == []
    assert plan_days(days[-1], None, TODAY) == [days[-1]]
    assert plan_days(days[-1] + timedelta(days=100), None, TODAY) == []


def test_missed_days_are_planned() -> None:
    assert plan_days(days_ago(3), None, TODAY)[0] == days_ago(3)


@pytest.mark.parametrize("oldest", [days_ago(61), date(1970, 1, 1)])
def test_days_older_than_sixty_share_the_first_partition(oldest: date) -> None:
    assert plan_days(None, oldest, TODAY)[0] == days_ago(60)
    assert plan_days(oldest, None, TODAY)[0] == days_ago(60)


def test_events_of_the_future_need_no_partition() -> None:
    assert plan_days(None, date(2255, 1, 1), TODAY)[0] == TODAY


def test_lines_are_rows_of_the_log() -> None:
    assert read_lines("".join(f"{line.text}\n" for line in LINES)) == ROWS
    assert read_lines("") == []


@pytest.mark.parametrize("text", ["x\n", '{"version":1}\n', "[]\n", '{"target_type":"post"'])
def test_an_unreadable_line_raises(text: str) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        read_lines(text)


def test_a_checksum_depends_on_each_line_and_not_on_their_order() -> None:
    assert checksum(LINES) == checksum(reversed(LINES))
    assert checksum(LINES).events == 3
    item = LINES[0].text
    others = [
        item.replace("post", "user"),
        item.replace("7", "8", 1),
        item.replace('"change":1', '"change":0'),
    ]
    assert len({checksum([ArchiveLine(text, 1)]) for text in [item, *others]}) == 4


def test_a_manifest_adds_up_its_parts_and_survives_json() -> None:
    parts = tuple(
        ArchivePart(
            f"part-{n}", Checksum(3, 10 * n), 100 + n, "ab" * 32, 5 + n, 9 + n, last_key(LINES)
        )
        for n in range(2)
    )
    manifest = Manifest(TODAY, parts)
    assert manifest.sum == (6, 10)
    assert MANIFEST.decode(MANIFEST.encode(manifest)) == manifest
    fields = json.loads(MANIFEST.encode(manifest))
    expected = {"events": 6, "bytes": 201, "min_version": 5, "max_version": 10}
    assert fields | expected == fields
    progress = ArchiveProgress(Checksum(7, 7), parts)
    assert PROGRESS.decode(PROGRESS.encode(progress)) == progress
