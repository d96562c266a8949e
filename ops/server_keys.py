"""``server-keys``: list, make or end keys of servers."""

import argparse
import json

from cli.output import new_table, wide_console
from ops.dead_letters import OPERATOR
from ops.environment import use_environment
from plaza.people.auth import operate_server_keys


def list_keys(args: argparse.Namespace) -> int:
    """Print all keys, without their secrets."""
    with use_environment(args):
        keys = operate_server_keys.list_server_keys()
    if getattr(args, "json", False):
        print(json.dumps(keys, indent=2))
        return 0
    columns = ("key_id", "name", "scopes", "requests_per_s", "created_at", "used_at", "ended_at")
    table = new_table(*columns, left=columns)
    for key in keys:
        cells = {**key, "scopes": ",".join(key["scopes"])}
        table.add_row(*("" if cells[name] is None else str(cells[name]) for name in columns))
    wide_console().print(table)
    return 0


def make_key(args: argparse.Namespace) -> int:
    """Make a key and print it, this once."""
    with use_environment(args):
        _, key = operate_server_keys.make_server_key(
            args.name, args.scopes, args.requests_per_s, operator_id=OPERATOR
        )
    print(key)
    return 0


def end_key(args: argparse.Namespace) -> int:
    """End a key."""
    with use_environment(args):
        operate_server_keys.end_server_key(args.key_id, operator_id=OPERATOR)
    print(f"ended {args.key_id}; processes accept it for a minute more")
    return 0
