"""``token``: open sessions for users, who are created when missing."""

import argparse
import re
from collections.abc import Sequence
from contextlib import closing

from cli.paths import CommandError
from local.stack.servers import connect_mysql
from local.stack.stack import Stack, explain_outage, use_stack

BATCH = 1000


def main(args: argparse.Namespace) -> int:
    """Print one token a line, in the order of the user ids."""
    stack = Stack.load(args.dir, require_all=False)
    with explain_outage(stack):
        for token in open_sessions(stack, parse_users(args.user), args.role):
            print(token)
    return 0


def parse_users(text: str) -> list[int]:
    """Return the user ids of ``7`` or ``7-20``. Raises CommandError."""
    match = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
    if not 0 < first <= last < first + 1_000_000:
        raise CommandError(f"--user takes an id (7) or a range (7-20), not {text}")
    return list(range(first, last + 1))


def open_sessions(stack: Stack, user_ids: Sequence[int], role: str = "user") -> list[str]:
    """Return a token for each user, in order. Missing users are created.

    A ``role`` other than ``user`` is also given to existing users.
    """
    create_users(stack.mysql_url, user_ids, role)
    with use_stack(stack):
        from plaza.people.auth import new_session

        return [
            token
            for start in range(0, len(user_ids), BATCH)
            for token in new_session.open_sessions(user_ids[start : start + BATCH])
        ]


def create_users(mysql_url: str, user_ids: Sequence[int], role: str = "user") -> None:
    """Insert missing users. A ``role`` other than ``user`` is also given to existing users."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        for start in range(0, len(user_ids), BATCH):
            cursor.executemany(
                "INSERT INTO user (id, nickname, role) VALUES (%s, %s, %s)"
                " ON DUPLICATE KEY UPDATE role = IF(VALUES(role) = 'user', role, VALUES(role))",
                [(id_, f"user {id_}", role) for id_ in user_ids[start : start + BATCH]],
            )
