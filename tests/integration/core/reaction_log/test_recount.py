"""Recounts of counters from the rows, and from the log with its archives at any moment."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from local.audit.stores import read_mysql_state
from plaza.core import reactions
from plaza.core.reaction_log import CounterKey, Scope, maintenance, mysql_log, recount
from plaza.core.reaction_log.recount import Contradiction, Recount
from plaza.core.reactions import Target, persist
from plaza.core.reactions.model import ReactionEvent
from plaza.infra.mysql import mysql
from plaza.social.recommendations import like_roll_up
from tests.support.archives import (
    DAY_US,
    TODAY,
    at,
    day,
    known,
    log_event,
    random_history,
    roll_up,
    s3,
    totals_of,
    write_content,
)
from tests.support.likes_log import NOW_US, hours, hours_in_log, like, post
from tests.support.plaza import World

__all__ = ["s3"]
POST = Target("post", 1)


def save_in_batches(draw: random.Random, events: Sequence[ReactionEvent]) -> None:
    """Save events in random order, a fifth of them twice."""
    shuffled = [*events, *draw.sample(events, len(events) // 5)]
    draw.shuffle(shuffled)
    for start in range(0, len(shuffled), 40):
        persist.save(shuffled[start : start + 40])


def differing(result: Recount) -> dict[CounterKey, tuple[int, int]]:
    return {item.counted: (item.counter, item.recounted) for item in result.differing}


def counted_at(result: Recount, until_us: int, events: Sequence[ReactionEvent]) -> None:
    """Check a recount up to ``until_us`` against totals of ``events`` computed in Python."""
    now, then = totals_of(events, at(-1)), totals_of(events, until_us)
    expected = {
        CounterKey(*key): (now.get(key, 0), then.get(key, 0))
        for key in {*now, *then}
        if now.get(key, 0) != then.get(key, 0)
    }
    assert {
        key: values for key, values in differing(result).items() if key.name in reactions.KINDS
    } == expected


@pytest.mark.parametrize("seed", range(6))
def test_a_recount_from_the_log_and_its_archives_is_right_at_any_moment(
    s3: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    draw = random.Random(seed)
    monkeypatch.setattr(maintenance, "EVENTS_PER_PART", draw.choice((5, 50)))
    write_content()
    events = random_history(draw, 300)
    late = random_history(draw, 60)
    save_in_batches(draw, events)
    roll_up()
    maintenance.maintain_log(100_000, day(draw.randint(0, 5)))
    save_in_batches(draw, late)
    events += late
    roll_up()
    result = maintenance.maintain_log(100_000, TODAY)
    again = draw.sample(events, 40)
    save_in_batches(draw, again)  # of days that were dropped, too

    whole = recount.recount_log(Scope())
    assert (whole.differing, whole.contradicting) == ([], 0)
    assert whole.events_archived > 0
    assert recount.recount_rows(Scope()).differing == []
    for _ in range(5):
        moment = at(draw.randint(0, 18), draw.randint(0, DAY_US))
        then = recount.recount_log(Scope(), moment)
        counted_at(then, moment, events)
        assert then.contradicting == 0, "later rows are no contradiction"
    with mysql_log.snapshot() as cursor:
        assert recount.count_events(cursor) == len(known(events))
    assert result.corrupt == 0


def test_wrong_counters_are_found_from_the_log_and_from_rows_in_each_scope(s3: Any) -> None:
    write_content()
    events = random_history(random.Random(77), 200, days=3)
    persist.save(events)
    assert recount.recount_log(Scope()).compared > 30
    mysql.write("UPDATE user_counter SET likes_received_total = 1000 WHERE user_id = 90")
    mysql.write("UPDATE user_counter SET following_total = 1000 WHERE user_id = 3")
    mysql.write("UPDATE user_counter SET followers_total = 1000 WHERE user_id = 4")
    mysql.write("UPDATE counter SET total = 1000 WHERE target_id = 2 AND kind = 'collect'")
    for item in (recount.recount_log(Scope()), recount.recount_rows(Scope())):
        wrong = {
            wrong_key for wrong_key, (counter, _) in differing(item).items() if counter == 1000
        }
        assert {(str(wrong_key.of), wrong_key.name) for wrong_key in wrong} >= {
            ("user:90", "likes_received_total"),
            ("user:3", "following_total"),
            ("user:4", "followers_total"),
            ("post:2", "collect"),
        }
    for scope, expected in (
        (Scope(user_id=90), {"likes_received_total"}),
        (Scope(user_id=3), {"following_total"}),
        (Scope(user_id=4), {"followers_total"}),
        (Scope(user_id=91), set()),
        (Scope(Target("post", 2)), {"collect"}),
        (Scope(Target("post", 1)), set()),
    ):
        for item in (recount.recount_log(scope), recount.recount_rows(scope)):
            assert {wrong_key.counted.name for wrong_key in item.differing} == expected
            assert item.contradicting == 0


def test_comments_and_posts_are_recounted_from_rows_only(s3: Any) -> None:
    write_content()
    mysql.write("UPDATE content SET parent_id = 1 WHERE content_type = 'comment'")
    mysql.write("UPDATE content SET deleted_at = NOW() WHERE content_id = 5")
    result = differing(recount.recount_rows(Scope()))
    assert result == {
        CounterKey(POST, "comment"): (0, 4),
        CounterKey(Target("user", 90), "posts_total"): (3, 2),
    }
    assert differing(recount.recount_rows(Scope(POST))).keys() == {CounterKey(POST, "comment")}
    assert recount.recount_log(Scope()).differing == []


def test_rows_that_contradict_the_log_are_reported(s3: Any) -> None:
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 6)])
    persist.save([log_event(6, at(0))])
    roll_up()
    assert maintenance.maintain_log(1_000, TODAY).dropped
    mysql.write("UPDATE reaction SET state = 0 WHERE actor_id = 1")
    mysql.write("UPDATE reaction SET version = version + 1 WHERE actor_id = 2")
    mysql.write("DELETE FROM reaction WHERE actor_id = 3")
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " VALUES ('post', 1, 'like', 77, 1, %s)",
        (at(3),),
    )
    result = recount.recount_log(Scope())
    assert result.contradicting == 4
    assert {(item.actor_id, item.row, item.log) for item in result.contradictions} == {
        (1, (at(10, 1), 0), (at(10, 1), 1)),
        (2, (at(10, 3), 1), (at(10, 2), 1)),
        (3, None, (at(10, 3), 1)),
        (77, (at(3), 1), None),
    }
    assert result.differing == [], "the counters agree with the log"
    assert Contradiction(POST, "like", 3, None, (at(10, 3), 1)) in result.contradictions
    assert recount.recount_log(Scope(), at(10, 2)).contradicting == 1, "of rows up to that moment"


def test_the_list_of_contradictions_is_bounded(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recount, "MAX_SHOWN", 3)
    persist.save([log_event(actor, at(0)) for actor in range(1, 12)])
    mysql.write("UPDATE reaction SET state = 0")
    result = recount.recount_log(Scope())
    assert (result.contradicting, len(result.contradictions)) == (11, 3)


def test_a_recount_during_archiving_reads_each_event(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_content()
    events = random_history(random.Random(9), 150)
    persist.save(events)
    persist.save([log_event(6, at(0, 5))])
    roll_up()
    enter = mysql_log.snapshot
    opened = []

    def maintain_first() -> Any:
        opened.append(1)
        if len(opened) == 2:  # after the list of archives was read, which was empty
            assert maintenance.maintain_log(100_000, TODAY).dropped
        return enter()

    monkeypatch.setattr(mysql_log, "snapshot", maintain_first)
    result = recount.recount_log(Scope())
    assert (result.differing, result.contradicting) == ([], 0)
    assert result.events_archived


def test_the_audit_is_exact_when_days_are_in_s3(s3: Any, mysql_url: str, plaza: World) -> None:
    write_content()
    events = random_history(random.Random(21), 200)
    persist.save(events)
    persist.save([log_event(6, at(0, 5))])
    events.append(log_event(6, at(0, 5)))
    before = read_mysql_state(mysql_url)
    roll_up()
    assert maintenance.maintain_log(100_000, TODAY).dropped
    persist.save(events[:50])  # again
    after = read_mysql_state(mysql_url, archives=True)
    assert (before.log, before.log_differences) == (len(known(events)), [])
    assert (after.log, after.log_differences) == (before.log, [])
    assert read_mysql_state(mysql_url).log_differences, "without archives it is not exact"
    mysql.write("UPDATE reaction SET state = 1 - state WHERE actor_id = 6 AND target_id = 1")
    assert read_mysql_state(mysql_url, archives=True).log_differences


# ---------------------------------------------------------------- other readers of the log


def test_hours_do_not_change_when_old_days_are_dropped_or_repeated(s3: Any, plaza: World) -> None:
    """A history before the window may be incomplete in MySQL, so it is not read."""
    plaza.add(*map(post, range(1, 4)))
    old = [like(post(1), 1, at=-20 * DAY_US), like(post(1), 1, on=False, at=-15 * DAY_US)]
    persist.save(old)
    like_roll_up.roll_up_likes()
    persist.save([like(post(1), 1), like(post(2), 1), like(post(3), 1, on=False, provisional=True)])
    like_roll_up.roll_up_likes()
    expected = hours()
    assert expected == {(NOW_US // 3_600_000_000, 1): 1, (NOW_US // 3_600_000_000, 2): 1}
    assert maintenance.maintain_log().dropped
    [(left,)] = mysql.fetch_all("SELECT COUNT(*) FROM reaction_log")
    assert left == 3
    persist.save([old[0], like(post(1), 1)])  # repeats; the later old event is not in MySQL
    persist.save([like(post(1), 2)])
    like_roll_up.roll_up_likes()
    now = NOW_US // 3_600_000_000
    assert hours() == expected | {(now, 1): 2}
    assert hours_in_log(days=99) == hours(), "the log stores each event's change"
