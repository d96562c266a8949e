"""Blocks: what they end and refuse, and a block that races a follow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from plaza.core.reactions import FOLLOW, Target, react
from plaza.core.reactions import queries as reaction_queries
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.people.blocks import Blocked, block_user, mysql_store, queries, redis_store
from plaza.people.follows import follow, follow_user
from tests.integration.conftest import Away
from tests.support.content_api import (
    COMMENT,
    REVIEW,
    SHOP,
    Reply,
    add_shop,
    add_users,
    as_another_process,
    ask,
    comment,
    counting_work,
    post,
)
from tests.support.failures import failing
from tests.support.plaza import World

ME, ADA, EVE = 7, 8, 9
BOTH = [(ME, ADA), (ADA, ME)]


@pytest.fixture(autouse=True)
def users(plaza: World) -> None:
    add_users(ME, ADA, EVE)


def block(user: int = ADA, by: int = ME) -> Reply:
    return ask("PUT", f"/users/{user}/blocks/me", user=by, folder="api/follows")


def unblock(user: int = ADA, by: int = ME) -> Reply:
    return ask("DELETE", f"/users/{user}/blocks/me", user=by, folder="api/follows")


def follows() -> set[tuple[int, int]]:
    """Return (follower, followed) of the users' follows, by the gate and for the reader."""
    results = set()
    for follower, followed in [*BOTH, (ME, EVE), (EVE, ME)]:
        counts, _ = reaction_queries.read_counts([(FOLLOW, Target("user", followed))], follower)
        if counts[0].viewer_state:
            results.add((follower, followed))
    return results


def saved(world: World) -> set[tuple[int, int]]:
    """Return (follower, followed) in MySQL after all messages are processed."""
    world.queues.drain()
    return set(mysql.fetch_all("SELECT actor_id, target_id FROM reaction WHERE state = 1"))


# ---------------------------------------------------------------- what a block does


def test_a_block_ends_the_follows_of_both_and_refuses_new_ones(plaza: World) -> None:
    for follower, followed in [*BOTH, (ME, EVE)]:
        follow(followed, follower)
    plaza.queues.drain()
    assert block().body == {"blocked": True, "changed": True}
    assert follows() == saved(plaza) == {(ME, EVE)}
    for follower, followed in BOTH:
        refused = ask("PUT", f"/users/{followed}/followers/me", user=follower, folder="api/follows")
        assert (refused.status, refused.slug) == (403, "blocked")
    assert follows() == saved(plaza) == {(ME, EVE)}
    profile = ask("GET", f"/users/{ME}", folder="api/users").body
    assert (profile["followers"], profile["following"]) == (0, 1)


def test_blocks_are_idempotent_and_end(plaza: World) -> None:
    assert [block().body["changed"] for _ in range(2)] == [True, False]
    assert [unblock().body for _ in range(2)] == [
        {"blocked": False, "changed": True},
        {"blocked": False, "changed": False},
    ]
    assert follow(ADA, ME).changed
    assert saved(plaza) == {(ME, ADA)}


def test_neither_comments_on_the_other_and_others_do() -> None:
    mine, hers = post(ME), post(ADA)
    block()
    for path, user in ((f"/posts/{mine}/comments", ADA), (f"/posts/{hers}/comments", ME)):
        refused = ask("POST", path, COMMENT, user=user)
        assert (refused.status, refused.slug) == (403, "blocked")
        assert ask("POST", path, COMMENT, user=EVE).status == 201
    assert ask("POST", f"/posts/{mine}/comments", COMMENT, user=ME).status == 201


def test_lists_of_the_blocker_leave_out_the_blocked_user() -> None:
    add_shop()
    of = post(EVE)
    comments = [comment(of, ADA), comment(of, ME)]
    reviews = [ask("POST", f"/shops/{SHOP}/reviews", REVIEW, user=u).body["id"] for u in (ADA, ME)]
    block()
    as_another_process()
    for path, ids in ((f"/posts/{of}/comments", comments), (f"/shops/{SHOP}/reviews", reviews)):
        listed = {
            user: [item["id"] for item in ask("GET", path, user=user).body["items"]]
            for user in (ME, ADA, EVE, None)
        }
        assert listed == {ME: ids[1:], ADA: ids[::-1], EVE: ids[::-1], None: ids[::-1]}
    assert ask("GET", f"/comments/{comments[0]}").status == 200, "public content stays readable"


def test_a_list_costs_one_round_trip_more_for_a_caller_with_blocks() -> None:
    of = post(EVE)
    comment(of, ADA)
    block()
    for user in (ME, None, ME):
        ask("GET", f"/posts/{of}/comments", user=user)
    costs = []
    for user in (ME, None):
        with counting_work() as work:
            ask("GET", f"/posts/{of}/comments", user=user)
        assert work.statements == 0, user
        costs.append(work.round_trips)
    assert costs[0] <= costs[1] + 1


