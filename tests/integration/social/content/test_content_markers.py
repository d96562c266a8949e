"""A deleted target stays deleted in Redis, also after late writes."""

from __future__ import annotations

import pytest

from plaza.core import targets
from plaza.core.reactions import LIKE, hydration, react
from plaza.core.reactions.model import TargetDeleted
from plaza.core.targets import Existence, lookup, markers
from plaza.core.targets.model import Mark
from plaza.core.targets.queues import REFRESHES, TargetRefresh
from plaza.infra.mysql import mysql
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.redis import redis
from tests.support.call_log import record_call
from tests.support.plaza import World
from tests.support.stores import POST, hydrate, marker_key, meta, total


def delete() -> None:
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6)")


def test_a_late_creation_marker_does_not_restore_a_deleted_target(plaza: World) -> None:
    plaza.add(POST)
    delete()
    markers.mark_deleted([POST])
    markers.mark_created(*POST)
    assert lookup.find(*POST) is Existence.DELETED


def test_a_creation_replaces_the_marker_of_a_missing_target(plaza: World) -> None:
    assert lookup.find(*POST) is Existence.MISSING
    plaza.add(POST)
    assert lookup.find(*POST) is Existence.MISSING, "the marker lives up to 30 s"
    markers.mark_created(*POST)
    assert lookup.find(*POST) is Existence.LIVE


def test_a_loaded_target_refuses_reactions_after_its_tombstone(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    delete()
    hydration.tombstone([POST])
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)
    assert total() == 1


def test_a_target_cached_as_live_is_not_hydrated_after_its_deletion(plaza: World) -> None:
    plaza.add(POST)
    react.require_existing(POST)
    assert markers.is_cached_live(*POST)
    delete()
    mark_from_another_process = targets.redis_store.overwrite_marks
    mark_from_another_process({POST: Mark(Existence.DELETED)})
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, True)
    assert meta() == {}


def test_a_target_hydrated_during_its_deletion_is_tombstoned_again(plaza: World) -> None:
    """Given a target that was read as live, deleted, and hydrated after its marker expired."""
    plaza.add(POST)
    delete()
    hydration.tombstone([POST])
    redis.execute("DEL", marker_key())
    hydrate()
    assert react.react(LIKE, POST, 7, True).changed
    hydration.tombstone([POST])  # as the announced refresh does
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)


def test_markers_of_100_targets_take_one_round_trip(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
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
def test_a_body_of_another_format_is_an_invalid_message(body: str) -> None:
    with pytest.raises(InvalidMessage):
        REFRESHES.decode(str(body))


def test_a_refresh_survives_encoding() -> None:
    assert REFRESHES.decode(REFRESHES.encode(TargetRefresh("post", 2**63 - 1))) == TargetRefresh(
        "post", 2**63 - 1
    )
