"""A Redis Cluster with failing nodes, and traffic during the failures.

These tests always have a cluster of their own, with a short node timeout and Lambda's Redis
timeout.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from redis.crc import key_slot

from bench.api import Handler, like_event, load_handler
from local.audit.compare import AuditReport, compare
from local.audit.stores import read_mysql_state, read_redis_state
from local.stack.cluster import Cluster, connect_node, prepare_cluster
from local.stack.functions import CONTEXT
from local.stack.servers import Server, run_server
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Kind,
    Target,
    queries,
    react,
    redis_keys,
    sweep,
)
from plaza.core.reactions.model import TooManyChanges
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import Unavailable
from plaza.people import follows
from tests.chaos.ledger import Ledger, Request, find_violations
from tests.support.plaza import World, forget, set_up_for

NODE_TIMEOUT_MS = 1_500
REDIS_TIMEOUT_S = 0.5
POSTS = [Target("post", n) for n in range(101, 131)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield the cluster; start all of its nodes after each test."""
    directory: Path = tmp_path_factory.mktemp("cluster") / "redis"
    with run_server(prepare_cluster(directory, node_timeout_ms=NODE_TIMEOUT_MS)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def migrated(nodes: Cluster, mysql_url: str) -> Iterator[None]:
    """Configure Plaza for this cluster and create the tables, instead of tests/support/plaza.py."""
    with set_up_for(nodes.url, mysql_url, is_cluster=True, redis_timeout_s=REDIS_TIMEOUT_S):
        yield


@pytest.fixture(autouse=True)
def whole(nodes: Cluster) -> Iterator[None]:
    """Repair the cluster after each test."""
    yield
    nodes.resume()
    nodes.start()
    nodes.wait_until_healthy()
    forget()


@dataclass
class Traffic:
    """Likes through the API, post after post, each by a new actor."""

    handler: Handler
    posts: list[Target]
    statuses: Counter[int] = field(default_factory=Counter)
    acknowledged: set[tuple[int, int]] = field(default_factory=set)  # (post, actor) of each 200
    longest_s: float = 0.0
    gaps_s: dict[int, float] = field(default_factory=dict)  # by post: longest time without a 200
    _good_s: dict[int, float] = field(default_factory=dict)
    _actor: int = 1_000

    def like(self, post: Target) -> int:
        """Send one like. Returns the status of its answer."""
        self._actor += 1
        began_s = time.monotonic()
        status = int(self.handler(like_event(post.id, self._actor), CONTEXT)["statusCode"])
        ended_s = time.monotonic()
        self.statuses[status] += 1
        self.longest_s = max(self.longest_s, ended_s - began_s)
        if status == 200:
            self.acknowledged.add((post.id, self._actor))
            gap_s = ended_s - self._good_s.get(post.id, began_s)
            self.gaps_s[post.id] = max(gap_s, self.gaps_s.get(post.id, 0))
            self._good_s[post.id] = ended_s
        return status

    def run_for(self, for_s: float) -> None:
        """Send likes for a time, and at least one to each post."""
        until_s = time.monotonic() + for_s
        while True:
            for post in self.posts:
                self.like(post)
            if time.monotonic() > until_s:
                return

    def run_until_normal(self, max_s: float = 30) -> None:
        """Send likes until each post has accepted one, one post after the other."""
        until_s = time.monotonic() + max_s
        while [self.like(post) for post in self.posts] != [200] * len(self.posts):
            assert time.monotonic() < until_s, f"it does not recover: {self.statuses}"

    @property
    def gap_s(self) -> float:
        """Return the longest time without an accepted like of a post."""
        return max(self.gaps_s.values())


@pytest.fixture
def traffic(plaza: World) -> Traffic:
    """Load thirty posts into Redis, over all masters."""
    plaza.add(*POSTS)
    mysql.write(
        "INSERT INTO user_counter (user_id, posts_total, version) VALUES (99, %s, 1)", (len(POSTS),)
    )
    made = Traffic(load_handler(), POSTS)
    made.run_until_normal()
    return made


@pytest.fixture
def quiet(plaza: World, nodes: Cluster, mysql_url: str) -> Callable[[], AuditReport]:
    """Run consumers and sweeper until the queues are empty. Returns the audit report."""

    def calm_down() -> AuditReport:
        plaza.queues.away = False
        forget()
        for _ in range(20):
            plaza.queues.drain()
            plaza.let_sweeps_be_due()
            if sweep.sweep_outbox(resend_after_us=0) == 0 and not any(
                plaza.queues.messages.values()
            ):
                break
        return compare(read_mysql_state(mysql_url), read_redis_state(nodes.url, cluster=True), {})

    return calm_down


def rows() -> set[tuple[int, int]]:
    """Return (post, actor) of all likes in MySQL."""
    return set(
        mysql.fetch_all("SELECT target_id, actor_id FROM reaction WHERE kind = 'like' AND state")
    )


def meta_key(post: Target) -> str:
    """Return a key of ``post``."""
    return redis_keys.keys_of(LIKE.name, post).meta


def migrate(
    nodes: Cluster, key: str, *, all_keys: bool, to: Server | None = None
) -> Callable[[], None]:
    """Begin to move the slot of ``key`` to another master. Returns a function that ends it.

    ``all_keys``: all keys of the slot have moved, otherwise none. ``to``: None for any master.
    """
    slot, source = key_slot(key.encode()), nodes.master_of(key)
    target = to or next(node for node in nodes.masters() if node != source)
    ids = []
    for node in (source, target):
        with connect_node(node) as client:
            ids.append(str(client.execute_command("CLUSTER", "MYID")))
    with connect_node(target) as client:
        client.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])

    def move_keys() -> None:
        with connect_node(source) as client:
            while result := client.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 100):
                to = ("127.0.0.1", target.port, "", 0, 5000)
                client.execute_command("MIGRATE", *to, "KEYS", *result)

    def end() -> None:
        move_keys()
        for node in (target, *nodes.masters()):
            with connect_node(node) as client:
                client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", ids[1])

    with connect_node(source) as client:
        client.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
    if all_keys:
        move_keys()
    return end


