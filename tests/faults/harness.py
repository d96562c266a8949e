"""The system in one process: functions, queues and schedules as the template declares them.

A ``Harness`` invokes functions as Lambda does, moves messages as SQS does, runs the system until it
is quiet, and restores both stores to the start of a use case.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock
from urllib.parse import urlencode, urlsplit

import redis as redis_client

from cli.paths import ROOT
from local.audit.compare import AuditReport, compare
from local.audit.stores import read_mysql_state, read_redis_state
from local.stack.deployment import ON_ONE_MACHINE, list_queues
from local.stack.functions import CONTEXT, load_function
from local.stack.servers import connect_mysql
from plaza.core.reaction_log import model
from plaza.infra.http.callers import Caller
from plaza.infra.mysql import mysql
from plaza.infra.mysql.driver import Packet, SharedTlsConnection
from plaza.infra.queues import sqs
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import reset_process
from plaza.people.auth import new_session
from plaza.people.auth.caller_identity import identify
from tests.faults.aws import PUSH_KEY_ID, Aws, QueuedMessage
from tests.faults.transport import Killed, Transport
from tests.support.archives import merge_partitions
from tests.support.authenticator import ORIGIN
from tests.support.plaza import FakeQueues, World, set_up_for
from tests.support.routes import check_documented
from tests.support.schedules import run_without_waits
from tests.unit.policy import template

SAMPLES = ROOT / "events"
BUCKET = "plaza-archive"
EXPIRED_WITHIN_S = 60
"""Keys of Redis that end within this time are ended when the system is brought to quiet."""

_MAX_ROUNDS = 8
# Schedules whose changes no one else reads.
_READ_ONLY = {"schedule/scan_keys", "schedule/sample_gauges"}
_MAX_DELIVERIES = 500
_FREQUENT_MINUTES = 5
_RATE = re.compile(r"rate\((\d+) minutes?\)")

Id = int | str


class Answer(NamedTuple):
    """A client's response. ``status`` 0: none, because the process was killed."""

    status: int
    body: Any

    @property
    def is_final(self) -> bool:
        """Return whether the client has the outcome of its request."""
        return 0 < self.status < 500


class Consumer(NamedTuple):
    """A function that consumes a queue. ``dead_letters``: the queue's DLQ."""

    folder: str
    queue: str
    dead_letters: str
    batch_size: int
    max_receives: int


class Key(NamedTuple):
    """A key of Redis as it is stored."""

    name: bytes
    ttl_ms: int
    value: bytes


@dataclass
class Snapshot:
    """All data of Redis, MySQL and AWS, and the ids by name."""

    keys: list[Key]
    tables: dict[str, tuple[list[str], list[tuple[Any, ...]]]]
    messages: dict[str, list[QueuedMessage]]
    objects: dict[str, bytes]
    ids: dict[str, Id]


class Schedule(NamedTuple):
    """A function that runs every ``minutes``."""

    folder: str
    minutes: float


