"""Reconciliation on a real Redis and MariaDB: every kind of drift is found and repaired."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.round_trips import count_round_trips
from plaza.core import counters
from plaza.core.counters import mysql_store, redis_store
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Kind,
    Target,
    comparisons,
    inspection,
    mysql_counts,
    mysql_snapshots,
    persist,
    queues,
    react,
    redis_hydration,
    sorted_lists,
)
from plaza.core.reactions.model import Count, ReactionKey
from plaza.infra.derived.comparisons import Tally
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, masters, redis
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.codec import MAX_ID
from plaza.operate.reconciliation import (
    declared,
    mysql_runs,
    orchestrator,
    repair,
    run_steps,
)
from plaza.operate.reconciliation.queues import COMPARISONS, REPAIRS
from plaza.social.recommendations import like_roll_up
from tests.integration.conftest import Away
from tests.support.audits import Audit
from tests.support.consumers import statements
from tests.support.depth import choose
from tests.support.failures import Killed
from tests.support.functions import ask, authorization, event, handler
from tests.support.keyspace import find_keys
from tests.support.logs import read_log
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run
from tests.support.stores import (
    add_users,
    counter,
    keys,
    meta,
    outbox,
    put_totals,
    read_counts,
    recent,
)

POST, OTHER_POST, REVIEW = Target("post", 7), Target("post", 8), Target("review", 9)
AUTHOR = 1
LIKERS = range(2, 12)
SetUp = Callable[..., None]
Damage = Callable[[], object]


@pytest.fixture
def crowd(set_up: SetUp, plaza: World) -> World:
    """Users 1 to 11; 2 to 11 like a post of user 1. All targets are in Redis, nothing is pending.

    Redis keeps five of the likers in ``recent``, so that the post has a Bloom filter.
    """
    set_up(recent_cap=5)
    add_users(*range(1, 12))
    write(POST, AUTHOR)
    write(OTHER_POST, AUTHOR)
    plaza.add(REVIEW, author_id=2)
    write(Target("comment", 20), 3, POST.id)
    write(Target("comment", 21), 4, POST.id)
    for user_id in LIKERS:
        react.react(LIKE, POST, user_id, True)
    for user_id in (2, 3):
        react.react(COLLECT, POST, user_id, True)
        react.react(LIKE, OTHER_POST, user_id, True)
        react.react(LIKE, REVIEW, user_id + 1, True)
        react.react(FOLLOW, Target("user", AUTHOR), user_id, True)
    plaza.queues.drain()
    like_roll_up.roll_up_likes()
    counters.read_users(range(1, 12))
    counters.read_comments([POST.id, OTHER_POST.id])
    return plaza


def write(target: Target, author_id: int, parent_id: int | None = None) -> None:
    """Create content and count it as the product does."""
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " VALUES (%s, %s, %s, %s)",
        (*target, author_id, parent_id),
    )
    if target.type == "post":
        mysql.run_in_transaction(
            lambda c: counters.add_to_users(c, {(author_id,): {"posts_total": 1}})
        )
    if parent_id is not None:
        on_post = {("post", parent_id, counters.COMMENT): counters.CounterDelta(1)}
        mysql.run_in_transaction(lambda c: counters.add_to_targets(c, on_post))


def meta_of(target: Target = POST, kind: Kind = LIKE) -> str:
    return keys(target, kind).meta


# ---------------------------------------------------------------- no drift


def test_data_written_by_plaza_has_no_drift(crowd: World, audit: Audit) -> None:
    report = run(crowd)
    assert (report.differing, report.repaired, report.reason_counts, report.examples) == (
        0,
        0,
        {},
        [],
    )
    assert report.is_resolved
    assert report.tally.relations == 10 + 2 + 2 + 2 + 2
    assert report.tally.targets == 5, "two posts, a review and its likes, a followed user"
    assert report.tally.users == 3 + 2 * 2, "an author, two followers; two by unread, by groups"
    assert report.tally.cached == 5 + 11 + 2, "reactions, users, comments"
    assert report.tally.skipped == 0
    assert audit().clean


def test_a_bloom_filter_is_a_part_of_the_run(crowd: World) -> None:
    orchestrator.start()
    crowd.queues.drain()
    parts = {p for (p,) in mysql.fetch_all("SELECT part FROM reconciliation_part")}
    assert f"filter:like:{POST}" in parts


def test_empty_stores_have_no_drift(plaza: World) -> None:
    report = run(plaza)
    assert report.is_resolved
    assert report.differing == report.tally.targets == report.tally.users == 0


@pytest.mark.parametrize(
    "name",
    [
        "like:post:99999999999999999999",
        "like:post:9999999999999999999",
        "like:post:0",
        "follow:comment:7",
        "love:post:7",
        "like:post:-7",
    ],
)
def test_a_key_that_is_not_plazas_is_ignored(plaza: World, name: str) -> None:
    target = name.partition(":")[2]
    tag = f"{{{shard_of(target)}}}"
    redis.execute("HSET", f"{tag}:{name}:meta", "base", 5, "db_version", 1)
    if "post" not in target or len(target) > 10:
        redis.execute("HSET", f"{tag}:{target}:comments", "version", 5, "value", 1)
    redis.execute("HSET", "{1}:like:post:8:meta", "base", 5)  # the wrong shard
    report = run(plaza)
    assert (report.differing, report.tally.cached, report.is_resolved) == (0, 0, True)


# ---------------------------------------------------------------- each kind of drift


def sql(statement: str) -> Damage:
    return lambda: mysql.write(statement)


def command(*parts: Any) -> Damage:
    return lambda: redis.execute(*[p() if callable(p) else p for p in parts])


def damage_list(statement: str) -> Damage:
    """Sort the likes of post 7, then run a statement."""

    def damage() -> None:
        assert sorted_lists.sort_list(LIKE, POST, Deadline.in_s(60)) is None
        assert mysql.write(statement)

    return damage


def remove_member() -> None:
    redis.execute("ZREM", keys(POST).recent, recent(POST)[-1])


def replace_member() -> None:
    redis.execute("ZREM", keys(OTHER_POST).recent, recent(OTHER_POST)[-1])
    redis.execute("ZADD", keys(OTHER_POST).recent, 5, 4242)


def empty_filter() -> None:
    bits = meta(POST)["bloom"]
    redis.execute("DEL", keys(POST).bloom)
    redis.execute("SETBIT", keys(POST).bloom, bits, 1)  # complete, but empty


def add_unknown_target() -> None:
    ghost = Target("post", 404)
    connections.client().hset(
        meta_of(ghost),
        mapping={
            "term": masters.find_node(meta_of(ghost)).term,
            "mode": "2:live:complete",
            "base": 3,
            "accepted": "0:0:9",
            "db_version": 2,
            "floor": 0,
        },
    )
    redis.execute("ZADD", keys(ghost).recent, 7, 5, 8, 6, 9, 7)


def set_user_projection(field: str, value: object) -> Damage:
    return lambda: redis.execute("HSET", counters.user_key(AUTHOR), field, str(value))


def comments_key() -> str:
    [key] = find_keys("*:post:7:comments")
    return str(key)


def put_user_projection_ahead() -> None:
    redis.execute("HSET", counters.user_key(AUTHOR), "version", 10**6)
    value = counters.UserCounter(1, 2, 3, 4, 5, 10**6)
    redis.execute("HSET", counters.user_key(AUTHOR), "value", counters.USER_COUNTER.encode(value))


def store_without_acknowledging() -> None:
    """Store an event in MySQL whose acknowledgement is lost."""
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " VALUES ('post', 8, 'like', 11, 1, 1700000000000000)"
    )
    mysql.write(
        "UPDATE counter SET total = total + 1, version = version + 1"
        " WHERE target_id = 8 AND target_type = 'post' AND kind = 'like'"
    )
    mysql.write(
        "UPDATE user_counter"
        " SET likes_received_total = likes_received_total + 1, version = version + 1"
        " WHERE user_id = 1"
    )


POST_7 = "WHERE target_type = 'post' AND target_id = 7"
LIKES_OF_7 = f"{POST_7} AND kind = 'like'"
COMMENTS_ON_7 = f"{POST_7} AND kind = 'comment'"
DAMAGES: dict[str, tuple[Damage, set[tuple[str, str, str]]]] = {
    "a counter is too high": (
        sql(f"UPDATE counter SET total = total + 2 {LIKES_OF_7}"),
        {("counter", "like", "post:7"), ("total", "like", "post:7")},
    ),
    "all counters of a target are missing": (
        sql(f"DELETE FROM counter {POST_7}"),
        {
            ("counter", "like", "post:7"),
            ("counter", "collect", "post:7"),
            ("counter", "comment", "post:7"),
            ("unknown", "like", "post:7"),
            ("unknown", "collect", "post:7"),
            ("projection", "comment", "post:7"),
            ("ahead", "comment", "post:7"),
        },
    ),
    "one counter of a target is missing": (
        sql(f"DELETE FROM counter {LIKES_OF_7}"),
        {("counter", "like", "post:7"), ("unknown", "like", "post:7")},
    ),
    "a counter has no rows": (
        sql(
            "INSERT INTO counter (target_type, target_id, kind, total)"
            " VALUES ('comment', 20, 'like', 3)"
        ),
        {("counter", "like", "comment:20")},
    ),
    "a counter of comments is wrong": (
        sql(f"UPDATE counter SET total = 9 {COMMENTS_ON_7}"),
        {("counter", "comment", "post:7"), ("projection", "comment", "post:7")},
    ),
    "a comment was deleted without being counted": (
        sql(
            "UPDATE content SET deleted_at = NOW(6)"
            " WHERE content_type = 'comment' AND content_id = 21"
        ),
        {("counter", "comment", "post:7")},
    ),
    "a row was removed by hand": (
        sql("DELETE FROM reaction WHERE target_type = 'post' AND target_id = 8 AND actor_id = 3"),
        {
            ("counter", "like", "post:8"),
            ("members", "like", "post:8"),
            ("counter", "likes_received", "user:1"),
            ("unread-fresh", "unread-like", "post:8"),
        },
    ),
    "a row was turned off by hand": (
        sql("UPDATE reaction SET state = 0 WHERE target_type = 'user' AND actor_id = 3"),
        {
            ("counter", "follow", "user:1"),
            ("members", "follow", "user:1"),
            ("counter", "followers", "user:1"),
            ("counter", "following", "user:3"),
            ("unread-fresh", "unread-follow", "user:1"),
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
    "a user's totals are missing": (
        sql("DELETE FROM user_counter WHERE user_id = 3"),
        {
            ("counter", "following", "user:3"),
            ("projection", "user", "user:3"),
            ("ahead", "user", "user:3"),
        },
    ),
    "a total in Redis is wrong": (
        command("HSET", meta_of, "base", 99),
        {("total", "like", "post:7")},
    ),
    "a member is missing": (
        remove_member,
        {("members", "like", "post:7"), ("filter", "like", "post:7")},
    ),
    "a member is wrong": (replace_member, {("members", "like", "post:8")}),
    "the filter denies an actor": (empty_filter, {("filter", "like", "post:7")}),
    "Redis is ahead of MySQL": (
        command("HSET", meta_of, "db_version", 10**9),
        {("ahead", "like", "post:7")},
    ),
    "Redis has a target that MySQL does not have": (
        add_unknown_target,
        {("unknown", "like", "post:404")},
    ),
    "outbox_count is not the size of the outbox": (
        command("HSET", meta_of, "accepted", "0:2:9"),
        {("stuck", "like", "post:7")},
    ),
    "a total can't be read": (
        command("HSET", meta_of, "base", "many"),
        {("unreadable", "like", "post:7")},
    ),
    "a projection has two versions": (
        set_user_projection(
            "value", counters.USER_COUNTER.encode(counters.UserCounter(1, 2, 3, 4, 5, 17))
        ),
        {("unreadable", "user", "user:1")},
    ),
    "a projection is ahead of MySQL": (
        put_user_projection_ahead,
        {("ahead", "user", "user:1"), ("projection", "user", "user:1")},
    ),
    "a projection can't be read": (
        set_user_projection("value", "{"),
        {("unreadable", "user", "user:1")},
    ),
    "a version of a projection can't be read": (
        set_user_projection("version", "new"),
        {("unreadable", "user", "user:1")},
    ),
    "comments in Redis are wrong": (
        command("HSET", comments_key, "value", 5),
        {("projection", "comment", "post:7")},
    ),
    "comments in Redis are ahead": (
        command("HSET", comments_key, "version", 10**7),
        {("ahead", "comment", "post:7")},
    ),
    "an entry of a sorted list is missing": (
        damage_list("DELETE FROM sorted_reaction WHERE actor_id = 3"),
        {("sorted", "like", "post:7")},
    ),
    "a sorted list has an entry too many": (
        damage_list(
            "INSERT INTO sorted_reaction (target_type, target_id, kind, state, version, actor_id)"
            " VALUES ('post', 7, 'like', 0, 5, 3)"
        ),
        {("sorted", "like", "post:7")},
    ),
    "entries of a sorted list have each other's versions": (
        damage_list(
            "UPDATE sorted_reaction AS a JOIN (SELECT MAX(version) AS newest,"
            " MIN(version) AS oldest FROM sorted_reaction) AS b"
            " ON a.version IN (b.newest, b.oldest)"
            " SET a.version = b.newest + b.oldest - a.version"
        ),
        {("sorted", "like", "post:7"), ("members", "like", "post:7")},
    ),
    "a row of a sorted list was turned off by hand": (
        damage_list(
            "UPDATE reaction SET state = 0 WHERE target_id = 7 AND actor_id = 3 AND kind = 'like'"
        ),
        {
            ("sorted", "like", "post:7"),
            ("counter", "like", "post:7"),
            ("counter", "likes_received", "user:1"),
            ("unread-fresh", "unread-like", "post:7"),
        },
    ),
    "likes of a review are wrong": (
        sql("UPDATE content SET likes = 5 WHERE content_type = 'review'"),
        {("review_likes", "review_likes", "review:9")},
    ),
    "an event was not acknowledged": (
        store_without_acknowledging,
        {
            ("total", "like", "post:8"),
            ("members", "like", "post:8"),
            ("projection", "user", "user:1"),
        },
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_drift_is_found_by_reason_and_repaired(name: str, crowd: World, audit: Audit) -> None:
    damage, expected = DAMAGES[name]
    damage()
    report = run(crowd)
    assert findings_of(report) == expected
    assert report.repaired == report.differing == len(expected)
    assert sum(report.reason_counts.values()) == len(expected)
    assert report.is_resolved

    again = run(crowd)
    assert again.run_id != report.run_id
    assert (again.differing, again.examples) == (0, [])
    counters.read_users(range(1, 12))  # the next readers load what was dropped
    read_counts([(LIKE, POST), (LIKE, OTHER_POST), (COLLECT, POST)], 2)
    audited = audit()
    # Rows that were removed by hand are still in the log and in the hours that it was rolled up to.
    others = ("log ", "rolled up")
    rest = [d.details for d in audited.differences if not d.details.startswith(others)]
    assert [details for details in rest if ", log " not in details] == []
    assert run(crowd).differing == 0


# ---------------------------------------------------------------- sorted lists


def sorted_targets() -> list[tuple[str, int]]:
    """Return the targets whose likes have a complete sorted list."""
    return mysql.fetch_all(
        "SELECT target_type, target_id FROM counter"
        " WHERE kind = 'like' AND sorted_at > 0 AND sorted_at = version"
    )


def test_a_run_fills_the_lists_that_large_targets_lack(
    crowd: World, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_lists, "MAX_UNSORTED", 9)
    assert sorted_targets() == []
    assert run(crowd).differing == 0
    assert sorted_targets() == [tuple(POST)]
    mysql.write(f"UPDATE counter SET version = version + 1 {LIKES_OF_7}")
    inspection.evict_all([(LIKE, POST, None)])
    assert sorted_targets() == []
    assert run(crowd).differing == 0
    assert sorted_targets() == [tuple(POST)]
    assert audit().clean


def test_a_corrected_counter_keeps_its_sorted_list(crowd: World) -> None:
    assert sorted_lists.sort_list(LIKE, POST, Deadline.in_s(60)) is None
    mysql.write(f"UPDATE counter SET total = total + 2 {LIKES_OF_7}")
    assert ("counter", "like", "post:7") in findings_of(run(crowd))
    assert sorted_targets() == [tuple(POST)]
    assert counter(POST) == 10


def test_the_audit_finds_a_wrong_sorted_list(crowd: World, audit: Audit) -> None:
    damage_list("DELETE FROM sorted_reaction WHERE actor_id = 3")()
    assert [str(d) for d in audit().differences] == [
        "like post:7: 1 entries of its sorted list are wrong"
    ]


# ---------------------------------------------------------------- in transit


def test_a_target_with_an_outbox_is_repaired_and_keeps_its_outbox(
    crowd: World, audit: Audit
) -> None:
    react.react(LIKE, POST, 1, True)
    events = crowd.queues.take(queues.REACTIONS)
    before = outbox(POST)
    report = run(crowd)
    assert (report.differing, report.tally.skipped) == (0, 0)
    redis.execute("HSET", meta_of(), "base", 99)
    assert findings_of(run(crowd)) == {("total", "like", "post:7")}
    assert outbox(POST) == before
    assert read_counts([(LIKE, POST)], 1) == ([Count(11, True)], True)
    assert run(crowd).differing == 0

    crowd.queues.messages[queues.REACTIONS] = events
    crowd.queues.drain()
    assert audit().clean


def test_a_commit_applied_before_the_recheck_is_no_drift(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while Redis is unavailable: an event is stored, and its commit is applied later."""
    store_without_acknowledging()
    mysql.write("UPDATE user_counter SET version = version - 1 WHERE user_id = 1")
    counters.refresh_projections([1])
    mysql.write("UPDATE user_counter SET version = version + 1 WHERE user_id = 1")
    recheck_suspects = run_steps._recheck_suspects

    def acknowledge_first(run_id: int, after_id: int) -> Any:
        key = ReactionKey("post", 8, "like", 11)
        persist.acknowledge_again([queues.Unacknowledged(keys=[key])])
        redis_hydration.evict_all([(LIKE, OTHER_POST, None)])
        return recheck_suspects(run_id, after_id)

    monkeypatch.setattr(run_steps, "_recheck_suspects", acknowledge_first)
    report = run(crowd)
    assert (report.differing, report.tally.skipped) == (0, 0)


