"""A private Redis Cluster on loopback: three masters with a replica each; starts in seconds.

It persists nothing: a cluster that was stopped comes back empty. Without the master of one slot the
other slots stay available (``cluster-require-full-coverage no``).
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from cli.paths import CommandError
from local.stack.ports import free_ports
from local.stack.processes import Process, wait_until
from local.stack.servers import Server, load_redis, prepare_redis, read_redis_port

MASTERS = 3
NODES = 2 * MASTERS
SLOTS = 16_384
NODE_TIMEOUT_MS = 2_000
_PORTS = range(16_000, 32_000)  # below the kernel's ephemeral ports
_POLL_INTERVAL_S = 0.02
_FAILOVER_TIMEOUT_S = 6.0  # a node gives up after five seconds
_UNREACHABLE = (redis.ConnectionError, redis.TimeoutError)


@dataclass(slots=True)
class Cluster:
    """The nodes of one cluster; started, stopped, paused and resumed like a ``Server``.

    The first three nodes begin as masters of a third of the slots each, the others as their
    replicas. After a failover ``masters`` returns the current masters.
    """

    directory: Path
    nodes: tuple[Server, ...]
    name: str = "redis"

    @property
    def url(self) -> str:
        return f"redis://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}/0"

    @property
    def processes(self) -> list[Process]:
        return [process for node in self.nodes for process in node.processes]

    def is_running(self) -> bool:
        return all(node.is_running() for node in self.nodes)

    def start(self, *, attached: bool = True, timeout_s: float = 60) -> None:
        """Start the nodes that do not run and wait until the cluster is healthy.

        If no node ran, a new cluster is formed. Raises CommandError.
        """
        new = not any(node.is_running() for node in self.nodes)
        if new:
            for node in self.nodes:
                (node.directory / "nodes.conf").unlink(missing_ok=True)
        started = [node for node in self.nodes if not node.is_running()]
        try:
            for node in started:
                node.start(attached=attached, timeout_s=timeout_s)
            if new:
                self._form(timeout_s)
            if started:
                self.wait_until_healthy(timeout_s)
        except BaseException:
            if new:
                self.stop()
            raise

    def stop(self) -> None:
        for node in self.nodes:
            node.resume()
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def pause(self) -> None:
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        for node in self.nodes:
            node.resume()

    def masters(self) -> list[Server]:
        by_port = {node.port: node for node in self.nodes}
        ranges = sorted(self._query_any_node("CLUSTER", "SLOTS"))
        return [
            by_port[port] for port in dict.fromkeys(int(slot_range[2][1]) for slot_range in ranges)
        ]

    def master_of(self, key: str) -> Server:
        """Return the node that has the slot of ``key`` now."""
        slot = key_slot(key.encode())
        port = _find_master(self._query_any_node("CLUSTER", "SLOTS"), slot)
        if port is None:
            raise CommandError(f"slot {slot} has no master")
        return next(node for node in self.nodes if node.port == port)

    def replica_of(self, master: Server, timeout_s: float = 20) -> Server:
        """Return a replica of ``master`` once it has all data that the master has now.

        A link that is up is not enough: after a full synchronisation the stream of newer writes may
        begin a second later. Raises CommandError without a replica.
        """
        offset = _offset(master)
        replica = next((n for n in self.nodes if _link(n) == (master.port, "up")), None)
        if replica is None:
            raise CommandError(f"the master at {master.port} has no replica")
        if not wait_until(lambda: _offset(replica) >= offset, timeout_s, step_s=_POLL_INTERVAL_S):
            raise CommandError(f"{replica.name} is behind for more than {timeout_s:g} s")
        return replica

    def fail_over(self, key: str, timeout_s: float = 20) -> Server:
        """Fail over the master of ``key`` without loss. Returns the new master.

        Masters refuse a vote for a while after one about the same node, so it may take more than
        one attempt. Raises CommandError.
        """
        replica = self.replica_of(self.master_of(key))
        attempts = max(1, int(timeout_s / _FAILOVER_TIMEOUT_S))
        for _ in range(attempts):
            with connect_node(replica) as client, contextlib.suppress(redis.ResponseError):
                client.execute_command("CLUSTER", "FAILOVER")  # refused by a master
            with contextlib.suppress(CommandError):
                self.wait_for_master(key, replica, _FAILOVER_TIMEOUT_S)
                return replica
        raise CommandError(f"{replica.name} did not become master in {attempts} attempts")

    @contextlib.contextmanager
    def lose_unreplicated_writes(self, key: str) -> Iterator[None]:
        """Lose the writes that the master of ``key`` accepts in the block: it is killed before
        replication.

        Afterwards the replica, which has none of them, is the master.
        """
        master = self.master_of(key)
        replica = self.replica_of(master)
        replica.pause()
        try:
            with connect_node(master) as client:  # otherwise the kernel buffers for the replica
                client.execute_command("CLIENT", "KILL", "TYPE", "replica")
            yield
            master.kill()
        finally:
            replica.resume()
        self.wait_for_master(key, replica)

    def wait_for_master(self, key: str, server: Server, timeout_s: float = 30) -> None:
        """Wait until every reachable node reports ``server`` as master of ``key``. Raises
        CommandError."""
        slot = key_slot(key.encode())

        def all_nodes_agree() -> bool:
            slots = [_query_node(node, "CLUSTER", "SLOTS") or [] for node in self.nodes]
            return all(_find_master(ranges, slot) in (server.port, None) for ranges in slots)

        if not wait_until(all_nodes_agree, timeout_s, step_s=_POLL_INTERVAL_S):
            raise CommandError(f"{server.name} did not become master in {timeout_s:g} s")

    def wait_until_healthy(self, timeout_s: float = 60) -> None:
        """Wait until all nodes report a complete, healthy cluster. Raises CommandError."""
        if not wait_until(self._is_healthy, timeout_s, step_s=_POLL_INTERVAL_S):
            states = ", ".join(f"{node.name}: {_state(node)}" for node in self.nodes)
            raise CommandError(f"the cluster is not healthy after {timeout_s:g} s ({states})")

    def configure(self, name: str, value: str | int) -> None:
        for node in self.nodes:
            if node.is_running():
                with contextlib.suppress(*_UNREACHABLE), connect_node(node) as client:
                    client.execute_command("CONFIG", "SET", name, value)

    def _form(self, timeout_s: float) -> None:
        with contextlib.ExitStack() as ends:
            clients = [ends.enter_context(connect_node(node)) for node in self.nodes]
            for number, client in enumerate(clients):
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            for number, client in enumerate(clients[:MASTERS]):
                first, last = SLOTS * number // MASTERS, SLOTS * (number + 1) // MASTERS - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            for number, client in enumerate(clients):
                for other in self.nodes[number + 1 :]:  # each pair, so that none waits for gossip
                    bus = read_redis_port(other.directory, "cluster-port")
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, bus)
            ids = [str(client.execute_command("CLUSTER", "MYID")) for client in clients]

            def all_know_all() -> bool:
                return all(_has_met(client, ids) for client in clients)

            if not wait_until(all_know_all, timeout_s, step_s=_POLL_INTERVAL_S):
                raise CommandError("the nodes of the cluster do not meet")
            for number, client in enumerate(clients[MASTERS:]):
                client.execute_command("CLUSTER", "REPLICATE", ids[number])

    def _is_healthy(self) -> bool:
        links = [_link(node) for node in self.nodes]
        masters = [node.port for node, link in zip(self.nodes, links, strict=True) if link is None]
        return (
            len(masters) == MASTERS
            and {link[0] for link in links if link and link[1] == "up"} == set(masters)
            and all(_state(node) == "ok" for node in self.nodes)
            and all(
                _masters_according_to(node) == {(port, 1) for port in masters}
                for node in self.nodes
            )
        )

    def _query_any_node(self, *command: str) -> Any:
        for node in self.nodes:
            if not node.is_running():
                continue
            with contextlib.suppress(*_UNREACHABLE), connect_node(node) as client:
                return client.execute_command(*command)
        raise CommandError("no node of the cluster answers")


def prepare_cluster(directory: Path, *, node_timeout_ms: int = NODE_TIMEOUT_MS) -> Cluster:
    """Write the configuration of a cluster. ``node_timeout_ms``: silence until a node is down."""
    ports = free_ports(2 * NODES, _PORTS)
    for number in range(NODES):
        settings = (
            "shutdown-timeout 0",
            "cluster-enabled yes",
            "cluster-config-file nodes.conf",
            f"cluster-port {ports[NODES + number]}",
            f"cluster-node-timeout {node_timeout_ms}",
            "cluster-require-full-coverage no",
            "cluster-replica-validity-factor 0",  # even a replica that is behind may take over
            "cluster-allow-replica-migration no",
            "repl-diskless-sync yes",
            "repl-diskless-sync-delay 0",
            "repl-ping-replica-period 1",
        )
        prepare_redis(directory / str(number), port=ports[number], settings=settings)
    return load_cluster(directory)


def load_cluster(directory: Path) -> Cluster:
    """Load the cluster that ``prepare_cluster`` configured. Raises OSError, CommandError."""
    nodes = [load_redis(directory / str(number)) for number in range(NODES)]
    log = directory.parent / "logs" / "redis.log"
    for number, node in enumerate(nodes):
        node.name, node.log_file = f"redis-{number}", log
    return Cluster(directory, tuple(nodes))


@contextlib.contextmanager
def connect_node(node: Server) -> Iterator[Any]:
    """Yield a client of one node; close it afterwards."""
    client = redis.Redis(
        port=node.port,
        decode_responses=True,
        socket_timeout=1,
        socket_connect_timeout=1,
        retry=Retry(NoBackoff(), 0),  # the default retries for half a minute
    )
    try:
        yield client
    finally:
        client.close()


def _query_node(node: Server, *command: str) -> Any:
    """Return the reply of one node; None without a reply."""
    if not node.is_running():
        return None
    try:
        with connect_node(node) as client:
            return client.execute_command(*command)
    except _UNREACHABLE:
        return None


def _state(node: Server) -> str:
    match = re.search(r"cluster_state:(\w+)", str(_query_node(node, "CLUSTER", "INFO")))
    return match[1] if match else "down"


def _link(node: Server) -> tuple[int, str] | None:
    """Return the port of a replica's master and the state of the link; None for a master."""
    role = _query_node(node, "ROLE")
    if role is None:
        return (0, "down")
    if role[0] != "slave":
        return None
    return (int(role[2]), "up" if role[3] == "connected" else str(role[3]))


def _offset(node: Server) -> int:
    """Return a node's replication offset; -1 without a reply."""
    role = _query_node(node, "ROLE")
    if role is None:
        return -1
    return int(role[4] if role[0] == "slave" else role[1])


def _masters_according_to(node: Server) -> set[tuple[int, int]]:
    """Return (port, number of replicas) of each master as ``node`` reports them."""
    slots = _query_node(node, "CLUSTER", "SLOTS") or []
    return {(int(master[1]), len(replicas)) for _, _, master, *replicas in slots}


def _find_master(slots: Any, slot: int) -> int | None:
    """Return the port of a slot's master in a reply to CLUSTER SLOTS."""
    ports = (int(master[1]) for first, last, master, *_ in slots if first <= slot <= last)
    return next(ports, None)


def _has_met(client: Any, ids: list[str]) -> bool:
    lines = [line.split() for line in str(client.execute_command("CLUSTER", "NODES")).splitlines()]
    flags = {line[0]: line[2] for line in lines}
    return all("handshake" not in flags.get(id_, "handshake") for id_ in ids)
