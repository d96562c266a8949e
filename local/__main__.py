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
    "audit", "drift", "rebuild", "keys", "queues", "import",
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

    def add(name: str, command: Command | str, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        run = _run_with_stack(command) if isinstance(command, str) else command
        sub.set_defaults(command=run)
        return sub

    sub = add("up", up.main, "start the stack; Ctrl-C stops it")
    sub.add_argument(
        "--port", type=int, default=0, help="port of the HTTP API (default: a free one)"
    )
    _add_flag(sub, "--no-demo", "do not play the demo crowd")
    _add_flag(sub, "--detach", "return when the stack runs")
    _add_flag(
        sub,
        "--redis-cluster",
        "run three masters with a replica each (PLAZA_REDIS_URL, if set, is a cluster)",
    )
    add("down", _down, "stop the stack")
    add("status", status.main, "show the parts of the stack, and the messages in its queues")

    sub = add("token", tokens.main, "print session tokens, one a line")
    sub.add_argument("--user", required=True, help="user ids: 7 or 7-20")
    sub.add_argument("--role", default="user", choices=["user", "admin"])

    sub = add("sms", "sms", "print the code that was last sent to a phone")
    sub.add_argument("phone", help="with country code: +8613800138000")

    sub = add("logs", logs.main, "print the logs of functions and servers")
    sub.add_argument(
        "part", nargs="?", help="a function, redis, mysql, ministack or lambda (default: functions)"
    )
    _add_flag(sub, "-f", "wait for new lines", "--follow")
    _add_number(sub, "--minutes", 10.0, "age of the oldest line")
    sub.add_argument(
        "--request", metavar="ID", help="only lines and rows of one request (its X-Request-Id)"
    )

    sub = add("replay", "load.replay", "replay a file of interactions or follows")
    sub.add_argument(
        "file",
        type=Path,
        help="CSV, may be gzipped: user_id,item_id,rating,timestamp or follower_id,followee_id",
    )
    sub.add_argument("--rate", type=float, help="requests a second (default: no limit)")
    _add_number(sub, "--duplicates", 0.0, "share of requests sent twice, 0 to 1")
    sub.add_argument("--limit", type=int, help="maximum number of rows")
    _add_number(sub, "--concurrency", 8, "concurrent users")
    _add_number(sub, "--seed", 0, "seed of the duplicates")
    _add_flag(sub, "--kill-consumers", "kill consumers at random intervals")

    sub = add(
        "import",
        _run_standalone("local.load.history"),
        "store old likes or collects from a CSV file, each once and with its time",
    )
    sub.add_argument("file", type=Path, help="CSV or TSV with a header, may be gzipped")
    sub.add_argument("--kind", choices=["like", "collect"], default="like")
    sub.add_argument("--target", choices=["post", "comment", "review"], default="post")
    for name, column, what in (
        ("user", "user_id", "the user who reacted"),
        ("id", None, "the target (default: post_id, comment_id or review_id)"),
        ("time", "created_at", "the time: RFC 3339, `2026-11-22 12:00:00` in UTC, or Unix seconds"),
        ("state", None, "1 or true, 0 or false for a reaction that was removed at the time"),
    ):
        default = f" (default: {column})" if column else ""
        sub.add_argument(
            f"--{name}-column", metavar="NAME", default=column, help=f"column of {what}{default}"
        )
    sub.add_argument("--rate", type=float, help="lines a second (default: no limit)")
    _add_flag(sub, "--skip-bad-lines", "print invalid lines, and store the others")
    _add_flag(sub, "--from-start", "do not continue an interrupted import of this file")
    _add_flag(sub, "--environment", "use the servers of PLAZA_REDIS_URL and PLAZA_MYSQL_URL")

    sub = add(
        "cluster-failover",
        "load.failover",
        "replay a file; a master of the Redis Cluster fails over halfway",
    )
    sub.add_argument(
        "file", type=Path, nargs="?", help="as for replay (default: 40 users that toggle likes)"
    )
    _add_number(sub, "--limit", 4000, "maximum number of rows")
    _add_number(sub, "--concurrency", 8, "concurrent users")
    sub.add_argument(
        "--how",
        choices=["die", "hang", "in-order", "unreplicated"],
        default="die",
        help="SIGKILL, SIGSTOP, CLUSTER FAILOVER, or SIGKILL after two seconds without"
        " replication (default: die)",
    )

    sub = add("flash-sale", "load.flash_sale", "play a crowd at a sale, and check the outcome")
    _add_number(sub, "--buyers", 200, "number of buyers")
    _add_number(sub, "--stock", 50, "number of vouchers")
    _add_number(sub, "--clicks", 5, "clicks of each buyer")
    _add_number(sub, "--seed", 0, "seed of the order of clicks")
    _add_flag(sub, "--kill-consumers", "kill consumers at random intervals")
    _add_number(sub, "--database-away", 0.0, "stop MySQL for so many seconds")
    sub.add_argument(
        "--concurrency",
        type=int,
        help="clicks in flight (default: the number of buyers, at most 10,000)",
    )

    sub = add(
        "burst",
        "load.burst",
        "check all answers during many likes of one post with a lagging consumer",
    )
    _add_number(sub, "--likes", 26_828, "number of actors")
    _add_number(sub, "--seconds", 8.0, "minimum duration of the likes")
    _add_number(sub, "--lag", 3.0, "minimum delay of the consumer in seconds")
    _add_number(sub, "--earlier", 0, "likes that are stored first, and that Redis forgets")
    _add_number(sub, "--build-lag", 0.0, "minimum delay of a build after them in seconds")
    _add_number(sub, "--concurrency", 64, "likes in flight")
    _add_number(sub, "--sample", 300, "actors checked by an observation")
    _add_number(sub, "--seed", 0, "seed of the sample")

    sub = add("audit", "audit.audit", "print the audit report; exit status 1 unless clean")
    _add_flag(sub, "--wait", "audit when nothing is in transit")

    add("drift", "drift", "reconcile Redis, counters and rows; exit status 1 unless all agree then")

    sub = add("rebuild", "rebuild", "recount counters, and print the differences")
    _add_flag(sub, "--from-log", "use only the vote log and its archives")
    sub.add_argument("--as-of", metavar="TIME", help="end of the recount: 2026-11-21T08:30:00Z")
    one = sub.add_mutually_exclusive_group()
    one.add_argument("--target", metavar="post:7", help="only counters of this target")
    one.add_argument("--user", metavar="ID", help="only counters of this user")

    sub = add(
        "soak",
        _run_standalone("local.load.soak"),
        "check that memory stays flat in hours of use, compressed to minutes",
    )
    _add_number(sub, "--minutes", 5.0, "duration of the traffic")

    sub = add("keys", "keys", "print the biggest and the hottest keys of Redis")
    _add_number(sub, "--limit", 10, "rows of each table")
    _add_number(sub, "--minutes", 5, "age of the oldest hot keys")

    add("queues", "queues", "print the messages of each queue by state")

    sub = add("dlq", _run_with_stack("dlq", "list_queues"), "list, show or redrive dead letters")
    actions = sub.add_subparsers(metavar="action")
    for name, function, text in (
        ("list", "list_queues", "count the dead letters of each queue"),
        ("show", "show", "print dead letters of a queue, one JSON object a line"),
        ("redrive", "redrive", "move dead letters back to their queue, slowly"),
    ):
        action = actions.add_parser(name, help=text, description=text)
        action.set_defaults(command=_run_with_stack("dlq", function))
        if name != "list":
            action.add_argument("queue", help="name as printed by `queues`: reactions")
        if name == "show":
            _add_number(action, "--limit", 20, "maximum number")
        if name == "redrive":
            action.add_argument("--id", action="append", help="only this message (repeatable)")
            action.add_argument("--limit", type=int, help="maximum number (default: all)")

    sub = add("events", "load.samples", "write the sample events with tokens and ids of this stack")
    _add_flag(sub, "--clean", "delete the dead letters of invoked samples instead")

    add("sam", "sam_local", "write files for `sam local`, with Docker, on this stack")
    sub = add("packages", _packages, "install missing server programs")
    _add_flag(sub, "--tests", "install a browser too")
    for name in _JSON_COMMANDS:
        _add_flag(commands.choices[name], "--json", "print JSON")
    return parser


def _add_flag(parser: argparse.ArgumentParser, name: str, text: str, *names: str) -> None:
    parser.add_argument(name, *names, action="store_true", help=text)


def _add_number(parser: argparse.ArgumentParser, name: str, default: float, text: str) -> None:
    """Add an option of the type of ``default``."""
    text = f"{text} (default: {default:g})"
    parser.add_argument(name, type=type(default), default=default, help=text)


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
    if args.tests and not packages.install_browser():
        print("plaza: Chromium is missing; the browser tests are skipped", file=sys.stderr)
    return 0


def _run_with_stack(module: str, name: str = "main") -> Command:
    """Return a command on the running stack, whose module is imported when it runs."""

    def run(args: argparse.Namespace) -> int:
        stack = Stack.load(args.dir)
        package = "local" if "." in module else "local.stack"
        main = getattr(importlib.import_module(f"{package}.{module}"), name)
        return int(main(stack, args) or 0)

    return run


def _interrupt(signum: int, frame: Any) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    sys.exit(main())
