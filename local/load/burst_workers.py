"""Processes of a burst: actors that like one post, and consumers that lag.

Messages to SQS go into queues in memory that all processes share, because the emulator of SQS does
not accept thousands of messages a second. A consumer is the function itself, called with batches as
Lambda calls it.
"""

import contextlib
import heapq
import multiprocessing
import queue
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest import mock

from aws_lambda_powertools.utilities.batch import process_partial_response

from local.stack.functions import become_function, make_record
from local.stack.queue_registry import load_queues

if TYPE_CHECKING:
    from plaza.infra.queues.sqs import Depth

FIRST_ACTOR = 9_700_001
MAX_START_S = 120.0
REACTIONS = "reactions"
_RETRY_S = 1.0
_MAX_WAIT_S = 0.02

_CONTEXT = multiprocessing.get_context("spawn")


class Answer(IntEnum):
    NONE = 0  # not sent yet
    SENT = 1
    LIKED = 2  # 200, changed
    WRONG = 3  # 200, unchanged, although it is the actor's first like
    UNDECIDED = 4  # 202 or 503


class Message(NamedTuple):
    """A message on its way, ordered by the time at which it is due (``time.time()``)."""

    due_s: float
    number: int
    queue: str
    body: str
    sent_ms: int


class Shared:
    """State that the processes of a burst share: two queues, counts, and the answers by actor.

    Reaction messages are delivered ``lag_s`` after they were sent, all others ``build_lag_s``
    after.
    """

    def __init__(self, likes: int, workers: int) -> None:
        self.lag_s, self.build_lag_s = _CONTEXT.RawValue("d", 0), _CONTEXT.RawValue("d", 0)
        self.answers = _CONTEXT.RawArray("b", likes)
        self.reactions: Any = _CONTEXT.Queue()
        self.others: Any = _CONTEXT.Queue()
        self._lock = _CONTEXT.Lock()
        self._sent, self._sent_reactions = _CONTEXT.RawValue("q", 0), _CONTEXT.RawValue("q", 0)
        self._done, self._done_reactions = _CONTEXT.RawValue("q", 0), _CONTEXT.RawValue("q", 0)
        self.start = _CONTEXT.Barrier(workers + 1)
        self.end = _CONTEXT.Event()

    def send(self, name: str, body: str, delay_s: int = 0) -> None:
        is_reaction = name == REACTIONS
        now_s = time.time()
        due_s = now_s + delay_s + (self.lag_s if is_reaction else self.build_lag_s).value
        with self._lock:
            self._sent.value += 1
            self._sent_reactions.value += is_reaction
            number = self._sent.value
        message = Message(due_s, number, name, body, int(now_s * 1000))
        (self.reactions if is_reaction else self.others).put(message)

    def send_all(self, name: str, messages: Sequence[Any], _: float | None = None) -> int:
        for message in messages:
            self.send(name, message if isinstance(message, str) else message.body)
        return len(messages)

    def count_unfinished(self, name: str = "") -> int:
        """Count the messages that are not consumed, in all queues or in ``reactions`` alone."""
        if name == REACTIONS:
            return int(self._sent_reactions.value - self._done_reactions.value)
        return int(self._sent.value - self._done.value)

    def measure(self, name: str) -> "Depth":
        from plaza.infra.queues.sqs import Depth

        return Depth(self.count_unfinished(name), 0, 0)

    def count_answers(self) -> Counter[Answer]:
        return Counter({Answer(value): n for value, n in Counter(bytes(self.answers)).items()})

    def count_done(self, name: str, messages: int) -> None:
        with self._lock:
            self._done.value += messages
            self._done_reactions.value += messages * (name == REACTIONS)

    @contextlib.contextmanager
    def replace_sqs(self) -> Iterator[None]:
        """Let this process use these queues meanwhile."""
        from plaza.infra.queues import sqs

        with mock.patch.multiple(sqs, send=self.send, send_all=self.send_all, measure=self.measure):
            yield


