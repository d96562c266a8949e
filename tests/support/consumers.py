"""Consumers in processes of their own, synchronized by locked rows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from cli.paths import LAYER, ROOT
from local.stack.servers import connect_mysql
from plaza.core.reactions import LIKE, Kind, Target
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.mysql import mysql
from tests.support.stores import POST, wait_for

BASE_US = 1_700_000_000_000_000


def make_event(
    actor: int, on: bool = True, at: int = 0, target: Target = POST, kind: Kind = LIKE
) -> ReactionEvent:
    """Return an event of the version ``BASE_US + at``."""
    return ReactionEvent(ReactionKey(*target, kind.name, actor), on, BASE_US + at)


def statements() -> int:
    """Return the number of statements of this connection; reading it is one more."""
    [(_, count)] = mysql.fetch_all("SHOW SESSION STATUS LIKE 'Questions'")
    return int(count)


@contextmanager
def working(what: str, batches: Sequence[Sequence[str]]) -> Iterator[subprocess.Popen[str]]:
    """Start batches_process with ``batches`` of messages; it waits for ``go``."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{LAYER}"}
    command = [sys.executable, "-m", "tests.support.batches_process", what]
    process = subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdin
        assert process.stdout
        for batch in batches:
            process.stdin.writelines(f"{body}\n" for body in [*batch, ""])
        process.stdin.write("ready?\n")
        process.stdin.flush()
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def consumer(
    batches: Sequence[Sequence[ReactionEvent]],
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Start a consumer of reactions in its own process; it waits for ``go``."""
    return working(
        "reactions",
        [[REACTIONS.encode(event) for event in batch] for batch in batches],
    )


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("go\n")
    process.stdin.flush()


def end(process: subprocess.Popen[str]) -> None:
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1]) == (0, "done"), out


@contextmanager
def lock_counter(
    mysql_url: str, target: Target, kind: str = LIKE.name
) -> Iterator[Callable[[], int]]:
    """Lock a counter of ``target``; yield a function that counts waiting transactions."""
    yield from _lock_row(
        mysql_url, "counter", target_type=target.type, target_id=target.id, kind=kind
    )


@contextmanager
def insert_counter(mysql_url: str, target: Target, kind: str) -> Iterator[Callable[[], int]]:
    """Insert a counter of ``target`` until the end of the block, uncommitted; yield a function
    that counts waiting transactions."""
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute(
            "INSERT INTO counter (target_type, target_id, kind) VALUES (%s, %s, %s)",
            (*target, kind),
        )
        yield _count_waiting
        other.rollback()


@contextmanager
def lock_user_counter(mysql_url: str, user_id: int) -> Iterator[Callable[[], int]]:
    """Lock the counters of a user; yield a function that counts waiting transactions."""
    yield from _lock_row(mysql_url, "user_counter", user_id=user_id)


def _lock_row(mysql_url: str, table: str, **key: str | int) -> Iterator[Callable[[], int]]:
    names, marks = ", ".join(key), ", ".join(["%s"] * len(key))
    mysql.write(f"INSERT IGNORE INTO {table} ({names}) VALUES ({marks})", list(key.values()))
    where = " AND ".join(f"{name} = %s" for name in key)
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute(f"SELECT 1 FROM {table} WHERE {where} FOR UPDATE", list(key.values()))

        yield _count_waiting
        other.rollback()


def _count_waiting() -> int:
    rows = mysql.fetch_all("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
    return int(rows[0][1])


def save_at_once(
    lock: AbstractContextManager[Callable[[], int]], *batches: Sequence[ReactionEvent]
) -> None:
    """Run a consumer for each batch, all at once, and wait for their end.

    They start one after the other, each until it waits for ``lock`` or for a consumer before it;
    then the lock is released. So each run has the same interleaving.
    """
    with ExitStack() as stack:
        processes = [stack.enter_context(consumer([batch])) for batch in batches]
        with lock as waiting:
            for number, process in enumerate(processes, 1):
                go(process)
                wait_for(lambda number=number: waiting() == number, "the consumer waits")  # type: ignore[misc]
        for process in processes:
            end(process)


def deadlocks() -> int:
    """Return the number of deadlocks since the server started."""
    [(count,)] = mysql.fetch_all(
        "SELECT COUNT FROM information_schema.innodb_metrics WHERE name = 'lock_deadlocks'"
    )
    return int(count)
