"""Concurrent comments, deletions and counters: the totals are right in any order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pymysql
import pytest

from local.stack.servers import connect_mysql
from plaza.core import counters
from plaza.core.reactions import LIKE, Target, mysql_counts
from plaza.core.reactions.react import react
from plaza.core.targets import Existence
from plaza.core.targets import refresh as targets_refresh
from plaza.core.targets.queues import TargetRefresh
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.social.content import commands, refresh
from plaza.social.content import mysql_store as content_mysql
from plaza.social.content.model import Draft, Text
from tests.support.content_api import (
    COMMENT,
    POST,
    REVIEW,
    SHOP,
    as_another_process,
    ask,
    check_counters,
    comment,
    is_lock_awaited,
    post,
)
from tests.support.plaza import World
from tests.support.stores import wait_for

pytestmark = pytest.mark.usefixtures("world")


@contextmanager
def open_transaction(mysql_url: str) -> Iterator[pymysql.Connection[Any]]:
    """Open a transaction of another process, with Plaza's isolation level."""
    with connect_mysql(mysql_url) as connection:
        connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.begin()
        yield connection


def test_a_comment_on_a_post_being_deleted_is_refused(mysql_url: str) -> None:
    post_id = int(post())
    with open_transaction(mysql_url) as other, ThreadPoolExecutor() as pool:
        with other.cursor() as cursor:
            assert content_mysql.mark_deleted(cursor, Target("post", post_id))
            commands._count(cursor, Draft(type="post", author_id=7, body=""), -1)
        late = pool.submit(ask, "POST", f"/posts/{post_id}/comments", COMMENT)
        wait_for(lambda: is_lock_awaited(mysql_url), "the comment waits for the deletion")
        other.commit()
        reply = late.result()
    assert (reply.status, reply.slug) == (410, "gone")
    assert mysql.fetch_all("SELECT COUNT(*) FROM content WHERE content_type = 'comment'") == [(0,)]
    redis.execute("FLUSHALL")
    check_counters()


def test_the_deletion_of_a_post_waits_for_a_comment(mysql_url: str) -> None:
    post_id = int(post())
    draft = Draft(type="comment", author_id=8, parent_id=post_id, body="first")
    with open_transaction(mysql_url) as other, ThreadPoolExecutor() as pool:
        with other.cursor() as cursor:
            text = commands._write(cursor, Target("comment", 21), draft, None)
            assert isinstance(text, Text)
        late = pool.submit(ask, "DELETE", f"/posts/{post_id}")
        wait_for(lambda: is_lock_awaited(mysql_url), "the deletion waits for the comment")
        other.commit()
        assert late.result().status == 204
    redis.execute("FLUSHALL")
    check_counters()


def test_concurrent_comments_do_not_wait_for_each_other_before_the_counter(mysql_url: str) -> None:
    post_id = int(post())
    with open_transaction(mysql_url) as item, open_transaction(mysql_url) as other:
        for connection in (item, other):
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
                assert content_mysql.lock_post(cursor, post_id) == (Existence.LIVE, 7)
                draft = Draft(type="comment", author_id=8, parent_id=post_id, body="b")
                content_mysql.insert(cursor, 21 if connection is item else 22, draft)
        other.commit()
        item.commit()


@contextmanager
def locked_counter(mysql_url: str, post_id: str, kind: str = counters.COMMENT) -> Iterator[None]:
    """Lock a counter of a post, as a transaction that adds to it does."""
    mysql.write(
        "INSERT IGNORE INTO counter (target_type, target_id, kind) VALUES ('post', %s, %s)",
        (post_id, kind),
    )
    with open_transaction(mysql_url) as other, other.cursor() as cursor:
        cursor.execute(
            "SELECT target_id FROM counter"
            " WHERE target_type = 'post' AND target_id = %s AND kind = %s FOR UPDATE",
            (post_id, kind),
        )
        yield
        other.commit()


def count_comments(post_id: str) -> int:
    [(total,)] = mysql.fetch_all(
        "SELECT total FROM counter WHERE target_id = %s AND kind = 'comment'", (post_id,)
    )
    return int(total)


