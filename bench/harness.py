"""The test bed: a Redis, a MariaDB and a fake AWS of its own, on loopback."""

import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from cli.paths import ROOT
from local.stack.deployment import list_queues
from local.stack.ports import free_port
from local.stack.processes import Process, start_process, stop_process, wait_until_ready
from local.stack.servers import run_databases
from plaza.infra.mysql import migrations, mysql
from plaza.infra.redis import connections, redis
from plaza.infra.runtime.process import clear_caches

_QUEUES = (
    "reactions", "rebuilds", "acknowledgements", "fanouts", "follows", "inboxes", "repairs",
    "shops", "drops", "orders", "checkins", "warm_ups",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Harness:
    """The servers that Plaza in this process uses; ``quick``: a tenth of the work."""

    directory: Path
    redis_port: int
    redis_url: str
    mysql_url: str
    quick: bool

    def scale(self, count: int) -> int:
        """Return ``count``, or a tenth of it if ``quick``."""
        return count // 10 if self.quick else count

    def clear(self) -> None:
        """Empty Redis and the caches of this process."""
        redis.execute("FLUSHALL", "ASYNC")
        clear_caches()

    def add_posts(self, ids: Iterable[int], authors: int = 500) -> None:
        values = (f"('post',{i},{1 + i % authors})" for i in ids)
        insert_rows("content (content_type, content_id, author_id)", values)

    def add_users(self, ids: Iterable[int]) -> None:
        insert_rows("user (id, nickname)", (f"({i},'ada')" for i in ids))


def insert_rows(into: str, values: Iterable[str]) -> None:
    """Insert missing rows into ``table (columns)``, a thousand a statement."""
    rows = iter(values)
    while batch := list(islice(rows, 1000)):
        mysql.write(f"INSERT IGNORE INTO {into} VALUES {','.join(batch)}")


@contextlib.contextmanager
def start_harness(quick: bool) -> Iterator[Harness]:
    """Yield a test bed; end and remove all of it afterwards. Raises CommandError."""
    with contextlib.ExitStack() as ends:
        directory = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="plaza-bench-")))
        redis_server, mysql_server = ends.enter_context(run_databases(directory))
        sqs_port = free_port()
        ends.enter_context(serve_module(directory, sqs_port, "bench.fake_aws", str(sqs_port)))
        sqs_url = f"http://127.0.0.1:{sqs_port}"
        os.environ |= _environment(redis_server.url, mysql_server.url, sqs_url)
        log = ends.enter_context((directory / "plaza.log").open("w"))
        ends.enter_context(contextlib.redirect_stdout(log))
        migrations.apply_migrations()
        ends.callback(mysql.forget_connection)
        ends.callback(connections.forget_client)
        yield Harness(directory, redis_server.port, redis_server.url, mysql_server.url, quick)


def _environment(redis_url: str, mysql_url: str, sqs_url: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": sqs_url,
        "PLAZA_AUTH_SECRET_ID": "bench",
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_ORDERS_PER_S": "1000000",  # what comes in at once is to be measured
        "PLAZA_REDIS_TIMEOUT_S": "10",  # on a busy machine a slow reply is no outage
        "PLAZA_MYSQL_STATEMENT_TIMEOUT_S": "60",
        "PLAZA_REDIS_URL": redis_url,
        "PLAZA_MYSQL_URL": mysql_url,
        "PLAZA_MYSQL_PACKETS": "1",
        **list_queues({name: f"{sqs_url}/000000000000/{name}" for name in _QUEUES}),
        "POWERTOOLS_SERVICE_NAME": "plaza",
    }


@contextlib.contextmanager
def serve_module(
    directory: Path, port: int, module: str, *args: str, env: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run ``python -m module`` until the block ends; it must listen on ``port``."""
    log = directory / f"{module}.log"
    command = [sys.executable, "-m", module, *args]
    process = start_process(module, command, log=log, cwd=ROOT, env=env)
    wait_until_ready(process, lambda: _listens(port), log, 20)
    try:
        yield process
    finally:
        stop_process(process)


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False
