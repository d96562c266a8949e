"""The workers that run functions: how many run, and which request gets one.

A worker serves one request at a time. Requests above the bounds wait in order. There is a bound for
each function, one over all, and a share of it for workers that run background work, so that
consumers that wait for a slow database leave workers to the API. At the bound over all, the worker
that was idle for longest ends for a function that needs another one.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Protocol, cast

from local.stack.worker_parent import ANSWER, MAX_PAYLOAD_BYTES, REQUEST

CORES = os.cpu_count() or 1
MAX_WORKERS = 16 * CORES
MAX_WORKERS_PER_FUNCTION = max(4, 2 * CORES)
BACKGROUND_SHARE = 0.5
IDLE_S = 90.0  # so that schedules of each minute find their workers
MAX_INIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the template. ``background``: no client waits for its result."""

    logical_id: str
    name: str
    arn: str
    task_root: str
    handler: str
    environment: Mapping[str, str]
    timeout_s: float
    memory_mb: int
    reserved: int | None = None
    background: bool = False

    @property
    def max_workers(self) -> int:
        """Return its reserved concurrency, within the bound of this machine."""
        return min(self.reserved or MAX_WORKERS_PER_FUNCTION, MAX_WORKERS_PER_FUNCTION)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an invocation: JSON, and whether it is an error document."""

    payload: bytes
    failed: bool = False


class WorkerExited(Exception):
    """The process or its connection ended."""


class Worker(Protocol):
    """A started process that serves one function."""

    @property
    def pid(self) -> int: ...

    @property
    def has_exited(self) -> bool:
        """Return whether it ended."""

    async def invoke(self, identity: bytes, event: bytes) -> Outcome:
        """Run the handler. Raises WorkerExited."""

    def close(self) -> None: ...

    def kill(self) -> None:
        """End it now."""


Start = Callable[[Function], Awaitable[Worker]]


class InitFailed(Exception):
    """The handler cannot be imported; ``document`` is Lambda's description of the error."""

    def __init__(self, document: bytes) -> None:
        super().__init__(document.decode(errors="replace"))
        self.document = document


@dataclass(eq=False, slots=True)
class _Lane:
    """One function's workers, and the requests that wait for one, oldest first."""

    function: Function
    waiting: deque[tuple[int, asyncio.Future[Worker]]] = field(default_factory=deque)
    idle: list[tuple[float, Worker]] = field(default_factory=list)
    starting: int = 0
    workers: set[Worker] = field(default_factory=set)

    @property
    def size(self) -> int:
        return self.starting + len(self.workers)

    @property
    def busy(self) -> int:
        return self.size - len(self.idle)


