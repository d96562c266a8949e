"""The stack of the end-to-end tests, which starts while they are collected.

It is a process, ``python -m tests.e2e.stack_process DIRECTORY``, which ends the stack when it gets
SIGTERM or when the process that started it ends. All processes of the tests use it.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from cli.paths import ROOT, add_layer_to_path
from local.stack.processes import Process, start_process, stop_process, wait_until
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

AUTHOR = 6_000_000
DEMO_POST = 9_000_001  # which the examples of the documents use
SHORT_WAITS = {"ResendAfter": "5", "ResendOrdersAfter": "20", "AnnounceDelay": "2"}
NAME = "stack"
MAX_START_S = 300
STOP_GRACE_S = 60


def start_ahead(directory: Path) -> Process:
    """Begin to start a stack that ``attach`` finds in ``directory``. Returns its process."""
    command: list[str | Path] = [sys.executable, "-m", __name__, directory / NAME]
    process = start_process(NAME, command, log=directory / f"{NAME}.log", cwd=ROOT)
    (directory / f"{NAME}.json").write_text(json.dumps(asdict(process)))
    return process


def stop_ahead(process: Process) -> None:
    """End the process and its stack."""
    if (result := process.find()) is not None:
        result.terminate()
    stop_process(process, grace_s=STOP_GRACE_S)


def attach(directory: Path) -> Stack | None:
    """Return the stack of ``directory`` when it runs; None without one, or if it failed to
    start."""
    try:
        process = Process(**json.loads((directory / f"{NAME}.json").read_text()))
    except FileNotFoundError:
        return None
    ready = directory / f"{NAME}.ready"
    wait_until(lambda: ready.exists() or not process.is_running(), MAX_START_S, step_s=0.2)
    return Stack.load(directory / NAME) if ready.exists() and process.is_running() else None


@contextmanager
def run_stack(directory: Path) -> Iterator[Stack]:
    """Run a stack with the demo's first post; its processes are stopped even when it fails to
    start."""
    stack = Stack(directory)
    try:
        stack.up(for_tests=True, parameters=SHORT_WAITS)
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


def main() -> None:
    """Run a stack until SIGTERM."""
    add_layer_to_path()
    signal.signal(signal.SIGTERM, _interrupt)
    directory = Path(sys.argv[1])
    with contextlib.suppress(KeyboardInterrupt), run_stack(directory):
        directory.with_suffix(".ready").touch()
        while True:
            time.sleep(1)


def _interrupt(signum: int, frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the end is not interrupted
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
