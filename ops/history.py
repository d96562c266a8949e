"""``import``: store likes, collects or follows of another system from a CSV file, with their times.

A row is one line: a field of CSV that spans lines is refused, and TSV, as ``mysql --batch`` writes
it, has no quotes. So each line of the file is stored, refused or empty, whatever stands beside it.

The file is read three times: first every line is checked, then batches of 1,000 lines are stored by
the code that stores events of the queue, so rows, reaction log, counters and Redis agree after each
batch; last the totals are compared. A reaction has its time as version. Storing it again changes
nothing, in any order, and never replaces a newer one. The position is written after each batch; a
repeated command continues there.
"""

import argparse
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from cli.files import (
    Line,
    OpenQuote,
    describe_bad_header,
    parse_whole_number,
    read_lines,
    split_csv,
)
from cli.output import new_summary, print_report, require_positive, show_progress
from cli.paths import CommandError
from ops.environment import use_environment
from ops.import_progress import SHOWN, Progress, locate, show_some
from ops.import_times import parse_time
from ops.sorted_records import SortedRecords
from plaza.core.reactions import KINDS, Target, mysql_snapshots, persist
from plaza.core.reactions.model import ReactionEvent, ReactionKey, require_kind
from plaza.core.targets import Existence, external_targets, mysql_store
from plaza.core.targets.external_targets import ExternalTarget
from plaza.core.targets.target_ids import parse_id
from plaza.core.targets.types import EXTERNAL, TYPES, TypedId
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import NotFound, Unavailable
from plaza.people.users.erasures import find_erased

