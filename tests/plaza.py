"""Plaza in this process, on the real Redis and MariaDB of tests/servers.py, and a queue in memory.

A plugin: ``plaza`` is a fresh world for one test; ``FakeQueues`` stands where SQS would.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import pytest

from plaza import (
    checkins,
    content,
    feed,
    flash_sales,
    reactions,
    recommendations,
    reconciliation,
    shops,
    targets,
)
from plaza.auth import calling, sms
from plaza.checkins import CheckedIn
from plaza.feed import FanOut
from plaza.flash_sales import OrderReserved
from plaza.infra import (
    cache,
    health,
    ids,
    migrations,
    mysql,
    objects,
    queues,
    redis,
    secrets,
    settings,
)
from plaza.infra.cache import DROPS, Drops
from plaza.infra.limits import TokenBucket
from plaza.infra.observability import present_request
from plaza.infra.queues import Outgoing, QueueDown
from plaza.reactions import ReactionEvent, Unacknowledged, reading
from plaza.recommendations import Rebuild
from plaza.reconciliation import PartAsked, RepairsAsked
from plaza.targets import Refresh
from tests.keyspace import find_keys
from tests.servers import IS_CLUSTER


class Sent(str):
    """The body of a message, with its attributes: when its queue took it, milliseconds since 1970,
    and the request that it was sent for."""

    sent_ms: int
    request_id: str | None

    def __new__(cls, body: str, sent_ms: int, request_id: str | None = None) -> Sent:
        sent = super().__new__(cls, body)
        sent.sent_ms, sent.request_id = sent_ms, request_id
        return sent


def read_event(body: str) -> ReactionEvent:
    """The event in a message, with what its consumer knows of the message."""
    event = ReactionEvent.from_json(body)
    if not isinstance(body, Sent):
        return event
    return replace(event, sent_ms=body.sent_ms, request_id=body.request_id)


@dataclass
class FakeQueues:
    """Queues that keep what they are sent, as SQS does, and can be away."""

    messages: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    away: bool = False

    def send(self, queue: str, body: str, delay_s: int = 0) -> None:
        """Take one message, or raise as the real one does."""
        self._take(queue, Outgoing(body, present_request()))

    def send_all(
        self, queue: str, messages: Sequence[str | Outgoing], until_s: float | None = None
    ) -> int:
        """Take many messages, however late it is."""
        for message in messages:
            if isinstance(message, str):
                self.send(queue, message)
            else:
                self._take(queue, message)
        return len(messages)

    def _take(self, queue: str, message: Outgoing) -> None:
        if self.away:
            raise QueueDown("SQS is away (a test says so)")
        now_ms = time.time_ns() // 1_000_000
        self.messages[queue].append(Sent(message.body, now_ms, message.request_id))

    def backlog(self, queue: str) -> int:
        """How many messages wait."""
        if self.away:
            raise QueueDown("SQS is away (a test says so)")
        return len(self.messages[queue])

    def unfinished(self, queue: str) -> int:
        """How many messages aren't done."""
        return self.backlog(queue)

    def take(self, queue: str) -> list[str]:
        """All messages of a queue, which is empty after."""
        taken, self.messages[queue] = self.messages[queue], []
        return taken

    def drain(self) -> None:
        """Let the consumers work until there is nothing to do."""
        work: dict[str, Callable[[list[str]], None]] = {
            reactions.REACTIONS: lambda bodies: reactions.save(
                [read_event(body) for body in bodies]
            ),
            reactions.SETTLEMENTS: lambda bodies: reactions.settle_again(
                [Unacknowledged.from_json(body) for body in bodies]
            ),
            reactions.REBUILDS: lambda bodies: reactions.rebuild(
                [reactions.read_step(body) for body in bodies]
            ),
            targets.REFRESHES: lambda bodies: content.refresh(
                [Refresh.from_json(body) for body in bodies]
            ),
            recommendations.RECOMMENDATIONS: lambda bodies: recommendations.rebuild_recommendations(
                [Rebuild.from_json(body) for body in bodies]
            ),
            content.FANOUTS: lambda bodies: feed.fan_out(
                [FanOut.from_json(body) for body in bodies]
            ),
            reactions.FOLLOWS: lambda bodies: feed.apply_follow_changes(
                [feed.read_pairs(body) for body in bodies]
            ),
            feed.INBOXES: lambda bodies: feed.rebuild(
                [feed.read_timelines(body) for body in bodies]
            ),
        }
        work[shops.SHOPS] = lambda bodies: shops.work_through(
            [shops.read_message(body) for body in bodies]
        )
        work[DROPS] = lambda bodies: cache.drop_again([Drops.from_json(body) for body in bodies])
        work[flash_sales.ORDERS] = lambda bodies: flash_sales.save(
            [OrderReserved.from_json(body) for body in bodies]
        )
        work[flash_sales.ORDERS_DLQ] = lambda bodies: flash_sales.give_up(
            [OrderReserved.from_json(body) for body in bodies]
        )
        work[checkins.CHECKINS] = lambda bodies: checkins.save(
            [CheckedIn.from_json(body) for body in bodies]
        )
        work[reconciliation.COMPARISONS] = lambda bodies: reconciliation.take_parts(
            [PartAsked.from_json(body) for body in bodies]
        )
        work[reconciliation.REPAIRS] = lambda bodies: reconciliation.repair(
            [RepairsAsked.from_json(body) for body in bodies]
        )
        while any(self.messages.values()):
            for queue in [queue for queue, waiting in self.messages.items() if waiting]:
                work[queue](self.take(queue))


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
        for key in [*find_keys("*:dirty"), *find_keys("*:outboxes")]:
            for member in redis.execute("ZRANGE", key, 0, -1):
                redis.execute("ZADD", key, 0, member)


TABLES = (
    "user", "content", "session", "reaction", "reaction_log", "content_counter", "user_counter",
    "user_phone", "shop", "creation", "watermark", "redis_epoch", "stale_list", "post_hour", "star",
    "voucher", "voucher_order", "order_outbox", "checkin", "shop_type", "binlog_position",
    "spilled_message", "comment_change",
    "reconciliation", "reconciliation_part", "reconciliation_suspect", "reconciliation_finding",
)  # fmt: skip


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
    for name in ("send", "send_all", "backlog", "unfinished"):
        monkeypatch.setattr(queues, name, getattr(fake, name))
    lift_budgets(monkeypatch)
    monkeypatch.setattr(secrets, "read", lambda secret_id: f"the secret {secret_id}")
    redis.execute("FLUSHALL")
    for table in TABLES:
        mysql.write(f"DELETE FROM {table}")
    yield World(fake)
    forget()


def lift_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test ask MySQL for more in a second than a process may; tests of budgets set theirs."""
    monkeypatch.setattr(targets, "_lookup_budget", TokenBucket(1e9, 10**9))
    monkeypatch.setattr(reading, "_list_budget", TokenBucket(1e9, 10**9))


def forget() -> None:
    """Let this process forget its connections, its breakers and what it saw."""
    settings.settings.cache_clear()
    sms.sender.cache_clear()
    calling.forget_owners()
    health.forget()
    reactions.forget_hot_totals()
    targets.forget_seen()
    content.forget_texts()
    shops.forget_types()
    flash_sales.forget_sales()
    ids.forget_block()
    redis.forget_client()
    mysql.forget_connection()
    objects.forget_client()
    for breaker in (redis.breaker, mysql.breaker, queues.breaker, objects.breaker):
        breaker.close()
