"""Players: many users send their requests to the HTTP API at once, each in order."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

from cli.paths import CommandError
from local.load.crowd import DONE_STATUSES, Client, Tally
from local.load.requests import Copies, Expectation, Reaction, Request

MAX_UNANSWERED = 10  # requests in a row without any answer, then the replay ends


class Turns:
    """Order of requests: of one user in sequence, of different users in parallel.

    Among the idle users, the one whose next request comes first in the file is next. Iterating
    yields the index of a request to send now, whose user is busy until ``release``, and ends when
    all users with requests left are busy.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        self._waiting: dict[int, deque[int]] = {}
        for index, request in enumerate(requests):
            self._waiting.setdefault(request.user_id, deque()).append(index)
        self._requests = requests
        self._ready = [(indexes[0], user_id) for user_id, indexes in self._waiting.items()]
        heapq.heapify(self._ready)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        if not self._ready:
            raise StopIteration
        _, user_id = heapq.heappop(self._ready)
        return self._waiting[user_id].popleft()

    def release(self, index: int) -> None:
        """Record that the request at ``index`` has ended; its user may send the next one."""
        user_id = self._requests[index].user_id
        if rest := self._waiting[user_id]:
            heapq.heappush(self._ready, (rest[0], user_id))


class Player(Client):
    """Plays requests and counts the outcomes. ``on_progress`` is called after each request.

    ``states``: reaction -> whether it is on, by its last answer; None while its request is in
    flight, and after an answer that does not tell. ``is_over``: all requests have ended.
    """

    def __init__(
        self,
        base_url: str,
        tokens: Mapping[int, str],
        concurrency: int,
        on_progress: Callable[[Tally], None],
    ) -> None:
        super().__init__(base_url, tokens, concurrency)
        self._on_progress = on_progress
        self.states: dict[Reaction, bool | None] = {}
        self.is_over = False
        self._unanswered = 0
        self._lost: set[int] = set()  # users with a failed request: their state is unknown

    async def play_requests(
        self,
        requests: Sequence[Request],
        expectations: Sequence[Expectation],
        *,
        rate: float | None = None,
    ) -> None:
        """Send ``requests``, users in parallel, and compare the answers with ``expectations``.

        Raises CommandError when the API stops answering.
        """
        turns = Turns(requests)

        async def do(index: int) -> None:
            await self._do(requests[index], expectations[index])
            turns.release(index)

        await self.play(turns, do, rate=rate)
        self.is_over = True

    async def _do(self, request: Request, expectation: Expectation) -> None:
        call, user_id = request.call, request.user_id
        if request.sets:
            self.states[request.sets[0]] = None
        match request.copies:
            case Copies.ONE:
                answers = [await self.send(call, user_id)]
            case Copies.AT_ONCE:
                both = self.send(call, user_id), self.send(call, user_id)
                answers = list(await asyncio.gather(*both))
            case Copies.IN_A_ROW:
                answers = [await self.send(call, user_id), await self.send(call, user_id)]
        tally = self.tally
        tally.ended += 1
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
            if request.sets and certain:
                self.states[request.sets[0]] = request.sets[1]
            tally.uncertain += not certain
            tally.wrong += expectation.find_wrong(request, [a.body for a in answers], certain)
        self._on_progress(tally)
        if self._unanswered >= MAX_UNANSWERED:
            raise CommandError(f"{self.base_url} stopped answering: {answers[-1]}")
