"""The feed on a graph of follows: it equals the feed by MySQL, in order.

PLAZA_FEED_USERS is the number of users that scroll (default 5), PLAZA_FEED_POSTS the number of
posts before the test (default 500), PLAZA_FEED_FOLLOWS a gzipped file of follows (``follower_id,
followee_id``) instead of a generated graph. The complete proof takes some minutes:

    PLAZA_FEED_USERS=500 PLAZA_FEED_POSTS=1500 PLAZA_FEED_FOLLOWS=../shared/data/follows.csv.gz \\
        python -m pytest -q tests/integration/social/feed/test_feed_graph.py
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

from plaza.core.reactions import FOLLOW, Target, react
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.social.content import commands
from plaza.social.content.queues import FANOUTS, FanOut
from plaza.social.feed import queries, redis_store
from plaza.social.feed.model import Timeline
from tests.support.feeds import BASE_US, expected_feed, ids, insert_follows, insert_posts, scroll
from tests.support.plaza import World
from tests.support.stores import add_users

SetUp = Callable[..., None]
SCROLLING = int(os.environ.get("PLAZA_FEED_USERS", "5"))
POSTS = int(os.environ.get("PLAZA_FEED_POSTS", "500"))
FILE = os.environ.get("PLAZA_FEED_FOLLOWS")
DAY_US = 86_400_000_000


class Graph:
    """A graph of follows, and a clock for posts."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = random.Random(4)
        self.pairs = sorted(_read(FILE) if FILE else _generate(self.rng))
        followers = Counter(author for _, author in self.pairs)
        self.authors, self.weights = list(followers), list(followers.values())
        self.users = sorted({reader for reader, _ in self.pairs})
        self.ids = count(1_000_001)
        self.now_us = BASE_US

    def pick_author(self) -> int:
        return self.rng.choices(self.authors, self.weights)[0]

    def write_history(self, number: int) -> None:
        """Insert posts of the last 300 days, nine of ten in the last 30, many at equal times."""
        posts = []
        for post_id in [next(self.ids) for _ in range(number)]:
            days = self.rng.choice((300, *([30] * 9))) * self.rng.random()
            at_us = BASE_US - int(days * 24) * DAY_US // 24
            posts.append((post_id, self.pick_author(), at_us))
        insert_posts(posts)

    def post(self, number: int = 1) -> None:
        """Insert and fan out posts; two in three share the time of another."""
        posts = []
        for post_id in [next(self.ids) for _ in range(number)]:
            self.now_us += self.rng.random() < 0.3
            posts.append((post_id, self.pick_author(), self.now_us))
        insert_posts(posts)
        bodies = [FANOUTS.encode(FanOut(post_id)) for post_id, _, _ in posts]
        self.rng.shuffle(bodies)
        self.world.queues.send_all(FANOUTS, bodies)
        self.world.queues.drain()

    def build_inboxes(self) -> list[int]:
        """Build the inboxes of random users; return the users."""
        users = self.rng.sample(self.users, min(SCROLLING, len(self.users)))
        for user in users:
            queries.read_feed(user, None, 7)
        self.world.queues.drain()
        return users

    def check(self, users: list[int]) -> None:
        """Scroll the feed of each user in pages of seven, with a new post after every third."""
        pages = count(1)

        def post_at_times() -> None:
            if next(pages) % 3 == 0:
                self.post()

        for user in users:
            before = expected_feed(user)
            result = ids(scroll(user, 7, meanwhile=post_at_times))
            assert result == before, f"the feed of {user}"


def _read(path: str) -> set[tuple[int, int]]:
    with gzip.open(path, "rt") as file:
        return {
            (int(row["follower_id"]), int(row["followee_id"]))
            for row in csv.DictReader(file)
            if row["follower_id"] != row["followee_id"]
        }


def _generate(rng: random.Random) -> set[tuple[int, int]]:
    """Return the follows of 2,000 users; a few have hundreds of followers, most have few."""
    users = range(1, 2001)
    weights = [1 / rank for rank in users]
    pairs = set()
    for reader in users:
        for author in rng.choices(users, weights, k=min(int(rng.paretovariate(0.9)) + 3, 200)):
            if reader != author:
                pairs.add((reader, author))
    return pairs


@pytest.fixture
def graph(plaza: World) -> Graph:
    graph = Graph(plaza)
    insert_follows(graph.pairs)
    add_users(*graph.users, *(set(graph.authors) - set(graph.users)))
    graph.write_history(POSTS)
    return graph


@pytest.mark.parametrize("limit", [10_000, 50], ids=["push", "push and pull"])
def test_scrolling_during_new_posts_equals_the_feed_by_mysql(
    graph: Graph, set_up: SetUp, limit: int
) -> None:
    set_up(fan_out_limit=limit)
    users = graph.build_inboxes()
    graph.post(100)
    graph.check(users)
    celebrities = mysql.fetch_all("SELECT COUNT(*) FROM celebrity")[0][0]
    assert (celebrities > 0) == (limit == 50)
    redis.execute("FLUSHALL")
    part = users[: SCROLLING // 2]
    graph.check(part)  # from MySQL, while inboxes are rebuilt
    graph.world.queues.drain()
    graph.check(part)


@pytest.mark.parametrize("limit", [10_000, 50], ids=["push", "push and pull"])
def test_the_feed_is_complete_after_trims_follows_unfollows_and_deletions(
    graph: Graph, set_up: SetUp, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(Timeline, "cap", 40)
    set_up(fan_out_limit=limit)
    users = graph.build_inboxes()[: max(SCROLLING // 2, 1)]
    graph.post(100)
    for user in users:
        for on in (True, True, False):
            author = graph.pick_author()
            if author != user:
                react.react(FOLLOW, Target("user", author), user, on)
    graph.world.queues.drain()
    for post_id, author in mysql.fetch_all(
        "SELECT content_id, author_id FROM content WHERE MOD(content_id, 7) = 3"
        " ORDER BY created_at DESC LIMIT 50"
    ):
        commands.delete(Target("post", post_id), author)
    graph.check(users)
    inboxes = [Timeline("inbox", user) for user in users]
    floors = [page.floor_us for page in redis_store.read_pages(inboxes, None, 1)]
    assert max(floors) > 1, "an inbox was trimmed"
