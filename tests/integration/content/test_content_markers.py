"""What was deleted stays deleted in Redis, whoever is late."""

from __future__ import annotations

import pytest

from plaza import targets
from plaza.infra import mysql, redis
from plaza.infra.messages import InvalidMessage
from plaza.reactions import LIKE, react
from plaza.reactions.model import TargetDeleted
from plaza.targets import Existence, lookup, markers
from plaza.targets.queues import TargetRefresh
from tests.support.call_log import record_call
from tests.support.plaza import World
from tests.support.stores import POST, hydrate, marker_key, meta, total


def delete() -> None:
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6)")


def test_who_is_late_with_live_does_not_bring_back_what_is_gone(plaza: World) -> None:
    plaza.add(POST)
    delete()
    markers.mark_deleted([POST])
    markers.mark_created(*POST)
    assert lookup.find(*POST) is Existence.DELETED


def test_a_marker_that_says_none_gives_way_to_what_was_made(plaza: World) -> None:
    assert lookup.find(*POST) is Existence.MISSING
    plaza.add(POST)
    assert lookup.find(*POST) is Existence.MISSING, "for half a minute at most"
    markers.mark_created(*POST)
    assert lookup.find(*POST) is Existence.LIVE


def test_a_hot_target_refuses_once_it_is_buried(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    delete()
    react.tombstone([POST])
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)
    assert total() == 1


def test_what_this_process_saw_lately_is_not_enough_to_make_it_hot_again(plaza: World) -> None:
    plaza.add(POST)
    react.require_existing(POST)
    assert markers.is_cached_live(*POST)
    delete()
    other_process = targets.redis_store.overwrite_marks
    other_process([POST], Existence.DELETED)
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, True)
    assert meta() == {}


def test_who_brought_a_target_back_while_it_was_deleted_is_put_right_later(plaza: World) -> None:
    """It was read as live, then deleted, then loaded when its marker had expired."""
    plaza.add(POST)
    delete()
    react.tombstone([POST])
    redis.execute("DEL", marker_key())
    hydrate()
    assert react.react(LIKE, POST, 7, True).changed
    react.tombstone([POST])  # as the announced refresh does
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)


def test_markers_of_many_take_one_round_trip(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    run_all = redis.run_all
    monkeypatch.setattr(redis, "run_all", lambda *a: record_call(sent, a, run_all(*a)))
    markers.mark_all_created([("post", n) for n in range(1, 101)])
    markers.mark_deleted([("post", n) for n in range(1, 101)])
    assert len(sent) == 2


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "7",
        '"post"',
        "{}",
        '{"type": "post"}',
        '{"type": "post", "id": "7"}',
        '{"type": "post", "id": 0}',
        '{"type": "post", "id": true}',
        '{"type": "post", "id": 1.0}',
        '{"type": "post", "id": 9223372036854775808}',
        '{"type": "shop", "id": 7}',
        '{"type": ["post"], "id": 7}',
        '{"type": {"a": 1}, "id": 7}',
        "[" * 100_000,
    ],
    ids=lambda body: body[:40] or "empty",
)
def test_what_is_no_refresh_is_a_bad_record(body: str) -> None:
    with pytest.raises(InvalidMessage):
        TargetRefresh.from_json(body)


def test_a_refresh_comes_back_as_it_went() -> None:
    assert TargetRefresh.from_json(TargetRefresh("post", 2**63 - 1).to_json()) == (
        "post",
        2**63 - 1,
    )
