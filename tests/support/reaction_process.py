"""Plaza in a process of its own, with its own connection to Redis, which a test makes do one call
after the other.

It reads calls from standard input and prints their results, both JSON, one a line. Messages that
it sends to queues are part of the result.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from cli.paths import LAYER, ROOT
from plaza.core.reactions import LIKE, Target, failover_recovery, persist, queries, react, sweep
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.runtime.errors import Unavailable
from tests.support.plaza import FakeQueues, Sent, read_event

_MARK = "result "


class Shown(NamedTuple):
    """What a caller reads about a post."""

    total: int
    mine: bool
    exact: bool


def read(post_id: int, actor_id: int) -> Shown:
    """Read likes of a post. Raises Unavailable."""
    [result], exact = queries.read_counts([(LIKE, Target("post", post_id))], actor_id)
    return Shown(result.total, result.viewer_state, exact)


def like(post_id: int, actor_id: int, on: bool) -> tuple[bool, bool | None]:
    """Like a post, or end that. Returns whether the answer is exact, and ``changed``."""
    outcome = react.react(LIKE, Target("post", post_id), actor_id, on)
    return outcome.exact, outcome.changed


def save(*messages: tuple[str, int]) -> bool:
    """Save a batch of (body, time in milliseconds when it was sent). Returns True."""
    persist.save([read_event(Sent(body, sent_ms)) for body, sent_ms in messages])
    return True


def acknowledge(*bodies: str) -> bool:
    """Acknowledge messages again. Returns True."""
    persist.acknowledge_again([ACKNOWLEDGEMENTS.decode(body) for body in bodies])
    return True


def run_sweeper() -> int:
    """Run what the sweeper runs for reactions, as if a minute had passed. Returns how many events
    are acknowledged again."""
    failover_recovery.MIN_INTERVAL_S = 0
    sweep.sweep_outbox(resend_after_us=0)
    return failover_recovery.acknowledge_after_failover()


class ReactionProcess:
    """The side of the test."""

    def __init__(self, process: subprocess.Popen[str], queues: FakeQueues) -> None:
        self._process, self._queues = process, queues

    def read(self, post_id: int, actor_id: int) -> Shown | None:
        """Return what the process reads about a post; None if it is answered 503."""
        result = self._call("read", post_id, actor_id)
        return None if result is None else Shown(*result)

    def like(self, post_id: int, actor_id: int, on: bool = True) -> list[Any] | None:
        """Let the process send a like. Returns [exact, changed]; None if it is answered 503."""
        result: list[Any] | None = self._call("like", post_id, actor_id, on)
        return result

    def save(self, bodies: Sequence[Sent]) -> None:
        """Let the process save a batch of messages. It must succeed."""
        assert self._call("save", *((body, body.sent_ms) for body in bodies))

    def acknowledge(self, bodies: Sequence[Sent]) -> None:
        """Let the process acknowledge messages again. It must succeed."""
        assert self._call("acknowledge", *bodies)

    def run_sweeper(self) -> int | None:
        """Return how many events are acknowledged again; None if Redis is unavailable."""
        swept: int | None = self._call("run_sweeper")
        return swept

    def _call(self, name: str, *args: Any) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([name, *args]) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith(_MARK):
                result, sent = json.loads(line.removeprefix(_MARK))
                for queue, body in sent:
                    self._queues.send(queue, body)
                return result
        raise AssertionError("the process ended")


@contextmanager
def run_process(queues: FakeQueues) -> Iterator[ReactionProcess]:
    """Start a process that sends to ``queues``; end it after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.reaction_process"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{LAYER}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield ReactionProcess(process, queues)
    finally:
        process.kill()
        process.communicate()


_CALLS: dict[str, Callable[..., Any]] = {
    "read": read,
    "like": like,
    "save": save,
    "acknowledge": acknowledge,
    "run_sweeper": run_sweeper,
}


def main() -> None:
    """Do the calls, until standard input ends."""
    queues = FakeQueues()
    sqs.send, sqs.send_all, sqs.measure = queues.send, queues.send_all, queues.measure
    mysql.fetch_all("SELECT 1")
    for line in sys.stdin:
        name, *args = json.loads(line)
        try:
            result = _CALLS[name](*args)
        except Unavailable:
            result = None
        sent = [(queue, body) for queue in [*queues.messages] for body in queues.take(queue)]
        print(_MARK + json.dumps([result, sent]), flush=True)


if __name__ == "__main__":
    main()
