"""Lists that Redis derives from MySQL: each kind of damage is found once more, and repaired."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import pytest

from plaza.commerce.checkins import daily_checkin
from plaza.commerce.checkins import model as checkin_model
from plaza.commerce.checkins.redis_store import CheckInKeys
from plaza.core import counters
from plaza.core.reactions import KINDS, LIKE, Kind, Target, queries, react
from plaza.core.reactions.redis_keys import list_keys
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.operate.reconciliation import declared, run_steps
from plaza.people.users import cards
from plaza.people.users.zones import Zone
from plaza.social.feed import inspection, rebuild, redis_store
from plaza.social.feed import queries as feed_queries
from plaza.social.feed.model import Timeline
from tests.support.plaza import World
from tests.support.reconciliations import count_cost, findings_of, run
from tests.support.stores import add_users

USER, AUTHOR, CELEBRITY = 2, 1, 4
TIMELINES = [Timeline("inbox", USER), Timeline("posts", CELEBRITY)]
QUARTER_US = 900_000_000
OLD_US = 1_700_000_000_000_000
TODAY = date(2026, 11, 26)
DAYS = [TODAY - timedelta(days=n) for n in (0, 1, 2, 4, 40)]
TEXTS = [Target("post", 7), Target("post", 8), Target("comment", 9)]
USERS = [Target("user", 1), Target("user", 3), Target("user", CELEBRITY)]
TARGETS = {kind: USERS if "user" in kind.targets else TEXTS for kind in KINDS.values()}


@pytest.fixture(autouse=True)
def world(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """User 2 reacted in each way and checked in; Redis has all lists."""
    add_users(*range(1, 5))
    for target in TARGETS[LIKE]:
        plaza.add(target, author_id=AUTHOR)
    posts = {(AUTHOR,): {"posts_total": 2}}
    mysql.run_in_transaction(lambda cursor: counters.add_to_users(cursor, posts))
    for kind, targets in TARGETS.items():
        for target in targets:
            react.react(kind, target, USER, True)
    plaza.queues.drain()
    for day in DAYS:
        mysql.write("INSERT INTO checkin (user_id, day, version) VALUES (%s, %s, 1)", (USER, day))
    monkeypatch.setattr(cards, "read_zone", lambda _: FixedZone())
    # The clock of Redis, which versions are taken from, has gone on to another day.
    monkeypatch.setattr(checkin_model, "is_possible_day", lambda *_: True)
    for post_id in (31, 32, 33):
        write_old_post(post_id, 3)
    mysql.write("UPDATE reaction SET version = version - %s WHERE kind = 'follow'", (QUARTER_US,))
    redis.execute("FLUSHALL")
    write_old_post(34, CELEBRITY)
    mysql.write("INSERT INTO celebrity (user_id, announced) VALUES (%s, 1)", (CELEBRITY,))
    monkeypatch.setattr(inspection, "is_in_quota", lambda _: True)
    rebuild.rebuild([TIMELINES])
    read_all()
    return plaza


def write_old_post(post_id: int, author_id: int) -> None:
    """Insert a post of an hour ago."""
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, kind, title, body, created_at)"
        " VALUES ('post', %s, %s, 'note', 't', 'b', UTC_TIMESTAMP(6) - INTERVAL 1 HOUR)",
        (post_id, author_id),
    )
    posts = {(author_id,): {"posts_total": 1}}
    mysql.run_in_transaction(lambda cursor: counters.add_to_users(cursor, posts))


class FixedZone(Zone):
    """A time zone in which today is always the same day."""

    def day_at(self, now_s: float) -> date:
        return TODAY


def read_all(user_id: int = USER) -> list[Any]:
    """Return all lists of a user, as readers get them."""
    lists = (queries.list_reacted(kind, user_id, None, 10)[0] for kind in KINDS.values())
    reacted = [[r.target for r in page] for page in lists]
    months = [daily_checkin.read_month(user_id, day.replace(day=1)) for day in (TODAY, DAYS[-1])]
    page = feed_queries.read_feed(user_id, None, 10)
    feed = [view.text.id for view in page.items]
    return [feed, reacted, [(month.days, month.streak) for month in months]]


def newest(kind: Kind) -> str:
    return list_keys(kind.name, USER)[0]


def of_kinds(*parts: Any) -> Iterator[tuple[str, str, tuple[Any, ...]]]:
    for kind in KINDS.values():
        target = str(TARGETS[kind][0])
        yield (
            kind.name,
            f"list-{kind.name}",
            tuple(
                part.format(key=newest(kind), target=target) if isinstance(part, str) else part
                for part in parts
            ),
        )


def month(day: date) -> str:
    return CheckInKeys(USER).month(day)


HEAD = CheckInKeys(USER).head
INBOX, CELEBRITY_POSTS = map(redis_store.key, TIMELINES)
DAMAGES: dict[str, tuple[str, tuple[Any, ...]]] = {
    **{f"a {k} is missing": (w, c) for k, w, c in of_kinds("ZREM", "{key}", "{target}")},
    **{f"a {k} is too much": (w, c) for k, w, c in of_kinds("ZADD", "{key}", 2**51, "post:4711")},
    **{f"a {k} has another time": (w, c) for k, w, c in of_kinds("ZADD", "{key}", 7, "{target}")},
    **{f"a {k} cannot be read": (w, c) for k, w, c in of_kinds("ZADD", "{key}", 2**51, "what")},
    "a post of the inbox is missing": ("inbox", ("ZREM", INBOX, f"{32:019d}:3")),
    "a post of the inbox is too much": ("inbox", ("ZADD", INBOX, OLD_US, f"{99:019d}:3")),
    "a post is of an author who is not followed": (
        "inbox",
        ("ZADD", INBOX, OLD_US, f"{98:019d}:9"),
    ),
    "a post of the inbox has another time": ("inbox", ("ZADD", INBOX, OLD_US, f"{32:019d}:3")),
    "a celebrity of the inbox is missing": ("inbox", ("ZREM", INBOX, f"celebrity:{CELEBRITY}")),
    "a celebrity of the inbox is too much": ("inbox", ("ZADD", INBOX, 0, "celebrity:9")),
    "a post of a celebrity is missing": (
        "celebrity-posts",
        ("ZREM", CELEBRITY_POSTS, f"{34:019d}:4"),
    ),
    "a post of a celebrity is too much": (
        "celebrity-posts",
        ("ZADD", CELEBRITY_POSTS, OLD_US, f"{97:019d}:4"),
    ),
    "a day is missing": ("check-ins", ("SETBIT", month(TODAY), DAYS[3].day, 0)),
    "a day is too much": ("check-ins", ("SETBIT", month(TODAY), 3, 1)),
    "a day of an older month is missing": ("check-ins", ("SETBIT", month(DAYS[4]), DAYS[4].day, 0)),
    "a streak is too long": ("check-ins", ("HSET", HEAD, "streak", 4)),
    "a streak is too short": ("check-ins", ("HSET", HEAD, "streak", 1)),
    "a streak cannot be read": ("check-ins", ("HSET", HEAD, "streak", "long")),
    "the newest day is another one": ("check-ins", ("HSET", HEAD, "last", DAYS[1].toordinal())),
    "the newest day is unknown": ("check-ins", ("HSET", HEAD, "last", 0, "streak", 0)),
    "the newest day is none": ("check-ins", ("HSET", HEAD, "last", 10**9)),
}


def test_each_kind_of_list_is_damaged() -> None:
    """But for those that test_sales, test_shops, test_unread_repair and test_earliest damage."""
    elsewhere = {what for what in declared.lists() if what.startswith("earliest-")}
    elsewhere |= {"unread-cache", "sale", "shop", "voucher"}
    assert {what for what, _ in DAMAGES.values()} == set(declared.lists()) - elsewhere


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_readers_get_what_mysql_has(name: str, world: World) -> None:
    right = read_all()
    assert run(world).differing == 0
    what, command = DAMAGES[name]
    redis.execute(*command)
    report = run(world)
    owner = CELEBRITY if what == "celebrity-posts" else USER
    assert findings_of(report) == {("list", what, f"user:{owner}")}
    assert (report.repaired, report.is_resolved) == (1, True)
    assert read_all() == right
    assert run(world).differing == 0


@pytest.mark.parametrize(
    ("what", "statement"),
    [
        ("list-like", "DELETE FROM reaction WHERE kind = 'like' AND target_type = 'comment'"),
        ("check-ins", "DELETE FROM checkin WHERE day = '2026-11-24'"),
    ],
)
def test_a_row_that_is_gone_is_gone_from_its_list(world: World, what: str, statement: str) -> None:
    mysql.write(statement)
    report = run(world)
    assert ("list", what, f"user:{USER}") in findings_of(report)
    assert report.is_resolved
    before = read_all()
    redis.execute("FLUSHALL")
    assert read_all() == before


def test_a_list_that_changed_between_both_checks_is_skipped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a list that lacks a like, and lacks another one at the second check."""
    redis.execute("ZREM", newest(LIKE), str(TARGETS[LIKE][0]))
    recheck = run_steps.CHECKS["list"]

    def change_and_recheck(suspects: Any) -> Any:
        redis.execute("ZREM", newest(LIKE), str(TARGETS[LIKE][1]))
        return recheck(suspects)

    monkeypatch.setitem(run_steps.CHECKS, "list", change_and_recheck)
    report = run(world)
    assert (report.differing, report.tally.skipped) == (0, 1)


