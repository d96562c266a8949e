"""Plaza in this process, on the Redis and MariaDB of tests/support/servers.py, a queue in memory.

A plugin: ``plaza`` is a fresh world for one test; ``FakeQueues`` stands where SQS would.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pytest

from local.stack.queue_registry import load_queues
from plaza import reactions
from plaza.infra import clock, migrations, mysql, redis, secrets, sqs
from plaza.infra.clock import Deadline
from plaza.infra.observability import current_request_id
from plaza.infra.process import reset_process
from plaza.infra.queues import Queue
from plaza.infra.sqs import REQUEST, Depth, Outgoing, QueueDown
from plaza.infra.token_bucket import TokenBucket
from plaza.reactions import queries
from plaza.reactions.model import ReactionEvent
from plaza.reactions.queues import REACTIONS
from plaza.targets import lookup
from tests.support.keyspace import find_keys
from tests.support.servers import IS_CLUSTER

T = TypeVar("T")


class Sent(str):
    """The body of a message, with its attributes: when its queue took it, milliseconds since 1970,
    and the request that it was sent for."""

    sent_ms: int
    request_id: str | None

    def __new__(cls, body: str, sent_ms: int, request_id: str | None = None) -> Sent:
        sent = super().__new__(cls, body)
        sent.sent_ms, sent.request_id = sent_ms, request_id
        return sent


def decode(queue: Queue[T], body: str) -> T:
    """The message in a body, with what its consumer knows of when it was sent."""
    message = queue.decode(body)
    if isinstance(message, ReactionEvent) and isinstance(body, Sent):
        return replace(message, sent_ms=body.sent_ms, request_id=body.request_id)
    return message


def read_event(body: str) -> ReactionEvent:
    """The event in a message, with what its consumer knows of the message."""
    return decode(REACTIONS, body)


class Bodies(defaultdict[str, list[str]]):
    """Name of a queue -> the bodies that wait there. A queue stands for its name."""

    def __getitem__(self, queue: Queue[Any] | str) -> list[str]:
        return super().__getitem__(name_of(queue))

    def __setitem__(self, queue: Queue[Any] | str, bodies: list[str]) -> None:
        super().__setitem__(name_of(queue), bodies)


def name_of(queue: Queue[Any] | str) -> str:
    """The name of a queue."""
    return queue if isinstance(queue, str) else queue.name


@dataclass
class FakeQueues:
    """Queues that keep what they are sent, as SQS does, and can be away."""

    messages: Bodies = field(default_factory=lambda: Bodies(list))
    away: bool = False

    def send(self, queue: Queue[Any] | str, body: str, delay_s: int = 0) -> None:
        """Take one message, or raise as the real one does."""
        self._take(queue, sqs.for_request(body, current_request_id()))

    def send_all(
        self,
        queue: Queue[Any] | str,
        messages: Sequence[str | Outgoing],
        deadline: Deadline | None = None,
    ) -> int:
        """Take many messages, however late it is."""
        for message in messages:
            if isinstance(message, str):
                self.send(queue, message)
            else:
                self._take(queue, message)
        return len(messages)

    def _take(self, queue: Queue[Any] | str, message: Outgoing) -> None:
        if self.away:
            raise QueueDown("SQS is away (a test says so)")
        now_ms, request_id = clock.now_ms(), message.attributes.get(REQUEST)
        self.messages[queue].append(Sent(message.body, now_ms, request_id))

    def measure(self, queue: str) -> Depth:
        """How many messages wait; none is in flight or delayed."""
        if self.away:
            raise QueueDown("SQS is away (a test says so)")
        return Depth(len(self.messages[queue]), 0, 0)

    def take(self, queue: Queue[Any] | str) -> list[str]:
        """All messages of a queue, which is empty after."""
        taken, self.messages[queue] = self.messages[queue], []
        return taken

    def drain(self) -> None:
        """Let the consumers work until there is nothing to do."""
        queues = load_queues()
        while any(self.messages.values()):
            for queue in [queue for queue, waiting in self.messages.items() if waiting]:
                queues[queue].handle([decode(queues[queue], body) for body in self.take(queue)])


@dataclass(frozen=True)
class World:
    """What a test of Plaza in this process works with."""

    queues: FakeQueues

    def add(self, *targets: reactions.Target, author_id: int = 99) -> None:
        """Make content that can be reacted to."""
        for target in targets:
            mysql.write(
                "INSERT IGNORE INTO content (content_type, content_id, author_id)"
                " VALUES (%s, %s, %s)",
                (*target, author_id),
            )

    def let_sweeps_be_due(self) -> None:
        """As if the time had passed that the sweeper waits before it looks at a target again."""
        for key in find_keys("*:outboxes"):
            for member in redis.execute("ZRANGE", key, 0, -1):
                redis.execute("ZADD", key, 0, member)


TABLES = (
    "user", "content", "session", "reaction", "reaction_log", "content_counter", "user_counter",
    "user_phone", "shop", "idempotency_key", "watermark", "redis_epoch", "stale_list", "post_hour", "star",
    "voucher", "voucher_order", "order_outbox", "checkin", "shop_type", "binlog_position",
    "spilled_message", "delayed_comment_count",
    "reconciliation", "reconciliation_part", "reconciliation_suspect", "reconciliation_finding",
)  # fmt: skip
# Of each table that has rows its name: a DELETE of nothing takes as long as one of ten rows.
FIND_NOT_EMPTY = " UNION ALL ".join(
    f"SELECT '{table}' FROM DUAL WHERE EXISTS (SELECT 1 FROM {table})" for table in TABLES
)


@pytest.fixture(scope="session")
def migrated(redis_url: str, mysql_url: str) -> Iterator[None]:
    """The settings of this run, and the tables."""
    with set_up_for(redis_url, mysql_url, is_cluster=IS_CLUSTER, redis_timeout_s=2):
        yield


@contextmanager
def set_up_for(
    redis_url: str, mysql_url: str, *, is_cluster: bool, redis_timeout_s: float
) -> Iterator[None]:
    """The settings that Plaza has meanwhile, and the tables."""
    before = dict(os.environ)
    os.environ.update(
        PLAZA_ENVIRONMENT="local",
        PLAZA_REDIS_URL=redis_url,
        PLAZA_REDIS_CLUSTER=str(int(is_cluster)),
        PLAZA_MYSQL_URL=mysql_url,
        PLAZA_REDIS_TIMEOUT_S=str(redis_timeout_s),
        PLAZA_AUTH_SECRET_ID="plaza/auth",
        PLAZA_SMS_SENDER="echo",
        PLAZA_SMS_COUNTRIES="*",
        AWS_DEFAULT_REGION="us-east-1",
        AWS_ACCESS_KEY_ID="test",
        AWS_SECRET_ACCESS_KEY="test",
    )
    forget()
    try:
        migrations.apply_migrations()
        yield
    finally:
        forget()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def plaza(migrated: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An empty world."""
    forget()
    fake = FakeQueues()
    for name in ("send", "send_all", "measure"):
        monkeypatch.setattr(sqs, name, getattr(fake, name))
    lift_budgets(monkeypatch)
    monkeypatch.setattr(secrets, "read", lambda secret_id: f"the secret {secret_id}")
    redis.execute("FLUSHALL")
    for (table,) in mysql.fetch_all(FIND_NOT_EMPTY):
        mysql.write(f"DELETE FROM {table}")
    yield World(fake)
    forget()


def lift_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test ask MySQL for more in a second than a process may; tests of budgets set theirs."""
    monkeypatch.setattr(lookup, "_lookup_budget", TokenBucket(1e9, 10**9))
    monkeypatch.setattr(queries, "_list_budget", TokenBucket(1e9, 10**9))


def forget() -> None:
    """Let this process begin anew: without connections, and without what it saw."""
    reset_process()
