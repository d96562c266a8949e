"""Load during a fault: likes, reads, feeds, orders and sign-ins, a few at a time.

Each operation records its promises, so that they can be compared with MySQL afterwards.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cli.paths import CommandError
from tests.chaos.ledger import NO_ANSWER, Ledger, Request, find_violations

TIMEOUT_S = 60.0
PACE_S = 0.12
MAX_TARGETS = 100  # of a query
_MAX_ATTEMPTS = 100
_SAME_AGAIN = 0.2  # share of repeated requests of one client


Rows = Callable[..., Sequence[tuple[Any, ...]]]
Lost = tuple[str, str]  # the phase of the promise, and its description


class Reply(NamedTuple):
    """A response; ``status`` 0 and a reason without one."""

    status: int
    headers: Mapping[str, str]
    body: Any


class Sample(NamedTuple):
    """One answer: start (monotonic), duration, and label."""

    at_s: float
    took_s: float
    label: str


@dataclass(frozen=True, slots=True)
class Address:
    """The deployed API."""

    host: str
    port: int

    def ask(
        self, method: str, path: str, token: str | None = None, body: Any = None, source: str = ""
    ) -> Reply:
        """Send one request on a new connection, from the loopback address ``source``."""
        origin = (source, 0) if source else None
        client = http.client.HTTPConnection(
            self.host, self.port, timeout=TIMEOUT_S, source_address=origin
        )
        headers = {"content-type": "application/json"} if body is not None else {}
        if token:
            headers["authorization"] = f"Bearer {token}"
        raw = json.dumps(body) if body is not None else None
        try:
            client.request(method, path, raw, headers)
            answer = client.getresponse()
            data = answer.read()
            body = json.loads(data) if data else None
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, body)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Reply(0, {}, {"title": type(error).__name__})
        finally:
            client.close()


def label_of(reply: Reply) -> str:
    """Return the label of an answer: ``200``, ``200 inexact``, ``503 unavailable``.

    A violation of the contract gets a label that no cell expects.
    """
    if reply.status == 0:
        return f"no answer: {reply.body['title']}"
    if reply.status < 400:
        inexact = isinstance(reply.body, dict) and reply.body.get("exact") is False
        return f"{reply.status} inexact" if inexact else str(reply.status)
    body = reply.body if isinstance(reply.body, dict) else {}
    slug = str(body.get("slug", ""))
    whole = slug and body.get("title") and body.get("detail") and body.get("status") == reply.status
    if reply.headers.get("content-type") != "application/problem+json" or not whole:
        return f"{reply.status} and no problem+json"
    if reply.status in (429, 503) and int(reply.headers.get("retry-after", "0")) < 1:
        return f"{reply.status} {slug} without Retry-After"
    return f"{reply.status} {slug}"


def label_of_reaction(reply: Reply) -> str:
    """Return the label of an answer to a reaction; that to a follow has no ``exact``."""
    label = label_of(reply)
    return "202 inexact" if label == "202" else label


class Operation:
    """A repeated action. ``step`` performs it once and returns a sample.

    ``phase`` names the current phase, by which ``promises`` and ``find_lost`` count.
    ``is_202_final``: whether a reaction answered with 202 keeps a copy in the current phase.
    """

    name = ""
    normal: tuple[str, ...] = ("200",)
    pause_s = PACE_S
    phase = ""
    is_202_final = True
    promises: Counter[str]

    def is_promise(self, status: int) -> bool:
        """Return whether a reaction with this label is a promise."""
        return status == 200 or (status == 202 and self.is_202_final)

    def step(self) -> tuple[float, str]:
        """Return (duration of the slowest answer, its label)."""
        raise NotImplementedError

    def find_lost(self, rows: Rows) -> list[Lost]:
        """Return broken promises with the phase in which they were made."""
        raise NotImplementedError

    def check(self, rows: Rows) -> tuple[int, list[str]]:
        """Return (number of promises, broken promises)."""
        return self.promises.total(), [what for _, what in self.find_lost(rows)]

    def count_undecided(self, rows: Rows) -> int:
        """Count the promises that are not decided yet."""
        return 0

    def find_untrue(self, rows: Rows) -> list[str]:
        """Return what the API shows that MySQL does not have, when nothing is on its way."""
        return []


def timed(ask: Callable[[], Reply]) -> tuple[float, Reply]:
    """Return the duration and the reply."""
    began_s = time.monotonic()
    reply = ask()
    return time.monotonic() - began_s, reply


class ClientReaction(NamedTuple):
    """A reaction as a client requests it. ``item_id``: of a post or of a user."""

    kind: str  # like, collect, follow
    user_id: int
    item_id: int

    def __str__(self) -> str:
        what = "user" if self.kind == "follow" else "post"
        return f"{self.kind} of {what} {self.item_id} by {self.user_id}"

    @property
    def path(self) -> str:
        """Return the path to put and delete it."""
        if self.kind == "follow":
            return f"/users/{self.item_id}/followers/me"
        return f"/posts/{self.item_id}/{self.kind}s/me"

    @property
    def field(self) -> str:
        """Return the field of its state in answers."""
        return {"like": "liked", "collect": "collected", "follow": "following"}[self.kind]


@dataclass
class Likes(Operation):
    """Likes of loaded posts; every fourth request is an unlike of an old like.

    ``tokens``: user -> token. Each pair of user and post is used once, and each post as rarely as
    possible.
    """

    address: Address
    tokens: Mapping[int, str]
    items: Sequence[int]
    liked: list[tuple[int, int]]  # (user, post), saved before the fault; to be removed
    name = "like"
    kind = "like"
    promised: dict[tuple[int, int], tuple[bool, str]] = field(default_factory=dict)
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        old = set(self.liked)
        self._fresh = (
            pair for pair in itertools.product(self.tokens, self.items) if pair not in old
        )
        self._turn = itertools.count(1)

    def step(self) -> tuple[float, str]:
        back = next(self._turn) % 4 == 0 and bool(self.liked)
        user, item = self.liked.pop() if back else next(self._fresh)
        reaction = ClientReaction(self.kind, user, item)
        took_s, reply = timed(
            lambda: self.address.ask("DELETE" if back else "PUT", reaction.path, self.tokens[user])
        )
        if self.is_promise(reply.status):
            self.promised[user, item] = not back, self.phase
            self.promises[self.phase] += 1
            if reply.body[reaction.field] is back:
                return took_s, f"{reply.status} for the opposite state"
        return took_s, label_of_reaction(reply)

    def find_lost(self, rows: Rows) -> list[Lost]:
        saved = self._read_rows(rows)
        return [
            (phase, f"{'' if on else 'un'}{ClientReaction(self.kind, user, item)}")
            for (user, item), (on, phase) in self.promised.items()
            if ((user, item) in saved) is not on
        ]

    def find_untrue(self, rows: Rows) -> list[str]:
        saved = self._read_rows(rows)
        totals = Counter(item for _, item in saved)
        by_user: dict[int, list[int]] = {}
        for user, item in self.promised:
            by_user.setdefault(user, []).append(item)
        untrue = []
        for user, items in by_user.items():
            shown = self._read_shown(user, items)
            for item in items:
                expected = totals[item], (user, item) in saved
                if shown.get(item) != expected:
                    reaction = ClientReaction(self.kind, user, item)
                    untrue.append(f"{reaction}: {shown.get(item)}, not {expected}")
        return untrue

    def _read_shown(self, user: int, items: Sequence[int]) -> dict[int, tuple[int, bool]]:
        """Return item -> (total, the user's state), without what is not exact."""
        results: dict[int, tuple[int, bool]] = {}
        for start in range(0, len(items), MAX_TARGETS):
            part = items[start : start + MAX_TARGETS]
            query = {"targets": [{"type": "post", "id": str(item)} for item in part]}
            reply = self.address.ask("POST", "/reactions/query", self.tokens[user], query)
            if label_of(reply) == "200":
                for shown in reply.body["items"]:
                    results[int(shown["id"])] = shown["likes"], shown["mine"]["liked"]
        return results

    def _read_rows(self, rows: Rows) -> set[tuple[int, int]]:
        """Return (user, item) of the saved reactions."""
        marks = ", ".join(["%s"] * len(self.items))
        return set(
            rows(
                "SELECT actor_id, target_id FROM reaction WHERE target_type = %s AND kind = %s"
                f" AND state = 1 AND target_id IN ({marks})",
                "user" if self.kind == "follow" else "post",
                self.kind,
                *self.items,
            )
        )


@dataclass
class Follows(Likes):
    """Follows of loaded users, as ``Likes``."""

    name = "follow"
    kind = "follow"

    def _read_shown(self, user: int, items: Sequence[int]) -> dict[int, tuple[int, bool]]:
        results: dict[int, tuple[int, bool]] = {}
        for item in items:
            reply = self.address.ask("GET", f"/users/{item}", self.tokens[user])
            if label_of(reply) == "200":
                results[item] = reply.body["followers"], reply.body["mine"]["following"]
        return results


@dataclass
class CheckIns(Operation):
    """Check-ins of today, each by another user. ``tokens``: user -> token."""

    address: Address
    tokens: Mapping[int, str]
    name = "check-in"
    promised: dict[int, tuple[str, str]] = field(default_factory=dict)  # user -> day, phase
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._users = iter(self.tokens)

    def step(self) -> tuple[float, str]:
        user = next(self._users)
        took_s, reply = timed(lambda: self.address.ask("PUT", "/checkins/today", self.tokens[user]))
        if self.is_promise(reply.status):
            self.promised[user] = reply.body["today"], self.phase
            self.promises[self.phase] += 1
        return took_s, label_of(reply)

    def find_lost(self, rows: Rows) -> list[Lost]:
        saved = self._read_rows(rows)
        return [
            (phase, f"check-in of {user} on {day}")
            for user, (day, phase) in self.promised.items()
            if (user, day) not in saved
        ]

    def find_untrue(self, rows: Rows) -> list[str]:
        untrue = []
        for user, (day, _) in self.promised.items():
            reply = self.address.ask("GET", f"/checkins?month={day[:7]}", self.tokens[user])
            if label_of(reply) != "200" or reply.body["days"] != [int(day[8:])]:
                untrue.append(f"check-ins of {user}: {reply.status} {reply.body}, not {day}")
        return untrue

    def _read_rows(self, rows: Rows) -> set[tuple[int, str]]:
        """Return (user, day) of the saved check-ins."""
        marks = ", ".join(["%s"] * len(self.tokens))
        result = rows(f"SELECT user_id, day FROM checkin WHERE user_id IN ({marks})", *self.tokens)
        return {(user, day.isoformat()) for user, day in result}


@dataclass
class Toggles(Operation):
    """Alternating requests for the same few reactions.

    One client sends the ``single`` ones, waits for each answer, and sometimes reads its own state;
    two devices send the ``shared`` ones at the same time. ``tokens``: user -> token. ``losses``:
    when Redis lost its data.
    """

    address: Address
    tokens: Mapping[int, str]
    single: Sequence[ClientReaction]
    shared: Sequence[ClientReaction]
    losses: Sequence[float]
    name = "toggle"
    seed: int = 0
    ledgers: dict[ClientReaction, Ledger] = field(default_factory=dict)
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        both = (*self.single, *self.shared)
        self.ledgers = {expected: Ledger(self.losses) for expected in both}
        self._rng = random.Random(self.seed)
        self._turn = itertools.count(1)
        self._next_single = itertools.cycle(self.single)
        self._next_shared = itertools.cycle(self.shared)
        self._phases = dict.fromkeys(self.ledgers, "")  # of the last request
        self._last = dict.fromkeys(self.ledgers, True)
        self._devices = ThreadPoolExecutor(2)

    def begin(self) -> None:
        """Turn each on, off and on by two devices until all are answered 200, and read each.

        So Redis has them, and the functions have workers.
        """
        for expected, on in itertools.product(self.ledgers, (True, False, True)):
            for _ in range(_MAX_ATTEMPTS):
                (_, first), (_, second) = self._send_twice(expected, on, on)
                self.ledgers[expected].add_both(first, second)
                if first.status == second.status == 200:
                    break
                time.sleep(PACE_S)
            else:
                raise CommandError(f"{expected} is answered {first.status} and {second.status}")
            self._read(expected)

    def step(self) -> tuple[float, str]:
        match next(self._turn) % 4:
            case 0:
                return self._check_state(next(self._next_single))
            case 1:
                return self._use_two_devices(next(self._next_shared))
        expected = next(self._next_single)
        if self._rng.random() >= _SAME_AGAIN:  # otherwise the answer must be unchanged
            self._last[expected] = not self._last[expected]
        label, request = self._send(expected, self._last[expected])
        self.ledgers[expected].add(request)
        return request.ended_s - request.began_s, label

    def find_lost(self, rows: Rows) -> list[Lost]:
        users = ", ".join(["%s"] * len(self.tokens))
        saved = {
            ClientReaction(kind, user_id, item_id)
            for kind, user_id, item_id in rows(
                "SELECT kind, actor_id, target_id FROM reaction WHERE state = 1"
                f" AND actor_id IN ({users})",
                *self.tokens,
            )
        }
        return [
            (self._phases[expected], f"{expected}: {what}")
            for expected, ledger in self.ledgers.items()
            for what in [
                *ledger.wrong,
                *find_violations(ledger, expected in saved, self._read(expected)[1] is True),
            ]
        ]

    def _check_state(self, requested: ClientReaction) -> tuple[float, str]:
        began_s = time.monotonic()
        label, state = self._read(requested)
        if state is not None:
            self.ledgers[requested].observe(state)
        return time.monotonic() - began_s, label

    def _use_two_devices(self, requested: ClientReaction) -> tuple[float, str]:
        first_on = self._rng.random() < 0.5
        (label, first), (other, second) = self._send_twice(requested, first_on, not first_on)
        self.ledgers[requested].add_both(first, second)
        took_s = max(item.ended_s - item.began_s for item in (first, second))
        return took_s, other if label in self.normal else label

    def _send_twice(self, requested: ClientReaction, *both: bool) -> list[tuple[str, Request]]:
        """Send one request from each device, at the same time."""
        sent = [self._devices.submit(self._send, requested, on) for on in both]
        return [future.result() for future in sent]

    def _send(self, requested: ClientReaction, on: bool) -> tuple[str, Request]:
        began_s = time.monotonic()
        reply = self.address.ask(
            "PUT" if on else "DELETE", requested.path, self.tokens[requested.user_id]
        )
        label, changed = label_of_reaction(reply), None
        self._phases[requested] = self.phase
        is_promise = self.is_promise(reply.status)
        if is_promise:
            self.promises[self.phase] += 1
        if reply.status == 200:
            changed = reply.body["changed"]
        if reply.status in (200, 202) and reply.body[requested.field] is not on:
            label = f"{reply.status} for the opposite state"
        is_open = reply.status == 202 and not is_promise
        status = NO_ANSWER if is_open else reply.status
        return label, Request(began_s, time.monotonic(), on, status, changed)

    def _read(self, requested: ClientReaction) -> tuple[str, bool | None]:
        """Return the label, and the caller's own state if it is exact, otherwise None."""
        token = self.tokens[requested.user_id]
        if requested.kind == "follow":
            reply = self.address.ask("GET", f"/users/{requested.item_id}", token)
            items = [reply.body]
        else:
            query = {"targets": [{"type": "post", "id": str(requested.item_id)}]}
            reply = self.address.ask("POST", "/reactions/query", token, query)
            items = reply.body.get("items", []) if isinstance(reply.body, dict) else []
        label = label_of(reply)
        return label, items[0]["mine"][requested.field] if label == "200" else None


@dataclass
class Reads(Operation):
    """A page of posts with viewer states, and every third time one post.

    No user reacts to these posts, so all values are known. ``expected``: post -> (likes, mine).
    """

    address: Address
    token: str
    expected: Mapping[int, tuple[int, bool]]
    name = "read"
    wrong: list[Lost] = field(default_factory=list)
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._turn = itertools.count(1)
        self._posts = itertools.cycle(self.expected)

    def step(self) -> tuple[float, str]:
        if next(self._turn) % 3 == 0:
            post = next(self._posts)
            took_s, reply = timed(lambda: self.address.ask("GET", f"/posts/{post}", self.token))
            items = [reply.body]
        else:
            question = {"targets": [{"type": "post", "id": str(post)} for post in self.expected]}
            took_s, reply = timed(
                lambda: self.address.ask("POST", "/reactions/query", self.token, question)
            )
            items = reply.body.get("items", []) if isinstance(reply.body, dict) else []
        if reply.status == 200:
            self.promises[self.phase] += 1
            shown = {int(i["id"]): (i["likes"], i["mine"]["liked"]) for i in items}
            self.wrong += [
                (self.phase, f"post {post}: {value}, not {self.expected[post]}")
                for post, value in shown.items()
                if value != self.expected[post]
            ]
        return took_s, label_of(reply)

    def find_lost(self, rows: Rows) -> list[Lost]:
        return self.wrong


@dataclass
class Feeds(Operation):
    """A feed without new posts. ``expected``: the ids of its posts, newest first."""

    address: Address
    token: str
    expected: Sequence[str]
    name = "feed"
    wrong: list[Lost] = field(default_factory=list)
    promises: Counter[str] = field(default_factory=Counter)

    def step(self) -> tuple[float, str]:
        took_s, reply = timed(lambda: self.address.ask("GET", "/feed?limit=20", self.token))
        if reply.status == 200:
            self.promises[self.phase] += 1
            shown = [item["id"] for item in reply.body["items"]]
            if shown != list(self.expected):
                self.wrong.append((self.phase, f"a feed of {shown}, not {self.expected}"))
            if any(item["exact"] is False for item in reply.body["items"]):
                return took_s, "200 inexact"
        return took_s, label_of(reply)

    def find_lost(self, rows: Rows) -> list[Lost]:
        return self.wrong


def read_decided(rows: Rows, voucher: int) -> dict[int, tuple[int, str | None]]:
    """Return order -> (buyer, reason) of the decided orders of a voucher."""
    statement = "SELECT order_id, buyer_id, reason FROM voucher_order WHERE voucher_id = %s"
    return {order: (buyer, reason) for order, buyer, reason in rows(statement, voucher)}


@dataclass
class Orders(Operation):
    """Orders of one voucher, each by another buyer. ``tokens``: buyer -> token."""

    address: Address
    tokens: Mapping[int, str]
    voucher: int
    name = "order"
    normal = ("202",)
    pause_s = 0.25
    promised: dict[int, tuple[int, str]] = field(default_factory=dict)  # order -> buyer, phase
    promises: Counter[str] = field(default_factory=Counter)
    refused: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._buyers = iter(self.tokens)

    def step(self) -> tuple[float, str]:
        buyer = next(self._buyers)
        took_s, reply = self.click(buyer)
        if reply.status not in (200, 202):
            self.refused.append(buyer)
        return took_s, label_of(reply)

    def click(self, buyer: int) -> tuple[float, Reply]:
        """Click once for a buyer, and record the promise."""
        path = f"/vouchers/{self.voucher}/orders"
        took_s, reply = timed(lambda: self.address.ask("POST", path, self.tokens[buyer]))
        if reply.status in (200, 202):
            order = int(reply.body["order_id"])
            self.promises[self.phase] += order not in self.promised
            self.promised.setdefault(order, (buyer, self.phase))
        return took_s, reply

    def click_again(self) -> list[str]:
        """Let every refused buyer click again. Returns those without an order."""
        again = []
        for buyer in self.refused:
            _, reply = self.click(buyer)
            if reply.status not in (200, 202):
                again.append(f"buyer {buyer} gets {label_of(reply)} after the fault")
        return again

    def count_undecided(self, rows: Rows) -> int:
        return len(self.promised.keys() - read_decided(rows, self.voucher).keys())

    def find_lost(self, rows: Rows) -> list[Lost]:
        decided = read_decided(rows, self.voucher)
        lost = [
            (phase, f"order {order} of {buyer}: {decided.get(order, 'nowhere')}")
            for order, (buyer, phase) in self.promised.items()
            if decided.get(order) != (buyer, None)
        ]
        doubled = rows(
            "SELECT buyer_id FROM voucher_order WHERE voucher_id = %s AND reason IS NULL"
            " GROUP BY buyer_id HAVING COUNT(*) > 1",
            self.voucher,
        )
        phases = dict(self.promised.values())
        ours = [buyer for (buyer,) in doubled if buyer in phases]
        return lost + [(phases[buyer], f"buyer {buyer} has two") for buyer in ours]


@dataclass
class SignIns(Operation):
    """Sign-in of a new user: request a code, read it, and exchange it for a session.

    A refusal for now is repeated with the same code. ``newcomers``: (phone, address). ``read_code``
    returns the code that was sent to a phone.
    """

    address: Address
    newcomers: Sequence[tuple[str, str]]
    read_code: Callable[[str], str | None]
    name = "sign-in"
    normal = ("201",)
    pause_s = 0.4
    promised: dict[str, tuple[str, str]] = field(default_factory=dict)  # phone -> token, phase
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._newcomers = iter(self.newcomers)
        self._waiting: tuple[str, str, dict[str, str], int] | None = None
        self.kept = 0  # codes accepted after a temporary refusal

    def step(self) -> tuple[float, str]:
        slowest_s = 0.0
        if self._waiting is None:
            phone, source = next(self._newcomers)
            slowest_s, sent = timed(
                lambda: self.address.ask("POST", "/auth/codes", None, {"phone": phone}, source)
            )
            if sent.status != 202:
                return slowest_s, label_of(sent)
            code = self.read_code(phone)
            if code is None:
                return slowest_s, "202 without a code"
            self._waiting = phone, source, {"challenge": sent.body["challenge"], "code": code}, 1
        phone, source, body, tries = self._waiting
        took_s, reply = timed(
            lambda: self.address.ask("POST", "/auth/sessions", None, body, source)
        )
        if reply.status == 201:
            self.promised[phone] = reply.body["token"], self.phase
            self.promises[self.phase] += 1
            self.kept += tries > 1
        again = reply.status == 503 and tries < 8
        self._waiting = (phone, source, body, tries + 1) if again else None
        if again:
            time.sleep(1)
        return max(slowest_s, took_s), label_of(reply)

    def find_lost(self, rows: Rows) -> list[Lost]:
        lost = []
        for phone, (token, phase) in self.promised.items():
            people = rows("SELECT user_id FROM user_phone WHERE phone = %s", phone)
            if len(people) != 1:
                lost.append((phase, f"{len(people)} users have the phone of a sign-in"))
            reply = self.address.ask("GET", "/users/me", token)
            if reply.status != 200 or reply.body["id"] != str(people[0][0]):
                lost.append((phase, f"a session that was opened answers {label_of(reply)}"))
        return lost


class Workload:
    """Runs each operation in a thread until it is stopped."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        self.operations = operations
        self.samples: dict[str, list[Sample]] = {item.name: [] for item in operations}
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._do, args=(item,), daemon=True) for item in operations
        ]

    def __enter__(self) -> Workload:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(2 * TIMEOUT_S)

    def _do(self, operation: Operation) -> None:
        while not self._stop.is_set():
            at_s = time.monotonic()
            try:
                took_s, label = operation.step()
            except Exception as error:  # an error of the test must not look like a missing answer
                self.errors.append(f"{operation.name}: {type(error).__name__} {error}")
                return
            self.samples[operation.name].append(Sample(at_s, took_s, label))
            self._stop.wait(operation.pause_s)

    def is_normal_since(self, operation: Operation, since_s: float, in_a_row: int) -> bool:
        """Return whether the last ``in_a_row`` answers to requests after ``since_s`` are normal."""
        late = [s for s in self.samples[operation.name] if s.at_s >= since_s][-in_a_row:]
        return len(late) == in_a_row and all(s.label in operation.normal for s in late)
