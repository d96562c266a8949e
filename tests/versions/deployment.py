"""Both versions on the same stores and queues, and which of them takes what.

A ``Worker`` is a process of one version (tests/versions/process.py). A ``Version`` has two: one
for requests, one for batches and schedules, so that they share no cache. A ``Deployment`` is a
``Harness`` whose functions run there. While a phase lasts, it chooses among the versions that the
phase names.
"""

from __future__ import annotations

import json
import os
import random
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from cli.paths import ROOT, CommandError
from plaza.infra.http.callers import Caller
from plaza.infra.runtime.process import reset_process
from tests.faults.aws import Aws, QueuedMessage
from tests.faults.harness import (
    Answer,
    Consumer,
    Harness,
    Id,
    Schedule,
    Snapshot,
    await_next_ms,
    folder_of,
    make_batch,
    make_event,
    make_variables,
    read_answer,
    read_consumers,
    read_schedules,
)
from tests.faults.transport import Transport
from tests.support.archives import merge_partitions
from tests.support.plaza import FILL, set_up_for
from tests.unit.policy import template

OLD, NEW = "old", "new"
_REPLY_WITHIN_S = 120
# Limits that no caller reaches, and of which buckets last for a while.
_UNREACHED = {
    f"PLAZA_{name}_{unit}": value
    for name in ("READS", "WRITES", "ANONYMOUS")
    for unit, value in (("PER_S", "0.05"), ("BURST", "100000"))
}
# Events that a log has only after a failure, though they name no error.
_OF_SHOPS = "reviews and scores of shop "
_FAILURES = {"message_dead_lettered", "archive_corrupt", "binlog_lost", "steps_discarded"}


class Phase(NamedTuple):
    """A phase of a deploy: which versions answer requests, in the order in which they share a step,
    and which consume and run schedules."""

    name: str
    api: Sequence[str]
    workers: Sequence[str]


BEFORE = Phase("before", (NEW,), (NEW,))


class Asked(NamedTuple):
    """A request for one version."""

    version: str
    operation: str
    caller: int | None = None
    body: Any = None
    options: Mapping[str, Any] = {}


class WorkerError(Exception):
    """A function of a version raised an exception, or its process ended."""


