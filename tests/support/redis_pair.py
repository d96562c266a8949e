"""A Redis master with a replica that is promoted, and later demoted, without a restart.

Both keep their process and resynchronise partially where their histories allow it, as nodes under
Sentinel do, and ElastiCache in a planned failover.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from local.stack.cluster import connect_node
from local.stack.processes import wait_until
from local.stack.servers import Server, prepare_redis, run_server
from tests.chaos.proxy import Proxy
from tests.support.plaza import set_up_for
from tests.support.servers import login

_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.01
_MAX_PAUSE_MS = 10_000
# Pings of a master that has lost its replica would make the histories differ.
_SETTINGS = {
    "repl-ping-replica-period": "3600",
    "repl-timeout": "600",
    "repl-diskless-sync": "yes",
    "repl-diskless-sync-delay": "0",
    "repl-diskless-load": "swapdb",
}


class RedisPair:
    """Two servers: ``master``, and ``replica``, which follows the master once ``follow`` ran."""

    def __init__(self, master: Server, replica: Server) -> None:
        self.master, self.replica = master, replica

    def start(self) -> None:
        """Start those that do not run, and let the replica follow."""
        for server in (self.master, self.replica):
            server.start()
            with connect_node(server) as client:
                for name, value in _SETTINGS.items():
                    client.config_set(name, value)
        self.follow()

    def stop(self) -> None:
        self.master.stop()
        self.replica.stop()

    def resume(self) -> None:
        self.master.resume()
        self.replica.resume()

    def follow(self) -> None:
        """Make the replica one of the master, and wait until it has all of its data."""
        self._demote()
        self.wait_until_replicated()

    def wait_until_replicated(self) -> None:
        """Wait until the replica has all that the master has now."""
        offset = self._offset()
        assert wait_until(
            lambda: self._has_received(offset), _TIMEOUT_S, step_s=_POLL_INTERVAL_S
        ), "the replica does not follow"

    def promote(self) -> None:
        """Promote the replica. The old master goes on as one until ``follow`` runs."""
        with connect_node(self.replica) as client:
            client.execute_command("REPLICAOF", "NO", "ONE")
        self.master, self.replica = self.replica, self.master

    def fail_over(self) -> None:
        """Swap master and replica without a loss: no writes are accepted meanwhile. Connections
        stay open."""
        with connect_node(self.master) as client:
            client.execute_command("CLIENT", "PAUSE", _MAX_PAUSE_MS, "WRITE")
            self.wait_until_replicated()
            self.promote()
            self._demote()
            client.execute_command("CLIENT", "UNPAUSE")
        self.wait_until_replicated()

    @contextlib.contextmanager
    def lose_unreplicated_writes(self) -> Iterator[None]:
        """Lose the writes that the master accepts in the block: it hangs, and the replica, which
        has none of them, is promoted. ``resume`` and ``follow`` end the failover."""
        self.wait_until_replicated()
        self.replica.pause()
        try:
            with connect_node(self.master) as client:  # else the kernel buffers for the replica
                client.execute_command("CLIENT", "KILL", "TYPE", "replica")
            yield
            self.master.pause()
        finally:
            self.replica.resume()
        self.promote()

    def _demote(self) -> None:
        with connect_node(self.replica) as client:
            client.execute_command("REPLICAOF", "127.0.0.1", self.master.port)

    def _offset(self) -> int:
        return int(_info(self.master, "replication")["master_repl_offset"])

    def _has_received(self, offset: int) -> bool:
        result = _info(self.replica, "replication")
        return (
            result["role"] == "slave"
            and int(result["master_port"]) == self.master.port
            and result["master_link_status"] == "up"
            and int(result["slave_repl_offset"]) >= offset
        )


def prepare_pair(directory: Path, settings: Iterable[str] = ()) -> RedisPair:
    """Configure two servers; ``settings`` are added to the settings of both."""
    return RedisPair(
        *(
            prepare_redis(directory / name, settings=("shutdown-timeout 0", *settings))
            for name in ("a", "b")
        )
    )


def count_partial_resyncs(server: Server) -> int:
    """Return how many replicas a master has accepted without a full copy."""
    return int(_info(server, "stats")["sync_partial_ok"])


def _info(server: Server, section: str) -> dict[str, Any]:
    with connect_node(server) as client:
        info: dict[str, Any] = client.info(section)
        return info


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with Proxy() as started:
        yield started


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[RedisPair]:
    with run_server(prepare_pair(tmp_path / "redis", [login()])) as started:
        yield started


@pytest.fixture
def migrated(pair: RedisPair, proxy: Proxy, mysql_url: str) -> Iterator[None]:
    """Configure Plaza for this pair, instead of tests/support/plaza.py."""
    url = f"redis://plaza:plaza@127.0.0.1:{proxy.add_route('redis', pair.master.port)}/0"
    with set_up_for(url, mysql_url, is_cluster=False, redis_timeout_s=0.5):
        yield
