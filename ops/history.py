"""``import``: store likes, collects or follows of another system from a CSV file, with their times.

The file is read twice: first every line is checked, then batches of 1,000 lines are stored by the
code that stores events of the queue, so rows, reaction log, counters and Redis agree after each
batch. A reaction has its time as version. Storing it again changes nothing, in any order, and never
replaces a newer one. The position is written after each batch; a repeated command continues there.
"""

import argparse
import csv
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from cli.files import UNREADABLE, describe_bad_header, open_text, parse_whole_number
from cli.output import new_summary, print_report, require_positive, show_progress
from cli.paths import CommandError
from ops.environment import use_environment
from plaza.infra.mysql import sql
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.settings import BadSettings, settings
from plaza.reactions import KINDS, Target, mysql_snapshots, persist
from plaza.reactions.model import ReactionEvent, ReactionKey, require_kind
from plaza.targets import Existence, mysql_store

LINES_PER_BATCH = 1_000
TARGETS_PER_READ = 200
SHOWN = 20
_STATES = {"1": True, "true": True, "0": False, "false": False}
_UNIX_TIME = re.compile(r"(\d{1,11})(?:\.(\d{1,6}))?", re.ASCII)


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
        if max(indexes) >= len(row):
            raise ValueError(f"{len(row)} columns, not {max(indexes) + 1} or more")
        user, target_id, at, *state = (row[index] for index in indexes)
        key = ReactionKey(
            self.target,
            parse_whole_number(self.id_column, target_id),
            self.kind,
            parse_whole_number(self.user_column, user),
        )
        at_us = parse_time(self.time_column, at)
        if key.target_type == "user" and key.target_id == key.actor_id:
            raise ValueError(f"user {key.actor_id} follows itself")
        if at_us > now_us:
            raise ValueError(f"{self.time_column} is {at!r}, in the future")
        if state and state[0].lower() not in _STATES:
            raise ValueError(f"{self.state_column} is {state[0][:40]!r}, not 1, 0, true or false")
        on = _STATES[state[0].lower()] if state else True
        # Of a like and an unlike with the same time the unlike is the later one, in any order.
        return ReactionEvent(key, on, at_us + (not on))


def parse_time(column: str, text: str) -> int:
    """Return microseconds since 1970; a time without an offset is UTC. Raises ValueError."""
    if match := _UNIX_TIME.fullmatch(text):
        at_us = int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))
    else:
        try:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError(
                f"{column} is {text[:40]!r}, not a time like 2026-11-22T12:00:00Z or 1795348800"
            ) from None
        at_us = sql.to_us(at)
    if at_us <= 0:
        raise ValueError(f"{column} is {text[:40]!r}, not after 1970")
    return at_us


class Batch(NamedTuple):
    """Consecutive lines: valid events with their lines, texts of bad lines, number of the last."""

    events: list[tuple[int, ReactionEvent]]
    bad: list[tuple[int, str]]
    last_line: int


def read_batches(path: Path, layout: Layout, after_line: int = 0) -> Iterator[Batch]:
    """Yield the lines above ``after_line``. Raises CommandError for a bad file or header."""
    now_us = clock.now_us()
    try:
        with open_text(path) as text:
            header = text.readline()
            delimiter = "\t" if "\t" in header else ","
            names = next(csv.reader([header], delimiter=delimiter), [])
            if missing := [name for name in layout.columns if name not in names]:
                raise CommandError(describe_bad_header(path.name, names, f"with {missing[0]}"))
            indexes = [names.index(name) for name in layout.columns]
            rows = csv.reader(text, delimiter=delimiter)
            while chunk := list(islice(_number(rows), LINES_PER_BATCH)):
                batch = Batch([], [], chunk[-1][0])
                for line, row in chunk:
                    if line <= after_line or not row:  # empty lines are skipped
                        continue
                    try:
                        batch.events.append((line, layout.parse(row, indexes, now_us)))
                    except ValueError as error:
                        batch.bad.append((line, str(error)))
                if batch.last_line > after_line:
                    yield batch
    except UNREADABLE as error:
        raise CommandError(f"{path} cannot be read: {error}") from None


