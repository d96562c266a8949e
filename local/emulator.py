"""MiniStack with a door of its own for the HTTP API. Runs in .venv-tools, as a program.

MiniStack serves an API under the Host ``<api-id>.execute-api.localhost``, a name not every
resolver knows, and keeps paths such as /health for itself. Here a second port serves the API
and nothing else, so that its address is a plain ``http://127.0.0.1:<port>``. Functions run
with the interpreter named by LAMBDA_PYTHON, which has boto3 and nothing else, as in Lambda.

  GATEWAY_PORT  AWS (loopback)
  API_PORT      the HTTP API (loopback)
  API_ID_FILE   where its id will be, once it is deployed
  LAMBDA_PYTHON the interpreter of the functions
"""

import asyncio
import contextvars
import functools
import os
import queue
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config
from ministack.app import app
from ministack.core import lambda_runtime
from ministack.services import apigateway

API_PORT = int(os.environ["API_PORT"])
API_ID_FILE = Path(os.environ["API_ID_FILE"])

# Whose request is being answered: the address its connection came from.
_peer: contextvars.ContextVar[str | None] = contextvars.ContextVar("peer", default=None)


@functools.cache
def read_api_path() -> str:
    """Where MiniStack serves the API. Raises FileNotFoundError before there is one."""
    return f"/_aws/execute-api/{API_ID_FILE.read_text().strip()}/$default"


async def door(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """The ASGI application: what comes in at API_PORT is for the API."""
    if scope["type"] == "http" and scope["server"][1] == API_PORT:
        try:
            prefix = read_api_path()
        except FileNotFoundError:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"the stack is not deployed yet"})
            return
        path, raw_path = prefix + scope["path"], prefix.encode() + scope["raw_path"]
        scope = {**scope, "path": path, "raw_path": raw_path}
        _peer.set(scope["client"][0] if scope.get("client") else None)
    await app(scope, receive, send)


def name_the_peer() -> None:
    """Tell functions who really calls: all of loopback may, MiniStack says 127.0.0.1 for everybody.

    Where MiniStack does not hand its events over as expected, everybody stays 127.0.0.1.
    """
    hand_over = getattr(apigateway, "run_reentrant", None)
    if hand_over is None:
        return

    def with_peer(function: Any, *args: Any, **options: Any) -> Any:
        peer = _peer.get()
        for event in args:
            context = event.get("requestContext") if isinstance(event, dict) else None
            http = context.get("http") if isinstance(context, dict) else None
            if peer and isinstance(http, dict) and "sourceIp" in http:
                http["sourceIp"] = peer
        return hand_over(function, *args, **options)

    apigateway.run_reentrant = with_peer


CALL = "result = handler_fn(event, context)"
END_OF_LOG = "~ end of the log of "


def end_logs_with_a_line() -> None:
    """Spare each invocation the wait for log lines that may still come.

    MiniStack collects a function's stderr until it was silent for 5 ms, or for 50 ms if there
    was nothing. Here the worker says when it is done. Where MiniStack's worker does not look
    as expected, everything stays as it is, only slower.
    """
    script = lambda_runtime._PYTHON_WORKER_SCRIPT
    if script.count(CALL) != 1:
        return
    said = f"print({END_OF_LOG!r} + context.aws_request_id, file=sys.stderr, flush=True)"
    lambda_runtime._PYTHON_WORKER_SCRIPT = script.replace(
        CALL, f"try: {CALL}\n            finally: {said}"
    )
    invoke = lambda_runtime.Worker.invoke

    def remember(worker: Any, event: Any, request_id: str, **more: Any) -> Any:
        worker.request_id = request_id
        return invoke(worker, event, request_id, **more)

    lambda_runtime.Worker.invoke = remember
    lambda_runtime.Worker._drain_stderr_bounded = read_log


def read_log(worker: Any) -> str:
    """The lines one invocation wrote, waiting for the last of them at most a second."""
    lines: list[str] = []
    patience_s = 1.0 if worker._proc is not None else 0.05  # the dead say no last line
    try:
        while (line := worker._stderr_queue.get(timeout=patience_s)) != (
            END_OF_LOG + worker.request_id
        ):
            if not line.startswith(END_OF_LOG):
                lines.append(line)
    except queue.Empty:
        pass
    return "\n".join(lines)


async def run() -> None:
    stopped = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopped.set)
    config = Config()
    config.bind = [f"127.0.0.1:{os.environ['GATEWAY_PORT']}", f"127.0.0.1:{API_PORT}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = "WARNING"
    await serve(app=door, config=config, shutdown_trigger=stopped.wait)


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sys.executable = os.environ["LAMBDA_PYTHON"]  # MiniStack runs functions with it
    end_logs_with_a_line()
    name_the_peer()
    asyncio.run(run())