LINES_PER_BATCH = 1_000
TARGETS_PER_READ = 200
_STATES = {"1": True, "true": True, "0": False, "false": False}
_TSV_ESCAPE = re.compile(r"\\([0nt\\])")
_ESCAPED = {"0": "\0", "n": "\n", "t": "\t", "\\": "\\"}


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a file, and what its lines are."""

    kind: str
    target: str
    user_column: str = "user_id"
    id_column: str = "post_id"
    time_column: str = "created_at"
    state_column: str | None = None

    @property
    def columns(self) -> list[str]:
        columns = [self.user_column, self.id_column, self.time_column]
        return columns + ([self.state_column] if self.state_column else [])

    def parse(self, row: Sequence[str], indexes: Sequence[int], now_us: int) -> ReactionEvent:
        """Return the event of a row; ``indexes``: of ``columns``. Raises ValueError."""
        user, target_id, at, *state = (row[index] for index in indexes)
        key = ReactionKey(
            self.target,
            self._parse_target(target_id),
            self.kind,
            parse_whole_number(self.user_column, user),
        )
        at_us = parse_time(self.time_column, at, now_us)
        if key.target_type == "user" and key.target_id == key.actor_id:
            raise ValueError(f"user {key.actor_id} follows itself")
        if state and state[0].lower() not in _STATES:
            raise ValueError(f"{self.state_column} is {state[0][:40]!r}, not 1, 0, true or false")
        on = _STATES[state[0].lower()] if state else True
        # Of a like and an unlike with the same time the unlike is the later one, in any order.
        return ReactionEvent(key, on, at_us + (not on))

    def _parse_target(self, text: str) -> int:
        if self.target not in EXTERNAL:
            return parse_whole_number(self.id_column, text)
        try:
            return parse_id(self.target, text)
        except NotFound as error:
            raise ValueError(f"{self.id_column}: {error}") from None


class Table:
    """Splits the lines of a table, given its header: TSV if that has a tab, else CSV."""

    def __init__(self, name: str, header: Line, columns: Sequence[str]) -> None:
        """Raises CommandError unless the header has each of ``columns`` once."""
        self._is_tsv = "\t" in header.text
        self._open_line = 0
        try:
            names = self.split(header)
        except ValueError as error:
            raise CommandError(f"{name}, line 1: {error}") from None
        for column in columns:
            if names.count(column) != 1:
                times = "with" if column not in names else "with one"
                raise CommandError(describe_bad_header(name, names, f"{times} {column}"))
        self.width = len(names)
        self.indexes = [names.index(column) for column in columns]

    def split(self, line: Line) -> list[str]:
        """Return the fields of a line, none of an empty one. Raises ValueError."""
        if line.problem:
            raise ValueError(line.problem)
        if self._is_tsv:
            fields = line.text.split("\t") if line.text else []
            return [_TSV_ESCAPE.sub(lambda match: _ESCAPED[match[1]], text) for text in fields]
        # What a user wrote into a field that spans lines must not be read as rows.
        if self._open_line:
            began = self._open_line
            if line.text.count('"') % 2:
                self._open_line = 0
            raise ValueError(f"part of the quoted field that begins in line {began}")
        try:
            return split_csv(line.text)
        except OpenQuote:
            self._open_line = line.number
            raise


class Batch(NamedTuple):
    """Consecutive lines: valid events with their lines, texts of bad lines, number of empty lines,
    number of the last line."""

    events: list[tuple[int, ReactionEvent]]
    bad: list[tuple[int, str]]
    empty: int
    last_line: int
    ids: Mapping[TypedId, str]


def read_batches(path: Path, layout: Layout, after_line: int = 0) -> Iterator[Batch]:
    """Yield the lines above ``after_line``. Raises CommandError for a bad file or header."""
    now_us, lines = clock.now_us(), read_lines(path)
    table = Table(path.name, next(lines, Line(1, "")), layout.columns)
    while chunk := list(islice(lines, LINES_PER_BATCH)):
        events, bad, empty = list[tuple[int, ReactionEvent]](), list[tuple[int, str]](), 0
        ids: dict[TypedId, str] = {}
        for line in chunk:
            try:
                row = table.split(line)  # those before after_line, too: one may open a quoted field
                if line.number <= after_line:
                    continue
                if not row:
                    empty += 1
                    continue
                if len(row) != table.width:
                    raise ValueError(f"{len(row)} columns, not {table.width}")
                event = layout.parse(row, table.indexes, now_us)
                events.append((line.number, event))
                ids[event.key[:2]] = row[table.indexes[1]]
            except ValueError as error:
                if line.number > after_line:
                    bad.append((line.number, str(error)))
        if chunk[-1].number > after_line:
            yield Batch(events, bad, empty, chunk[-1].number, ids)


def find_missing(batch: Batch) -> Batch:
    """Return the batch with its reactions of unknown users and to unknown or deleted targets among
    the bad lines. Targets of the app are created, if first reactions create them. Two statements,
    and two packets with targets of the app. Raises MysqlDown, RedisDown."""
    made = [
        ExternalTarget(target_type, external_id)
        for (target_type, _), external_id in batch.ids.items()
        if (declared := TYPES[target_type].external) and declared.by_first_reaction
    ]
    external_targets.create_all(made)
    keys = [event.key for _, event in batch.events]
    marks = mysql_store.read_existence(
        {("user", key.actor_id) for key in keys} | {key[:2] for key in keys}
    )
    absent = {what: m.existence for what, m in marks.items() if m.existence is not Existence.LIVE}
    erased = find_erased(what[1] for what in absent if what[0] == "user")
    events, bad = [], list(batch.bad)
    for line, event in batch.events:
        for what in (("user", event.key.actor_id), event.key[:2]):
            if what in absent:
                state = "deleted" if absent[what] is Existence.DELETED else "missing"
                if what[0] == "user" and what[1] in erased:
                    state = "erased"
                bad.append((line, f"{what[0]} {batch.ids.get(what, what[1])} is {state}"))
                break
        else:
            events.append((line, event))
    return batch._replace(events=events, bad=sorted(bad))


class TargetCount(NamedTuple):
    """A target, the number of its reactions at the end of the file, and Plaza's total of it."""

    target_id: int
    source: int
    plaza: int


