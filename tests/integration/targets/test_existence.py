"""Whether a target is there is checked, also when Redis holds a total of it."""

from __future__ import annotations

import pytest

from plaza import targets
from plaza.infra import clock, mysql, redis
from plaza.infra.process import clear_caches
from plaza.reactions import FOLLOW, LIKE, Target, reacting, reading
from plaza.reactions.reactions import TargetGone, TargetMissing
from plaza.targets import There, finding, marking, mysql_targets
from tests.support.content_api import counting_work
from tests.support.looking import POST, add_users, counter, marker_key
from tests.support.plaza import World


def test_what_was_counted_is_not_thereby_there(plaza: World) -> None:
    nowhere = Target("post", 404)
    reading.count([(LIKE, nowhere)], 7)
    with pytest.raises(TargetMissing):
        reacting.react(LIKE, nowhere, 7, True)
    plaza.queues.drain()
    assert counter(nowhere) is None


def test_what_was_deleted_and_then_counted_is_gone_still(plaza: World) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    reading.count([(LIKE, POST)], 7)
    with pytest.raises(TargetGone):
        reacting.react(LIKE, POST, 7, True)


def test_a_user_is_there_once_they_signed_up(plaza: World) -> None:
    nobody = Target("user", 404)
    with pytest.raises(TargetMissing):
        reacting.react(FOLLOW, nobody, 7, True)
    add_users(404)
    marking.mark_made(*nobody)
    assert reacting.react(FOLLOW, nobody, 7, True).changed
    assert finding.find_live([nobody, Target("user", 405), POST]) == {nobody}


# ---------------------------------------------------------------- who looked, and who knew better


@pytest.mark.parametrize(
    ("before", "after"),
    [(There.NONE, There.LIVE), (There.LIVE, There.GONE), (There.NONE, There.GONE)],
    ids=lambda there: there.value,
)
def test_who_looked_before_a_write_does_not_mark_over_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch, before: There, after: There
) -> None:
    """Between the look and its marker it was made, or deleted, and marked as such."""
    if before is There.LIVE:
        plaza.add(POST)
    look = mysql_targets.look_up

    def slow(target_type: str, target_id: int) -> There:
        found = look(target_type, target_id)
        assert found is before
        plaza.add(POST)
        marking.mark_made(*POST)
        if after is There.GONE:
            mysql.write("UPDATE content SET deleted_at = NOW(6)")
            marking.mark_gone([POST])
        return found

    monkeypatch.setattr(mysql_targets, "look_up", slow)
    assert finding.find(*POST) is before
    clear_caches()
    assert finding.find(*POST) is after


def test_a_marker_lives_as_long_as_what_it_says_is_good_for(plaza: World) -> None:
    plaza.add(POST)
    finding.look_up(*POST)
    assert 30 < redis.execute("TTL", marker_key()) <= 3600
    marking.mark_gone([POST])
    assert redis.execute("GET", marker_key()) == "gone"
    assert 30 < redis.execute("TTL", marker_key()) <= 3600


def test_ids_that_were_made_up_are_looked_up_once_in_half_a_minute(plaza: World) -> None:
    plaza.add(POST)
    made_up = [Target("post", 1_000 + n) for n in range(50)]
    with counting_work() as work:
        for _ in range(10):
            assert finding.find_live([POST, *made_up]) == {POST}
    assert work.statements == 1


def test_what_was_made_or_deleted_since_is_found_as_it_is(plaza: World) -> None:
    assert finding.find_all([POST]) == {POST: There.NONE}
    plaza.add(POST)
    marking.mark_made(*POST)
    assert finding.find_all([POST]) == {POST: There.LIVE}
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    marking.mark_gone([POST])
    assert finding.find_all([POST]) == {POST: There.GONE}


def test_what_another_process_deleted_is_remembered_as_live_for_a_second_at_most(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [0.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    plaza.add(POST)
    assert finding.find(*POST) is There.LIVE
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    targets.redis_targets.mark_for_sure([POST], There.GONE)
    now_s[0] = 1.0
    assert finding.find(*POST) is There.GONE
    assert not marking.seen_lately(*POST)
