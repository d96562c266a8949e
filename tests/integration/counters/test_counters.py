"""Counters of users and posts: read through Redis, moved in the transaction of what they count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pymysql.cursors import Cursor

from plaza import counters
from plaza.counters import UserCounter, redis_store
from plaza.counters.model import USER_COLUMNS
from plaza.infra import mysql, redis
from tests.integration.conftest import Away
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
        "REPLACE INTO content_counter (target_type, target_id, comment_total, comment_version)"
        " VALUES ('post', %s, %s, %s)",
        (post_id, total, version),
    )


def statements() -> int:
    [(_, count)] = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")
    return int(count)


def noting(name: str, call: Callable[..., Any], asked: list[str]) -> Callable[..., Any]:
    def note(*args: Any) -> Any:
        asked.append(name)
        return call(*args)

    return note


@contextmanager
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Which of the two was asked, in order."""
    asked: list[str] = []
    with monkeypatch.context() as patch:
        for name, dependency in (("redis", redis.REDIS), ("mysql", mysql.MYSQL)):
            patch.setattr(dependency, "call", noting(name, dependency.call, asked))
        yield asked


# ---------------------------------------------------------------- reading


def test_totals_are_read_from_redis_once_they_are_there(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_7 = write_user(7, 3, followers_total=1, following_total=2, posts_total=4)
    of_8 = write_user(8, 1, likes_received_total=5, collects_received_total=6)
    with asking(monkeypatch) as asked:
        assert counters.read_users([7, 8, 9]) == {7: of_7, 8: of_8, 9: UserCounter()}
        assert asked == ["redis", "mysql", "redis"]
        asked.clear()
        assert counters.read_users([9, 7, 8]) == {7: of_7, 8: of_8, 9: UserCounter()}
        assert asked == ["redis"]
        asked.clear()
        assert counters.read_users([]) == {}
        assert asked == []


def test_only_what_redis_lacks_is_asked_of_mysql(plaza: World) -> None:
    write_user(7, 1, posts_total=1)
    counters.read_users([7])
    write_user(7, 1, posts_total=99)  # nobody told Redis
    of_8 = write_user(8, 1, posts_total=2)
    found = counters.read_users([7, 8])
    assert found == {7: UserCounter(posts_total=1, version=1), 8: of_8}


def test_a_hundred_users_and_more_are_one_statement(plaza: World) -> None:
    before = statements()
    counters.read_users(list(range(1, 301)))
    assert statements() - before == 2, "this one is one of them"


def test_comments_are_read_through_in_the_same_way(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_comments(1, 5, 9)
    with asking(monkeypatch) as asked:
        assert counters.read_comments([1, 2]) == {1: 5, 2: 0}
        assert counters.read_comments([2, 1]) == {1: 5, 2: 0}
        assert asked == ["redis", "mysql", "redis", "redis"]
    assert counters.read_comments([]) == {}


def test_while_redis_is_away_mysql_answers(plaza: World, redis_away: Away) -> None:
    of_7 = write_user(7, 1, posts_total=1)
    write_comments(1, 5, 9)
    counters.read_users([7])
    with redis_away():
        assert counters.read_users([7, 8]) == {7: of_7, 8: UserCounter()}
        assert counters.read_comments([1]) == {1: 5}


def test_while_mysql_is_away_redis_answers_for_whom_it_has(plaza: World, mysql_away: Away) -> None:
    of_7 = write_user(7, 1, posts_total=1)
    counters.read_users([7])
    with mysql_away():
        assert counters.read_users([7]) == {7: of_7}
        with pytest.raises(mysql.MysqlDown):
            counters.read_users([7, 8])


def test_a_user_keeps_totals_of_63_bits(plaza: World) -> None:
    huge = dict.fromkeys(USER_COLUMNS, 2**53 - 1)
    of_7 = write_user(2**63 - 1, 2**53 - 1, **huge)
    for _ in range(2):
        assert counters.read_users([2**63 - 1]) == {2**63 - 1: of_7}


# ---------------------------------------------------------------- projecting again


def test_projecting_again_tells_what_mysql_has_by_then(plaza: World) -> None:
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


def test_nobody_comes_into_redis_because_a_writer_came_by(plaza: World) -> None:
    write_user(7, 1, posts_total=1)
    counters.refresh_projections([7])
    assert redis_store.read_users([7]) == {}


# ---------------------------------------------------------------- moving


def test_totals_move_by_what_is_added_and_versions_by_one(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        counters.lock_content(cursor, [("post", 1), ("post", 2)])
        counters.add_to_content(
            cursor, {("post", 1): {"comment_total": 1}, ("post", 2): {"like_total": -2}}
        )
        counters.add_to_users(
            cursor, {(7,): {"posts_total": 1}, (8,): {"posts_total": 2, "followers_total": 3}}
        )

    for _ in range(2):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(
        "SELECT target_id, comment_total, comment_version, like_total, like_version FROM content_counter"
        " ORDER BY 1"
    ) == [(1, 2, 2, 0, 0), (2, 0, 0, -4, 2)], "each total has a version of its own"
    assert counters.read_users([7, 8]) == {
        7: UserCounter(posts_total=2, version=2),
        8: UserCounter(posts_total=4, followers_total=6, version=2),
    }


def test_adding_nothing_is_no_statement(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        counters.add_to_content(cursor, {})
        counters.add_to_users(cursor, {})
        assert counters.read_users_in(cursor, []) == {}

    before = statements()
    mysql.run_in_transaction(work)
    assert statements() - before == 3, "begin, commit, and this one"


def test_whoever_holds_the_counters_of_targets_reads_them_as_they_are(plaza: World) -> None:
    write_comments(2, 5, 9)

    def work(cursor: Cursor) -> None:
        wanted = [("post", 1), ("post", 2), ("user", 2)]
        held = counters.lock_content(cursor, wanted)
        assert sorted(held) == wanted
        assert held["post", 2].totals["comment_total"] == 5
        assert [held[target].versions["comment_total"] for target in wanted] == [0, 9, 0]
        counters.add_to_users(cursor, {(7,): {"posts_total": 1}})
        assert counters.read_users_in(cursor, [7, 8]) == {
            7: UserCounter(posts_total=1, version=1),
            8: UserCounter(),
        }

    mysql.run_in_transaction(work)
