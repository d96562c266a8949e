"""A stack for tests, with the demo's first post."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from local.stack.servers import connect_mysql
from local.stack.stack import Stack

AUTHOR = 6_000_000
DEMO_POST = 9_000_001  # which the examples of the documents use
PARAMETERS = {
    "Kinds": os.environ["PLAZA_KINDS"],  # of tests
    "TargetTypes": os.environ["PLAZA_TARGET_TYPES"],
    "ResendAfter": "5",
    "ResendOrdersAfter": "20",
    "AnnounceDelay": "2",
}


@contextmanager
def run_stack(directory: Path) -> Iterator[Stack]:
    """Run a stack with the demo's first post; its processes are stopped even when it fails to
    start."""
    stack = Stack(directory)
    try:
        stack.up(for_tests=True, parameters=PARAMETERS)
        # Before the first request, because Plaza caches for 30 s that content does not exist.
        add_content(stack, "post", DEMO_POST)
        yield stack
    finally:
        stack.down()


def add_content(stack: Stack, content_type: str, content_id: int, deleted: bool = False) -> None:
    """Create content without reactions, and count it."""
    with connect_mysql(stack.mysql_url) as connection, connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO content (content_type, content_id, author_id, title, body, deleted_at)"
            " VALUES (%s, %s, %s, 'The harbour', 'At dawn.', IF(%s, NOW(6), NULL))",
            (content_type, content_id, AUTHOR, deleted),
        )
        if content_type == "post" and not deleted:
            cursor.execute(
                "INSERT INTO user_counter (user_id, posts_total, version) VALUES (%s, 1, 1)"
                " ON DUPLICATE KEY UPDATE posts_total = posts_total + 1, version = version + 1",
                (AUTHOR,),
            )
