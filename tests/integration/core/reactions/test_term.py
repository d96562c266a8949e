"""A master that is demoted and promoted again without a restart: nothing that it missed is lost.

Two redis-servers, A and B, take turns as master. Clients find the master through an endpoint that
moves, as a DNS name does: open connections stay where they are unless they are cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from local.stack.cluster import connect_node
from local.stack.processes import wait_until
from local.stack.servers import Server, run_server
from plaza.core.reactions import LIKE, Target, react
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REACTIONS
from plaza.infra.redis import connections
from tests.chaos.proxy import Proxy
from tests.support import stores
from tests.support.plaza import Sent, World, set_up_for
from tests.support.reaction_process import (
    ReactionProcess,
    Shown,
    like,
    read,
    run_process,
    run_sweeper,
    save,
)
from tests.support.redis_pair import RedisPair, count_partial_resyncs, prepare_pair, proxy
from tests.support.servers import login

__all__ = ["proxy"]  # a fixture

REDIS_TIMEOUT_S = 0.5
POST = Target("post", 11)
ACTOR = 7
OLD_ACTORS = (1, 2, 3)
# A process notices after a second; the rest allows for a busy machine.
MAX_NOTICE_S = 4.0
MAX_GAP_S = 10.0


@dataclass
class Endpoint:
    """The address of the master."""

    proxy: Proxy
    port: int

    def move(self, server: Server, *, cut: bool = True) -> None:
        """Lead new connections to ``server``; ``cut`` ends those that are open."""
        if cut:
            self.refuse()
        self.proxy.set("redis", "pass", target=server.port)

    def refuse(self) -> None:
        """Reset open connections, and all new ones."""
        self.proxy.set("redis", "refuse")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[RedisPair]:
    """Yield A, which is the master, and B."""
    settings = (login(), "enable-debug-command local")
    with run_server(prepare_pair(tmp_path / "redis", settings)) as started:
        for server in (started.master, started.replica):
            with connect_node(server) as client:  # histories differ after an expiration
                client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
        yield started


@pytest.fixture
def endpoint(pair: RedisPair, proxy: Proxy) -> Endpoint:
    return Endpoint(proxy, proxy.add_route("redis", pair.master.port))


@pytest.fixture
def migrated(endpoint: Endpoint, mysql_url: str) -> Iterator[None]:
    """Configure Plaza for this pair, instead of tests/support/plaza.py."""
    url = f"redis://plaza:plaza@127.0.0.1:{endpoint.port}/0"
    with set_up_for(url, mysql_url, is_cluster=False, redis_timeout_s=REDIS_TIMEOUT_S):
        yield


@pytest.fixture
def world(plaza: World, pair: RedisPair) -> World:
    """Load a post with three saved likes into A, and let the sweeper see A twice."""
    plaza.add(POST)
    for actor in OLD_ACTORS:
        assert like(POST.id, actor, True) == (True, True)
    plaza.queues.drain()
    assert run_sweepers(plaza) == [0, 0]
    assert read(POST.id, ACTOR) == Shown(3, False, True)
    pair.wait_until_replicated()
    return plaza


@pytest.fixture
def other(world: World) -> Iterator[ReactionProcess]:
    """Another process, which is connected to A."""
    with run_process(world.queues) as process:
        assert process.read(POST.id, ACTOR) == Shown(3, False, True)
        yield process


def run_sweepers(plaza: World, times: int = 2) -> list[int]:
    """Run the sweeper and all consumers. Returns how many events were acknowledged again."""
    queued = []
    for _ in range(times):
        queued.append(run_sweeper())
        plaza.queues.drain()
    return queued


def like_while_unreachable(plaza: World, endpoint: Endpoint) -> None:
    """Like while the endpoint refuses. The event is on the queue."""
    endpoint.refuse()
    assert like(POST.id, ACTOR, True) == (False, None)
    assert len(plaza.queues.messages[REACTIONS]) == 1


def take_provisional_like(plaza: World, actor: int = ACTOR) -> list[Sent]:
    """Return the message of a like that was accepted without Redis."""
    react.publish(ReactionEvent(ReactionKey(*POST, LIKE.name, actor), True, None))
    return [body for body in plaza.queues.take(REACTIONS) if isinstance(body, Sent)]


def save_here(messages: Sequence[Sent]) -> None:
    """Save a batch in this process."""
    save(*((body, body.sent_ms) for body in messages))


def save_at(process: ReactionProcess, plaza: World) -> None:
    """Let a process save and apply the messages of the queue."""
    process.save([body for body in plaza.queues.take(REACTIONS) if isinstance(body, Sent)])
    assert not any(plaza.queues.messages.values()), "it applied them"


def lose_saved_like(plaza: World, pair: RedisPair) -> None:
    """Like at the master, save and acknowledge it there; the replica, promoted then, has nothing
    of that. The old master hangs."""
    with pair.lose_unreplicated_writes():
        assert like(POST.id, ACTOR, True) == (True, True)
        plaza.queues.drain()
        assert stores.outbox(POST) == {}


def fail_over(pair: RedisPair, endpoint: Endpoint) -> None:
    """Swap the roles without a loss and without a full copy, and lead all clients to the new
    master."""
    before = count_partial_resyncs(pair.replica)
    pair.fail_over()
    assert count_partial_resyncs(pair.master) == before + 1
    endpoint.move(pair.master)


def promote_behind_partition(pair: RedisPair, endpoint: Endpoint) -> None:
    """Promote B while A goes on as a master. This process is connected to B, and has loaded the
    post there."""
    pair.promote()
    endpoint.move(pair.master, cut=False)
    connections.forget_client()  # to connect again
    assert read(POST.id, ACTOR) == recorded()


def end_partition(pair: RedisPair, endpoint: Endpoint) -> None:
    """A becomes a replica of B."""
    pair.follow()
    endpoint.move(pair.master)


def recorded(actor: int = ACTOR) -> Shown:
    """Return what an exact answer must show."""
    on = [a for a, (state, _) in stores.rows(POST).items() if state]
    assert stores.counter(POST) == len(on)
    return Shown(len(on), actor in on, True)


def assert_right(plaza: World, total: int = 4) -> None:
    """Check that Redis, the counter and the rows agree, and what the actor reads."""
    assert not any(plaza.queues.messages.values())
    assert recorded() == Shown(total, True, True)
    assert read(POST.id, ACTOR) == recorded()
    assert stores.total(POST) == total
    assert stores.outbox(POST) == {}


def wait_until_right(process: ReactionProcess) -> None:
    """Wait until a process shows the actor what is true."""
    shown: list[Shown | None] = []

    def is_right() -> bool:
        shown.append(process.read(POST.id, ACTOR))
        return shown[-1] == recorded()

    assert wait_until(is_right, MAX_NOTICE_S), f"{shown[-1]}, not {recorded()}"


def sweep_until_right(plaza: World) -> None:
    """Run the sweeper until a missing commit is a gap, after some seconds, and was loaded."""

    def is_right() -> bool:
        plaza.let_sweeps_be_due()
        run_sweepers(plaza, 1)
        return read(POST.id, ACTOR) == recorded()

    assert wait_until(is_right, MAX_GAP_S)


def count_writes(server: Server) -> int:
    """Return how often a node has run HSET, as each load of a target does."""
    with connect_node(server) as client:
        stats = client.info("commandstats")
    return int(stats.get("cmdstat_hset", {"calls": 0})["calls"])


@pytest.mark.parametrize("is_new", [True, False])
def test_202_between_two_planned_failovers_is_counted(
    world: World, pair: RedisPair, endpoint: Endpoint, is_new: bool
) -> None:
    """``is_new``: its consumer was never connected to the old master."""
    like_while_unreachable(world, endpoint)
    fail_over(pair, endpoint)
    if is_new:
        connections.forget_client()
    world.queues.drain()
    run_sweepers(world, 4)
    fail_over(pair, endpoint)
    run_sweepers(world)
    assert_right(world)


def test_202_while_the_master_hangs_is_counted_after_the_way_back(
    world: World, pair: RedisPair, endpoint: Endpoint
) -> None:
    pair.master.pause()
    assert like(POST.id, ACTOR, True) == (False, None)
    pair.promote()
    endpoint.move(pair.master)
    pair.resume()
    pair.follow()
    connections.forget_client()  # as a consumer that connects now
    world.queues.drain()
    run_sweepers(world, 4)
    fail_over(pair, endpoint)
    run_sweepers(world)
    assert_right(world)


@pytest.mark.parametrize("sweeps_between", [4, 0])
def test_saved_like_that_was_not_replicated_is_counted_after_the_way_back(
    world: World, pair: RedisPair, endpoint: Endpoint, sweeps_between: int
) -> None:
    lose_saved_like(world, pair)
    endpoint.move(pair.master)
    run_sweepers(world, sweeps_between)
    pair.resume()
    pair.follow()
    fail_over(pair, endpoint)
    run_sweepers(world)
    assert_right(world)


def test_saved_unlike_that_was_not_replicated_stays_off_after_the_way_back(
    world: World, pair: RedisPair, endpoint: Endpoint
) -> None:
    actor = OLD_ACTORS[0]
    with pair.lose_unreplicated_writes():
        assert like(POST.id, actor, False) == (True, True)
        world.queues.drain()
    endpoint.move(pair.master)
    pair.resume()
    pair.follow()
    fail_over(pair, endpoint)
    run_sweepers(world)
    assert read(POST.id, actor) == recorded(actor) == Shown(2, False, True)
    assert like(POST.id, actor, False) == (True, False)
    assert like(POST.id, actor, True) == (True, True)
    world.queues.drain()
    assert read(POST.id, actor) == recorded(actor) == Shown(3, True, True)


@pytest.mark.parametrize("is_lost", [False, True])
def test_like_is_counted_after_one_failover(
    world: World, pair: RedisPair, endpoint: Endpoint, is_lost: bool
) -> None:
    if is_lost:
        lose_saved_like(world, pair)
        pair.resume()
        pair.follow()
        endpoint.move(pair.master)
    else:
        like_while_unreachable(world, endpoint)
        fail_over(pair, endpoint)
        world.queues.drain()
    run_sweepers(world)
    assert_right(world)


@pytest.mark.parametrize("is_lost", [False, True])
def test_like_is_counted_after_the_way_back_to_a_restarted_master(
    world: World, pair: RedisPair, endpoint: Endpoint, is_lost: bool
) -> None:
    if is_lost:
        lose_saved_like(world, pair)
        endpoint.move(pair.master)
    else:
        like_while_unreachable(world, endpoint)
        fail_over(pair, endpoint)
        world.queues.drain()
    pair.replica.kill()
    pair.replica.start()
    pair.follow()
    run_sweepers(world, 4)
    fail_over(pair, endpoint)
    run_sweepers(world)
    assert_right(world)


@pytest.mark.parametrize("is_read_there", [False, True])
def test_reader_that_stays_connected_to_the_demoted_master_notices(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess, is_read_there: bool
) -> None:
    """``is_read_there``: the new master has loaded the post, too."""
    pair.master.pause()
    assert like(POST.id, ACTOR, True) == (False, None)
    pair.promote()
    endpoint.move(pair.master, cut=False)
    pair.resume()
    pair.follow()
    connections.forget_client()  # as a consumer that connects now
    world.queues.drain()
    if is_read_there:
        assert read(POST.id, ACTOR) == recorded()
    run_sweepers(world)
    wait_until_right(other)
    assert other.like(POST.id, 8) == [True, True]
    world.queues.drain()
    assert_right(world, 5)


def test_reader_that_stays_connected_through_both_failovers_notices(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess
) -> None:
    messages = take_provisional_like(world)
    pair.fail_over()
    endpoint.move(pair.master, cut=False)
    connections.forget_client()
    save_here(messages)
    pair.fail_over()
    endpoint.move(pair.master, cut=False)
    run_sweepers(world)
    wait_until_right(other)
    assert_right(world)


@pytest.mark.parametrize("failovers", [1, 2])
def test_processes_that_connected_before_and_after_a_promotion_agree_on_loads(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess, failovers: int
) -> None:
    """From a second after the promotion on, neither loads again what the other one has loaded."""
    for _ in range(failovers):
        pair.fail_over()
        endpoint.move(pair.master, cut=False)
    with run_process(world.queues) as later:
        processes = (other, later)

        def agree() -> bool:
            before = count_writes(pair.master)
            shown = [process.read(POST.id, ACTOR) for process in processes * 3]
            return shown == [recorded()] * 6 and count_writes(pair.master) == before

        # They may agree once before both have noticed the promotion; ten times takes seconds on a
        # busy machine.
        assert wait_until(lambda: all(agree() for _ in range(10)), 5 * MAX_NOTICE_S)
        for count, (writer, reader) in enumerate((processes, processes[::-1]), start=1):
            assert writer.like(POST.id, 20 + count) == [True, True]
            assert reader.read(POST.id, 20 + count) == Shown(3 + count, True, True)


def test_replica_that_is_behind_is_not_believed(
    world: World, pair: RedisPair, endpoint: Endpoint
) -> None:
    """The endpoint leads to a replica, and the link to its master hangs."""
    port = endpoint.proxy.add_route("link", pair.master.port)
    with connect_node(pair.replica) as client:
        client.execute_command("REPLICAOF", "127.0.0.1", port)
        assert wait_until(lambda: client.info("replication")["master_link_status"] == "up", 20)
    endpoint.proxy.set("link", "hang")
    assert like(POST.id, ACTOR, True) == (True, True)
    world.queues.drain()
    endpoint.move(pair.replica)
    with run_process(world.queues) as later:
        assert later.read(POST.id, ACTOR) in (None, recorded()._replace(exact=False))
        assert later.like(POST.id, 8) == [False, None]
        endpoint.move(pair.master)
        world.queues.drain()
        wait_until_right(later)
    assert_right(world, 5)


@pytest.mark.parametrize("sweeps_before", [3, 0])
def test_commit_of_a_consumer_on_the_old_side_of_a_partition_is_counted(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess, sweeps_before: int
) -> None:
    """``sweeps_before``: runs of the sweeper at the new master before the commit."""
    promote_behind_partition(pair, endpoint)
    run_sweepers(world, sweeps_before)
    other.save(take_provisional_like(world))
    end_partition(pair, endpoint)
    world.queues.drain()
    if not sweeps_before:  # the recovery acknowledges it again, so that the new master has a gap
        sweep_until_right(world)
    run_sweepers(world)
    assert_right(world)


def test_commits_of_consumers_on_both_sides_of_a_partition_are_counted(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess
) -> None:
    """The last one is on the old side, so that no later commit shows the gap."""
    promote_behind_partition(pair, endpoint)
    run_sweepers(world, 3)
    save_here(take_provisional_like(world, 31))
    other.save(take_provisional_like(world, 32))
    save_here(take_provisional_like(world, 33))
    other.save(take_provisional_like(world))
    end_partition(pair, endpoint)
    world.queues.drain()
    run_sweepers(world)
    assert_right(world, 7)


def test_commit_on_the_old_side_while_the_recovery_reads_the_log_is_counted(
    world: World,
    pair: RedisPair,
    endpoint: Endpoint,
    other: ReactionProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_here(take_provisional_like(world, 30))  # for the recovery to read
    pair.wait_until_replicated()
    messages = take_provisional_like(world)
    promote_behind_partition(pair, endpoint)
    send = world.queues.send

    def save_before_sending(*args: Any) -> None:
        if messages:
            other.save([messages.pop()])
        send(*args)

    with monkeypatch.context() as patch:
        patch.setattr("plaza.infra.queues.sqs.send", save_before_sending)
        assert run_sweeper() == 1
    assert messages == []
    end_partition(pair, endpoint)
    world.queues.drain()
    run_sweepers(world, 1)
    assert_right(world, 5)


def test_ordinary_failover_postpones_no_acknowledgement(
    world: World, pair: RedisPair, endpoint: Endpoint
) -> None:
    """The consumer is the first one that sees the new master."""
    messages = take_provisional_like(world)
    fail_over(pair, endpoint)
    assert read(POST.id, ACTOR) == recorded()
    save_here(messages)
    assert not any(world.queues.messages.values())
    assert_right(world)
    run_sweepers(world)
    assert_right(world)


def test_sweeper_that_stays_connected_to_the_demoted_master_recovers(
    world: World, pair: RedisPair, endpoint: Endpoint, other: ReactionProcess
) -> None:
    """While nothing is due it only reads, and a replica answers reads."""
    assert [other.run_sweeper() for _ in range(2)] == [0, 0]
    save_here(take_provisional_like(world))
    pair.fail_over()
    endpoint.move(pair.master, cut=False)
    assert wait_until(lambda: bool(other.run_sweeper()), MAX_NOTICE_S)
    connections.forget_client()
    world.queues.drain()
    assert_right(world)


@pytest.mark.parametrize("before", ["", "BA"], ids=["unswept", "swept on both sides"])
@pytest.mark.parametrize("after", ["A", "AA", "AAAA", "ABAA"])
def test_like_saved_at_the_deposed_master_is_counted_after_sweeps_there(
    world: World,
    pair: RedisPair,
    endpoint: Endpoint,
    other: ReactionProcess,
    before: str,
    after: str,
) -> None:
    """``before`` and ``after`` the like: runs of the sweeper at A, the deposed master, and at B."""

    def sweep(sides: str) -> None:
        for side in sides:
            assert (other.run_sweeper() if side == "A" else run_sweeper()) is not None

    promote_behind_partition(pair, endpoint)
    sweep(before)
    assert other.like(POST.id, ACTOR) == [True, True]
    save_at(other, world)
    sweep(after)
    while bodies := world.queues.take(ACKNOWLEDGEMENTS):  # what B has queued reaches A alone
        other.acknowledge([body for body in bodies if isinstance(body, Sent)])
    end_partition(pair, endpoint)
    run_sweepers(world, 4)
    sweep_until_right(world)
    assert_right(world)
