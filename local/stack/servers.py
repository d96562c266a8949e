"""Private redis-server and mariadbd processes: each in a directory and on a loopback port."""

import contextlib
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, unquote, urlsplit

import pymysql

from cli.paths import CommandError
from local.stack.ports import free_port
from local.stack.processes import (
    Process,
    run_command,
    start_process,
    stop_process,
    wait_until,
    wait_until_ready,
)

AnyServer = TypeVar("AnyServer", bound="Startable")

# Defaults of other servers: of MariaDB since 11.6 (one that lacks it ignores it), and of Aurora.
TEST_SETTINGS = (
    "loose-innodb-snapshot-isolation = " + os.environ.get("PLAZA_TEST_SNAPSHOT_ISOLATION", "ON"),
    "sql-mode =",
)

SBIN = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin", "/opt/homebrew/bin")


def find_binary(name: str) -> Path | None:
    """Return the path of a server program, searched beyond the PATH of an ordinary user."""
    path = os.pathsep.join([os.environ.get("PATH", ""), *SBIN])
    path_found = shutil.which(name, path=path)
    return Path(path_found) if path_found else None


def require_binary(name: str) -> Path:
    """Return the path of a server program; raises CommandError when it is missing."""
    binary = find_binary(name)
    if binary is None:
        raise CommandError(f"{name} is not installed; `make setup` installs it or says how")
    return binary


