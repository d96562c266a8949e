"""Each error code of ``driver.MEANINGS``, as MariaDB sends it, and a writer that was demoted."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial

import pytest
from pymysql.connections import Connection
from pymysql.constants import CR, ER
from pymysql.cursors import Cursor
from pymysqlreplication import BinLogStreamReader

from local.stack.servers import Server, connect_mysql, prepare_mysql, run_server
from plaza.infra.mysql import binlog, driver, mysql
from plaza.infra.mysql.driver import MEANINGS
from plaza.infra.mysql.mysql import LockTimeout, MysqlDown
from plaza.infra.runtime.settings import settings
from tests.support.plaza import World, forget
from tests.support.servers import MYSQLD
from tests.support.stores import wait_for

READ_FIRST = (binlog,)  # sets the level of the logger of pymysqlreplication

pytestmark = pytest.mark.skipif(MYSQLD is not None, reason="they are errors of MariaDB")

NOT_SENT = {
    "MySQL": (3012, 3032, 3572, 4031, ER.QUERY_TIMEOUT),
    "its host cache is off (skip-name-resolve)": (ER.HOST_IS_BLOCKED,),
    "a machine out of memory, threads or disk": (
        ER.DISK_FULL, ER.OUTOFMEMORY, ER.OUT_OF_RESOURCES, ER.CANT_CREATE_THREAD,
        ER.LOCK_TABLE_FULL,
    ),
    "a server that starts with innodb_read_only": (1836,),
    "a server that ends connections; mostly it closes them without a word": (
        ER.SERVER_SHUTDOWN, ER.ABORTING_CONNECTION, 1927,
    ),
}  # fmt: skip
"""Who sends these: not the MariaDB of the tests."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A MariaDB of this file, whose limits may be changed."""
    directory = tmp_path_factory.mktemp("errors") / "mysql"
    prepared = prepare_mysql(directory, for_tests=True)
    with (directory / "my.cnf").open("a") as file:
        file.write("max-user-connections = 60\nskip-ssl\n")
    with run_server(prepared):
        with connect_mysql(prepared.url) as connection, connection.cursor() as cursor:
            cursor.execute(
                """
                CREATE TABLE item (
                    id INT NOT NULL PRIMARY KEY,
                    value TINYINT NOT NULL,
                    name CHAR(3) NOT NULL DEFAULT '',
                    KEY by_value (value)
                )
                """
            )
            cursor.execute("INSERT INTO item (id, value) VALUES (1, 0), (2, 0)")
            cursor.execute(
                """
                CREATE TABLE parted (id INT NOT NULL PRIMARY KEY)
                PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (9))
                """
            )
            for user in ("bound", "single", "follower"):
                cursor.execute(f"CREATE USER {user}@'127.0.0.1' IDENTIFIED BY 'one'")
                cursor.execute(f"GRANT SELECT, INSERT, UPDATE ON plaza.* TO {user}@'127.0.0.1'")
            cursor.execute("ALTER USER single@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1")
            cursor.execute(
                "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO follower@'127.0.0.1'"
            )
        yield prepared


class Case:
    """Two sessions of a server, which provoke errors in each other."""

    def __init__(self, server: Server, ends: ExitStack) -> None:
        self.server = server
        self._ends = ends
        self.first, self.second = self.connect(), self.connect()

    def connect(self, user: str = "", password: str = "one", port: int = 0) -> Cursor:
        url = self.server.url
        if user or port:
            url = f"mysql://{user}:{password}@127.0.0.1:{port or self.server.port}/plaza"
        connection = connect_mysql(url)
        self._ends.callback(close, connection)
        connection.query(
            "SET SESSION sql_mode = 'STRICT_ALL_TABLES', innodb_lock_wait_timeout = 1,"
            " lock_wait_timeout = 1"
        )
        connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        return connection.cursor()

    def run(self, *statements: str) -> None:
        for statement in statements:
            self.first.execute(statement)

    def run_second(self, *statements: str) -> None:
        for statement in statements:
            self.second.execute(statement)

    def set_global(self, name: str, value: int) -> None:
        [(before,)] = fetch(self.second, f"SELECT @@GLOBAL.{name}")
        self.second.execute(f"SET GLOBAL {name} = {value}")
        self._ends.callback(lambda: self.second.execute(f"SET GLOBAL {name} = {before}"))

    def session(self) -> int:
        return int(self.first.connection.thread_id())  # type: ignore[no-untyped-call]


