"""A private Redis Cluster: three masters, a replica of each, on loopback; formed in some seconds.

It persists nothing, so a cluster that was stopped comes back empty. A slot whose master is away
takes nothing else with it (``cluster-require-full-coverage no``).
"""

import contextlib
import random
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.retry import Retry

from local.paths import LocalError
from local.stack.processes import Process, wait_until
from local.stack.servers import Server, require_binary

MASTERS = 3
NODES = 2 * MASTERS
SLOTS = 16_384
NODE_TIMEOUT_MS = 2_000
_PORTS = range(16_000, 32_000)  # below those that a kernel gives to clients
_POLL_INTERVAL_S = 0.02
_rng = random.SystemRandom()  # who sets a seed would have the ports of all who set the same
_UNREACHABLE = (redis.ConnectionError, redis.TimeoutError)


@dataclass(slots=True)
class Cluster:
    """The nodes of one cluster; like a ``Server`` it is started, stopped, paused and resumed.

    The first three nodes begin as masters of a third of the slots each, the others as their
    replicas. Who is what after a failover, ``masters`` asks.
    """

    directory: Path
    nodes: tuple[Server, ...]
    name: str = "redis"

    @property
    def url(self) -> str:
        """``redis://`` with every node, separated by commas: any one of them will do."""
        return f"redis://{','.join(f'127.0.0.1:{node.port}' for node in self.nodes)}/0"

    @property
    def processes(self) -> list[Process]:
        """Those that were started, as recorded; they may have ended."""
        return [process for node in self.nodes for process in node.processes]

    def is_running(self) -> bool:
        """Whether every node runs."""
        return all(node.is_running() for node in self.nodes)

    def start(self, *, attached: bool = True, timeout_s: float = 60) -> None:
        """Start what does not run and wait until all agree that all is well.

        When nothing ran, the cluster is formed anew. Raises LocalError.
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
        """End every node."""
        for node in self.nodes:
            node.resume()
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """End every node without a goodbye (SIGKILL)."""
        for node in self.nodes:
            node.kill()

    def pause(self) -> None:
        """Every node stops answering but keeps its connections (SIGSTOP)."""
        for node in self.nodes:
            node.pause()

    def resume(self) -> None:
        """All go on after ``pause``."""
        for node in self.nodes:
            node.resume()

    def masters(self) -> list[Server]:
        """The nodes that have slots at this moment, in the order of those."""
        by_port = {node.port: node for node in self.nodes}
        ranges = sorted(self._query_any_node("CLUSTER", "SLOTS"))
        return [by_port[port] for port in dict.fromkeys(int(found[2][1]) for found in ranges)]

    def master_of(self, key: str) -> Server:
        """The node that has ``key`` at this moment."""
        slot = key_slot(key.encode())
        by_port = {node.port: node for node in self.nodes}
        for first, last, master, *_ in self._query_any_node("CLUSTER", "SLOTS"):
            if first <= slot <= last:
                return by_port[int(master[1])]
        raise LocalError(f"slot {slot} has no master")

    def replica_of(self, master: Server, timeout_s: float = 20) -> Server:
        """A replica of ``master``, once it has all that the master has now.

        A link that is up is not enough: after a full synchronisation the stream of what came
        meanwhile may begin a second later. Raises LocalError when there is none.
        """
        offset = _offset(master)
        replica = next((n for n in self.nodes if _link(n) == (master.port, "up")), None)
        if replica is None:
            raise LocalError(f"the master at {master.port} has no replica")
        if not wait_until(lambda: _offset(replica) >= offset, timeout_s, step_s=_POLL_INTERVAL_S):
            raise LocalError(f"{replica.name} is behind for more than {timeout_s:g} s")
        return replica

    def fail_over(self, key: str, timeout_s: float = 20) -> Server:
        """A replica takes over from the master of ``key`` in good order; the new master."""
        replica = self.replica_of(self.master_of(key))
        with connect_node(replica) as client:
            client.execute_command("CLUSTER", "FAILOVER")
        self.wait_for_master(key, replica, timeout_s)
        return replica

    @contextlib.contextmanager
    def lose_unreplicated_writes(self, key: str) -> Iterator[None]:
        """What the master of ``key`` takes meanwhile is lost: it dies before it replicates it.

        Afterwards the replica, which heard nothing of it, is the master.
        """
        master = self.master_of(key)
        replica = self.replica_of(master)
        replica.pause()
        try:
            with connect_node(master) as client:  # else the kernel would keep it for the replica
                client.execute_command("CLIENT", "KILL", "TYPE", "replica")
            yield
            master.kill()
        finally:
            replica.resume()
        self.wait_for_master(key, replica)

    def wait_for_master(self, key: str, server: Server, timeout_s: float = 30) -> None:
        """Until every node that answers says that ``server`` has ``key``. Raises LocalError."""
        slot = key_slot(key.encode())

        def all_nodes_agree() -> bool:
            return all(_master_of(node, slot) in (server.port, None) for node in self.nodes)

        if not wait_until(all_nodes_agree, timeout_s, step_s=_POLL_INTERVAL_S):
            raise LocalError(f"{server.name} did not become master in {timeout_s:g} s")

    def wait_until_healthy(self, timeout_s: float = 60) -> None:
        """Until every node says ok, knows all, and each master has its replica. LocalError."""
        if not wait_until(self._is_healthy, timeout_s, step_s=_POLL_INTERVAL_S):
            states = ", ".join(f"{node.name}: {_state(node)}" for node in self.nodes)
            raise LocalError(f"the cluster is not well after {timeout_s:g} s ({states})")

    def configure(self, name: str, value: str | int) -> None:
        """CONFIG SET at every node that answers."""
        for node in self.nodes:
            if node.is_running():
                with contextlib.suppress(*_UNREACHABLE), connect_node(node) as client:
                    client.execute_command("CONFIG", "SET", name, value)

    def _form(self, timeout_s: float) -> None:
        """Slots, epochs, acquaintance, replicas."""
        with contextlib.ExitStack() as ends:
            clients = [ends.enter_context(connect_node(node)) for node in self.nodes]
            for number, client in enumerate(clients):
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            for number, client in enumerate(clients[:MASTERS]):
                first, last = SLOTS * number // MASTERS, SLOTS * (number + 1) // MASTERS - 1
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", first, last)
            for number, client in enumerate(clients):
                for other in self.nodes[number + 1 :]:  # each pair, so that nobody waits for gossip
                    client.execute_command("CLUSTER", "MEET", "127.0.0.1", other.port, _bus(other))
            ids = [str(client.execute_command("CLUSTER", "MYID")) for client in clients]

            def all_know_all() -> bool:
                return all(_has_met(client, ids) for client in clients)

            if not wait_until(all_know_all, timeout_s, step_s=_POLL_INTERVAL_S):
                raise LocalError("the nodes of the cluster do not meet")
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
        raise LocalError("no node of the cluster answers")


def prepare_cluster(directory: Path, *, node_timeout_ms: int = NODE_TIMEOUT_MS) -> Cluster:
    """Write the configuration of a cluster. ``node_timeout_ms``: silence until a node is down."""
    directory.mkdir(parents=True, exist_ok=True)
    ports = _free_ports(2 * NODES)
    for number in range(NODES):
        home = directory / str(number)
        home.mkdir(exist_ok=True)
        (home / "redis.conf").write_text(
            "bind 127.0.0.1\n"
            f"port {ports[number]}\n"
            f"cluster-port {ports[NODES + number]}\n"
            f'dir "{home}"\n'
            'save ""\n'
            "appendonly no\n"
            "maxmemory-policy noeviction\n"
            "daemonize no\n"
            "shutdown-timeout 0\n"
            "cluster-enabled yes\n"
            "cluster-config-file nodes.conf\n"
            f"cluster-node-timeout {node_timeout_ms}\n"
            "cluster-require-full-coverage no\n"
            "cluster-replica-validity-factor 0\n"  # a replica that is behind is better than none
            "cluster-allow-replica-migration no\n"
            "repl-diskless-sync yes\n"
            "repl-diskless-sync-delay 0\n"
            "repl-ping-replica-period 1\n"
        )
    return load_cluster(directory)


def load_cluster(directory: Path) -> Cluster:
    """The cluster that ``prepare_cluster`` made here. Raises FileNotFoundError, LocalError."""
    nodes = []
    for number in range(NODES):
        home = directory / str(number)
        found = re.search(r"^port (\d+)$", (home / "redis.conf").read_text(), re.MULTILINE)
        if found is None:
            raise LocalError(f"{home / 'redis.conf'} names no port")
        argv = (str(require_binary("redis-server")), str(home / "redis.conf"))
        port = int(found[1])
        url = f"redis://127.0.0.1:{port}"
        log = directory.parent / "logs" / "redis.log"
        nodes.append(Server(f"redis-{number}", home, port, url, argv, log))
    return Cluster(directory, tuple(nodes))


@contextlib.contextmanager
def connect_node(node: Server) -> Iterator[Any]:
    """A client of one node alone; closed afterwards."""
    client = redis.Redis(
        port=node.port,
        decode_responses=True,
        socket_timeout=1,
        socket_connect_timeout=1,
        retry=Retry(NoBackoff(), 0),  # of its own accord it would take half a minute
    )
    try:
        yield client
    finally:
        client.close()


def _query_node(node: Server, *command: str) -> Any:
    """The answer of one node; None when there is none."""
    if not node.is_running():
        return None
    try:
        with connect_node(node) as client:
            return client.execute_command(*command)
    except _UNREACHABLE:
        return None


def _state(node: Server) -> str:
    found = re.search(r"cluster_state:(\w+)", str(_query_node(node, "CLUSTER", "INFO")))
    return found[1] if found else "down"


def _link(node: Server) -> tuple[int, str] | None:
    """The port of a replica's master and the state of the link; None of a master."""
    role = _query_node(node, "ROLE")
    if role is None:
        return (0, "down")
    if role[0] != "slave":
        return None
    return (int(role[2]), "up" if role[3] == "connected" else str(role[3]))


