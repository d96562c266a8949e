"""A private Redis and MariaDB for each test run, stopped at its end.

A plugin (see pyproject.toml) with the fixtures ``redis_url`` and ``mysql_url``. The database
``plaza`` has no tables. PLAZA_TEST_REDIS=cluster (`make test-cluster`) starts a Redis Cluster;
PLAZA_TEST_MYSQLD=/path/to/mysqld starts that MySQL instead of MariaDB;
PLAZA_TEST_SNAPSHOT_ISOLATION=OFF sets innodb_snapshot_isolation; PLAZA_TEST_SERVERS is the
directory of servers that run already, for runs in turn (`make mutants`, `make test-alone`).
Temporary files are in memory where it is large enough, so that no test waits for a disk.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cli.paths import ROOT
from local.stack import cluster, servers
from local.stack.ports import free_port
from tests.support.mysqld import prepare_mysqld

IS_CLUSTER = os.environ.get("PLAZA_TEST_REDIS") == "cluster"
MYSQLD = os.environ.get("PLAZA_TEST_MYSQLD")
RUNNING = os.environ.get("PLAZA_TEST_SERVERS")
# Long enough for a busy machine; tests of failovers set their own.
_NODE_TIMEOUT_MS = 15_000
_MEMORY = Path("/dev/shm")
_MIN_MEMORY_BYTES = 4 << 30
LOGIN, REPLICA_LOGIN = ("plaza", "plaza"), ("replica", "plaza")
_OF_TESTS = (
    # beyond what the functions may do
    "+flushall +keys +restore +script|flush +script|load +debug"
)


def read_redis_access() -> str:
    """Return the rules of the user of Plaza's functions at Redis."""
    text = (ROOT / "deploy" / "data.yaml").read_text()
    match = re.search(r"AccessString: >-\n((?: {8}.+\n)+)", text)
    assert match, "deploy/data.yaml has no rules"
    return " ".join(match[1].split())


def login() -> str:
    """Return the setting of a Redis that adds ``plaza:plaza``, with the rights of the functions."""
    return _add_user(LOGIN)


def model_settings() -> list[str]:
    """Return the settings of a Redis for models: ``login``, one that may only read, as at a
    replica, but for the time of the model, and a command that begins another term."""
    replica = f"{_add_user(REPLICA_LOGIN)} -@write (+set ~model:now)"
    return [login(), replica, "enable-debug-command local"]


def add_login(url: str) -> str:
    """Return the URL of a Redis with ``LOGIN``."""
    return url.replace("//", f"//{':'.join(LOGIN)}@")


def _add_user(user: tuple[str, str]) -> str:
    return f"user {user[0]} {read_redis_access()} >{user[1]} {_OF_TESTS}"


def prepare_redis(directory: Path) -> servers.Server:
    """Prepare a Redis for tests, with ``model_settings``."""
    return servers.prepare_redis(directory, settings=model_settings())


class SharedServers:
    """A Redis and a MariaDB in a directory that PLAZA_TEST_SERVERS names for runs in turn."""

    def __init__(self, started: Sequence[servers.Server]) -> None:
        self._started = [(server, server.process) for server in started]

    def restore(self) -> None:
        """Start the servers again that a run has started: they end with its process."""
        for i, (server, process) in enumerate(self._started):
            server.resume()
            if not server.is_running() or server.process != process:
                server.stop()
                server.start()
                self._started[i] = server, server.process


@contextmanager
def share_servers(directory: Path) -> Iterator[SharedServers]:
    """Run servers to share until the end of the block."""
    with (
        servers.run_server(prepare_redis(directory / "redis")) as redis,
        servers.run_server(servers.prepare_mysql(directory / "mysql", for_tests=True)) as mysql,
    ):
        yield SharedServers((redis, mysql))


def copy_mysql(server: servers.Server, directory: Path) -> servers.Server:
    """Copy a running MySQL as a snapshot of its volume does; the copy has a port of its own, and is
    not started."""
    server.pause()
    try:
        shutil.copytree(
            server.directory, directory, ignore=shutil.ignore_patterns("*.pid", "*.sock", "*.json")
        )
    finally:
        server.resume()
    port, settings = free_port(), directory / "my.cnf"
    text = settings.read_text().replace(str(server.directory), str(directory))
    settings.write_text(re.sub(r"^port = \d+$", f"port = {port}", text, flags=re.MULTILINE))
    return replace(
        server,
        directory=directory,
        port=port,
        url=server.url.replace(f":{server.port}/", f":{port}/"),
        argv=tuple(arg.replace(str(server.directory), str(directory)) for arg in server.argv),
    )


def pytest_configure() -> None:
    """Choose the folder of temporary files. Some containers have little shared memory."""
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _MIN_MEMORY_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))


@pytest.fixture(scope="session")
def redis_server(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[servers.Server | cluster.Cluster]:
    """The Redis of this run, with ``stop``, ``start``, ``pause`` and ``resume``."""
    if RUNNING:
        yield servers.load_redis(Path(RUNNING) / "redis")
        return
    directory: Path = tmp_path_factory.mktemp("redis") / "redis"
    if IS_CLUSTER:
        with servers.run_server(
            cluster.prepare_cluster(directory, node_timeout_ms=_NODE_TIMEOUT_MS)
        ) as nodes:
            yield nodes
    else:
        with servers.run_server(prepare_redis(directory)) as server:
            yield server


@pytest.fixture(scope="session")
def mysql_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Server]:
    """The MariaDB of this run, with an empty database ``plaza``."""
    if RUNNING:
        yield servers.load_mysql(Path(RUNNING) / "mysql")
        return
    directory: Path = tmp_path_factory.mktemp("mysql") / "mysql"
    prepared = (
        prepare_mysqld(MYSQLD, directory)
        if MYSQLD
        else servers.prepare_mysql(directory, for_tests=True)
    )
    with servers.run_server(prepared) as server:
        yield server


@pytest.fixture(scope="session")
def redis_url(redis_server: servers.Server | cluster.Cluster) -> str:
    """``redis://plaza:plaza@127.0.0.1:port/0``, a login with the rights of the functions; for a
    cluster all addresses, separated by commas."""
    return redis_server.url if IS_CLUSTER else add_login(redis_server.url)


@pytest.fixture(scope="session")
def mysql_url(mysql_server: servers.Server) -> str:
    """``mysql://user:password@127.0.0.1:port/plaza``"""
    return mysql_server.url
