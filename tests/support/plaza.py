"""Plaza in this process, with the Redis and MariaDB of tests/support/servers.py and fake queues.

A plugin: the fixture ``plaza`` empties all stores for one test; ``FakeQueues`` replaces SQS.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from unittest import mock

import pytest
from aws_lambda_powertools.metrics.provider import cold_start

from local.stack.queue_registry import load_queues
from plaza.core import reactions
from plaza.core.reactions import failover_recovery, queries
from plaza.core.reactions.model import ReactionEvent
from plaza.core.reactions.queues import REACTIONS
from plaza.core.targets import lookup
from plaza.core.targets.types import EXTERNAL
from plaza.infra.aws import secrets
from plaza.infra.mysql import migrations, mysql
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.sqs import REQUEST, Depth, Outgoing, QueueDown
from plaza.infra.redis import redis
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import current_request_id
from plaza.infra.runtime.process import reset_process
from tests.support.keyspace import find_keys
from tests.support.servers import IS_CLUSTER
from tests.support.tables import TABLES

T = TypeVar("T")


def pytest_configure() -> None:
    """Count no first request of this process: which test sends it is chance."""
    cold_start.is_cold_start = False


class Sent(str):
    """The body of a message, when it was sent (milliseconds since 1970), and its request id."""

    sent_ms: int
    request_id: str | None

    def __new__(cls, body: str, sent_ms: int, request_id: str | None = None) -> Sent:
        sent = super().__new__(cls, body)
        sent.sent_ms, sent.request_id = sent_ms, request_id
        return sent


def decode(queue: Queue[T], body: str) -> T:
    """Decode a message as its consumer gets it, with the time at which it was sent."""
    message = queue.decode(str(body))
    if isinstance(message, ReactionEvent) and isinstance(body, Sent):
        return replace(message, sent_ms=body.sent_ms, request_id=body.request_id)
    return message


def read_event(body: str) -> ReactionEvent:
    """Decode a reaction event as its consumer gets it."""
    return decode(REACTIONS, body)


class Bodies(defaultdict[str, list[str]]):
    """Name of a queue -> the bodies of its messages. Keys are queues or names."""

    def __getitem__(self, queue: Queue[Any] | str) -> list[str]:
        return super().__getitem__(name_of(queue))

    def __setitem__(self, queue: Queue[Any] | str, bodies: list[str]) -> None:
        super().__setitem__(name_of(queue), bodies)


def name_of(queue: Queue[Any] | str) -> str:
    return queue if isinstance(queue, str) else queue.name


@dataclass
class FakeQueues:
    """Queues in memory. While ``away`` is True they raise QueueDown."""

    messages: Bodies = field(default_factory=lambda: Bodies(list))
    away: bool = False

    def send(self, queue: Queue[Any] | str, body: str, delay_s: int = 0) -> None:
        """Accept one message. Raises QueueDown."""
        self._take(queue, sqs.for_request(body, current_request_id()))

    def send_all(
        self,
        queue: Queue[Any] | str,
        messages: Sequence[str | Outgoing],
        deadline: Deadline | None = None,
    ) -> int:
        """Accept messages, also after the deadline. Raises QueueDown."""
        for message in messages:
            if isinstance(message, str):
                self.send(queue, message)
            else:
                self._take(queue, message)
        return len(messages)

    def _take(self, queue: Queue[Any] | str, message: Outgoing) -> None:
        if self.away:
            raise QueueDown("SQS is unavailable (simulated)", may_have_run=False)
        now_ms, request_id = clock.now_ms(), message.attributes.get(REQUEST)
        self.messages[queue].append(Sent(message.body, now_ms, request_id))

    def measure(self, queue: str) -> Depth:
        """Return the number of waiting messages; none is in flight or delayed."""
        if self.away:
            raise QueueDown("SQS is unavailable (simulated)")
        return Depth(len(self.messages[queue]), 0, 0)

    def measure_all(self, queues: Collection[str]) -> dict[str, Depth]:
        """Return queue -> number of waiting messages."""
        return {queue: sqs.measure(queue) for queue in queues}

    def take(self, queue: Queue[Any] | str) -> list[str]:
        """Remove and return all messages of a queue."""
        taken, self.messages[queue] = self.messages[queue], []
        return taken

    def drain(self) -> None:
        """Call the consumers until all queues are empty."""
        queues = load_queues()
        while any(self.messages.values()):
            for queue in [queue for queue, bodies in self.messages.items() if bodies]:
                queues[queue].handle([decode(queues[queue], body) for body in self.take(queue)])


@dataclass(frozen=True)
class World:
    """The stores and queues of a test."""

    queues: FakeQueues

    def add(self, *targets: reactions.Target, author_id: int = 99) -> None:
        """Insert content as targets of reactions."""
        for target in targets:
            if target.type in EXTERNAL:
                mysql.write(
                    "INSERT IGNORE INTO external_target (type, id, external_id, owner_id)"
                    " VALUES (%s, %s, %s, %s)",
                    (*target, target.id, author_id),
                )
                continue
            mysql.write(
                "INSERT IGNORE INTO content (content_type, content_id, author_id)"
                " VALUES (%s, %s, %s)",
                (*target, author_id),
            )

    def let_sweeps_be_due(self) -> None:
        """Make all outboxes due, as after the wait between two sweeps."""
        for key in find_keys("*:outboxes"):
            for member in redis.execute("ZRANGE", key, 0, -1):
                redis.execute("ZADD", key, 0, member)


_SINGLE_ROWS = ("event_barrier", "event_head", "log_barrier")  # of migrations
EMPTIED = tuple(table for table in TABLES if table not in (*_SINGLE_ROWS, "schema_migration"))
FILL = tuple(f"INSERT IGNORE INTO {table} (id) VALUES (1)" for table in _SINGLE_ROWS)
"""Statements that insert the rows of migrations into empty tables."""
# The names of tables with rows: a DELETE of no rows takes as long as one of ten rows.
FIND_NOT_EMPTY = " UNION ALL ".join(
    f"SELECT '{table}' FROM DUAL WHERE EXISTS (SELECT 1 FROM {table})" for table in EMPTIED
)


@pytest.fixture(scope="module")
def migrated(redis_url: str, mysql_url: str) -> Iterator[None]:
    """Apply the settings of this run to the tests of a file, and the migrations."""
    with set_up_for(redis_url, mysql_url, is_cluster=IS_CLUSTER, redis_timeout_s=2):
        yield


@contextmanager
def set_up_for(
    redis_url: str, mysql_url: str, *, is_cluster: bool, redis_timeout_s: float
) -> Iterator[None]:
    """Apply settings to this process until the end of the block, and the migrations."""
    environment = {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": redis_url,
        "PLAZA_REDIS_CLUSTER": str(int(is_cluster)),
        "PLAZA_MYSQL_URL": mysql_url,
        "PLAZA_MYSQL_PACKETS": "1",
        "PLAZA_REDIS_TIMEOUT_S": str(redis_timeout_s),
        "PLAZA_AUTH_SECRET_ID": "plaza/people/auth",
        "PLAZA_SMS_SENDER": "echo",
        "PLAZA_BINLOG": "followed",
        "PLAZA_SMS_COUNTRIES": "*",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    with mock.patch.dict(os.environ, environment):
        forget()
        try:
            migrations.apply_migrations()
            yield
        finally:
            forget()


@pytest.fixture
def plaza(migrated: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Empty stores and queues."""
    forget()
    fake = FakeQueues()
    for name in ("send", "send_all", "measure", "measure_all"):
        monkeypatch.setattr(sqs, name, getattr(fake, name))
    lift_budgets(monkeypatch)
    monkeypatch.setattr(failover_recovery, "MIN_INTERVAL_S", 0)  # tests have no minutes
    monkeypatch.setattr(secrets, "_fetch", lambda secret_id: f"the secret {secret_id}")
    redis.execute("FLUSHALL")
    for (table,) in mysql.fetch_all(FIND_NOT_EMPTY):
        mysql.write(f"DELETE FROM {table}")
    for table in ("log_barrier", "event_head"):  # of both, or the head has the next epoch already
        mysql.write(f"UPDATE {table} SET epoch = 0 WHERE epoch > 0")
    yield World(fake)
    forget()


def lift_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lift the fallback budgets of this process; tests of budgets set their own."""
    monkeypatch.setattr(lookup, "_lookup_budget", TokenBucket(1e9, 10**9))
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(1e9, 10**9))


def forget() -> None:
    """Reset this process: close its connections and clear its caches."""
    reset_process()
