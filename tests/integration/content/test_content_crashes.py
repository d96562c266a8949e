"""Who writes dies between any two steps, or a part is away: what is told later, and what is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from local.stack.servers import Server
from plaza import counters
from plaza.content import commands, mysql_store, redis_store, refresh
from plaza.content.model import StoredText
from plaza.infra import clock, ids, mysql, redis
from plaza.infra.mysql import MysqlDown
from plaza.infra.projections import key_of
from plaza.infra.redis import RedisDown
from plaza.reactions import LIKE, Target, react
from plaza.reactions.model import TargetDeleted
from plaza.targets import Existence, announce, lookup, markers
from plaza.targets.queues import TargetRefresh
from plaza.users import cards
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
from tests.support.keyspace import find_keys
from tests.support.plaza import World, forget


class Killed(BaseException):
    """The process ends here."""


# Where a process may die, as (module, name of what it would have called next).
STEPS: list[tuple[Any, str]] = [
    (announce, "announce_write"),
    (mysql, "run_in_transaction"),
    (mysql_store, "insert"),
    (commands, "_count"),
    (refresh, "project_texts"),
    (react, "tombstone"),
    (redis_store, "store_texts"),
    (markers, "mark_all_created"),
    (counters, "refresh_projections"),
]
COMMITTED = STEPS[4:]


def step_ids(step: tuple[Any, str]) -> str:
    return step[1]


def die_before(
    monkeypatch: pytest.MonkeyPatch, step: tuple[Any, str], what: Callable[[], object]
) -> bool:
    """Do ``what`` and die where ``step`` begins; False when it never came there."""

    def die(*args: object, **options: object) -> object:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*step, die)
        try:
            what()
        except Killed:
            forget_connections()
            return True
    return False


def forget_connections() -> None:
    """The next request meets a process that knows nothing."""
    ids._block.reset()
    mysql.forget_connection()
    as_another_process()


pytestmark = pytest.mark.usefixtures("world")


# ---------------------------------------------------------------- deaths


@pytest.mark.parametrize("step", STEPS, ids=step_ids)
@pytest.mark.parametrize("what", ["posts", "comments", "reviews"])
def test_who_dies_while_writing_leaves_nothing_or_all_of_it(
    step: tuple[Any, str], what: str, world: World, monkeypatch: pytest.MonkeyPatch
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
    body = {"posts": POST, "comments": COMMENT, "reviews": REVIEW}[what]
    die_before(monkeypatch, step, lambda: ask("POST", path[what], body, key="k"))

    found = mysql.fetch_all(
        "SELECT content_id FROM content WHERE content_type = %s AND author_id = 7",
        (what.removesuffix("s"),),
    )
    assert len(found) == (1 if step in COMMITTED else 0)
    world.queues.drain()
    check_counters()
    for (item_id,) in found:
        assert ask("GET", f"/{what}/{item_id}").status == 200
    # And the client, who heard nothing, tries again.
    again = ask("POST", path[what], body, key="k")
    assert again.status == 201
    assert [(int(again.body["id"]),)] == found or not found
    world.queues.drain()
    check_counters()


@pytest.mark.parametrize("step", STEPS, ids=step_ids)
@pytest.mark.parametrize("what", ["posts", "comments", "reviews"])
def test_who_dies_while_deleting_leaves_it_there_or_gone(
    step: tuple[Any, str], what: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = post(8)
    item_id = {"posts": post, "comments": lambda: comment(parent, 7), "reviews": review}[what]()
    target = Target(what.removesuffix("s"), int(item_id))
    react.react(LIKE, target, 8, True)
    counters.read_users([7, 8])
    counters.read_comments([int(parent)])
    world.queues.drain()
    die_before(monkeypatch, step, lambda: ask("DELETE", f"/{what}/{item_id}"))

    deleted = mysql_store.read([target])[target].deleted
    assert deleted or step not in COMMITTED
    world.queues.drain()
    as_another_process()
    check_counters()
    read = ask("GET", f"/{what}/{item_id}")
    like = ask("PUT", f"/{what}/{item_id}/likes/me", user=9, folder="api/reactions")
    assert (read.status, like.status) == ((410, 410) if deleted else (200, 200))
    # And the client tries again.
    assert ask("DELETE", f"/{what}/{item_id}").status == (410 if deleted else 204)
    check_counters()


@pytest.mark.parametrize("step", COMMITTED, ids=step_ids)
def test_trying_to_delete_again_tells_redis_what_the_dead_did_not(
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
def test_trying_to_write_again_tells_redis_what_the_dead_did_not(
    step: tuple[Any, str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    post()
    counters.read_users([7])
    killed = die_before(monkeypatch, step, lambda: ask("POST", "/posts", POST, key="k"))
    assert killed or step[1] == "tombstone", "nothing was deleted"
    assert ask("POST", "/posts", POST, key="k").status == 201
    check_counters()


# ---------------------------------------------------------------- refreshes


def test_a_refresh_of_what_is_not_there_does_nothing(world: World) -> None:
    before = find_keys()
    refresh.refresh([TargetRefresh(kind, 999) for kind in ("post", "comment", "review", "user")])
    assert find_keys() == before
    assert mysql.fetch_all("SELECT COUNT(*) FROM content_counter") == [(0,)]


def test_refreshes_are_safe_to_repeat_and_to_come_late(world: World) -> None:
    first, second = post(), post()
    refreshes = [TargetRefresh.from_json(b) for b in world.queues.take("refreshes")]
    ask("DELETE", f"/posts/{first}")
    late = [TargetRefresh.from_json(b) for b in world.queues.take("refreshes")]
    for batch in (late, refreshes, refreshes + late, late + refreshes):
        refresh.refresh(batch)
        as_another_process()
        assert ask("GET", f"/posts/{first}").status == 410
        assert ask("GET", f"/posts/{second}").status == 200
        check_counters()


def test_a_refresh_of_a_user_tells_redis_their_card(world: World) -> None:
    assert cards.read_cards([7])[7].nickname == "user7"
    mysql.write("UPDATE user SET nickname = 'Ada', version = version + 1 WHERE id = 7")
    assert cards.read_cards([7])[7].nickname == "user7"
    refresh.refresh([TargetRefresh("user", 7)])
    assert cards.read_cards([7])[7].nickname == "Ada"


def test_a_batch_of_100_refreshes_takes_as_much_as_one_of_10(world: World) -> None:
    everything = range(1, 101)
    world.add(*(Target(kind, n) for kind in ("post", "review") for n in everything))
    mysql.write("UPDATE content SET deleted_at = UTC_TIMESTAMP(6) WHERE MOD(content_id, 2) = 0")
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " SELECT 'comment', content_id, author_id, content_id FROM content"
        " WHERE content_type = 'post'"
    )
    add_users(*everything)
    took = []
    for many in (100, 10, 100):  # the first time loads the scripts
        batch = [
            TargetRefresh(kind, n)
            for kind in ("post", "comment", "review", "user")
            for n in everything[:many]
        ]
        with counting_work() as work:
            refresh.refresh(batch)
        took.append((work.statements, work.round_trips))
    assert took[1] == took[2]
    assert max(took[2]) <= 12


# ---------------------------------------------------------------- late readers


def test_a_reader_who_saw_it_live_does_not_bring_it_back(world: World) -> None:
    post_id = post()
    target = Target("post", int(post_id))
    redis.execute("FLUSHALL")
    as_another_process()
    [seen] = mysql_store.read([target]).values()
    assert not seen.deleted
    ask("DELETE", f"/posts/{post_id}")
    redis_store.store_texts([seen])
    markers.mark_all_created([target])
    as_another_process()
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_what_another_process_deleted_is_shown_for_a_second_at_most(
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
    assert ask("GET", f"/posts/{post_id}").status == 200, "from memory"
    clock_s[0] += 1.001
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_who_brought_a_deleted_post_back_into_the_gate_is_put_right(world: World) -> None:
    """A reader looked, it was deleted and told, and the reader made it hot when its marker had
    expired."""
    post_id = post()
    target = Target("post", int(post_id))
    ask("DELETE", f"/posts/{post_id}")
    redis.execute("DEL", key_of(str(target), "existence"))
    react.hydrate([(LIKE, target)])
    assert react.react(LIKE, target, 9, True).changed
    world.queues.drain()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, target, 10, True)


# ---------------------------------------------------------------- the queue is away


def test_without_the_queue_people_write_and_delete(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.queues.away = True
    post_id = post()
    assert "write_not_announced" in capsys.readouterr().out
    comment(post_id)
    assert ask("GET", f"/posts/{post_id}").body["comments"] == 1
    assert ask("DELETE", f"/posts/{post_id}").status == 204
    assert ask("GET", f"/posts/{post_id}").status == 410
    check_counters()


# ---------------------------------------------------------------- Redis is away


def test_without_redis_there_are_ids_as_long_as_the_block_lasts_and_then_503(
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


def test_without_redis_everything_is_read_from_mysql_and_says_so(
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


def test_what_is_deleted_while_redis_is_away_is_told_when_it_is_back(
    world: World, redis_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    """Redis comes back with all it had: it doesn't know of what happened meanwhile."""
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
            refresh.refresh(
                [TargetRefresh.from_json(b) for b in world.queues.messages["refreshes"]]
            )
    finally:
        redis_server.resume()
    forget()
    assert react.react(LIKE, target, 9, True).changed, "nobody has told Redis"
    world.queues.drain()
    with pytest.raises(TargetDeleted):
        react.react(LIKE, target, 10, True)
    assert ask("GET", f"/posts/{post_id}").status == 410
    check_counters()