def test_announced_comments_do_not_wait_for_a_locked_counter(mysql_url: str, world: World) -> None:
    """Given a locked counter, comments are stored at once and counted later."""
    post_id = post()
    with locked_counter(mysql_url, post_id):
        made = [comment(post_id) for _ in range(5)]
        assert ask("DELETE", f"/comments/{made[0]}", user=8).status == 204
        assert mysql.MYSQL.breaker.fail_counter == 0
        assert mysql.fetch_all("SELECT SUM(delta) FROM delayed_comment_count") == [(4,)]
        assert mysql_counts.count_targets("post", 0, 2**62).rows == {}, (
            "delayed comments are not expected"
        )
    assert count_comments(post_id) == 0
    world.queues.drain()
    assert count_comments(post_id) == 4
    assert mysql.fetch_all("SELECT COUNT(*) FROM delayed_comment_count") == [(0,)]
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 4
    check_counters()


def test_comments_are_counted_at_once_while_a_consumer_of_likes_has_its_counter(
    mysql_url: str,
) -> None:
    post_id = post()
    with locked_counter(mysql_url, post_id, LIKE.name):
        comment(post_id)
        assert count_comments(post_id) == 1
        assert mysql.fetch_all("SELECT COUNT(*) FROM delayed_comment_count") == [(0,)]


def test_a_comment_without_an_announcement_waits_for_the_counter(
    mysql_url: str, world: World
) -> None:
    """Given an unavailable queue, no refresh would add the delta later."""
    post_id = post()
    world.queues.away = True
    with ThreadPoolExecutor() as pool, locked_counter(mysql_url, post_id):
        late = pool.submit(comment, post_id)
        wait_for(lambda: is_lock_awaited(mysql_url), "the comment waits")
    late.result()
    assert count_comments(post_id) == 1


def test_a_recount_excludes_delayed_comments(mysql_url: str, world: World) -> None:
    post_id = post()
    comment(post_id)
    with locked_counter(mysql_url, post_id):
        comment(post_id)
    key = "post", int(post_id), counters.COMMENT
    totals = mysql.run_in_transaction(lambda cursor: mysql_counts.recount_targets(cursor, [key]))
    assert totals == {key: 1}
    assert count_comments(post_id) == 1
    counted = mysql_counts.count_targets("post", 0, 2**62)
    assert counted.counters == counted.rows
    world.queues.drain()
    assert count_comments(post_id) == 2
    check_counters()


def test_concurrent_refreshes_count_a_delayed_comment_once(mysql_url: str, world: World) -> None:
    """Given two concurrent refreshes of one post, the second waits and finds no delta."""
    post_id = post()
    with locked_counter(mysql_url, post_id):
        made = [comment(post_id) for _ in range(3)]
    with open_transaction(mysql_url) as other:
        with other.cursor() as cursor:
            assert content_mysql.drain_delayed_counts(cursor, int(post_id)) == 3
            key = "post", int(post_id), counters.COMMENT
            counters.add_to_targets(cursor, {key: counters.CounterDelta(3)})
        with ThreadPoolExecutor() as pool:
            late = pool.submit(targets_refresh.refresh, [TargetRefresh("comment", int(made[0]))])
            wait_for(lambda: is_lock_awaited(mysql_url), "the second refresh waits for the first")
            other.commit()
            late.result()
    world.queues.drain()
    assert count_comments(post_id) == 3
    check_counters()


def test_concurrent_deletions_of_a_comment_count_once(mysql_url: str, world: World) -> None:
    post_id = int(post())
    comment_id = comment(str(post_id))
    with open_transaction(mysql_url) as other, ThreadPoolExecutor() as pool:
        with other.cursor() as cursor:
            text, _ = content_mysql.read([Target("comment", int(comment_id))]).popitem()[1]
            assert commands._delete(cursor, text)
        late = pool.submit(ask, "DELETE", f"/comments/{comment_id}", user=8)
        wait_for(lambda: is_lock_awaited(mysql_url), "the second deletion waits for the first")
        other.commit()
        assert late.result().status == 410
    world.queues.drain()
    check_counters()


