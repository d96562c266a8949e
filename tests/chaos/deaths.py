"""Consumers of outgoing events that die between any two steps, under load.

Processes of the three functions of webhooks are killed (SIGKILL) at random moments, the receiver
refuses some events, and a reader of ``GET /ops/events`` dies before it stores its cursor. After
that, each event that Plaza has was received and read, in the order of its log.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cli.paths import CommandError
from local.audit.backlog import shorten_visibility_timeout
from local.stack.processes import wait_until
from plaza.integrations.webhooks import operate_webhooks
from plaza.people.auth import operate_server_keys
from tests.chaos.harness import Harness
from tests.chaos.traffic import Orders, Workload
from tests.chaos.waits import find_audit_problems, wait_until_normal, wait_until_quiet
from tests.support.receiver import Receiver, is_signed, receiving

KILLED = ("DispatchWebhooks", "SendWebhooks", "RecordDeliveries")
LOAD_S = 60.0
MIN_DEATHS = 3  # of each function
MAX_PAUSE_S = 1.2  # between two deaths
MAX_DELIVERY_S = 180.0
LEASE_ENDS_EVERY_S = 3.0
REFUSES_EVERY_S = 3.0  # at the mean
VISIBILITY_S = 35  # of messages of killed consumers; a batch takes 25 s at most
_LEASES = "UPDATE webhook SET leased_until = UTC_TIMESTAMP(6), next_at = UTC_TIMESTAMP(6)"


class Deaths(NamedTuple):
    """The result: how often each function was killed, numbers of events, of requests to the
    receiver, of pages that the reader read again; what is wrong."""

    killed: Counter[str]
    events: int
    requests: int
    reread: int
    problems: list[str]


class Reader:
    """A reader of events. ``ids``: what it handled, each page before its cursor is stored."""

    def __init__(self, harness: Harness, key: str) -> None:
        self._address, self._key = harness.address, key
        self._after: str | None = None
        self.ids: list[str] = []
        self.reread = 0

    def step(self, dies: bool) -> bool:
        """Read a page; return whether there is more. One that dies stores no cursor."""
        after = f"&after={self._after}" if self._after else ""
        reply = self._address.ask("GET", f"/ops/events?limit=100{after}", self._key)
        if reply.status != 200:
            return True
        self.ids += [event["id"] for event in reply.body["events"]]
        if dies:
            self.reread += bool(reply.body["events"])
        else:
            self._after = reply.body["next"]
        return dies or bool(reply.body["has_more"])


def play(harness: Harness) -> Deaths:
    """Let consumers die for a minute of load, then compare what was received with what there is."""
    problems: list[str] = []
    killed: Counter[str] = Counter()
    _, key = operate_server_keys.make_server_key("chaos", ["events"], 1_000, operator_id="chaos")
    reader = Reader(harness, key)
    while reader.step(dies=False):
        pass
    begin = len(reader.ids)
    with (
        receiving() as receiver,
        shorten_visibility_timeout(
            harness.stack, "webhooks", "deliveries", visibility_timeout_s=VISIBILITY_S
        ),
    ):
        webhook_id, secret = operate_webhooks.make_webhook(receiver.url, [], operator_id="chaos")
        try:
            operations = harness.open_pairs()
            with Workload(operations) as workload, _ending(harness, reader, receiver, killed):
                since_s = time.monotonic()
                time.sleep(LOAD_S)
                wait_until_normal(workload, operations, since_s, problems)
            for operation in operations:
                if isinstance(operation, Orders):
                    problems += operation.click_again()
            wait_until_quiet(harness, operations, time.monotonic(), problems)
            problems += workload.errors
            receiver.statuses.clear()
            harness.rows(_LEASES)

            def has_all() -> bool:
                while reader.step(dies=False):
                    pass
                return set(reader.ids[begin:]) == set(receiver.ids)

            wait_until(has_all, MAX_DELIVERY_S, 0.5)
            expected = list(dict.fromkeys(reader.ids[begin:]))
            received = set(receiver.ids)
            if missing := [each for each in expected if each not in received]:
                problems.append(f"{len(missing)} events were not received: {missing[:3]}")
        finally:
            operate_webhooks.end_webhook(webhook_id, operator_id="chaos")
    problems += _find_wrong(reader.ids[begin:], receiver, secret)
    problems += [
        f"{name} was killed {killed[name]} times" for name in KILLED if killed[name] < MIN_DEATHS
    ]
    for operation in operations:
        problems += [f"lost: {what}" for what in operation.check(harness.rows)[1][:5]]
    problems += find_audit_problems(harness)
    return Deaths(killed, len(expected), len(receiver.requests), reader.reread, problems)


@contextlib.contextmanager
def _ending(
    harness: Harness, reader: Reader, receiver: Receiver, killed: Counter[str]
) -> Iterator[None]:
    """End processes, refuse events, and let the reader die, until the end of the block."""
    stop = threading.Event()
    threads = [
        threading.Thread(target=target, args=(stop, *args), daemon=True)
        for target, args in (
            (_kill, (harness, killed)),
            (_read, (reader,)),
            (_refuse, (receiver,)),
            (_end_leases, (harness,)),
            (_dispatch, (harness,)),
        )
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _kill(stop: threading.Event, harness: Harness, killed: Counter[str]) -> None:
    chance = random.Random(1)
    while not stop.wait(chance.uniform(0.05, MAX_PAUSE_S)):
        with contextlib.suppress(CommandError, OSError):
            workers = harness.stack.read_workers()
            name = chance.choice(KILLED)
            if pids := workers.get(name):
                os.kill(chance.choice(pids), signal.SIGKILL)
                killed[name] += 1


def _read(stop: threading.Event, reader: Reader) -> None:
    chance = random.Random(2)
    while not stop.wait(0.2):
        reader.step(dies=chance.random() < 0.3)


def _refuse(stop: threading.Event, receiver: Receiver) -> None:
    chance = random.Random(3)
    while not stop.wait(chance.uniform(0, 2 * REFUSES_EVERY_S)):
        receiver.statuses[:] = [500]


def _end_leases(stop: threading.Event, harness: Harness) -> None:
    """End leases and pauses early, so that a minute has as many deaths as an hour."""
    while not stop.wait(LEASE_ENDS_EVERY_S):
        harness.rows(_LEASES)


def _dispatch(stop: threading.Event, harness: Harness) -> None:
    """Run DispatchWebhooks again when it has ended or died, instead of each minute."""
    while not stop.wait(0.5):
        with contextlib.suppress(CommandError):
            harness.stack.invoke("DispatchWebhooks", {})


def _find_wrong(read: Sequence[str], receiver: Receiver, secret: str) -> list[str]:
    """Return what was received that is no event, out of the order of its log, or not signed."""
    problems = []
    events, received = list(dict.fromkeys(read)), list(dict.fromkeys(receiver.ids))
    if invented := set(received) - set(events):
        problems.append(f"{len(invented)} received are no events: {sorted(invented)[:3]}")
    for of_reactions in (True, False):
        of_log = [each for each in events if _is_reaction(each) is of_reactions]
        got = [each for each in received if _is_reaction(each) is of_reactions]
        if got != of_log and set(got) == set(of_log):
            at = next(n for n, pair in enumerate(zip(got, of_log, strict=True)) if len({*pair}) > 1)
            problems.append(f"the order differs from event {at} on: {got[at]}, not {of_log[at]}")
    unsigned = sum(not is_signed(*request, secret) for request in receiver.requests)
    if unsigned:
        problems.append(f"{unsigned} requests are not signed")
    return problems


def _is_reaction(event_id: str) -> bool:
    """Return whether an event is of the reaction log."""
    return event_id.partition("_")[0] in ("like", "collect", "follow")


def render(result: Deaths, took_s: float) -> str:
    """Return the figures as text."""
    killed = ", ".join(f"{name} {result.killed[name]} times" for name in KILLED)
    wrong = len(result.problems)
    lines = [
        f"Seen on {os.cpu_count()} cores in {took_s / 60:.0f} minutes: killed {killed};"
        f" {result.events:,} events, received by {result.requests:,} requests; the reader died with"
        f" {result.reread} pages; {wrong} lost, invented, unsigned or out of order."
    ]
    return "\n".join([*lines, *(f"* **Not as expected**: {each}" for each in result.problems)])
