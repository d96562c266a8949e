"""Test bed of the matrix: a stack behind a proxy, and users with known counts."""

from __future__ import annotations

import contextlib
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from cli.paths import CommandError
from local.load.flash_sale import create_voucher
from local.stack import sms
from local.stack.processes import wait_until
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from local.stack.tokens import create_users, open_sessions
from plaza.commerce.checkins import daily_checkin
from plaza.commerce.flash_sales.redis_keys import state_key
from plaza.core.reactions import FOLLOW, Target, queries
from plaza.people.auth import session_lookup
from tests.chaos.faults import Faults
from tests.chaos.proxy import Proxy
from tests.chaos.returns import Returns
from tests.chaos.traffic import (
    MAX_TARGETS,
    Address,
    CheckIns,
    ClientReaction,
    Feeds,
    Follows,
    Likes,
    Operation,
    Orders,
    Reads,
    SignIns,
    Toggles,
)
from tests.support.plaza import forget

AUTHORS = (7_100_001, 7_100_002)
POSTER = 7_100_101  # an author without followers
FANS = range(7_100_031, 7_100_051)  # users who like
READER = 7_100_021
# Toggled reactions of each kind: enough that each stays below the limit of changes.
TOGGLED = 12
TOGGLERS = range(7_100_061, 7_100_061 + 3 * TOGGLED)
FIRST_FOLLOWEE = 7_400_001
FIRST_POST = 7_200_001
FIRST_BUYER = 7_300_001
STOCK = 1_000_000
SMALL_STOCK = 4
_POSTS_PER_CELL = 60
_BUYERS_PER_CELL = 800
_RETURNERS_PER_CELL = 400
_NEWCOMERS_PER_CELL = 300
_POSTS_PER_SWAP = 300
_FOLLOWEES_PER_SWAP = 300
_VISITORS_PER_SWAP = 400
_WORKERS = 8  # one for each operation; one of them uses two devices
# Seconds. Orders wait for five minutes in production; a request may hang for ten.
_PARAMETERS = {"ResendOrdersAfter": "20", "AnnounceDelay": "15"}


