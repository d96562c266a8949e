"""The feed under random failures: after recovery it equals the feed by MySQL, in order.

A reader that scrolls during the failures gets, once and in order, all posts that exist from its
first page to its last. Each run is one seed, as in test_reactions_model.py: PLAZA_MODEL_RUNS
(default 24) and PLAZA_MODEL_SEED. Timelines are tiny, so that they are trimmed, and a page of
followers has two.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from local.stack.queue_registry import load_queues
from plaza.core.reactions import FOLLOW, Target, react, sweep
from plaza.core.targets import announce
from plaza.core.targets import queues as targets_queues
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.errors import PlazaError, Unavailable
from plaza.infra.runtime.process import clear_caches
from plaza.social.content import commands as content_commands
from plaza.social.content import publish
from plaza.social.content.model import ListCursor, Text
from plaza.social.feed import apply_follows, fan_out, older_posts, redis_store
from plaza.social.feed import queries as feed_queries
from plaza.social.feed.model import Timeline
from plaza.social.feed.settings import feed_settings
from tests.model.reactions_model import shorten_gaps
from tests.model.scheduler import Scheduler
from tests.support.depth import read_count
from tests.support.feeds import BASE_US, expected_feed, insert_posts, scroll
from tests.support.keyspace import find_keys
from tests.support.plaza import FakeQueues, World, decode, forget
from tests.support.stores import add_users

RUNS = read_count("PLAZA_MODEL_RUNS", 8, 80)
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))
RECOVERY_S = 30
STEPS = 350
USERS = range(1, 8)
AUTHORS = (1, 2, 3)
MAX_ALIVE = 6


@dataclass
class Failures:
    """The probabilities of failures per step."""

    kill: float = 0.0
    duplicate: float = 0.0
    lost_publish: float = 0.0
    forget: float = 0.0
    flush: float = 0.0
    redis_away: float = 0.0


FAILURES = {
    "none": Failures(),
    "kills": Failures(kill=0.03, duplicate=0.3),
    "queue": Failures(duplicate=0.3, lost_publish=0.1),
    "losses": Failures(forget=0.03, flush=0.006, duplicate=0.2),
    "all": Failures(0.02, 0.3, 0.05, 0.02, 0.004, 0.02),
}


@dataclass
class Run:
    """One run: a few users follow, post, delete and read."""

    seed: int
    failures: Failures
    world: World
    scheduler: Scheduler
    writing: int = 0
    posts: int = 0
    scroller: int = 0
    changed_authors: set[int] = field(default_factory=set)  # followed or unfollowed by the scroller
    log: list[str] = field(default_factory=list)

    @property
    def queues(self) -> FakeQueues:
        return self.world.queues

    @property
    def rng(self) -> random.Random:
        return self.scheduler.rng

    def note(self, text: str) -> None:
        self.log.append(text)

    # -- requests

    def post(self) -> None:
        """Create a post; many have equal times, which are not in the order of commits."""
        self.posts += 1
        post_id, author = self.seed * 1000 + self.posts, self.rng.choice(AUTHORS)
        at_us = BASE_US + self.posts // 4 + self.rng.randint(-2, 2)

        def request() -> None:
            self.writing += 1
            try:
                announce.announce_write("post", post_id)
                insert_posts([(post_id, author, at_us)])
                self.note(f"{author} posted {post_id} at {at_us - BASE_US}")
                publish.publish([post_id])
            finally:
                self.writing -= 1

        self.scheduler.spawn(request)

    def delete(self) -> None:
        post_id = self.seed * 1000 + self.rng.randint(1, self.posts)

        def request() -> None:
            with suppress(PlazaError):
                rows = mysql.fetch_all(
                    "SELECT author_id FROM content WHERE content_id = %s", (post_id,)
                )
                content_commands.delete(Target("post", post_id), rows[0][0] if rows else 1)
                self.note(f"deleted {post_id}")

        self.scheduler.spawn(request)

    def follow(self) -> None:
        reader, author = self.rng.choice(USERS), self.rng.choice(AUTHORS)
        on = self.rng.random() < 0.6

        if reader == self.scroller:
            self.changed_authors.add(author)

        def request() -> None:
            with suppress(Unavailable):
                react.react(FOLLOW, Target("user", author), reader, on)
                self.note(f"{reader} {'+' if on else '-'} {author}")

        self.scheduler.spawn(request)

    def read(self) -> None:
        user, pages, size = self.rng.choice(USERS), self.rng.randint(1, 4), self.rng.randint(1, 4)

        def request() -> None:
            with suppress(Unavailable):
                after: ListCursor | None = None
                for _ in range(pages):
                    _, after = feed_queries.read_feed(user, after, size)
                    if after is None:
                        break
                self.note(f"{user} read")

        self.scheduler.spawn(request)

    # -- consumers

    def consume(self, queue: str) -> None:
        """Process a batch in any order; delete it afterwards, unless it is to be duplicated."""
        backlog = self.queues.messages[queue]
        batch = self.rng.sample(backlog, self.rng.randint(1, min(len(backlog), 3)))

        def work() -> None:
            with suppress(Unavailable):
                self.process(queue, batch)
                self.note(f"{queue}: {batch}")
                if self.rng.random() >= self.failures.duplicate:
                    for body in set(batch):
                        with suppress(ValueError):
                            backlog.remove(body)

        self.scheduler.spawn(work)

    def process(self, name: str, batch: list[str]) -> None:
        queue = load_queues()[name]
        queue.handle([decode(queue, body) for body in batch])

    # -- steps

    def lose_a_timeline(self) -> None:
        if keys := [*find_keys("*:inbox"), *find_keys("*:posts")]:
            self.note(f"lost {keys[0]}")
            redis.execute("DEL", self.rng.choice(sorted(keys)))

    def step(self) -> None:
        """Start a request or a consumer, continue one, or cause a failure."""
        rng, failures, alive = self.rng, self.failures, self.scheduler.alive
        if rng.random() < failures.flush:
            self.note("FLUSHALL")
            redis.execute("FLUSHALL")
        if rng.random() < failures.forget:
            self.lose_a_timeline()
        if rng.random() < failures.redis_away:
            self.scheduler.redis_away = not self.scheduler.redis_away
        self.queues.away = rng.random() < failures.lost_publish
        if alive and rng.random() < failures.kill:
            self.note("KILL")
            self.scheduler.kill()
        elif len(alive) < MAX_ALIVE and rng.random() < 0.35:
            actions = [self.post] * 3 + [self.follow] * 3 + [self.read] * 4
            if self.posts:
                actions.append(self.delete)
            for queue, backlog in self.queues.messages.items():
                # A refresh is delivered after its write has ended.
                if backlog and not (queue == targets_queues.REFRESHES.name and self.writing):
                    actions += [lambda queue=queue: self.consume(queue)] * 3  # type: ignore[misc]
            rng.choice(actions)()
        elif alive:
            self.scheduler.step()

    def recover(self) -> None:
        """End all failures and requests, and process all messages."""
        self.queues.away = self.scheduler.redis_away = False
        self.scheduler.finish()
        if self.failures.lost_publish and self.failures.redis_away:
            # A deletion without Redis and the queue is projected when the cached text expires.
            for key in find_keys("*:text"):
                redis.execute("DEL", key)
        deadline_s = time.monotonic() + RECOVERY_S
        while time.monotonic() < deadline_s:  # Redis waits for a missing commit
            self.queues.drain()
            self.world.let_sweeps_be_due()
            published = publish.publish_unsent()
            swept = sweep.sweep_outbox(resend_after_us=0)
            is_empty = not any(self.queues.messages.values())
            # A target that misses a commit stays in the index until it is loaded again.
            if published + swept == 0 and is_empty and not find_keys("{*}:outboxes"):
                return
        raise AssertionError("the queues or the outboxes do not empty")


def expire_older() -> None:
    """Let the time pass for which older posts are kept: new posts of the model have old times."""
    redis.pipeline(redis.delete_commands(redis_store.older_key(user) for user in USERS))


def check(run: Run) -> None:
    """Assert that each feed equals the feed by MySQL, before and after rebuilds."""
    for _ in range(2):
        expire_older()
        clear_caches()  # a process shows deleted texts for up to 1 s
        for user in USERS:
            ids = [view.text.id for view in scroll(user, run.rng.randint(1, 4), short=True)]
            assert ids == expected_feed(user), f"the feed of {user}"
        run.queues.drain()


def check_scroll(run: Run) -> None:
    """Assert that a reader that scrolls during failures gets the lasting posts, once, in order."""
    expire_older()
    run.scroller, size = run.rng.choice(USERS), run.rng.randint(1, 3)
    before = expected_feed(run.scroller)
    texts: list[Text] = []
    ended: list[bool] = []

    def request() -> None:
        after: ListCursor | None = None
        while not ended:
            with suppress(Unavailable):
                page, after = feed_queries.read_feed(run.scroller, after, size)
                texts.extend(view.text for view in page)
                ended.extend([True] if after is None else [])
            run.scheduler.pause()

    run.scheduler.spawn(request)
    reader = run.scheduler.alive[-1]
    while not ended and reader in run.scheduler.alive:
        run.step()
    run.recover()
    if not ended:
        return  # killed
    cursors = [(text.created_us, text.id) for text in texts]
    assert cursors == sorted(set(cursors), reverse=True), "in order, each once"
    live = set(before) & set(expected_feed(run.scroller))
    lasting = {post for post in live if author_of(post) not in run.changed_authors}
    assert lasting <= {text.id for text in texts}, f"{run.scroller} missed posts"


def author_of(post_id: int) -> int:
    sql = "SELECT author_id FROM content WHERE content_id = %s"
    return int(mysql.fetch_all(sql, (post_id,))[0][0])


@pytest.mark.sampled
@pytest.mark.parametrize("failures", FAILURES)
def test_every_feed_equals_the_feed_by_mysql_after_failures(
    failures: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_FAN_OUT_LIMIT", "3")
    monkeypatch.setattr(Timeline, "cap", 6)
    monkeypatch.setattr(fan_out, "PAGE", 2)
    monkeypatch.setattr(apply_follows, "BACKFILL", 3)
    monkeypatch.setattr(redis_store, "MIN_REBUILD_AGE_US", 1)
    monkeypatch.setattr(redis_store, "REQUEST_INTERVAL_US", 1)
    forget()
    assert feed_settings().fan_out_limit == 3
    add_users(*USERS)
    for n in range(max(1, RUNS // len(FAILURES))):
        seed = FIRST + n + 1
        for table in (
            "reaction",
            "reaction_log",
            "content",
            "counter",
            "user_counter",
            "celebrity",
        ):
            mysql.write(f"DELETE FROM {table}")
        redis.execute("FLUSHALL")
        plaza.queues.messages.clear()
        clear_caches()
        with monkeypatch.context() as patch:
            rng = random.Random(seed)
            patch.setattr(redis_store, "REBUILD_AFTER_US", rng.choice((1, 10**12)))
            patch.setattr(older_posts, "MAX_SEEKS", rng.choice((1, 2, 3)))
            patch.setattr(older_posts, "POSTS_AT_ONCE", rng.choice((2, 5, 400)))
            shorten_gaps(patch)
            run = Run(seed, FAILURES[failures], plaza, Scheduler(rng))
            run.scheduler.hook(patch)
            try:
                for _ in range(STEPS):
                    run.step()
                run.recover()
                check(run)
                check_scroll(run)
                check(run)
            except AssertionError as error:
                raise AssertionError(
                    f"PLAZA_MODEL_SEED={seed - 1} -k {failures}: {error}\n"
                    + "\n".join(run.log[-80:])
                ) from error
