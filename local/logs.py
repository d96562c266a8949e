"""``logs``: what the functions wrote (from the emulator's CloudWatch Logs), and the servers."""

import argparse
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.paths import LocalError
from local.stack import Stack

SERVERS = ("redis", "mysql", "ministack")
PAGE = 10_000
FRAME = re.compile(r"^(START|END|REPORT) RequestId: ")


def main(args: argparse.Namespace) -> int:
    """Print the log lines of one part, or of all functions; ``-f`` waits for more."""
    stack = Stack.load(args.dir, whole=False)
    if args.part in SERVERS:
        follow_file(stack.directory / "logs" / f"{args.part}.log", follow=args.follow)
        return 0
    chosen = stack.deployed.functions
    if args.part is not None:
        chosen = {name: chosen[name] for name in [find_function(chosen, args.part)]}
    width = max((len(name) for name in chosen), default=0)
    since_ms = int((time.time() - args.minutes * 60) * 1000)
    while True:
        lines = sorted(read_lines(stack.connect("logs"), chosen, since_ms))
        for at_ms, name, text in lines:
            print(f"{name:{width}}  {text}" if args.part is None else text, flush=True)
            since_ms = max(since_ms, at_ms + 1)
        if not args.follow:
            return 0
        time.sleep(1)


def find_function(functions: dict[str, str], asked: str) -> str:
    """The logical id of ``SaveReactions``, ``save_reactions`` or a part of it, if only one fits."""
    plain = asked.replace("_", "").replace("-", "").lower()
    fitting = [name for name in functions if plain in name.lower()]
    exact = [name for name in fitting if name.lower() == plain]
    if len(exact or fitting) != 1:
        raise LocalError(
            f"no single part is called {asked}; there are {', '.join([*functions, *SERVERS])}"
        )
    return (exact or fitting)[0]


def read_lines(
    client: Any, functions: dict[str, str], since_ms: int
) -> Iterator[tuple[int, str, str]]:
    """(milliseconds since 1970, logical id, line) of what functions wrote, frames left out."""
    for logical_id, name in functions.items():
        for event in read_events(client, f"/aws/lambda/{name}", since_ms):
            if not FRAME.match(event["message"]):
                yield event["timestamp"], logical_id, event["message"]


def read_events(client: Any, group: str, since_ms: int) -> Iterator[dict[str, Any]]:
    """The events of a log group, oldest first; none when nothing was written yet.

    MiniStack gives the first 10,000 and no token for the next: they are asked for by time.
    """
    seen: set[tuple[str, str]] = set()
    while True:
        try:
            answer = client.filter_log_events(logGroupName=group, startTime=since_ms)
        except client.exceptions.ResourceNotFoundException:
            return
        events = [e for e in answer["events"] if (e["logStreamName"], e["message"]) not in seen]
        yield from events
        if len(answer["events"]) < PAGE or not events:
            return
        since_ms = events[-1]["timestamp"]
        seen = {
            (e["logStreamName"], e["message"])
            for e in answer["events"]
            if e["timestamp"] == since_ms
        }


def follow_file(path: Path, *, follow: bool) -> None:
    """Print a file, and what is added to it."""
    with path.open(errors="replace") as lines:
        while True:
            for line in lines:
                sys.stdout.write(line)
            sys.stdout.flush()
            if not follow:
                return
            time.sleep(0.3)