@dataclass
class Harness:
    """See the module. ``ids``: ids for the paths of requests, by the parameter's name."""

    redis_url: str
    mysql_url: str
    aws: Aws
    transport: Transport
    ids: dict[str, Id] = field(default_factory=dict)

    # ------------------------------------------------------------ invoking

    def request(
        self,
        operation: str,
        caller: int | None = None,
        body: Any = None,
        *,
        role: str = "user",
        token: str = "",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        address: str = "203.0.113.7",
    ) -> Answer:
        """Answer one request, as API Gateway and the function of ``operation`` do."""
        event = make_event(
            operation, self.ids, body, token=token, headers=headers, query=query, address=address
        )
        answer = self.answer(operation, event, _make_caller(caller, role))
        if answer is None:
            return Answer(0, None)
        check_documented(operation, answer)
        await_next_ms()
        return read_answer(answer)

    def answer(
        self, operation: str, event: dict[str, Any], caller: Caller | None
    ) -> dict[str, Any] | None:
        """Invoke the function of a route. Returns None when its process was killed."""
        method, _, route = operation.partition(" ")
        function = _function(folder_of(template.routes()[method, route]))
        # A caller without a session is limited as in production; others cost no call here.
        function.app.identify = identify if caller is None else lambda *_: caller
        try:
            with sending_single_statements():
                answer: dict[str, Any] = function.handler(event, CONTEXT)
        except Killed:
            return None
        return answer

    def expect_success(
        self, operation: str, caller: int | None = None, body: Any = None, **options: Any
    ) -> Any:
        """Return the body of an answer, which must be a success."""
        answer = self.request(operation, caller, body, **options)
        assert 200 <= answer.status < 300, f"{operation}: {answer}"
        return answer.body

    def operate(self, command: str, arguments: Mapping[str, Any]) -> Answer:
        """Run a command of an operator. The status is 0 when its process was killed, 503 after an
        error."""
        event = {
            "command": command,
            "arguments": dict(arguments),
            "caller": "arn:aws:iam::1:user/ada",
        }
        try:
            with sending_single_statements():
                return Answer(200, _handler("ops/operate")(event, CONTEXT))
        except Killed:
            return Answer(0, None)
        except Unavailable:
            return Answer(503, None)

    def run_schedule(self, folder: str) -> None:
        """Run a schedule once, as if all waiting times were over."""
        run_without_waits(_handler(folder))

    def deliver(self, consumer: Consumer) -> bool:
        """Give a batch to a consumer; unfinished messages return to the queue or go to the DLQ.

        Returns whether there were messages. Raises Killed after the messages are back in the queue.
        """
        batch = self.aws.remove_messages(consumer.queue, consumer.batch_size)
        if not batch:
            return False
        for message in batch:
            message.receives += 1
        failed = {message.id for message in batch}
        try:
            response = self.consume(consumer, batch)
            failed = {item["itemIdentifier"] for item in response["batchItemFailures"]}
        except Exception:  # Lambda fails the batch, and SQS delivers all of it again
            failed = {message.id for message in batch}
        finally:
            left = [message for message in batch if message.id in failed]
            dead = [item for item in left if item.receives >= consumer.max_receives]
            self.aws.put(consumer.dead_letters, dead)
            self.aws.put(consumer.queue, [item for item in left if item not in dead])
        return True

    def consume(self, consumer: Consumer, batch: Sequence[QueuedMessage]) -> Any:
        """Invoke a consumer with a batch. Returns its response."""
        return _handler(consumer.folder)(make_batch(consumer, batch), CONTEXT)

    # ------------------------------------------------------------ quiet

    def drain(self, *, until: str | None = None) -> None:
        """Run consumers until no queue has messages, or until the queue ``until`` has some."""
        for _ in range(_MAX_DELIVERIES):
            if until is not None and self.aws.count().get(until):
                return
            delivered = [
                self.deliver(process) for process in self.consumers() if process.queue != until
            ]
            if not any(delivered):
                return
        raise AssertionError(f"messages do not end: {self.aws.count()}")

    def run_until_quiet(self) -> AuditReport:
        """Run the system until it is quiet or makes no progress. Returns the audit report.

        Keys that expire within a minute have expired, and outbox entries are due for the sweep.
        """
        self.drain()
        for _ in range(_MAX_ROUNDS):
            self.end_keys()
            World(FakeQueues()).let_sweeps_be_due()
            for least, most in ((0, 1), (1, _FREQUENT_MINUTES)):
                for schedule in self.schedules():
                    if least < schedule.minutes <= most and schedule.folder not in _READ_ONLY:
                        self.run_schedule(schedule.folder)
                self.drain()
            if (report := self.audit()).quiet:
                break
        return report

    def end_keys(self) -> None:
        """Expire the keys of Redis that would expire within a minute."""
        client = self.redis
        names = list(client.scan_iter(count=1000))
        pipe = client.pipeline(transaction=False)
        for name in names:
            pipe.pttl(name)
        ended = [
            name
            for name, ttl_ms in zip(names, pipe.execute(), strict=True)
            if 0 <= ttl_ms <= EXPIRED_WITHIN_S * 1000
        ]
        if ended:
            client.delete(*ended)

    def audit(self) -> AuditReport:
        """Return the audit report, with the queues of AWS."""
        depths = {name: (count, 0) for name, count in self.aws.count().items()}
        record = read_mysql_state(self.mysql_url, archives=bool(self.aws.objects))
        return compare(record, read_redis_state(self.redis_url), depths)

    def consumers(self) -> Sequence[Consumer]:
        """Return what consumes the queues."""
        return consumers()

    def schedules(self) -> Sequence[Schedule]:
        """Return what runs on a schedule."""
        return schedules()

    # ------------------------------------------------------------ processes

    def new_process(self) -> None:
        """Reset each function to a process that has only opened its connections."""
        self.transport.restart()
        reset_process()
        sqs.client().close()
        redis.execute("PING")
        mysql.fetch_all("SELECT 1")

    # ------------------------------------------------------------ stores

    def take_snapshot(self) -> Snapshot:
        """Return a snapshot of all data."""
        names = list(self.redis.scan_iter(count=1000))
        pipe = self.redis.pipeline(transaction=False)
        for name in names:
            pipe.pttl(name)
            pipe.dump(name)
        answers = iter(pipe.execute())
        keys = [Key(name, max(0, next(answers)), next(answers)) for name in names]
        return Snapshot(
            [key for key in keys if key.value],
            {table: self.read_table(table) for table in self.tables},
            {name: list(messages) for name, messages in self.aws.queues.items() if messages},
            dict(self.aws.objects),
            dict(self.ids),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Restore a snapshot, in a new process."""
        self.transport.restart()
        reset_process()
        self.redis.flushall()
        pipe = self.redis.pipeline(transaction=False)
        for key in snapshot.keys:
            pipe.restore(key.name, key.ttl_ms, key.value)
        pipe.execute()
        with self.mysql.cursor() as cursor:
            for table, (columns, rows) in snapshot.tables.items():
                cursor.execute(f"DELETE FROM `{table}`")
                if rows:
                    names = ", ".join(f"`{column}`" for column in columns)
                    marks = ", ".join(["%s"] * len(columns))
                    cursor.executemany(f"INSERT INTO `{table}` ({names}) VALUES ({marks})", rows)
            cursor.execute("SHOW MASTER STATUS")
            [(log_file, log_pos, *_)] = cursor.fetchall()
            # Events before this snapshot are not read again.
            cursor.execute(
                "UPDATE binlog_offset SET log_file = %s, log_pos = %s", (log_file, log_pos)
            )
        self.mysql.commit()
        self.aws.clear()
        for name, messages in snapshot.messages.items():
            self.aws.put(name, [QueuedMessage(m.body, m.attributes) for m in messages])
        self.aws.objects.update(snapshot.objects)
        self.ids = dict(snapshot.ids)
        self.new_process()
        World(FakeQueues()).let_sweeps_be_due()

    def read_table(self, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return (columns, rows) of a table."""
        with self.mysql.cursor() as cursor:
            cursor.execute(f"SELECT * FROM `{table}`")
            rows = list(cursor.fetchall())
            columns = [column[0] for column in cursor.description or ()]
        self.mysql.commit()
        return columns, rows

    def sql(self, statement: str, *args: object) -> None:
        """Change MySQL without the API; the binlog has the change."""
        mysql.write(statement, args)

    def open_transactions(self) -> int:
        """Count the open transactions of MySQL."""
        with self.mysql.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")
            [(count,)] = cursor.fetchall()
        self.mysql.commit()
        return int(count)

    @property
    def tables(self) -> list[str]:
        """Return every table of the schema."""
        return _tables(self.mysql)

    def __post_init__(self) -> None:
        # Connections of the harness, which the transport must not see.
        self.redis: Any = redis_client.Redis.from_url(self.redis_url)
        self.redis.ping()
        self.mysql = connect_mysql(self.mysql_url)
        with self.mysql.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")


def await_next_ms() -> None:
    """Wait for the next millisecond: no client answers a response within the same one, and the time
    of a message, which orders provisional reactions, has no more digits."""
    now_ms = time.time_ns() // 10**6
    while time.time_ns() // 10**6 == now_ms:
        time.sleep(0.0001)


# ---------------------------------------------------------------- declarations of the template


@cache
def consumers() -> tuple[Consumer, ...]:
    """Return every consumer of the template."""
    return read_consumers(template.TEMPLATE)


def read_consumers(of: template.Template) -> tuple[Consumer, ...]:
    """Return every consumer of a template."""
    names, result = read_queue_names(of), []
    declared = template.resources(template.QUEUE, of)
    for source in template.event_sources(of):
        policy = declared[source.queue]["RedrivePolicy"]
        result.append(
            Consumer(
                folder_of(source.function, of),
                names[source.queue],
                names[template.name_in(policy["deadLetterTargetArn"])],
                source.properties["BatchSize"],
                policy["maxReceiveCount"],
            )
        )
    return tuple(result)


@cache
def schedules() -> tuple[Schedule, ...]:
    """Return every schedule of the template, by its frequency on one machine."""
    return read_schedules(template.TEMPLATE)


def read_schedules(of: template.Template) -> tuple[Schedule, ...]:
    """Return every schedule of a template, by its frequency on one machine."""
    results = []
    for name, function in template.resources(template.FUNCTION, of).items():
        for event in function.get("Events", {}).values():
            if event["Type"] == "ScheduleV2":
                rate = event["Properties"]["ScheduleExpression"]
                if not isinstance(rate, str):
                    rate = ON_ONE_MACHINE[rate["Ref"]]
                minutes = _RATE.fullmatch(rate)
                results.append(
                    Schedule(folder_of(name, of), int(minutes[1]) if minutes else math.inf)
                )
    return tuple(results)


def read_queue_names(of: template.Template) -> dict[str, str]:
    """Return logical id of a queue -> its name in the code."""
    return {queue: template.queue_name(queue) for queue in template.resources(template.QUEUE, of)}


def folder_of(function: str, of: template.Template = template.TEMPLATE) -> str:
    """Return the folder of a function, such as ``api/users``."""
    return "/".join(template.folder_of(function, of).parts[-2:])


@cache
def _function(folder: str) -> ModuleType:
    return load_function(folder)


def _handler(folder: str) -> Callable[[Any, Any], Any]:
    handler: Callable[[Any, Any], Any] = _function(folder).handler
    return handler


def make_event(
    operation: str,
    ids: Mapping[str, Id],
    body: Any = None,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    address: str = "203.0.113.7",
) -> dict[str, Any]:
    """Return the event of a request, as API Gateway passes it. ``ids``: parameters of paths."""
    method, _, route = operation.partition(" ")
    parameters = {name: str(ids[name]) for name in re.findall(r"\{(\w+)\}", route)}
    path = re.sub(r"\{(\w+)\}", lambda match: parameters[match[1]], route)
    return {
        "version": "2.0",
        "routeKey": operation,
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "queryStringParameters": {k: str(v) for k, v in (query or {}).items()},
        "headers": {
            "content-type": "application/json",
            "user-agent": "plaza-app/1.0",
            **({"authorization": f"Bearer {token}"} if token else {}),
            **(headers or {}),
        },
        "pathParameters": parameters,
        "requestContext": {
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": address,
                "userAgent": "plaza-app/1.0",
            },
            "requestId": "request-of-the-harness",
            "routeKey": operation,
            "stage": "$default",
            "timeEpoch": int(time.time() * 1000),
        },
        "isBase64Encoded": False,
        "body": None if body is None else json.dumps(body),
    }


