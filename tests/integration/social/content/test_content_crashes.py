"""A process ends between any two steps of a write, or Redis, MySQL or SQS is unavailable."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.servers import Server
from plaza.core import counters
from plaza.core.reactions import LIKE, Target, hydration, react
from plaza.core.reactions.model import TargetDeleted
from plaza.core.targets import Existence, announce, lookup, markers
from plaza.core.targets import refresh as targets_refresh
from plaza.core.targets.queues import REFRESHES, TargetRefresh
from plaza.infra.derived import ids
from plaza.infra.derived.projections import key_of
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.people.users import cards
from plaza.social.content import commands, mysql_store, redis_store, refresh
from plaza.social.content.model import StoredText
from tests.integration.conftest import Away
from tests.support.content_api import (
    COMMENT,
    POST,
    REVIEW,
    SHOP,
    add_users,
    as_another_process,
    ask,
    check_counters,
    comment,
    counting_work,
    post,
    review,
)
from tests.support.failures import Killed, failing
from tests.support.keyspace import find_keys
from tests.support.plaza import World, forget

# The steps of a write, as (module, name of the function that the process calls next).
STEPS: list[tuple[Any, str]] = [
    (announce, "announce_write"),
    (mysql, "run_in_transaction"),
    (mysql_store, "insert"),
    (commands, "_count"),
    (refresh, "project_texts"),
    (hydration, "tombstone"),
    (redis_store, "store_texts"),
    (markers, "mark_all_created"),
    (counters, "refresh_projections"),
]
COMMITTED = STEPS[4:]


def step_ids(step: tuple[Any, str]) -> str:
    return step[1]


def die_before(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], work: Callable[[], object]
) -> bool:
    """Run ``work`` and end the process before ``step``; return False if it never got there."""

    with monkeypatch.context() as patch:
        patch.setattr(*step, failing(Killed))
        try:
            work()
        except Killed:
            forget_connections()
            return True
    return False


def forget_connections() -> None:
    """Make the next request run like in a new process."""
    ids._block.reset()
    mysql.forget_connection()
    as_another_process()


pytestmark = pytest.mark.usefixtures("world")


# ---------------------------------------------------------------- crashes


@pytest.mark.parametrize("step", STEPS, ids=step_ids)
@pytest.mark.parametrize("resource", ["posts", "comments", "reviews"])
def test_a_crash_while_writing_leaves_nothing_or_all_of_it(
    step: tuple[Any, str], resource: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = post(8)
    counters.read_users([7, 8])
    counters.read_comments([int(parent)])  # Redis has the old totals
    world.queues.take("refreshes")
    path = {
        "posts": "/posts",
        "comments": f"/posts/{parent}/comments",
        "reviews": f"/shops/{SHOP}/reviews",
    }
    body = {"posts": POST, "comments": COMMENT, "reviews": REVIEW}[resource]
    die_before(monkeypatch, step, lambda: ask("POST", path[resource], body, key="k"))

    rows = mysql.fetch_all(
        "SELECT content_id FROM content WHERE content_type = %s AND author_id = 7",
        (resource.removesuffix("s"),),
    )
    assert len(rows) == (1 if step in COMMITTED else 0)
    world.queues.drain()
    check_counters()
    for (item_id,) in rows:
        assert ask("GET", f"/{resource}/{item_id}").status == 200
    # The client got no response and repeats the request.
    repeated = ask("POST", path[resource], body, key="k")
    assert repeated.status == 201
    assert [(int(repeated.body["id"]),)] == rows or not rows
    world.queues.drain()
    check_counters()


@pytest.mark.parametrize("step", STEPS, ids=step_ids)
@pytest.mark.parametrize("resource", ["posts", "comments", "reviews"])
def test_a_crash_while_deleting_leaves_the_text_live_or_deleted(
    step: tuple[Any, str], resource: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = post(8)
    item_id = {"posts": post, "comments": lambda: comment(parent, 7), "reviews": review}[resource]()
    target = Target(resource.removesuffix("s"), int(item_id))
    react.react(LIKE, target, 8, True)
    counters.read_users([7, 8])
    counters.read_comments([int(parent)])
    world.queues.drain()
    die_before(monkeypatch, step, lambda: ask("DELETE", f"/{resource}/{item_id}"))

    deleted = mysql_store.read([target])[target].deleted
    assert deleted or step not in COMMITTED
    world.queues.drain()
    as_another_process()
    check_counters()
    read = ask("GET", f"/{resource}/{item_id}")
    like = ask("PUT", f"/{resource}/{item_id}/likes/me", user=9, folder="api/reactions")
    assert (read.status, like.status) == ((410, 410) if deleted else (200, 200))
    # The client repeats the request.
    assert ask("DELETE", f"/{resource}/{item_id}").status == (410 if deleted else 204)
    check_counters()


@pytest.mark.parametrize("step", COMMITTED, ids=step_ids)
def test_a_repeated_deletion_projects_what_the_crashed_one_did_not(
    step: tuple[Any, str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    post_id = post()
    counters.read_users([7])
    react.react(LIKE, Target("post", int(post_id)), 8, True)
    assert die_before(monkeypatch, step, lambda: ask("DELETE", f"/posts/{post_id}")) or (
        step[1] == "mark_all_created"
    )
    assert ask("DELETE", f"/posts/{post_id}").status == 410
    like = ask("PUT", f"/posts/{post_id}/likes/me", user=9, folder="api/reactions")
    assert like.status == 410
    assert ask("GET", f"/posts/{post_id}").status == 410
    check_counters()


@pytest.mark.parametrize("step", COMMITTED, ids=step_ids)
def test_a_repeated_creation_projects_what_the_crashed_one_did_not(
    step: tuple[Any, str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    post()
    counters.read_users([7])
    killed = die_before(monkeypatch, step, lambda: ask("POST", "/posts", POST, key="k"))
    assert killed or step[1] == "tombstone", "a creation has no tombstone"
    assert ask("POST", "/posts", POST, key="k").status == 201
    check_counters()


# ---------------------------------------------------------------- refreshes


def test_a_refresh_of_missing_targets_does_nothing(world: World) -> None:
    before = find_keys()
    targets_refresh.refresh(
        [TargetRefresh(kind, 999) for kind in ("post", "comment", "review", "user")]
    )
    for key in set(find_keys()) - set(before):  # a fence against a late projection of blocks
        assert (key.rpartition(":")[2], redis.execute("HKEYS", key)) == ("blocks", ["version"])
    assert mysql.fetch_all("SELECT COUNT(*) FROM counter") == [(0,)]


def test_late_and_repeated_refreshes_change_nothing(world: World) -> None:
    first, second = post(), post()
    refreshes = [REFRESHES.decode(str(b)) for b in world.queues.take("refreshes")]
    ask("DELETE", f"/posts/{first}")
    late = [REFRESHES.decode(str(b)) for b in world.queues.take("refreshes")]
    for batch in (late, refreshes, refreshes + late, late + refreshes):
        targets_refresh.refresh(batch)
        as_another_process()
        assert ask("GET", f"/posts/{first}").status == 410
        assert ask("GET", f"/posts/{second}").status == 200
        check_counters()


def test_a_refresh_of_a_user_projects_the_card(world: World) -> None:
    assert cards.read_cards([7])[7].nickname == "user7"
    mysql.write("UPDATE user SET nickname = 'Ada', version = version + 1 WHERE id = 7")
    assert cards.read_cards([7])[7].nickname == "user7"
    targets_refresh.refresh([TargetRefresh("user", 7)])
    assert cards.read_cards([7])[7].nickname == "Ada"


def test_100_refreshes_take_as_many_statements_as_10(world: World) -> None:
    numbers = range(1, 101)
    world.add(*(Target(kind, n) for kind in ("post", "review") for n in numbers))
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6) WHERE MOD(content_id, 2) = 0")
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " SELECT 'comment', content_id, author_id, content_id FROM content"
        " WHERE content_type = 'post'"
    )
    add_users(*numbers)
    costs = []
    for count in (100, 10, 100):  # the first time loads the scripts
        batch = [
            TargetRefresh(kind, n)
            for kind in ("post", "comment", "review", "user")
            for n in numbers[:count]
        ]
        with counting_work() as work:
            targets_refresh.refresh(batch)
        costs.append((work.statements, work.round_trips))
    assert costs[1] == costs[2]
    assert max(costs[2]) <= 12


# ---------------------------------------------------------------- late readers


def test_a_late_reader_does_not_restore_a_deleted_post(world: World) -> None:
    post_id = post()
    target = Target("post", int(post_id))
    redis.execute("FLUSHALL")
    as_another_process()
    [old] = mysql_store.read([target]).values()
    assert not old.deleted
    ask("DELETE", f"/posts/{post_id}")
    redis_store.store_texts([old])
    markers.mark_all_created([target])
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_a_post_that_another_process_deleted_is_shown_for_at_most_1_s(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [clock.monotonic_s()]
    monkeypatch.setattr(clock, "monotonic_s", lambda: clock_s[0])
    post_id = post()
    target = Target("post", int(post_id))
    assert ask("GET", f"/posts/{post_id}").status == 200
    text, _ = mysql_store.read([target])[target]
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6)")
    refresh.project_texts([StoredText(text, deleted=True)])  # another process
    assert ask("GET", f"/posts/{post_id}").status == 200, "cached in the process"
    clock_s[0] += 1.001
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_a_post_hydrated_during_its_deletion_is_tombstoned_by_the_refresh(world: World) -> None:
    """Given a post that was read as live, deleted, and hydrated after its marker expired."""
    post_id = post()
    target = Target("post", int(post_id))
    ask("DELETE", f"/posts/{post_id}")
    redis.execute("DEL", key_of(str(target), "existence"))
    hydration.hydrate([(LIKE, target)])
    assert react.react(LIKE, target, 9, True).changed
    world.queues.drain()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, target, 10, True)


# ---------------------------------------------------------------- the queue is unavailable


def test_texts_are_created_and_deleted_without_the_queue(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.queues.away = True
    post_id = post()
    assert "message_unsent" in capsys.readouterr().out
    comment(post_id)
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1
    assert ask("DELETE", f"/posts/{post_id}").status == 204
    assert ask("GET", f"/posts/{post_id}").status == 410
    check_counters()


# ---------------------------------------------------------------- Redis is unavailable


def test_without_redis_texts_are_created_until_the_block_of_ids_is_used_up(
    world: World, redis_away: Away
) -> None:
    post()
    with redis_away():
        for _ in range(3):
            assert ask("POST", "/posts", POST).status == 201
        ids._block.reset()
        reply = ask("POST", "/posts", POST)
        assert (reply.status, reply.slug) == (503, "unavailable")
        assert int(reply.headers["retry-after"]) > 0
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(4,)]
    world.queues.drain()
    check_counters()


def test_without_redis_reads_come_from_mysql_and_are_not_exact(
    world: World, redis_away: Away
) -> None:
    post_id = post()
    comment_id, review_id = comment(post_id), review()
    react.react(LIKE, Target("post", int(post_id)), 8, True)
    world.queues.drain()
    with redis_away():
        as_another_process()
        read = ask("GET", f"/posts/{post_id}", user=8)
        assert read.status == 200
        assert (read.body["likes"], read.body["comments"]) == (1, 1)
        assert (read.body["viewers"], read.body["exact"]) == (None, False)
        assert read.body["mine"] == {"liked": True, "collected": False}
        for path in (f"/posts/{post_id}/comments", "/users/7/posts", f"/shops/{SHOP}/reviews"):
            page = ask("GET", path)
            assert page.status == 200
            assert [item["exact"] for item in page.body["items"]] == [False]
        for path in (f"/comments/{comment_id}", f"/reviews/{review_id}"):
            assert ask("GET", path).status == 200
        assert ask("GET", "/posts/999").status == 404
        assert ask("GET", "/users/999/posts").status == 404


def test_a_deletion_without_redis_is_projected_when_redis_is_back(
    world: World, redis_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a Redis that returns with its old data."""
    post_id = post()
    target = Target("post", int(post_id))
    react.react(LIKE, target, 8, True)
    comment_id = comment(post_id)
    counters.read_users([7])
    counters.read_comments([int(post_id)])
    world.queues.take("refreshes")
    redis_server.pause()
    try:
        assert ask("DELETE", f"/comments/{comment_id}", user=8).status == 204
        assert ask("DELETE", f"/posts/{post_id}").status == 204
        assert "projection_delayed" in capsys.readouterr().out
        assert ask("GET", f"/posts/{post_id}").status == 410
        with pytest.raises(RedisDown):
            targets_refresh.refresh(
                [REFRESHES.decode(str(b)) for b in world.queues.messages["refreshes"]]
            )
    finally:
        redis_server.resume()
    forget()
    assert react.react(LIKE, target, 9, True).changed, "Redis has no tombstone yet"
    world.queues.drain()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, target, 10, True)
    assert ask("GET", f"/posts/{post_id}").status == 410
    check_counters()


