"""The faults: their action on a part, their duration, and how they are undone."""

from __future__ import annotations

import contextlib
import itertools
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import pymysql
import redis

from cli.paths import CommandError
from local.load.crowd import send_once
from local.load.requests import Call
from local.stack import servers
from local.stack.cluster import Cluster
from local.stack.processes import wait_until
from local.stack.servers import Server
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions
from tests.chaos.proxy import Proxy
from tests.support.redis_pair import RedisPair

FAULT_S = 8.0
OPERATOR = 7_500_001
_REPLICAS = itertools.count(2)
_PAUSED_CONSUMERS = {
    "reactions": "SaveReactions",
    "orders": "SaveOrders",
}  # queue -> consumer


class Step(NamedTuple):
    """An action, and how long its effect lasts."""

    do: Callable[[], None]
    for_s: float = FAULT_S


class Fault(NamedTuple):
    """``steps``, then ``undo``; ``how`` describes them. ``outage``: the number of steps before
    clients reach a master again."""

    how: str
    steps: Sequence[Step]
    undo: Callable[[], None]
    outage: int = 1


class Operator:
    """An admin of the stack, who sets levels and runs the sweeper."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        create_users(stack.mysql_url, [OPERATOR], "admin")
        [self._token] = open_sessions(stack, [OPERATOR], "admin")

    def read_level(self) -> str | None:
        """Return the level of the switches, None for another combination."""
        level: str | None = self._ask(Call("GET", "/ops/switches"))["level"]
        return level

    def set_level(self, level: str) -> None:
        """Set the level of the switches."""
        version = self._ask(Call("GET", "/ops/switches"))["version"]
        body = {"level": level, "version": version, "reason": "Redis is empty."}
        self._ask(Call("PUT", "/ops/switches/level", body))

    def starts_warm_up(self) -> bool:
        """Run the sweeper; return whether it started WarmUp."""
        with contextlib.suppress(CommandError):
            return bool(self._stack.invoke("SweepOutbox", {})["warm_ups_started"])
        return False

    def _ask(self, call: Call) -> Mapping[str, Any]:
        answer = send_once(self._stack.base_url, self._token, call)
        assert answer.status == 200, f"{call}: {answer}"
        return answer.body


class Faults:
    """Faults of one stack whose functions reach its parts through ``proxy``.

    A Redis Cluster has no proxy: the master of ``key`` fails.
    """

    def __init__(self, stack: Stack, proxy: Proxy, key: str) -> None:
        self._stack = stack
        self._proxy = proxy
        self._key = key
        self._retired: list[Server] = []
        self._pair: RedisPair | None = None
        self.losses: list[float] = []  # monotonic times at which Redis lost its data

    def find(self, cell: str) -> Fault:
        """Return the fault named ``redis down`` and so on."""
        part, kind = cell.split()
        match kind:
            case "hanging":
                return self._on_routes(part, "hang", "connections are accepted and get no answer")
            case "refusing":
                return self._on_routes(part, "refuse", "every connection is reset")
            case "slow":
                return self._slow(part)
            case "down" if part != "sqs":
                return self._down(part)
            case "down":
                return self._on_routes(part, "close", "the port is closed")
        special: dict[str, Callable[[], Fault]] = {
            "redis emptied": self._redis_emptied,
            "redis held": self._redis_held,
            "redis failing-over": self._redis_failing_over,
            "redis swapping": partial(self._redis_swapping, cut=True),
            "redis swapping-kept": partial(self._redis_swapping, cut=False),
            "redis swapping-unreplicated": self._redis_swapping_unreplicated,
            "cluster failing-over": self._cluster_failing_over,
            "cluster dying-unreplicated": self._cluster_dying_unreplicated,
            "mysql failing-over": self._mysql_failing_over,
            "sqs emptied": self._sqs_emptied,
            "sqs failing-over": self._sqs_failing_over,
        }
        return special[cell]()

    def replicate(self) -> None:
        """Give the current Redis a replica, unless it has one.

        The first replica changes the name of the mastership, so all targets are loaded again.
        """
        master = self._stack.redis
        assert isinstance(master, Server)
        if self._pair is None or self._pair.master is not master:
            if self._pair is not None:
                self._retired.append(self._pair.replica)
            replica = servers.prepare_redis(self._stack.directory / f"redis-{next(_REPLICAS)}")
            self._pair = RedisPair(master, replica)
            self._pair.start()

    def undo_all(self) -> None:
        """Open all routes and start all servers, in any state."""
        for name in ("mysql", "sqs") if self._stack.redis_cluster else ("redis", "mysql", "sqs"):
            self._proxy.set(name, "pass")
        if self._pair is not None:
            self._pair.resume()
            self._retired.append(self._pair.replica)
        for server in self._servers("redis+mysql"):
            server.start()
        for server in self._retired:
            server.stop()

    def _set(self, part: str, mode: str, delay_s: float = 0.0) -> None:
        for name in part.split("+"):
            self._proxy.set(name, mode, delay_s=delay_s)

    def _servers(self, part: str) -> list[Server | Cluster]:
        assert self._stack.redis
        assert self._stack.mysql
        servers_by_name = {"redis": self._stack.redis, "mysql": self._stack.mysql}
        return [servers_by_name[name] for name in part.split("+")]

    def _on_routes(self, part: str, mode: str, how: str) -> Fault:
        return Fault(how, [Step(lambda: self._set(part, mode))], lambda: self._set(part, "pass"))

    def _slow(self, part: str) -> Fault:
        delay_s = {"redis": 0.15, "mysql": 0.3, "sqs": 0.6, "redis+mysql": 0.1}[part]
        how = f"every answer comes {delay_s:g} s later"
        step = Step(lambda: self._set(part, "slow", delay_s))
        return Fault(how, [step], lambda: self._set(part, "pass"))

    def _down(self, part: str) -> Fault:
        def kill() -> None:
            for server in self._servers(part):
                server.kill()

        def start() -> None:
            with self._record_loss("redis" in part):
                for server in self._servers(part):
                    server.start()

        how = "killed (SIGKILL) and started again"
        if "redis" in part:
            how += "; Redis comes back empty"
        return Fault(how, [Step(kill)], start)

    @contextlib.contextmanager
    def _record_loss(self, loses: bool = True) -> Iterator[None]:
        """Record that Redis loses its data at an unknown time in the block."""
        if loses:
            self.losses.append(math.inf)
        yield
        if loses:
            self.losses[-1] = time.monotonic()

    def _redis_emptied(self) -> Fault:
        def flush() -> None:
            with redis.Redis.from_url(self._stack.redis_url) as client, self._record_loss():
                client.flushall()

        return Fault(
            "FLUSHALL, and once more 4 s later", [Step(flush, 4), Step(flush, 4)], _do_nothing
        )

    def _redis_failing_over(self) -> Fault:
        """Swap master and replica. For some seconds functions still reach the old master."""
        old = self._stack.redis
        assert isinstance(old, Server)
        new = servers.prepare_redis(self._stack.directory / f"redis-{next(_REPLICAS)}")

        def fail_over() -> None:
            new.start()
            with _connect(old) as at_old, _connect(new) as at_new:
                # Otherwise it stores the received data as a file, and loads that after a kill.
                at_new.config_set("repl-diskless-load", "swapdb")
                at_new.replicaof("127.0.0.1", str(old.port))

                def follows() -> bool:
                    replication = at_new.info("replication")
                    return bool(replication["master_link_status"] == "up")

                assert wait_until(follows, 30), "the replica does not follow"
                with self._record_loss():  # writes to the old master in between
                    at_new.replicaof("NO", "ONE")
                    at_old.replicaof("127.0.0.1", str(new.port))
            self._stack.redis, self._stack.redis_url = new, new.url
            self._retired.append(old)

        def move_the_name() -> None:
            self._proxy.set("redis", "pass", target=new.port)

        return Fault(
            "the master becomes a replica (READONLY) of its replica, which is master from then on;"
            " its name leads to the new one 6 s later, and no connection is cut",
            [Step(fail_over, 6)],
            move_the_name,
        )

    def _redis_held(self) -> Fault:
        """Lead the name to an empty Redis while readers are held, and let WarmUp end that."""
        old = self._stack.redis
        assert isinstance(old, Server)
        new = servers.prepare_redis(self._stack.directory / f"redis-{next(_REPLICAS)}")
        operator = Operator(self._stack)

        def fail_over() -> None:
            new.start()
            self._retired.append(old)
            with self._record_loss():
                self._use(new)
                self._proxy.set("redis", "refuse")
                self._proxy.set("redis", "pass", target=new.port)

        def is_warm() -> bool:  # the schedule of the stack may have swept first
            return operator.starts_warm_up() or operator.read_level() == "normal"

        def sweep() -> None:
            assert wait_until(is_warm, 30), "no run of WarmUp was started"

        def end() -> None:
            assert wait_until(lambda: operator.read_level() == "normal", 60), "readers are held"

        return Fault(
            "readers are held (level `warming`); 4 s later the name leads to a new, empty Redis and"
            " every connection is cut; SweepOutbox starts WarmUp, which lets readers go on",
            [Step(lambda: operator.set_level("warming"), 4), Step(fail_over, 2), Step(sweep, 2)],
            end,
        )

    def _redis_swapping(self, *, cut: bool) -> Fault:
        """Swap master and replica, and swap them back. ``cut``: connections end when the name of
        the master moves."""
        self.replicate()
        return Fault(
            "master and replica swap without a loss, and back 6 s later; 2 s after each the name"
            f" leads to the new master, and {'every' if cut else 'no'} connection is cut",
            [
                Step(self._swap, 2),
                Step(lambda: self._lead_to_master(cut=cut), 4),
                Step(self._swap, 2),
            ],
            lambda: self._lead_to_master(cut=cut),
        )

    def _redis_swapping_unreplicated(self) -> Fault:
        """Promote a replica that lacks the newest writes of its master, which hangs; then swap
        back."""
        self.replicate()
        pair, ends = self._find_pair(), contextlib.ExitStack()

        def lose() -> None:
            ends.enter_context(self._record_loss())
            ends.enter_context(pair.lose_unreplicated_writes())

        def promote() -> None:
            ends.close()
            self._use(pair.master)

        def follow() -> None:
            self._lead_to_master(cut=True)
            pair.resume()
            pair.follow()

        def end() -> None:
            ends.close()
            self._lead_to_master(cut=True)

        return Fault(
            "the replica receives nothing for 2 s; then the master hangs (SIGSTOP), and the replica"
            " is promoted; 4 s later the name leads to it, and the old master becomes its replica;"
            " they swap back without a loss 3 s later",
            [Step(lose, 2), Step(promote, 4), Step(follow, 3), Step(self._swap, 1)],
            end,
            outage=2,
        )

    def _swap(self) -> None:
        pair = self._find_pair()
        pair.fail_over()
        self._use(pair.master)

    def _find_pair(self) -> RedisPair:
        assert self._pair is not None
        return self._pair

    def _use(self, master: Server) -> None:
        """Use another Redis in this process; functions follow the proxy."""
        self._stack.redis, self._stack.redis_url = master, master.url

    def _lead_to_master(self, *, cut: bool) -> None:
        """Lead new connections of functions to the master; ``cut`` resets the open ones."""
        if cut:
            self._proxy.set("redis", "refuse")
        self._proxy.set("redis", "pass", target=self._find_pair().master.port)

    def _cluster_failing_over(self) -> Fault:
        cluster = self._stack.redis
        assert isinstance(cluster, Cluster)
        ends = contextlib.ExitStack()

        def kill() -> None:
            ends.enter_context(self._record_loss())  # unreplicated writes
            cluster.master_of(self._key).kill()

        def end() -> None:
            with ends:
                cluster.start()

        return Fault(
            "one of three masters is killed (SIGKILL) and its replica elected; the killed one comes"
            " back as its replica",
            [Step(kill)],
            end,
        )

    def _cluster_dying_unreplicated(self) -> Fault:
        """Kill a master whose writes in the block are on no replica."""
        cluster = self._stack.redis
        assert isinstance(cluster, Cluster)
        ends = contextlib.ExitStack()

        def lose() -> None:
            ends.enter_context(self._record_loss())
            ends.enter_context(cluster.lose_unreplicated_writes(self._key))

        def end() -> None:
            ends.close()  # the master is killed, and its replica elected
            cluster.start()

        return Fault(
            "the replica of one of three masters receives nothing; then the master is killed"
            " (SIGKILL) and that replica elected",
            [Step(lose)],
            end,
        )

    def _mysql_failing_over(self) -> Fault:
        def close() -> None:
            with self._as_root() as connection, connection.cursor() as cursor:
                cursor.execute("REVOKE READ_ONLY ADMIN ON *.* FROM plaza@'127.0.0.1'")
                cursor.execute("SET GLOBAL read_only = 1")
            self._set("mysql", "refuse")  # open connections could still write
            self._set("mysql", "pass")

        def reopen() -> None:
            with self._as_root() as connection, connection.cursor() as cursor:
                cursor.execute("SET GLOBAL read_only = 0")

        return Fault("read_only, as a writer that became a reader", [Step(close)], reopen)

    def _as_root(self) -> pymysql.Connection[pymysql.cursors.Cursor]:
        directory = self._stack.directory / "mysql"
        match = re.search(
            r"root@localhost IDENTIFIED BY '(\w+)'", (directory / "init.sql").read_text()
        )
        assert match
        return pymysql.connect(
            unix_socket=str(directory / "data" / "mysqld.sock"), user="root", password=match[1]
        )

    def _sqs_emptied(self) -> Fault:
        sqs = self._stack.connect("sqs")

        def hold() -> None:
            self._enable_consumers(False)

        def purge() -> None:
            for queue in _PAUSED_CONSUMERS:
                sqs.purge_queue(QueueUrl=self._stack.queues[queue])

        def go_on() -> None:
            self._enable_consumers(True)

        return Fault(
            "its consumers wait for 5 s, then what is queued is purged",
            [Step(hold, 5), Step(purge, 1)],
            go_on,
        )

    def _enable_consumers(self, enabled: bool) -> None:
        lambdas = self._stack.connect("lambda")
        for function in _PAUSED_CONSUMERS.values():
            name = self._stack.deployed.functions[function]
            for mapping in lambdas.list_event_source_mappings(FunctionName=name)[
                "EventSourceMappings"
            ]:
                lambdas.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

    def _sqs_failing_over(self) -> Fault:
        return Fault(
            "ThrottlingException for 4 s, then status 500 for 4 s",
            [
                Step(lambda: self._set("sqs", "throttle"), 4),
                Step(lambda: self._set("sqs", "fail"), 4),
            ],
            lambda: self._set("sqs", "pass"),
        )


def inject(fault: Fault) -> tuple[float, float, float]:
    """Inject a fault and undo it. Returns when it began, should end, and ended (monotonic)."""
    began_s = 0.0
    try:
        for step in fault.steps:
            step.do()
            began_s = began_s or time.monotonic()
            time.sleep(step.for_s)
        ended_s = time.monotonic()
    finally:
        fault.undo()
    return began_s, ended_s, time.monotonic()


def inject_both(first: Fault, second: Fault, for_s: float) -> tuple[float, float]:
    """Inject two faults, each for about ``for_s``; the second starts a quarter of that later.

    Returns when the first began and both had ended (monotonic). All steps run in this thread,
    because a server ends with the thread that started it.
    """
    timeline: list[tuple[float, Callable[[], None]]] = []
    for fault, at_s in ((first, 0.0), (second, for_s / 4)):
        share = for_s / sum(step.for_s for step in fault.steps)
        for step in fault.steps:
            timeline.append((at_s, step.do))
            at_s += step.for_s * share
        timeline.append((at_s, fault.undo))
    timeline.sort(key=lambda entry: entry[0])
    left = [first.undo, second.undo]
    began_s = time.monotonic()
    try:
        for at_s, do in timeline:
            time.sleep(max(0.0, began_s + at_s - time.monotonic()))
            if do in left:
                left.remove(do)
            do()
    finally:
        for undo in left:
            undo()
    return began_s, time.monotonic()


def _connect(server: Server) -> redis.Redis:
    return redis.Redis.from_url(server.url, decode_responses=True)


def _do_nothing() -> None:
    pass