def read_answer(answer: Mapping[str, Any]) -> Answer:
    """Return what a function answered as the client reads it."""
    return Answer(int(answer["statusCode"]), json.loads(answer.get("body") or "null"))


def make_batch(consumer: Consumer, batch: Sequence[QueuedMessage]) -> dict[str, Any]:
    """Return the event of a batch, as Lambda passes it."""
    return {"Records": [_record(consumer, message) for message in batch]}


def _record(consumer: Consumer, message: QueuedMessage) -> dict[str, Any]:
    """Return a message as Lambda passes it."""
    return {
        "messageId": message.id,
        "receiptHandle": message.id,
        "body": message.body,
        "md5OfBody": hashlib.md5(message.body.encode()).hexdigest(),
        "attributes": {
            "ApproximateReceiveCount": str(message.receives),
            "SentTimestamp": str(message.sent_ms),
        },
        "messageAttributes": {
            name: {"stringValue": value.get("StringValue"), "dataType": value["DataType"]}
            for name, value in message.attributes.items()
        },
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:plaza-{consumer.queue}",
        "awsRegion": "us-east-1",
    }


@contextmanager
def sending_single_statements() -> Iterator[None]:
    """Send each statement in a packet of its own, as functions that answer requests do."""

    def pack(_: SharedTlsConnection, statements: Iterable[str]) -> Iterator[Packet]:
        return (Packet(statement.encode(), 1) for statement in statements)

    with mock.patch.object(SharedTlsConnection, "_pack", pack):
        yield


