"""A post and a comment of one author, whose unread counter is on, and reactions that a consumer
saves."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from plaza.core.reactions import Target, persist
from plaza.core.reactions.model import ReactionEvent
from plaza.infra.mysql import mysql
from tests.support.consumers import make_event
from tests.support.plaza import World
from tests.support.stores import add_users
from tests.support.unread import OWNER, check_unread, turn_on

POST, COMMENT, USER = Target("post", 11), Target("comment", 21), Target("user", 98)
_times = count(1)


@pytest.fixture
def world(plaza: World) -> Iterator[World]:
    """Check the invariants of all unread counters at the end of each test."""
    plaza.add(POST, COMMENT, author_id=OWNER)
    add_users(7, OWNER)
    turn_on()
    yield plaza
    check_unread()


def like(*actors: int, target: Target = POST) -> list[ReactionEvent]:
    """Save likes in one transaction; return their events."""
    events = [make_event(actor, at=next(_times), target=target) for actor in actors]
    persist.save(events)
    return events


def unlike(*actors: int, target: Target = POST) -> None:
    """Save the end of likes in one transaction."""
    persist.save([make_event(actor, False, next(_times), target) for actor in actors])


def notified_at(actor: int, target: Target = POST) -> int:
    """Return the notified_sequence of a like."""
    [(sequence,)] = mysql.fetch_all(
        "SELECT notified_sequence FROM reaction WHERE target_type = %s AND target_id = %s"
        " AND kind = 'like' AND actor_id = %s",
        (*target, actor),
    )
    return int(sequence)
