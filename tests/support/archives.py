"""A reaction log of many days, and an S3 in this process for its archives."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from moto import mock_aws

from local.stack.servers import connect_mysql
from plaza.core.reaction_log import model as days
from plaza.core.reaction_log import mysql_log
from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Kind, Target
from plaza.core.reactions import mysql_log as log_writes
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.targets.types import EXTERNAL
from plaza.infra.aws import objects
from plaza.infra.mysql import mysql
from tests.support.plaza import World, forget

BUCKET = "plaza-archive"
TODAY = date(2026, 11, 21)
DAY_US = 86_400_000_000
Known = set[tuple[str, int, str, int, int, int]]
"""Events as (type, id, kind, actor, version, state)."""


@pytest.fixture
def s3(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of an S3 with an empty bucket; the log has one partition, as after a deploy."""
    with mock_aws():
        monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
        monkeypatch.setenv("PLAZA_ARCHIVE_BUCKET", BUCKET)
        monkeypatch.setattr(days, "DAYS_AHEAD", 2)  # creating a partition is slow
        forget()
        client = objects.client()
        client.create_bucket(Bucket=BUCKET)
        merge_partitions()
        yield client
        merge_partitions()
    forget()


def merge_partitions() -> None:
    """Merge all partitions into one, as the migrations create it."""
    if len(mysql_log.read_partitions()) == 1:
        return
    names = ", ".join(partition.name for partition in mysql_log.read_partitions())
    mysql.write(
        f"ALTER TABLE reaction_log REORGANIZE PARTITION {names} INTO"
        " (PARTITION p_max VALUES LESS THAN (MAXVALUE))"
    )


def at(days_ago: int, micros: int = 0) -> int:
    """Return a version ``days_ago`` before TODAY."""
    midnight = datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=UTC)
    return int((midnight - timedelta(days=days_ago)).timestamp()) * 1_000_000 + micros


def day(days_ago: int) -> date:
    return TODAY - timedelta(days=days_ago)


def log_event(
    actor: int, version_us: int, on: bool = True, target: Target | None = None, kind: Kind = LIKE
) -> ReactionEvent:
    return ReactionEvent(
        ReactionKey(*(target or Target("post", 1)), kind.name, actor), on, version_us
    )


def random_history(draw: random.Random, count: int, days: int = 18) -> list[ReactionEvent]:
    """Draw events of the last ``days`` in random order: few actors and targets, all kinds."""
    events = []
    for _ in range(count):
        kind = draw.choice((LIKE, LIKE, COLLECT, FOLLOW))
        target = Target(draw.choice(sorted(kind.targets)), draw.randint(1, 5))
        version_us = at(draw.randint(0, days), draw.randint(0, DAY_US - 1))
        key = ReactionKey(*target, kind.name, draw.randint(1, 6))
        events.append(ReactionEvent(key, draw.random() < 0.6, version_us))
    return events


def write_content(authors: Sequence[int] = (90, 91)) -> None:
    """Insert posts, comments and reviews 1 to 5; ``authors`` alternate."""
    for number, target_type in enumerate(sorted(LIKE.targets)):
        for target_id in range(1, 6):
            author = authors[(number + target_id) % len(authors)]
            if target_type in EXTERNAL:
                mysql.write(
                    "INSERT INTO external_target (type, id, external_id, owner_id)"
                    " VALUES (%s, %s, %s, %s)",
                    (target_type, target_id, target_id, author),
                )
                continue
            mysql.write(
                "INSERT INTO content (content_type, content_id, author_id) VALUES (%s, %s, %s)",
                (target_type, target_id, author),
            )
    mysql.write(
        "INSERT INTO user_counter (user_id, posts_total, version) SELECT author_id, COUNT(*), 1"
        " FROM content WHERE content_type = 'post' GROUP BY author_id"
    )


def roll_up() -> None:
    """Move the watermark to the end of the log, as after a roll-up."""
    mysql.write(
        "REPLACE INTO watermark (name, seq) VALUES ('likes', %s)",
        (log_writes.read_log_head(),),
    )


def events_in_mysql(mysql_url: str) -> Known:
    with connect_mysql(mysql_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT target_type, target_id, kind, actor_id, version, state FROM reaction_log"
        )
        return set(cursor.fetchall())


def known(events: Sequence[ReactionEvent]) -> Known:
    return {
        (*log_event.key, log_event.effective_version_us, int(log_event.on)) for log_event in events
    }


def totals_of(events: Sequence[ReactionEvent], until_us: int) -> dict[tuple[Target, str], int]:
    """Return the expected totals by target and kind after ``events`` up to a version."""
    newest: dict[ReactionKey, ReactionEvent] = {}
    for event in events:
        last = newest.get(event.key)
        if event.effective_version_us <= until_us and (
            last is None or last.effective_version_us < event.effective_version_us
        ):
            newest[event.key] = event
    totals: dict[tuple[Target, str], int] = {}
    for key, event in newest.items():
        counter = key.target, key.kind
        totals[counter] = totals.get(counter, 0) + event.on
    return totals
