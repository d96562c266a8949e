"""Plaza in this process, for measurements: a Redis, a MariaDB and a fake AWS of its own."""

import contextlib
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from cli.paths import ROOT
from local.stack.deployment import list_queues
from local.stack.ports import free_port
from local.stack.processes import Process, start_process, stop_process, wait_until_ready
from local.stack.servers import Server, run_databases
from plaza.infra.mysql import migrations, mysql
from plaza.infra.redis import connections

FAKE_AWS = "local.stack.fake_aws"
QUEUES = sorted(file.stem for file in (ROOT / "events" / "messages").glob("*.jsonl"))


@contextlib.contextmanager
def run_bed(directory: Path) -> Iterator[tuple[Server, Server]]:
    """Run a Redis, a MariaDB and a fake AWS for the block; Plaza in this process uses them.

    Yields Redis and MariaDB. What the block prints goes to ``plaza.log`` in ``directory``.
    Raises CommandError.
    """
    with contextlib.ExitStack() as ends:
        redis_server, mysql_server = ends.enter_context(run_databases(directory))
        sqs_port = free_port()
        ends.enter_context(serve_module(directory, sqs_port, FAKE_AWS, str(sqs_port)))
        sqs_url = f"http://127.0.0.1:{sqs_port}"
        os.environ |= _environment(redis_server.url, mysql_server.url, sqs_url)
        log = ends.enter_context((directory / "plaza.log").open("w"))
        ends.enter_context(contextlib.redirect_stdout(log))
        migrations.apply_migrations()
        ends.callback(mysql.forget_connection)
        ends.callback(connections.forget_client)
        yield redis_server, mysql_server


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
        **list_queues({name: f"{sqs_url}/000000000000/{name}" for name in QUEUES}),
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
