"""Hourly likes of posts: each kind of damage is found beside the log once, and repaired."""

from __future__ import annotations

import time
from typing import Any

import pytest

from plaza.core import counters
from plaza.core.reactions import Target, persist, rankings
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.infra.mysql import mysql
from plaza.social.recommendations import inspection, like_roll_up, mysql_hours, post_rankings
from tests.support.consumers import statements
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run
from tests.support.stores import add_users

POST, OTHER = Target("post", 7), Target("post", 8)
HOUR_US = 3_600_000_000
NOW_US = time.time_ns() // 1000
DAY_H = 24
OF_POST = "WHERE post_id = 7"
YESTERDAY_H = NOW_US // HOUR_US - DAY_H


def do_like(target: Target, actors: range, hours_ago: float, *, on: bool = True) -> None:
    at_us = NOW_US - int(hours_ago * HOUR_US)
    keys = [ReactionKey(*target, "like", actor) for actor in actors]
    persist.save([ReactionEvent(key, on, at_us + key.actor_id) for key in keys])


def write(world: World, *posts: Target) -> None:
    for post in posts:
        world.add(post, author_id=1)
    totals = {(1,): {"posts_total": len(posts)}}
    mysql.run_in_transaction(lambda cursor: counters.add_to_users(cursor, totals))


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    """Given likes of three days and of one that is too old; two of them were taken back."""
    add_users(*range(1, 30))
    write(plaza, POST, OTHER)
    do_like(POST, range(2, 12), 7 * DAY_H - 3)  # an hour can end during the run
    do_like(POST, range(12, 16), DAY_H)
    do_like(POST, range(12, 14), 2, on=False)
    do_like(OTHER, range(2, 5), DAY_H)
    do_like(OTHER, range(5, 6), 20 * DAY_H)
    like_roll_up.roll_up_likes()
    return plaza


def read_hours() -> tuple[Any, ...]:
    return tuple(mysql.fetch_all("SELECT hour, post_id, net FROM post_hour WHERE net <> 0"))


DAMAGES = {
    "likes of an hour are missing": f"DELETE FROM post_hour {OF_POST} AND hour = {YESTERDAY_H}",
    "all hours of a post are missing": f"DELETE FROM post_hour {OF_POST}",
    "an hour has too many": f"UPDATE post_hour SET net = net + 5 {OF_POST} AND net > 0 LIMIT 1",
    "an hour has too few": f"UPDATE post_hour SET net = -3 {OF_POST} AND hour = {YESTERDAY_H}",
    "an hour without likes has some": (
        f"INSERT INTO post_hour (hour, post_id, net) VALUES ({YESTERDAY_H - 3}, 7, 40)"
    ),
    "likes are in another hour": (
        f"UPDATE post_hour SET hour = hour - 1 {OF_POST} AND hour = {YESTERDAY_H}"
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_the_hours_are_those_of_the_log(name: str, world: World) -> None:
    right = read_hours()
    assert len(right) == 4
    assert run(world).differing == 0
    mysql.write(DAMAGES[name])
    assert read_hours() != right
    report = run(world)
    assert findings_of(report) == {("hours", "hours", "post:7")}
    assert (report.repaired, report.is_resolved) == (1, True)
    assert read_hours() == right
    assert run(world).differing == 0


def test_rankings_of_a_week_are_right_after_the_repair(world: World) -> None:
    mysql.write("UPDATE post_hour SET net = 100 WHERE post_id = 8 LIMIT 1")
    run(world)
    post_rankings.refresh_rankings()
    page = rankings.read_ranking("week", None, 10)
    assert page is not None
    assert [(post.post_id, post.likes) for post in page] == [(7, 12), (8, 3)]


def test_events_that_are_not_rolled_up_are_no_difference(world: World) -> None:
    do_like(POST, range(20, 25), 0)
    assert run(world).differing == 0
    like_roll_up.roll_up_likes()
    assert run(world).differing == 0


def test_a_roll_up_between_comparison_and_repair_is_counted_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a page that is rolled up before the repair, and one after it."""
    mysql.write(f"DELETE FROM post_hour {OF_POST}")
    correct = inspection.correct_hours

    def roll_up_and_correct(post_ids: list[int]) -> int:
        do_like(POST, range(20, 23), 0)
        like_roll_up.roll_up_likes()
        corrected = correct(post_ids)
        do_like(POST, range(23, 25), 0)
        like_roll_up.roll_up_likes()
        return corrected

    monkeypatch.setattr(inspection, "correct_hours", roll_up_and_correct)
    assert run(world).is_resolved
    assert run(world).differing == 0
    assert mysql.fetch_all(f"SELECT SUM(net) FROM post_hour {OF_POST}") == [(17,)]


@pytest.mark.parametrize("events", [1, 2, 50_000])
def test_ranges_of_any_size_compare_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, events: int
) -> None:
    monkeypatch.setattr(mysql_hours, "MAX_EVENTS", events)
    mysql.write("UPDATE post_hour SET net = net + 1")
    assert findings_of(run(world)) == {("hours", "hours", f"post:{n}") for n in (7, 8)}
    assert run(world).differing == 0


def test_only_yesterday_is_compared_whole_if_days_are_large(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "MIN_STEPS", 1)
    mysql.write("UPDATE post_hour SET net = net + 1 WHERE hour < %s", (YESTERDAY_H - 30,))
    assert run(world).differing == 0
    mysql.write(f"UPDATE post_hour SET net = net + 1 {OF_POST} AND hour = {YESTERDAY_H}")
    assert findings_of(run(world)) == {("hours", "hours", "post:7")}


def test_more_posts_cost_no_more_statements(world: World) -> None:
    def count() -> int:
        before = statements()
        assert run(world).differing == 0
        return statements() - before

    few = count()
    for number in range(30):
        target = Target("post", 100 + number)
        write(world, target)
        do_like(target, range(2, 4), DAY_H)
    like_roll_up.roll_up_likes()
    count()  # what changed is compared
    assert count() <= few + 4