def compare_counts(path: Path, layout: Layout, report: "ImportReport") -> None:
    """Add to the report the targets of a file whose count, without its bad lines, differs from the
    total of MySQL, and the lines that repeat an earlier one. Reads the file again, and sorts it in
    a temporary file. Three statements for 1,000 lines, one for 200 targets. Raises CommandError,
    MysqlDown."""
    with SortedRecords(4) as records:
        for batch in map(find_missing, read_batches(path, layout)):
            for line, event in batch.events:
                state = event.effective_version_us * 2 + event.on
                records.add(event.key.target_id, event.key.actor_id, state, line)
        targets = groupby(_skip_repeated(records, report), lambda record: record[0])
        counts = ((target_id, _count_active(of_target)) for target_id, of_target in targets)
        kind = KINDS[layout.kind]
        while part := dict(islice(counts, TARGETS_PER_READ)):
            requests = [(kind, Target(layout.target, target_id), ()) for target_id in part]
            report.targets += len(part)
            for (target_id, source), snapshot in zip(
                part.items(), mysql_snapshots.read_snapshots(requests, 1), strict=True
            ):
                if source != snapshot.total:
                    report.differing.append(TargetCount(target_id, source, snapshot.total))
    report.repeated_lines.sort()


def _skip_repeated(records: SortedRecords, report: "ImportReport") -> Iterator[tuple[int, ...]]:
    """Yield the records, except for lines that repeat an earlier line."""
    first: tuple[int, ...] = ()
    for record in records:
        if record[:3] != first[:3]:
            first = record
            yield record
        else:
            report.repeated += 1
            if len(report.repeated_lines) < SHOWN:
                report.repeated_lines.append((record[3], first[3]))


def _count_active(of_target: Iterator[tuple[int, ...]]) -> int:
    """Return the number of actors whose newest record is a reaction."""
    of_actors = groupby(of_target, lambda record: record[1])
    return sum(max(state for _, _, state, _ in records) & 1 for _, records in of_actors)


@dataclass(slots=True)
class ImportReport:
    """The result of an import. ``resumed_after``: the line after which this command began;
    ``bad_lines``: texts of the first bad lines that it met; ``repeated``: how many lines repeat an
    earlier one, and some of both; ``targets``: how many the file has, and ``differing``: targets of
    which Plaza has another number, because users reacted here, too."""

    name: str
    layout: Layout
    progress: Progress
    resumed_after: int
    bad_lines: list[str] = field(default_factory=list)
    lines: int = 0
    repeated: int = 0
    repeated_lines: list[tuple[int, int]] = field(default_factory=list)
    took_s: float = 0.0
    targets: int = 0
    differing: list[TargetCount] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return True  # bad lines end the command unless they are to be skipped

    def to_json(self) -> dict[str, Any]:
        progress = self.progress
        return {
            "file": self.name,
            "lines": self.lines,
            "stored": progress.stored,
            "changed": progress.changed,
            "unchanged": progress.stored - progress.changed,
            "repeated": self.repeated,
            "repeated_lines": self.repeated_lines,
            "empty": progress.empty,
            "bad": progress.bad,
            "bad_lines": self.bad_lines,
            "resumed_after": self.resumed_after,
            "targets": self.targets,
            "differing": [count._asdict() for count in self.differing],
            "took_s": round(self.took_s, 2),
        }


def main(args: argparse.Namespace) -> int:
    """Import a file. Raises CommandError, also when a store stops answering."""
    require_positive(args, "rate")
    if args.what != "reactions":
        from ops import records  # imports pydantic

        return records.main(args)
    layout = Layout(
        args.kind,
        args.target,
        args.user_column,
        args.id_column or ("followed_id" if args.target == "user" else f"{args.target}_id"),
        args.time_column,
        args.state_column,
    )
    with use_environment(args):
        report = import_file(
            args.file,
            layout,
            args.dir / "imports",
            rate=args.rate,
            skip_bad_lines=args.skip_bad_lines,
            from_start=args.from_start,
        )
    return print_report(args, report, show)


