"""``python -m local``: start, inspect, load and stop the stack."""

import argparse
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from local.paths import DIRECTORY, LocalError, add_layer_to_path
from local.stack import logs, packages, status, tokens, up
from local.stack.stack import Stack

Command = Callable[[argparse.Namespace], int]
_JSON_COMMANDS = (
    "replay", "cluster-failover", "flash-sale", "burst", "soak",
    "audit", "drift", "rebuild", "keys", "queues",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns its exit status: 1 for a LocalError, 130 for an interrupt."""
    add_layer_to_path()
    args = build_parser().parse_args(argv)
    command: Command = args.command
    try:
        return command(args)
    except LocalError as error:
        print(f"plaza: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="directory of the stack (default: .local)"
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    sub = add("up", up.main, "start the stack; Ctrl-C stops it")
    sub.add_argument(
        "--port", type=int, default=0, help="port of the HTTP API (default: a free one)"
    )
    sub.add_argument("--no-demo", action="store_true", help="do not play the demo crowd")
    sub.add_argument("--detach", action="store_true", help="return when the stack runs")
    sub.add_argument(
        "--redis-cluster",
        action="store_true",
        help="run three masters with a replica each (PLAZA_REDIS_URL, if set, is a cluster)",
    )
    add("down", _down, "stop the stack")
    add("status", status.main, "show the parts of the stack, and the messages in its queues")

    sub = add("token", tokens.main, "print session tokens, one a line")
    sub.add_argument("--user", required=True, help="user ids: 7 or 7-20")
    sub.add_argument("--role", default="user", choices=["user", "admin"])

    sub = add(
        "sms", _run_with_stack("local.stack.sms"), "print the code that was last sent to a phone"
    )
    sub.add_argument("phone", help="with country code: +8613800138000")

    sub = add("logs", logs.main, "print the logs of functions and servers")
    sub.add_argument(
        "part",
        nargs="?",
        help="a function, redis, mysql, ministack or lambda (default: all functions)",
    )
    sub.add_argument("-f", "--follow", action="store_true", help="wait for new lines")
    sub.add_argument(
        "--minutes", type=float, default=10, help="age of the oldest line (default: 10)"
    )
    sub.add_argument(
        "--request", metavar="ID", help="only lines and rows of one request (its X-Request-Id)"
    )

    sub = add(
        "replay", _run_with_stack("local.load.replay"), "replay a file of interactions or follows"
    )
    sub.add_argument(
        "file",
        type=Path,
        help="CSV, may be gzipped: user_id,item_id,rating,timestamp or follower_id,followee_id",
    )
    sub.add_argument("--rate", type=float, help="requests a second (default: no limit)")
    sub.add_argument(
        "--duplicates", type=float, default=0.0, help="share of requests sent twice, 0 to 1"
    )
    sub.add_argument("--limit", type=int, help="maximum number of rows")
    sub.add_argument("--concurrency", type=int, default=8, help="concurrent users (default: 8)")
    sub.add_argument("--seed", type=int, default=0, help="seed of the duplicates")
    sub.add_argument(
        "--kill-consumers", action="store_true", help="kill consumers at random intervals"
    )

    sub = add(
        "cluster-failover",
        _run_with_stack("local.load.failover"),
        "replay a file; a master of the Redis Cluster fails over halfway",
    )
    sub.add_argument(
        "file", type=Path, nargs="?", help="as for replay (default: 40 users that toggle likes)"
    )
    sub.add_argument(
        "--limit", type=int, default=4000, help="maximum number of rows (default: 4000)"
    )
    sub.add_argument("--concurrency", type=int, default=8, help="concurrent users (default: 8)")
    sub.add_argument(
        "--how",
        choices=["die", "hang", "in-order", "unreplicated"],
        default="die",
        help="SIGKILL, SIGSTOP, CLUSTER FAILOVER, or SIGKILL after two seconds without"
        " replication (default: die)",
    )

    sub = add(
        "flash-sale",
        _run_with_stack("local.load.flash_sale"),
        "play a crowd at a flash sale, and check the outcome",
    )
    sub.add_argument("--buyers", type=int, default=200, help="number of buyers (default: 200)")
    sub.add_argument("--stock", type=int, default=50, help="number of vouchers (default: 50)")
    sub.add_argument("--clicks", type=int, default=5, help="clicks of each buyer (default: 5)")
    sub.add_argument("--seed", type=int, default=0, help="seed of the order of clicks")
    sub.add_argument(
        "--kill-consumers", action="store_true", help="kill consumers at random intervals"
    )
    sub.add_argument(
        "--database-away", type=float, default=0, metavar="S", help="stop MySQL for S seconds"
    )
    sub.add_argument(
        "--through",
        choices=["auto", "http", "handlers"],
        default="auto",
        help="the deployed stack, or the API's handlers in processes (default: by size)",
    )

    sub = add(
        "burst",
        _run_standalone("local.load.burst"),
        "check all answers during many likes of one post with a lagging consumer",
    )
    sub.add_argument("--likes", type=int, default=26_828, help="number of actors (default: 26828)")
    sub.add_argument(
        "--seconds", type=float, default=8, help="minimum duration of the likes (default: 8)"
    )
    sub.add_argument(
        "--lag",
        type=float,
        default=3,
        metavar="S",
        help="minimum delay of the consumer (default: 3)",
    )
    sub.add_argument(
        "--sample", type=int, default=300, help="actors checked by an observation (default: 300)"
    )
    sub.add_argument("--seed", type=int, default=0, help="seed of the sample")

    sub = add(
        "audit",
        _run_with_stack("local.audit.audit"),
        "print the audit report; exit status 1 unless clean",
    )
    sub.add_argument("--wait", action="store_true", help="wait for empty queues first")

    sub = add(
        "drift",
        _run_with_stack("local.stack.drift"),
        "reconcile Redis, counters and rows; exit status 1 unless all agree afterwards",
    )

    sub = add(
        "rebuild",
        _run_with_stack("local.stack.rebuild"),
        "recount counters, and print the differences",
    )
    sub.add_argument(
        "--from-log", action="store_true", help="use only the vote log and its archives"
    )
    sub.add_argument("--as-of", metavar="TIME", help="end of the recount: 2026-11-21T08:30:00Z")
    one = sub.add_mutually_exclusive_group()
    one.add_argument("--target", metavar="post:7", help="only counters of this target")
    one.add_argument("--user", metavar="ID", help="only counters of this user")

    sub = add(
        "soak",
        _run_standalone("local.load.soak"),
        "check that memory stays flat in hours of use, compressed to minutes",
    )
    sub.add_argument(
        "--minutes", type=float, default=5, help="duration of the traffic (default: 5)"
    )

    sub = add(
        "keys",
        _run_with_stack("local.stack.keys"),
        "print the biggest and the hottest keys of Redis",
    )
    sub.add_argument("--limit", type=int, default=10, help="rows of each table (default: 10)")
    sub.add_argument(
        "--minutes", type=int, default=5, help="age of the oldest hot keys (default: 5)"
    )

    sub = add(
        "queues", _run_with_stack("local.stack.queues"), "print the messages of each queue by state"
    )

    sub = add(
        "dlq",
        _run_with_stack("local.stack.dlq", "list_queues"),
        "list, show or redrive dead letters",
    )
    actions = sub.add_subparsers(metavar="action")
    for name, text in {
        "list": "count the dead letters of each queue",
        "show": "print dead letters of a queue, one JSON object a line",
        "redrive": "move dead letters back to their queue, slowly",
    }.items():
        action = actions.add_parser(name, help=text, description=text)
        action.set_defaults(
            command=_run_with_stack("local.stack.dlq", "list_queues" if name == "list" else name)
        )
        if name != "list":
            action.add_argument("queue", help="name as printed by `queues`: reactions")
        if name == "show":
            action.add_argument(
                "--limit", type=int, default=20, help="maximum number (default: 20)"
            )
        if name == "redrive":
            action.add_argument("--id", action="append", help="only this message (repeatable)")
            action.add_argument("--limit", type=int, help="maximum number (default: all)")

    add(
        "sam",
        _run_with_stack("local.stack.sam_local"),
        "write files for `sam local`, with Docker, on this stack",
    )
    add("packages", _packages, "install missing server programs")
    for name in _JSON_COMMANDS:
        commands.choices[name].add_argument("--json", action="store_true", help="print JSON")
    return parser


def _down(args: argparse.Namespace) -> int:
    print("stopped" if Stack(args.dir).down() else "no stack was running")
    return 0


def _run_standalone(module: str) -> Command:
    """Return a command without a stack, whose module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        return int(importlib.import_module(module).main(args))

    return run


def _packages(args: argparse.Namespace) -> int:
    if installed := packages.install_packages():
        print(f"installed {', '.join(installed)}")
    return 0


def _run_with_stack(module: str, name: str = "main") -> Command:
    """Return a command on the running stack, whose module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        stack = Stack.load(args.dir)
        main: Callable[[Stack, argparse.Namespace], Any] = getattr(
            importlib.import_module(module), name
        )
        return int(main(stack, args) or 0)

    return run


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    sys.exit(main())
