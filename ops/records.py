"""``import --what``: store users, posts, comments or targets of another system from JSON lines.

Records keep the ids of their source. A line that is stored already changes nothing, so the command
can be repeated; its position is written after each batch, and a repeated command continues there.

The file is read three times: first every line is checked, also for ids and identities that an
earlier line has, however far above; then batches of 500 are stored; last the numbers are compared.

    users      {"id": 12, "nickname": "ann", "created_at": "...", "issuer": "...", "subject": "..."}
    posts      {"id": 7, "author_id": 12, "created_at": "...", "title": "...", "body": "..."}
    targets    {"type": "article", "id": "8f3a", "owner": "my-app|ann", "url": "https://..."}
    comments   {"id": 9, "post_id": 7, "author_id": 12, "created_at": "...", "body": "..."}
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from cli.files import Line, read_lines
from cli.output import new_summary, print_report, show_progress
from cli.paths import CommandError
from ops.environment import use_environment
from ops.import_progress import SHOWN, Progress, locate, show_some
from ops.import_times import parse_time
from ops.sorted_records import SortedRecords
from plaza.core.counters import mysql_store as counter_store
from plaza.core.reactions.schemas import OwnTarget
from plaza.core.targets import Existence, external_targets
from plaza.core.targets import mysql_store as target_store
from plaza.core.targets.external_targets import Created
from plaza.core.targets.types import EXTERNAL, number_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.people.users import import_users, owned_targets
from plaza.people.users.erasures import find_erased
from plaza.people.users.identities import check_identity
from plaza.people.users.mysql_imports import ImportedUser
from plaza.people.users.owned_targets import OwnedTarget
from plaza.people.users.schemas import ProfileUpdateRequest
from plaza.social.content import import_texts
from plaza.social.content.mysql_imports import ImportedText
from plaza.social.content.schemas import CommentRequest, PostRequest

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
    left out; ``names``: the texts that no other line may have, in the order of ``_NAMES``;
    ``group`` is what its counter is of."""

    parse: Callable[[Mapping[str, Any], int], Any]
    store: Callable[[Sequence[Any]], Mapping[int, str]]
    names: Callable[[Any], Sequence[str]]
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
    lines: int = 0
    groups: int = 0
    differing: list[RecordCount] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return True

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.name,
            "what": self.what,
            "lines": self.lines,
            "stored": self.progress.stored,
            "empty": self.progress.empty,
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
    """Store the records of a file; keep the progress in ``directory``. Raises CommandError: nothing
    is stored if a line is bad, unless ``skip_bad_lines``."""
    kind, file = _KINDS[what], locate(directory, path, what)
    progress = Progress() if from_start else Progress.load(file)
    report = RecordReport(path.name, what, progress, progress.line)
    out = Console(stderr=True, highlight=False)
    with SortedRecords(3) as doubles:
        with show_progress(f"checking {path.name}", "lines", 0, out) as on_progress:
            bad, shown = _check(path, kind, doubles, on_progress)
        if bad and not skip_bad_lines and not progress.checked:
            raise CommandError("\n  ".join([f"{bad:,} bad lines; nothing was stored", *shown]))
        progress.checked = True
        progress.save(file)
        try:
            with show_progress(f"storing {path.name}", "lines", 0, out) as on_progress:
                for batch in _read_batches(path, kind, doubles, progress.line):
                    began_s = time.monotonic()
                    _store(kind, batch, report)
                    progress.save(file)
                    on_progress(progress.line, "")
                    if rate:
                        time.sleep(max(batch.lines / rate - (time.monotonic() - began_s), 0))
            report.lines = progress.require_all_lines(path, headers=0)
            compare_counts(path, kind, doubles, report)
        except Unavailable as error:
            raise CommandError(
                f"{error} Lines up to {progress.line:,} are stored; run the command again to"
                " continue."
            ) from None
    file.unlink(missing_ok=True)
    return report


class _Batch(NamedTuple):
    """Consecutive lines: (line, record) of valid ones, (line, problem) of bad ones, the number of
    empty ones and of all, and the number of the last."""

    records: list[tuple[int, Any]]
    bad: list[tuple[int, str]]
    empty: int
    lines: int
    last_line: int


