"""The number of workers, their assignment, and results of invocations."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from local.stack import workers
from local.stack.worker_parent import MAX_PAYLOAD_BYTES
from local.stack.workers import Function, InitFailed, Outcome, Parent, Pool, WorkerExited

LIMIT_S = 20


def function(name: str, **given: Any) -> Function:
    parts: dict[str, Any] = {
        "logical_id": name.title(),
        "name": name,
        "arn": f"arn:aws:lambda:us-east-1:1:function:{name}",
        "task_root": "",
        "handler": "app.handler",
        "environment": {},
        "timeout_s": 10.0,
        "memory_mb": 512,
    }
    return Function(**{**parts, **given})


class FakeWorker:
    """Answers on command."""

    def __init__(self, pid: int, begun: Callable[[bytes], Awaitable[Outcome]]) -> None:
        self.pid = pid
        self.has_exited = False
        self.closed = False
        self._begun = begun

    async def invoke(self, identity: bytes, event: bytes) -> Outcome:
        return await self._begun(event)

    def close(self) -> None:
        self.has_exited = self.closed = True

    def kill(self) -> None:
        self.has_exited = True


class Stage:
    """A pool of workers whose work the test ends."""

    def __init__(self, *functions: Function, **bounds: Any) -> None:
        self.now_s = 0.0
        self.started: dict[str, list[FakeWorker]] = defaultdict(list)
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.pool = Pool(functions, self.start, clock=lambda: self.now_s, **bounds)

    async def start(self, requested: Function) -> FakeWorker:
        worker = FakeWorker(len(self.begun), self.work)
        self.started[requested.name].append(worker)
        return worker

    async def work(self, event: bytes) -> Outcome:
        label = json.loads(event)
        self.begun.append(label)
        await self.ends[label].wait()
        return Outcome(event)

    def ask(self, name: str, label: str) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.pool.invoke(name, json.dumps(label).encode()))


async def settle() -> None:
    """Run the event loop until nothing is left to do."""
    for _ in range(50):
        await asyncio.sleep(0)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(LIMIT_S):
            await scene()

    asyncio.run(bounded())


def test_workers_of_a_function_start_side_by_side_up_to_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "MAX_WORKERS_PER_FUNCTION", 3)

    async def scene() -> None:
        stage = Stage(function("a"))
        asked = [stage.ask("a", f"a{n}") for n in range(8)]
        await settle()
        assert len(stage.started["a"]) == 3
        assert stage.begun == ["a0", "a1", "a2"]
        for n in range(8):
            stage.ends[f"a{n}"].set()
        await asyncio.gather(*asked)
        assert stage.begun == [f"a{n}" for n in range(8)]
        assert len(stage.started["a"]) == 3

    play(scene)


def test_reserved_concurrency_bounds_a_function() -> None:
    async def scene() -> None:
        stage = Stage(function("a", reserved=1))
        asked = [stage.ask("a", f"a{n}") for n in range(3)]
        await settle()
        assert stage.begun == ["a0"]
        for n in range(3):
            stage.ends[f"a{n}"].set()
        await asyncio.gather(*asked)
        assert len(stage.started["a"]) == 1

    play(scene)


def test_idle_worker_of_another_function_ends_at_the_bound() -> None:
    async def scene() -> None:
        stage = Stage(function("a"), function("b"), max_workers=2)
        first, second = stage.ask("a", "a0"), stage.ask("a", "a1")
        await settle()
        stage.ends["a0"].set()
        await first
        third = stage.ask("b", "b0")
        await settle()
        assert stage.begun == ["a0", "a1", "b0"]
        assert [worker.closed for worker in stage.started["a"]] == [True, False]
        stage.ends["a1"].set()
        stage.ends["b0"].set()
        await asyncio.gather(second, third)

    play(scene)


def test_busy_function_yields_to_a_starved_one() -> None:
    async def scene() -> None:
        stage = Stage(function("a"), function("b"), max_workers=1)
        asked = [stage.ask("a", "a0"), stage.ask("b", "b0"), stage.ask("a", "a1")]
        await settle()
        assert stage.begun == ["a0"]
        for label in ("a0", "a1", "b0"):
            stage.ends[label].set()
        await asyncio.gather(*asked)
        assert stage.begun == ["a0", "b0", "a1"]

    play(scene)


def test_consumers_leave_workers_to_the_api() -> None:
    async def scene() -> None:
        stage = Stage(
            function("queue", background=True),
            function("other", background=True),
            function("api"),
            max_workers=6,
        )
        asked = [stage.ask(name, f"{name}{n}") for n in range(3) for name in ("queue", "other")]
        await settle()
        assert len(stage.begun) == 3  # half of 6
        asked += [stage.ask("api", f"api{n}") for n in range(2)]
        await settle()
        assert stage.begun[3:] == ["api0", "api1"]
        for label in [*stage.begun, "queue0", "queue1", "queue2", "other0", "other1", "other2"]:
            stage.ends[label].set()
        await asyncio.gather(*asked)

    play(scene)


def test_idle_consumers_stay_until_another_function_needs_their_place() -> None:
    async def scene() -> None:
        queues = [function(name, background=True) for name in ("q", "r", "s")]
        stage = Stage(*queues, function("api"), max_workers=4)
        for name in ("q", "r", "s"):
            stage.ends[name].set()
            await stage.ask(name, name)
            stage.now_s += 1
        assert stage.pool.pids().keys() == {"Q", "R", "S"}
        asked = [stage.ask("api", f"api{n}") for n in range(2)]
        await settle()
        assert stage.begun[3:] == ["api0", "api1"]
        assert stage.pool.pids().keys() == {"R", "S", "Api"}
        for n in range(2):
            stage.ends[f"api{n}"].set()
        await asyncio.gather(*asked)

    play(scene)


def test_consumers_with_more_work_yield_to_the_one_that_waits_longest() -> None:
    async def scene() -> None:
        stage = Stage(
            function("queue", background=True), function("other", background=True), max_workers=4
        )
        stage.ends["other0"].set()
        await stage.ask("other", "other0")
        asked = [stage.ask("queue", f"queue{n}") for n in range(2)]
        await settle()
        asked += [stage.ask("other", "other1"), stage.ask("queue", "queue2")]
        await settle()
        assert stage.begun == ["other0", "queue0", "queue1"]
        stage.ends["queue0"].set()
        await settle()
        assert stage.begun[3:] == ["other1"]
        for label in ("other1", "queue1", "queue2"):
            stage.ends[label].set()
        await asyncio.gather(*asked)
        assert len(stage.started["other"]) == 1

    play(scene)


def test_idle_consumers_that_may_not_work_leave_their_places_to_the_api() -> None:
    async def scene() -> None:
        queues = [function(name, background=True) for name in ("q", "r", "s")]
        stage = Stage(*queues, function("api"), max_workers=3)
        for name in ("q", "r"):
            stage.ends[name].set()
            await stage.ask(name, name)
        asked = [stage.ask(name, f"{name}1") for name in ("s", "q", "r")]
        await settle()
        assert stage.begun[2:] == ["s1"]  # one of three may run consumers
        asked += [stage.ask("api", f"api{n}") for n in range(2)]
        await settle()
        assert stage.begun[3:] == ["api0", "api1"]
        for label in ("s1", "q1", "r1", "api0", "api1"):
            stage.ends[label].set()
        await asyncio.gather(*asked)

    play(scene)


def test_a_released_worker_serves_a_request_for_which_another_one_starts() -> None:
    async def scene() -> None:
        stage = Stage(function("a"), max_workers=4)
        first = stage.ask("a", "a0")
        await settle()
        starts, begin = asyncio.Event(), stage.start

        async def start_slowly(requested: Function) -> FakeWorker:
            await starts.wait()
            return await begin(requested)

        stage.pool._start = start_slowly
        second = stage.ask("a", "a1")
        await settle()
        assert stage.begun == ["a0"]
        stage.ends["a0"].set()
        stage.ends["a1"].set()
        await asyncio.gather(first, second)
        starts.set()
        await settle()
        assert len(stage.pool.pids()["A"]) == 2

    play(scene)


def test_idle_workers_end() -> None:
    async def scene() -> None:
        stage = Stage(function("a"), idle_s=10)
        stage.ends["a0"].set()
        await stage.ask("a", "a0")
        stage.now_s = 9
        stage.pool.close_idle()
        assert stage.pool.pids() == {"A": [0]}
        stage.now_s = 11
        stage.pool.close_idle()
        assert stage.pool.pids() == {}
        assert stage.started["a"][0].closed

    play(scene)


def test_worker_that_died_while_idle_serves_no_request() -> None:
    async def scene() -> None:
        stage = Stage(function("a"))
        for label in ("a0", "a1"):
            stage.ends[label].set()
        await stage.ask("a", "a0")
        stage.started["a"][0].has_exited = True
        assert not (await stage.ask("a", "a1")).failed
        assert len(stage.started["a"]) == 2

    play(scene)


def test_function_that_takes_too_long_is_ended() -> None:
    async def scene() -> None:
        stage = Stage(function("a", timeout_s=0.01))
        outcome = await stage.ask("a", "a0")
        assert json.loads(outcome.payload)["errorType"] == "Sandbox.Timedout"
        assert "timed out after 0.01 seconds" in json.loads(outcome.payload)["errorMessage"]
        assert stage.started["a"][0].has_exited
        assert stage.pool.pids() == {}

    play(scene)


def test_ending_worker_fails_only_its_request() -> None:
    async def scene() -> None:
        async def die(event: bytes) -> Outcome:
            raise WorkerExited("worker 1 ended")

        stage = Stage(function("a"))
        stage.work, kept = die, stage.work  # type: ignore[method-assign]
        outcome = await stage.ask("a", "a0")
        assert json.loads(outcome.payload)["errorType"] == "Runtime.ExitError"
        stage.work = kept  # type: ignore[method-assign]
        stage.ends["a1"].set()
        assert not (await stage.ask("a", "a1")).failed

    play(scene)


@pytest.mark.parametrize("error", [InitFailed(b'{"errorType": "X"}'), WorkerExited("no parent")])
def test_worker_that_does_not_start_fails_the_waiting_request(error: Exception) -> None:
    async def scene() -> None:
        async def refuse(requested: Function) -> FakeWorker:
            raise error

        pool = Pool([function("a")], refuse)
        outcomes = await asyncio.gather(*(pool.invoke("a", b"1") for _ in range(20)))
        assert all(outcome.failed for outcome in outcomes)

    play(scene)


def test_cancelled_request_leaves_the_queue() -> None:
    async def scene() -> None:
        stage = Stage(function("a", reserved=1))
        first, second, third = (stage.ask("a", f"a{n}") for n in range(3))
        await settle()
        second.cancel()
        for n in range(3):
            stage.ends[f"a{n}"].set()
        await asyncio.gather(first, third)
        assert stage.begun == ["a0", "a2"]

    play(scene)


def test_oversized_event_starts_no_worker() -> None:
    async def scene() -> None:
        stage = Stage(function("a"))
        outcome = await stage.pool.invoke("a", b"x" * (MAX_PAYLOAD_BYTES + 1))
        assert json.loads(outcome.payload)["errorType"] == "RequestEntityTooLarge"
        assert not stage.started

    play(scene)


HANDLER = """
import json, os, sys, time
import shared