@contextlib.contextmanager
def start_workers(
    shared: Shared, environment: Mapping[str, str], post_id: int, likes: int, seconds: float
) -> Iterator[tuple[list[Any], list[Any]]]:
    """Start the processes of a burst. Yields (actors, consumers); ends all of them afterwards.

    The actors begin when the caller passes the barrier ``shared.start``.
    """
    workers = shared.start.parties - 1
    consumers = [
        _CONTEXT.Process(target=consume, args=(shared, environment, inbox), daemon=True)
        for inbox in (REACTIONS, "others")
    ]
    actors = [
        _CONTEXT.Process(
            target=like,
            args=(shared, environment, post_id, range(number, likes, workers), likes / seconds),
            daemon=True,
        )
        for number in range(workers)
    ]
    try:
        for process in (*consumers, *actors):
            process.start()
        yield actors, consumers
    finally:
        shared.end.set()
        shared.reactions.cancel_join_thread()  # nothing reads the messages that are left
        shared.others.cancel_join_thread()
        for process in consumers:
            process.join(10)
        for process in (*actors, *consumers):
            if process.is_alive():
                process.kill()
            process.join()


def like(
    shared: Shared,
    environment: Mapping[str, str],
    post_id: int,
    numbers: Sequence[int],
    rate_per_s: float,
) -> None:
    """Like a post once as each actor of ``places``, at ``rate_per_s`` over all processes."""
    become_function(environment)
    from plaza import reactions
    from plaza.infra.mysql import mysql
    from plaza.infra.redis import redis
    from plaza.infra.runtime.errors import Unavailable
    from plaza.reactions import react

    post = reactions.Target("post", post_id)
    redis.execute("PING")
    mysql.fetch_all("SELECT 1")
    with shared.replace_sqs():
        shared.start.wait(MAX_START_S)
        began_s = time.time()
        for number in numbers:
            early_s = began_s + number / rate_per_s - time.time()
            if early_s > 0:
                time.sleep(early_s)
            shared.answers[number] = Answer.SENT
            try:
                outcome = react.react(reactions.LIKE, post, FIRST_ACTOR + number, True)
            except Unavailable:
                shared.answers[number] = Answer.UNDECIDED
                continue
            if not outcome.exact:
                shared.answers[number] = Answer.UNDECIDED
            else:
                shared.answers[number] = Answer.LIKED if outcome.changed else Answer.WRONG


def consume(shared: Shared, environment: Mapping[str, str], inbox: str) -> None:
    """Consume ``reactions`` or all other queues, each message when it is due, until the end."""
    become_function(environment)
    source = shared.reactions if inbox == REACTIONS else shared.others
    processors: dict[str, Any] = {}
    waiting: list[Message] = []
    with shared.replace_sqs():
        while not shared.end.is_set():
            with contextlib.suppress(queue.Empty):
                heapq.heappush(waiting, source.get(timeout=_MAX_WAIT_S))
                while True:
                    heapq.heappush(waiting, source.get_nowait())
            for name, batch in _take_due(waiting).items():
                if name not in processors:
                    processors[name] = load_queues()[name].processor(load_queues()[name].handle)
                failed = _invoke(processors[name], batch)
                shared.count_done(name, len(batch) - len(failed))
                for message in failed:
                    heapq.heappush(waiting, message._replace(due_s=time.time() + _RETRY_S))


def _take_due(waiting: list[Message]) -> dict[str, list[Message]]:
    """Return the next batch of each queue; the other messages stay in ``waiting``."""
    now_s = time.time()
    batches: dict[str, list[Message]] = defaultdict(list)
    over = []
    while waiting and waiting[0].due_s <= now_s:
        message = heapq.heappop(waiting)
        batch = batches[message.queue]
        if len(batch) < load_queues()[message.queue].batch_size:
            batch.append(message)
        else:
            over.append(message)
            if message.queue == REACTIONS:
                break
    for message in over:
        heapq.heappush(waiting, message)
    return batches


def _invoke(processor: Any, batch: Sequence[Message]) -> list[Message]:
    records = [make_record(item.number, item.body, item.sent_ms) for item in batch]
    event = {"Records": records}
    response = process_partial_response(event, processor.record_handler, processor)
    failed = {failure["itemIdentifier"] for failure in response["batchItemFailures"]}
    return [message for message in batch if str(message.number) in failed]
