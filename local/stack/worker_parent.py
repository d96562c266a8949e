"""Parent of the Lambda workers: a program of the functions' interpreter (.venv-lambda).

It imports the shared packages of the runtime and the layers once, and forks a worker for each
command. So a worker starts in the time of importing its own function, and all of them share one
unpacked copy of code and layers, on disk and largely in memory. No module of Plaza is imported
before the fork, because each worker reads its own environment.

  worker_parent.py DESCRIPTOR LAYER...   DESCRIPTOR: the control socket

A command is one line of JSON with the worker's socket attached; the reply is the pid, as a line. On
its socket a worker sends a frame when its handler is imported, then one for each request. A frame
is ``>BI`` (0: success, 1: an error as Lambda reports it; length) and JSON. A request is ``>II``
(lengths) and two JSON documents: its identity and the event.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

SHARED = (
    "aws_lambda_powertools.event_handler.api_gateway",
    "aws_lambda_powertools.event_handler.openapi.models",
    "aws_lambda_powertools.event_handler.openapi.params",
    "boto3",
    "botocore.client",
    "botocore.httpsession",
    "botocore.session",
    "pybreaker",
    "pydantic",
    "pymysql.cursors",
    "redis.cluster",
)
"""Modules that most functions import. A missing one only makes workers start later."""

ANSWER = struct.Struct(">BI")
REQUEST = struct.Struct(">II")
MAX_COMMAND_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = 6 * 1024 * 1024


class Context:
    """The context object that Lambda's Python runtime passes to a handler."""

    identity = None
    client_context = None

    def __init__(self, identity: dict[str, Any]) -> None:
        self.aws_request_id: str = identity["request_id"]
        self.invoked_function_arn: str = identity["arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self._deadline_ms: int = identity["deadline_ms"]

    def get_remaining_time_in_millis(self) -> int:
        """Return milliseconds until the function times out, at least 0."""
        return max(0, self._deadline_ms - int(time.time() * 1000))


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    sys.path[0:0] = sys.argv[2:]
    for name in SHARED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # keeps shared pages shared: the collector does not write to them
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps workers
    while True:
        line, descriptors, _, _ = socket.recv_fds(control, MAX_COMMAND_BYTES, 1)
        if not line:
            return
        while not line.endswith(b"\n"):
            line += control.recv(MAX_COMMAND_BYTES)
        (descriptor,) = descriptors
        pid = os.fork()
        if pid == 0:
            control.close()
            try:
                run_worker(socket.socket(fileno=descriptor), json.loads(line))
            except (BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
                pass  # the service ended
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.close(descriptor)
        control.sendall(b"%d\n" % pid)


def run_worker(connection: socket.socket, command: dict[str, Any]) -> None:
    """Import the handler of ``command`` and serve requests until the connection is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(command["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    os.environ.clear()
    os.environ.update(command["environment"])
    time.tzset()
    os.chdir(command["task_root"])
    sys.path.insert(0, command["task_root"])
    try:
        handler = load_handler(command["handler"])
    except BaseException as error:
        send(connection, 1, describe(error, ""))
        return
    send(connection, 0, b"null")
    while (request := receive(connection)) is not None:
        send(connection, *answer(handler, *request))


def load_handler(path: str) -> Callable[[Any, Context], Any]:
    """Return the function that ``path`` (``app.handler``) names. Raises any error of its import."""
    module, _, name = path.rpartition(".")
    handler: Callable[[Any, Context], Any] = getattr(
        importlib.import_module(module.replace("/", ".")), name
    )
    return handler


def answer(
    handler: Callable[[Any, Context], Any], identity: bytes, event: bytes
) -> tuple[int, bytes]:
    """Return 0 and the result of ``handler``, or 1 and its error."""
    context = Context(json.loads(identity))
    try:
        payload = json.dumps(handler(json.loads(event), context)).encode()
    except BaseException as error:
        return 1, describe(error, context.aws_request_id)
    if len(payload) > MAX_PAYLOAD_BYTES:
        return 1, describe(ResponseSizeTooLarge(f"{len(payload)} bytes"), context.aws_request_id)
    return 0, payload


class ResponseSizeTooLarge(Exception): ...


def describe(error: BaseException, request_id: str) -> bytes:
    """Return the error document of Lambda; the traceback is logged, as there."""
    frames = traceback.format_exception(error)
    print(f"[ERROR] {frames[-1].rstrip()}\n{''.join(frames[:-1])}".rstrip(), flush=True)
    return json.dumps(
        {
            "errorMessage": str(error),
            "errorType": type(error).__name__,
            "requestId": request_id,
            "stackTrace": frames[1:-1],
        }
    ).encode()


def receive(connection: socket.socket) -> tuple[bytes, bytes] | None:
    head = read(connection, REQUEST.size)
    if not head:
        return None
    of_identity, of_event = REQUEST.unpack(head)
    document = read(connection, of_identity + of_event)
    return (document[:of_identity], document[of_identity:]) if document else None


def read(connection: socket.socket, size: int) -> bytes:
    """Read exactly ``size`` bytes; return none when the connection ends before."""
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            return b""
        parts += part
    return bytes(parts)


def send(connection: socket.socket, status: int, payload: bytes) -> None:
    connection.sendall(ANSWER.pack(status, len(payload)) + payload)


if __name__ == "__main__":
    main()
