"""``logs``: what the functions wrote (from the emulator's CloudWatch Logs), and the servers."""

import argparse
import contextlib
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from local.paths import LocalError
from local.stack import Stack

SERVERS = ("redis", "mysql", "ministack")
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
    since_ms = 0
    while True:
        lines = sorted(read_lines(stack.connect("logs"), chosen, since_ms))
        for at_ms, name, text in lines:
            print(f"{name:{width}}  {text}" if args.part is None else text, flush=True)
            since_ms = max(since_ms, at_ms + 1)
        if not args.follow:
            return 0
        since_ms = since_ms or int(time.time() * 1000)
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
        with contextlib.suppress(client.exceptions.ResourceNotFoundException):
            pages = client.get_paginator("filter_log_events").paginate(
                logGroupName=f"/aws/lambda/{name}", startTime=since_ms
            )
            for page in pages:
                for event in page["events"]:
                    if not FRAME.match(event["message"]):
                        yield event["timestamp"], logical_id, event["message"]


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