_known_tables: list[str] = []


def _tables(connection: Any) -> list[str]:
    if not _known_tables:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT table_name FROM information_schema.tables"
                " WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'"
                " AND table_name NOT IN ('gauge_sample', 'event_offset') ORDER BY 1"
                # rows of minutes, which another run may have more or fewer of
            )
            _known_tables.extend(row[0] for row in cursor.fetchall())
    return _known_tables


@contextmanager
def open_harness(redis_url: str, mysql_url: str) -> Iterator[Harness]:
    """Yield a harness on these servers, which are emptied."""
    with ExitStack() as stack:
        # PyMySQL loads the system's certificates for each connection, 20 ms; these have no TLS.
        stack.callback(setattr, ssl, "create_default_context", ssl.create_default_context)
        ssl.create_default_context = cache(ssl.create_default_context)  # type: ignore[assignment]
        stack.enter_context(set_up_for(redis_url, mysql_url, is_cluster=False, redis_timeout_s=1))
        aws = Aws()
        stack.enter_context(aws.serving())
        services = {
            urlsplit(redis_url).port: "redis",
            urlsplit(mysql_url).port: "mysql",
            urlsplit(aws.url).port: "aws",
        }
        transport = Transport({int(port or 0): name for port, name in services.items()})
        stack.enter_context(mock.patch.dict(os.environ, make_variables(aws, template.TEMPLATE)))
        reset_process()
        client = sqs._make_client()  # slow, so all processes share one
        stack.callback(setattr, sqs, "client", sqs.client)
        sqs.client = lambda: client
        stack.callback(setattr, model, "DAYS_AHEAD", model.DAYS_AHEAD)
        model.DAYS_AHEAD = 1  # creating partitions is slow
        harness = Harness(redis_url, mysql_url, aws, transport)
        stack.callback(merge_partitions)
        stack.callback(harness.mysql.close)
        stack.callback(harness.redis.close)
        stack.callback(reset_process)
        yield harness