def close(connection: Connection[Cursor]) -> None:
    if connection.open:
        connection.close()


def fetch(cursor: Cursor, statement: str) -> list[mysql.Row]:
    cursor.execute(statement)
    return list(cursor.fetchall())


def require_tls(case: Case) -> None:
    driver.SharedTlsConnection(
        host="127.0.0.1", port=case.server.port, user="bound", password="one", ssl={"ca": None}
    )


def kill_another(case: Case) -> None:
    case.connect("bound").execute(f"KILL {case.session()}")


def read_transactions_of_others(case: Case) -> None:
    case.connect("bound").execute("SELECT * FROM information_schema.innodb_trx")


def connect_often(case: Case) -> None:
    case.set_global("max_connections", 10)
    for _ in range(12):
        case.connect()


def connect_beyond_the_limit_of_all(case: Case) -> None:
    case.set_global("max_user_connections", 1)
    for _ in range(2):
        case.connect("bound")


def connect_beyond_the_limit_of_one(case: Case) -> None:
    for _ in range(2):
        case.connect("single")


def fill_table(case: Case) -> None:
    case.run(
        "SET SESSION max_heap_table_size = 16384",
        "CREATE TEMPORARY TABLE small (name CHAR(200)) ENGINE = MEMORY",
    )
    while True:
        case.run("INSERT INTO small VALUES ('a')")


def read_a_purged_log(case: Case) -> None:
    """Ask for the binlog as a replica does."""
    stream = BinLogStreamReader(
        connection_settings={
            "host": "127.0.0.1", "port": case.server.port, "user": "follower", "passwd": "one",
        },
        server_id=77, log_file="binlog.999999", log_pos=4, resume_stream=True,
    )  # fmt: skip
    with closing(stream):
        next(iter(stream))


def explain_nothing(case: Case) -> None:
    [(session,)] = fetch(case.second, "SELECT CONNECTION_ID()")
    case.run(f"EXPLAIN FOR CONNECTION {session}")


