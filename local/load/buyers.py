"""Buyers: each clicks on one voucher several times and polls the order until it is decided.

One worker plays a group of buyers in one loop: a refused buyer retries after Retry-After, and a
buyer with an order polls it until it is decided.
"""

import heapq
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import urllib3

from local.load.client import MAX_WAIT_S, read_body
from local.stack.functions import (
    CONTEXT,
    become_function,
    load_open_function,
    make_api_event,
)

PROGRESS_EVERY = 50


class Reply(NamedTuple):
    """A response of the API. ``status`` 0: there was no response."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


class ApiClient(Protocol):
    def send(self, method: str, path: str, user_id: int) -> Reply:
        """Send one request of a user."""


class HttpApiClient:
    """The deployed stack, over HTTP. ``tokens``: user id -> session token."""

    def __init__(self, base_url: str, tokens: Mapping[int, str], connections: int) -> None:
        self._base_url = base_url
        self._tokens = tokens
        self._pool = urllib3.PoolManager(maxsize=connections, retries=False)

    def send(
        self, method: str, path: str, user_id: int, body: Mapping[str, Any] | None = None
    ) -> Reply:
        """Send one request of a user. A failed connection gives status 0."""
        headers = {"authorization": f"Bearer {self._tokens[user_id]}"}
        try:
            answer = self._pool.request(
                method, self._base_url + path, headers=headers, json=body, timeout=60
            )
        except urllib3.exceptions.HTTPError as error:
            return Reply(0, {}, {"detail": f"{type(error).__name__}: {error}"})
        lower = {name.lower(): value for name, value in answer.headers.items()}
        return Reply(answer.status, lower, read_body(answer.data))


Handler = Callable[[dict[str, Any], object], dict[str, Any]]


class HandlerApiClient:
    """The handler of the API function, in this process, called as Lambda calls it."""

    def __init__(self) -> None:
        self._handle: Handler = load_open_function("api/flash_sales").handler

    def send(self, method: str, path: str, user_id: int) -> Reply:
        """Call the handler for one request of a user; no session is needed."""
        _, what, order_id, *_ = path.split("/")
        name = f"{what.removesuffix('s')}_id"
        route = f"{method} {path.replace(order_id, f'{{{name}}}')}"
        event = make_api_event(route, user_id, **{name: order_id})
        answer = self._handle(event, CONTEXT)
        headers = {name.lower(): value for name, value in answer["headers"].items()}
        return Reply(answer["statusCode"], headers, read_body(answer["body"]))


@dataclass(slots=True)
class BuyersResult:
    """Outcome of a group of buyers.

    ``orders``: buyer -> {order id: last reported status}. ``latencies_s`` are of clicks,
    ``decision_s`` from the accepted click to the decision. ``wrong``: answers that cannot be true.
    """

    clicks: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    orders: dict[int, dict[int, str]] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    decision_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    undecided: int = 0


@dataclass(frozen=True, slots=True)
class BuyerGroup:
    """A group of buyers; each clicks ``clicks`` times and polls for at most ``timeout_s``."""

    voucher_id: int
    buyer_ids: Sequence[int]
    clicks: int
    seed: int
    timeout_s: float


def play(crowd: BuyerGroup, client: ApiClient, on_progress: Callable[[int], None]) -> BuyersResult:
    """Play all clicks of a group in random order. ``on_progress`` gets the number of new clicks."""
    group = _Group(crowd, client)
    for number, buyer_id in enumerate(group.draw_clicks(), 1):
        group.run_due_actions()
        group.click(buyer_id)
        if number % PROGRESS_EVERY == 0:
            on_progress(PROGRESS_EVERY)
    on_progress(len(crowd.buyer_ids) * crowd.clicks % PROGRESS_EVERY)
    group.wait_for_decisions()
    return group.result


def play_in_process(
    crowd: BuyerGroup, environment: Mapping[str, str], clicks: Any, lock: Any
) -> BuyersResult:
    """Run ``play`` through the handlers, in a process of its own; ``clicks`` counts for all.

    All these processes share one core where the system allows it, so that consumers have the
    others, as in production.
    """
    if hasattr(os, "sched_setaffinity"):  # Linux
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    become_function(environment)

    def on_progress(count: int) -> None:
        with lock:
            clicks.value += count

    return play(crowd, HandlerApiClient(), on_progress)


class _Group:
    """A group at work. ``_agenda`` holds (due time, a number that breaks ties, action)."""

    def __init__(self, crowd: BuyerGroup, client: ApiClient) -> None:
        self.result = BuyersResult()
        self._crowd = crowd
        self._client = client
        self._rng = random.Random(crowd.seed)
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._accepted_s: dict[int, float] = {}  # order -> start of the accepted click
        self._end_s = time.monotonic() + crowd.timeout_s

    def draw_clicks(self) -> list[int]:
        clicks = [buyer for buyer in self._crowd.buyer_ids for _ in range(self._crowd.clicks)]
        self._rng.shuffle(clicks)
        return clicks

    def run_due_actions(self) -> None:
        while self._agenda and self._agenda[0][0] <= time.monotonic():
            heapq.heappop(self._agenda)[2]()

    def wait_for_decisions(self) -> None:
        """Run scheduled actions until there are none or the timeout is over."""
        while self._agenda and time.monotonic() < self._end_s:
            wait_s = self._agenda[0][0] - time.monotonic()
            if wait_s > 0:
                time.sleep(min(wait_s, 0.5))
            self.run_due_actions()
        self.result.undecided = sum(
            status == "pending"
            for statuses in self.result.orders.values()
            for status in statuses.values()
        )

    def click(self, buyer_id: int) -> None:
        """Order once; schedule a retry when the request is refused for now."""
        began_s = time.monotonic()
        path = f"/vouchers/{self._crowd.voucher_id}/orders"
        reply = self._client.send("POST", path, buyer_id)
        self.result.clicks += 1
        self.result.latencies_s.append(time.monotonic() - began_s)
        self.result.answers[_name(reply)] += 1
        if reply.status in (200, 202):
            order_id = self._record_order(buyer_id, reply, began_s)
            if order_id is not None:
                self._schedule(reply, lambda: self._poll_order(buyer_id, order_id, began_s))
        elif reply.status in (0, 429, 503):
            self._schedule(reply, lambda: self.click(buyer_id))
        elif reply.status != 409:
            self.result.wrong.append(f"{buyer_id} clicks: {reply.status} {reply.body}")

    def _poll_order(self, buyer_id: int, order_id: int, began_s: float) -> None:
        reply = self._client.send("GET", f"/orders/{order_id}", buyer_id)
        if reply.status == 200:
            self._record_order(buyer_id, reply, began_s)
        elif reply.status not in (0, 429, 503):
            self.result.wrong.append(f"{buyer_id} polls {order_id}: {reply.status} {reply.body}")
            return
        if self.result.orders[buyer_id][order_id] == "pending":
            self._schedule(reply, lambda: self._poll_order(buyer_id, order_id, began_s))

    def _record_order(self, buyer_id: int, reply: Reply, began_s: float) -> int | None:
        """Record the status of an order. Returns its id if it is pending and not polled yet."""
        order_id, status = int(reply.body["order_id"]), str(reply.body["status"])
        statuses = self.result.orders.setdefault(buyer_id, {})
        before = statuses.get(order_id)
        if before in ("success", "failed") and status != before:
            self.result.wrong.append(f"order {order_id} was {before} and is {status}")
        if before is None and any(other != "failed" for other in statuses.values()):
            self.result.wrong.append(f"{buyer_id} has two orders: {order_id} and {statuses}")
        statuses[order_id] = status
        accepted_s = self._accepted_s.setdefault(order_id, began_s)
        if status == "pending":
            return order_id if before is None else None
        if before in (None, "pending"):
            self.result.decision_s.append(time.monotonic() - accepted_s)
            if status == "failed":  # the unit is on sale again
                self._schedule(reply, lambda: self.click(buyer_id))
        return None

    def _schedule(self, reply: Reply, action: Callable[[], None]) -> None:
        wait_s = min(float(reply.headers.get("retry-after", 1)), MAX_WAIT_S)
        self._number += 1
        at_s = time.monotonic() + wait_s * self._rng.uniform(1, 1.3)
        heapq.heappush(self._agenda, (at_s, self._number, action))


def _name(reply: Reply) -> str:
    slug = str(reply.body.get("type", "")).rpartition("/")[2]
    return f"{reply.status} {slug}".strip() if reply.status else "no answer"
