"""What was deleted stays deleted in Redis, whoever is late."""

from __future__ import annotations

import pytest

from plaza import targets
from plaza.infra import mysql, redis
from plaza.infra.messages import BadRecord
from plaza.reactions import LIKE, reacting
from plaza.reactions.reactions import TargetGone
from plaza.targets import There, finding, marking
from plaza.targets.queues import Refresh
from tests.support.looking import POST, hydrate, marker_key, meta, total
from tests.support.plaza import World
from tests.support.recording import recorded


def delete() -> None:
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6)")


def test_who_is_late_with_live_does_not_bring_back_what_is_gone(plaza: World) -> None:
    plaza.add(POST)
    delete()
    marking.mark_gone([POST])
    marking.mark_made(*POST)
    assert finding.find(*POST) is There.GONE


def test_a_marker_that_says_none_gives_way_to_what_was_made(plaza: World) -> None:
    assert finding.find(*POST) is There.NONE
    plaza.add(POST)
    assert finding.find(*POST) is There.NONE, "for half a minute at most"
    marking.mark_made(*POST)
    assert finding.find(*POST) is There.LIVE


def test_a_hot_target_refuses_once_it_is_buried(plaza: World) -> None:
    plaza.add(POST)
    reacting.react(LIKE, POST, 7, True)
    delete()
    reacting.tombstone([POST])
    with pytest.raises(TargetGone):
        reacting.react(LIKE, POST, 8, True)
    assert total() == 1


def test_what_this_process_saw_lately_is_not_enough_to_make_it_hot_again(plaza: World) -> None:
    plaza.add(POST)
    reacting.require_there(POST)
    assert marking.seen_lately(*POST)
    delete()
    other_process = targets.redis_targets.mark_for_sure
    other_process([POST], There.GONE)
    with pytest.raises(TargetGone):
        reacting.react(LIKE, POST, 7, True)
    assert meta() == {}


def test_who_brought_a_target_back_while_it_was_deleted_is_put_right_later(plaza: World) -> None:
    """It was read as live, then deleted, then loaded when its marker had expired."""
    plaza.add(POST)
    delete()
    reacting.tombstone([POST])
    redis.execute("DEL", marker_key())
    hydrate()
    assert reacting.react(LIKE, POST, 7, True).changed
    reacting.tombstone([POST])  # as the announced refresh does
    with pytest.raises(TargetGone):
        reacting.react(LIKE, POST, 8, True)


def test_markers_of_many_take_one_round_trip(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []
    run_all = redis.run_all
    monkeypatch.setattr(redis, "run_all", lambda *a: recorded(sent, a, run_all(*a)))
    marking.mark_all_made([("post", n) for n in range(1, 101)])
    marking.mark_gone([("post", n) for n in range(1, 101)])
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
    with pytest.raises(BadRecord):
        Refresh.from_json(body)


def test_a_refresh_comes_back_as_it_went() -> None:
    assert Refresh.from_json(Refresh("post", 2**63 - 1).to_json()) == ("post", 2**63 - 1)
