"""CPU of Redis and MySQL for each GET route, at its worst honest input on a large data set.

The process has nothing in memory, so each request reads what it needs; Redis has loaded the targets
of the page. Pages of many targets are measured again when Redis has nothing. The goal is 20 ms a
store, for audits 20 ms for each token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from bench import feed
from bench.api import Event, Handler, load_handler
from bench.figures import Figure, Goal
from bench.harness import Harness
from bench.large_data import (
    ADMIN,
    AUTHOR,
    CITY_X,
    CITY_Y,
    COMMENT,
    FAN,
    FIRST_US,
    MIDDLE_US,
    ORDER,
    POST,
    READER,
    REVIEW,
    ROWS,
    SHOP,
    SHOPS_IN_CITY,
    VOUCHER,
    WRITER,
    fill,
)
from bench.meters import Cpu, cpu
from cli.paths import CommandError
from local.stack.functions import CONTEXT, make_api_event, make_plain_token
from plaza.commerce.shops.jobs import run_jobs
from plaza.commerce.shops.model import FILTER, PLACES, ShopJobStep
from plaza.commerce.shops.queues import SHOPS
from plaza.core.live import MAX_TARGETS
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.queues import sqs
from plaza.infra.redis import redis
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.process import clear_caches
from plaza.operate.operations import queue_admin
from plaza.social.feed import redis_store
from plaza.social.recommendations import post_rankings

REPEATS = 10
MAX_MS = 20.0
DAY_US = 86_400_000_000
OUTSIDE_X = CITY_X - 0.66  # 45 km outside
_POST_IDS = range(POST + 1, POST + 101)


@dataclass(frozen=True, slots=True)
class Case:
    """A request: its function, query and path parameters. ``moved`` returns the parameters of the
    query that differ in each request, so that no result is shared. ``before``: how often the
    request of a reader is sent before the one that is measured: they share the work of a page."""

    function: str
    query: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, int | str] = field(default_factory=dict)
    moved: Callable[[int], Mapping[str, Any]] | None = None
    before: int = 0


def _jump_in_feed(number: int) -> Mapping[str, Any]:
    """Return an old cursor: no two of 500 are within a day."""
    return {"cursor": pack_cursor(FIRST_US + (50 + number * 7_919 % 500) * DAY_US, POST)}


def _move_outside(number: int) -> Mapping[str, Any]:
    """Return a place some 11 m from the one before."""
    return {"x": round(OUTSIDE_X - number * 0.0002, 4)}


_DEEP = pack_cursor(MIDDLE_US, POST + ROWS // 2)
_OF_POST = {"post_id": POST + 1}
_OF_SHOP = {"shop_id": SHOP + 1}
_ALL = {"limit": 100}
CASES: dict[str, Case] = {
    "GET /checkins": Case("checkins", {"month": "2026-10"}),
    "GET /comments/{comment_id}": Case("content", {}, {"comment_id": COMMENT + 1}),
    "GET /comments/{comment_id}/likers": Case("reactions", _ALL, {"comment_id": COMMENT + 1}),
    "GET /feed": Case("feed", _ALL, moved=_jump_in_feed, before=2),
    "GET /health": Case("system"),
    "GET /openapi.json": Case("system"),
    "GET /ops/audit": Case(
        "reconciliation",
        {"target": f"post:{POST + 1},comment:{COMMENT + 1},review:{REVIEW + 1}", "limit": 50},
    ),
    "GET /ops/breakers": Case("operations"),
    "GET /ops/erasures": Case("accounts", _ALL),
    "GET /ops/events": Case("operations", {"limit": 1_000}),
    "GET /ops/health": Case("operations"),
    "GET /ops/keys": Case("operations"),
    "GET /ops/lag": Case("operations"),
    "GET /ops/queues": Case("operations"),
    "GET /ops/queues/{queue}/dead-letters": Case(
        "operations", {"limit": 10}, {"queue": "reactions"}
    ),
    "GET /ops/reach": Case("operations", {"days": 30}),
    "GET /ops/reconciliations": Case("reconciliation", _ALL),
    "GET /ops/reports": Case("moderation", _ALL),
    "GET /ops/reviews/{review_id}/score": Case("recommendations", {}, {"review_id": REVIEW + 1}),
    "GET /ops/series": Case("operations", {"minutes": 1_440}),
    "GET /ops/server-keys": Case("operations"),
    "GET /ops/switches": Case("operations"),
    "GET /ops/switches/changes": Case("operations", _ALL),
    "GET /ops/vouchers": Case("flash_sales", {**_ALL, "state": "running"}),
    "GET /orders/{order_id}": Case("flash_sales", {}, {"order_id": ORDER + 1}),
    "GET /passkeys": Case("auth"),
    "GET /posts": Case("content", {"ids": ",".join(map(str, _POST_IDS))}),
    "GET /posts/ranking": Case("recommendations", {**_ALL, "window": "all"}),
    "GET /posts/{post_id}": Case("content", {}, _OF_POST),
    "GET /posts/{post_id}/comments": Case(
        "content", {**_ALL, "cursor": pack_cursor(MIDDLE_US, COMMENT + ROWS // 2)}, _OF_POST
    ),
    "GET /posts/{post_id}/likers": Case(
        "reactions", {**_ALL, "cursor": pack_cursor(FAN + ROWS // 2, MIDDLE_US)}, _OF_POST
    ),
    "GET /reports/{report_id}": Case("moderation", {}, {"report_id": 1}),
    "GET /reviews/{review_id}": Case("content", {}, {"review_id": REVIEW + 1}),
    "GET /reviews/{review_id}/likers": Case("reactions", _ALL, {"review_id": REVIEW + 1}),
    "GET /shop-types": Case("shops"),
    "GET /shop-types/{type_id}": Case("shops", {}, {"type_id": 1}),
    "GET /shop-types/{type_id}/shops": Case(
        "shops", {**_ALL, "cursor": pack_cursor(SHOP + SHOPS_IN_CITY // 2)}, {"type_id": 1}
    ),
    "GET /shops": Case("shops", {**_ALL, "y": CITY_Y, "radius": 50_000}, moved=_move_outside),
    "GET /shops/search": Case("shops", {**_ALL, "name": "No", "type": 1}),
    "GET /shops/{shop_id}": Case("shops", {}, _OF_SHOP),
    "GET /shops/{shop_id}/members": Case("shops", {}, _OF_SHOP),
    "GET /shops/{shop_id}/redemptions": Case("flash_sales", _ALL, _OF_SHOP),
    "GET /shops/{shop_id}/sales": Case("flash_sales", _ALL, _OF_SHOP),
    "GET /shops/{shop_id}/reviews": Case(
        "content", {**_ALL, "cursor": pack_cursor(MIDDLE_US, REVIEW + ROWS // 2)}, _OF_SHOP
    ),
    "GET /shops/{shop_id}/reviews/recommended": Case("recommendations", _ALL, _OF_SHOP),
    "GET /shops/{shop_id}/vouchers": Case("flash_sales", _ALL, _OF_SHOP),
    "GET /targets/{target_type}/{target_id}/reactions/{kind}": Case(
        "reactions",
        {**_ALL, "cursor": pack_cursor(FAN + ROWS // 2, MIDDLE_US)},
        {"target_type": "post", "target_id": POST + 1, "kind": "like"},
    ),
    "GET /targets/{target_type}/{target_id}/reactions/{kind}/me": Case(
        "reactions", {}, {"target_type": "post", "target_id": POST + 1, "kind": "like"}
    ),
    "GET /totals": Case("totals", {"of": ",".join(f"post:{n}" for n in _POST_IDS[:MAX_TARGETS])}),
    "GET /users": Case("users", {"ids": ",".join(str(AUTHOR + n) for n in range(1, 101))}),
    "GET /users/me": Case("users"),
    "GET /users/me/notifications/unread": Case("notifications"),
    "GET /users/me/notifications": Case(
        "notifications",
        {**_ALL, "cursor": pack_cursor(ROWS // 2, "like", "post", POST + ROWS // 2)},
    ),
    "GET /users/me/blocks": Case("follows", _ALL),
    "GET /users/me/collects": Case(
        "reactions", {**_ALL, "expand": "post", "cursor": pack_cursor(MIDDLE_US, "post", POST)}
    ),
    "GET /users/me/export": Case("accounts", {"limit": 1}),
    "GET /users/me/likes": Case(
        "reactions", {**_ALL, "expand": "post", "cursor": pack_cursor(MIDDLE_US, "post", POST)}
    ),
    "GET /users/me/orders": Case("flash_sales", _ALL),
    "GET /users/me/push": Case("notifications"),
    "GET /users/me/reactions/{kind}": Case(
        "reactions",
        {**_ALL, "expand": "post", "cursor": pack_cursor(MIDDLE_US, "post", POST)},
        {"kind": "like"},
    ),
    "GET /users/me/sessions": Case("users"),
    "GET /users/me/shops": Case("shops", _ALL),
    "GET /users/me/waitlists": Case("flash_sales", _ALL),
    "GET /users/{user_id}": Case("users", {}, {"user_id": AUTHOR + 1}),
    "GET /users/{user_id}/common-follows": Case("follows", _ALL, {"user_id": WRITER}),
    "GET /users/{user_id}/export": Case("accounts", {"limit": 1}, {"user_id": READER}),
    "GET /users/{user_id}/followers": Case(
        "follows", {**_ALL, "cursor": pack_cursor(MIDDLE_US, 1)}, {"user_id": AUTHOR + 1}
    ),
    "GET /users/{user_id}/following": Case("follows", _ALL, {"user_id": READER}),
    "GET /users/{user_id}/posts": Case("content", {**_ALL, "cursor": _DEEP}, {"user_id": WRITER}),
    "GET /vouchers": Case(
        "flash_sales", {"ids": ",".join(str(VOUCHER + n) for n in range(1, 101))}
    ),
    "GET /vouchers/{voucher_id}": Case("flash_sales", {}, {"voucher_id": VOUCHER + 1}),
    "GET /vouchers/{voucher_id}/status": Case("flash_sales", {}, {"voucher_id": VOUCHER + 1}),
    "GET /vouchers/{voucher_id}/waitlist/me": Case("flash_sales", {}, {"voucher_id": VOUCHER + 2}),
}
"""Route -> its worst honest input; each GET route has one."""

UNLOADED = (
    "GET /feed",
    "GET /posts",
    "GET /posts/{post_id}/comments",
    "GET /shops/{shop_id}/reviews",
    "GET /totals",
    "GET /users",
    "GET /users/me/notifications",
    "GET /users/me/collects",
    "GET /users/me/likes",
    "GET /users/{user_id}/posts",
)
"""Routes whose pages load many targets into Redis."""

_BY_ROLE = {"GET /passkeys", "GET /users/{user_id}/export"}
_FAIR = frozenset({200, 404, 410})  # what a route answers about data that were not made for it


def measure(harness: Harness) -> list[Figure]:
    """Play each route, and print the CPU of both stores a request."""
    harness.clear()
    fill(harness)
    run_shop_jobs()
    # The ranking is read from MySQL, which is worse; a process does that five times a second.
    unlimited = mock.patch.object(post_rankings, "_fallback_budget", TokenBucket(1e6, 1_000_000))
    with without_aws(), unlimited:
        loaded = [figure for route, case in CASES.items() for figure in _measure(route, case)]
        return loaded + [
            figure
            for route in UNLOADED
            for figure in _measure(route, CASES[route], is_unloaded=True)
        ]


@contextmanager
def without_aws() -> Iterator[None]:
    """Answer for queues and metrics, which are no stores."""
    depth = sqs.Depth(0, 0, 0)
    with (
        feed.without_queues(),
        mock.patch.object(sqs, "measure", return_value=depth),
        mock.patch.object(sqs, "measure_all", lambda queues: dict.fromkeys(queues, depth)),
        mock.patch.object(sqs, "receive", return_value=[]),
        mock.patch.object(queue_admin, "read_oldest_ages", return_value={}),
    ):
        yield


def _measure(route: str, case: Case, *, is_unloaded: bool = False) -> list[Figure]:
    handler, tokens = load_handler(case.function), [0]

    def charge(_: PlazaResolver, count: int) -> None:
        tokens[0] += count

    used, charged = Cpu(), 0
    with mock.patch.object(PlazaResolver, "charge", charge):
        handler(build_event(route, case, 0), CONTEXT)  # what all requests share
        for number in range(1, REPEATS + 1):
            _forget()
            event = build_event(route, case, number)
            for _ in range(case.before):
                handler(event, CONTEXT)
            if is_unloaded:
                _unload()
            elif case.before:
                _load_targets(handler, event)
            clear_caches()
            tokens[0] = 0
            before = cpu()
            answer = handler(event, CONTEXT)
            used += cpu() - before
            charged += 1 + tokens[0]
            if answer["statusCode"] not in _FAIR:
                raise CommandError(f"{route} returned {answer}")
    # An audit counts the rows that an operator asks for.
    goal = Goal("at most", MAX_MS * (charged / REPEATS if route == "GET /ops/audit" else 1))
    return [
        Figure(
            f"{route}{', unloaded' * is_unloaded}, Redis",
            used.redis * 1_000 / REPEATS,
            "ms",
            goal=goal,
        ),
        Figure("  MySQL", used.mysql * 1_000 / REPEATS, "ms", goal=goal),
        Figure("  tokens", charged / REPEATS, ""),
    ]


def build_event(route: str, case: Case, number: int) -> Event:
    """Return the request with a number, by which some are moved."""
    query = {**case.query, **(case.moved(number) if case.moved else {})}
    is_by_role = route.startswith("GET /ops/") or route in _BY_ROLE
    user_id, role = (ADMIN, "admin") if is_by_role else (READER, "user")
    event = make_api_event(route, user_id, **case.parameters)
    event["headers"]["authorization"] = f"Bearer {make_plain_token(user_id, role)}"
    if query:
        event["rawQueryString"] = urlencode(query)
        event["queryStringParameters"] = {name: str(value) for name, value in query.items()}
    return event


def _forget() -> None:
    """Forget what this process and the reader's last page have found."""
    clear_caches()
    redis.execute("DEL", redis_store.older_key(READER))


def _unload() -> None:
    """Let Redis forget all but the pages of the reader."""
    keys = set(redis.execute("KEYS", "*")) - {redis_store.older_key(READER)}
    if keys:
        redis.execute("UNLINK", *keys)


def _load_targets(handler: Handler, event: Event) -> None:
    """Let Redis load what the page shows, once in ten days as for all routes; the pages of the
    reader remain as they are."""
    key, copy = redis_store.older_key(READER), redis_store.older_key(READER) + ":copy"
    redis.execute("COPY", key, copy)
    handler(event, CONTEXT)
    if redis.execute("EXISTS", copy):
        redis.execute("RENAME", copy, key)


def run_shop_jobs() -> None:
    """Build the filter and the places of all shops."""
    sent: list[str] = []
    with mock.patch.object(sqs, "send", lambda queue, body, delay_s=0: sent.append(body)):
        for job in (FILTER, PLACES):
            run_jobs([ShopJobStep(job)])
            while sent:
                run_jobs([SHOPS.decode(sent.pop())])
