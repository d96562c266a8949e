"""tombstone.lua: a deleted target refuses reactions; those accepted before are saved."""

from __future__ import annotations

import pytest

from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Target,
    hydration,
    react,
    redis_hydration,
)
from plaza.core.reactions.model import Count, TargetDeleted
from plaza.core.targets import Visibility, markers
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    counter,
    gate,
    meta,
    outbox,
    put,
    read_counts,
    received,
    rows,
    total,
)


def delete(target: Target = POST) -> None:
    mysql.write(
        "UPDATE content SET deleted_at = UTC_TIMESTAMP(6)"
        " WHERE content_type = %s AND content_id = %s",
        target,
    )
    hydration.tombstone([target])


def test_a_tombstone_is_of_all_kinds_of_one_target(plaza: World) -> None:
    put()
    put(kind=COLLECT)
    put(target=Target("post", 12))
    put(target=Target("user", POST.id), kind=FOLLOW)
    hydration.tombstone([POST])
    assert gate(7).code == gate(7, on=False).code == gate(7, kind=COLLECT).code == "DELETED"
    assert gate(7, target=Target("post", 12)).code == "CHANGED"
    assert gate(7, target=Target("user", POST.id), kind=FOLLOW).code == "CHANGED"


def test_a_tombstone_of_a_cold_target_sets_its_marker_only(plaza: World) -> None:
    hydration.tombstone([POST, Target("comment", 5)])
    assert {key.partition("}:")[2] for key in find_keys("*")} == {
        "post:11:existence",
        "comment:5:existence",
    }
    hydration.tombstone([])


def test_reactions_accepted_before_a_deletion_are_counted(plaza: World) -> None:
    plaza.add(POST, author_id=99)
    react.react(LIKE, POST, 7, True)
    react.react(LIKE, POST, 8, True)
    delete()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 9, True)
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, False)
    assert set(outbox()) == {7, 8}
    plaza.queues.drain()
    assert outbox() == {}
    assert {actor for actor, (on, _) in rows().items() if on} == {7, 8}
    assert (counter(), received(), total()) == (2, 2, 2)


def test_a_deleted_target_stays_deleted_after_a_hydration(plaza: World) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    delete()
    redis_hydration.evict_all([(LIKE, POST, None)])
    plaza.queues.drain()
    assert (outbox(), total(), meta()["deleted"]) == ({}, 1, 1), "hydrated because of its outbox"
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)
    assert read_counts([(LIKE, POST)], 7)[0] == [Count(1, True)]


def test_a_deleted_cold_target_is_not_hydrated(plaza: World) -> None:
    plaza.add(POST)
    delete()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)
    assert read_counts([(LIKE, POST)], 7)[0] == [Count(0, False)]
    assert meta() == {}


def test_a_repeated_tombstone_changes_nothing(plaza: World) -> None:
    put()
    hydration.tombstone([POST])
    before = meta()
    hydration.tombstone([POST, POST])
    assert meta() == before


def test_a_target_that_was_deleted_since_its_existence_was_cached_is_not_loaded(
    plaza: World,
) -> None:
    """Given a process that cached the existence, and a Redis that lost target and marker."""
    plaza.add(POST)
    assert react.react(LIKE, POST, 7, True).changed
    delete()
    redis.execute("FLUSHALL")
    markers.cache_live(*POST)
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 8, True)
    assert meta() == {}


def test_a_deleted_target_does_not_return_when_its_text_is_shown(plaza: World) -> None:
    put()
    hydration.tombstone([POST])
    redis_hydration.set_visibility_all([(POST, Visibility(5, None))])
    assert gate(7).code == "DELETED"


def test_a_hidden_target_takes_reactions_again_when_it_is_shown(plaza: World) -> None:
    put()
    redis_hydration.set_visibility_all([(POST, Visibility(2, 99))])
    assert gate(7).code == "HIDDEN"
    redis_hydration.set_visibility_all([(POST, Visibility(3, None))])
    assert gate(7).code == "CHANGED"


def test_an_older_text_does_not_hide_a_target(plaza: World) -> None:
    put()
    for visibility in (Visibility(3, None), Visibility(2, 99)):
        redis_hydration.set_visibility_all([(POST, visibility)])
    assert gate(7).code == "CHANGED"
