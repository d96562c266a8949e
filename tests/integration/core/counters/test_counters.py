"""Counters of users and posts: reads through Redis, changes in the caller's transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import pytest
from pymysql.cursors import Cursor

from local.stack.servers import connect_mysql
from plaza.core import counters
from plaza.core.counters import CounterDelta, CounterKey, TargetCounter, UserCounter, redis_store
from plaza.core.counters.model import USER_COLUMNS
from plaza.core.reactions import Target
from plaza.infra.derived import projections
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from tests.integration.conftest import Away
from tests.support.call_log import record_call
from tests.support.consumers import lock_counter
from tests.support.plaza import World


def write_user(user_id: int, version: int, **totals: int) -> UserCounter:
    columns = {"user_id": user_id, "version": version, **totals}
    mysql.write(
        f"REPLACE INTO user_counter ({', '.join(columns)})"
        f" VALUES ({', '.join(map(str, columns.values()))})"
    )
    return UserCounter(version=version, **totals)


def write_comments(post_id: int, total: int, version: int) -> None:
    mysql.write(
        "REPLACE INTO counter (target_type, target_id, kind, total, version)"
        " VALUES ('post', %s, 'comment', %s, %s)",
        (post_id, total, version),
    )


def count_statements() -> int:
    [(_, count)] = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")
    return int(count)


def count_lock_waits() -> int:
    [(_, count)] = mysql.fetch_all("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_waits'")
    return int(count)


def recording(name: str, call: Callable[..., Any], calls: list[str]) -> Callable[..., Any]:
    def recorded(*args: Any) -> Any:
        calls.append(name)
        return call(*args)

    return recorded


@contextmanager
def recording_calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the calls of Redis and MySQL, in order."""
    calls: list[str] = []
    with monkeypatch.context() as patch:
        for name, dependency in (("redis", connections.REDIS), ("mysql", mysql.MYSQL)):
            patch.setattr(dependency, "call", recording(name, dependency.call, calls))
        yield calls


# ---------------------------------------------------------------- reading


