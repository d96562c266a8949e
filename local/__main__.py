"""``python -m local``: start the stack, look into it, play with it, stop it."""

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
    """Run one command; its exit status: 0 good, 1 a clear error, 130 interrupted."""
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
    """Every command with its options."""
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    parser.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="where the stack lives (default: .local)"
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, command: Command, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    sub = add("up", up.main, "start everything; Ctrl-C ends it")
    sub.add_argument("--port", type=int, default=0, help="of the HTTP API (default: a free one)")
    sub.add_argument("--no-demo", action="store_true", help="leave the demo crowd out")
    sub.add_argument("--detach", action="store_true", help="return once it runs")
    sub.add_argument(
        "--redis-cluster",
        action="store_true",
        help="on three masters with a replica each (PLAZA_REDIS_URL, if it is set, is a cluster)",
    )
    add("down", _down, "end everything")
    add("status", status.main, "what runs, and what waits in the queues")

    sub = add("token", tokens.main, "session tokens, one a line")
    sub.add_argument("--user", required=True, help="7, or 7-20")
    sub.add_argument("--role", default="user", choices=["user", "admin"])

    sub = add("sms", _run_with_stack("local.stack.sms"), "the code that was last sent to a phone")
    sub.add_argument("phone", help="with + and country: +8613800138000")

    sub = add("logs", logs.main, "what functions and servers wrote")
    sub.add_argument(
        "part",
        nargs="?",
        help="a function, redis, mysql, ministack or lambda (default: all functions)",
    )
    sub.add_argument("-f", "--follow", action="store_true", help="wait for more")
    sub.add_argument("--minutes", type=float, default=10, help="how far back (default: 10)")
    sub.add_argument(
        "--request", metavar="ID", help="the way of one request, to its rows (its X-Request-Id)"
    )

    sub = add(
        "replay", _run_with_stack("local.load.replay"), "play a file of interactions or follows"
    )
    sub.add_argument(
        "file",
        type=Path,
        help="CSV, may be gzipped: user_id,item_id,rating,timestamp or follower_id,followee_id",
    )
    sub.add_argument("--rate", type=float, help="requests a second (default: as fast as it goes)")
    sub.add_argument("--duplicates", type=float, default=0.0, help="share sent twice, 0 to 1")
    sub.add_argument("--limit", type=int, help="only so many rows")
    sub.add_argument("--concurrency", type=int, default=8, help="users at once (default: 8)")
    sub.add_argument("--seed", type=int, default=0, help="which requests are sent twice")
    sub.add_argument("--kill-consumers", action="store_true", help="at random, all the while")

    sub = add(
        "cluster-failover",
        _run_with_stack("local.load.failover"),
        "play a file and let a master of the Redis Cluster fail over in the middle of it",
    )
    sub.add_argument(
        "file", type=Path, nargs="?", help="as for replay (default: 40 users who toggle likes)"
    )
    sub.add_argument("--limit", type=int, default=4000, help="so many rows (default: 4000)")
    sub.add_argument("--concurrency", type=int, default=8, help="users at once (default: 8)")
    sub.add_argument(
        "--how",
        choices=["die", "hang", "in-order", "unreplicated"],
        default="die",
        help="SIGKILL, SIGSTOP, CLUSTER FAILOVER, or SIGKILL after two seconds of which"
        " its replica hears nothing (default: die)",
    )

    sub = add(
        "flash-sale",
        _run_with_stack("local.load.flash_sale"),
        "a crowd at a sale, and what came of it",
    )
    sub.add_argument("--buyers", type=int, default=200, help="people (default: 200)")
    sub.add_argument("--stock", type=int, default=50, help="vouchers (default: 50)")
    sub.add_argument("--clicks", type=int, default=5, help="of each of them (default: 5)")
    sub.add_argument("--seed", type=int, default=0, help="in which order they click")
    sub.add_argument("--kill-consumers", action="store_true", help="at random, all the while")
    sub.add_argument(
        "--database-away", type=float, default=0, metavar="S", help="stop MySQL for so many seconds"
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
        "many likes of one post with a late consumer, on servers of its own: is every answer true?",
    )
    sub.add_argument("--likes", type=int, default=26_828, help="actors (default: 26828)")
    sub.add_argument("--seconds", type=float, default=8, help="of likes, at least (default: 8)")
    sub.add_argument(
        "--lag", type=float, default=3, metavar="S", help="consumer's delay, at least (default: 3)"
    )
    sub.add_argument(
        "--sample", type=int, default=300, help="actors asked about at a moment (default: 300)"
    )
    sub.add_argument("--seed", type=int, default=0, help="which actors are asked about")

    sub = add(
        "audit",
        _run_with_stack("local.audit.audit"),
        "the audit report; exit status 1 unless clean",
    )
    sub.add_argument("--wait", action="store_true", help="for quiet, first")

    sub = add(
        "drift",
        _run_with_stack("local.stack.drift"),
        "compare Redis, counters and rows, and repair; exit status 1 unless all agree then",
    )

    sub = add(
        "rebuild",
        _run_with_stack("local.stack.rebuild"),
        "counters counted again, and the difference",
    )
    sub.add_argument("--from-log", action="store_true", help="from the log and its archives alone")
    sub.add_argument("--as-of", metavar="TIME", help="up to a moment: 2026-11-21T08:30:00Z")
    one = sub.add_mutually_exclusive_group()
    one.add_argument("--target", metavar="post:7", help="only its counters")
    one.add_argument("--user", metavar="ID", help="only theirs")

    sub = add(
        "soak",
        _run_standalone("local.load.soak"),
        "hours of use in minutes, on a stack of its own: is memory flat?",
    )
    sub.add_argument("--minutes", type=float, default=5, help="of traffic (default: 5)")

    sub = add(
        "keys", _run_with_stack("local.stack.keys"), "the biggest and the hottest keys of Redis"
    )
    sub.add_argument("--most", type=int, default=10, help="of each table (default: 10)")
    sub.add_argument("--minutes", type=int, default=5, help="how far back hot keys go (default: 5)")

    sub = add(
        "queues", _run_with_stack("local.stack.queues"), "what waits in the queues, and what died"
    )

    sub = add("dlq", _run_with_stack("local.stack.dlq", "list_queues"), "what queues gave up")
    acts = sub.add_subparsers(metavar="act")
    for name, text in {
        "list": "how much each queue gave up",
        "show": "what some of it says, one message a line",
        "redrive": "send it back to its queue, slowly",
    }.items():
        act = acts.add_parser(name, help=text, description=text)
        act.set_defaults(
            command=_run_with_stack("local.stack.dlq", "list_queues" if name == "list" else name)
        )
        if name != "list":
            act.add_argument("queue", help="as `queues` names it: reactions")
        if name == "show":
            act.add_argument("--limit", type=int, default=20, help="at most (default: 20)")
        if name == "redrive":
            act.add_argument("--id", action="append", help="only this message (more than once)")
            act.add_argument("--most", type=int, help="only so many (default: all)")

    add(
        "sam",
        _run_with_stack("local.stack.sam_local"),
        "files for `sam local`, with Docker, on this stack",
    )
    add("packages", _packages, "install the server programs that are missing")
    for name in _JSON_COMMANDS:
        commands.choices[name].add_argument("--json", action="store_true", help="for a machine")
    return parser


def _down(args: argparse.Namespace) -> int:
    ended = Stack(args.dir).down()
    print("stopped" if ended else "nothing was running")
    return 0


def _run_standalone(module: str) -> Command:
    """A command that needs no running stack; its module is loaded when it is asked for."""

    def run(args: argparse.Namespace) -> int:
        return int(importlib.import_module(module).main(args))

    return run


def _packages(args: argparse.Namespace) -> int:
    if installed := packages.install_packages():
        print(f"installed {', '.join(installed)}")
    return 0


def _run_with_stack(module: str, name: str = "main") -> Command:
    """A command whose module, with its imports, is only loaded when it is asked for."""

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
