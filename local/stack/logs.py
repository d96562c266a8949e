"""``logs``: print the logs of functions and servers."""

import argparse
import json
import re
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from pymysql.cursors import DictCursor

from cli.paths import CommandError
from local.stack.servers import connect_mysql
from local.stack.stack import Stack, explain_outage

SERVERS = ("redis", "mysql", "ministack", "lambda")
TRACED = {
    "reaction_log": "target_type, target_id, kind, actor_id, version, state, change_by, db_version,"
    " total",
    "voucher_order": "order_id, voucher_id, buyer_id, reason, decided_at",
    "checkin": "user_id, day, version",
    "content": "content_type, content_id, author_id, created_at, deleted_at",
}
"""Tables whose rows have a request id, and the columns to print: no text that users wrote."""

TIME = re.compile(r'"timestamp": ?"([0-9T:.-]+Z)"')


def main(args: argparse.Namespace) -> int:
    """Print the log of one part, or of all functions; ``-f`` waits for more."""
    stack = Stack.load(args.dir, require_all=False)
    if args.part in SERVERS:
        follow_file(stack.directory / "logs" / f"{args.part}.log", follow=args.follow)
        return 0
    chosen = stack.deployed.functions
    if args.part is not None:
        chosen = {name: chosen[name] for name in [find_function(chosen, args.part)]}
    if args.request is not None:
        return trace_request(stack, chosen, args.request, args.minutes)
    width = max((len(name) for name in chosen), default=0)
    since_ms = int((time.time() - args.minutes * 60) * 1000)
    while True:
        lines = sorted(read_lines(stack.directory, chosen, since_ms), key=lambda line: line[0])
        for at_ms, name, text in lines:
            print(f"{name:{width}}  {text}" if args.part is None else text, flush=True)
            since_ms = max(since_ms, at_ms + 1)
        if not args.follow:
            return 0
        time.sleep(1)


def trace_request(stack: Stack, chosen: Collection[str], request_id: str, minutes: float) -> int:
    """Print the log lines and then the rows of a request. Returns 1 without any.

    ``minutes``: how far back.
    """
    since_ms = int((time.time() - minutes * 60) * 1000)
    chosen_lines = (
        (at_ms, name, entry)
        for at_ms, name, text in read_lines(stack.directory, chosen, since_ms)
        if (entry := read_line(text)) and concerns(entry, request_id)
    )
    lines = sorted(chosen_lines, key=lambda line: line[:2])  # entries have no order
    rows: list[tuple[str, dict[str, Any]]] = []
    try:
        with explain_outage(stack):
            rows = find_rows(stack.mysql_url, request_id)
    except CommandError as error:
        print(f"without rows: {error}", file=sys.stderr)
    sources = [name for _, name, _ in lines] + [table for table, _ in rows]
    width = max(map(len, sources), default=0)
    for _, name, entry in lines:
        print(f"{name:{width}}  {json.dumps(shorten(entry, request_id))}")
    for table, row in rows:
        print(f"{table:{width}}  {json.dumps(row, default=str)}")
    if not sources:
        print(f"nothing about {request_id} in the last {minutes:g} minutes", file=sys.stderr)
    return 0 if sources else 1


def read_line(text: str) -> dict[str, Any] | None:
    """Return a line as an object; None for a line that is not from Plaza."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def concerns(entry: dict[str, Any], request_id: str) -> bool:
    others = entry.get("request_ids")
    return entry.get("correlation_id") == request_id or (
        isinstance(others, list) and request_id in others
    )


def shorten(entry: dict[str, Any], request_id: str) -> dict[str, Any]:
    """Drop the fields for CloudWatch, and the other requests of a batch."""
    kept = {name: value for name, value in entry.items() if name not in ("_aws", "function")}
    if "request_ids" in kept:
        others = len(kept["request_ids"]) - 1
        kept["request_ids"] = [request_id, *([f"and {others} more"] if others else [])]
    return kept


def find_rows(mysql_url: str, request_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (table, row) of the rows that a request wrote. Scans whole tables."""
    rows = []
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(DictCursor) as cursor:
        for table, columns in TRACED.items():
            cursor.execute(
                f"SELECT {columns} FROM {table} WHERE request_id = %s LIMIT 100",  # noqa: S608
                (request_id,),
            )
            rows += [(table, row) for row in cursor.fetchall()]
    return rows


def find_function(functions: dict[str, str], part: str) -> str:
    """Return the logical id of ``SaveReactions``, ``save_reactions`` or a unique part. Raises
    CommandError."""
    plain = part.replace("_", "").replace("-", "").lower()
    fitting = [name for name in functions if plain in name.lower()]
    exact = [name for name in fitting if name.lower() == plain]
    if len(exact or fitting) != 1:
        raise CommandError(
            f"no single part is called {part}; there are {', '.join([*functions, *SERVERS])}"
        )
    return (exact or fitting)[0]


def read_lines(
    directory: Path, functions: Collection[str], since_ms: int
) -> Iterator[tuple[int, str, str]]:
    """Yield (milliseconds since 1970, logical id, line) of functions, oldest first for each.

    ``directory``: of the stack. A line without a time, as in a traceback, has the time of the line
    before.
    """
    for logical_id in functions:
        at_ms = 0
        try:
            lines = (directory / "logs" / "functions" / f"{logical_id}.log").open(errors="replace")
        except FileNotFoundError:
            continue  # it never ran
        with lines:
            for line in lines:
                at_ms = read_time_ms(line) or at_ms
                if at_ms >= since_ms:
                    yield at_ms, logical_id, line.rstrip("\n")


def read_time_ms(line: str) -> int | None:
    """Return the time of a line in milliseconds since 1970; None for a line without one."""
    match = TIME.search(line)
    return round(datetime.fromisoformat(match[1]).timestamp() * 1000) if match else None


def follow_file(path: Path, *, follow: bool) -> None:
    with path.open(errors="replace") as lines:
        while True:
            for line in lines:
                sys.stdout.write(line)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(0.3)
