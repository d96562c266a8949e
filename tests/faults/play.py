"""Play a use case with a fault, run the system until it is quiet, and check the end.

The end is compared with two runs without faults: one with the request, one without it. A request
with an answer must end like the first; one without an answer, or with 5xx, like either. Names of
tables, keys and routes come from the stores and the contract.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import takewhile
from typing import Any, NamedTuple

from local.stack.processes import wait_until
from plaza.infra.runtime.process import clear_caches
from tests.faults.harness import Answer, Harness, Id, Snapshot
from tests.faults.transport import Call, Fault, Mode
from tests.faults.use_cases import (
    READER,
    ClientRequest,
    OperatorCommand,
    ScheduledRun,
    UseCase,
    populate,
)
from tests.support.plaza import FILL
from tests.support.routes import contract, operations

_LARGE = 2**40
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
_NUMBER = re.compile(r"(?<!\d)\d{13,19}(?!\d)")
# Of a session or a key; and the order token of a total, which has the time of a load.
_TOKEN = re.compile(r"\b[0-9a-f]{16,}\b|(?<![\w-])\d[\w-]{27}(?![\w-])")
_DIGITS = re.compile(r"\d+")
# Columns that count writes, or name the run or request of a write: a sweep or a retry has another
# request or none. ``expected`` is an estimate of MySQL's optimizer.
_UNCOMPARED = re.compile(r"(\w+_)?(version|seq)|run_id|epoch|generation|request_id|expected")
# Sequences of notifications depend on the batches. 0, for none, is compared.
_SEQUENCES = frozenset({"notified_sequence", "changed", "sequence"})
# Tables with a row for each acceptance, which may happen twice.
_JOURNAL = "_log"
# About the system, not about users.
_UNVIEWED = ("/ops/", "/health", "/openapi.json")
_VIEW_QUERY = {"x": 13.4, "y": 52.53}
# Cursors differ between runs; an inexact value may still be right; an order that was recovered has
# no request.
_UNSHOWN = {"next", "exact", "request_id"}
_COUNTS = re.compile(r"\b(?:state|\w+_total)=(?!0\b)")
_SHOWN = 3
_CONTEXT = 40
_MAX_RETRIES = 2
_MAX_WAIT_S = 5.0  # until a server detects a closed connection
_POLL_S = 0.15  # innodb_trx is cached for 0.1 s


class Triple(NamedTuple):
    """A use case, one of its calls, and what happens to the call."""

    case: UseCase
    call: Call
    fault: Fault

    @property
    def id(self) -> str:
        """Return the text for a line and for the name of a test."""
        return f"{self.case.name} [{self.fault.number} {self.call}] {self.fault.mode}"


@dataclass
class End:
    """The state when the system is quiet. A row is (column, value) pairs."""

    tables: dict[str, list[dict[str, str]]]
    views: dict[str, str]
    lasting_keys: set[str]


@dataclass
class Run:
    """One run of a use case, with its answers in order; the first is None without a request."""

    first: Answer | None
    then: list[Answer]
    end: End
    problems: list[str]


@dataclass
class Reference:
    """Runs without faults: with the action of the use case, and without it."""

    snapshot: Snapshot
    calls: list[Call]
    completed: Run
    undone: Run
    unstable: set[tuple[str, str]] = field(default_factory=set)
    """(table, column), ("", view) and ("answer", field) that differ between two runs without
    faults: made-up names, times."""


class Player:
    """Plays use cases on a harness. ``lines``: log lines of the last run."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        self.lines = ""
        self._base: Snapshot | None = None
        self._references: dict[str, Reference] = {}

    def reference(self, case: UseCase) -> Reference:
        """Return the runs of ``case`` without a fault. Asserts that they have no problems."""
        if case.name not in self._references:
            self._references[case.name] = self._refer(case)
        return self._references[case.name]

    def triples(self, case: UseCase, modes: Sequence[Mode] = tuple(Mode)) -> Iterator[Triple]:
        """Yield each call of ``case`` in each mode."""
        for index, call in enumerate(self.reference(case).calls):
            for mode in modes:
                if mode == Mode.OVERTAKEN and (call.service == "mysql" or not case.then):
                    continue  # the same as DELAYED
                yield Triple(case, call, Fault(index, mode))

    def play(self, triple: Triple) -> list[str]:
        """Return the problems of a run with the fault."""
        reference = self.reference(triple.case)
        run = self._run(triple.case, reference.snapshot, triple.fault)
        return [*run.problems, *judge(reference, run, triple.case)]

    def _refer(self, case: UseCase) -> Reference:
        harness = self.harness
        with self._logging():
            if self._base is None:
                harness.restore(
                    Snapshot([], {table: ([], []) for table in harness.tables}, {}, {}, {})
                )
                with harness.mysql.cursor() as cursor:
                    for statement in FILL:
                        cursor.execute(statement)
                harness.mysql.commit()
                populate(harness)
                self._base = harness.take_snapshot()
            harness.restore(self._base)
            case.given(harness)
            snapshot = harness.take_snapshot()
        self._run(case, snapshot, None)  # loads the scripts into Redis
        once = self._run(case, snapshot, None)
        calls = list(harness.transport.calls)
        again = self._run(case, snapshot, None)
        undone = self._run(case, snapshot, None, is_done=False)
        for run in (once, again):
            assert not run.problems, f"{case.name} without a fault: {run.problems}"
        unstable = set(find_unstable(once.end, again.end))
        if once.first and again.first:
            fields = set(_fields(once.first.body)) ^ set(_fields(again.first.body))
            unstable |= {("answer", name) for name, _ in fields}
        return Reference(snapshot, calls, once, undone, unstable)

    def _run(
        self, case: UseCase, snapshot: Snapshot, fault: Fault | None, *, is_done: bool = True
    ) -> Run:
        harness, transport = self.harness, self.harness.transport
        with self._logging():
            harness.restore(snapshot)
            case.reset(harness)
            first = None
            if is_done:
                with transport.recording(fault):
                    first = case.act(harness)
                if transport.is_dead:
                    harness.new_process()
            if fault and fault.mode == Mode.DELAYED:
                transport.execute_late()
            if isinstance(case.act, ScheduledRun):  # the next run follows in any case
                case.act(harness)
            harness.aws.end_visibility()
            then = [self._retry_until_available(ask) for ask in case.then]
            transport.execute_late()
            harness.new_process()
            may_have_holds = bool(first and not first.is_final) or bool(
                fault and fault.mode in (Mode.DELAYED, Mode.OVERTAKEN)
            )
            return Run(first, then, *self._observe_end(may_have_holds=may_have_holds))

    def _retry_until_available(self, ask: ClientRequest | OperatorCommand) -> Answer:
        """Return the final answer to a client that retries on 503."""
        answer = ask(self.harness)
        for _ in range(_MAX_RETRIES):
            if answer.status != 503:
                break
            self.harness.run_until_quiet()
            clear_caches()  # an unresponsive SQS is skipped for 2 s
            answer = ask(self.harness)
        return answer

    def _observe_end(self, *, may_have_holds: bool) -> tuple[End, list[str]]:
        """Run the system until it is quiet. Returns (end state, problems).

        ``may_have_holds``: a hold may be left, which expires within an hour: the hold of a
        request that did not end, or that was executed late.
        """
        harness = self.harness
        report = harness.run_until_quiet()
        differences = [
            difference
            for difference in report.differences
            if not (may_have_holds and difference.subject.startswith("holds of "))
        ]
        problems = [f"audit: {difference}" for difference in differences[:_SHOWN]]
        if report.pending or report.outbox_index:
            problems.append(
                f"pending for ever: {report.pending} in outboxes, {report.outbox_index} marked"
            )
        left = {name: count for name, count in {**report.queued, **report.dead}.items() if count}
        if left:
            problems.append(f"messages left: {left}")
        if not wait_until(lambda: harness.open_transactions() == 0, _MAX_WAIT_S, _POLL_S):
            problems.append("a transaction stays open")
        names = _invert(harness.ids)
        tables = {
            table: _read(harness, table, names)
            for table in harness.tables
            if not table.endswith(_JOURNAL)
        }
        return End(tables, self._views(names), _lasting_keys(harness)), problems

    def _views(self, names: dict[str, str]) -> dict[str, str]:
        """Return the answers of all routes that read, to the reader."""
        views = {}
        for operation in operations("get"):
            path = operation.partition(" ")[2]
            known = all(name in self.harness.ids for name in re.findall(r"\{(\w+)\}", path))
            if path.startswith(_UNVIEWED) or not known:
                continue
            declared = contract()["paths"][path]["get"].get("parameters", ())
            expected = {p["name"] for p in declared if p["in"] == "query" and p.get("required")}
            query = {name: _VIEW_QUERY[name] for name in expected if name in _VIEW_QUERY}
            answer = self.harness.request(operation, READER, query=query)
            shown = _without(answer.body or {}, _UNSHOWN)
            if isinstance(shown.get("items"), list):  # a late item has another position
                shown["items"] = sorted(_show(item, names) for item in shown["items"])
            text = _show(shown, names)
            views[operation] = f"{answer.status} {text}"
        return views

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        # Installed for each run: plugins of pytest restore ``socket.socket`` after each test.
        with (
            self.harness.transport.installed(),
            contextlib.redirect_stdout(io.StringIO()) as log,
        ):
            try:
                yield
            finally:
                self.lines = log.getvalue()


