"""The functions that a request enters: which, in what order, and how many at most."""

from __future__ import annotations

import pytest

from cli.paths import CommandError
from local.stack.bed import QUEUES
from local.stack.queue_registry import load_queues
from plaza.infra.mysql import mysql
from tests.support.plaza import World
from tools import walk
from tools.walk import Walk


def take(request: str, *, cold: bool = False) -> Walk:
    for statement in walk.WORLD:
        mysql.write(statement)
    name, event = walk.find_sample(request)
    return walk.take_walk(name.partition(".")[0], event, cold=cold)


def of_contexts(of: Walk) -> set[tuple[str, str]]:
    return {step for step in of.of_route if not step[0].startswith("infra/")}


@pytest.mark.parametrize(
    ("request_", "step", "most"),
    [
        ("PUT /posts/11/likes/me", ("core/reactions", "redis_gate.gate"), 26),
        ("POST /vouchers/31/orders", ("commerce/flash_sales", "redis_orders.reserve"), 40),
    ],
)
def test_a_write_enters_few_functions(
    plaza: World, request_: str, step: tuple[str, str], most: int
) -> None:
    taken = take(request_)
    assert step in taken.of_route
    assert len(of_contexts(taken)) <= most
    entered = list(taken.entered)
    session = ("people/auth", "caller_identity.identify")
    assert session not in taken.of_route
    assert entered.index(session) < entered.index(step)


def test_a_read_enters_the_contexts_of_a_page(plaza: World) -> None:
    taken = take("GET /feed")
    assert ("social/feed", "queries.read_feed") in taken.of_route
    assert {"core/reactions", "social/content"} <= {context for context, _ in taken.of_route}


def test_a_cold_walk_loads_the_target(plaza: World) -> None:
    def loads(of: Walk) -> bool:
        return any(module.startswith("redis_hydration.") for _, module in of.of_route)

    assert not loads(take("PUT /posts/11/likes/me"))
    _, event = walk.find_sample("PUT /posts/11/likes/me")
    assert loads(walk.take_walk("reactions", event, cold=True))


def test_a_sample_is_found_by_path_and_by_route() -> None:
    assert walk.find_sample("GET /posts/{post_id}") == walk.find_sample("GET /posts/11")
    with pytest.raises(CommandError, match="no sample of GET /nowhere"):
        walk.find_sample("GET /nowhere")


def test_a_refused_request_is_an_error() -> None:
    with pytest.raises(CommandError, match="answered 404"):
        walk.check({"statusCode": 404, "body": "{}"})


def test_the_bed_has_all_queues() -> None:
    assert set(QUEUES) == set(load_queues())
