"""Data that comes back to a node of the cluster, with a slot or with a role, is not taken for that
of now: commits may have arrived elsewhere meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from local.audit.compare import AuditReport
from local.stack.cluster import Cluster
from local.stack.servers import Server
from plaza.core.reactions import LIKE, react
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections
from tests.cluster.conftest import POSTS, Traffic, meta_key, migrate
from tests.support.plaza import World
from tests.support.reaction_process import ReactionProcess, Shown, read, run_process, run_sweeper

POST, ACTOR = POSTS[0], 7
KEY = meta_key(POST)


@pytest.fixture
def saved(traffic: Traffic, quiet: Callable[[], AuditReport]) -> int:
    """Load a post with saved likes. Returns their number; the actor's is not one of them."""
    assert quiet().clean
    [(count,)] = mysql.fetch_all(
        "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND kind = 'like' AND state", (POST.id,)
    )
    assert read(POST.id, ACTOR) == Shown(count, False, True)
    return int(count)


@pytest.fixture
def other(saved: int, plaza: World) -> Iterator[ReactionProcess]:
    """Another process, which is connected to the nodes."""
    with run_process(plaza.queues) as process:
        assert process.read(POST.id, ACTOR) == Shown(saved, False, True)
        yield process


def move_slot(nodes: Cluster, to: Server) -> None:
    """Move the slot of the post with all of its keys."""
    migrate(nodes, KEY, all_keys=True, to=to)()
    nodes.wait_for_master(KEY, to)


def fail_over(nodes: Cluster) -> None:
    """Swap the roles of the post's master and its replica, without a loss."""
    nodes.fail_over(KEY)
    nodes.wait_until_healthy()


def save_provisional_like(plaza: World) -> None:
    """Save a like that was accepted without Redis, by a consumer that connects now. No caller
    reads the post."""
    react.publish(ReactionEvent(ReactionKey(*POST, LIKE.name, ACTOR), True, None))
    connections.forget_client()
    plaza.queues.drain()


def run_sweepers(plaza: World, times: int = 2) -> None:
    for _ in range(times):
        run_sweeper()
        plaza.queues.drain()


def other_master(nodes: Cluster) -> Server:
    """Return a master that has not the slot of the post."""
    return next(node for node in nodes.masters() if node != nodes.master_of(KEY))


@pytest.mark.parametrize("sweeps_between", [0, 3])
def test_commit_that_arrives_while_the_slot_is_elsewhere_is_counted(
    saved: int,
    plaza: World,
    nodes: Cluster,
    quiet: Callable[[], AuditReport],
    sweeps_between: int,
) -> None:
    """The slot moves from A to C and back to A."""
    first = nodes.master_of(KEY)
    move_slot(nodes, other_master(nodes))
    save_provisional_like(plaza)
    run_sweepers(plaza, sweeps_between)
    move_slot(nodes, first)
    run_sweepers(plaza)
    assert read(POST.id, ACTOR) == Shown(saved + 1, True, True)
    assert quiet().clean


def test_post_that_was_loaded_while_its_slot_was_elsewhere_is_right(
    saved: int, plaza: World, nodes: Cluster, quiet: Callable[[], AuditReport]
) -> None:
    first = nodes.master_of(KEY)
    move_slot(nodes, other_master(nodes))
    save_provisional_like(plaza)
    assert read(POST.id, ACTOR) == Shown(saved + 1, True, True)
    move_slot(nodes, first)
    run_sweepers(plaza)
    assert read(POST.id, ACTOR) == Shown(saved + 1, True, True)
    assert quiet().clean


def test_reader_that_missed_both_moves_of_a_slot_is_right(
    saved: int, plaza: World, nodes: Cluster, other: ReactionProcess
) -> None:
    """It sends no command while the slot is elsewhere."""
    first = nodes.master_of(KEY)
    move_slot(nodes, other_master(nodes))
    save_provisional_like(plaza)
    move_slot(nodes, first)
    run_sweepers(plaza)
    assert other.read(POST.id, ACTOR) == Shown(saved + 1, True, True)


@pytest.mark.parametrize("sweeps_between", [0, 3])
def test_commit_between_two_failovers_is_counted(
    saved: int,
    plaza: World,
    nodes: Cluster,
    quiet: Callable[[], AuditReport],
    sweeps_between: int,
) -> None:
    fail_over(nodes)
    save_provisional_like(plaza)
    run_sweepers(plaza, sweeps_between)
    fail_over(nodes)
    run_sweepers(plaza)
    assert read(POST.id, ACTOR) == Shown(saved + 1, True, True)
    assert quiet().clean