def import_file(
    path: Path,
    layout: Layout,
    directory: Path,
    *,
    rate: float | None = None,
    skip_bad_lines: bool = False,
    from_start: bool = False,
) -> ImportReport:
    """Check and store the lines of a file; keep the progress in ``directory``. Raises CommandError:
    nothing is stored if a line is bad, unless ``skip_bad_lines``."""
    try:
        require_kind(layout.kind, layout.target)
    except InvalidMessage as error:
        raise CommandError(str(error)) from None
    file = locate(directory, path, asdict(layout))
    progress = Progress() if from_start else Progress.load(file)
    report = ImportReport(path.name, layout, progress, progress.line)
    began_s = time.monotonic()
    out = Console(stderr=True, highlight=False)
    try:
        if not progress.checked:
            with show_progress(f"checking {path.name}", "lines", 0, out) as on_progress:
                bad, shown = _check(path, layout, on_progress)
            if bad and not skip_bad_lines:
                raise CommandError("\n  ".join([f"{bad:,} bad lines; nothing was stored", *shown]))
            progress.checked = True
            progress.save(file)
        with show_progress(f"storing {path.name}", "lines", 0, out) as on_progress:
            for batch in read_batches(path, layout, progress.line):
                began_batch_s = time.monotonic()
                _store(batch, report)
                progress.save(file)
                on_progress(progress.line, "")
                if rate:
                    pause_s = LINES_PER_BATCH / rate - (time.monotonic() - began_batch_s)
                    time.sleep(max(pause_s, 0))
        report.lines = progress.require_all_lines(path, headers=1)
        compare_counts(path, layout, report)
    except Unavailable as error:
        raise CommandError(
            f"{error} Lines up to {progress.line:,} are stored; run the command again to continue."
        ) from None
    file.unlink()
    report.took_s = time.monotonic() - began_s
    return report


def _check(
    path: Path, layout: Layout, on_progress: Callable[[int, str], None]
) -> tuple[int, list[str]]:
    """Return the number of bad lines, and the texts of the first ones."""
    count, shown = 0, list[str]()
    for batch in map(find_missing, read_batches(path, layout)):
        count += len(batch.bad)
        show_some(batch.bad, shown)
        on_progress(batch.last_line, f"[red]{count:,} bad[/red]" if count else "")
    return count, shown


def _store(batch: Batch, report: ImportReport) -> None:
    """Store one batch, and advance the progress. Raises MysqlDown, RedisDown."""
    progress, batch = report.progress, find_missing(batch)
    if batch.events:
        progress.changed += persist.save_history([event for _, event in batch.events])
    progress.stored += len(batch.events)
    progress.bad += len(batch.bad)
    progress.empty += batch.empty
    progress.line = batch.last_line
    show_some(batch.bad, report.bad_lines)


def show(report: ImportReport, out: Console) -> None:
    progress, layout = report.progress, report.layout
    unchanged = progress.stored - progress.changed
    out.print(
        new_summary(
            (f"{layout.kind}s of {layout.target}s", f"{progress.stored:,} lines", True),
            ("changed", f"{progress.changed:,}", ""),
            ("unchanged", f"{unchanged:,}: stored already, repeated, or older", ""),
            ("repeated", f"{report.repeated:,} lines are in the file before", ""),
            ("skipped", f"{progress.bad:,} bad lines", not progress.bad),
            ("empty", f"{progress.empty:,} of {report.lines:,} lines, with the header", ""),
            *(
                [("continued", f"after line {report.resumed_after:,}", "")]
                if report.resumed_after
                else []
            ),
            (
                "targets",
                f"{report.targets - len(report.differing):,} of {report.targets:,} have the"
                " number of the source",
                not report.differing,
            ),
            ("took", f"{report.took_s:,.1f} s", ""),
        )
    )
    for target_id, source, plaza in report.differing[:SHOWN]:
        out.print(Text(f"  {layout.target} {target_id}: source {source:,}, Plaza {plaza:,}"))
    for line, first in report.repeated_lines:
        out.print(Text(f"  line {line} repeats line {first}"))
    for text in report.bad_lines:
        out.print(Text(f"  {text}"))