def _number(rows: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield (line in the file, row) after a header of one line."""
    for row in rows:
        yield rows.line_num + 1, row


def find_missing(batch: Batch) -> Batch:
    """Return the batch with its reactions of unknown users and to unknown or deleted targets among
    the bad lines. One statement. Raises MysqlDown."""
    keys = [event.key for _, event in batch.events]
    existence = mysql_store.read_all_existence(
        {("user", key.actor_id) for key in keys} | {key[:2] for key in keys}
    )
    events, bad = [], list(batch.bad)
    for line, event in batch.events:
        for what in (("user", event.key.actor_id), event.key[:2]):
            if existence[what] is not Existence.LIVE:
                state = "deleted" if existence[what] is Existence.DELETED else "missing"
                bad.append((line, f"{what[0]} {what[1]} is {state}"))
                break
        else:
            events.append((line, event))
    return Batch(events, sorted(bad), batch.last_line)


@dataclass(slots=True)
class Progress:
    """The position of an import in its file. ``checked``: all lines were checked before."""

    checked: bool = False
    line: int = 0
    stored: int = 0
    changed: int = 0
    bad: int = 0

    @classmethod
    def load(cls, file: Path) -> "Progress":
        """Return the stored progress, a new one if there is none."""
        return cls(**json.loads(file.read_text())) if file.exists() else cls()

    def save(self, file: Path) -> None:
        """Replace the stored progress in one step."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        new.write_text(json.dumps(asdict(self)))
        new.replace(file)


class TargetCount(NamedTuple):
    """A target, the number of its reactions at the end of the file, and Plaza's total of it."""

    target_id: int
    source: int
    plaza: int


def compare_counts(path: Path, layout: Layout) -> list[TargetCount]:
    """Return the counts of all targets in a file, without its bad lines, beside the totals of
    MySQL. Reads the file again, with a number in memory for each reaction. Two statements for
    1,000 lines, one for 200 targets. Raises CommandError, MysqlDown."""
    newest: dict[int, dict[int, int]] = {}
    for batch in map(find_missing, read_batches(path, layout)):
        for _, event in batch.events:
            actors = newest.setdefault(event.key.target_id, {})
            state = event.effective_version_us * 2 + event.on
            actors[event.key.actor_id] = max(state, actors.get(event.key.actor_id, 0))
    kind, ids = KINDS[layout.kind], sorted(newest)
    counts: list[TargetCount] = []
    for start in range(0, len(ids), TARGETS_PER_READ):
        part = ids[start : start + TARGETS_PER_READ]
        requests = [(kind, Target(layout.target, target_id), ()) for target_id in part]
        for target_id, snapshot in zip(
            part, mysql_snapshots.read_snapshots(requests, 1), strict=True
        ):
            source = sum(state & 1 for state in newest[target_id].values())
            counts.append(TargetCount(target_id, source, snapshot.total))
    return counts


@dataclass(slots=True)
class ImportReport:
    """The result of an import. ``resumed_after``: the line after which this command began;
    ``bad_lines``: texts of the first bad lines that it met; ``targets``: how many the file has, and
    ``differing``: targets of which Plaza has another number, because users reacted here, too."""

    name: str
    layout: Layout
    progress: Progress
    resumed_after: int
    bad_lines: list[str] = field(default_factory=list)
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
            "stored": progress.stored,
            "changed": progress.changed,
            "unchanged": progress.stored - progress.changed,
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
        file = directory / f"{_identify(path, layout)}.json"
    except (InvalidMessage, OSError, BadSettings) as error:
        raise CommandError(str(error)) from None
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
        counts = compare_counts(path, layout)
        report.targets = len(counts)
        report.differing = [count for count in counts if count.source != count.plaza]
    except Unavailable as error:
        raise CommandError(
            f"{error} Lines up to {progress.line:,} are stored; run the command again to continue."
        ) from None
    file.unlink()
    report.took_s = time.monotonic() - began_s
    return report


def _identify(path: Path, layout: Layout) -> str:
    """Return a name for the import of this file, unchanged, into these servers."""
    stat, mysql = path.stat(), settings().mysql
    parts = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, asdict(layout)]
    servers = [mysql.host, mysql.port, mysql.database]
    return hashlib.sha256(json.dumps([parts, servers]).encode()).hexdigest()[:16]


def _check(
    path: Path, layout: Layout, on_progress: Callable[[int, str], None]
) -> tuple[int, list[str]]:
    """Return the number of bad lines, and the texts of the first ones."""
    count, shown = 0, list[str]()
    for batch in map(find_missing, read_batches(path, layout)):
        count += len(batch.bad)
        _show_some(batch.bad, shown)
        on_progress(batch.last_line, f"[red]{count:,} bad[/red]" if count else "")
    return count, shown


def _store(batch: Batch, report: ImportReport) -> None:
    """Store one batch, and advance the progress. Raises MysqlDown, RedisDown."""
    progress, batch = report.progress, find_missing(batch)
    if batch.events:
        progress.changed += persist.save_history([event for _, event in batch.events])
    progress.stored += len(batch.events)
    progress.bad += len(batch.bad)
    progress.line = batch.last_line
    _show_some(batch.bad, report.bad_lines)


def _show_some(bad: Sequence[tuple[int, str]], shown: list[str]) -> None:
    shown += [f"line {line}: {text}" for line, text in bad[: SHOWN - len(shown)]]


def show(report: ImportReport, out: Console) -> None:
    progress, layout = report.progress, report.layout
    unchanged = progress.stored - progress.changed
    out.print(
        new_summary(
            (f"{layout.kind}s of {layout.target}s", f"{progress.stored:,} lines", True),
            ("changed", f"{progress.changed:,}", ""),
            ("unchanged", f"{unchanged:,}: stored already, repeated, or older", ""),
            ("skipped", f"{progress.bad:,} bad lines", not progress.bad),
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
    for text in report.bad_lines:
        out.print(Text(f"  {text}"))