def judge(reference: Reference, run: Run, case: UseCase) -> Iterator[str]:
    """Return the problems of a run of ``case`` with a fault, in comparison with the references."""
    completed, undone = reference.completed, reference.undone
    is_request = completed.first is not None
    may_be_undone = False
    if is_request:
        assert run.first is not None
        varying = reference.unstable | {("answer", name) for name in case.varying}
        yield from _judge_first(completed.first, run.first, varying)  # type: ignore[arg-type]
        may_be_undone = not run.first.is_final
    for number, answer in enumerate(run.then):
        expected = {completed.then[number].status, undone.then[number].status}
        if answer.status not in expected:
            shown = ", ".join(map(str, sorted(expected)))
            yield f"request {number + 2} is answered {answer.status}, not {shown}: {answer.body}"
    unstable = reference.unstable | {("", name) for name in case.may_add}
    wrong = list(compare(completed.end, run.end, unstable, case.may_add))
    if wrong and may_be_undone:
        excused = unstable | {(table, "") for table in case.separate}
        ends = (
            list(compare(end, run.end, excused, case.may_add))
            for end in (completed.end, undone.end)
        )
        wrong = min(ends, key=len)
    yield from wrong[:_SHOWN]
    lasting = run.end.lasting_keys - completed.end.lasting_keys - undone.end.lasting_keys
    if lasting:
        yield f"keys that never end: {', '.join(sorted(lasting)[:_SHOWN])}"