def _offset(node: Server) -> int:
    """How far a node is in the stream of its master, or has written its own; -1: no answer."""
    role = _query_node(node, "ROLE")
    if role is None:
        return -1
    return int(role[4] if role[0] == "slave" else role[1])


def _masters_according_to(node: Server) -> set[tuple[int, int]]:
    """(port, how many replicas) of each master, as ``node`` sees them."""
    slots = _query_node(node, "CLUSTER", "SLOTS") or []
    return {(int(master[1]), len(replicas)) for _, _, master, *replicas in slots}


def _master_of(node: Server, slot: int) -> int | None:
    for first, last, master, *_ in _query_node(node, "CLUSTER", "SLOTS") or []:
        if first <= slot <= last:
            return int(master[1])
    return None


def _has_met(client: Any, ids: list[str]) -> bool:
    lines = [line.split() for line in str(client.execute_command("CLUSTER", "NODES")).splitlines()]
    flags = {line[0]: line[2] for line in lines}
    return all("handshake" not in flags.get(id_, "handshake") for id_ in ids)


def _bus(node: Server) -> int:
    text = (node.directory / "redis.conf").read_text()
    found = re.search(r"^cluster-port (\d+)$", text, re.MULTILINE)
    assert found is not None  # noqa: S101  prepare_cluster wrote it
    return int(found[1])


def _free_ports(count: int) -> list[int]:
    """So many loopback ports nobody listens on."""
    with contextlib.ExitStack() as ends:
        found: list[int] = []
        while len(found) < count:
            probe = ends.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", _rng.choice(_PORTS)))
                found.append(int(probe.getsockname()[1]))
        return found
