"""The log barrier: shared by transactions that append to the log, exclusive for its readers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor
from pymysql.err import OperationalError

from local.stack.servers import connect_mysql
from plaza.core.reactions import mysql_log, persist, term_guard
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import LockTimeout
from plaza.infra.redis.masters import Master
from tests.support.consumers import make_event
from tests.support.plaza import World
from tests.support.stores import POST, counter


@pytest.fixture
def other(plaza: World, mysql_url: str) -> Iterator[Connection[Cursor]]:
    """A connection of another client, in a transaction."""
    with closing(connect_mysql(mysql_url)) as connection:
        connection.query("SET SESSION innodb_lock_wait_timeout = 1")
        connection.begin()
        yield connection


def is_locked(other: Connection[Cursor], lock: str = "FOR UPDATE NOWAIT") -> bool:
    """Return whether another client does not get the lock of the log."""
    with other.cursor() as cursor:
        try:
            cursor.execute(f"SELECT id FROM log_barrier WHERE id = 1 {lock}")
        except OperationalError:
            return True
    other.rollback()
    return False


def test_a_transaction_that_appends_to_the_log_shares_the_lock(other: Connection[Cursor]) -> None:
    def work(cursor: Cursor) -> tuple[bool, bool]:
        mysql.read_all(cursor, [mysql_log.SHARE_LOG_LOCK])
        return is_locked(other), is_locked(other, "LOCK IN SHARE MODE")

    assert mysql.run_in_transaction(work) == (True, False)
    assert not is_locked(other)


def test_a_batch_holds_the_lock_while_it_is_logged(
    plaza: World, other: Connection[Cursor], monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    append_log, locked = mysql_log.append_log, []

    def append(*args: Any) -> None:
        locked.append(is_locked(other))
        append_log(*args)

    monkeypatch.setattr(mysql_log, "append_log", append)
    persist.save([make_event(7, at=1)])
    assert (locked, counter()) == ([True], 1)


def test_terms_are_not_replaced_while_a_transaction_holds_the_barrier(
    other: Connection[Cursor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_log, "LOCK_TIMEOUT_S", 1)
    masters = {"{0": Master(0, "a", "")}
    with other.cursor() as cursor:
        cursor.execute("SELECT id FROM log_barrier WHERE id = 1 LOCK IN SHARE MODE")
    with pytest.raises(LockTimeout):
        term_guard.store_terms(masters)
    assert mysql.fetch_all("SELECT term FROM redis_term") == []
    other.rollback()
    term_guard.store_terms(masters)
    assert mysql.fetch_all("SELECT term FROM redis_term") == [("a",)]
