"""``webhooks``: make, list, change and end webhooks, rotate their secrets, set their offsets."""

import argparse
import json
from datetime import UTC, datetime

from cli.output import console, new_table
from cli.paths import CommandError
from ops.environment import use_environment
from plaza.integrations.webhooks import operate_webhooks

OPERATOR = "ops"


def list_webhooks(args: argparse.Namespace) -> int:
    """Print the webhooks. Returns 1 if one of them is disabled or fails."""
    with use_environment(args):
        webhooks = operate_webhooks.list_webhooks()
    if getattr(args, "json", False):
        print(json.dumps(webhooks))
    else:
        table = new_table("webhook", "url", "types", "state", "failures", "since", "last error")
        for row in webhooks:
            since, error = row["failing_since"] or "", row["last_error"] or ""
            types = ", ".join(row["types"]) or "all"
            head = row["webhook_id"], row["url"], types, row["state"]
            table.add_row(*head, str(row["failures"]), since, error)
        console.print(table)
    return int(any(row["state"] == "disabled" or row["failures"] for row in webhooks))


def make(args: argparse.Namespace) -> int:
    """Make a webhook; print its id, and its secret, which is shown once."""
    with use_environment(args):
        webhook_id, secret = operate_webhooks.make_webhook(
            args.url, args.types or [], operator_id=OPERATOR
        )
    print(f"{webhook_id} {secret}")
    return 0


def change(args: argparse.Namespace) -> int:
    with use_environment(args):
        operate_webhooks.change_webhook(args.id, args.url, args.types, operator_id=OPERATOR)
    return 0


def end(args: argparse.Namespace) -> int:
    with use_environment(args):
        operate_webhooks.end_webhook(args.id, operator_id=OPERATOR)
    return 0


def rotate(args: argparse.Namespace) -> int:
    """Print another secret, which is shown once."""
    with use_environment(args):
        secret = operate_webhooks.rotate_secret(args.id, operator_id=OPERATOR)
    print(secret)
    return 0


def replay(args: argparse.Namespace) -> int:
    try:
        since = datetime.fromisoformat(args.since)
    except ValueError:
        raise CommandError("a time is like 2026-11-25T10:00Z") from None
    with use_environment(args):
        begin = operate_webhooks.replay(
            args.id, since if since.tzinfo else since.replace(tzinfo=UTC), operator_id=OPERATOR
        )
    print(f"sends events since {begin:%Y-%m-%dT%H:%M:%SZ}")
    return 0


def enable(args: argparse.Namespace) -> int:
    with use_environment(args):
        operate_webhooks.enable_webhook(args.id, operator_id=OPERATOR)
    return 0
