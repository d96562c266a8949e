"""The feed under every kind of trouble at once: when it is quiet, it is what MySQL says, in order.

And somebody who scrolls while all of that goes on sees, once and in order, whatever was there
when they began and stayed.

Each run is one seed, as in test_reactions_model.py: PLAZA_MODEL_RUNS (default 120) and
PLAZA_MODEL_SEED. Timelines are tiny, so that they are cut, and followers come in pages of two.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from local.stack.queue_registry import load_queues
from plaza.content import ListPosition, publish
from plaza.content import commands as content_commands
from plaza.content.model import Text
from plaza.feed import apply_follows, fan_out, redis_store
from plaza.feed import queries as feed_queries
from plaza.feed.model import Timeline
from plaza.infra import mysql, redis, settings
from plaza.infra.errors import PlazaError, Unavailable
from plaza.infra.process import clear_caches
from plaza.reactions import FOLLOW, Target, react, sweep
from plaza.targets import announce
from plaza.targets import queues as targets_queues
from tests.model.scheduler import Scheduler
from tests.support.feeds import BASE_US, insert_posts, scroll, truth
from tests.support.keyspace import find_keys
from tests.support.plaza import FakeQueues, World, decode, forget
from tests.support.stores import add_users

RUNS = int(os.environ.get("PLAZA_MODEL_RUNS", "120"))
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))
QUIET_S = 30
STEPS = 350
USERS = range(1, 8)
AUTHORS = (1, 2, 3)
MAX_ALIVE = 6


@dataclass
class Trouble:
    """Which troubles a run may meet, and how often, per step."""

    kill: float = 0.0
    duplicate: float = 0.0
    lost_publish: float = 0.0
    forget: float = 0.0
    flush: float = 0.0
    redis_away: float = 0.0


TROUBLES = {
    "crowd": Trouble(),
    "kills": Trouble(kill=0.03, duplicate=0.3),
    "queue": Trouble(duplicate=0.3, lost_publish=0.1),
    "losses": Trouble(forget=0.03, flush=0.006, duplicate=0.2),
    "all": Trouble(0.02, 0.3, 0.05, 0.02, 0.004, 0.02),
}


@dataclass
class Run:
    """One run: a few users who follow, post, delete and read."""

    seed: int
    trouble: Trouble
    world: World
    scheduler: Scheduler
    writing: int = 0
    posts: int = 0
    scroller: int = 0
    moved: set[int] = field(default_factory=set)  # whom the scroller began or ceased to follow
    log: list[str] = field(default_factory=list)

    @property
    def queues(self) -> FakeQueues:
        return self.world.queues

    @property
    def rng(self) -> random.Random:
        return self.scheduler.rng

    def note(self, what: str) -> None:
        self.log.append(what)

    # -- what people do

    def post(self) -> None:
        """Times run on slowly and not in the order of commits: many are equal."""
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
                found = mysql.fetch_all(
                    "SELECT author_id FROM content WHERE content_id = %s", (post_id,)
                )
                content_commands.delete(Target("post", post_id), found[0][0] if found else 1)
                self.note(f"deleted {post_id}")

        self.scheduler.spawn(request)

    def follow(self) -> None:
        who, whom, on = self.rng.choice(USERS), self.rng.choice(AUTHORS), self.rng.random() < 0.6

        if who == self.scroller:
            self.moved.add(whom)

        def request() -> None:
            with suppress(Unavailable):
                react.react(FOLLOW, Target("user", whom), who, on)
                self.note(f"{who} {'+' if on else '-'} {whom}")

        self.scheduler.spawn(request)

    def read(self) -> None:
        user, pages, size = self.rng.choice(USERS), self.rng.randint(1, 4), self.rng.randint(1, 4)

        def request() -> None:
            with suppress(Unavailable):
                after: ListPosition | None = None
                for _ in range(pages):
                    _, after = feed_queries.read_feed(user, after, size)
                    if after is None:
                        break
                self.note(f"{user} read")

        self.scheduler.spawn(request)

    # -- what consumers do

    def consume(self, queue: str) -> None:
        """A batch in any order, deleted from the queue only when it is done, and not even then."""
        waiting = self.queues.messages[queue]
        batch = self.rng.sample(waiting, self.rng.randint(1, min(len(waiting), 3)))

        def work() -> None:
            with suppress(Unavailable):
                self.do(queue, batch)
                self.note(f"{queue}: {batch}")
                if self.rng.random() >= self.trouble.duplicate:
                    for body in set(batch):
                        with suppress(ValueError):
                            waiting.remove(body)

        self.scheduler.spawn(work)

    def do(self, name: str, batch: list[str]) -> None:
        queue = load_queues()[name]
        queue.handle([decode(queue, body) for body in batch])

    # -- what happens

    def lose_a_timeline(self) -> None:
        if keys := [*find_keys("*:inbox"), *find_keys("*:posts")]:
            self.note(f"lost {keys[0]}")
            redis.execute("DEL", self.rng.choice(sorted(keys)))

    def turn(self) -> None:
        """One step of anybody."""
        rng, trouble, alive = self.rng, self.trouble, self.scheduler.alive
        if rng.random() < trouble.flush:
            self.note("FLUSHALL")
            redis.execute("FLUSHALL")
        if rng.random() < trouble.forget:
            self.lose_a_timeline()
        if rng.random() < trouble.redis_away:
            self.scheduler.redis_away = not self.scheduler.redis_away
        self.queues.away = rng.random() < trouble.lost_publish
        if alive and rng.random() < trouble.kill:
            self.note("KILL")
            self.scheduler.kill()
        elif len(alive) < MAX_ALIVE and rng.random() < 0.35:
            doings = [self.post] * 3 + [self.follow] * 3 + [self.read] * 4
            if self.posts:
                doings.append(self.delete)
            for queue, waiting in self.queues.messages.items():
                # A refresh comes when what it was announced for is done, or never will be.
                if waiting and not (queue == targets_queues.REFRESHES.name and self.writing):
                    doings += [lambda queue=queue: self.consume(queue)] * 3  # type: ignore[misc]
            rng.choice(doings)()
        elif alive:
            self.scheduler.step()

    def calm_down(self) -> None:
        """Nothing goes wrong any more: everybody ends, and all that waits is done."""
        self.queues.away = self.scheduler.redis_away = False
        self.scheduler.finish()
        if self.trouble.lost_publish and self.trouble.redis_away:
            # Of a deletion while both are away, Redis hears when the text's projection runs out.
            for key in find_keys("*:text"):
                redis.execute("DEL", key)
        deadline_s = time.monotonic() + QUIET_S
        while time.monotonic() < deadline_s:  # a lost commit is noticed after a second
            self.queues.drain()
            self.world.let_sweeps_be_due()
            published = publish.publish_unsent()
            swept = sweep.sweep_outbox(grace_us=0)
            if published + swept == 0 and not any(self.queues.messages.values()):
                return
        raise AssertionError("it never went quiet")


def check(run: Run) -> None:
    """Everybody's feed is what MySQL says; the second time without having been asked for before."""
    for _ in range(2):
        clear_caches()  # a process may show for a second what another deleted
        for user in USERS:
            found = [whole.text.id for whole in scroll(user, run.rng.randint(1, 4))]
            assert found == truth(user), f"the feed of {user}"
        run.queues.drain()