def test_a_comment_is_created_when_redis_fails_after_the_commit(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given an unavailable queue too, nothing projects the comment; stale values expire."""
    post_id = post(8)
    assert lookup.find("post", 1) is Existence.MISSING
    world.queues.take("refreshes")
    world.queues.away = True

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "store_texts", failing(RedisDown("by the test")))
        reply = ask("POST", f"/posts/{post_id}/comments", COMMENT, user=7)
    assert reply.status == 201
    [line] = [
        json.loads(out)
        for out in capsys.readouterr().out.splitlines()
        if "projection_delayed" in out
    ]
    assert (line["announced"], line["projections_delayed"]) == (False, 1)
    assert ask("GET", f"/comments/{reply.body['id']}").status == 200


# ---------------------------------------------------------------- MySQL is unavailable


def test_without_mysql_cached_texts_are_read_and_writes_are_refused(
    world: World, mysql_away: Away
) -> None:
    post_id = post()
    comment_id = comment(post_id)
    ask("GET", f"/posts/{post_id}")
    ask("GET", f"/comments/{comment_id}")
    with mysql_away():
        as_another_process()
        read = ask("GET", f"/posts/{post_id}", user=8)
        assert (read.status, read.body["exact"]) == (200, True)
        assert ask("GET", f"/comments/{comment_id}").status == 200
        for method, path, body in (
            ("POST", "/posts", POST),
            ("POST", f"/posts/{post_id}/comments", COMMENT),
            ("POST", f"/shops/{SHOP}/reviews", REVIEW),
            ("DELETE", f"/posts/{post_id}", None),
            ("GET", f"/posts/{post_id}/comments", None),
            ("GET", "/users/7/posts", None),
            ("GET", "/posts/999", None),
        ):
            reply = ask(method, path, body, key="k" if method == "POST" else None)
            assert (reply.status, reply.slug) == (503, "unavailable"), path
            assert int(reply.headers["retry-after"]) > 0
    world.queues.drain()
    assert mysql.fetch_all("SELECT COUNT(*) FROM content") == [(2,)]
    check_counters()


def test_the_key_finds_the_text_of_a_commit_whose_reply_was_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a commit whose reply was lost, the client gets 503 and repeats the request."""
    post()
    run_in_transaction = mysql.run_in_transaction

    def lose_the_reply(work: Callable[[Any], Any]) -> Any:
        run_in_transaction(work)
        raise MysqlDown("by the test, after the commit")

    with monkeypatch.context() as patch:
        patch.setattr(mysql, "run_in_transaction", lose_the_reply)
        assert ask("POST", "/posts", POST, key="k").status == 503
    rows = mysql.fetch_all("SELECT MAX(content_id) FROM content")
    repeated = ask("POST", "/posts", POST, key="k")
    assert (repeated.status, [(int(repeated.body["id"]),)]) == (201, rows)
    check_counters()


def test_a_refresh_without_mysql_is_retried(world: World, mysql_away: Away) -> None:
    post()
    with mysql_away(), pytest.raises(MysqlDown):
        targets_refresh.refresh([TargetRefresh("post", 1)])