def test_a_list_is_complete_while_blocks_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given that Redis has the list, and MySQL, which has the blocks, is unavailable."""
    of = post(EVE)
    listed = comment(of, ADA)
    block()

    monkeypatch.setattr(
        mysql_store, "read_blocked", failing(MysqlDown("MySQL is unavailable (simulated)"))
    )
    items = ask("GET", f"/posts/{of}/comments", user=ME).body["items"]
    assert [item["id"] for item in items] == [listed]


def test_a_profile_says_whether_the_caller_blocks_its_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(by: int, user: int = ADA) -> Any:
        return ask("GET", f"/users/{user}", user=by, folder="api/users").body["mine"]

    block()
    listed = ask("GET", "/users?ids=8,9", user=ME, folder="api/users").body["items"]
    assert [item["mine"]["blocked"] for item in listed] == [True, False]
    assert read(ME) == {"following": False, "blocked": True}
    assert read(ADA, ME) == {"following": False, "blocked": False}
    unblock()
    assert read(ME) == {"following": False, "blocked": False}

    redis_store.delete(EVE)
    monkeypatch.setattr(
        mysql_store, "read_blocked", failing(MysqlDown("MySQL is unavailable (simulated)"))
    )
    assert read(EVE) == {"following": False, "blocked": None}


def test_blocks_are_listed_newest_first(plaza: World) -> None:
    block(ADA)
    block(EVE)
    page = ask("GET", "/users/me/blocks?limit=1", folder="api/follows").body
    assert [item["user"]["nickname"] for item in page["items"]] == ["user9"]
    path = f"/users/me/blocks?limit=1&cursor={page['next']}"
    rest = ask("GET", path, folder="api/follows").body
    assert ([item["user"]["id"] for item in rest["items"]], rest["next"]) == (["8"], None)
    for parts in ((-1, 1), (2**62, 1)):
        forged = f"/users/me/blocks?cursor={pack_cursor(*parts)}"
        assert ask("GET", forged, folder="api/follows").slug == "invalid-request"


def test_rules_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert block(ME).slug == "self-block"
    assert block(4711).slug == "not-found"
    monkeypatch.setattr(block_user, "MAX_BLOCKS", 1)
    block(ADA)
    assert block(EVE).slug == "block-limit"
    assert block(ADA).status == 200, "a repeat is not a new block"
    assert queries.read_blocked(ME) == {ADA}


# ---------------------------------------------------------------- races and failures


def before(patch: pytest.MonkeyPatch, module: Any, name: str, work: Callable[[], object]) -> None:
    """Run ``work``, once, before the next call of a function."""
    function = getattr(module, name)

    def work_first(*args: Any, **kwargs: Any) -> Any:
        patch.setattr(module, name, function)
        work()
        return function(*args, **kwargs)

    patch.setattr(module, name, work_first)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (block_user, "_drop_projections"),
        (mysql_store, "read_now_us"),
        (redis_store, "drop_blocked"),
        (block_user, "_end_follow"),
        (reaction_queries, "read_counts"),
    ],
    ids=[
        "after the commit",
        "before its time",
        "before the drop",
        "before the follows end",
        "before their state is read",
    ],
)
@pytest.mark.parametrize(("follower", "followed"), BOTH)
def test_a_follow_during_a_block_does_not_stay(
    plaza: World,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    follower: int,
    followed: int,
) -> None:
    """Given that Redis has both users' blocks from before."""
    queries.require_unblocked(ME, ADA)

    def follow_or_not() -> None:
        with suppress(Blocked):
            follow(followed, follower)

    before(monkeypatch, module, name, follow_or_not)
    block()
    assert follows() == saved(plaza) == set()


@pytest.mark.parametrize("where", ["_follow", "react"])
@pytest.mark.parametrize(("follower", "followed"), BOTH)
def test_a_block_during_a_follow_ends_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch, where: str, follower: int, followed: int
) -> None:
    """Given a block after the first check: before the hold, and before the gate."""
    module: Any = follow_user if where == "_follow" else react
    before(monkeypatch, module, where, lambda: block_user.block(ADA, ME))
    with pytest.raises(Blocked):
        follow(followed, follower)
    assert follows() == saved(plaza) == set()


def test_the_refresh_repairs_a_block_whose_process_ended_after_the_commit(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for follower, followed in BOTH:
        follow(followed, follower)
    assert saved(plaza) == set(BOTH)

    with monkeypatch.context() as patch:
        patch.setattr(block_user, "_drop_projections", failing(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            block_user.block(ADA, ME)
    assert follows() == set(BOTH), "not ended yet"
    plaza.queues.drain()
    assert follows() == saved(plaza) == set()
    with pytest.raises(Blocked):
        follow(ADA, ME)


def test_a_reader_with_an_older_snapshot_does_not_hide_a_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    older = mysql_store.read_blocked([ME])
    block()
    redis_store.store_blocked(older, create=True)
    assert queries.read_blocked(ME) == {ADA}


def test_a_block_without_redis_is_stored_and_the_repeat_ends_the_follows(
    plaza: World, redis_away: Away
) -> None:
    follow(ADA, ME)
    assert saved(plaza) == {(ME, ADA)}
    with redis_away(), pytest.raises(RedisDown):
        block_user.block(ADA, ME)
    with pytest.raises(Blocked):
        follow(ME, ADA)
    assert block().status == 200
    assert saved(plaza) == set()