def test_likes_and_comments_of_one_post_are_both_counted(world: World) -> None:
    post_id = post()
    target = Target("post", int(post_id))
    for actor in range(20, 40):
        react(LIKE, target, actor, True)
        comment(post_id)
    world.queues.drain()
    for actor in range(20, 30):
        react(LIKE, target, actor, False)
        comment(post_id)
    world.queues.drain()
    read = ask("GET", f"/posts/{post_id}").body
    assert (read["likes"], read["comments"]) == (10, 30)
    assert mysql.fetch_all(
        "SELECT kind, total FROM counter WHERE target_id = %s ORDER BY kind", (target.id,)
    ) == [("comment", 30), ("like", 10)]
    check_counters()


@pytest.mark.parametrize("seed", range(8))
def test_totals_equal_the_rows_after_random_operations(
    seed: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given writes, deletions, repeats, new processes, failures and data losses of Redis, and
    refreshes that arrive late, twice and out of order."""
    rng = random.Random(seed)
    live: dict[str, list[tuple[str, int]]] = {"posts": [], "comments": [], "reviews": []}
    sent: list[tuple[str, Any, int, str]] = []
    project_texts = refresh.project_texts
    reachable = [True]

    def project_if_reachable(*args: Any) -> None:
        if not reachable[0]:
            raise RedisDown("by the test")
        project_texts(*args)

    monkeypatch.setattr(refresh, "project_texts", project_if_reachable)
    for number in range(60):
        user = rng.choice([7, 8])
        reachable[0] = rng.random() < 0.8
        match rng.choice(["write", "write", "delete", "repeat", "read", "refresh", "restart"]):
            case "write":
                resource = rng.choice(["posts", "comments", "reviews"])
                path, body = "/posts", dict[str, object](POST)
                if resource == "comments":
                    if not live["posts"]:
                        continue
                    path, body = f"/posts/{rng.choice(live['posts'])[0]}/comments", dict(COMMENT)
                elif resource == "reviews":
                    if user in {author for _, author in live["reviews"]}:
                        continue  # each user reviews a shop once
                    path, body = f"/shops/{SHOP}/reviews", dict(REVIEW)
                body["body"] = f"number {number}"
                request = (path, body, user, f"key{number}")
                reply = ask("POST", path, body, user=user, key=request[3])
                assert reply.status == 201
                live[resource].append((reply.body["id"], user))
                sent.append(request)
            case "delete":
                resource = rng.choice(list(live))
                if live[resource]:
                    item_id, owner = live[resource].pop(rng.randrange(len(live[resource])))
                    assert ask("DELETE", f"/{resource}/{item_id}", user=owner).status == 204
                    assert ask("DELETE", f"/{resource}/{item_id}", user=owner).status == 410
            case "repeat":
                if sent:
                    path, body, user, key = rng.choice(sent)
                    before = mysql.fetch_all("SELECT COUNT(*) FROM content")
                    assert ask("POST", path, body, user=user, key=key).status in (201, 410)
                    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == before
            case "read":
                ask("GET", f"/users/{user}/posts", user=8)
                if live["posts"]:
                    ask("GET", f"/posts/{rng.choice(live['posts'])[0]}")
            case "refresh":
                reachable[0] = True
                bodies = world.queues.take("refreshes")
                rng.shuffle(bodies)
                late, now = bodies[::3], bodies
                world.queues.messages["refreshes"] = now
                world.queues.drain()
                world.queues.messages["refreshes"] = late
            case "restart":
                as_another_process()
                if rng.random() < 0.3:
                    redis.execute("FLUSHALL")
    reachable[0] = True
    world.queues.drain()
    as_another_process()
    check_counters()
    for resource, items in live.items():
        for item_id, _ in items:
            assert ask("GET", f"/{resource}/{item_id}").status == 200
    deleted = mysql.fetch_all("SELECT content_type, content_id FROM content WHERE deleted_at > 0")
    for content_type, content_id in deleted:
        assert ask("GET", f"/{content_type}s/{content_id}").status == 410
        like = ask("PUT", f"/{content_type}s/{content_id}/likes/me", folder="api/reactions")
        assert like.status == 410