def test_totals_are_read_from_mysql_once_and_then_from_redis(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_7 = write_user(7, 3, followers_total=1, following_total=2, posts_total=4)
    of_8 = write_user(8, 1, likes_received_total=5, collects_received_total=6)
    with recording_calls(monkeypatch) as calls:
        assert counters.read_users([7, 8, 9]) == {7: of_7, 8: of_8, 9: UserCounter()}
        assert calls == ["redis", "redis", "mysql", "redis"]
        calls.clear()
        assert counters.read_users([9, 7, 8]) == {7: of_7, 8: of_8, 9: UserCounter()}
        assert calls == ["redis"]
        calls.clear()
        assert counters.read_users([]) == {}
        assert calls == []


def test_only_missing_totals_are_read_from_mysql(plaza: World) -> None:
    write_user(7, 1, posts_total=1)
    counters.read_users([7])
    write_user(7, 1, posts_total=99)  # without an update of Redis
    of_8 = write_user(8, 1, posts_total=2)
    users = counters.read_users([7, 8])
    assert users == {7: UserCounter(posts_total=1, version=1), 8: of_8}


def test_three_hundred_users_are_read_with_one_statement(plaza: World) -> None:
    before = count_statements()
    counters.read_users(list(range(1, 301)))
    assert count_statements() - before == 2, "the second is SHOW STATUS"


def test_totals_of_comments_are_read_from_mysql_once_and_then_from_redis(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_comments(1, 5, 9)
    with recording_calls(monkeypatch) as calls:
        assert counters.read_comments([1, 2]) == {1: 5, 2: 0}
        assert counters.read_comments([2, 1]) == {1: 5, 2: 0}
        assert calls == ["redis", "mysql", "redis", "redis"]
    assert counters.read_comments([]) == {}


def test_totals_come_from_mysql_while_redis_is_unavailable(plaza: World, redis_away: Away) -> None:
    of_7 = write_user(7, 1, posts_total=1)
    write_comments(1, 5, 9)
    counters.read_users([7])
    with redis_away():
        assert counters.read_users([7, 8]) == {7: of_7, 8: UserCounter()}
        assert counters.read_comments([1]) == {1: 5}


def test_totals_in_redis_are_readable_while_mysql_is_unavailable(
    plaza: World, mysql_away: Away
) -> None:
    of_7 = write_user(7, 1, posts_total=1)
    counters.read_users([7])
    with mysql_away():
        assert counters.read_users([7]) == {7: of_7}
        with pytest.raises(mysql.MysqlDown):
            counters.read_users([7, 8])


def test_large_totals_and_ids_are_read_exactly(plaza: World) -> None:
    huge = dict.fromkeys(USER_COLUMNS, 2**53 - 1)
    of_7 = write_user(2**63 - 1, 2**53 - 1, **huge)
    for _ in range(2):
        assert counters.read_users([2**63 - 1]) == {2**63 - 1: of_7}


# ---------------------------------------------------------------- refreshed projections


def test_a_refresh_stores_the_present_totals_of_mysql(plaza: World) -> None:
    write_user(7, 1, posts_total=1)
    write_comments(1, 5, 9)
    counters.read_users([7])
    counters.read_comments([1])
    of_7 = write_user(7, 2, posts_total=3)
    write_comments(1, 6, 10)
    counters.refresh_projections([7, 8], [1, 2])
    assert redis_store.read_users([7, 8]) == {7: of_7}
    assert redis_store.read_comments([1, 2]) == {1: (6, 10)}
    counters.refresh_projections()


def test_a_refresh_does_not_create_a_projection(plaza: World) -> None:
    write_user(7, 1, posts_total=1)
    counters.refresh_projections([7])
    assert redis_store.read_users([7]) == {}


# ---------------------------------------------------------------- changes


def test_an_addition_changes_totals_by_deltas_and_versions_by_one(plaza: World) -> None:
    deltas = {
        ("post", 1, "collect"): CounterDelta(3),
        ("post", 1, "comment"): CounterDelta(1),
        ("post", 2, "like"): CounterDelta(-2),
    }

    def work(cursor: Cursor) -> None:
        counters.lock_targets(cursor, sorted(deltas))
        counters.add_to_targets(cursor, deltas)
        counters.add_to_users(
            cursor, {(7,): {"posts_total": 1}, (8,): {"posts_total": 2, "followers_total": 3}}
        )

    for _ in range(2):
        counters.run_in_transaction(work)
    assert mysql.fetch_all("SELECT target_id, kind, total, version FROM counter ORDER BY 1, 2") == [
        (1, "collect", 6, 2),
        (1, "comment", 2, 2),
        (2, "like", -4, 2),
    ]
    assert counters.read_users([7, 8]) == {
        7: UserCounter(posts_total=2, version=2),
        8: UserCounter(posts_total=4, followers_total=6, version=2),
    }


def test_an_addition_raises_a_version_by_its_own_delta(plaza: World) -> None:
    added, stays = ("post", 1, "collect"), ("post", 1, "like")
    deltas = {added: CounterDelta(5, 3), stays: CounterDelta(0, 2)}
    for _ in range(2):
        mysql.run_in_transaction(lambda cursor: counters.add_to_targets(cursor, deltas))
    locked = counters.run_in_transaction(
        lambda cursor: counters.lock_targets(cursor, [added, stays])
    )
    assert locked == {added: TargetCounter(10, 6), stays: TargetCounter(0, 4)}


def test_the_ranked_total_is_the_total_of_ranked_counters_only(plaza: World) -> None:
    deltas = {
        ("comment", 2, "like"): CounterDelta(2),
        ("post", 1, "like"): CounterDelta(2, is_ranked=True),
    }
    for _ in range(2):
        mysql.run_in_transaction(lambda cursor: counters.add_to_targets(cursor, deltas))
    ranked = "SELECT target_type, total, ranked FROM counter ORDER BY 1"
    assert mysql.fetch_all(ranked) == [("comment", 4, None), ("post", 4, 4)]
    right = {key: TargetCounter(7, 9) for key in deltas}
    mysql.run_in_transaction(
        lambda cursor: counters.correct_targets(cursor, right, {("post", 1, "like")})
    )
    assert mysql.fetch_all(ranked) == [("comment", 7, None), ("post", 7, 7)]


def test_an_empty_addition_runs_no_statement(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        counters.add_to_targets(cursor, {})
        counters.add_to_users(cursor, {})
        assert counters.read_users_in(cursor, []) == {}

    before = count_statements()
    mysql.run_in_transaction(work)
    assert count_statements() - before == 3, "BEGIN, COMMIT and SHOW STATUS"


def test_locked_counters_have_their_present_values(plaza: World) -> None:
    write_comments(2, 5, 9)

    def work(cursor: Cursor) -> None:
        none = TargetCounter()
        expected = {
            ("post", 1, "comment"): none,
            ("post", 2, "comment"): TargetCounter(5, 9),
            ("post", 2, "like"): none,
            ("user", 2, "follow"): none,
        }
        assert counters.lock_targets(cursor, sorted(expected)) == expected
        counters.add_to_users(cursor, {(7,): {"posts_total": 1}})
        assert counters.read_users_in(cursor, [7, 8]) == {
            7: UserCounter(posts_total=1, version=1),
            8: UserCounter(),
        }

    counters.run_in_transaction(work)


def test_a_reader_that_announces_itself_leaves_a_fence_that_expires(plaza: World) -> None:
    key, ttl_s = redis_store.user_key(7), projections.FENCE_TTL_S
    redis_store.announce_reads([7])
    assert 0 < redis.execute("TTL", key) <= ttl_s
    redis.execute("EXPIRE", key, ttl_s // 2)
    redis_store.announce_reads([7])
    assert redis.execute("TTL", key) > ttl_s // 2, "a later reader renews it"
    redis.execute("EXPIRE", key, 2 * ttl_s)
    redis_store.announce_reads([7])
    assert redis.execute("TTL", key) > ttl_s, "totals keep their TTL"


def test_a_locked_counter_is_reported_without_a_wait(plaza: World, mysql_url: str) -> None:
    likes, comments = ("post", 5, "like"), ("post", 5, "comment")

    def try_lock(key: CounterKey) -> bool:
        return mysql.run_in_transaction(lambda cursor: counters.try_lock_target(cursor, key))

    counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, [comments, likes]))
    with lock_counter(mysql_url, Target("post", 5), "comment"):
        before = count_lock_waits()
        assert not try_lock(comments)
        assert try_lock(likes)
        assert count_lock_waits() == before
    assert try_lock(comments)


def test_a_counter_that_another_transaction_creates_meanwhile_keeps_its_totals(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ("post", 5, "like")
    read = counters.mysql_store.locked_of
    calls: list[object] = []

    def create_after_first(keys: Sequence[CounterKey], rows: Any) -> Any:
        record_call(calls, keys, None)
        if len(calls) == 1:
            with closing(connect_mysql(mysql_url)) as other, other.cursor() as of_other:
                of_other.execute(
                    "INSERT INTO counter (target_type, target_id, kind, total, version)"
                    " VALUES (%s, %s, %s, 3, 4)",
                    key,
                )
        return read(keys, rows)

    monkeypatch.setattr(counters.mysql_store, "locked_of", create_after_first)
    result = counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, [key]))
    assert calls == [[key], [key]]
    assert result == {key: TargetCounter(3, 4)}
