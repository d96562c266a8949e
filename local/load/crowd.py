"""The load driver: crowds of concurrent requests to the HTTP API, and what was measured.

``Client.play`` takes a crowd (any iterable), what each member does, and sends its requests over
``concurrency`` connections, each of which has one request in flight. ``Tally`` is the result:
codes, latencies, and the number of requests that were in flight, measured at the sockets.
``play_in_processes`` calls functions instead, in processes as workers of Lambda run them.
"""

import asyncio
import json
import multiprocessing
import random
import resource
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit

import urllib3

from cli.output import Percentiles, read_percentiles
from cli.paths import CommandError
from local.load.requests import Call
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.redis import connections
from plaza.infra.runtime.process import reset_process

# Longer than the API may take: an abandoned request that is served later would be out of order.
TIMEOUT_S = 60.0
MAX_ATTEMPTS = 8
BASE_WAIT_S = 0.1
MAX_WAIT_S = 10.0
DONE_STATUSES = (200, 201)  # not 202, which is decided later
RETRY_STATUSES = (429, 503)
WORKERS = 4
_CONNECTING = 256  # at once: a server's queue of new connections is short
_SPARE_FILES = 200  # of this process, besides connections
_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_WORKERS_TIMEOUT_S = 600

Member = TypeVar("Member")


class Answer(NamedTuple):
    """The last answer to a request that may have been sent more than once.

    ``status`` is 0 without an answer, and ``body`` then has the reason. ``took_s``: from the last
    attempt's bytes to its answer. ``certain`` is false when an earlier request may have been
    executed although its answer was lost.
    """

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    took_s: float = 0.0
    certain: bool = True

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def retry_after_s(self) -> float:
        """Return Retry-After in seconds, at most ``MAX_WAIT_S``; 0 without a number."""
        text = self.headers.get("retry-after", "")
        return min(float(text), MAX_WAIT_S) if text.isascii() and text.isdigit() else 0.0

    def __str__(self) -> str:
        detail = self.body.get("detail") or self.body.get("title") or json.dumps(self.body)
        return f"{self.status or 'no answer'}: {str(detail)[:200]}"


class InFlight:
    """The number of requests that were written to a socket and are not answered, over time."""

    def __init__(self) -> None:
        self._now = 0
        self.begin()

    def begin(self) -> None:
        """Forget what was before."""
        self.max, self._area = self._now, 0.0
        self._began_s = self._since_s = time.monotonic()

    def add(self, change: int) -> None:
        now_s = time.monotonic()
        self._area += self._now * (now_s - self._since_s)
        self._now, self._since_s = self._now + change, now_s
        self.max = max(self.max, self._now)

    @property
    def mean(self) -> float:
        """Return the mean over the time since ``begin``."""
        self.add(0)
        return self._area / max(self._since_s - self._began_s, 1e-9)


@dataclass(slots=True)
class Tally:
    """Outcomes of requests, counted. Latencies are of answered requests, in seconds.

    ``in_flight``: mean and maximum while a crowd played, ``took_s`` its seconds. ``wrong``: answers
    that cannot be true; ``failures``: requests without a successful answer. ``statuses`` are of all
    answered requests; ``gaps_s`` the longest times in seconds between two answers with 200 or 201,
    and between two with any 2xx.
    """

    sent: int = 0
    ended: int = 0
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
    in_flight: tuple[float, int] = (0.0, 0)
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

    @property
    def rate(self) -> float:
        return self.sent / max(self.took_s, 1e-9)

    @property
    def percentiles(self) -> Percentiles:
        return read_percentiles(self.latencies_s)

    @property
    def errors(self) -> int:
        """Count requests without a response, or with status 429 or above."""
        return self.sent - sum(count for status, count in self.statuses.items() if status < 429)

    def describe_in_flight(self) -> str:
        mean, maximum = self.in_flight
        return f"{mean:,.0f} on average, {maximum:,} at most"


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection, with one request at a time, which ``in_flight`` counts."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self._received = bytearray()
        self._transport: Any = None
        self._answer: asyncio.Future[Answer] | None = None
        self._began_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        if (answer := parse_answer(self._received)) is None:
            return
        self._received.clear()
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        if waiting := self._end():
            waiting.set_result(answer._replace(took_s=time.monotonic() - self._began_s))

    def connection_lost(self, exc: Exception | None) -> None:
        if waiting := self._end():
            waiting.set_exception(exc or ConnectionResetError("the connection ended"))

    @property
    def is_closed(self) -> bool:
        return bool(self._transport.is_closing())

    def exchange(self, request: bytes) -> asyncio.Future[Answer]:
        """Write a request. Returns its answer, later."""
        self._answer = asyncio.get_running_loop().create_future()
        self._began_s = time.monotonic()
        self._transport.write(request)
        self._in_flight.add(1)
        return self._answer

    def close(self) -> None:
        self._transport.abort()

    def _end(self) -> asyncio.Future[Answer] | None:
        """Return what waits for the answer to the request, once."""
        waiting, self._answer = self._answer, None
        if waiting is not None:
            self._in_flight.add(-1)
        return None if waiting is None or waiting.done() else waiting


