"""``python -m bench.flood``: who gets executions while requests flood an account.

A simulation in steps of 10 ms, three minutes long, with a fixed seed; nothing is measured. Requests
and consumers start executions from one pool, unless some are reserved; Lambda refuses what finds
none free, and what exceeds ten starts a second for each execution of the quota. Of those that
compete in a step chance decides. Executions, batches and schedules are read from template.yaml; how
long something takes is in ``TIMES``, and is assumed. ``--json`` prints the rows.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table

from cli.output import wide_console
from cli.paths import TEMPLATE
from deploy.preflight import REQUESTS_PER_EXECUTION, UNRESERVED
from tools.template.text import load

STEP_S = 0.01
FLOOD_S = 180
BURST_S = 0.1  # assumed: Lambda's limit of starts is no smoother than that
SEED = 42
GROUP = 10  # requests that take equally long

TIMES = {
    "batch_s": 0.05,  # assumed: what a batch of SaveReactions takes besides its events
    "event_s": 0.00025,  # assumed: an event of a batch; eight batches at once store 32,000 a second
    "run_s": 5.0,  # assumed: a run of a schedule
    "retry_s": 1.0,  # assumed: pause of a queue's poller whose batch was refused
    "max_age_s": 60.0,  # template.yaml: MaximumEventAgeInSeconds of a schedule
}


class Functions(NamedTuple):
    """What of the template competes for executions. ``reserved``: by ReserveConcurrency=1, in all;
    ``savers``, ``batch``: executions of SaveReactions, and its events at once; ``minutely``: the
    schedules of each minute."""

    reserved: int
    savers: int
    batch: int
    minutely: int


class Scenario(NamedTuple):
    """An account and a flood. ``rate_limit``: RequestsPerSecond; None without a limit."""

    quota: int
    offered_per_s: int
    request_ms: int
    reserves: bool = False
    rate_limit: int | None = None


class Outcome(NamedTuple):
    """What became of a flood. ``behind_s``: age of the oldest event at its end."""

    answered_per_s: int
    stored_per_s: int
    behind_s: int
    runs: int
    runs_due: int


SCENARIOS = (
    Scenario(1_000, 8_000, 100),
    Scenario(1_000, 20_000, 100),
    Scenario(1_000, 20_000, 100, reserves=True),
    Scenario(1_000, 20_000, 500),
    Scenario(1_000, 20_000, 500, reserves=True),
    Scenario(1_000, 100_000, 500),
    Scenario(1_000, 100_000, 500, reserves=True),
    Scenario(50, 5_000, 500),
    Scenario(50, 5_000, 500, rate_limit=50),
    Scenario(10, 1_000, 500),
    Scenario(10, 1_000, 500, rate_limit=10),
)


def read_functions() -> Functions:
    """Return what the template has."""
    resources: Mapping[str, Any] = load(TEMPLATE.read_text())["Resources"]
    properties = [resource.get("Properties", {}) for resource in resources.values()]
    mapping = resources["SaveReactionsMessages"]["Properties"]
    timers = [
        event["Properties"]["ScheduleExpression"]
        for each in properties
        for event in each.get("Events", {}).values()
        if event["Type"] == "ScheduleV2"
    ]
    return Functions(
        sum(p["ReservedConcurrentExecutions"]["Fn::If"][1] for p in properties if _reserves(p)),
        mapping["ScalingConfig"]["MaximumConcurrency"],
        mapping["BatchSize"],
        timers.count("rate(1 minute)"),
    )


def _reserves(properties: Mapping[str, Any]) -> bool:
    return "ReservedConcurrentExecutions" in properties


class _Attempt(NamedTuple):
    """What wants an execution: since when, at which step, after how many refusals."""

    is_run: bool
    since_s: float
    at: int
    refusals: int = 0


class _Account:
    """The executions of an account while it is flooded."""

    def __init__(self, scenario: Scenario, functions: Functions) -> None:
        self._scenario, self._functions = scenario, functions
        self._random = random.Random(SEED)
        self._free = scenario.quota - (functions.reserved if scenario.reserves else 0)
        self._ends: dict[int, int] = {}  # step -> executions of the pool that end then
        self._saver_ends: dict[int, int] = {}
        self._savers = 0  # that run
        self._events: deque[list[float]] = deque()  # [second, events]
        self._attempts: list[_Attempt] = []
        self._waiting_savers = 0
        self._offered = 0.0
        self._starts = 0.0
        self._stored_at: dict[int, int] = {}
        self.answered = self.stored = self.runs = self.runs_due = 0

    def play(self) -> Outcome:
        """Return what became of the flood."""
        steps = round(FLOOD_S / STEP_S)
        for step in range(steps):
            self._end(step)
            if step % round(60 / STEP_S) == 0:
                self.runs_due += self._functions.minutely
                run = _Attempt(True, step * STEP_S, step)
                self._attempts += [run] * self._functions.minutely
            self._poll(step)
            self._start(step)
        oldest = self._events[0][0] if self._events else FLOOD_S
        return Outcome(
            round(self.answered / FLOOD_S),
            round(self.stored / FLOOD_S),
            round(FLOOD_S - oldest),
            self.runs,
            self.runs_due,
        )

    def _end(self, step: int) -> None:
        self._free += self._ends.pop(step, 0)
        self._savers -= self._saver_ends.pop(step, 0)
        self.stored += self._stored_at.pop(step, 0)

    def _poll(self, step: int) -> None:
        """Let each idle poller of SaveReactions ask for an execution, if events wait."""
        idle = self._functions.savers - self._savers - self._waiting_savers
        batches = -(-int(sum(count for _, count in self._events)) // self._functions.batch)
        for _ in range(min(idle, batches - self._waiting_savers)):
            self._attempts.append(_Attempt(False, step * STEP_S, step))
            self._waiting_savers += 1

    def _start(self, step: int) -> None:
        scenario = self._scenario
        per_s = REQUESTS_PER_EXECUTION * scenario.quota
        self._starts = min(self._starts + per_s * STEP_S, per_s * BURST_S)
        limit = scenario.rate_limit or scenario.offered_per_s
        self._offered += min(scenario.offered_per_s, limit) * STEP_S
        requests, self._offered = int(self._offered), self._offered % 1
        due = [attempt for attempt in self._attempts if attempt.at <= step]
        self._attempts = [attempt for attempt in self._attempts if attempt.at > step]
        if scenario.reserves:
            for attempt in due:
                self._run(attempt, step, is_of_pool=False)
            due = []
        slots = min(self._free, int(self._starts))
        attempts = requests + len(due)
        for attempt in due:
            if self._random.random() * attempts < slots:
                self._run(attempt, step, is_of_pool=True)
                slots -= 1
            else:
                self._refuse(attempt, step)
            attempts -= 1
        served = min(requests, slots)
        self.answered += served
        self._free -= served
        self._starts -= served
        if served:
            for first in range(0, served, GROUP):
                end = step + max(1, round(self._vary(scenario.request_ms / 1_000) / STEP_S))
                self._ends[end] = self._ends.get(end, 0) + min(GROUP, served - first)
            self._events.append([step * STEP_S, served])

    def _run(self, attempt: _Attempt, step: int, *, is_of_pool: bool) -> None:
        if attempt.is_run:
            self.runs += 1
            length_s = TIMES["run_s"]
        else:
            count = self._take()
            self._waiting_savers -= 1
            self._savers += 1
            length_s = TIMES["batch_s"] + TIMES["event_s"] * count
        end = step + max(1, round(length_s / STEP_S))
        if is_of_pool:
            self._free -= 1
            self._starts -= 1
            self._ends[end] = self._ends.get(end, 0) + 1
        if not attempt.is_run:
            self._saver_ends[end] = self._saver_ends.get(end, 0) + 1
            self._stored_at[end] = self._stored_at.get(end, 0) + count

    def _refuse(self, attempt: _Attempt, step: int) -> None:
        pause_s = self._vary(TIMES["retry_s"]) * (2**attempt.refusals if attempt.is_run else 1)
        again = attempt._replace(
            at=step + round(pause_s / STEP_S), refusals=min(attempt.refusals + 1, 6)
        )
        if attempt.is_run and again.at * STEP_S - attempt.since_s > TIMES["max_age_s"]:
            return  # dropped; the alarm AsyncDropsAlarm counts it
        self._attempts.append(again)

    def _vary(self, mean_s: float) -> float:
        """Return a duration between half of the mean and one and a half."""
        return mean_s * (0.5 + self._random.random())

    def _take(self) -> int:
        """Return the events of a batch, the oldest ones."""
        left = self._functions.batch
        while self._events and left:
            taken = min(left, int(self._events[0][1]))
            left -= taken
            self._events[0][1] -= taken
            if self._events[0][1] < 1:
                self._events.popleft()
        return self._functions.batch - left


def play(scenario: Scenario, functions: Functions) -> Outcome:
    """Return what becomes of a flood. Raises ValueError if the account cannot reserve so much."""
    if scenario.reserves and scenario.quota < functions.reserved + UNRESERVED:
        raise ValueError(f"{scenario.quota} executions are too few to reserve")
    return _Account(scenario, functions).play()


def list_rows(functions: Functions) -> Iterator[tuple[Scenario, Outcome]]:
    """Yield each scenario with its outcome."""
    return ((scenario, play(scenario, functions)) for scenario in SCENARIOS)


def format_row(scenario: Scenario, outcome: Outcome) -> list[str]:
    """Return the cells of a row."""
    guard = "reserved" if scenario.reserves else "none"
    if scenario.rate_limit is not None:
        guard = f"RequestsPerSecond={scenario.rate_limit}"
    return [
        f"{scenario.quota:,}",
        f"{scenario.offered_per_s:,} x {scenario.request_ms} ms",
        guard,
        f"{outcome.answered_per_s:,}",
        f"{outcome.stored_per_s:,}",
        f"{outcome.behind_s} s",
        f"{outcome.runs} of {outcome.runs_due}",
    ]


HEADINGS = ("quota", "requests a second", "guard", "answered/s", "stored/s", "behind", "runs")


def main(argv: Sequence[str]) -> None:
    """Play all scenarios and print them."""
    parser = argparse.ArgumentParser(prog="python -m bench.flood", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON array instead of a table")
    options = parser.parse_args(argv)
    functions = read_functions()
    rows = [format_row(scenario, outcome) for scenario, outcome in list_rows(functions)]
    if options.json:
        print(json.dumps([dict(zip(HEADINGS, row, strict=True)) for row in rows], indent=2))
        return
    table = Table(title=f"A flood of {FLOOD_S // 60} minutes, simulated", title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    wide_console().print(table)
    print(
        f"{functions.reserved} executions are reserved, {functions.savers} of them for"
        f" SaveReactions; an account needs {functions.reserved + UNRESERVED} for that."
    )


if __name__ == "__main__":
    main(sys.argv[1:])