def _check(
    path: Path, kind: _Kind, doubles: SortedRecords, on_progress: Callable[[int, str], None]
) -> tuple[int, list[str]]:
    """Return the number of bad lines and the texts of the first ones. Add to ``doubles`` each line
    that has a name of an earlier line: (line, which name, the earlier line)."""
    count, bad = 0, list[tuple[int, str]]()
    with SortedRecords(4) as names:
        for batch in _read_batches(path, kind):
            count += len(batch.bad)
            bad += batch.bad[: SHOWN - len(bad)]
            for line, record in batch.records:
                for which, name in enumerate(kind.names(record)):
                    digest = hashlib.blake2b(f"{which} {name}".encode(), digest_size=16).digest()
                    high, low = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
                    names.add(high, low, line, which)
            on_progress(batch.last_line, f"[red]{count:,} bad[/red]" if count else "")
        first: tuple[int, ...] = ()
        for record in names:
            if record[:2] == first[:2]:
                doubles.add(record[2], record[3], first[2])
            else:
                first = record
    for line, of_line in groupby(doubles, lambda double: double[0]):
        count += 1
        if len(bad) < 2 * SHOWN:
            bad.append((line, _describe_double(next(of_line))))
    shown = list[str]()
    show_some(sorted(bad), shown)
    return count, shown


def _store(kind: _Kind, batch: _Batch, report: RecordReport) -> None:
    """Store one batch, and advance the progress. Raises MysqlDown, RedisDown."""
    progress = report.progress
    refused = kind.store([record for _, record in batch.records]) if batch.records else {}
    of_store = [
        (line, refused[record.id]) for line, record in batch.records if record.id in refused
    ]
    progress.stored += len(batch.records) - len(of_store)
    progress.bad += len(batch.bad) + len(of_store)
    progress.empty += batch.empty
    progress.line = batch.last_line
    show_some(sorted(batch.bad + of_store), report.bad_lines)


def compare_counts(path: Path, kind: _Kind, doubles: SortedRecords, report: RecordReport) -> None:
    """Add to the report what has another number in the file than at Plaza: an author, a post, or a
    user, whose number is 1 or 0. Reads the file again, and sorts it in a temporary file. One
    statement for 500 of them. Raises CommandError, MysqlDown."""
    with SortedRecords(1) as groups:
        for batch in _read_batches(path, kind, doubles):
            for _, record in batch.records:
                groups.add(kind.group(record))
        counts = ((group, sum(1 for _ in of_group)) for (group,), of_group in groupby(groups))
        while part := dict(islice(counts, LINES_PER_BATCH)):
            report.groups += len(part)
            plaza = kind.read_counts(list(part))
            report.differing += [
                RecordCount(group, source, plaza.get(group, 0))
                for group, source in part.items()
                if source != plaza.get(group, 0)
            ]


def _read_batches(
    path: Path, kind: _Kind, doubles: SortedRecords | None = None, after_line: int = 0
) -> Iterator[_Batch]:
    """Yield the lines above ``after_line``, with ``doubles`` as bad ones. Raises CommandError."""
    now_us = clock.now_us()
    following = iter(doubles or ())
    double = next(following, None)
    lines = islice(read_lines(path), after_line, None)
    while chunk := list(islice(lines, LINES_PER_BATCH)):
        batch = _Batch([], [], sum(_is_empty(line) for line in chunk), len(chunk), chunk[-1].number)
        for line in chunk:
            while double is not None and double[0] < line.number:
                double = next(following, None)
            if _is_empty(line):
                continue
            try:
                record = kind.parse(_parse_json(line), now_us)
                if double is not None and double[0] == line.number:
                    raise ValueError(_describe_double(double))
                batch.records.append((line.number, record))
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                field_name = first["loc"][0] if first["loc"] else ""
                batch.bad.append((line.number, f"{field_name} {first['msg']}"))
            except KeyError as error:
                batch.bad.append((line.number, f"{error} is missing"))
            except ValueError as error:
                batch.bad.append((line.number, str(error)))
        yield batch


def _is_empty(line: Line) -> bool:
    return not line.problem and not line.text.strip(" ")


