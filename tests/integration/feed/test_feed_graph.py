"""The feed on a whole graph of people, with posts by degree: it is what MySQL says, in order.

PLAZA_FEED_USERS says how many users scroll (default 5), PLAZA_FEED_POSTS how many posts there are
before (default 500); PLAZA_FEED_FOLLOWS names a file of follows (``follower_id,followee_id``, gzip)
to take instead of a made-up graph. All that was proved takes this, and some minutes:

    PLAZA_FEED_USERS=500 PLAZA_FEED_POSTS=1500 PLAZA_FEED_FOLLOWS=../shared/data/follows.csv.gz \\
        python -m pytest -q tests/integration/feed/test_feed_graph.py
"""

from __future__ import annotations

import csv
import gzip
import os
import random
from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest

from plaza.content import commands
from plaza.content.queues import FANOUTS, FanOut
from plaza.feed import queries, redis_store
from plaza.feed.model import Timeline
from plaza.infra import mysql, redis
from plaza.reactions import FOLLOW, Target, react
from tests.support.feeds import BASE_US, ids, insert_follows, insert_posts, scroll, truth
from tests.support.plaza import World
from tests.support.stores import add_users

SetUp = Callable[..., None]
SCROLLING = int(os.environ.get("PLAZA_FEED_USERS", "5"))
POSTS = int(os.environ.get("PLAZA_FEED_POSTS", "500"))
FILE = os.environ.get("PLAZA_FEED_FOLLOWS")
DAY_US = 86_400_000_000


class Graph:
    """Who follows whom, and a clock by which they post."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = random.Random(4)
        self.pairs = sorted(_read(FILE) if FILE else _make_up(self.rng))
        followers = Counter(whom for _, whom in self.pairs)
        self.authors, self.weights = list(followers), list(followers.values())
        self.users = sorted({who for who, _ in self.pairs})
        self.ids = count(1_000_001)
        self.now_us = BASE_US

    def pick_author(self) -> int:
        return self.rng.choices(self.authors, self.weights)[0]

    def write_history(self, number: int) -> None:
        """Posts of the last 300 days, nine of ten in the last 30, many at equal times."""
        posts = []
        for post_id in [next(self.ids) for _ in range(number)]:
            days = self.rng.choice((300, *([30] * 9))) * self.rng.random()
            at_us = BASE_US - int(days * 24) * DAY_US // 24
            posts.append((post_id, self.pick_author(), at_us))
        insert_posts(posts)

    def post(self, number: int = 1) -> None:
        """People post, and it is fanned out; two in three posts share the time of another."""
        posts = []
        for post_id in [next(self.ids) for _ in range(number)]:
            self.now_us += self.rng.random() < 0.3
            posts.append((post_id, self.pick_author(), self.now_us))
        insert_posts(posts)
        bodies = [FanOut(post_id).to_json() for post_id, _, _ in posts]
        self.rng.shuffle(bodies)
        self.world.queues.send_all(FANOUTS, bodies)
        self.world.queues.drain()

    def come(self) -> list[int]:
        """Users who read their feed, so that they have an inbox."""
        users = self.rng.sample(self.users, min(SCROLLING, len(self.users)))
        for user in users:
            queries.read_feed(user, None, 7)
        self.world.queues.drain()
        return users

    def check(self, users: list[int]) -> None:
        """Each scrolls the whole feed in pages of seven; after every third page others post."""
        pages = count(1)

        def post_at_times() -> None:
            if next(pages) % 3 == 0:
                self.post()

        for user in users:
            before = truth(user)
            seen = ids(scroll(user, 7, meanwhile=post_at_times))
            assert seen == before, f"the feed of {user}"


def _read(path: str) -> set[tuple[int, int]]:
    with gzip.open(path, "rt") as file:
        return {
            (int(row["follower_id"]), int(row["followee_id"]))
            for row in csv.DictReader(file)
            if row["follower_id"] != row["followee_id"]
        }


def _make_up(rng: random.Random) -> set[tuple[int, int]]:
    """2,000 users; the most followed has some hundred followers, most have a few."""
    users = range(1, 2001)
    fame = [1 / rank for rank in users]
    pairs = set()
    for who in users:
        for whom in rng.choices(users, fame, k=min(int(rng.paretovariate(0.9)) + 3, 200)):
            if who != whom:
                pairs.add((who, whom))
    return pairs


@pytest.fixture
def graph(plaza: World) -> Graph:
    graph = Graph(plaza)
    insert_follows(graph.pairs)
    add_users(*graph.users, *(set(graph.authors) - set(graph.users)))
    graph.write_history(POSTS)
    return graph


@pytest.mark.parametrize("limit", [10_000, 50], ids=["push", "push and pull"])
def test_scrolling_while_others_post_gives_what_mysql_says(
    graph: Graph, set_up: SetUp, limit: int
) -> None:
    set_up(fan_out_limit=limit)
    users = graph.come()
    graph.post(100)
    graph.check(users)
    stars = mysql.fetch_all("SELECT COUNT(*) FROM star")[0][0]
    assert (stars > 0) == (limit == 50)
    redis.execute("FLUSHALL")
    some = users[: SCROLLING // 2]
    graph.check(some)  # from MySQL, and while inboxes come back
    graph.world.queues.drain()
    graph.check(some)


@pytest.mark.parametrize("limit", [10_000, 50], ids=["push", "push and pull"])
def test_the_feed_is_whole_after_cuts_follows_unfollows_and_deletions(
    graph: Graph, set_up: SetUp, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(Timeline, "cap", 40)
    set_up(fan_out_limit=limit)
    users = graph.come()[: max(SCROLLING // 2, 1)]
    graph.post(100)
    for user in users:
        for on in (True, True, False):
            whom = graph.pick_author()
            if whom != user:
                react.react(FOLLOW, Target("user", whom), user, on)
    graph.world.queues.drain()
    for post_id, author in mysql.fetch_all(
        "SELECT content_id, author_id FROM content WHERE MOD(content_id, 7) = 3"
        " ORDER BY created_at DESC LIMIT 50"
    ):
        commands.delete(Target("post", post_id), author)
    graph.check(users)
    cut = [redis_store.read_pages([Timeline("inbox", user)], None, 1)[0].floor_us for user in users]
    assert max(cut) > 1, "somebody's inbox was cut"
