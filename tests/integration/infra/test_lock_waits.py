"""Locked rows and dead clients are not outages of MySQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from cli.paths import LAYER, ROOT
from local.stack.servers import connect_mysql
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import LockTimeout
from plaza.infra.queues.retries import MAX_BUSY_DELAY_S, Action, Delivery, RetryPolicy, decide
from tests.support.plaza import World
from tests.support.stores import wait_for

SetUp = Callable[..., None]

LOCK_A_ROW = """
from plaza.infra.mysql import mysql

def lock(cursor):
    cursor.execute("SELECT id FROM log_barrier WHERE id = 1 FOR UPDATE")
    print("locked", flush=True)
    input()

mysql.run_in_transaction(lock)
"""


@contextmanager
def locked_row(mysql_url: str) -> Iterator[None]:
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("SELECT id FROM log_barrier WHERE id = 1 FOR UPDATE")
        yield
        other.rollback()


def touch() -> None:
    mysql.write("UPDATE log_barrier SET id = id WHERE id = 1")


def touch_in_a_transaction() -> None:
    mysql.run_in_transaction(
        lambda cursor: cursor.execute("UPDATE log_barrier SET id = id WHERE id = 1")
    )


@pytest.mark.parametrize("statement", [touch, touch_in_a_transaction])
def test_a_locked_row_is_not_an_outage_of_mysql(
    plaza: World, set_up: SetUp, mysql_url: str, statement: Callable[[], None]
) -> None:
    set_up(mysql_statement_timeout_s=2)  # as in API functions
    with locked_row(mysql_url):
        with pytest.raises(LockTimeout):
            statement()
        assert mysql.MYSQL.breaker.fail_counter == 0
        assert mysql.fetch_all("SELECT 1") == [(1,)], "other statements work"
    statement()


@pytest.mark.parametrize(("timeout_s", "lock_wait_s"), [(2, 1), (10, 5), (280, 5)])
def test_a_lock_wait_ends_before_the_statement_does(
    plaza: World, set_up: SetUp, timeout_s: int, lock_wait_s: int
) -> None:
    set_up(mysql_statement_timeout_s=timeout_s)
    names = ("innodb_lock_wait_timeout", "lock_wait_timeout")
    for name in names:
        assert mysql.fetch_all(f"SELECT @@SESSION.{name}") == [(lock_wait_s,)]


def test_a_message_that_waited_for_a_row_spends_no_attempt() -> None:
    """Given consumers that wait for one hot target, none of them spends its attempts."""
    delivery = Delivery(5, 0, 0, 0, is_resent=False)
    decision = decide(delivery, LockTimeout("the rows are locked"), RetryPolicy(), now_ms=1_000)
    assert (decision.action, decision.attempts) == (Action.SEND_AGAIN, 0)
    assert 1 <= decision.delay_s <= MAX_BUSY_DELAY_S


def test_a_row_that_is_unlocked_in_time_is_written(
    plaza: World, set_up: SetUp, mysql_url: str
) -> None:
    """Given a row that is locked for longer than one lock wait, a write of it succeeds."""
    set_up(mysql_statement_timeout_s=2)
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        cursor.execute("SET SESSION wait_timeout = 1")
        other.begin()
        cursor.execute("SELECT id FROM log_barrier WHERE id = 1 FOR UPDATE")
        touch()  # the server ends the other session meanwhile, and its transaction


def test_the_rows_of_a_dead_client_are_unlocked_soon(
    plaza: World, set_up: SetUp, mysql_url: str
) -> None:
    """Given a process that is stopped within a transaction and keeps its connection open."""
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{LAYER}", "PLAZA_MYSQL_IDLE_TIMEOUT_S": "2"}
    process = subprocess.Popen(
        [sys.executable, "-c", LOCK_A_ROW],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline() == "locked\n"
        process.send_signal(signal.SIGSTOP)
        began_s = time.monotonic()
        set_up(mysql_statement_timeout_s=2)

        def is_free() -> bool:
            try:
                touch_in_a_transaction()
            except LockTimeout:
                return False
            return True

        wait_for(is_free, "its rows are unlocked")
        assert time.monotonic() - began_s < 10
    finally:
        process.kill()
        process.communicate()


def test_a_connection_that_idled_for_too_long_is_replaced(plaza: World, set_up: SetUp) -> None:
    """Given a session that the server has closed, a transaction opens another one."""
    set_up(mysql_idle_timeout_s=2)
    assert mysql.fetch_all("SELECT @@SESSION.wait_timeout") == [(2,)]
    [(session,)] = mysql.fetch_all("SELECT CONNECTION_ID()")
    with connect_mysql(os.environ["PLAZA_MYSQL_URL"]) as other, other.cursor() as cursor:

        def has_ended() -> bool:
            cursor.execute("SELECT id FROM information_schema.processlist")
            return session not in [row[0] for row in cursor.fetchall()]

        wait_for(has_ended, "the server closes it")
    touch_in_a_transaction()
    assert mysql.MYSQL.breaker.fail_counter == 0
    assert mysql.fetch_all("SELECT CONNECTION_ID()") != [(session,)]
