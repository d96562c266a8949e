"""``python -m ops``: inspect and repair the stores and queues of an environment.

Without --environment that is the local stack.
"""

import argparse
from pathlib import Path

from cli import commands as cli
from cli.commands import Commands, add_flag, add_number, import_late, make_parser, run_program
from cli.paths import DIRECTORY


def add_command(commands: Commands, name: str, command: str, text: str) -> argparse.ArgumentParser:
    """Add a command, whose module is imported once the stack's kinds and types are declared."""

    def run(args: argparse.Namespace) -> int:
        import_late("ops.environment:declare_types")(args)
        return import_late(command)(args) or 0

    return cli.add_command(commands, name, run, text)


def add_operator_command(
    commands: Commands, name: str, operator_command: str, text: str, printed: str | None = ""
) -> argparse.ArgumentParser:
    """Add a command that runs an operator command and prints values of its result; its rows
    without ``printed``."""
    function = "main" if printed is not None else "list_rows"
    parser = add_command(commands, name, f"ops.operator_commands:{function}", text)
    parser.set_defaults(operator_command=operator_command, printed=printed)
    return parser


def build_parser() -> argparse.ArgumentParser:
    """Return the parser."""
    parser, commands = make_parser("ops", __doc__)
    parser.add_argument(
        "--dir",
        type=Path,
        default=DIRECTORY,
        help="directory of a local stack, and of the progress of imports (default: .local)",
    )
    add_flag(
        parser,
        "--environment",
        "use the stores and queues that the variables of this shell name (PLAZA_...)",
    )

    sub = add_command(
        commands,
        "import",
        "ops.history",
        "store old likes, collects or follows from a CSV file, each once and with its time",
    )
    sub.add_argument(
        "file", type=Path, help="CSV or TSV with a header, or JSON lines; may be gzipped"
    )
    sub.add_argument(
        "--what",
        choices=["reactions", "users", "posts", "comments", "targets"],
        default="reactions",
        help="all but reactions (the default) are JSON lines with the ids of the source",
    )
    sub.add_argument("--kind", default="like", help="a kind of reaction (default: like)")
    sub.add_argument("--target", default="post", help="type of the targets (default: post)")
    for name, column, what in (
        ("user", "user_id", "the user who reacted"),
        ("id", None, "the target (default: post_id, comment_id, article_id, followed_id)"),
        ("time", "created_at", "the time: RFC 3339, `2026-11-22 12:00:00` in UTC, or Unix seconds"),
        ("state", None, "1 or true, 0 or false for a reaction that was removed at the time"),
    ):
        default = f" (default: {column})" if column else ""
        sub.add_argument(
            f"--{name}-column", metavar="NAME", default=column, help=f"column of {what}{default}"
        )
    sub.add_argument("--rate", type=float, help="lines a second (default: no limit)")
    add_flag(sub, "--skip-bad-lines", "print invalid lines, and store the others")
    add_flag(sub, "--from-start", "do not continue an interrupted import of this file")

    add_command(
        commands,
        "drift",
        "ops.drift",
        "reconcile Redis, counters and rows; exit status 1 unless all agree then",
    )

    sub = add_command(
        commands, "rebuild", "ops.rebuild", "recount counters, and print the differences"
    )
    add_flag(sub, "--from-log", "use only the reaction log and its archives")
    sub.add_argument("--as-of", metavar="TIME", help="end of the recount: 2026-11-21T08:30:00Z")
    scope = sub.add_mutually_exclusive_group()
    scope.add_argument("--target", metavar="post:7", help="only counters of this target")
    scope.add_argument("--user", metavar="ID", help="only counters of this user")

    sub = add_command(
        commands, "keys", "ops.keys", "print the biggest and the hottest keys of Redis"
    )
    add_number(sub, "--limit", 10, "rows of each table")
    add_number(sub, "--minutes", 5, "age of the oldest hot keys")

    add_command(commands, "queues", "ops.queues", "print the messages of each queue by state")
    sub = add_command(
        commands, "sweep", "ops.sweep", "send entries of outboxes again, until none is left"
    )
    add_flag(sub, "--everything", "also what was sent a moment ago, once")
    add_command(
        commands, "sort-reactions", "ops.sort_reactions", "fill the sorted lists of large targets"
    )
    for sub in commands.choices.values():
        add_flag(sub, "--json", "print JSON")

    sub = add_command(
        commands, "events", "ops.events", "print the events of closed days from the archive"
    )
    sub.add_argument("day", help="the first day (UTC): 2026-11-21")
    sub.add_argument("--until", metavar="DAY", help="the last day (default: the first one)")

    keys = add_operator_command(
        commands, "server-keys", "list-server-keys", "list, make or end keys of servers", None
    )
    actions = keys.add_subparsers(metavar="action")
    listed = add_operator_command(
        actions, "list", "list-server-keys", "print the keys, without their secrets", None
    )
    add_flag(listed, "--json", "print JSON")
    made = add_operator_command(
        actions, "make", "make-server-key", "make a key, and print it this once", "{key}"
    )
    made.add_argument("name", help="what has the key: web. A name has two valid keys at most")
    made.add_argument(
        "--scope",
        dest="scopes",
        action="append",
        required=True,
        choices=["read", "act", "moderate", "events", "export", "erase"],
        help="what it may do (repeatable)",
    )
    add_number(made, "--requests-per-s", 100, "its own rate limit")
    ended = add_operator_command(
        actions,
        "end",
        "end-server-key",
        "end a key, which is refused within a minute",
        "ended {key_id}; processes accept it for a minute more",
    )
    ended.add_argument("key_id", help="as printed by `list`")

    hooks = add_operator_command(
        commands, "webhooks", "list-webhooks", "list, make, change or end webhooks", None
    )
    actions = hooks.add_subparsers(metavar="action")
    listed = add_operator_command(
        actions, "list", "list-webhooks", "print the webhooks, without their secrets", None
    )
    add_flag(listed, "--json", "print JSON")
    made = add_operator_command(
        actions,
        "make",
        "make-webhook",
        "make a webhook; print its id and, this once, secret",
        "{webhook_id} {secret}",
    )
    made.add_argument("url", help="https://example.com/plaza")
    changed = add_operator_command(
        actions, "change", "change-webhook", "change the URL or the types"
    )
    ended = add_operator_command(actions, "end", "end-webhook", "end a webhook for ever")
    rotated = add_operator_command(
        actions,
        "rotate",
        "rotate-webhook-secret",
        "print another secret; the one before signs for a day more",
        "{secret}",
    )
    replayed = add_operator_command(
        actions,
        "replay",
        "replay-webhook",
        "send all events since a time again",
        "sends events since {since}",
    )
    enabled = add_operator_command(
        actions, "enable", "enable-webhook", "enable one that was disabled"
    )
    for sub in (changed, ended, rotated, replayed, enabled):
        sub.add_argument("webhook_id", metavar="id", type=int, help="as printed by `list`")
    changed.add_argument("--url", help="the new URL (default: it stays)")
    for sub in (made, changed):
        sub.add_argument(
            "--type",
            dest="types",
            action="append",
            help="a type of events: like.added (repeatable; default: all, or as before)",
        )
    replayed.add_argument("--since", required=True, help="a time: 2026-11-25T10:00Z")

    letters = add_command(
        commands, "dlq", "ops.dead_letters:list_queues", "list, show, redrive or purge dead letters"
    )
    actions = letters.add_subparsers(metavar="action")
    add_command(
        actions, "list", "ops.dead_letters:list_queues", "count the dead letters of each queue"
    )
    show = add_command(
        actions,
        "show",
        "ops.dead_letters:show",
        "print dead letters of a queue, one JSON object a line",
    )
    redrive = add_command(
        actions,
        "redrive",
        "ops.dead_letters:redrive",
        "move dead letters back to their queue, slowly",
    )
    purge = add_command(
        actions, "purge", "ops.dead_letters:purge", "delete dead letters of a queue for ever"
    )
    purge.add_argument("--id", action="append", required=True, help="this message (repeatable)")
    for sub in (show, redrive, purge):
        sub.add_argument("queue", help="name as printed by `queues`: reactions")
    add_number(show, "--limit", 20, "maximum number")
    redrive.add_argument("--id", action="append", help="only this message (repeatable)")
    redrive.add_argument("--limit", type=int, help="maximum number (default: all)")
    return parser


if __name__ == "__main__":
    run_program(build_parser())
