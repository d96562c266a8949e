"""Players: many users at once against the HTTP API, each doing one thing after the other."""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import aiohttp

from local.load.client import DONE_STATUSES, Client, Tally
from local.load.requests import Copies, Expectation, Request
from local.paths import LocalError

MAX_UNANSWERED = 10  # requests in a row that were given up without any answer: nobody is there


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

    def next_index(self) -> int | None:
        """The index of a request to send now; its user has no other turn until ``release``.

        None when everybody who has something left is at it.
        """
        if not self._ready:
            return None
        _, user_id = heapq.heappop(self._ready)
        return self._waiting[user_id].popleft()

    def release(self, index: int) -> None:
        """The request at ``index`` is done; its user may go on."""
        user_id = self._requests[index].user_id
        if rest := self._waiting[user_id]:
            heapq.heappush(self._ready, (rest[0], user_id))


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


class Player(Client):
    """Plays requests, and counts what comes of them. ``on_progress`` hears of each that is over."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base_url: str,
        tokens: Mapping[int, str],
        on_progress: Callable[[Tally], None],
    ) -> None:
        super().__init__(session, base_url, tokens)
        self._on_progress = on_progress
        self._unanswered = 0
        self._lost: set[int] = (
            set()
        )  # users a request of whom was given up: nothing is certain then

    async def play(
        self,
        requests: Sequence[Request],
        expectations: Sequence[Expectation],
        *,
        concurrency: int,
        rate: float | None,
    ) -> None:
        """Send ``requests``, users in parallel, and compare the answers with ``expectations``.

        Raises LocalError when nobody answers any more.
        """
        turns, pace, began_s = Turns(requests), Pace(rate), time.monotonic()

        async def take_turns(begin: asyncio.Event, begun: asyncio.Event) -> None:
            await begin.wait()
            while (index := turns.next_index()) is not None:
                await pace.wait()
                await self._do(requests[index], expectations[index])
                turns.release(index)
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

    async def _do(self, request: Request, expectation: Expectation) -> None:
        call, user_id = request.call, request.user_id
        match request.copies:
            case Copies.ONE:
                answers = [await self.send(call, user_id)]
            case Copies.AT_ONCE:
                both = self.send(call, user_id), self.send(call, user_id)
                answers = list(await asyncio.gather(*both))
            case Copies.IN_A_ROW:
                answers = [await self.send(call, user_id), await self.send(call, user_id)]
        tally = self.tally
        tally.done += 1
        tally.duplicates += len(answers) - 1
        for answer in answers:
            tally.accepted += answer.is_success
            tally.changed += answer.body.get("changed") is True
            self._unanswered = 0 if answer.status else self._unanswered + 1
            if not answer.is_success:
                tally.failures.append(f"{request}: {answer}")
                self._lost.add(request.user_id)
        if request.user_id not in self._lost:
            certain = all(answer.certain and answer.status in DONE_STATUSES for answer in answers)
            tally.uncertain += not certain
            tally.wrong += expectation.find_wrong(request, [a.body for a in answers], certain)
        self._on_progress(tally)
        if self._unanswered >= MAX_UNANSWERED:
            raise LocalError(f"nobody answers at {self._base_url} any more: {answers[-1]}")
