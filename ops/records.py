"""``import --what``: store users, posts or comments of another system from JSON lines.

Records keep the ids of their source. A line that is stored already changes nothing, so the command
can be repeated; its position is written after each batch, and a repeated command continues there.

    users      {"id": 12, "nickname": "ann", "created_at": "...", "issuer": "...", "subject": "..."}
    posts      {"id": 7, "author_id": 12, "created_at": "...", "title": "...", "body": "..."}
    comments   {"id": 9, "post_id": 7, "author_id": 12, "created_at": "...", "body": "..."}
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from cli.files import UNREADABLE, open_text
from cli.output import new_summary, print_report
from cli.paths import CommandError
from ops.environment import use_environment
from ops.history import SHOWN, Progress, parse_time
from plaza.content import import_texts
from plaza.content.mysql_imports import ImportedText
from plaza.content.schemas import CommentRequest, PostRequest
from plaza.counters import mysql_store as counter_store
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.settings import settings
from plaza.targets import Existence
from plaza.targets import mysql_store as target_store
from plaza.users import import_users
from plaza.users.mysql_imports import ImportedUser
from plaza.users.schemas import ProfileUpdateRequest

LINES_PER_BATCH = 500
MAX_ID = 2**53
"""Ids of Plaza's own are above this one, so that they never meet imported ones."""


class RecordCount(NamedTuple):
    """An author or a post, its number of posts or comments in the file, and Plaza's."""

    of_id: int
    source: int
    plaza: int


class _Kind(NamedTuple):
    """How a kind of record is read, stored and counted. ``store`` returns id -> why a record was
    left out; ``group`` is what its counter is of, None without one."""

    parse: Callable[[Mapping[str, Any]], Any]
    store: Callable[[Sequence[Any]], Mapping[int, str]]
    group: Callable[[Any], int]
    read_counts: Callable[[Sequence[int]], Mapping[int, int]]


@dataclass(slots=True)
class RecordReport:
    """The result of an import of records; as ``ops.history.ImportReport``."""

    name: str
    what: str
    progress: Progress
    resumed_after: int
    bad_lines: list[str] = field(default_factory=list)
    groups: int = 0
    differing: list[RecordCount] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return True

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "what": self.what,
            "stored": self.progress.stored,
            "bad": self.progress.bad,
            "bad_lines": self.bad_lines,
            "resumed_after": self.resumed_after,
            "groups": self.groups,
            "differing": [count._asdict() for count in self.differing],
        }


def main(args: argparse.Namespace) -> int:
    """Import a file of records. Raises CommandError, also when a store stops answering."""
    with use_environment(args):
        report = import_records(
            args.file,
            args.what,
            args.dir / "imports",
            rate=args.rate,
            skip_bad_lines=args.skip_bad_lines,
            from_start=args.from_start,
        )
    return print_report(args, report, show)


def import_records(
    path: Path,
    what: str,
    directory: Path,
    *,
    rate: float | None = None,
    skip_bad_lines: bool = False,
    from_start: bool = False,
) -> RecordReport:
    """Store the records of a file; keep the progress in ``directory``. Raises CommandError at the
    first batch with a bad line, unless ``skip_bad_lines``: the batches before it are stored."""
    kind, file = _KINDS[what], directory / f"{_identify(path, what)}.json"
    progress = Progress() if from_start else Progress.load(file)
    report = RecordReport(path.name, what, progress, progress.line)
    try:
        for first_line, lines in _read_batches(path, progress.line):
            began_s = time.monotonic()
            records, bad = _parse(kind, first_line, lines)
            if bad and not skip_bad_lines:
                raise CommandError("\n  ".join(["bad lines; their batch was not stored", *bad]))
            refused = kind.store([record for _, record in records]) if records else {}
            bad += [f"line {n}: {refused[r.id]}" for n, r in records if r.id in refused]
            progress.stored += len(records) - len(refused)
            progress.bad += len(bad)
            progress.line = first_line + len(lines) - 1
            report.bad_lines += bad[: SHOWN - len(report.bad_lines)]
            progress.save(file)
            if rate:
                time.sleep(max(len(lines) / rate - (time.monotonic() - began_s), 0))
        counts = compare_counts(path, kind)
    except Unavailable as error:
        raise CommandError(
            f"{error} Lines up to {progress.line:,} are stored; run the command again to continue."
        ) from None
    file.unlink(missing_ok=True)
    report.groups = len(counts)
    report.differing = [count for count in counts if count.source != count.plaza]
    return report


def compare_counts(path: Path, kind: _Kind) -> list[RecordCount]:
    """Return the counts of the file beside Plaza's: of each author, of each post, or of each user
    1 or 0. Reads the file again. One statement for 500 of them. Raises CommandError, MysqlDown."""
    ids: dict[int, set[int]] = {}
    for first_line, lines in _read_batches(path, 0):
        for _, record in _parse(kind, first_line, lines)[0]:
            ids.setdefault(kind.group(record), set()).add(record.id)
    groups, counts = sorted(ids), list[RecordCount]()
    for start in range(0, len(groups), LINES_PER_BATCH):
        part = groups[start : start + LINES_PER_BATCH]
        plaza = kind.read_counts(part)
        counts += [RecordCount(group, len(ids[group]), plaza.get(group, 0)) for group in part]
    return counts