def events(out: str, name: str) -> list[dict[str, object]]:
    """Return the log lines of one event."""
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]


Pair = tuple[Kind, Target, int]  # kind, target, actor


@dataclass
class Toggles:
    """Alternating requests for the same few reactions, by one client that waits for each answer."""

    ledgers: dict[Pair, Ledger]
    on: dict[Pair, bool] = field(default_factory=dict)

    def run_for(self, for_s: float) -> None:
        """Request the opposite of each state repeatedly, and read each state."""
        until_s = time.monotonic() + for_s
        while True:
            for pair in self.ledgers:
                self.toggle(pair)
                self.read_state(pair)
            if time.monotonic() > until_s:
                return

    def toggle(self, pair: Pair, on: bool | None = None) -> int:
        """Request the opposite of the last state, or ``on``. Returns the status.

        A request that is refused by the limit of changes is repeated as if a minute had passed.
        """
        kind, target, actor = pair
        self.on[pair] = not self.on.get(pair, False) if on is None else on
        began_s, status, changed = time.monotonic(), 503, None
        try:
            if kind == FOLLOW:
                change = follows.follow if self.on[pair] else follows.unfollow
                outcome = change(target.id, actor)
            else:
                outcome = react.react(kind, target, actor, self.on[pair])
            status, changed = (200 if outcome.exact else 202), outcome.changed
        except TooManyChanges:
            with suppress(Unavailable):
                redis.execute("DEL", redis_keys.keys_of(kind.name, target).toggles)
            return self.toggle(pair, self.on[pair])
        except Unavailable:
            pass
        request = Request(began_s, time.monotonic(), self.on[pair], status, changed)
        self.ledgers[pair].add(request)
        return status

    def read_state(self, pair: Pair) -> None:
        """Read the actor's own state."""
        kind, target, actor = pair
        with suppress(Unavailable):
            [result], exact = queries.read_counts([(kind, target)], actor)
            if exact:
                self.ledgers[pair].observe(result.viewer_state)

    def find_violations(self) -> list[str]:
        """Return wrong answers, and rows and states that differ from the last answers."""
        saved = set(
            mysql.fetch_all(
                "SELECT kind, target_type, target_id, actor_id FROM reaction WHERE state = 1"
            )
        )
        broken = []
        for (kind, target, actor), ledger in self.ledgers.items():
            row = (kind.name, *target, actor) in saved
            [result], _ = queries.read_counts([(kind, target)], actor)
            problems = [*ledger.wrong, *find_violations(ledger, row, result.viewer_state)]
            broken += [f"{kind.name} of {target} by {actor}: {problem}" for problem in problems]
        return broken


@pytest.fixture
def toggles(traffic: Traffic) -> Toggles:
    """Return likes, collects and follows, over all masters."""
    actors = range(501, 505)
    followees = [Target("user", user_id) for user_id in range(601, 609)]
    values = ", ".join(["(%s, 'ada')"] * (len(actors) + len(followees)))
    mysql.write(
        f"INSERT INTO user (id, nickname) VALUES {values}",
        (*actors, *(target.id for target in followees)),
    )
    pairs = [
        *((LIKE, post, actors[0]) for post in POSTS[:8]),
        *((COLLECT, post, actors[1]) for post in POSTS[:8]),
        *((FOLLOW, followee, actors[2]) for followee in followees),
    ]
    made = Toggles({pair: Ledger() for pair in pairs})
    for pair in pairs:
        assert made.toggle(pair) == 200
    return made