def handler(event, context):
    print("asked for", event)
    match event:
        case "environment":
            return dict(os.environ)
        case "where":
            return [os.getcwd(), sys.path[0], shared.__file__, os.getpid()]
        case "context":
            return [
                context.function_name,
                context.memory_limit_in_mb,
                context.invoked_function_arn,
                context.aws_request_id,
                context.get_remaining_time_in_millis(),
            ]
        case "exit":
            os._exit(3)
        case "sleep":
            time.sleep(60)
        case "set":
            return {1, 2}
        case "large":
            return "x" * (6 * 1024 * 1024)
    raise ValueError("no " + event)
"""


EVENTS = ("environment", "where", "where", "context", "nothing", "set", "large", "exit", "sleep")
TIMEOUT_S = 2.0


class Served(NamedTuple):
    """Results of real workers for EVENTS and one more, in a folder as ``sam build`` makes it."""

    build: Path
    likes: list[tuple[str, bool, Any]]
    broken: list[tuple[bool, Any]]


async def serve_all(build: Path) -> Served:
    """Invoke a working and a broken function, each by a pool with real workers."""
    parent = Parent([build / "Layer" / "python"], build / "logs", Path(sys.executable))
    parent.start()
    functions = []
    for name in ("Likes", "Broken"):
        results = {
            "handler": "app.handler",
            "memory_mb": 256,
            "variables": {"OWN": 5},
            "task_root": build / name,
        }
        functions.append(
            function(
                name,
                task_root=str(build / name),
                environment=workers.make_environment(results, name, region="x", aws={"AWS_A": "b"}),
                memory_mb=256,
                timeout_s=TIMEOUT_S,
            )
        )
    pool = Pool(functions, parent.fork)
    try:
        likes = []
        for event in (*EVENTS, "context"):
            outcome = await pool.invoke("Likes", json.dumps(event).encode())
            likes.append((event, outcome.failed, json.loads(outcome.payload)))
        outcomes = [await pool.invoke("Broken", b"1") for _ in range(2)]
        broken = [(outcome.failed, json.loads(outcome.payload)) for outcome in outcomes]
    finally:
        pool.close()
        parent.stop()
    return Served(build, likes, broken)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Served:
    """Return one run for all tests: the parent of the workers takes a second to start."""
    build = tmp_path_factory.mktemp("build")
    for folder in ("Likes", "Broken", "Layer/python", "logs"):
        (build / folder).mkdir(parents=True)
    (build / "Likes" / "app.py").write_text(HANDLER)
    (build / "Broken" / "app.py").write_text("import nothing_of_this_name\n")
    (build / "Layer" / "python" / "shared.py").write_text("")
    with pytest.MonkeyPatch.context() as shell:
        shell.setenv("AWS_PROFILE", "ada")
        shell.setenv("PLAZA_REDIS_URL", "redis://elsewhere")
        return asyncio.run(serve_all(build))


def answers(served: Served, event: str) -> list[Any]:
    return [item for asked, _, item in served.likes if asked == event]


def test_worker_has_the_environment_of_its_function_and_nothing_else(served: Served) -> None:
    (result,) = answers(served, "environment")
    assert result["OWN"] == "5"
    assert result["AWS_A"] == "b"
    assert result["AWS_LAMBDA_FUNCTION_NAME"] == "Likes"
    assert result["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "256"
    assert result["LAMBDA_TASK_ROOT"] == str(served.build / "Likes")
    assert {"AWS_PROFILE", "PLAZA_REDIS_URL", "PYTHONPATH"}.isdisjoint(result)


def test_worker_serves_requests_in_sequence_with_shared_code(
    served: Served,
) -> None:
    first, second = answers(served, "where")
    assert first == second  # the same process too
    code = str(served.build / "Likes")
    assert first[:3] == [code, code, str(served.build / "Layer" / "python" / "shared.py")]


def test_handler_gets_the_context_of_its_invocation(served: Served) -> None:
    first, second = answers(served, "context")
    assert first[:3] == ["Likes", "256", "arn:aws:lambda:us-east-1:1:function:Likes"]
    assert first[3] != second[3]
    assert 0 < first[4] <= TIMEOUT_S * 1000


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("nothing", "ValueError"),
        ("set", "TypeError"),
        ("large", "ResponseSizeTooLarge"),
        ("exit", "Runtime.ExitError"),
        ("sleep", "Sandbox.Timedout"),
    ],
)
def test_errors_are_reported_as_lambda_reports_them(served: Served, event: str, kind: str) -> None:
    assert [item["errorType"] for item in answers(served, event)] == [kind]
    assert [event for event, failed, _ in served.likes if failed] == list(EVENTS[4:])


def test_import_error_fails_each_invocation(served: Served) -> None:
    assert len(served.broken) == 2
    for failed, item in served.broken:
        assert (failed, item["errorType"]) == (True, "ModuleNotFoundError")
        assert "nothing_of_this_name" in item["errorMessage"]


def test_function_has_a_log_of_its_own_with_its_tracebacks(served: Served) -> None:
    lines = (served.build / "logs" / "Likes.log").read_text().splitlines()
    assert lines[0] == "asked for environment"
    assert "[ERROR] ValueError: no nothing" in lines
