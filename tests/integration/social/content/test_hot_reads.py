"""Anonymous callers read hot targets from memory; callers with a session read Redis each time."""

from __future__ import annotations

import pytest

from plaza.core.reactions import LIKE, Target, react
from plaza.infra.runtime import clock
from tests.support.content_api import add_users, ask, counting_work, post
from tests.support.plaza import World
from tests.support.shop_api import add_types, create

AUTHOR = 7
HOT = 20


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A stopped clock."""
    stopped = [clock.monotonic_s()]
    monkeypatch.setattr(clock, "monotonic_s", lambda: stopped[0])
    return stopped


@pytest.fixture
def paths(world: World) -> list[tuple[str, str]]:
    """Functions and paths of a post's likers, its author and a shop."""
    add_users(AUTHOR, 8)
    add_types()
    post_id = post()
    react.react(LIKE, Target("post", int(post_id)), 8, True)
    world.queues.drain()
    return [
        ("api/reactions", f"/posts/{post_id}/likers"),
        ("api/users", f"/users/{AUTHOR}"),
        ("api/shops", f"/shops/{create()}"),
    ]


def round_trips(folder: str, path: str, user: int | None = None) -> int:
    with counting_work() as work:
        assert ask("GET", path, user=user, folder=folder).status == 200
    return work.round_trips


def test_hot_targets_are_read_from_redis_once_a_second(
    paths: list[tuple[str, str]], now: list[float]
) -> None:
    for folder, path in paths:
        costs = [round_trips(folder, path) for _ in range(2 * HOT)]
        assert costs[HOT - 2] > 0, path
        assert set(costs[HOT:]) == {0}, path
        assert round_trips(folder, path, user=AUTHOR) > 0, path
    now[0] += 1
    for folder, path in paths:
        assert round_trips(folder, path) > 0, path


def test_a_hot_post_costs_one_round_trip_that_counts_the_visitor(
    world: World, now: list[float]
) -> None:
    add_users(AUTHOR)
    path = f"/posts/{post()}"
    costs = [round_trips("api/content", path) for _ in range(2 * HOT)]
    assert costs[-1] == 1


def test_a_user_reads_the_own_profile_from_redis(world: World, now: list[float]) -> None:
    """Given a profile that is hot for anonymous callers."""
    add_users(AUTHOR)
    for _ in range(2 * HOT):
        assert round_trips("api/users", f"/users/{AUTHOR}") >= 0
    ask("PATCH", "/users/me", {"nickname": "Ada"}, user=AUTHOR, folder="api/users")
    for path in ("/users/me", f"/users/{AUTHOR}"):
        assert ask("GET", path, user=AUTHOR, folder="api/users").body["nickname"] == "Ada"
    assert ask("GET", f"/users/{AUTHOR}", user=None, folder="api/users").status == 200
