"""Players: many users send their requests to the HTTP API at once, each in order."""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import aiohttp

from cli.paths import CommandError
from local.load.client import DONE_STATUSES, Client, Tally
from local.load.requests import Copies, Expectation, Request

MAX_UNANSWERED = 10  # requests in a row without any answer, then the replay ends


class Turns:
    """Order of requests: of one user in sequence, of different users in parallel.

    Among the idle users, the one whose next request comes first in the file is next.
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
        return len(self._waiting)

    def next_index(self) -> int | None:
        """Return the index of a request to send now; its user is busy until ``release``.

        None when all users with requests left are busy.
        """
        if not self._ready:
            return None
        _, user_id = heapq.heappop(self._ready)
        return self._waiting[user_id].popleft()

    def release(self, index: int) -> None:
        """Record that the request at ``index`` has ended; its user may send the next one."""
        user_id = self._requests[index].user_id
        if rest := self._waiting[user_id]:
            heapq.heappush(self._ready, (rest[0], user_id))


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


class Player(Client):
    """Plays requests and counts the outcomes. ``on_progress`` is called after each request."""

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
        self._lost: set[int] = set()  # users with a failed request: their state is unknown

    async def play(
        self,
        requests: Sequence[Request],
        expectations: Sequence[Expectation],
        *,
        concurrency: int,
        rate: float | None,
    ) -> None:
        """Send ``requests``, users in parallel, and compare the answers with ``expectations``.

        Raises CommandError when the API stops answering.
        """
        turns, pace, began_s = Turns(requests), Pace(rate), time.monotonic()

        async def send_in_turn(begin: asyncio.Event, begun: asyncio.Event) -> None:
            await begin.wait()
            while (index := turns.next_index()) is not None:
                await pace.wait()
                await self._do(requests[index], expectations[index])
                turns.release(index)
                begun.set()
            begun.set()

        # Each task begins when the one before had an answer, so that functions start cold one after
        # the other, not all at once on a machine with two cores.
        try:
            async with asyncio.TaskGroup() as group:
                begin = asyncio.Event()
                begin.set()
                for _ in range(min(concurrency, turns.users)):
                    begun = asyncio.Event()
                    group.create_task(send_in_turn(begin, begun))
                    begin = begun
        except* CommandError as errors:
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
            raise CommandError(f"{self._base_url} stopped answering: {answers[-1]}")