def test_a_stale_target_that_changed_before_the_recheck_is_skipped(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_without_acknowledging()
    counters.refresh_projections([1])
    recheck_suspects = run_steps._recheck_suspects

    def change_first(run_id: int, after_id: int) -> Any:
        redis.execute("HINCRBY", meta_of(OTHER_POST), "base", -1)
        return recheck_suspects(run_id, after_id)

    monkeypatch.setattr(run_steps, "_recheck_suspects", change_first)
    report = run(crowd)
    assert (report.differing, report.tally.skipped) == (0, 1)


def test_the_recheck_is_delayed_only_when_there_are_suspects(crowd: World) -> None:
    sent: list[tuple[str, int]] = []
    send = crowd.queues.send

    def record_and_send(queue: str, body: str, delay_s: int = 0) -> None:
        sent.append((json.loads(body).get("part", ""), delay_s))
        send(queue, body, delay_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plaza.infra.queues.sqs.send", record_and_send)
        run(crowd)
        redis.execute("HSET", meta_of(), "base", 99)
        run(crowd)
    delays_s = [delay_s for part, delay_s in sent if part == "recheck"]  # a part may be sent twice
    assert list(dict.fromkeys(delays_s)) == [0, 20]


def test_a_run_changes_no_expiry(crowd: World) -> None:
    every = sorted(connections.client().scan_iter("*"))
    for key in every:
        redis.execute("PEXPIRE", key, 500_000)
    run(crowd)
    assert sorted(connections.client().scan_iter("*")) == every
    assert all(0 < redis.execute("PTTL", key) <= 500_000 for key in every)


# ---------------------------------------------------------------- steps


def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (mysql_counts, "MAX_RELATIONS", 3),
        (mysql_counts, "_MAX_COUNTERS", 1),
        (mysql_counts, "_MAX_OWNED", 1),
        (run_steps, "_TARGETS_PER_STEP", 1),
        (comparisons, "_ACTORS_PER_STEP", 4),
        (comparisons, "ACTORS_PER_CALL", 2),
        (run_steps, "_SUSPECTS_PER_STEP", 1),
        (run_steps, "_FINDINGS_PER_STEP", 1),
        (run_steps, "MAX_FINDINGS_PER_MESSAGE", 1),
        (orchestrator, "MAX_RUN_S", 0),
    ):
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr("plaza.operate.reconciliation.redis_scan._KEYS_PER_SCAN", 2)


def damage_all() -> None:
    """Cause drift in every part of a run."""
    for statement in (
        f"UPDATE counter SET total = total + 2 {LIKES_OF_7}",
        "UPDATE counter SET total = 7 WHERE target_type = 'review' AND kind = 'like'",
        "UPDATE user_counter SET following_total = 9 WHERE user_id = 3",
    ):
        mysql.write(statement)
    redis.execute("HSET", meta_of(OTHER_POST), "base", 55)
    redis.execute("HINCRBY", meta_of(POST, COLLECT), "db_version", 10**6)
    add_unknown_target()


def test_small_steps_find_the_same_drift_as_one_large_step(
    crowd: World, monkeypatch: pytest.MonkeyPatch, audit: Audit
) -> None:
    clean = run(crowd)
    small_steps(monkeypatch)
    again = run(crowd)
    assert again.tally.relations == clean.tally.relations
    assert again.tally.targets == clean.tally.targets
    assert again.tally.users == clean.tally.users
    assert again.tally.cached >= clean.tally.cached, "SCAN may return a key twice"
    damage_all()
    report = run(crowd)
    assert report.differing == report.repaired == len(findings_of(report)) > 8
    assert run(crowd).differing == 0
    assert audit().clean


def test_a_target_larger_than_a_range_is_a_range_of_its_own(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_counts, "MAX_RELATIONS", 3)
    assert mysql_counts.find_target_range_end("post", 0) == POST.id
    assert mysql_counts.find_target_range_end("post", POST.id) == MAX_ID
    monkeypatch.setattr(mysql_counts, "MAX_RELATIONS", 12)
    assert mysql_counts.find_target_range_end("post", 0) == POST.id, (
        "with the next target, the range is too large"
    )
    assert mysql_counts.find_user_range_end(0) == AUTHOR, "by reactions received"


def test_the_number_of_statements_and_round_trips_does_not_grow_with_targets(plaza: World) -> None:
    add_users(*range(1, 12))
    taken = []
    for size in (5, 50):
        for post in range(1, size + 1):
            if not mysql.fetch_all("SELECT 1 FROM content WHERE content_id = %s", (post,)):
                write(Target("post", post), AUTHOR)
        for post, user_id in itertools.product(range(1, size + 1), (2, 3)):
            react.react(LIKE, Target("post", post), user_id, True)
            react.react(COLLECT, Target("post", post), user_id, True)
        plaza.queues.drain()
        with count_round_trips() as trips:
            before = statements()
            run(plaza)
            taken.append((statements() - before, trips.sent))
        for post in range(1, size + 1):  # all differ: found, compared again and repaired
            redis.execute("HSET", meta_of(Target("post", post)), "base", 99)
        with count_round_trips() as trips:
            before = statements()
            assert run(plaza).repaired == size
            taken.append((statements() - before, trips.sent))
    clean, damaged, more_clean, more_damaged = taken
    assert more_clean[0] <= clean[0], "statements"
    scans = 2 * len(redis.nodes())
    assert more_clean[1] <= clean[1] + scans, "round trips; SCAN may take some more"
    assert more_damaged[0] <= damaged[0] + 1, "statements"
    assert more_damaged[1] <= damaged[1] + scans


# ---------------------------------------------------------------- concurrency and crashes


def test_start_resumes_an_open_run(crowd: World) -> None:
    first = orchestrator.start()
    assert orchestrator.start() == first
    crowd.queues.drain()
    report = orchestrator.read_report(first)
    assert report.is_resolved
    assert report.tally.relations == 18, "each is counted once although each part was sent twice"
    assert orchestrator.start() > first


def test_only_one_of_two_consumers_commits_a_step(crowd: World) -> None:
    damage_all()
    run_id = orchestrator.start()
    crowd.queues.take(COMPARISONS)
    for part in mysql_runs.read_parts(run_id):
        first, second = run_steps.execute(part), run_steps.execute(part)
        assert mysql_runs.commit_step(part, first)
        assert not mysql_runs.commit_step(part, second)
    sums = mysql.fetch_all("SELECT SUM(relations), SUM(targets) FROM reconciliation_part")
    orchestrator.start()
    crowd.queues.drain()
    report = orchestrator.read_report(run_id)
    assert (report.tally.relations, report.tally.targets) == tuple(map(int, sums[0]))
    assert report.is_resolved


def test_a_repair_that_is_delivered_twice_is_counted_and_applied_once(crowd: World) -> None:
    damage_all()
    run_id = orchestrator.start()
    sent: list[str] = []
    while bodies := crowd.queues.take(COMPARISONS):
        orchestrator.process_parts([COMPARISONS.decode(str(body)) for body in bodies])
        sent += crowd.queues.take(REPAIRS)
    repairs = [REPAIRS.decode(str(body)) for body in sent]
    repair.repair(repairs)
    versions = """
        SELECT target_id, kind, version
        FROM counter
        UNION ALL
        SELECT user_id, '', version
        FROM user_counter
        """
    before = mysql.fetch_all(versions)
    repaired = orchestrator.read_report(run_id).repaired
    repair.repair(repairs)
    assert mysql.fetch_all(versions) == before
    report = orchestrator.read_report(run_id)
    assert report.repaired == repaired == report.differing


def test_a_repair_of_a_counter_that_is_right_again_changes_nothing_in_mysql(crowd: World) -> None:
    mysql.write(f"UPDATE counter SET total = total + 2 {LIKES_OF_7}")
    orchestrator.start()
    while bodies := crowd.queues.take(COMPARISONS):
        orchestrator.process_parts([COMPARISONS.decode(str(body)) for body in bodies])
    mysql.write(f"UPDATE counter SET total = total - 2 {LIKES_OF_7}")
    rows = "SELECT * FROM counter"
    before = mysql.fetch_all(rows)
    crowd.queues.drain()
    assert mysql.fetch_all(rows) == before
    assert read_counts([(LIKE, POST)], 2) == ([Count(10, True)], True)


def test_a_reader_from_before_a_repair_does_not_store_old_values(crowd: World) -> None:
    """The repair raises the version, and ends the lease of a load in progress."""
    mysql.write(f"UPDATE counter SET total = 12 {LIKES_OF_7}")
    mysql.write(f"UPDATE counter SET total = 9 {COMMENTS_ON_7}")
    mysql.write("UPDATE user_counter SET posts_total = 9 WHERE user_id = 1")
    redis.execute("FLUSHALL")
    users = mysql_store.read_users([AUTHOR])
    comments = mysql_store.read_comments([POST.id])
    [lease] = redis_hydration.take_hydration_leases([(LIKE, POST)])
    [snapshot] = mysql_snapshots.read_snapshots([(LIKE, POST, [])], 5)
    assert run(crowd).repaired == 3

    put_totals(users)
    redis_store.project_comments(comments, create=True)
    assert redis_hydration.hydrate_all([(LIKE, POST, lease, snapshot)]) == ["STALE"]
    assert counters.read_users([AUTHOR])[AUTHOR].posts_total == 2
    assert counters.read_comments([POST.id]) == {POST.id: 2}
    assert read_counts([(LIKE, POST)], None) == ([Count(10, False)], True)


def test_a_repair_corrects_the_likes_of_a_review(crowd: World) -> None:
    mysql.write("UPDATE counter SET total = 7 WHERE target_type = 'review' AND kind = 'like'")
    mysql.write("UPDATE content SET parent_id = 5, likes = 7 WHERE content_type = 'review'")
    run(crowd)
    likes = "SELECT likes FROM content WHERE content_type = 'review'"
    assert mysql.fetch_all(likes) == [(2,)]
    assert [shop for (shop,) in mysql.fetch_all("SELECT shop_id FROM stale_list")] == [5]


def test_likes_whose_events_are_not_rolled_up_are_no_drift(crowd: World) -> None:
    react.react(LIKE, REVIEW, 8, True)
    crowd.queues.drain()
    assert run(crowd).differing == 0
    like_roll_up.roll_up_likes()
    assert run(crowd).differing == 0


def test_likes_of_a_review_without_a_counter_are_repaired(crowd: World) -> None:
    crowd.add(Target("review", 10), author_id=2)
    mysql.write("UPDATE content SET likes = 5 WHERE content_id = 10")
    assert findings_of(run(crowd)) == {("review_likes", "review_likes", "review:10")}
    assert run(crowd).differing == 0


def test_what_no_comparison_repairs_is_reported_as_not_repaired(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql.write(f"UPDATE counter SET total = 12 {LIKES_OF_7}")
    monkeypatch.setattr(declared, "list_repairs", list)
    report = run(crowd)
    assert (report.differing, report.repaired, report.is_resolved) == (2, 0, False)


@contextlib.contextmanager
def killed_after(call: int) -> Iterator[list[int]]:
    """Execute the ``call``-th call to Redis, MySQL or the queue, then raise Killed."""
    calls = [0]

    def killing(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **options: Any) -> Any:
            calls[0] += 1
            number = calls[0]
            result = real(*args, **options)
            if number == call:
                raise Killed
            return result

        return called

    with pytest.MonkeyPatch.context() as patch:
        for dependency in (connections.REDIS, mysql.MYSQL):
            patch.setattr(dependency, "call", killing(dependency.call))
        for name in ("send", "send_all"):
            patch.setattr(sqs, name, killing(getattr(sqs, name)))
        yield calls


def deliver(world: World) -> None:
    """Run the consumers; a message is deleted only after it was processed."""
    work: dict[str, Callable[[str], None]] = {
        COMPARISONS.name: lambda body: orchestrator.process_parts([COMPARISONS.decode(str(body))]),
        REPAIRS.name: lambda body: repair.repair([REPAIRS.decode(str(body))]),
    }
    while bodies := [(q, body) for q in work for body in world.queues.messages[q]]:
        queue, body = bodies[0]
        work[queue](body)
        world.queues.messages[queue].remove(body)


KILLED_EVERY = choose(17, 1)
"""The distance of the calls after which a run is killed."""


@pytest.mark.sampled
def test_a_kill_at_any_call_does_not_change_the_result_of_a_run(crowd: World, audit: Audit) -> None:
    for _ in range(2):  # the first repair creates the missing counter
        damage_all()
        expected = run(crowd)
        assert expected.is_resolved
    newest = expected.run_id
    for call in itertools.count(1, KILLED_EVERY):
        damage_all()
        with killed_after(call) as calls, contextlib.suppress(Killed):
            orchestrator.start()
            deliver(crowd)
        if calls[0] < call:
            break
        mysql.forget_connection()
        begun = [r.run_id for r in orchestrator.read_reports() if r.run_id > newest]
        lost = call % 2 == 1
        if lost:  # the queues' messages, too: the next schedule resumes the run
            crowd.queues.messages.clear()
        newest = orchestrator.start()
        deliver(crowd)
        report = orchestrator.read_report(begun[0] if begun else newest)
        assert (report.differing, report.reason_counts) == (
            expected.differing,
            expected.reason_counts,
        ), call
        assert report.tally.relations == expected.tally.relations, call
        if not orchestrator.read_report(newest).is_resolved:
            assert lost, call  # the next run sends the lost repairs
            newest = run(crowd).run_id
            assert orchestrator.read_report(newest).is_resolved, call
        assert audit().clean, call
    assert call > 40
    assert run(crowd).differing == 0


def test_a_run_resumes_after_a_queue_outage(crowd: World) -> None:
    damage_all()
    crowd.queues.away = True
    with pytest.raises(QueueDown):
        orchestrator.start()
    crowd.queues.away = False
    report = run(crowd)
    assert report.is_resolved
    assert report.repaired > 5
    assert run(crowd).differing == 0


def test_a_repair_is_retried_after_an_outage_of_redis(
    crowd: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.infra.queues.processor._hide", lambda *_: None)
    mysql.write(f"UPDATE counter SET total = total + 2 {LIKES_OF_7}")
    run_id = orchestrator.start()
    while bodies := crowd.queues.take(COMPARISONS):
        orchestrator.process_parts([COMPARISONS.decode(str(body)) for body in bodies])
    with redis_away():
        [body] = crowd.queues.messages[REPAIRS]
        response = handler("queue/repair_drift")(
            {"Records": [message(body)]},
            None,
        )
        assert len(response["batchItemFailures"]) == 1
        assert orchestrator.read_report(run_id).repaired == 0
    crowd.queues.drain()
    assert orchestrator.read_report(run_id).is_resolved
    assert counter(POST) == 10


def message(body: str) -> dict[str, Any]:
    return {
        "messageId": "1",
        "receiptHandle": "1",
        "body": str(body),
        "attributes": {"ApproximateReceiveCount": "1"},
    }


# ---------------------------------------------------------------- functions, routes, reports


def test_the_functions_process_events_of_aws(crowd: World) -> None:
    damage_all()
    started = handler("schedule/reconcile")(event("reconcile.schedule"), None)
    run_id = started["run"]
    for queue, folder in ((COMPARISONS, "compare_parts"), (REPAIRS, "repair_drift")):
        while bodies := crowd.queues.take(queue):
            for body in bodies:
                response = handler(f"queue/{folder}")({"Records": [message(body)]}, None)
                assert response == {"batchItemFailures": []}
    assert orchestrator.read_report(run_id).is_resolved
    for name in ("compare_parts.targets", "repair_drift.findings"):
        folder = name.partition(".")[0]
        assert handler(f"queue/{folder}")(event(name), None) == {"batchItemFailures": []}


OPS = "api/reconciliation"


def test_an_admin_starts_a_run_and_reads_its_report(crowd: World) -> None:
    assert ask("reconciliation.list_reconciliations", OPS) == (200, {"items": [], "next": None})
    mysql.write("UPDATE counter SET total = 7 WHERE target_type = 'review' AND kind = 'like'")
    status, begun = ask("reconciliation.start_reconciliation", OPS)
    assert (status, begun["ended_at"], begun["differences"]) == (202, None, 0)
    crowd.queues.drain()
    status, page = ask("reconciliation.list_reconciliations", OPS)
    [items] = page["items"]
    assert (status, items["id"], items["reasons"]) == (
        200,
        begun["id"],
        {"counter": 1, "total": 1, "review_likes": 1},
    )
    assert (items["differences"], items["repaired"], items["relations"]) == (3, 3, 18)
    assert items["ended_at"].endswith("Z")
    [first] = [e for e in items["examples"] if e["reason"] == "counter"]
    assert (first["metric"], first["type"], first["id"]) == ("like", "review", "9")
    assert first["detail"] == "counter 7, rows 2"
    assert first["repaired_at"] is not None


def test_runs_are_listed_page_by_page(crowd: World) -> None:
    ids = [str(run(crowd).run_id) for _ in range(3)][::-1]
    request = event("reconciliation.list_reconciliations")
    request["queryStringParameters"], request["rawQueryString"] = {"limit": "2"}, "limit=2"
    first = json.loads(handler(OPS)(request, None)["body"])
    assert [items["id"] for items in first["items"]] == ids[:2]
    request["queryStringParameters"] = {"limit": "2", "cursor": first["next"]}
    rest = json.loads(handler(OPS)(request, None)["body"])
    assert ([items["id"] for items in rest["items"]], rest["next"]) == (ids[2:], None)
    request["queryStringParameters"] = {"cursor": "WyJhIl0"}
    assert handler(OPS)(request, None)["statusCode"] == 400


def test_callers_other_than_admins_are_refused(plaza: World) -> None:
    assert ask("reconciliation.list_reconciliations_as_user", OPS)[0] == 403
    request = event("reconciliation.start_reconciliation")
    request["headers"] |= authorization(7)
    assert handler(OPS)(request, None)["statusCode"] == 403
    del request["headers"]["authorization"]
    assert handler(OPS)(request, None)["statusCode"] == 401


def test_old_runs_are_reported_without_examples(
    crowd: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    damage_all()
    first = run(crowd)
    monkeypatch.setattr(mysql_runs, "RETAINED_RUNS", 1)
    run(crowd)
    run(crowd)
    then = orchestrator.read_report(first.run_id)
    assert (then.reason_counts, then.differing, then.repaired) == (
        first.reason_counts,
        first.differing,
        first.repaired,
    )
    assert then.examples == []
    assert then.tally == first.tally != Tally()


def test_the_end_of_a_run_is_one_log_line_with_its_findings(
    crowd: World, capsys: pytest.CaptureFixture[str]
) -> None:
    damage_all()
    run(crowd)
    lines = read_log(capsys)
    [line] = [line for line in lines if line["event"] == "reconciliation_ended"]
    assert line["drift_found"] == sum(line["reason_counts"].values()) > 5
    assert line["relations_compared"] == 18
    repairs = [line for line in lines if line["event"] == "drift_repaired"]
    assert sum(r["drift_repaired"] for r in repairs) == line["drift_found"]
