"""``python -m local``: start, inspect, load and stop the stack."""

import argparse
import importlib
import os
import sys
from functools import partial
from pathlib import Path

from cli.commands import (
    Command,
    add_command,
    add_flag,
    add_number,
    import_late,
    make_parser,
    run_program,
)
from cli.operator_commands import add_operator_command
from cli.paths import DIRECTORY, CommandError
from local import up
from local.stack import logs, packages, parts, status, tokens
from local.stack.stack import Stack, explain_outage

_ROLES = ("user", "moderator", "sales", "operator", "admin")
_JSON_COMMANDS = ("replay", "cluster-failover", "flash-sale", "burst", "soak", "screens", "audit")


def build_parser() -> argparse.ArgumentParser:
    parser, commands = make_parser("local", __doc__)
    parser.add_argument(
        "--dir", type=Path, default=DIRECTORY, help="directory of the stack (default: .local)"
    )

    def add(name: str, command: Command | str, text: str) -> argparse.ArgumentParser:
        """Add a command; a text names a module that runs on the stack."""
        if isinstance(command, str):
            module = f"local.{command}" if "." in command else f"local.stack.{command}"
            command = partial(_run_on_stack, module)
        return add_command(commands, name, command, text)

    sub = add("up", up.main, "start the stack with the data of the last run; Ctrl-C stops it")
    sub.add_argument(
        "--port", type=int, default=0, help="port of the HTTP API (default: a free one)"
    )
    add_flag(sub, "--no-demo", "do not play the demo crowd, which plays on empty stores")
    sub.add_argument(
        "--kinds",
        default="",
        metavar="JSON",
        help='kinds of reactions that it adds: {"bookmark": {"targets": ["post"]}}',
    )
    sub.add_argument(
        "--target-types",
        default="",
        metavar="JSON",
        help='types of the app\'s own objects: {"article": {"create": "first_reaction"}}',
    )
    add_flag(sub, "--detach", "return when the stack runs")
    add_flag(
        sub,
        "--redis-cluster",
        "run three masters with a replica each, and keep no data (PLAZA_REDIS_URL, if set, is a"
        " cluster)",
    )
    add("down", _down, "stop the stack; its data stays")
    add("fresh", up.fresh, "delete the data of the stack")
    add("status", status.main, "show the parts of the stack, and the messages in its queues")

    sub = add("token", tokens.main, "print session tokens, one a line")
    sub.add_argument("--user", required=True, help="user ids: 7 or 7-20")
    sub.add_argument("--role", default="user", choices=_ROLES)

    sub = add("sms", "sms", "print the code that was last sent to a phone")
    sub.add_argument("phone", help="with country code: +8613800138000")

    sub = add("id-token", "issuer", "print an ID token of the stack's issuer")
    sub.add_argument("--subject", required=True, help="the user of your app: ann")
    sub.add_argument("--nonce", help="nonce of the sign-in")

    sub = add("logs", logs.main, "print the logs of functions and servers")
    sub.add_argument(
        "part", nargs="?", help="a function, redis, mysql, ministack or lambda (default: functions)"
    )
    add_flag(sub, "-f", "wait for new lines", "--follow")
    add_number(sub, "--minutes", 10.0, "age of the oldest line")
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
    add_number(sub, "--duplicates", 0.0, "share of requests sent twice, 0 to 1")
    sub.add_argument("--limit", type=int, help="maximum number of rows")
    add_number(sub, "--concurrency", 8, "concurrent users")
    add_number(sub, "--seed", 0, "seed of the duplicates")
    add_flag(sub, "--kill-consumers", "kill consumers at random intervals")

    sub = add(
        "cluster-failover",
        "load.failover",
        "replay a file; a master of the Redis Cluster fails over halfway",
    )
    sub.add_argument(
        "file", type=Path, nargs="?", help="as for replay (default: 40 users that toggle likes)"
    )
    add_number(sub, "--limit", 4000, "maximum number of rows")
    add_number(sub, "--concurrency", 8, "concurrent users")
    sub.add_argument(
        "--how",
        choices=["die", "hang", "in-order", "unreplicated"],
        default="die",
        help="SIGKILL, SIGSTOP, CLUSTER FAILOVER, or SIGKILL after two seconds without"
        " replication (default: die)",
    )

    sub = add("flash-sale", "load.flash_sale", "play a crowd at a sale, and check the outcome")
    add_number(sub, "--buyers", 200, "number of buyers")
    add_number(sub, "--stock", 50, "number of vouchers")
    add_number(sub, "--clicks", 5, "clicks of each buyer")
    add_number(sub, "--seed", 0, "seed of the order of clicks")
    add_flag(sub, "--kill-consumers", "kill consumers at random intervals")
    add_number(sub, "--database-away", 0.0, "stop MySQL for so many seconds")
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
    add_number(sub, "--likes", 26_828, "number of actors")
    add_number(sub, "--seconds", 8.0, "minimum duration of the likes")
    add_number(sub, "--lag", 3.0, "minimum delay of the consumer in seconds")
    add_number(sub, "--earlier", 0, "likes that are stored first, and that Redis forgets")
    add_number(sub, "--build-lag", 0.0, "minimum delay of a build after them in seconds")
    add_number(sub, "--concurrency", 64, "likes in flight")
    add_number(sub, "--seed", 0, "seed of what actors do later")

    sub = add("audit", "audit.audit", "print the audit report; exit status 1 unless clean")
    add_flag(sub, "--wait", "audit when nothing is in transit")

    sub = add(
        "soak",
        import_late("local.load.soak"),
        "check that memory stays flat in hours of use, compressed to minutes",
    )
    add_number(sub, "--minutes", 5.0, "duration of the traffic")

    sub = add(
        "screens",
        import_late("local.load.screens"),
        "check that numbers on screens follow and never go back while parts of the stack fail",
    )
    add_number(sub, "--screens", 10_000, "number of screens")
    add_number(sub, "--seconds", 60.0, "duration of the traffic")
    add_number(sub, "--poll-s", 5, "interval of an active screen in seconds")

    add("env", parts.print_environment, 'print how programs reach the stack: eval "$(... env)"')

    sub = add("invoke", parts.invoke, "run a function now, and print its result")
    sub.add_argument("function", help="SweepOutbox, sweep_outbox or a unique part of its name")
    sub.add_argument("event", nargs="?", default="{}", help='JSON: {"everything": true}')

    stop = add("stop", parts.stop_server, "stop a server of the stack, as an outage does")
    start = add("start", parts.start_server, "start a server of the stack again")
    for sub in (stop, start):
        sub.add_argument("part", choices=parts.SERVERS)

    sub = add(
        "operate", parts.operate, "run a command of an operator, as `make operate` does in AWS"
    )
    add_operator_command(sub)

    add("sam", "sam_local", "write files for `sam local`, with Docker, on this stack")
    sub = add("packages", _packages, "install missing server programs")
    add_flag(sub, "--tests", "install a browser too")
    add_flag(sub, "--clock", "install a compiler of C too")
    for name in _JSON_COMMANDS:
        add_flag(commands.choices[name], "--json", "print JSON")
    return parser


def _down(args: argparse.Namespace) -> int:
    print("stopped" if Stack(args.dir).down() else "no stack was running")
    return 0


def _packages(args: argparse.Namespace) -> int:
    if installed := packages.install_packages():
        print(f"installed {', '.join(installed)}")
    if args.tests and not packages.install_browser():
        print("plaza: Chromium is missing; the browser tests are skipped", file=sys.stderr)
    if args.clock and not packages.install_compiler():
        raise CommandError("cc is missing; install gcc and libc6-dev of Debian or Ubuntu")
    return 0


def _run_on_stack(module: str, args: argparse.Namespace) -> int:
    """Run the command of a module on the running stack; load needs all of its parts."""
    stack = Stack.load(args.dir, require_all=module.startswith("local.load."))
    # Plaza reads its kinds and types when it is loaded, by the module.
    environment = stack.environment()
    for name in ("PLAZA_KINDS", "PLAZA_TARGET_TYPES"):
        os.environ[name] = environment.get(name, "{}")
    with explain_outage(stack):
        return int(importlib.import_module(module).main(stack, args))


if __name__ == "__main__":
    run_program(build_parser())