class Pool:
    """The workers of all functions. Used from one event loop."""

    def __init__(
        self,
        functions: Sequence[Function],
        start: Start,
        *,
        max_workers: int = MAX_WORKERS,
        idle_s: float = IDLE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lanes = {function.name: _Lane(function) for function in functions}
        self._wanted: set[_Lane] = set()  # lanes that may have waiting requests
        self._start = start
        self._max_workers = max_workers
        self._max_background = max(1, int(max_workers * BACKGROUND_SHARE))
        self._idle_s = idle_s
        self._clock = clock
        self._arrivals = count()
        self._tasks: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> Function | None:
        lane = self._lanes.get(name)
        return lane.function if lane else None

    def pids(self) -> dict[str, list[int]]:
        return {
            lane.function.logical_id: pids
            for lane in self._lanes.values()
            if (pids := [worker.pid for worker in lane.workers if not worker.has_exited])
        }

    async def invoke(self, name: str, event: bytes) -> Outcome:
        """Run a function once, after earlier requests. Raises KeyError."""
        lane = self._lanes[name]
        request_id = str(uuid.uuid4())
        if len(event) > MAX_PAYLOAD_BYTES:
            return _error("RequestEntityTooLarge", f"{len(event)} bytes", request_id)
        try:
            worker = await self._acquire(lane)
        except InitFailed as error:
            return Outcome(error.document, failed=True)
        except WorkerExited as error:
            return _error("Runtime.ExitError", str(error), request_id)
        function = lane.function
        identity = {
            "request_id": request_id,
            "arn": function.arn,
            "deadline_ms": int((time.time() + function.timeout_s) * 1000),
        }
        reusable = False
        try:
            async with asyncio.timeout(function.timeout_s):
                outcome = await worker.invoke(json.dumps(identity).encode(), event)
            reusable = True
            return outcome
        except TimeoutError:
            message = f"{request_id} Task timed out after {function.timeout_s:.2f} seconds"
            return _error("Sandbox.Timedout", message, request_id)
        except WorkerExited:
            message = f"RequestId: {request_id} Error: Runtime exited"
            return _error("Runtime.ExitError", message, request_id)
        finally:
            self._release(lane, worker, reusable=reusable)

    def close_idle(self) -> None:
        """End workers that were idle for ``idle_s``, and drop those that ended."""
        before = self._clock() - self._idle_s
        for lane in self._lanes.values():
            for entry in list(lane.idle):
                if entry[0] <= before or entry[1].has_exited:
                    lane.idle.remove(entry)
                    self._discard(lane, entry[1])
        self._serve_waiting()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for lane in self._lanes.values():
            for _, future in lane.waiting:
                future.cancel()
            for worker in lane.workers:
                worker.kill()
            lane.workers.clear()
            lane.idle.clear()

    async def _acquire(self, lane: _Lane) -> Worker:
        if not lane.waiting and not self._is_crowded(lane) and (worker := _take_idle(lane)):
            return worker
        future: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        lane.waiting.append((next(self._arrivals), future))
        self._wanted.add(lane)
        self._serve_waiting()
        try:
            return await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self._release(lane, future.result(), reusable=True)
            raise

    def _release(self, lane: _Lane, worker: Worker, *, reusable: bool) -> None:
        if not reusable:
            worker.kill()
            lane.workers.discard(worker)
        elif self._must_yield(lane):
            self._discard(lane, worker)
        else:
            lane.idle.append((self._clock(), worker))
        self._serve_waiting()

    def _is_crowded(self, lane: _Lane) -> bool:
        """Return whether as much background work runs as may, and ``lane`` is more of it."""
        return lane.function.background and self._max_background <= sum(
            each.busy for each in self._lanes.values() if each.function.background
        )

    def _must_yield(self, lane: _Lane) -> bool:
        """Return whether, at the bound, a function without a worker waits longer than this one."""
        starved = [each for each in self._waiting() if each.size == 0]
        if not starved or sum(each.size for each in self._lanes.values()) < self._max_workers:
            return False
        return not lane.waiting or starved[0].waiting[0][0] < lane.waiting[0][0]

    def _waiting(self) -> list[_Lane]:
        for lane in list(self._wanted):
            _drop_abandoned(lane)
            if not lane.waiting:
                self._wanted.discard(lane)
        return sorted(self._wanted, key=lambda lane: lane.waiting[0][0])

    def _serve_waiting(self) -> None:
        """Give idle and new workers to waiting requests, the longest waiting function first."""
        for lane in self._waiting():
            while lane.waiting and not self._is_crowded(lane) and (worker := _take_idle(lane)):
                lane.waiting.popleft()[1].set_result(worker)
                _drop_abandoned(lane)
            while lane.starting < len(lane.waiting) and lane.size < lane.function.max_workers:
                if self._is_crowded(lane) or not self._make_room():
                    break
                lane.starting += 1
                task = asyncio.get_running_loop().create_task(self._start_one(lane))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _make_room(self) -> bool:
        """Return whether one more worker may start; may end the longest idle one for it."""
        lanes = self._lanes.values()
        if sum(each.size for each in lanes) < self._max_workers:
            return True
        idle = [
            each for each in lanes if each.idle and (not each.waiting or self._is_crowded(each))
        ]
        if not idle:
            return False
        longest = min(idle, key=lambda each: each.idle[0][0])
        self._discard(longest, longest.idle.pop(0)[1])
        return True

    async def _start_one(self, lane: _Lane) -> None:
        try:
            worker = await self._start(lane.function)
        except (InitFailed, WorkerExited) as error:
            lane.starting -= 1
            _drop_abandoned(lane)
            if lane.waiting:
                lane.waiting.popleft()[1].set_exception(error)
            self._serve_waiting()
            return
        except BaseException:
            lane.starting -= 1
            raise
        lane.starting -= 1
        lane.workers.add(worker)
        lane.idle.append((self._clock(), worker))
        self._serve_waiting()

    def _discard(self, lane: _Lane, worker: Worker) -> None:
        lane.workers.discard(worker)
        worker.close()


class Parent:
    """The process that forks workers, and the connections to them."""

    def __init__(self, layers: Sequence[Path], logs: Path, interpreter: Path) -> None:
        self._layers = layers
        self._logs = logs
        self._interpreter = interpreter
        self._lock = asyncio.Lock()
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process; commands wait about a second for its imports."""
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        script = Path(__file__).with_name("worker_parent.py")
        argv = [str(self._interpreter), "-P", str(script), str(theirs.fileno())]
        self._process = subprocess.Popen(
            [*argv, *map(str, self._layers)],
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
        )
        theirs.close()

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def fork(self, function: Function) -> Worker:
        """Start a worker and wait for its handler. Raises InitFailed, WorkerExited."""
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        command = {
            "task_root": function.task_root,
            "handler": function.handler,
            "environment": dict(function.environment),
            "log": str(self._logs / f"{function.logical_id}.log"),
        }
        line = json.dumps(command).encode() + b"\n"
        try:
            async with self._lock:
                if self._control is None:
                    raise WorkerExited("the parent of the workers does not run")
                socket.send_fds(self._control, [line], [theirs.fileno()])
                pid = int(await loop.sock_recv(self._control, 32) or b"0")
        except (OSError, ValueError) as error:
            ours.close()
            raise WorkerExited(f"no worker of {function.name}: {error}") from None
        finally:
            theirs.close()
        if pid == 0:
            ours.close()
            raise WorkerExited("the parent of the workers ended")
        ours.setblocking(False)
        _, worker = await loop.create_unix_connection(lambda: Connection(pid), sock=ours)
        try:
            async with asyncio.timeout(MAX_INIT_S):
                outcome = await worker.receive()
        except BaseException as error:
            worker.kill()
            if isinstance(error, TimeoutError):
                raise WorkerExited(f"{function.name}: no handler after {MAX_INIT_S} s") from None
            raise
        if outcome.failed:
            worker.close()
            raise InitFailed(outcome.payload)
        return worker

    def stop(self) -> None:
        if self._control is not None:
            self._control.close()
        if self._process is not None:
            self._process.terminate()
            self._process.wait()


class Connection(asyncio.Protocol):
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.has_exited = False
        self._received = bytearray()
        self._answer: asyncio.Future[Outcome] | None = None
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # a socket's is

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._deliver()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.has_exited = True
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(WorkerExited(f"worker {self.pid} ended"))

    async def receive(self) -> Outcome:
        if self.has_exited:
            raise WorkerExited(f"worker {self.pid} ended")
        self._answer = asyncio.get_running_loop().create_future()
        self._deliver()
        return await self._answer

    async def invoke(self, identity: bytes, event: bytes) -> Outcome:
        """Run the handler. Raises WorkerExited."""
        if self.has_exited or self._transport is None:
            raise WorkerExited(f"worker {self.pid} ended")
        head = REQUEST.pack(len(identity), len(event))
        self._transport.write(head + identity + event)
        return await self.receive()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def kill(self) -> None:
        """End it now, unless it ended already: its pid may be another process's then."""
        if not self.has_exited:
            os.kill(self.pid, signal.SIGKILL)
        self.close()

    def _deliver(self) -> None:
        if len(self._received) < ANSWER.size or self._answer is None or self._answer.done():
            return
        status, size = ANSWER.unpack_from(self._received)
        if len(self._received) < ANSWER.size + size:
            return
        payload = bytes(self._received[ANSWER.size : ANSWER.size + size])
        del self._received[: ANSWER.size + size]
        self._answer.set_result(Outcome(payload, failed=status != 0))


def make_environment(
    function: Mapping[str, Any], name: str, *, region: str, aws: Mapping[str, str]
) -> dict[str, str]:
    """Return a worker's environment: variables of Lambda, the emulator and the template."""
    task_root = str(function["task_root"])
    own = {key: str(value) for key, value in function["variables"].items()}
    return {
        "AWS_EXECUTION_ENV": f"AWS_Lambda_python{sys.version_info[0]}.{sys.version_info[1]}",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function["memory_mb"]),
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "[$LATEST]local",
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "HOME": os.environ.get("HOME", "/"),
        "LAMBDA_TASK_ROOT": task_root,
        "LANG": "en_US.UTF-8",
        "PATH": os.environ.get("PATH", os.defpath),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108  # as in Lambda
        "TZ": ":UTC",
        "_HANDLER": str(function["handler"]),
        **aws,
        **own,
    }


def _take_idle(lane: _Lane) -> Worker | None:
    while lane.idle:
        worker = lane.idle.pop()[1]
        if not worker.has_exited:
            return worker
        lane.workers.discard(worker)
    return None


def _drop_abandoned(lane: _Lane) -> None:
    while lane.waiting and lane.waiting[0][1].done():
        lane.waiting.popleft()


def _error(kind: str, message: str, request_id: str) -> Outcome:
    document = {"errorMessage": message, "errorType": kind, "requestId": request_id}
    return Outcome(json.dumps(document).encode(), failed=True)