def test_what_is_written_while_redis_goes_away_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It goes after the commit; the queue is away too, so nobody tells Redis: its values lapse."""
    post_id = post(8)
    assert lookup.find("post", 1) is Existence.MISSING
    world.queues.take("refreshes")
    world.queues.away = True

    def away(*args: object, **options: object) -> None:
        raise RedisDown("it went")

    with monkeypatch.context() as patch:
        patch.setattr(redis_store, "store_texts", away)
        reply = ask("POST", f"/posts/{post_id}/comments", COMMENT, user=7)
    assert reply.status == 201
    [line] = [
        json.loads(out)
        for out in capsys.readouterr().out.splitlines()
        if "projection_delayed" in out
    ]
    assert (line["announced"], line["projections_delayed"]) == (False, 1)
    assert ask("GET", f"/comments/{reply.body['id']}").status == 200


# ---------------------------------------------------------------- MySQL is away


def test_without_mysql_what_redis_has_is_read_and_nothing_is_written(
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


def test_when_the_commit_is_not_answered_the_key_tells_what_happened(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MySQL committed and the answer was lost: the client is told to try again, and finds it."""
    post()
    run_in_transaction = mysql.run_in_transaction

    def lose_the_answer(work: Callable[[Any], Any]) -> Any:
        run_in_transaction(work)
        raise MysqlDown("it committed, and nobody heard")

    with monkeypatch.context() as patch:
        patch.setattr(mysql, "run_in_transaction", lose_the_answer)
        assert ask("POST", "/posts", POST, key="k").status == 503
    found = mysql.fetch_all("SELECT MAX(content_id) FROM content")
    again = ask("POST", "/posts", POST, key="k")
    assert (again.status, [(int(again.body["id"]),)]) == (201, found)
    check_counters()


def test_a_refresh_without_mysql_comes_again(world: World, mysql_away: Away) -> None:
    post()
    with mysql_away(), pytest.raises(MysqlDown):
        refresh.refresh([TargetRefresh("post", 1)])
