"""The existence of a target is checked, also when Redis has a total of the target."""

from __future__ import annotations

import pytest

from plaza.core import targets
from plaza.core.reactions import FOLLOW, LIKE, Target, queries, react
from plaza.core.reactions.model import TargetDeleted, TargetMissing
from plaza.core.targets import Existence, lookup, markers, mysql_store
from plaza.core.targets.model import Mark
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import clear_caches
from tests.support.content_api import counting_work
from tests.support.plaza import World
from tests.support.stores import POST, add_users, counter, marker_key


def test_a_target_with_a_loaded_total_may_not_exist(plaza: World) -> None:
    missing = Target("post", 404)
    queries.read_counts([(LIKE, missing)], 7)
    with pytest.raises(TargetMissing):
        react.react(LIKE, missing, 7, True)
    plaza.queues.drain()
    assert counter(missing) is None


def test_a_deleted_target_with_a_loaded_total_stays_deleted(plaza: World) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    queries.read_counts([(LIKE, POST)], 7)
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, True)


def test_a_user_exists_after_the_sign_up(plaza: World) -> None:
    new_user = Target("user", 404)
    with pytest.raises(TargetMissing):
        react.react(FOLLOW, new_user, 7, True)
    add_users(404)
    markers.mark_created(*new_user)
    assert react.react(FOLLOW, new_user, 7, True).changed
    assert lookup.find_live([new_user, Target("user", 405), POST]) == {new_user}


# ---------------------------------------------------------------- read-ups during a write


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Existence.MISSING, Existence.LIVE),
        (Existence.LIVE, Existence.DELETED),
        (Existence.MISSING, Existence.DELETED),
    ],
    ids=lambda existence: existence.value,
)
def test_a_look_up_before_a_write_does_not_replace_its_marker(
    plaza: World, monkeypatch: pytest.MonkeyPatch, before: Existence, after: Existence
) -> None:
    """Given a target that is created or deleted, and marked, between a read-up and its marker."""
    if before is Existence.LIVE:
        plaza.add(POST)
    read = mysql_store.read_existence

    def slow(targets: list[tuple[str, int]]) -> dict[tuple[str, int], Mark]:
        result = read(targets)
        assert result == {POST: Mark(before)}
        plaza.add(POST)
        markers.mark_created(*POST)
        if after is Existence.DELETED:
            mysql.write("UPDATE content SET deleted_at = NOW(6)")
            markers.mark_deleted([POST])
        return result

    monkeypatch.setattr(mysql_store, "read_existence", slow)
    assert lookup.find(*POST) is before
    clear_caches()
    assert lookup.find(*POST) is after


def test_a_marker_of_an_existing_target_lives_for_an_hour(plaza: World) -> None:
    plaza.add(POST)
    lookup.find_in_mysql(*POST)
    assert 30 < redis.execute("TTL", marker_key()) <= 3600
    markers.mark_deleted([POST])
    assert redis.execute("GET", marker_key()) == "deleted"
    assert 30 < redis.execute("TTL", marker_key()) <= 3600


def test_missing_ids_are_looked_up_once_in_half_a_minute(plaza: World) -> None:
    plaza.add(POST)
    missing = [Target("post", 1_000 + n) for n in range(50)]
    with counting_work() as work:
        for _ in range(10):
            assert lookup.find_live([POST, *missing]) == {POST}
    assert work.statements == 1


def test_a_look_up_finds_a_later_creation_and_deletion(plaza: World) -> None:
    assert lookup.find_all([POST]) == {POST: Existence.MISSING}
    plaza.add(POST)
    markers.mark_created(*POST)
    assert lookup.find_all([POST]) == {POST: Existence.LIVE}
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    markers.mark_deleted([POST])
    assert lookup.find_all([POST]) == {POST: Existence.DELETED}


def test_a_target_deleted_by_another_process_is_cached_as_live_for_one_second(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    plaza.add(POST)
    assert lookup.find(*POST) is Existence.LIVE
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    targets.redis_store.overwrite_marks({POST: Mark(Existence.DELETED)})
    now_s[0] = 1.0
    assert lookup.find(*POST) is Existence.DELETED
    assert not markers.is_cached_live(*POST)