def check_scroll(run: Run) -> None:
    """Somebody scrolls while all goes on: what was there and stayed is seen, once and in order."""
    run.scroller, size = run.rng.choice(USERS), run.rng.randint(1, 3)
    before = truth(run.scroller)
    seen: list[Text] = []
    ended: list[bool] = []

    def request() -> None:
        after: ListPosition | None = None
        while not ended:
            with suppress(Unavailable):
                page, after = feed_queries.read_feed(run.scroller, after, size)
                seen.extend(whole.text for whole in page)
                ended.extend([True] if after is None else [])
            run.scheduler.pause()

    run.scheduler.spawn(request)
    reader = run.scheduler.alive[-1]
    while not ended and reader in run.scheduler.alive:
        run.turn()
    run.calm_down()
    if not ended:
        return  # killed
    places = [(text.created_us, text.id) for text in seen]
    assert places == sorted(set(places), reverse=True), "in order, each once"
    stayed = set(before) & set(truth(run.scroller))
    steady = {post for post in stayed if author_of(post) not in run.moved}
    assert steady <= {text.id for text in seen}, f"{run.scroller} missed posts"


def author_of(post_id: int) -> int:
    sql = "SELECT author_id FROM content WHERE content_id = %s"
    return int(mysql.fetch_all(sql, (post_id,))[0][0])


@pytest.mark.parametrize("trouble", TROUBLES)
def test_when_it_is_quiet_every_feed_is_what_mysql_says(
    trouble: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAZA_FAN_OUT_LIMIT", "3")
    monkeypatch.setattr(Timeline, "cap", 6)
    monkeypatch.setattr(fan_out, "PAGE", 2)
    monkeypatch.setattr(apply_follows, "BACKFILL", 3)
    monkeypatch.setattr(redis_store, "MIN_REBUILD_AGE_US", 1)
    monkeypatch.setattr(redis_store, "REQUEST_INTERVAL_US", 1)
    forget()
    assert settings.settings().fan_out_limit == 3
    add_users(*USERS)
    for n in range(RUNS // len(TROUBLES)):
        seed = FIRST + n + 1
        for table in (
            "reaction",
            "reaction_log",
            "content",
            "content_counter",
            "user_counter",
            "star",
        ):
            mysql.write(f"DELETE FROM {table}")
        redis.execute("FLUSHALL")
        plaza.queues.messages.clear()
        clear_caches()
        with monkeypatch.context() as patch:
            rng = random.Random(seed)
            patch.setattr(redis_store, "REBUILD_AFTER_US", rng.choice((1, 10**12)))
            run = Run(seed, TROUBLES[trouble], plaza, Scheduler(rng))
            run.scheduler.hook(patch)
            try:
                for _ in range(STEPS):
                    run.turn()
                run.calm_down()
                check(run)
                check_scroll(run)
                check(run)
            except AssertionError as error:
                raise AssertionError(
                    f"PLAZA_MODEL_SEED={seed - 1} -k {trouble}: {error}\n"
                    + "\n".join(run.log[-80:])
                ) from error
