"""Reconciliation on a real Redis and a real MariaDB: what differs is found, and repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.evidence import read_cache, read_record
from local.truth import Truth, compare
from plaza import counters, reactions, reconciliation
from plaza.infra import mysql, redis
from plaza.reactions import COLLECT, FOLLOW, LIKE, Kind, Target
from plaza.reconciliation import Report, comparing, mysql_counts, mysql_runs, running
from tests.integration.looking import add_users, keys, meta, pending, recent
from tests.plaza import World

POST, QUIET, REVIEW = Target("post", 7), Target("post", 8), Target("review", 9)
AUTHOR = 1
LIKERS = range(2, 12)
SetUp = Callable[..., None]
Damage = Callable[[], object]


@pytest.fixture
def audit(redis_url: str, mysql_url: str) -> Callable[[], Truth]:
    """The table of truth, which shares no code with what is tested here."""
    return lambda: compare(read_record(mysql_url), read_cache(redis_url), {})


@pytest.fixture
def crowd(set_up: SetUp, plaza: World) -> World:
    """Users 1 to 11. 2 to 11 like a post of user 1, and some more; all of it is hot and quiet.

    Redis keeps five of the likers by name, so that the post has a Bloom filter.
    """
    set_up(recent_cap=5)
    add_users(*range(1, 12))
    write(POST, AUTHOR)
    write(QUIET, AUTHOR)
    plaza.add(REVIEW, author_id=2)
    write(Target("comment", 20), 3, POST.id)
    write(Target("comment", 21), 4, POST.id)
    for user_id in LIKERS:
        reactions.react(LIKE, POST, user_id, True)
    for user_id in (2, 3):
        reactions.react(COLLECT, POST, user_id, True)
        reactions.react(LIKE, QUIET, user_id, True)
        reactions.react(LIKE, REVIEW, user_id + 1, True)
        reactions.react(FOLLOW, Target("user", AUTHOR), user_id, True)
    plaza.queues.drain()
    counters.read_users(range(1, 12))
    counters.read_comments([POST.id, QUIET.id])
    return plaza


def write(target: Target, author_id: int, parent_id: int | None = None) -> None:
    """Make content, and count it as who writes it does."""
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " VALUES (%s, %s, %s, %s)",
        (*target, author_id, parent_id),
    )
    if target.type == "post":
        mysql.atomically(lambda c: counters.add_to_users(c, {(author_id,): {"posts_total": 1}}))
    if parent_id is not None:
        on_post = {("post", parent_id): {"comment_total": 1}}
        mysql.atomically(lambda c: counters.add_to_content(c, on_post))


def run(world: World) -> Report:
    """A run from its beginning to its end, repairs included."""
    run_id = reconciliation.start()
    world.queues.drain()
    return reconciliation.read_report(run_id)


def reasons(report: Report) -> set[tuple[str, str, str]]:
    """(reason, what, target) of all that a run found."""
    return {
        (e.finding.reason, e.finding.subject.what, str(e.finding.subject.target))
        for e in report.examples
    }


def meta_of(target: Target = POST, kind: Kind = LIKE) -> str:
    return keys(target, kind).meta


# ---------------------------------------------------------------- nothing differs


def test_what_plaza_wrote_does_not_differ(crowd: World, audit: Callable[[], Truth]) -> None:
    report = run(crowd)
    assert (report.differing, report.repaired, report.why, report.examples) == (0, 0, {}, [])
    assert report.is_settled
    assert report.tally.relations == 10 + 2 + 2 + 2 + 2
    assert report.tally.targets == 4, "two posts, a review, a user who is followed"
    assert report.tally.users == 3, "an author and two who follow"
    assert report.tally.hot == 5 + 11 + 2, "reactions, users, comments"
    assert (report.tally.pending, report.tally.moving) == (0, 0)
    assert audit().clean


def test_a_filter_is_looked_through(crowd: World) -> None:
    reconciliation.start()
    crowd.queues.drain()
    parts = {p for (p,) in mysql.fetch_all("SELECT part FROM reconciliation_part")}
    assert f"filter:like:{POST}" in parts


def test_nothing_at_all_does_not_differ(plaza: World) -> None:
    report = run(plaza)
    assert report.is_settled
    assert report.differing == report.tally.targets == report.tally.users == 0


# ---------------------------------------------------------------- each kind of difference


def sql(statement: str) -> Damage:
    return lambda: mysql.write(statement)


def command(*parts: Any) -> Damage:
    return lambda: redis.execute(*[p() if callable(p) else p for p in parts])


def a_member_less() -> None:
    redis.execute("ZREM", keys(POST).recent, recent(POST)[-1])


def another_member() -> None:
    redis.execute("ZREM", keys(QUIET).recent, recent(QUIET)[-1])
    redis.execute("ZADD", keys(QUIET).recent, 5, 4242)


def a_hole_in_the_filter() -> None:
    bits = meta(POST)["bloom"]
    redis.execute("DEL", keys(POST).older)
    redis.execute("SETBIT", keys(POST).older, bits, 1)  # sealed, and empty


def what_mysql_does_not_know() -> None:
    ghost = Target("post", 404)
    redis.client().hset(
        meta_of(ghost),
        mapping={
            "total": 3, "ver": 9, "dbver": 2, "dbtotal": 3, "complete": 1, "bloom": 0, "waiting": 0,
        },
    )  # fmt: skip
    redis.execute("ZADD", keys(ghost).recent, 7, 5, 8, 6, 9, 7)


def a_user(field: str, value: object) -> Damage:
    return lambda: redis.execute("HSET", counters.user_key(AUTHOR), field, str(value))


def comments_key() -> str:
    [key] = redis.client().keys("*:post:7:comments")
    return str(key)


def an_old_projection_of_a_newer_version() -> None:
    redis.execute("HSET", counters.user_key(AUTHOR), "ver", 10**6)
    value = counters.UserCounter(1, 2, 3, 4, 5, 10**6)
    redis.execute("HSET", counters.user_key(AUTHOR), "value", value.to_json())


def told_too_little() -> None:
    """The settle of what MySQL saved got lost."""
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, ver)"
        " VALUES ('post', 8, 'like', 11, 1, 1700000000000000)"
    )
    mysql.write(
        "UPDATE content_counter SET like_total = like_total + 1, ver = ver + 1 WHERE target_id = 8"
        " AND target_type = 'post'"
    )
    mysql.write(
        "UPDATE user_counter SET likes_received_total = likes_received_total + 1, ver = ver + 1"
        " WHERE user_id = 1"
    )


POST_7 = "WHERE target_type = 'post' AND target_id = 7"
DAMAGES: dict[str, tuple[Damage, set[tuple[str, str, str]]]] = {
    "a counter is too high": (
        sql(f"UPDATE content_counter SET like_total = like_total + 2 {POST_7}"),
        {("counter", "like", "post:7"), ("total", "like", "post:7")},
    ),
    "a counter is gone": (
        sql(f"DELETE FROM content_counter {POST_7}"),
        {
            ("counter", "like", "post:7"),
            ("counter", "collect", "post:7"),
            ("counter", "comments", "post:7"),
            ("unknown", "like", "post:7"),
            ("unknown", "collect", "post:7"),
            ("projection", "comments", "post:7"),
            ("ahead", "comments", "post:7"),
        },
    ),
    "a counter counts nothing": (
        sql(
            "INSERT INTO content_counter (target_type, target_id, like_total)"
            " VALUES ('comment', 20, 3)"
        ),
        {("counter", "like", "comment:20")},
    ),
    "a counter of comments is wrong": (
        sql(f"UPDATE content_counter SET comment_total = 9 {POST_7}"),
        {("counter", "comments", "post:7"), ("projection", "comments", "post:7")},
    ),
    "a comment went without being counted": (
        sql(
            "UPDATE content SET deleted_at = NOW(6)"
            " WHERE content_type = 'comment' AND content_id = 21"
        ),
        {("counter", "comments", "post:7")},
    ),
    "a row was removed by hand": (
        sql("DELETE FROM reaction WHERE target_type = 'post' AND target_id = 8 AND actor_id = 3"),
        {
            ("counter", "like", "post:8"),
            ("members", "like", "post:8"),
            ("counter", "likes_received", "user:1"),
        },
    ),
    "a row was turned off by hand": (
        sql("UPDATE reaction SET state = 0 WHERE target_type = 'user' AND actor_id = 3"),
        {
            ("counter", "follow", "user:1"),
            ("members", "follow", "user:1"),
            ("counter", "followers", "user:1"),
            ("counter", "following", "user:3"),
        },
    ),
    "a user's totals are wrong": (
        sql(
            "UPDATE user_counter SET posts_total = 9, collects_received_total = 0 WHERE user_id = 1"
        ),
        {
            ("counter", "posts", "user:1"),
            ("counter", "collects_received", "user:1"),
            ("projection", "user", "user:1"),
        },
    ),
    "a user's totals are gone": (
        sql("DELETE FROM user_counter WHERE user_id = 3"),
        {
            ("counter", "following", "user:3"),
            ("projection", "user", "user:3"),
            ("ahead", "user", "user:3"),
        },
    ),
    "a total in Redis is wrong": (
        command("HSET", meta_of, "total", 99),
        {("total", "like", "post:7")},
    ),
    "a member is missing": (
        a_member_less,
        {("members", "like", "post:7"), ("filter", "like", "post:7")},
    ),
    "a member is another": (another_member, {("members", "like", "post:8")}),
    "the filter denies somebody": (a_hole_in_the_filter, {("filter", "like", "post:7")}),
    "Redis is ahead of MySQL": (
        command("HSET", meta_of, "dbver", 10**9),
        {("ahead", "like", "post:7")},
    ),
    "Redis knows what MySQL does not": (
        what_mysql_does_not_know,
        {("unknown", "like", "post:404")},
    ),
    "Redis waits for an empty outbox": (
        command("HSET", meta_of, "waiting", 2),
        {("stuck", "like", "post:7")},
    ),
    "a total can't be read": (
        command("HSET", meta_of, "total", "many"),
        {("unreadable", "like", "post:7")},
    ),
    "a projection is wrong": (
        a_user("value", counters.UserCounter(1, 2, 3, 4, 5, 17).to_json()),
        {("unreadable", "user", "user:1")},
    ),
    "a projection is ahead of MySQL": (
        an_old_projection_of_a_newer_version,
        {("ahead", "user", "user:1"), ("projection", "user", "user:1")},
    ),
    "a projection can't be read": (a_user("value", "{"), {("unreadable", "user", "user:1")}),
    "a version of a projection can't be read": (
        a_user("ver", "new"),
        {("unreadable", "user", "user:1")},
    ),
    "comments in Redis are wrong": (
        command("HSET", comments_key, "value", 5),
        {("projection", "comments", "post:7")},
    ),
    "comments in Redis are ahead": (
        command("HSET", comments_key, "ver", 10**7),
        {("ahead", "comments", "post:7")},
    ),
    "Redis was not told of what was saved": (
        told_too_little,
        {
            ("total", "like", "post:8"),
            ("members", "like", "post:8"),
            ("projection", "user", "user:1"),
        },
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_it_is_found_by_its_reason_and_repaired_and_then_all_agree(
    name: str, crowd: World, audit: Callable[[], Truth]
) -> None:
    damage, expected = DAMAGES[name]
    damage()
    mysql.write("DELETE FROM reaction_log")  # it is not what is compared here
    report = run(crowd)
    assert reasons(report) == expected
    assert report.repaired == report.differing == len(expected)
    assert sum(report.why.values()) == len(expected)
    assert report.is_settled

    again = run(crowd)
    assert again.run_id != report.run_id
    assert (again.differing, again.examples) == (0, [])
    counters.read_users(range(1, 12))  # who comes next brings back what was forgotten
    reactions.count([(LIKE, POST), (LIKE, QUIET), (COLLECT, POST)], 2)
    truth = audit()
    assert [str(d) for d in truth.differences if "log" not in str(d)] == []
    assert run(crowd).differing == 0