@dataclass(slots=True)
class Server:
    """One server process, which can be started again after it was stopped.

    ``directory`` has its configuration, data and ``process.json``; ``url`` is its address.
    """

    name: str
    directory: Path
    port: int
    url: str
    argv: tuple[str, ...]
    log_file: Path | None = None  # default: logs/<name>.log beside its directory

    @property
    def log(self) -> Path:
        return self.log_file or self.directory.parent / "logs" / f"{self.name}.log"

    @property
    def process(self) -> Process | None:
        try:
            return Process(**json.loads((self.directory / "process.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    @property
    def processes(self) -> list[Process]:
        return [process] if (process := self.process) is not None else []

    def is_running(self) -> bool:
        process = self.process
        return process is not None and process.is_running()

    def start(self, *, attached: bool = True, timeout_s: float = 30) -> None:
        """Start it and wait until it answers. Raises CommandError with the end of its log."""
        if self.is_running():
            return
        process = start_process(self.name, self.argv, log=self.log, attached=attached)
        (self.directory / "process.json").write_text(json.dumps(asdict(process)))
        wait_until_ready(process, self._answers, self.log, timeout_s)

    def stop(self) -> None:
        """Stop it and wait for its end. MariaDB keeps its data; Redis does in a stack that keeps
        its data, and has none elsewhere."""
        if (process := self.process) is not None:
            stop_process(process)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        wait_until(lambda: not self.is_running(), 5)

    def pause(self) -> None:
        """Suspend it: no answers, open connections (SIGSTOP), like a hang."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, signum: int) -> None:
        if (process := self.process) is not None and (running := process.find()) is not None:
            running.send_signal(signum)

    def _answers(self) -> bool:
        if self.url.startswith("mysql"):
            return answers_mysql(self.url)
        return answers_redis(self.url)


def prepare_redis(directory: Path, *, port: int = 0, settings: Iterable[str] = ()) -> Server:
    """Configure a Redis that persists nothing and evicts nothing; ``settings`` override this."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = (
        "bind 127.0.0.1",
        f"port {port or free_port()}",
        f'dir "{directory}"',
        'save ""',
        "appendonly no",
        "maxmemory-policy noeviction",
        "daemonize no",
        *settings,
    )
    (directory / "redis.conf").write_text("\n".join(lines) + "\n")
    return load_redis(directory)


def load_redis(directory: Path) -> Server:
    """Load the Redis that ``prepare_redis`` configured. Raises FileNotFoundError, CommandError."""
    port = read_redis_port(directory)
    argv = (str(require_binary("redis-server")), str(directory / "redis.conf"))
    return Server("redis", directory, port, f"redis://127.0.0.1:{port}/0", argv)


def read_redis_port(directory: Path, setting: str = "port") -> int:
    """Return a port from a Redis configuration. Raises CommandError without one."""
    text = (directory / "redis.conf").read_text()
    match = re.search(rf"^{setting} (\d+)$", text, re.MULTILINE)
    if match is None:
        raise CommandError(f"{directory / 'redis.conf'} has no {setting}")
    return int(match[1])


def prepare_mysql(
    directory: Path, *, port: int = 0, for_tests: bool = False, has_data: bool = False
) -> Server:
    """Create a data directory with an empty database ``plaza`` and a user with a random password.

    ``for_tests`` trades durability after a power cut for speed. ``has_data``: configure the data
    directory that is there, and keep the password.
    """
    (directory / "tmp").mkdir(parents=True, exist_ok=True)
    port = port or free_port()
    if has_data:
        password = unquote(urlsplit((directory / "url").read_text()).password or "")
    else:
        password = secrets.token_hex(16)
    url = f"mysql://plaza:{password}@127.0.0.1:{port}/plaza"
    durability = ["innodb-flush-log-at-trx-commit = " + ("2" if for_tests else "1")]
    if for_tests:
        durability += ["innodb-doublewrite = 0", "innodb-log-file-size = 16M", *TEST_SETTINGS]
    lines = [
        "[mariadbd]",
        *([f"user = {pwd.getpwuid(0).pw_name}"] if os.geteuid() == 0 else []),
        f"datadir = {directory / 'data'}",
        # Not shared: a starting MariaDB removes files that it takes for leftovers in its tmpdir.
        f"tmpdir = {directory / 'tmp'}",
        "bind-address = 127.0.0.1",
        f"port = {port}",
        "socket = mysqld.sock",  # relative to datadir: socket paths are short
        f"pid-file = {directory / 'mysqld.pid'}",
        f"init-file = {directory / 'init.sql'}",
        "skip-name-resolve",
        # functions/schedule/follow_binlog reads changes that bypass the API from the binlog.
        "log-bin = binlog",
        "server-id = 1",
        "binlog-format = ROW",
        "binlog-row-image = FULL",
        "max-binlog-size = 64M",
        "expire-logs-days = 1",
        "performance-schema = OFF",
        "character-set-server = utf8mb4",
        "default-time-zone = +00:00",
        "innodb-buffer-pool-size = 256M",
        "innodb-buffer-pool-dump-at-shutdown = OFF",
        "max-connections = 200",
        *durability,
    ]
    (directory / "my.cnf").write_text("\n".join(lines) + "\n")
    (directory / "init.sql").touch(mode=0o600)
    (directory / "init.sql").write_text(
        "SET SESSION sql_log_bin = 0;\n"  # keeps accounts out of the binlog
        "CREATE DATABASE IF NOT EXISTS plaza CHARACTER SET utf8mb4;\n"
        f"CREATE USER IF NOT EXISTS plaza@'127.0.0.1' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON *.* TO plaza@'127.0.0.1' WITH GRANT OPTION;\n"
        f"ALTER USER root@localhost IDENTIFIED BY '{secrets.token_hex(16)}';\n"
        "DELETE FROM mysql.global_priv WHERE User = 'root' AND Host <> 'localhost';\n"
        "FLUSH PRIVILEGES;\n"
    )
    (directory / "url").touch(mode=0o600)
    (directory / "url").write_text(url)
    if has_data:
        return load_mysql(directory)
    # It is a shell script that splits paths at spaces.
    with tempfile.TemporaryDirectory() as without_space:
        link = Path(without_space) / "mysql"
        link.symlink_to(directory.absolute())
        (directory / "install.cnf").write_text(
            (directory / "my.cnf").read_text().replace(str(directory), str(link))
        )
        run_command(
            "mariadb-install-db",
            [
                require_binary("mariadb-install-db"),
                f"--defaults-file={link / 'install.cnf'}",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ],
            log=directory.parent / "logs" / "mariadb-install-db.log",
        )
    return load_mysql(directory)


def load_mysql(directory: Path) -> Server:
    url = (directory / "url").read_text()
    argv = (str(require_binary("mariadbd")), f"--defaults-file={directory / 'my.cnf'}")
    return Server("mysql", directory, urlsplit(url).port or 3306, url, argv)


class Startable(Protocol):
    """A server or a cluster."""

    def start(self) -> None:
        """Start it."""

    def stop(self) -> None:
        """Stop it."""

    def resume(self) -> None: ...


@contextlib.contextmanager
def run_server(server: AnyServer) -> Iterator[AnyServer]:
    """Start ``server``; stop it after the block in any case."""
    try:
        server.start()
        yield server
    finally:
        server.resume()
        server.stop()


@contextlib.contextmanager
def run_databases(directory: Path) -> Iterator[tuple[Server, Server]]:
    """Run a new Redis and a new MariaDB in a directory for the block."""
    with (
        run_server(prepare_redis(directory / "redis")) as redis_server,
        run_server(prepare_mysql(directory / "mysql")) as mysql_server,
    ):
        yield redis_server, mysql_server


@contextlib.contextmanager
def connect_redis(url: str, *, cluster: bool) -> Iterator[Any]:
    """Yield a redis-py client for ``url``, which may name several cluster nodes; close it
    afterwards."""
    import redis  # 0.2 s, and most commands use none
    from redis.cluster import ClusterNode

    first, *others = spread_url(url)
    if cluster:
        nodes: list[Any] = [
            ClusterNode(part.hostname, part.port or 6379)  # type: ignore[no-untyped-call]
            for part in map(urlsplit, others)
        ]
        client: Any = redis.RedisCluster(url=first, startup_nodes=nodes, decode_responses=True)
    else:
        client = redis.Redis.from_url(first, decode_responses=True)
    try:
        yield client
    finally:
        client.close()


def spread_url(url: str) -> list[str]:
    """Return a URL for each node of ``redis://a:1,b:2/0``, as the layer reads it."""
    from plaza.infra.redis import cluster

    return cluster.spread_url(url)


def answers_redis(url: str) -> bool:
    """Return whether a Redis at ``url``, or one of its nodes, answers a PING."""
    return any(_answers_ping(part) for part in spread_url(url))


def _answers_ping(url: str) -> bool:
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or 6379)
    try:
        with socket.create_connection(address, timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
    except OSError:
        return False


def answers_mysql(url: str) -> bool:
    """Return whether the database of ``url`` accepts its user."""
    try:
        connect_mysql(url).close()
    except (pymysql.MySQLError, OSError):
        return False
    return True


def connect_mysql(url: str) -> "pymysql.Connection[pymysql.cursors.Cursor]":
    """Return a connection with autocommit for ``mysql://user:password@host:port/db``."""
    from plaza.infra.mysql.driver import SharedTlsConnection

    parts = urlsplit(url)
    return SharedTlsConnection(
        host=parts.hostname or "127.0.0.1",
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.lstrip("/") or None,
        connect_timeout=2,
        autocommit=True,
        charset="utf8mb4",
    )


def strip_credentials(url: str) -> str:
    """Return ``mysql://host:port/db`` for ``mysql://user:password@host:port/db``."""
    parts = urlsplit(url)
    return f"mysql://{parts.hostname}:{parts.port or 3306}/{quote(parts.path.lstrip('/'))}"