class Client:
    """Sends requests of users, at most ``concurrency`` at once. ``tokens``: user id -> token.

    A request has no session without a user. One that was refused for now is sent again, at most
    ``max_attempts`` times in all.
    """

    def __init__(
        self,
        base_url: str,
        tokens: Mapping[int, str],
        concurrency: int,
        max_attempts: int = MAX_ATTEMPTS,
    ) -> None:
        require_connections(concurrency)
        self.tally = Tally()
        self.base_url = base_url
        self.concurrency = concurrency
        self._max_attempts = max_attempts
        self.tokens = tokens
        self._in_flight = InFlight()
        self._slots = asyncio.Semaphore(concurrency)
        self._connecting = asyncio.Semaphore(_CONNECTING)
        self._idle: list[Connection] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._idle:
            connection.close()

    async def connect_all(self) -> None:
        """Open all connections, so that the first requests of a crowd leave at once.

        Raises CommandError.
        """
        try:
            self._idle += await asyncio.gather(
                *(self._connect() for _ in range(self.concurrency - len(self._idle)))
            )
        except OSError as error:
            raise CommandError(f"{self.base_url} can't be connected: {error}") from None

    async def play(
        self,
        crowd: Iterable[Member],
        act: Callable[[Member], Awaitable[object]],
        *,
        rate: float | None = None,
    ) -> Tally:
        """Let each member act, ``concurrency`` at once and at most ``rate`` a second.

        Raises CommandError of a member.
        """
        members, pace = iter(crowd), Pace(rate)

        async def work() -> None:
            for member in members:
                await pace.wait()
                await act(member)

        began_s = time.monotonic()
        self._in_flight.begin()
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self.concurrency):
                    group.create_task(work())
        except* CommandError as errors:
            raise errors.exceptions[0] from None
        self.tally.in_flight = self._in_flight.mean, self._in_flight.max
        self.tally.took_s = time.monotonic() - began_s
        return self.tally

    async def send(self, call: Call, user_id: int | None = None) -> Answer:
        """Send one request until its answer is final."""
        certain = True
        for tries in range(1, self._max_attempts + 1):
            self.tally.sent += 1
            try:
                answer = await self._exchange(call, user_id)
            except (OSError, TimeoutError) as error:
                reason = "timeout" if isinstance(error, TimeoutError) else type(error).__name__
                answer = Answer(0, {"detail": f"{reason} {error}".strip()}, {})
                certain = False
            else:
                self.tally.record_try(answer.status, answer.took_s)
                if answer.status not in RETRY_STATUSES:
                    break
                reason = str(answer.status)
            if tries < self._max_attempts:
                self.tally.retries[reason] += 1
                await asyncio.sleep(draw_backoff_s(tries) + answer.retry_after_s)
        return answer._replace(certain=certain)

    async def _exchange(self, call: Call, user_id: int | None) -> Answer:
        """Send a request once, when a connection is free. Raises OSError, TimeoutError."""
        request = self._render(call, user_id)
        async with self._slots:
            connection = await self._take_connection()
            try:
                answer = await asyncio.wait_for(connection.exchange(request), TIMEOUT_S)
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
        return answer

    async def _take_connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closed:
                return connection
        return await self._connect()

    async def _connect(self) -> Connection:
        url = urlsplit(self.base_url)
        async with self._connecting:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._in_flight), url.hostname or "", url.port or 80
            )
        return connection

    def _render(self, call: Call, user_id: int | None) -> bytes:
        body = b"" if call.body is None else json.dumps(call.body).encode()
        headers = {"host": urlsplit(self.base_url).netloc, "content-length": str(len(body))}
        if body:
            headers["content-type"] = "application/json"
        if user_id:
            headers["authorization"] = f"Bearer {self.tokens[user_id]}"
        if call.key:
            headers["idempotency-key"] = call.key
        lines = [
            f"{call.method} {call.path} HTTP/1.1",
            *(": ".join(pair) for pair in headers.items()),
        ]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Pace:
    """Limits starts to ``rate`` a second, evenly spaced; None is no limit."""

    def __init__(self, rate: float | None) -> None:
        self._gap_s = 1 / rate if rate else 0.0
        self._next_s = 0.0

    async def wait(self) -> None:
        if not self._gap_s:
            return
        now_s = time.monotonic()
        self._next_s = max(self._next_s + self._gap_s, now_s)
        await asyncio.sleep(self._next_s - now_s)


