"""Whether a target is there is checked, also when Redis holds a total of it."""

from __future__ import annotations

import pytest

from plaza import targets
from plaza.infra import clock, mysql, redis
from plaza.infra.process import clear_caches
from plaza.reactions import FOLLOW, LIKE, Target, queries, react
from plaza.reactions.model import TargetDeleted, TargetMissing
from plaza.targets import Existence, lookup, markers, mysql_store
from tests.support.content_api import counting_work
from tests.support.plaza import World
from tests.support.stores import POST, add_users, counter, marker_key


def test_what_was_counted_is_not_thereby_there(plaza: World) -> None:
    nowhere = Target("post", 404)
    queries.read_counts([(LIKE, nowhere)], 7)
    with pytest.raises(TargetMissing):
        react.react(LIKE, nowhere, 7, True)
    plaza.queues.drain()
    assert counter(nowhere) is None


def test_what_was_deleted_and_then_counted_is_gone_still(plaza: World) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    queries.read_counts([(LIKE, POST)], 7)
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, True)


def test_a_user_is_there_once_they_signed_up(plaza: World) -> None:
    nobody = Target("user", 404)
    with pytest.raises(TargetMissing):
        react.react(FOLLOW, nobody, 7, True)
    add_users(404)
    markers.mark_created(*nobody)
    assert react.react(FOLLOW, nobody, 7, True).changed
    assert lookup.find_live([nobody, Target("user", 405), POST]) == {nobody}


# ---------------------------------------------------------------- who looked, and who knew better


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Existence.MISSING, Existence.LIVE),
        (Existence.LIVE, Existence.DELETED),
        (Existence.MISSING, Existence.DELETED),
    ],
    ids=lambda there: there.value,
)
def test_who_looked_before_a_write_does_not_mark_over_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch, before: Existence, after: Existence
) -> None:
    """Between the look and its marker it was made, or deleted, and marked as such."""
    if before is Existence.LIVE:
        plaza.add(POST)
    look = mysql_store.read_existence

    def slow(target_type: str, target_id: int) -> Existence:
        found = look(target_type, target_id)
        assert found is before
        plaza.add(POST)
        markers.mark_created(*POST)
        if after is Existence.DELETED:
            mysql.write("UPDATE content SET deleted_at = NOW(6)")
            markers.mark_deleted([POST])
        return found

    monkeypatch.setattr(mysql_store, "read_existence", slow)
    assert lookup.find(*POST) is before
    clear_caches()
    assert lookup.find(*POST) is after


def test_a_marker_lives_as_long_as_what_it_says_is_good_for(plaza: World) -> None:
    plaza.add(POST)
    lookup.find_in_mysql(*POST)
    assert 30 < redis.execute("TTL", marker_key()) <= 3600
    markers.mark_deleted([POST])
    assert redis.execute("GET", marker_key()) == "deleted"
    assert 30 < redis.execute("TTL", marker_key()) <= 3600


def test_ids_that_were_made_up_are_looked_up_once_in_half_a_minute(plaza: World) -> None:
    plaza.add(POST)
    made_up = [Target("post", 1_000 + n) for n in range(50)]
    with counting_work() as work:
        for _ in range(10):
            assert lookup.find_live([POST, *made_up]) == {POST}
    assert work.statements == 1


def test_what_was_made_or_deleted_since_is_found_as_it_is(plaza: World) -> None:
    assert lookup.find_all([POST]) == {POST: Existence.MISSING}
    plaza.add(POST)
    markers.mark_created(*POST)
    assert lookup.find_all([POST]) == {POST: Existence.LIVE}
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    markers.mark_deleted([POST])
    assert lookup.find_all([POST]) == {POST: Existence.DELETED}


def test_what_another_process_deleted_is_remembered_as_live_for_a_second_at_most(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    plaza.add(POST)
    assert lookup.find(*POST) is Existence.LIVE
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    targets.redis_store.overwrite_marks([POST], Existence.DELETED)
    now_s[0] = 1.0
    assert lookup.find(*POST) is Existence.DELETED
    assert not markers.is_cached_live(*POST)