class Harness:
    """Users and their data, created once; ``open_cell`` returns the operations of one cell."""

    def __init__(self, stack: Stack, proxy: Proxy) -> None:
        self.stack = stack
        self.proxy = proxy
        parts = urlsplit(stack.base_url)
        self.address = Address(parts.hostname or "", parts.port or 0)
        self._posts = itertools.count(FIRST_POST)
        self._buyers = itertools.count(FIRST_BUYER)
        self._newcomers = itertools.count(1)
        self._followees = itertools.count(FIRST_FOLLOWEE)
        self._redis_url = ""
        self._follow_redis()
        self.fans = dict(zip(FANS, open_sessions(stack, FANS), strict=True))
        self.togglers = dict(zip(TOGGLERS, open_sessions(stack, TOGGLERS), strict=True))
        [self.reader] = open_sessions(stack, [READER])
        create_users(stack.mysql_url, [POSTER])
        self.voucher = create_voucher(stack, STOCK)
        self.faults = Faults(stack, proxy, state_key(self.voucher))
        self._known = self._like_known_posts()
        self._feed = self._fill_a_feed()
        self._start_workers()

    def rows(self, sql: str, *args: object) -> Sequence[tuple[Any, ...]]:
        """Run a statement on the stack's MySQL, on a connection of its own."""
        with closing(connect_mysql(self.stack.mysql_url)) as connection:
            connection.autocommit(True)
            with connection.cursor() as cursor:
                cursor.execute(sql, args)
                return tuple(cursor.fetchall())

    def open_cell(self) -> list[Operation]:
        """Return every operation, on new posts, buyers and phones."""
        likes, orders, toggles, returns = self.open_pairs()
        return [
            likes,
            *self._bring_reads(),
            orders,
            SignIns(self.address, self._bring_newcomers(), self.read_code),
            toggles,
            returns,
        ]

    def open_swaps(self) -> list[Operation]:
        """Return the operations of a failover there and back. Redis has loaded all that they
        touch, and most of it is touched once."""
        self._follow_redis()
        likes = self._bring_likes(_POSTS_PER_SWAP)
        followees = list(itertools.islice(self._followees, _FOLLOWEES_PER_SWAP))
        create_users(self.stack.mysql_url, followees)
        queries.read_counts([(FOLLOW, Target("user", user)) for user in followees], None)
        visitors = self._bring_buyers(_VISITORS_PER_SWAP)
        month = datetime.now(UTC).date().replace(day=1)
        for visitor in visitors:
            daily_checkin.read_month(visitor, month)
        return [
            likes,
            Follows(self.address, self.fans, followees, []),
            CheckIns(self.address, visitors),
            Orders(self.address, self._bring_buyers(_BUYERS_PER_CELL), self.voucher),
            *self._bring_reads(),
            self._bring_toggles(),
        ]

    def open_pairs(self) -> tuple[Likes, Orders, Toggles, Returns]:
        """Return the operations that change counted data, on new posts and buyers."""
        self._follow_redis()
        return (
            self._bring_likes(_POSTS_PER_CELL),
            Orders(self.address, self._bring_buyers(_BUYERS_PER_CELL), self.voucher),
            self._bring_toggles(),
            Returns(
                self.address,
                self._bring_buyers(_RETURNERS_PER_CELL),
                create_voucher(self.stack, SMALL_STOCK),
                SMALL_STOCK,
            ),
        )

    def read_code(self, phone: str) -> str | None:
        """Return the code that was sent to a phone; None when it has expired."""
        for _ in range(5):
            self._follow_redis()  # the one that this process knows may have become a replica
            with contextlib.suppress(CommandError):
                return sms.read_code(self.stack, phone)
            time.sleep(0.5)
        return None

    def _follow_redis(self) -> None:
        """Make this process use the current Redis."""
        if self.stack.redis_url != self._redis_url:
            self._redis_url = self.stack.redis_url
            os.environ.update(self.stack.environment())
            forget()

    def _like_known_posts(self) -> dict[int, tuple[int, bool]]:
        """Create posts with as many likes as their index; the reader likes every other one."""
        posts = self._add_posts(10)
        known = {}
        for index, post in enumerate(posts):
            likers = [self.reader] * (index % 2) + list(self.fans.values())[: index % 4]
            for token in likers:
                self._do("PUT", f"/posts/{post}/likes/me", token)
            known[post] = (len(likers), bool(index % 2))
        total = sum(likes for likes, _ in known.values())
        wait_for("the known likes are saved", lambda: self._count_likes(posts) == total)
        return known

    def _fill_a_feed(self) -> list[str]:
        """Let the reader follow authors with posts. Returns the posts' ids, newest first."""
        text = {"kind": "note", "title": "Noodles", "body": "Thick ones.", "images": []}
        written = []
        for author, token in zip(AUTHORS, open_sessions(self.stack, AUTHORS), strict=True):
            self._do("PUT", f"/users/{author}/followers/me", self.reader)
            written += [self._do("POST", "/posts", token, text)["id"] for _ in range(4)]
        expected = sorted(written, key=int, reverse=True)

        def is_there() -> bool:
            items = self._do("GET", "/feed?limit=20", self.reader)["items"]
            return [item["id"] for item in items] == expected

        wait_for("the feed is filled", is_there)
        return expected

    def _start_workers(self) -> None:
        """Start enough workers for a slow part, so that no cold starts are measured."""
        question = {"targets": [{"type": "post", "id": str(post)} for post in self._known]}
        part = "mysql" if self.stack.redis_cluster else "redis"
        self.proxy.set(part, "slow", delay_s=0.4)
        for _ in range(2):
            with ThreadPoolExecutor(_WORKERS) as pool:
                for _ in range(_WORKERS):
                    pool.submit(self._do, "POST", "/reactions/query", self.reader, question)
        self.proxy.set(part, "pass")

    def _add_posts(self, count: int) -> list[int]:
        posts = list(itertools.islice(self._posts, count))
        values = ", ".join(["('post', %s, %s, 'note', 'Noodles', 'Thick ones.')"] * count)
        self.rows(
            "INSERT INTO content (content_type, content_id, author_id, kind, title, body)"
            f" VALUES {values}",
            *(part for post in posts for part in (post, POSTER)),
        )
        self.rows(
            "INSERT INTO user_counter (user_id, posts_total, version) VALUES (%s, %s, 1)"
            " ON DUPLICATE KEY UPDATE posts_total = posts_total + VALUES(posts_total),"
            " version = version + 1",
            POSTER,
            count,
        )
        return posts

    def _bring_likes(self, count: int) -> Likes:
        """Return likes of new posts."""
        posts = self._add_posts(count)
        old = list(itertools.islice(itertools.product(self.fans, posts), 24))
        for user, post in old:
            self._do("PUT", f"/posts/{post}/likes/me", self.fans[user])
        self._warm(posts)
        wait_for("the old likes are saved", lambda: self._count_likes(posts) == len(old))
        return Likes(self.address, self.fans, posts, old)

    def _bring_reads(self) -> tuple[Reads, Feeds]:
        """Return the operations that only read."""
        for post in self._known:
            self._do("GET", f"/posts/{post}", self.reader)
        return (
            Reads(self.address, self.reader, self._known),
            Feeds(self.address, self.reader, self._feed),
        )

    def _warm(self, posts: Sequence[int]) -> None:
        """Load posts and the sessions of their likers into Redis."""
        parts = [posts[start : start + MAX_TARGETS] for start in range(0, len(posts), MAX_TARGETS)]
        for token, part in zip(self.fans.values(), itertools.cycle(parts), strict=False):
            question = {"targets": [{"type": "post", "id": str(post)} for post in part]}
            self._do("POST", "/reactions/query", token, question)

    def _count_likes(self, posts: Sequence[int]) -> int:
        values = ", ".join(["%s"] * len(posts))
        [(count,)] = self.rows(
            "SELECT COUNT(*) FROM reaction WHERE target_type = 'post' AND kind = 'like'"
            f" AND state = 1 AND target_id IN ({values})",
            *posts,
        )
        return int(count)

    def _bring_buyers(self, count: int) -> Mapping[int, str]:
        """Create users with sessions in Redis, as active users have them."""
        buyers = list(itertools.islice(self._buyers, count))
        tokens = open_sessions(self.stack, buyers)
        for token in tokens:
            session_lookup.find_session(token)
        return dict(zip(buyers, tokens, strict=True))

    def _bring_toggles(self) -> Toggles:
        """Return reactions of each kind, of new users, for one client and for two devices."""
        posts = self._add_posts(TOGGLED)
        followees = list(itertools.islice(self._followees, TOGGLED))
        create_users(self.stack.mysql_url, followees)
        reactions = [
            ClientReaction(kind, user_id, item_id)
            for index, (kind, items) in enumerate(
                (("like", posts), ("collect", posts), ("follow", followees))
            )
            for user_id, item_id in zip(TOGGLERS[TOGGLED * index :], items, strict=False)
        ]
        losses = self.faults.losses
        toggles = Toggles(self.address, self.togglers, reactions[::2], reactions[1::2], losses)
        toggles.begin()
        return toggles

    def _bring_newcomers(self) -> list[tuple[str, str]]:
        numbers = itertools.islice(self._newcomers, _NEWCOMERS_PER_CELL)
        return [(f"+8613900{n:06}", f"127.90.{n // 250}.{n % 250 + 1}") for n in numbers]

    def _do(self, method: str, path: str, token: str, body: Any = None) -> Any:
        """Run each operation until it works."""
        results: list[Any] = []

        def works() -> bool:
            reply = self.address.ask(method, path, token, body)
            results[:] = [reply]
            return 200 <= reply.status < 300

        try:
            wait_for(f"{method} {path} works", works)
        except CommandError as error:
            raise CommandError(f"{error}; it answers {results[:1]}") from None
        return results[0].body