def send_once(base_url: str, token: str, call: Call) -> Answer:
    """Send one request of a user, also over TLS, until its answer is final."""
    again = urllib3.Retry(
        MAX_ATTEMPTS,
        backoff_factor=BASE_WAIT_S,
        status_forcelist=RETRY_STATUSES,
        allowed_methods=None,
        raise_on_status=False,
    )
    url, headers = base_url + call.path, {"authorization": f"Bearer {token}"}
    try:
        response = urllib3.request(call.method, url, json=call.body, headers=headers, retries=again)
    except urllib3.exceptions.HTTPError as error:
        return Answer(0, {"detail": f"{type(error).__name__}: {error}"}, {}, certain=False)
    lower = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, read_body(response.data), lower)


def require_connections(count: int) -> None:
    """Raise CommandError unless this machine allows so many connections to one server.

    The soft limit of open files is raised as needed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limits = {}
    if hard != resource.RLIM_INFINITY:
        limits["open files (ulimit -Hn)"] = hard - _SPARE_FILES
    if _PORTS.exists():
        first, last = map(int, _PORTS.read_text().split())
        limits["ports (ip_local_port_range)"] = last - first
    for name, limit in limits.items():
        if count > limit:
            raise CommandError(f"{count:,} connections: the limit of {name} allows {limit:,}")
    if resource.RLIM_INFINITY != soft < count + _SPARE_FILES:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count + _SPARE_FILES, hard))


def parse_answer(received: bytes | bytearray) -> Answer | None:
    """Return a response, its headers in lower case; None while a part of it is missing."""
    head, separator, body = bytes(received).partition(b"\r\n\r\n")
    if not separator:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    if len(body) < int(headers.get("content-length", 0)):
        return None
    return Answer(int(first.split(" ", 2)[1]), read_body(body), headers)


def read_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in a body; any other text as ``detail``."""
    try:
        body = json.loads(raw)
    except ValueError:
        body = None
    return body if isinstance(body, dict) else {"detail": raw.decode(errors="replace")[:200]}


def draw_backoff_s(tries: int) -> float:
    """Draw the wait before the next attempt: random, with a bound that doubles each time."""
    return random.uniform(0, min(MAX_WAIT_S, BASE_WAIT_S * 2**tries))


def play_in_processes(
    requests: Sequence[Callable[[], bool]],
    inside: Callable[[], AbstractContextManager[Any]] = nullcontext,
    workers: int = WORKERS,
) -> tuple[Tally, list[Any]]:
    """Share requests out to processes with connections of their own, each ``inside`` a context.

    A request returns whether it succeeded. Returns the tally without the first request of each
    process, with the latencies of those that succeeded, and what the contexts yielded.
    """
    fork = multiprocessing.get_context("fork")
    ready = fork.Barrier(workers + 1)
    results: Any = fork.SimpleQueue()

    def work(part: Sequence[Callable[[], bool]]) -> None:
        for inherited in (connections._client, mysql._connection, sqs._sender):
            inherited.forget()
        reset_process()  # blocks of ids, too
        with inside() as yielded:
            statuses = Counter({500: int(not part[0]())})  # connects, and is not measured
            latencies_s = []
            ready.wait()
            for request in part[1:]:
                began_s = time.perf_counter()
                if request():
                    latencies_s.append(time.perf_counter() - began_s)
                else:
                    statuses[500] += 1
            ready.wait()
        statuses[200] = len(latencies_s)
        results.put((statuses, latencies_s, yielded))

    processes = [fork.Process(target=work, args=(requests[i::workers],)) for i in range(workers)]
    for process in processes:
        process.start()
    ready.wait(timeout=60)
    began_s = time.perf_counter()
    ready.wait(timeout=_WORKERS_TIMEOUT_S)
    tally, contexts = Tally(took_s=time.perf_counter() - began_s), []
    for statuses, latencies_s, yielded in (results.get() for _ in processes):
        tally.statuses += statuses
        tally.latencies_s += latencies_s
        contexts.append(yielded)
    tally.sent = tally.statuses.total()
    for process in processes:
        process.join()
    return tally, contexts
