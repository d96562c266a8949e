"""``rebuild``: recount counters from rows or the reaction log, and compare. Changes nothing."""

import argparse
import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.output import mark, new_summary, new_table, wide_console
from cli.paths import CommandError
from ops.environment import use_environment
from plaza.core.reaction_log import Scope, recount, s3_archive
from plaza.core.reaction_log.recount import Contradiction, CounterDifference, Recount
from plaza.core.reactions import Target
from plaza.core.targets.target_ids import parse_reference
from plaza.core.targets.types import TYPES
from plaza.infra.runtime.errors import NotFound

SHOWN = 20
UNKNOWN = "the log has no comments and posts; their authors are read from the content table"


def main(args: argparse.Namespace) -> int:
    """Print the differences. Returns 1 when there are any and the recount is up to now."""
    until_us = None if args.as_of is None else parse_time(args.as_of)
    if until_us is not None and not args.from_log:
        raise CommandError("rows have only the current state: --as-of needs --from-log")
    scope = parse_scope(args.target, args.user)
    with use_environment(args):
        recount = recount_counters(scope, args.from_log, until_us)
    good = not (recount.differing or recount.contradicting)
    if args.json:
        print(json.dumps(to_json(recount, good, args.from_log, args.as_of), indent=2))
    else:
        show(recount, args.from_log, args.as_of)
    return 0 if good or until_us is not None else 1


def parse_time(text: str) -> int:
    """Return microseconds since 1970 for RFC 3339. Raises CommandError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise CommandError(f"--as-of takes 2026-11-21T08:30:00Z, not {text}") from None
    if moment.tzinfo is None:
        raise CommandError(f"--as-of needs a time zone: {text}Z")
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def parse_scope(target: str | None, user: str | None) -> Scope:
    """Return the scope for ``post:7``, for a user's id, or for all. Raises CommandError."""
    if user is not None:
        if not re.fullmatch(r"\d{1,19}", user):
            raise CommandError(f"--user takes an id (7), not {user}")
        return Scope(user_id=int(user))
    if target is None:
        return Scope()
    try:
        return Scope(target=Target(*parse_reference(target)))
    except NotFound as error:
        raise CommandError(f"--target takes post:7 ({', '.join(TYPES)}): {error}") from None


def recount_counters(scope: Scope, from_log: bool, until_us: int | None) -> Recount:
    """Recount the counters. Raises CommandError when the archive is damaged."""
    try:
        if from_log:
            return recount.recount_log(scope, recount.NO_LIMIT_US if until_us is None else until_us)
        return recount.recount_rows(scope)
    except s3_archive.ArchiveCorrupt as error:
        raise CommandError(f"the archive is damaged, so the log is incomplete: {error}") from None


def to_json(recount: Recount, good: bool, from_log: bool, as_of: str | None) -> dict[str, Any]:
    values: dict[str, Any] = {
        "from": "log" if from_log else "rows",
        "as_of": as_of,
        "agrees": good,
        "compared": recount.compared,
        "differing": len(recount.differing),
        "differences": [
            {"of": str(key.of), "name": key.name, "counter": counter, "recounted": recounted}
            for key, counter, recounted in recount.differing[:100]
        ],
    }
    if from_log:
        values |= {
            "events_in_mysql": recount.events_in_mysql,
            "events_archived": recount.events_archived,
            "contradicting": recount.contradicting,
            "contradictions": [_explain(key) for key in recount.contradictions],
            "unknown": UNKNOWN,
        }
    return values


def show(recount: Recount, from_log: bool, as_of: str | None) -> None:
    out = wide_console()
    source = "the log" if from_log else "the rows"
    moment = f" up to {as_of}" if as_of else ""
    summary = new_summary()
    summary.add_row("recounted from", source + moment, "")
    if from_log:
        summary.add_row("events in MySQL", f"{recount.events_in_mysql:,}", "")
        summary.add_row("events in archives", f"{recount.events_archived:,}", "")
    summary.add_row("counters compared", f"{recount.compared:,}", "")
    summary.add_row("differing", f"{len(recount.differing):,}", mark(not recount.differing))
    if from_log:
        contradicting = recount.contradicting
        summary.add_row(
            "rows that contradict the log", f"{contradicting:,}", mark(not contradicting)
        )
    out.print(summary)
    if recount.differing:
        out.print()
        out.print(_table(recount.differing[:SHOWN], source))
        _and_more(out, len(recount.differing))
    if recount.contradictions:
        out.print()
        for contradiction in recount.contradictions[:SHOWN]:
            out.print(Text(f"  {_explain(contradiction)}"))
        _and_more(out, recount.contradicting)
    if from_log:
        out.print(f"\n{UNKNOWN}", style="dim")


def _table(differing: Sequence[CounterDifference], source: str) -> Any:
    table = new_table("counter", "stored", source, "difference", "")
    for key, counter, recounted in differing:
        name = key.name.removesuffix("_total").replace("_", " ")
        by = f"{recounted - counter:+,}"
        table.add_row(f"{name} of {key.of}", f"{counter:,}", f"{recounted:,}", by, mark(False))
    return table


def _and_more(out: Console, count: int) -> None:
    if count > SHOWN:
        out.print(f"  and {count - SHOWN:,} more")


def _explain(contradiction: Contradiction) -> str:
    def state(entry: tuple[int, int] | None) -> str:
        return "nothing" if entry is None else f"{'on' if entry[1] else 'off'} since {entry[0]}"

    target, kind, actor_id, row, log = contradiction
    return f"{kind} {target} by {actor_id}: log {state(log)}, row {state(row)}"