def _parse_json(line: Line) -> Mapping[str, Any]:
    """Return the object of a line. Raises ValueError, also for what JSON readers disagree about."""
    if line.problem:
        raise ValueError(line.problem)
    try:
        record = json.loads(
            line.text, object_pairs_hook=_require_single, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(record, dict):
        raise ValueError("not an object of JSON")
    return record


def _require_single(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise ValueError("a name occurs twice in an object")
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"not JSON: {name}")


def _id(record: Mapping[str, Any], name: str) -> int:
    value = record[name]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < MAX_ID:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number from 1 to 2^53-1")
    return value


def _time(record: Mapping[str, Any], now_us: int) -> int:
    return parse_time("created_at", str(record["created_at"]), now_us)


def _parse_user(record: Mapping[str, Any], now_us: int) -> ImportedUser:
    nickname = ProfileUpdateRequest(nickname=record["nickname"]).nickname
    identity = None
    if "issuer" in record or "subject" in record:
        identity = check_identity(record["issuer"], record["subject"])
    return ImportedUser(_id(record, "id"), nickname, _time(record, now_us), identity)


def _parse_post(record: Mapping[str, Any], now_us: int) -> ImportedText:
    text = {name: record[name] for name in ("title", "body", "images") if name in record}
    draft = PostRequest(kind=record.get("kind", "note"), **text).to_draft(_id(record, "author_id"))
    return ImportedText(_id(record, "id"), _time(record, now_us), draft)


def _parse_comment(record: Mapping[str, Any], now_us: int) -> ImportedText:
    of = _id(record, "author_id"), _id(record, "post_id")
    draft = CommentRequest(body=record["body"]).to_draft(*of)
    return ImportedText(_id(record, "id"), _time(record, now_us), draft)


class _Target(NamedTuple):
    """A target of the app, and its number."""

    id: int
    declared: OwnTarget


def _parse_target(record: Mapping[str, Any], _: int) -> _Target:
    declared = OwnTarget.model_validate(record)
    return _Target(number_of(declared.type, declared.id), declared)


_NAMES = ("id", "identity")


def _describe_double(double: Sequence[int]) -> str:
    _, which, first = double
    return f"its {_NAMES[which]} is the one of line {first}"


def _name_user(user: ImportedUser) -> list[str]:
    return [str(user.id), *(["|".join(user.identity)] if user.identity else [])]


def _name_text(text: ImportedText) -> list[str]:
    return [str(text.id)]


def _store_texts(texts: Sequence[ImportedText]) -> Mapping[int, str]:
    authors = {("user", text.draft.author_id) for text in texts}
    marks = target_store.read_existence(authors)
    absent = {author[1] for author, m in marks.items() if m.existence is not Existence.LIVE}
    erased = find_erased(absent)
    missing = {
        text.id: f"user {text.draft.author_id} "
        + ("was erased" if text.draft.author_id in erased else "does not exist")
        for text in texts
        if text.draft.author_id in absent
    }
    known = [text for text in texts if text.id not in missing]
    return missing | (import_texts.import_texts(known) if known else {})


def _name_target(target: _Target) -> list[str]:
    return [str(target.id)]


def _store_targets(targets: Sequence[_Target]) -> Mapping[int, str]:
    results = owned_targets.create_all(
        [OwnedTarget(d.type, d.id, d.owner, d.url) for d in (of.declared for of in targets)]
    )
    return {
        target.id: f"user {target.declared.owner} does not exist"
        if result is Created.UNKNOWN_OWNER
        else f"{target.declared.id}: {result.value}"
        for target, result in zip(targets, results, strict=True)
        if result is not Created.LIVE
    }


def _count_targets(ids: Sequence[int]) -> Mapping[int, int]:
    stored = external_targets.read_all({(of, number) for of in EXTERNAL for number in ids})
    return {number: int(not row.is_deleted) for (_, number), row in stored.items()}


def _count_users(ids: Sequence[int]) -> Mapping[int, int]:
    marks = target_store.read_existence({("user", user_id) for user_id in ids})
    return {user_id: int(marks["user", user_id].existence is Existence.LIVE) for user_id in ids}


def _count_posts(author_ids: Sequence[int]) -> Mapping[int, int]:
    totals = counter_store.read_users(author_ids)
    return {author_id: counter.posts_total for author_id, counter in totals.items()}


def _count_comments(post_ids: Sequence[int]) -> Mapping[int, int]:
    return {post_id: total for post_id, (total, _) in counter_store.read_comments(post_ids).items()}


_KINDS: Mapping[str, _Kind] = {
    "users": _Kind(
        _parse_user, import_users.import_users, _name_user, lambda user: int(user.id), _count_users
    ),
    "targets": _Kind(
        _parse_target, _store_targets, _name_target, lambda target: int(target.id), _count_targets
    ),
    "posts": _Kind(
        _parse_post, _store_texts, _name_text, lambda t: int(t.draft.author_id), _count_posts
    ),
    "comments": _Kind(
        _parse_comment,
        _store_texts,
        _name_text,
        lambda t: int(t.draft.parent_id or 0),
        _count_comments,
    ),
}


def show(report: RecordReport, out: Console) -> None:
    progress, equal = report.progress, report.groups - len(report.differing)
    of = {
        "users": "users exist",
        "posts": "authors",
        "comments": "posts",
        "targets": "targets exist",
    }[report.what]
    numbers = f"{equal:,} of {report.groups:,} {of}"
    if report.what in ("posts", "comments"):
        numbers += " have the number of the source"
    out.print(
        new_summary(
            (report.what, f"{progress.stored:,} lines", True),
            ("left out", f"{progress.bad:,} lines", not progress.bad),
            ("empty", f"{progress.empty:,} of {report.lines:,} lines", ""),
            ("compared", numbers, not report.differing),
        )
    )
    for of_id, source, plaza in report.differing[:SHOWN]:
        out.print(Text(f"  {of_id}: source {source:,}, Plaza {plaza:,}"))
    for text in report.bad_lines:
        out.print(Text(f"  {text}"))
