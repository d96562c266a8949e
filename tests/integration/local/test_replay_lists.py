"""What a replay reads from the API beside totals: whole lists and viewer states."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from local.load import unread
from local.load.api_reader import ApiReader
from local.load.follows import Follow
from local.load.follows import fetch_viewer_states as fetch_own_follows
from local.load.interactions import (
    fetch_likers,
    fetch_own_lists,
    fetch_viewer_states,
    find_wrong_orders,
    find_wrong_own_lists,
)
from local.load.requests import Reaction
from local.load.scenario import compare_states
from plaza.core.reactions import COLLECT, KINDS, LIKE, Target, react
from plaza.infra.mysql import mysql
from plaza.people import follows
from tests.support.content_api import ask as ask_function
from tests.support.plaza import World
from tests.support.unread import OWNER, turn_on

LARGE, SMALL = 7, 8
LIKERS = range(1, 231)  # three pages
READER = 1


class FunctionApiReader(ApiReader):
    """Calls the functions in this process."""

    def __init__(self) -> None:
        super().__init__("", {}, 1, lambda text: None)

    async def fetch(
        self, path: str, *, body: Any = None, user_id: int | None = None
    ) -> Mapping[str, Any]:
        """Return the response of the function that has the route."""
        folder = "api/reactions"
        if path.startswith("/users/me/notifications"):
            folder = "api/notifications"
        elif path.startswith("/users/") and "/me/" not in path:
            folder = "api/users"
        reply = ask_function(
            "GET" if body is None else "POST",
            path,
            body,
            user=user_id,
            folder=folder,
        )
        assert reply.status == 200, reply.body
        fields: Mapping[str, Any] = reply.body
        return fields


@pytest.fixture
def after(plaza: World) -> set[Reaction]:
    """230 users like one post; the reader likes and collects many others."""
    made = {Reaction("like", LARGE, user_id) for user_id in LIKERS}
    made |= {Reaction("like", post_id, READER) for post_id in range(100, 220)}
    made |= {Reaction("collect", post_id, READER) for post_id in range(100, 105)}
    plaza.add(*(Target("post", post_id) for post_id in {SMALL, *(r.target_id for r in made)}))
    for kind, item_id, user_id in sorted(made):
        assert react.react(KINDS[kind], Target("post", item_id), user_id, True).changed
    plaza.queues.drain()
    return made


def read(
    user_ids: list[int],
) -> tuple[dict[int, list[int]], dict[int, list[int]], dict[Reaction, bool]]:
    """Read likers in both orders, and the viewer states of users."""
    api, posts = FunctionApiReader(), [LARGE, SMALL]

    async def do() -> tuple[dict[int, list[int]], dict[int, list[int]], dict[Reaction, bool]]:
        return (
            await fetch_likers(api, posts),
            await fetch_likers(api, posts, "?order=latest"),
            await fetch_viewer_states(api, user_ids, posts),
        )

    return asyncio.run(do())


def test_all_pages_of_both_orders_and_viewer_states_are_right(after: set[Reaction]) -> None:
    earliest, latest, viewer_states = read([1, 2, 230, 999])
    assert earliest == {LARGE: list(LIKERS), SMALL: []}
    assert find_wrong_orders(earliest, latest) == []
    assert len(viewer_states) == 16
    assert compare_states(after, viewer_states) == []


def test_own_lists_are_read_to_their_end(after: set[Reaction]) -> None:
    async def do() -> dict[str, dict[int, list[int]]]:
        kinds = (LIKE.name, COLLECT.name)
        api = FunctionApiReader()
        return {kind: await fetch_own_lists(api, [READER], kind) for kind in kinds}

    lists = asyncio.run(do())
    posts = {reaction.target_id for reaction in after}
    assert (len(lists["like"][READER]), len(lists["collect"][READER])) == (121, 5)
    assert find_wrong_own_lists(after, lists, posts) == []


def test_a_row_changed_behind_redis_is_reported(after: set[Reaction]) -> None:
    mysql.write(
        "UPDATE reaction SET state = 0 WHERE target_id = %s AND actor_id = 3 AND kind = 'like'",
        (LARGE,),
    )
    earliest, _, viewer_states = read([3])
    stored = after - {Reaction("like", LARGE, 3)}
    assert compare_states(stored, viewer_states) == ["like of post 7 by user 3 is on by the API"]
    assert set(earliest[LARGE]) == set(LIKERS)


def test_viewer_states_include_whether_a_user_follows(plaza: World) -> None:
    mysql.write("INSERT INTO user (id, nickname) VALUES (1, 'Ada'), (2, 'Ben'), (3, 'Chloe')")
    assert follows.follow(3, 1).changed

    async def do() -> dict[Follow, bool]:
        return await fetch_own_follows(FunctionApiReader(), [Follow(1, 3), Follow(2, 3)])

    assert asyncio.run(do()) == {Follow(1, 3): True, Follow(2, 3): False}


def test_unread_of_users_agree_with_their_groups_and_with_the_file(plaza: World) -> None:
    """Given posts of one author, one of which is liked by two others and the author."""
    turn_on()
    liked, quiet = Target("post", LARGE), Target("post", SMALL)
    plaza.add(liked, quiet, author_id=OWNER)
    for user_id in (1, 2, OWNER):
        assert react.react(LIKE, liked, user_id, True).changed
    plaza.queues.drain()

    seen = asyncio.run(unread.fetch_unread(FunctionApiReader(), [OWNER, READER]))
    assert unread.describe(seen) == "the unread counters of 2 users: 1 groups, 2 new"
    assert unread.find_wrong_unread(seen, lambda *_: 2) == []
    subject = ("like", "post", LARGE)
    assert unread.find_wrong_unread(seen, lambda *of: 3 if of == (subject, OWNER) else None) == [
        f"the unread counter of user {OWNER} has 2 new of 2 of {subject}, 3 by the file"
    ]

    groups = [*seen[OWNER].groups, *seen[OWNER].groups]
    [badge, twice] = unread.find_wrong_unread(
        {OWNER: seen[OWNER]._replace(groups=groups)}, lambda *_: 2
    )
    assert badge.endswith("2 groups are new")
    assert twice == f"the unread counter of user {OWNER} has a group twice"