def _read_batches(path: Path, after_line: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (number of the first line, lines). Raises CommandError."""
    try:
        with open_text(path) as text:
            for _ in islice(text, after_line):
                pass
            first = after_line + 1
            while lines := list(islice(text, LINES_PER_BATCH)):
                yield first, lines
                first += len(lines)
    except UNREADABLE as error:
        raise CommandError(f"{path} cannot be read: {error}") from None


def _parse(
    kind: _Kind, first_line: int, lines: Sequence[str]
) -> tuple[list[tuple[int, Any]], list[str]]:
    """Return ((line, record) of valid lines, texts of bad ones). Empty lines are skipped."""
    records: list[tuple[int, Any]] = []
    bad: list[str] = []
    for number, line in enumerate(lines, first_line):
        if not line.strip():
            continue
        try:
            records.append((number, kind.parse(json.loads(line))))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            bad.append(f"line {number}: {first['loc'][0] if first['loc'] else ''} {first['msg']}")
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            name = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            bad.append(f"line {number}: {name}")
    return records, bad


def _id(record: Mapping[str, Any], name: str) -> int:
    value = record[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < MAX_ID:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number from 1 to 2^53-1")
    return value


def _time(record: Mapping[str, Any]) -> int:
    return parse_time("created_at", str(record["created_at"]))


def _parse_user(record: Mapping[str, Any]) -> ImportedUser:
    nickname = ProfileUpdateRequest(nickname=record["nickname"]).nickname
    identity = (record["issuer"], record["subject"]) if "subject" in record else None
    for text in identity or ():
        if not isinstance(text, str) or not text.isascii() or not 0 < len(text) <= 200:
            raise ValueError("issuer and subject are ASCII of at most 200 characters")
    return ImportedUser(_id(record, "id"), nickname, _time(record), identity)


def _parse_post(record: Mapping[str, Any]) -> ImportedText:
    text = {name: record[name] for name in ("title", "body", "images") if name in record}
    draft = PostRequest(kind=record.get("kind", "note"), **text).to_draft(_id(record, "author_id"))
    return ImportedText(_id(record, "id"), _time(record), draft)


def _parse_comment(record: Mapping[str, Any]) -> ImportedText:
    of = _id(record, "author_id"), _id(record, "post_id")
    draft = CommentRequest(body=record["body"]).to_draft(*of)
    return ImportedText(_id(record, "id"), _time(record), draft)


def _store_users(users: Sequence[ImportedUser]) -> Mapping[int, str]:
    refused = import_users.import_users(users)
    return dict.fromkeys(refused, "its identity belongs to another user")


def _store_texts(texts: Sequence[ImportedText]) -> Mapping[int, str]:
    authors = {("user", text.draft.author_id) for text in texts}
    existence = target_store.read_all_existence(authors)
    missing = {
        text.id: f"user {text.draft.author_id} does not exist"
        for text in texts
        if existence["user", text.draft.author_id] is not Existence.LIVE
    }
    known = [text for text in texts if text.id not in missing]
    refused = import_texts.import_texts(known) if known else []
    return missing | dict.fromkeys(refused, "its post does not exist")


def _count_users(ids: Sequence[int]) -> Mapping[int, int]:
    existence = target_store.read_all_existence({("user", user_id) for user_id in ids})
    return {user_id: int(existence["user", user_id] is Existence.LIVE) for user_id in ids}


def _count_posts(author_ids: Sequence[int]) -> Mapping[int, int]:
    totals = counter_store.read_users(author_ids)
    return {author_id: counter.posts_total for author_id, counter in totals.items()}


def _count_comments(post_ids: Sequence[int]) -> Mapping[int, int]:
    return {post_id: total for post_id, (total, _) in counter_store.read_comments(post_ids).items()}


_KINDS: Mapping[str, _Kind] = {
    "users": _Kind(_parse_user, _store_users, lambda user: int(user.id), _count_users),
    "posts": _Kind(_parse_post, _store_texts, lambda t: int(t.draft.author_id), _count_posts),
    "comments": _Kind(
        _parse_comment, _store_texts, lambda t: int(t.draft.parent_id or 0), _count_comments
    ),
}


def _identify(path: Path, what: str) -> str:
    """Return a name for the import of this file, unchanged, into these servers."""
    try:
        stat, mysql = path.stat(), settings().mysql
    except OSError as error:
        raise CommandError(str(error)) from None
    parts = [str(path.resolve()), stat.st_size, stat.st_mtime_ns, what]
    servers = [mysql.host, mysql.port, mysql.database]
    return hashlib.sha256(json.dumps([parts, servers]).encode()).hexdigest()[:16]


def show(report: RecordReport, out: Console) -> None:
    progress, equal = report.progress, report.groups - len(report.differing)
    of = {"users": "users exist", "posts": "authors", "comments": "posts"}[report.what]
    numbers = f"{equal:,} of {report.groups:,} {of}"
    if report.what != "users":
        numbers += " have the number of the source"
    out.print(
        new_summary(
            (report.what, f"{progress.stored:,} lines", True),
            ("left out", f"{progress.bad:,} lines", not progress.bad),
            ("compared", numbers, not report.differing),
        )
    )
    for of_id, source, plaza in report.differing[:SHOWN]:
        out.print(Text(f"  {of_id}: source {source:,}, Plaza {plaza:,}"))
    for text in report.bad_lines:
        out.print(Text(f"  {text}"))