def interrupt(case: Case, verb: str) -> None:
    """End a statement that runs."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(case.run, "SELECT COUNT(*) FROM item WHERE SLEEP(20) = 0")

        def is_running() -> bool:
            return bool(
                fetch(
                    case.second,
                    "SELECT 1 FROM information_schema.processlist"
                    f" WHERE id = {case.session()} AND state = 'User sleep'",
                )
            )

        wait_for(is_running, "the statement runs")
        case.run_second(f"KILL {verb} {case.session()}")
        running.result()


def deadlock(case: Case) -> None:
    lock = "SELECT * FROM item WHERE id = {} FOR UPDATE"
    case.run("BEGIN", lock.format(1))
    case.run_second("BEGIN", lock.format(2))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(case.run, lock.format(2))
        case.run_second(lock.format(1))
        waiting.result()


def change_what_was_read(case: Case) -> None:
    if not fetch(case.first, "SHOW VARIABLES LIKE 'innodb_snapshot_isolation'"):
        pytest.skip("this MariaDB has no innodb_snapshot_isolation")
    case.run("SET SESSION innodb_snapshot_isolation = ON")
    case.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    case.run("BEGIN", "SELECT * FROM item")
    case.run_second("UPDATE item SET value = value + 1 WHERE id = 1")
    case.run("SELECT * FROM item WHERE id = 1 FOR UPDATE")


def alter_what_is_read(case: Case) -> None:
    case.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    case.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
    case.run_second("ALTER TABLE item FORCE, ALGORITHM = COPY")
    case.run("SELECT * FROM item")


def write_to_a_replica(case: Case) -> None:
    case.set_global("read_only", 1)
    case.connect("bound").execute("UPDATE item SET value = 3")


def meet_lock(statement: str) -> Callable[[Case], None]:
    def provoke(case: Case) -> None:
        case.run_second("BEGIN", "SELECT * FROM item WHERE id = 1 FOR UPDATE")
        case.run(statement)

    return provoke


def use_closed(case: Case) -> None:
    case.first.connection.close()
    case.run("DO 1")


def shut_socket(case: Case) -> None:
    case.first.connection._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
    case.run("DO 1")


def connect(user: str, password: str = "one", port: int = 0) -> Callable[[Case], None]:
    def provoke(case: Case) -> None:
        case.connect(user, password, port)

    return provoke


def run(*statements: str) -> Callable[[Case], None]:
    return lambda case: case.run(*statements)


PROVOKED: list[tuple[int, Callable[[Case], None]]] = [
    (0, use_closed),
    (CR.CR_CONN_HOST_ERROR, connect("bound", port=1)),
    (CR.CR_SERVER_GONE_ERROR, shut_socket),
    (CR.CR_SSL_CONNECTION_ERROR, require_tls),
    (ER.ACCESS_DENIED_ERROR, connect("bound", "wrong")),
    (ER.KILL_DENIED_ERROR, kill_another),
    (ER.SPECIFIC_ACCESS_DENIED_ERROR, read_transactions_of_others),
    (ER.CON_COUNT_ERROR, connect_often),
    (ER.TOO_MANY_USER_CONNECTIONS, connect_beyond_the_limit_of_all),
    (ER.USER_LIMIT_REACHED, connect_beyond_the_limit_of_one),
    (CR.CR_SERVER_LOST, partial(interrupt, verb="CONNECTION")),
    (ER.QUERY_INTERRUPTED, partial(interrupt, verb="QUERY")),
    (
        ER.STATEMENT_TIMEOUT,
        run("SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(20) FROM item"),
    ),
    (ER.RECORD_FILE_FULL, fill_table),
    (ER.OPTION_PREVENTS_STATEMENT, write_to_a_replica),
    (1792, run("SET SESSION TRANSACTION READ ONLY", "BEGIN", "UPDATE item SET value = 3")),
    (ER.LOCK_DEADLOCK, deadlock),
    (ER.LOCK_WAIT_TIMEOUT, meet_lock("UPDATE item SET value = 3")),
    (ER.LOCK_WAIT_TIMEOUT, meet_lock("SELECT * FROM item FOR UPDATE NOWAIT")),
    (ER.CHECKREAD, change_what_was_read),
    (ER.TABLE_DEF_CHANGED, alter_what_is_read),
    (ER.BAD_FIELD_ERROR, run("SELECT missing FROM item")),
    (ER.NO_SUCH_TABLE, run("SELECT * FROM missing")),
    (ER.BAD_NULL_ERROR, run("UPDATE item SET value = NULL")),
    (ER.DATA_TOO_LONG, run("UPDATE item SET name = 'long'")),
    (ER.WARN_DATA_OUT_OF_RANGE, run("UPDATE item SET value = 300")),
    (ER.NO_DEFAULT_FOR_FIELD, run("INSERT INTO item (id) VALUES (3)")),
    (ER.DUP_FIELDNAME, run("ALTER TABLE item ADD COLUMN name INT")),
    (ER.DUP_KEYNAME, run("ALTER TABLE item ADD KEY by_value (name)")),
    (ER.CANT_DROP_FIELD_OR_KEY, run("ALTER TABLE item DROP COLUMN missing")),
    (ER.MASTER_FATAL_ERROR_READING_BINLOG, read_a_purged_log),
    (1735, run("SELECT * FROM parted PARTITION (missing)")),
    (ER.NO_SUCH_THREAD, run("EXPLAIN FOR CONNECTION 1000000")),
    (1933, explain_nothing),
    (ER.SP_DOES_NOT_EXIST, run("CALL missing()")),
    (ER.PARSE_ERROR, run("SHOW ME")),
]


@pytest.mark.parametrize(
    ("code", "provoke"),
    PROVOKED,
    ids=[f"{number}-{code}" for number, (code, _) in enumerate(PROVOKED)],
)
def test_the_server_sends_the_code(
    server: Server, code: int, provoke: Callable[[Case], None]
) -> None:
    with ExitStack() as ends:
        case = Case(server, ends)
        with pytest.raises(driver.ERRORS) as raised:
            provoke(case)
        assert driver.code_of(raised.value) == code


def test_every_code_of_the_table_is_sent_or_has_a_reason() -> None:
    reasons = [code for codes in NOT_SENT.values() for code in codes]
    assert len(reasons) == len(set(reasons))
    assert {code for code, _ in PROVOKED} | set(reasons) == set(MEANINGS)
    assert not {code for code, _ in PROVOKED} & set(reasons)


# ---------------------------------------------------------------- what follows


def add_bound_user(name: str, password: str) -> str:
    """Add a user that read_only binds; return a URL with its login."""
    mysql.write("CREATE USER IF NOT EXISTS %s@'127.0.0.1' IDENTIFIED BY %s", (name, password))
    address = settings().mysql
    mysql.write(
        f"GRANT SELECT, INSERT, UPDATE ON `{address.database}`.* TO %s@'127.0.0.1'", (name,)
    )
    return f"mysql://{name}:{password}@{address.host}:{address.port}/{address.database}"


def test_a_writer_that_became_a_reader_is_down_until_it_may_write(
    plaza: World, monkeypatch: pytest.MonkeyPatch, mysql_url: str
) -> None:
    monkeypatch.setenv("PLAZA_MYSQL_URL", add_bound_user("bound", "one"))
    touch = "UPDATE log_barrier SET id = id WHERE id = 1"
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        forget()
        mysql.write(touch)
        cursor.execute("SET GLOBAL read_only = 1")
        try:
            for write in (
                mysql.write,
                lambda sql: mysql.run_in_transaction(lambda c: c.execute(sql)),
            ):
                [(before,)] = mysql.fetch_all("SELECT CONNECTION_ID()")
                with pytest.raises(MysqlDown):
                    write(touch)
                assert mysql.fetch_all("SELECT CONNECTION_ID()") != [(before,)]
            assert mysql.fetch_all("SELECT id FROM log_barrier WHERE id = 1") == [(1,)]
        finally:
            cursor.execute("SET GLOBAL read_only = 0")
            cursor.execute("DROP USER bound@'127.0.0.1'")
    monkeypatch.undo()
    forget()


def test_a_row_that_changed_before_it_was_locked_is_read_again(
    plaza: World, mysql_url: str
) -> None:
    """Given a statement that reads one row after it read another, which changed meanwhile."""
    attempts = []

    def work(cursor: Cursor) -> object:
        attempts.append(1)
        if len(attempts) < 3:
            cursor.execute("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020")
        cursor.execute("SELECT 1")
        return cursor.fetchone()

    assert mysql.run_in_transaction(work) == (1,)
    with pytest.raises(LockTimeout):
        mysql.write("SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = 1020")
    assert mysql.MYSQL.breaker.fail_counter == 0


def test_a_snapshot_of_a_table_that_was_altered_is_read_again(plaza: World, mysql_url: str) -> None:
    attempts = []

    def work(cursor: Cursor) -> object:
        attempts.append(1)
        mysql.flush(cursor)  # the snapshot begins
        if len(attempts) == 1:
            with connect_mysql(mysql_url) as other:
                other.query("ALTER TABLE log_barrier FORCE, ALGORITHM = COPY")
        cursor.execute("SELECT COUNT(*) FROM log_barrier")
        return cursor.fetchone()

    assert mysql.run_in_snapshot(work) is not None
    assert len(attempts) == 2


@pytest.mark.parametrize("dedicated", [False, True])
def test_a_session_is_strict_on_a_server_that_is_not(plaza: World, dedicated: bool) -> None:
    assert mysql.fetch_all("SELECT @@GLOBAL.sql_mode") == [("",)]
    if dedicated:
        with closing(mysql.connect_dedicated()) as connection, connection.cursor() as cursor:
            [(mode,)] = fetch(cursor, "SELECT @@SESSION.sql_mode")
    else:
        [(mode,)] = mysql.fetch_all("SELECT @@SESSION.sql_mode")
    assert {"STRICT_TRANS_TABLES", "NO_ENGINE_SUBSTITUTION"} <= set(mode.split(","))
