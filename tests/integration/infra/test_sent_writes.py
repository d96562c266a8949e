"""Statements that wait for the next one, and packets of several: their errors end the transaction
as any other's. Each test runs with packets, and without them as in functions that answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from pymysql.cursors import Cursor
from pymysql.err import IntegrityError, OperationalError

from local.stack.servers import connect_mysql
from plaza.core import counters
from plaza.infra.mysql import driver, mysql
from plaza.infra.mysql.driver import SharedTlsConnection
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.runtime.process import reset_process
from tests.support.plaza import World
from tests.support.stores import wait_for

pytestmark = pytest.mark.usefixtures("packets")
COUNT = "SELECT COUNT(*) FROM user"
INSERT = "INSERT INTO user (id, nickname) VALUES ({}, 'ada')"


@pytest.fixture(params=["1", "0"], ids=["packets", "statements"])
def packets(
    plaza: World, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[bool]:
    monkeypatch.setenv("PLAZA_MYSQL_PACKETS", request.param)
    reset_process()
    yield request.param == "1"
    reset_process()


class Sent(list[bytes]):
    """The packets that this process sends to MySQL."""


@pytest.fixture
def sent(packets: bool, monkeypatch: pytest.MonkeyPatch) -> Sent:
    recorded, execute = Sent(), SharedTlsConnection._execute_command  # type: ignore[attr-defined]

    def record_and_execute(connection: object, command: int, sql: str | bytes) -> None:
        recorded.append(sql if isinstance(sql, bytes) else sql.encode())
        execute(connection, command, sql)

    mysql.fetch_all(COUNT)  # so that the connection is open
    monkeypatch.setattr(SharedTlsConnection, "_execute_command", record_and_execute)
    return recorded


@pytest.mark.parametrize(
    "then",
    [
        lambda cursor: None,
        lambda cursor: cursor.execute(COUNT),
        lambda cursor: mysql.send(cursor, INSERT.format(9)),
        lambda cursor: counters.try_lock_target(cursor, ("post", 5, "like")),
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


def test_a_transaction_of_reads_and_writes_is_two_packets(packets: bool, sent: Sent) -> None:
    def work(cursor: Cursor) -> object:
        counted = mysql.read_all(cursor, [COUNT, "SELECT 7, 8"])
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, INSERT.format(8))
        return counted

    assert mysql.run_in_transaction(work) == [((0,),), ((7, 8),)]
    assert len(sent) == (2 if packets else 6)
    assert mysql.fetch_all(COUNT) == [(2,)]


def test_each_select_of_a_packet_reads_the_writes_before_it(plaza: World) -> None:
    def work(cursor: Cursor) -> object:
        mysql.send(cursor, INSERT.format(7))
        before = mysql.read_all(cursor, [COUNT])
        mysql.send(cursor, INSERT.format(8))
        return [*before, *mysql.read_all(cursor, [COUNT, COUNT])]

    assert mysql.run_in_transaction(work) == [((1,),), ((2,),), ((2,),)]


def test_reading_nothing_sends_nothing(sent: Sent) -> None:
    def work(cursor: Cursor) -> object:
        return mysql.read_all(cursor, [])

    assert mysql.run_in_transaction(work) == []
    assert sum(b"SELECT" in packet for packet in sent) == 0


@pytest.mark.parametrize("wrong", range(4))
def test_an_error_of_any_statement_of_a_packet_names_it_and_rolls_back(
    plaza: World, wrong: int
) -> None:
    writes = [INSERT.format(number) for number in range(4)]
    writes[wrong] = "INSERT INTO user (id, nickname, missing) VALUES (9, 'a secret')"

    def work(cursor: Cursor) -> None:
        for write in writes:
            mysql.send(cursor, write)

    with pytest.raises(OperationalError) as caught:
        mysql.run_in_transaction(work)
    [note] = caught.value.__notes__
    assert note == f"INSERT INTO user (id, nickname, missing) VALUES (?, ?), {wrong + 2} of 6"
    assert note in driver.describe(caught.value)
    assert mysql.fetch_all(COUNT) == [(0,)]


def test_no_statement_after_an_error_runs(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, "COMMIT")
        mysql.send(cursor, INSERT.format(8))

    with pytest.raises(IntegrityError):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(0,)]


def test_a_large_packet_is_split(
    packets: bool, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    [[allowed]] = mysql.fetch_all("SELECT @@max_allowed_packet")
    connection = mysql._connect()
    assert connection.max_packet_bytes == (allowed // 4 if packets else 0)
    monkeypatch.setattr(connection, "max_packet_bytes", 300 if packets else 0)
    sent.clear()

    def work(cursor: Cursor) -> None:
        for number in range(20):
            mysql.send(cursor, INSERT.format(number))
        mysql.send(cursor, f"{INSERT.format(20)} /* {'x' * 400} */")
        mysql.send(cursor, INSERT.format(21))

    mysql.run_in_transaction(work)
    assert all(len(packet) <= 300 for packet in sent if b"\n;\n" in packet)
    assert len(sent) == (6 if packets else 24)
    assert mysql.fetch_all(COUNT) == [(22,)]


def test_a_comment_at_the_end_of_a_statement_hides_nothing(plaza: World) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, f"{INSERT.format(7)} -- the first one")
        mysql.send(cursor, f"{INSERT.format(8)} # the second one")

    mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(2,)]


def test_a_deadlock_in_a_packet_repeats_the_whole_transaction(plaza: World, mysql_url: str) -> None:
    for number in (1, 2):
        mysql.write(INSERT.format(number))
    runs: list[int] = []

    def work(cursor: Cursor) -> None:
        runs.append(1)
        mysql.send(cursor, "UPDATE user SET nickname = 'fay' WHERE id = 1")
        mysql.send(cursor, "UPDATE user SET nickname = 'fay' WHERE id = 2")

    with (
        connect_mysql(mysql_url) as other,
        other.cursor() as of_other,
        ThreadPoolExecutor() as pool,
    ):
        other.begin()
        of_other.execute("UPDATE user SET nickname = 'bob' WHERE id = 2")
        for number in range(10, 60):  # more work to lose: the server ends the other transaction
            of_other.execute(INSERT.format(number))
        packet = pool.submit(mysql.run_in_transaction, work)
        wait_for(lambda: count_lock_waits(mysql_url) == 1, "the packet waits for the other one")
        of_other.execute("UPDATE user SET nickname = 'bob' WHERE id = 1")
        other.rollback()
        packet.result()
    assert len(runs) == 2
    assert mysql.fetch_all("SELECT DISTINCT nickname FROM user") == [("fay",)]


def count_lock_waits(mysql_url: str) -> int:
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        [(_, waiting)] = cursor.fetchall()
        return int(waiting)


def test_an_outage_in_the_middle_of_a_packet_is_an_outage(plaza: World, mysql_url: str) -> None:
    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        mysql.send(cursor, "KILL CONNECTION_ID()")
        mysql.send(cursor, INSERT.format(8))

    with pytest.raises(MysqlDown):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all(COUNT) == [(0,)]


def test_a_statement_that_only_waits_is_dropped_by_a_rollback(plaza: World) -> None:
    """The isolation level of the connection is set when it opens, whatever its first work does."""
    mysql.forget_connection()

    def work(cursor: Cursor) -> None:
        mysql.send(cursor, INSERT.format(7))
        raise LookupError

    with pytest.raises(LookupError):
        mysql.run_in_transaction(work)
    [(_, isolation)] = mysql.fetch_all("SHOW SESSION VARIABLES LIKE 't%%_isolation'")
    assert isolation == "READ-COMMITTED"