def _make_caller(user_id: int | None, role: str) -> Caller | None:
    """Return a caller who signed in just now."""
    if user_id is None:
        return None
    return Caller(user_id, role, signed_in_at_s=int(time.time()))


def make_variables(aws: Aws, of: template.Template) -> dict[str, str]:
    """Return the environment variables of functions that use ``aws``, with a small recent list."""
    names = read_queue_names(of).values()
    return list_queues({name: aws.url_of(name) for name in names}) | {
        "AWS_ENDPOINT_URL": aws.url,
        "PLAZA_ARCHIVE_BUCKET": BUCKET,
        "PLAZA_RECENT_CAP": "4",
        "PLAZA_CONSOLE_ORIGIN": ORIGIN,
        "PLAZA_PUSH_PUBLIC_KEY": "B" + "A" * 86,
        "PLAZA_PUSH_KEY_ID": PUSH_KEY_ID,
        "PLAZA_PUSH_CONTACT": "mailto:ops@plaza.example",
    }


def open_session(user_id: int) -> str:
    """Return the token of a new session."""
    return new_session.open_session(user_id)


def samples(folder: str) -> Sequence[str]:
    """Return the message bodies of the sample events of a consumer."""
    name = folder.rpartition("/")[2]
    return [
        record["body"]
        for file in sorted(SAMPLES.glob(f"{name}.*.json"))
        if ".poison." not in file.name
        for record in json.loads(file.read_text())["Records"]
    ]


def sample_body(operation: str) -> dict[str, Any]:
    """Return the body of the first sample request for ``operation``."""
    for file in sorted(SAMPLES.glob("*.json")):
        event = json.loads(file.read_text())
        if event.get("routeKey") == operation and event.get("body"):
            body: dict[str, Any] = json.loads(event["body"])
            return body
    raise LookupError(f"no sample in {SAMPLES.name}/ is a request for {operation}")