def wait_for(what: str, condition: Callable[[], bool], timeout_s: float = 240) -> None:
    """Wait for a condition. Raises CommandError that names it."""
    if not wait_until(condition, timeout_s, 0.1):
        raise CommandError(f"waited {timeout_s:g} s: {what}")


@contextlib.contextmanager
def set_up(
    directory: Path, on_progress: Callable[[str], None], *, redis_cluster: bool = False
) -> Iterator[Harness]:
    """Yield a test bed; end it, and restore the environment, which would name its Redis."""
    environment = dict(os.environ)
    stack = Stack(directory)
    stack.down()  # leftovers of a killed run

    with Proxy() as proxy:

        def lead(part: str, url: str) -> str:
            parts = urlsplit(url)
            port = proxy.add_route(part, parts.port or 0)
            host = (parts.netloc.rpartition(":")[0]) + f":{port}"
            return urlunsplit(parts._replace(netloc=host))

        try:
            on_progress(f"starting a stack in {directory.name} ...")
            stack.up(
                for_tests=True, redis_cluster=redis_cluster, map_url=lead, parameters=_PARAMETERS
            )
            yield Harness(stack, proxy)
        finally:
            with contextlib.suppress(CommandError):
                stack.down()
            os.environ.clear()
            os.environ.update(environment)
