"""Client of the HTTP API that retries refused requests and counts the outcomes."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

from local.load.requests import Call

# Longer than the API may take: an abandoned request that is served later would be out of order.
TIMEOUT_S = 60.0
MAX_ATTEMPTS = 8
BASE_WAIT_S = 0.1
MAX_WAIT_S = 10.0
DONE_STATUSES = (200, 201)  # not 202, which is decided later
RETRY_STATUSES = (429, 503)


class Answer(NamedTuple):
    """The last answer to a request that may have been sent more than once.

    ``status`` is 0 without an answer, and ``body`` then has the reason. ``certain`` is false when
    an earlier request may have been executed although its answer was lost.
    """

    status: int
    body: Mapping[str, Any]
    certain: bool

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def __str__(self) -> str:
        detail = self.body.get("detail") or self.body.get("title") or json.dumps(self.body)
        return f"{self.status or 'no answer'}: {str(detail)[:200]}"


@dataclass(slots=True)
class Tally:
    """Outcomes of requests, counted. Latencies are of answered requests, in seconds.

    ``wrong``: answers that cannot be true; ``failures``: requests without a successful answer.
    ``statuses`` are of all answered requests; ``gaps_s`` the longest times in seconds between two
    answers with 200 or 201, and between two with any 2xx.
    """

    sent: int = 0
    done: int = 0
    accepted: int = 0
    changed: int = 0
    uncertain: int = 0
    duplicates: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    gaps_s: dict[str, float] = field(default_factory=lambda: {"200": 0.0, "good": 0.0})
    took_s: float = 0.0
    _last_s: dict[str, float] = field(default_factory=dict)

    def record_try(self, status: int, took_s: float) -> None:
        self.latencies_s.append(took_s)
        self.statuses[status] += 1
        now_s = time.monotonic()
        for name, is_one in (("200", status in DONE_STATUSES), ("good", 200 <= status < 300)):
            if is_one:
                gap_s = now_s - self._last_s.get(name, now_s)
                self.gaps_s[name] = max(gap_s, self.gaps_s[name])
                self._last_s[name] = now_s


class Client:
    """Sends requests of users. ``tokens``: user id -> session token."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        tokens: Mapping[int, str],
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        self.tally = Tally()
        self._max_attempts = max_attempts
        self._session = session
        self._base_url = base_url
        self._tokens = tokens

    async def send(self, call: Call, user_id: int | None = None) -> Answer:
        """Send one request until its answer is final, at most ``max_attempts`` times.

        The request has no session unless ``user_id`` is given.
        """
        certain = True
        for tries in range(1, self._max_attempts + 1):
            self.tally.sent += 1
            began_s = time.monotonic()
            wait_s = draw_backoff_s(tries)
            try:
                status, headers, body = await self._try(call, user_id)
            except (aiohttp.ClientError, TimeoutError) as error:
                reason = "timeout" if isinstance(error, TimeoutError) else type(error).__name__
                answer = Answer(0, {"detail": f"{reason} {error}".strip()}, False)
                certain = False
            else:
                self.tally.record_try(status, time.monotonic() - began_s)
                answer = Answer(status, body, certain)
                if status not in RETRY_STATUSES:
                    return answer
                reason = str(status)
                wait_s += read_retry_after_s(headers)
            if tries < self._max_attempts:
                self.tally.retries[reason] += 1
                await asyncio.sleep(wait_s)
        return answer

    async def _try(
        self, call: Call, user_id: int | None
    ) -> tuple[int, Mapping[str, str], Mapping[str, Any]]:
        headers = {"Authorization": f"Bearer {self._tokens[user_id]}"} if user_id else {}
        if call.key:
            headers["Idempotency-Key"] = call.key
        async with self._session.request(
            call.method, self._base_url + call.path, json=call.body, headers=headers
        ) as response:
            raw = await response.read()
        return response.status, response.headers, read_body(raw)


def open_session(concurrency: int) -> aiohttp.ClientSession:
    """Return a session with two connections for each of ``concurrency`` users."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=2 * concurrency, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
    )


def read_body(raw: bytes | str) -> dict[str, Any]:
    """Return the JSON object in a body; any other text as ``detail``."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    if isinstance(body, dict):
        return body
    text = raw if isinstance(raw, str) else raw.decode(errors="replace")
    return {"detail": text[:200]}


def draw_backoff_s(tries: int) -> float:
    """Draw the wait before the next attempt: random, with a bound that doubles each time."""
    return random.uniform(0, min(MAX_WAIT_S, BASE_WAIT_S * 2**tries))


def read_retry_after_s(headers: Mapping[str, str]) -> float:
    """Return Retry-After in seconds, at most ``MAX_WAIT_S``; 0 without a number."""
    text = headers.get("Retry-After", "")
    return min(float(text), MAX_WAIT_S) if text.isascii() and text.isdigit() else 0.0