class Worker:
    """A process of one version. Used by one thread at a time."""

    def __init__(self, root: Path, environment: Mapping[str, str], name: str) -> None:
        self._name = name
        paths = os.pathsep.join(map(str, (root / "layers" / "common" / "python", ROOT)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.versions.process", root],
            cwd=ROOT,
            env={**environment, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.log: list[str] = []
        """The lines of the last call."""

    def call(self, name: str, *arguments: Any) -> Any:
        """Return what a call returns. Raises WorkerError."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")
            self._process.stdin.flush()
            ready, _, _ = select.select([self._process.stdout], [], [], _REPLY_WITHIN_S)
            line = self._process.stdout.readline() if ready else b""
        except BrokenPipeError:
            line = b""
        if not line:
            self._process.kill()
            _, output = self._process.communicate()
            raise WorkerError(f"{self._name} ended: {output.decode(errors='replace')[-2000:]}")
        reply = json.loads(line)
        self.log = reply["log"].splitlines()
        if reply["error"] is not None:
            raise WorkerError(f"{self._name}: {reply['error']}")
        return reply["result"]

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()


class Version:
    """A checkout and its processes. ``name``: old or new."""

    def __init__(self, name: str, root: Path) -> None:
        self.name, self.root = name, root
        self.template = template.read_template(root)
        self.routes = {
            f"{method} {path}": folder_of(function, self.template)
            for (method, path), function in template.routes(self.template).items()
        }
        self.consumers = {consumer.queue: consumer for consumer in read_consumers(self.template)}
        self.schedules = {consumer.folder: consumer for consumer in read_schedules(self.template)}

    def start(
        self, environment: Mapping[str, str], stack: ExitStack, *, is_small: bool = False
    ) -> None:
        """Start the processes, until ``stack`` is closed; a small version has one for all."""
        own = {
            **environment,
            "AWS_ACCESS_KEY_ID": self.name,  # by which Aws knows the sender of a message
            "PLAZA_REDIS_URL": f"{environment['PLAZA_REDIS_URL']}?client_name={self.name}",
        }
        self.api = Worker(self.root, own, f"the API of the {self.name} version")
        stack.callback(self.api.stop)
        self.workers = self.api
        if not is_small:
            self.workers = Worker(self.root, own, f"a worker of the {self.name} version")
            stack.callback(self.workers.stop)

    def knows(self, covered: str) -> bool:
        """Whether this version has an operation, or the folder of a function."""
        consumed = {consumer.folder for consumer in self.consumers.values()}
        return covered in {*self.routes, *consumed, *self.schedules}

    def load(self) -> None:
        """Load all functions. Raises CommandError when this version does not run here."""
        try:
            self.api.call("start", sorted(set(self.routes.values())))
            consumed = {consumer.folder for consumer in self.consumers.values()}
            self.workers.call("start", sorted(consumed | set(self.schedules)))
        except WorkerError as error:
            raise CommandError(
                f"the {self.name} version ({self.root.name}) does not start with the packages of"
                " this working tree. After an incompatible change of a dependency, name a later"
                f" commit in tests/versions/baseline.txt. {error}"
            ) from error


@dataclass
class Deployment(Harness):
    """See the module. ``problems``: what was wrong, with the phase. ``consumed``: number of
    messages by (queue, version that sent, version that consumed)."""

    environment: Mapping[str, str] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    dice: random.Random = field(default_factory=random.Random)
    phase: Phase = BEFORE
    problems: list[str] = field(default_factory=list)
    consumed: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    redelivered: float = 0.4
    """The share of batches that are delivered twice, as after a reply that was lost: to any version
    of the phase, because consumers change while they work."""

    def note(self, problem: str) -> None:
        """Add a problem."""
        self.problems.append(f"{self.phase.name}: {problem}")

    # ------------------------------------------------------------ requests

    def ask(
        self,
        version: str,
        operation: str,
        caller: int | None = None,
        body: Any = None,
        **options: Any,
    ) -> Answer:
        """Return the answer of a version. ``options``: as of ``request``, and ``ids``, parameters
        of the path beside the deployment's. A 5xx is noted as a problem."""
        event, known = self._prepare(Asked(version, operation, caller, body, options))
        return self._finish(version, operation, self._send(version, operation, event, known))

    def ask_both(self, *asked: Asked) -> list[Answer]:
        """Return the answers to requests that are sent at once, each to another version."""
        prepared = [self._prepare(item) for item in asked]
        with ThreadPoolExecutor(len(asked)) as pool:
            sent = [
                pool.submit(self._send, item.version, item.operation, *arguments)
                for item, arguments in zip(asked, prepared, strict=True)
            ]
            results = [item.result() for item in sent]
        return [
            self._finish(item.version, item.operation, answer)
            for item, answer in zip(asked, results, strict=True)
        ]

    def _prepare(self, asked: Asked) -> tuple[dict[str, Any], Caller | None]:
        options = dict(asked.options)
        ids: Mapping[str, Id] = {**self.ids, **options.pop("ids", {})}
        role = options.pop("role", "user")
        event = make_event(asked.operation, ids, asked.body, **options)
        return event, None if asked.caller is None else Caller(asked.caller, role)

    def _send(
        self, version: str, operation: str, event: dict[str, Any], caller: Caller | None
    ) -> Any:
        chosen = self.versions[version]
        known = None if caller is None else [caller.user_id, caller.role]
        try:
            return chosen.api.call("answer", chosen.routes[operation], event, known)
        except WorkerError as error:
            self.note(f"{operation} raised: {error}")
            return {"statusCode": 500, "body": None}

    def _finish(self, version: str, operation: str, result: Any) -> Answer:
        self._read_log(operation, self.versions[version].api)
        answer = read_answer(result)
        if answer.status >= 500:
            self.note(f"{operation} is answered {answer.status} by {version}: {answer.body}")
        await_next_ms()
        return answer if answer.body is not None else Answer(answer.status, {})

    def answer(
        self, operation: str, event: dict[str, Any], caller: Caller | None
    ) -> dict[str, Any] | None:
        """Invoke the function of a route, in a version of the phase."""
        version = self.dice.choice(self.phase.api)
        document: dict[str, Any] = self._send(version, operation, event, caller)
        self._read_log(operation, self.versions[version].api)
        return document

    # ------------------------------------------------------------ queues and schedules

    def consumers(self) -> Sequence[Consumer]:
        """Return what consumes the queues of both versions."""
        process = {
            queue: consumer
            for v in self.versions.values()
            for queue, consumer in v.consumers.items()
        }
        return list(process.values())

    def schedules(self) -> Sequence[Schedule]:
        """Return what runs on a schedule in the version of the phase's workers."""
        return list(self.versions[self.phase.workers[-1]].schedules.values())

    def consume(self, consumer: Consumer, batch: Sequence[QueuedMessage]) -> Any:
        """Invoke a consumer of a version of the phase; some batches are delivered twice."""
        response = self._consume(consumer, batch)
        if self.dice.random() < self.redelivered:
            for message in batch:
                message.receives += 1
            response = self._consume(consumer, batch, *self.phase.api)
        return response

    def _consume(self, consumer: Consumer, batch: Sequence[QueuedMessage], *others: str) -> Any:
        able = [name for name in self.versions if consumer.queue in self.versions[name].consumers]
        expected = {*self.phase.workers, *others}
        possible = [name for name in able if name in expected] or able
        # A version that lacks messages of a sender gets them, as chance may never give it one.
        lacking = [
            name
            for name in possible
            if any(not self.consumed[consumer.queue, m.sender, name] for m in batch)
        ]
        name = self.dice.choice(lacking or possible)
        version = self.versions[name]
        for message in batch:
            self.consumed[consumer.queue, message.sender, name] += 1
        dead = self.aws.count().get(consumer.dead_letters, 0)
        folder, about = version.consumers[consumer.queue].folder, f"{consumer.queue} by {name}"
        senders = sorted({message.sender for message in batch})
        try:
            response = version.workers.call("invoke", folder, make_batch(consumer, batch))
        except WorkerError as error:
            self.note(f"{about}, sent by {senders}, raised: {error}")
            raise
        self._read_log(about, version.workers)
        if response["batchItemFailures"]:
            self.note(f"{about}, sent by {senders}, failed {len(response['batchItemFailures'])}")
        if self.aws.count().get(consumer.dead_letters, 0) > dead:
            body = self.aws.queues[consumer.dead_letters][-1].body
            self.note(f"{about}, sent by {senders}, dead-lettered: {body}")
        return response

    def run_schedule(self, folder: str) -> None:
        """Run a schedule in a version of the phase that has it."""
        able = [name for name in self.phase.workers if folder in self.versions[name].schedules]
        if not able:
            return
        version = self.versions[self.dice.choice(able)]
        try:
            version.workers.call("run", folder)
        except WorkerError as error:
            self.note(f"{folder} raised: {error}")
        self._read_log(folder, version.workers)

    def compare_stores(self) -> None:
        """Let the system get quiet, and note what differs. Left out are counters of shops, which
        the old version does not change (docs/limits.md): see ``compare_shops``."""
        report = self.run_until_quiet()
        others = [d for d in report.differences if not d.subject.startswith(_OF_SHOPS)]
        report = replace(report, differences=others)
        if not report.clean:
            self.note(f"audit: {report.to_json()}")

    def compare_shops(self) -> None:
        """Let the new version reconcile, and note what differs then."""
        self.ask(NEW, "POST /ops/reconciliations", 1, role="admin")
        for difference in self.run_until_quiet().differences:
            self.note(f"audit after a reconciliation: {difference}")

    # ------------------------------------------------------------ processes

    def new_process(self) -> None:
        """Reset all processes to new ones."""
        for version in self.versions.values():
            version.api.call("reset")
            version.workers.call("reset")

    def reset_api(self) -> None:
        """Reset the processes that answer requests."""
        for version in self.versions.values():
            version.api.call("reset")

    def let_pass(self, seconds: float) -> None:
        """Let time pass for what the processes of the API have cached."""
        for version in self.versions.values():
            version.api.call("let_pass", seconds)

    def migrate(self) -> None:
        """Migrate the schema, as a deploy of the new version does first."""
        self.versions[NEW].workers.call("migrate")

    @contextmanager
    def starting(self, version: Version) -> Iterator[Version]:
        """Run a version in one process, until the end of the block. Raises CommandError."""
        with ExitStack() as stack:
            version.start(self.environment, stack, is_small=True)
            version.load()
            yield version

    @contextmanager
    def replacing_new(self, root: Path, seed: int) -> Iterator[None]:
        """Run another checkout as the new version in the block, with empty stores."""
        before = self.versions[NEW], self.dice
        with self.starting(Version(NEW, root)) as version:
            self.versions[NEW], self.dice, self.phase = version, random.Random(seed), BEFORE
            self.problems.clear()
            try:
                self.migrate()
                self.empty()
                yield
            finally:
                self.versions[NEW], self.dice = before

    def empty(self) -> None:
        """Empty all stores and queues."""
        self.restore(Snapshot([], {table: ([], []) for table in self.tables}, {}, {}, {}))
        for statement in FILL:
            self.sql(statement)

    def _read_log(self, about: str, worker: Worker) -> None:
        lines, worker.log = worker.log, []
        for line in lines:
            if problem := find_problem(line):
                self.note(f"{about} logged {problem}")


def find_problem(line: str) -> str:
    """Return what a log line says about a failure, '' for none."""
    try:
        document = json.loads(line)
    except ValueError:
        return line
    is_failure = "error" in document or "trace" in document or document["event"] in _FAILURES
    return json.dumps(document) if is_failure else ""


@contextmanager
def open_deployment(
    redis_url: str,
    mysql_url: str,
    old: Path,
    new: Path,
    *,
    seed: int = 0,
) -> Iterator[Deployment]:
    """Yield both versions on these servers, which are emptied; the schema is ``new``'s."""
    with ExitStack() as stack:
        aws = Aws()
        stack.enter_context(aws.serving())
        stack.enter_context(set_up_for(redis_url, mysql_url, is_cluster=False, redis_timeout_s=5))
        versions = {OLD: Version(OLD, old), NEW: Version(NEW, new)}
        for version in versions.values():
            os.environ.update(make_variables(aws, version.template))  # the audit reads archives
        reset_process()
        environment = {**os.environ, **_UNREACHED}
        deployment = Deployment(
            redis_url,
            mysql_url,
            aws,
            Transport({}),
            environment=environment,
            versions=versions,
            dice=random.Random(seed),
        )
        stack.callback(reset_process)
        stack.callback(merge_partitions)
        stack.callback(deployment.mysql.close)
        stack.callback(deployment.redis.close)
        for version in versions.values():
            version.start(environment, stack)
        with ThreadPoolExecutor(len(versions)) as pool:
            list(pool.map(Version.load, versions.values()))
        deployment.migrate()
        deployment.empty()
        yield deployment