def test_a_check_in_on_the_queue_is_no_difference(world: World) -> None:
    mysql.write("DELETE FROM checkin WHERE day = %s", (TODAY,))
    redis.execute("FLUSHALL")
    read_all()
    assert daily_checkin.check_in(USER).streak == 3
    held = world.queues.take("checkins")
    assert run(world).differing == 0
    for body in held:
        world.queues.send("checkins", body)
    world.queues.drain()
    assert run(world).differing == 0


def test_a_list_longer_than_redis_keeps_is_compared_above_its_floor(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LIST_LENGTH", 2)
    redis.execute("UNLINK", newest(LIKE))
    read_all()
    assert redis.execute("ZCARD", newest(LIKE)) == 3, "two entries and the floor"
    assert run(world).differing == 0


def test_lists_of_another_term_are_left_out(world: World) -> None:
    floors = [m for m in redis.execute("ZRANGE", newest(LIKE), 0, -1) if m.startswith("floor:")]
    redis.execute("ZREM", newest(LIKE), *floors)
    redis.execute("HSET", HEAD, "term", "of another node", "streak", 9)
    assert run(world).differing == 0


def test_more_users_cost_no_more_round_trips_and_statements(world: World) -> None:
    few = count_cost(world)
    add_users(*range(20, 38))
    for user_id in range(20, 38):
        react.react(LIKE, Target("post", 7), user_id, True)
    world.queues.drain()
    for user_id in range(20, 38):
        read_all(user_id)
    world.queues.drain()
    many = count_cost(world)
    nodes = len(redis.nodes())  # each may have keys of many users, and scans
    assert many[0] <= (few[0] + 2) * nodes
    assert many[1] <= few[1] + 4 * nodes, "the dirty rows"
