"""Lambda and API Gateway on one machine: a program that runs while the stack runs.

  python -m local.stack.lambda_service DIRECTORY

DIRECTORY/lambda.json is its plan (``deployment.describe_service``). It serves the HTTP API on one
port and invocations on another: ``POST /functions/NAME`` runs a function and responds with its
result, or with its error and status 500; MiniStack's schedules use it. ``GET /workers`` returns the
pids of each function's workers. ``PUT /deliveries`` sets how often each batch of messages is
delivered, and how late the messages of a queue: ``{"copies": 2, "lags_s": {URL: 3}}``.
"""

import asyncio
import json
import logging
import resource
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from cli.paths import LAMBDA_PYTHON
from local.stack.event_source import EventSource
from local.stack.event_sources import Deliveries, Poller, Sqs
from local.stack.gateway import MAX_BODY_BYTES, MAX_HEADER_BYTES, Gateway
from local.stack.routes import read_cors, read_routes
from local.stack.workers import Function, Parent, Pool, make_environment

CLOSE_IDLE_EVERY_S = 5
MAX_CONNECTIONS_WAITING = 1024
KEEP_ALIVE_S = 75

logger = logging.getLogger(__name__)


async def run(directory: Path) -> int:
    """Serve until SIGTERM or SIGINT (returns 0), or until the parent of the workers dies (1)."""
    plan: dict[str, Any] = json.loads((directory / "lambda.json").read_text())
    logs = directory / "logs" / "functions"
    logs.mkdir(parents=True, exist_ok=True)
    parent = Parent([Path(layer) for layer in plan["layers"]], logs, LAMBDA_PYTHON)
    parent.start()
    pool = Pool(
        [read_function(name, described, plan) for name, described in plan["functions"].items()],
        parent.fork,
    )
    ended = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    timeout = aiohttp.ClientTimeout(total=60)
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            deliveries = Deliveries()
            sqs = Sqs(session, plan["aws_endpoint_url"], plan["region"])
            pollers = start_pollers(plan, pool, sqs, deliveries)
            body, identity = plan["api_body"], (plan["api_id"], plan["account"])
            gateway = Gateway(*identity, read_routes(body), read_cors(body), pool)
            await listen(gateway.serve, plan["api_port"])
            await listen(Invocations(pool, deliveries).serve, plan["port"])
            while not ended.is_set() and parent.is_running():
                pool.close_idle()
                for poller in pollers:
                    if poller.done():
                        poller.result()  # raises the poller's error
                try:
                    async with asyncio.timeout(CLOSE_IDLE_EVERY_S):
                        await ended.wait()
                except TimeoutError:
                    continue
            for poller in pollers:
                poller.cancel()
    finally:
        pool.close()
        parent.stop()
    return 0 if ended.is_set() else 1


def read_function(name: str, function: Mapping[str, Any], plan: Mapping[str, Any]) -> Function:
    """Return one function of the plan."""
    environment = make_environment(function, name, region=plan["region"], aws=plan["aws"])
    settings = {key: value for key, value in function.items() if key != "variables"}
    return Function(name=name, environment=environment, **settings)


def start_pollers(
    plan: Mapping[str, Any], pool: Pool, sqs: Sqs, deliveries: Deliveries
) -> list[asyncio.Task[None]]:
    tasks = []
    for mapping in plan["event_sources"]:
        source = EventSource(**mapping)
        function = pool.find(source.function)
        if function is None:
            raise KeyError(source.function)
        poller = Poller(
            source,
            sqs,
            pool.invoke,
            region=plan["region"],
            max_concurrency=function.max_workers,
            deliveries=deliveries,
        )
        tasks.append(asyncio.create_task(poller.run()))
    return tasks


class Invocations:
    """Server of invocations that do not come from the HTTP API or a queue."""

    def __init__(self, pool: Pool, deliveries: Deliveries) -> None:
        self._pool = pool
        self._deliveries = deliveries

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET" and request.path == "/workers":
            return web.json_response(self._pool.pids())
        if request.method == "PUT" and request.path == "/deliveries":
            changes = await request.json()
            self._deliveries.copies = int(changes.get("copies", self._deliveries.copies))
            self._deliveries.lags_s = changes.get("lags_s", self._deliveries.lags_s)
            return web.json_response(asdict(self._deliveries))
        name = request.path.removeprefix("/functions/")
        if request.method != "POST" or self._pool.find(name) is None:
            return web.json_response({"errorMessage": f"there is no {request.path}"}, status=404)
        outcome = await self._pool.invoke(name, await request.read() or b"null")
        return web.Response(
            body=outcome.payload,
            status=500 if outcome.failed else 200,
            content_type="application/json",
        )


async def listen(handler: Any, port: int) -> None:
    server = web.Server(
        handler,
        request_factory=make_request,
        access_log=None,
        keepalive_timeout=KEEP_ALIVE_S,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
    )
    await asyncio.get_running_loop().create_server(
        server, "127.0.0.1", port, backlog=MAX_CONNECTIONS_WAITING, reuse_address=True
    )


def make_request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    """Return a request of aiohttp's server that accepts a body as large as API Gateway does."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES
    )


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.exit(asyncio.run(run(Path(sys.argv[1]))))