def _judge_first(expected: Answer, answer: Answer, varying: set[tuple[str, str]]) -> Iterator[str]:
    """Compare an answer with the one without a fault; unknown or uncounted values may differ."""
    if answer.status in (0, 202, 503):
        return
    if answer.status != expected.status:
        yield f"answered {answer.status}, not {expected.status}: {answer.body}"
    elif not (isinstance(answer.body, dict) and answer.body.get("exact") is False):
        right, mine = dict(_fields(expected.body)), dict(_fields(answer.body))
        for name in sorted(right.keys() | mine.keys()):
            known = {("answer", name), ("answer", name.partition(".")[0])}
            if right.get(name) != mine.get(name) and not known & varying:
                yield f"answered {name} {mine.get(name)}, not {right.get(name)}"


def _without(body: Any, names: Collection[str]) -> Any:
    """Return ``body`` without the fields of these names."""
    match body:
        case dict():
            return {k: _without(v, names) for k, v in body.items() if k not in names}
        case list():
            return [_without(item, names) for item in body]
    return body


def _fields(body: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each field of an answer, as ``a.0.b``."""
    match body:
        case dict():
            for key, value in body.items():
                yield from _fields(value, f"{name}.{key}" if name else str(key))
        case list():
            for index, value in enumerate(body):
                yield from _fields(value, f"{name}.{index}")
        case _:
            yield name, normalize(json.dumps(body), {})


def compare(
    expected: End, result: End, unstable: set[tuple[str, str]], may_add: Collection[str] = ()
) -> Iterator[str]:
    """Yield where tables and views differ; tables that ``may_add`` names may have more rows that
    count nothing."""
    for table in expected.tables:
        if (table, "") in unstable:
            continue
        of_table = {column for name, column in unstable if name == table}
        before, now = (
            Counter(
                ", ".join(f"{k}={v}" for k, v in row.items() if k not in of_table)
                for row in end.tables[table]
            )
            for end in (expected, result)
        )
        if table in may_add:
            extra = now - before
            now -= Counter({row: n for row, n in extra.items() if not _COUNTS.search(row)})
        if before != now:
            yield f"{table}: missing {_some(before - now)}, extra {_some(now - before)}"
    for name, view in expected.views.items():
        shown = result.views.get(name, "")
        if ("", name) not in unstable and shown != view:
            same = sum(
                1
                for _ in takewhile(lambda pair: pair[0] == pair[1], zip(shown, view, strict=False))
            )
            start, end = max(0, same - _CONTEXT), same + 3 * _CONTEXT
            yield f"{name}: ...{shown[start:end]}... not ...{view[start:end]}..."


def find_unstable(item: End, other: End) -> Iterator[tuple[str, str]]:
    """Return (table, column) and ("", view) that differ between two runs without faults."""
    for table, rows in item.tables.items():
        for column in {name for row in rows for name in row}:
            counts = (
                Counter(row[column] for row in end.tables[table] if column in row)
                for end in (item, other)
            )
            if next(counts) != next(counts):
                yield table, column
    for name, view in item.views.items():
        if other.views[name] != view:
            yield "", name


def _show(body: Any, names: dict[str, str]) -> str:
    return normalize(json.dumps(body, sort_keys=True), names)


def normalize(text: str, names: dict[str, str]) -> str:
    """Replace times, new ids and tokens, which differ between runs."""
    text = _TIME.sub("<time>", text)
    text = _NUMBER.sub(lambda match: names.get(match[0], "<id>"), text)
    return _TOKEN.sub("<token>", text)


def _read(harness: Harness, table: str, names: dict[str, str]) -> list[dict[str, str]]:
    columns, rows = harness.read_table(table)
    return [
        {
            column: "<sequence>" if column in _SEQUENCES and value else _plain(value, names)
            for column, value in zip(columns, row, strict=True)
            if not _UNCOMPARED.fullmatch(column)
        }
        for row in rows
    ]


def _plain(value: Any, names: dict[str, str]) -> str:
    match value:
        case datetime():
            return "<time>"
        case date():
            return "<day>"
        case bytes():
            return "<bytes>"
        case int() if value >= _LARGE:
            return names.get(str(value), "<id>")
    return normalize(str(value), names)


def _lasting_keys(harness: Harness) -> set[str]:
    """Return the shapes of the keys of Redis that do not expire, but for the one of the log's
    watermark, which a schedule writes when a check is due."""
    results = list(harness.redis.scan_iter(count=1000))
    pipe = harness.redis.pipeline(transaction=False)
    for name in results:
        pipe.pttl(name)
    return {
        _DIGITS.sub("#", _TOKEN.sub("<token>", name.decode()))
        for name, ttl_ms in zip(results, pipe.execute(), strict=True)
        if ttl_ms == -1 and not name.endswith(b":log_checks")
    }


def _invert(ids: dict[str, Id]) -> dict[str, str]:
    return {str(value): f"<{name}>" for name, value in ids.items()}


def _some(rows: Counter[str]) -> str:
    shown = [f"({row})" for row in list(rows)[:2]]
    return " ".join(shown) + (f" and {len(rows) - 2} more" if len(rows) > 2 else "") or "none"
