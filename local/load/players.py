"""Players: many users at once against the HTTP API, each doing one thing after the other."""

import asyncio
import heapq
import json
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

from local.load.plans import Copies, Forecast, Request
from local.paths import LocalError

# Longer than the API may take: a try that was given up and still came would come out of turn.
TIMEOUT_S = 60.0
MOST_TRIES = 8
MOST_UNANSWERED = 10  # requests in a row that were given up without any answer: nobody is there
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10.0
DONE = (200, 201)  # and not 202: taken, done later
LATER = (429, 503)


class Turns:
    """Whose turn it is: each user's requests in order, one at a time, different users at once.

    Among the users who wait, the one whose next request came first in the file is next.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        self._waiting: dict[int, deque[int]] = {}
        for index, request in enumerate(requests):
            self._waiting.setdefault(request.user_id, deque()).append(index)
        self._requests = requests
        self._ready = [(indexes[0], user_id) for user_id, indexes in self._waiting.items()]
        heapq.heapify(self._ready)

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self._waiting)

    def take(self) -> int | None:
        """The index of a request to send now; its user has no other turn until ``give_back``.

        None when everybody who has something left is at it.
        """
        if not self._ready:
            return None
        _, user_id = heapq.heappop(self._ready)
        return self._waiting[user_id].popleft()

    def give_back(self, index: int) -> None:
        """The request at ``index`` is done; its user may go on."""
        user_id = self._requests[index].user_id
        if rest := self._waiting[user_id]:
            heapq.heappush(self._ready, (rest[0], user_id))


class Answer(NamedTuple):
    """The last answer to a request that may have been tried more than once.

    ``status`` is 0 when there never was one, and ``body`` then says why. ``sure`` is false when
    an earlier try may have been done although its answer was lost.
    """

    status: int
    body: Mapping[str, Any]
    sure: bool

    @property
    def good(self) -> bool:
        """Whether the API took it."""
        return 200 <= self.status < 300

    def __str__(self) -> str:
        said = self.body.get("detail") or self.body.get("title") or json.dumps(self.body)
        return f"{self.status or 'no answer'}: {str(said)[:200]}"


@dataclass(slots=True)
class Tally:
    """What came of a replay, counted. Latencies are those of answered tries, in seconds.

    ``wrong`` holds answers that can't be true, ``failures`` requests that were given up.
    ``statuses`` are of all answered tries; ``gaps_s`` the longest times, in seconds, between an
    answer with 200 and the next, and between any two that were good.
    """

    sent: int = 0
    done: int = 0
    accepted: int = 0
    changed: int = 0
    unsure: int = 0
    duplicates: int = 0
    retries: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    gaps_s: dict[str, float] = field(default_factory=lambda: {"200": 0.0, "good": 0.0})
    took_s: float = 0.0
    _last_s: dict[str, float] = field(default_factory=dict)

    def note(self, status: int, took_s: float) -> None:
        """A try was answered just now."""
        self.latencies_s.append(took_s)
        self.statuses[status] += 1
        now_s = time.monotonic()
        for name, is_one in (("200", status in DONE), ("good", 200 <= status < 300)):
            if is_one:
                gap_s = now_s - self._last_s.get(name, now_s)
                self.gaps_s[name] = max(gap_s, self.gaps_s[name])
                self._last_s[name] = now_s


class Pace:
    """At most ``rate`` starts a second, evenly; None: as many as there are."""

    def __init__(self, rate: float | None) -> None:
        self._gap_s = 1 / rate if rate else 0.0
        self._next_s = 0.0

    async def wait(self) -> None:
        """Wait for the next start."""
        if not self._gap_s:
            return
        now_s = time.monotonic()
        self._next_s = max(self._next_s + self._gap_s, now_s)
        await asyncio.sleep(self._next_s - now_s)


class Player:
    """Sends requests through the API as a patient client does, and counts what comes of it.

    ``tokens``: user id -> session token. ``tell`` is called with each request that is over.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        tokens: Mapping[int, str],
        tell: Callable[[Tally], None],
    ) -> None:
        self.tally = Tally()
        self._session = session
        self._base_url = base_url
        self._tokens = tokens
        self._tell = tell
        self._unanswered = 0
        self._lost: set[int] = set()  # users a request of whom was given up: nothing is sure then

    async def play(
        self,
        requests: Sequence[Request],
        forecasts: Sequence[Forecast],
        *,
        concurrency: int,
        rate: float | None,
    ) -> None:
        """Send ``requests``, users in parallel, and compare the answers with ``forecasts``.

        Raises LocalError when nobody answers any more.
        """
        turns, pace, began_s = Turns(requests), Pace(rate), time.monotonic()

        async def take_turns(begin: asyncio.Event, begun: asyncio.Event) -> None:
            await begin.wait()
            while (index := turns.take()) is not None:
                await pace.wait()
                await self._do(requests[index], forecasts[index])
                turns.give_back(index)
                begun.set()
            begun.set()

        # Each begins when the one before had an answer: functions that start cold do so one
        # after the other, not all at once on a machine of two cores.
        try:
            async with asyncio.TaskGroup() as group:
                begin = asyncio.Event()
                begin.set()
                for _ in range(min(concurrency, turns.users)):
                    begun = asyncio.Event()
                    group.create_task(take_turns(begin, begun))
                    begin = begun
        except* LocalError as errors:
            raise errors.exceptions[0] from None
        self.tally.took_s = time.monotonic() - began_s

    async def _do(self, request: Request, forecast: Forecast) -> None:
        match request.copies:
            case Copies.ONE:
                answers = [await self._send(request)]
            case Copies.AT_ONCE:
                answers = list(await asyncio.gather(self._send(request), self._send(request)))
            case Copies.IN_A_ROW:
                answers = [await self._send(request), await self._send(request)]
        tally = self.tally
        tally.done += 1
        tally.duplicates += len(answers) - 1
        for answer in answers:
            tally.accepted += answer.good
            tally.changed += answer.body.get("changed") is True
            self._unanswered = 0 if answer.status else self._unanswered + 1
            if not answer.good:
                tally.failures.append(f"{request}: {answer}")
                self._lost.add(request.user_id)
        if request.user_id not in self._lost:
            sure = all(answer.sure and answer.status in DONE for answer in answers)
            tally.unsure += not sure
            tally.wrong += forecast.find_wrong(request, [a.body for a in answers], sure)
        self._tell(tally)
        if self._unanswered >= MOST_UNANSWERED:
            raise LocalError(f"nobody answers at {self._base_url} any more: {answers[-1]}")

    async def _send(self, request: Request) -> Answer:
        """One request until it is answered for good, tried eight times at most."""
        sure = True
        for tries in range(1, MOST_TRIES + 1):
            self.tally.sent += 1
            began_s = time.monotonic()
            wait_s = draw_wait_s(tries)
            try:
                status, headers, body = await self._ask(request)
            except (aiohttp.ClientError, TimeoutError) as error:
                reason = "timeout" if isinstance(error, TimeoutError) else type(error).__name__
                answer = Answer(0, {"detail": f"{reason} {error}".strip()}, False)
                sure = False
            else:
                self.tally.note(status, time.monotonic() - began_s)
                answer = Answer(status, body, sure)
                if status not in LATER:
                    return answer
                reason = str(status)
                wait_s += read_retry_after_s(headers)
            if tries < MOST_TRIES:
                self.tally.retries[reason] += 1
                await asyncio.sleep(wait_s)
        return answer

    async def _ask(self, request: Request) -> tuple[int, Mapping[str, str], Mapping[str, Any]]:
        call = request.write()
        headers = {"Authorization": f"Bearer {self._tokens[request.user_id]}"}
        if call.key:
            headers["Idempotency-Key"] = call.key
        async with self._session.request(
            call.method, self._base_url + call.path, json=call.question, headers=headers
        ) as response:
            raw = await response.read()
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            body = {"detail": raw[:200].decode(errors="replace")}
        return response.status, response.headers, body


def open_session(concurrency: int) -> aiohttp.ClientSession:
    """A client with connections enough for ``concurrency`` users who click twice."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=2 * concurrency, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
    )


def draw_wait_s(tries: int) -> float:
    """How long to wait after so many tries: by chance, and longer each time."""
    return random.uniform(0, min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**tries))


def read_retry_after_s(headers: Mapping[str, str]) -> float:
    """What Retry-After asks for, in seconds, within reason."""
    text = headers.get("Retry-After", "")
    return min(float(text), LONGEST_WAIT_S) if text.isascii() and text.isdigit() else 0.0
