"""Statements whose replies are read later: their errors end the transaction as any other's."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pymysql.cursors import Cursor
from pymysql.err import IntegrityError, OperationalError

from plaza import counters
from plaza.infra.mysql import mysql
from tests.support.plaza import World

COUNT = "SELECT COUNT(*) FROM user"
INSERT = "INSERT INTO user (id, nickname) VALUES ({}, 'ada')"


@pytest.mark.parametrize(
    "then",
    [
        lambda cursor: None,
        lambda cursor: cursor.execute(COUNT),
        lambda cursor: mysql.send(cursor, INSERT.format(9)),
        lambda cursor: counters.try_lock_content(cursor, ("post", 5)),
    ],
    ids=["commit", "statement", "write", "lock"],
)
def test_an_error_of_a_sent_write_rolls_back(
    plaza: World, then: Callable[[Cursor], object]
) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, INSERT.format(7))
        then(cursor)

    with pytest.raises(IntegrityError):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(0,)]


def test_an_error_after_a_sent_write_rolls_back(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        raise LookupError

    with pytest.raises(LookupError):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(0,)]


def test_a_select_after_sent_writes_reads_their_rows(plaza: World) -> None:
    def work(cursor: Cursor) -> object:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, INSERT.format(8))
        cursor.execute(COUNT)
        return cursor.fetchall()

    assert mysql.run_in_transaction(work) == ((2,),)
    assert mysql.fetch_all(COUNT) == [(2,)]


def test_the_rows_of_a_sent_select_are_received_later(plaza: World) -> None:
    def work(cursor: Cursor) -> object:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, COUNT)
        return mysql.receive(cursor)

    assert mysql.run_in_transaction(work) == ((1,),)


def test_an_error_of_a_sent_select_rolls_back(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, "SELECT missing FROM user")
        mysql.receive(cursor)

    with pytest.raises(OperationalError):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(0,)]
