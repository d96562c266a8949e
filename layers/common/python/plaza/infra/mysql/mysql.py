"""The client of MySQL: one connection per process, short timeouts, a circuit breaker.

Statements run at READ COMMITTED, and with autocommit outside of a transaction. A single SELECT is a
consistent snapshot, so values that must be consistent are read by one statement.

A function that stores sends several statements in one packet (``send``, ``read_all``), so that rows
are locked for few round trips. In any other function each statement is a packet of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from plaza.infra.aws import secrets, tls
from plaza.infra.runtime import clock
from plaza.infra.runtime.dependencies import Dependency, DependencyDown, RetryRule
from plaza.infra.runtime.errors import Busy
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.process import Lazy
from plaza.infra.runtime.settings import settings

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor as Cursor

    from plaza.infra.mysql import driver
    from plaza.infra.mysql.driver import SharedTlsConnection
else:  # PyMySQL is imported by the first connection
    Cursor, driver = Any, LazyModule("plaza.infra.mysql.driver")

T = TypeVar("T")
Row = tuple[Any, ...]

# Aurora's default is not strict: it truncates what is too long, and fills in what is missing.
SQL_MODE = (
    "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION"
)
_DEDICATED_IDLE_TIMEOUT_S = 600
_PACKET_SHARE = 4  # of what the server allows
_MAX_LOCK_WAIT_S = 5  # an ALTER that waits for its table blocks all other statements on it


class MysqlDown(DependencyDown):
    """MySQL is unreachable or does not reply in time."""


class LockTimeout(MysqlDown, Busy):
    """MySQL works, but other transactions had a row or table at all retries."""


def _translate(error: Exception) -> Exception:
    """Return LockTimeout for a conflict, else the error without quoted values."""
    if driver.is_conflict(error):
        return LockTimeout(f"Rows are still locked: {driver.describe(error)}")
    driver.hide_values(error)
    return error


def _close_lost(error: BaseException) -> None:
    if driver.is_outage(error):
        forget_connection()


MYSQL = Dependency(
    name="MySQL",
    down=MysqlDown,
    errors=lambda: driver.ERRORS,
    is_outage=lambda error: driver.is_outage(error),
    describe=lambda error: driver.describe(error),
    translate=_translate,
    clean_up=_close_lost,
)
_RETRY_CONFLICT = RetryRule(
    lambda error: driver.is_conflict(error), pauses_s=((0, 0.02), (0, 0.04))
)
_RETRY_LOST = RetryRule(lambda error: driver.is_lost(error))


def _retry_if_reused() -> tuple[RetryRule, ...]:
    """Return the rule for a reused connection: it may be broken, or lead to a demoted server."""
    return () if _connection.peek() is None else (_RETRY_LOST,)


def run_in_transaction(work: Callable[[Cursor], T]) -> T:
    """Run ``work(cursor)`` in one transaction and return its result.

    A conflict, such as a deadlock, repeats it, up to three runs. Raises MysqlDown, LockTimeout, and
    what ``work`` raises.
    """

    def once() -> T:
        connection = _connect()
        try:
            connection.begin()
            with connection.cursor() as cursor:
                result = work(cursor)
            connection.commit()
            return result
        except BaseException as error:
            _roll_back(connection, error)
            raise

    return MYSQL.call(once, _RETRY_CONFLICT)


def run_in_snapshot(work: Callable[[Cursor], T]) -> T:
    """Run ``work(cursor)``, whose statements read one snapshot of MySQL, and return its result.

    Three more statements. A table that is altered meanwhile repeats it, up to three runs. Raises
    MysqlDown, LockTimeout, and what ``work`` raises.
    """

    def once() -> T:
        connection = _connect()
        try:
            with connection.cursor() as cursor:
                send(cursor, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                send(cursor, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                result = work(cursor)
            connection.commit()
            return result
        except BaseException as error:
            _roll_back(connection, error)
            raise

    return MYSQL.call(once, _RETRY_CONFLICT)


def send(cursor: Cursor, sql: str, args: Sequence[Any] | Mapping[str, Any] = ()) -> None:
    """Queue a write. The next statement that is read, or the commit, takes all that wait in one
    packet and raises their errors."""
    connection: Any = cursor.connection  # a SharedTlsConnection
    connection.send(cursor.mogrify(sql, args) if args else sql)


def flush(cursor: Cursor) -> None:
    """Run the writes that wait. One packet; none without them."""
    connection: Any = cursor.connection  # a SharedTlsConnection
    connection.flush()


def read_all(cursor: Cursor, selects: Sequence[str]) -> list[Sequence[Row]]:
    """Return the rows of each of ``selects``, which run in their order after the writes that wait.
    One packet. At READ COMMITTED each reads what is committed when it begins."""
    connection: Any = cursor.connection  # a SharedTlsConnection
    rows: list[Sequence[Row]] = connection.read_all(selects)
    return rows


def try_lock(cursor: Cursor, sql: str, args: Sequence[Any]) -> bool:
    """Run a SELECT ... FOR UPDATE NOWAIT; return False if a row is locked."""
    flush(cursor)  # an error of an earlier write is no answer to this one
    try:
        cursor.execute(sql, args)
    except driver.ERRORS as error:
        if driver.means(error, driver.Meaning.LOCKED):
            return False
        raise
    return True


def fetch_all(sql: str, args: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
    """Return all rows of one SELECT, from one snapshot. Raises MysqlDown."""

    def select() -> list[Row]:
        with _connect().cursor() as cursor:
            cursor.execute(sql, args)
            return list(cursor.fetchall())

    return MYSQL.call(select, *_retry_if_reused())


def write(sql: str, args: Sequence[Any] = ()) -> int:
    """Run one statement that is safe to repeat; return how many rows it affected.
    Up to four runs. Raises MysqlDown, LockTimeout."""

    def execute() -> int:
        with _connect().cursor() as cursor:
            return cursor.execute(sql, args)

    return MYSQL.call(execute, _RETRY_CONFLICT, *_retry_if_reused())


def forget_connection() -> None:
    """Close the connection; the next statement opens a new one."""
    _connection.reset()


def connect_dedicated(**options: Any) -> Connection[Any]:
    """Open a connection for the caller, who closes it. Takes the options of PyMySQL; raises its
    errors.

    The server closes it after ten idle minutes: a caller may be busy for long between two
    statements, for instance with writing an archive.
    """
    connection = _log_in(**options)
    try:
        connection.query(
            f"SET SESSION wait_timeout = {_DEDICATED_IDLE_TIMEOUT_S}, sql_mode = '{SQL_MODE}'"
        )
    except BaseException:
        connection.close()
        raise
    return connection


def _connect() -> SharedTlsConnection:
    now_s = clock.monotonic_s()
    existing = _connection.peek()
    # At half the idle timeout: the server could close it between a later ping and the statement.
    if existing is not None and now_s - existing.used_at_s > settings().mysql_idle_timeout_s / 2:
        try:
            existing.ping(reconnect=False)
        except driver.ERRORS:
            forget_connection()
    connection = _connection.get()
    connection.used_at_s = now_s
    return connection


def _close(connection: SharedTlsConnection) -> None:
    if connection.open:
        connection.close()


def _open() -> SharedTlsConnection:
    timeout_s = settings().mysql_statement_timeout_s
    # A lock wait must end before the statement's timeout, which looks like an outage.
    lock_wait_s = max(1, min(_MAX_LOCK_WAIT_S, timeout_s // 2))
    session = {
        "sql_mode": f"'{SQL_MODE}'",
        "time_zone": "'+00:00'",
        "innodb_lock_wait_timeout": lock_wait_s,
        "lock_wait_timeout": lock_wait_s,
        # The rows of a client that dies within a transaction stay locked for this time.
        "wait_timeout": settings().mysql_idle_timeout_s,
        "group_concat_max_len": 4 * 1024**2,  # see sql.concat_rows
    }
    connection = _log_in(
        database=settings().mysql.database,
        charset="utf8mb4",
        autocommit=True,
        connect_timeout=settings().mysql_connect_timeout_s,
        read_timeout=timeout_s,
        write_timeout=timeout_s,
        # MariaDB would turn a list of 1,000 ids into a subquery, and scan and lock all rows for it.
        init_command="SET SESSION "
        + ", ".join(f"{k} = {v}" for k, v in session.items())
        + " /*M!, in_predicate_conversion_threshold = 0 */",
        client_flag=driver.MULTI_STATEMENTS if settings().mysql_packets else 0,
    )
    connection.send("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    if settings().mysql_packets:
        [[(max_allowed_packet,)]] = connection.read_all(["SELECT @@max_allowed_packet"])
        connection.max_packet_bytes = int(max_allowed_packet) // _PACKET_SHARE
    connection.flush()
    return connection


_connection = Lazy(_open, close=_close)


def _log_in(**options: Any) -> SharedTlsConnection:
    """Connect with the login of the URL or of the secret, which is read again if it is refused."""
    try:
        return _log_in_once(**options)
    except driver.ERRORS as error:
        secret_id = settings().mysql_secret_id
        if not driver.means(error, driver.Meaning.DENIED) or not secret_id:
            raise
        if not secrets.refresh(secret_id):
            raise
        return _log_in_once(**options)


def check_login(login: secrets.Login) -> None:
    """Log in as another user and log out. Raises MysqlDown if the login is refused."""
    timeout_s = settings().mysql_connect_timeout_s
    MYSQL.call(lambda: _connect_as(login, connect_timeout=timeout_s).close())


def _log_in_once(**options: Any) -> SharedTlsConnection:
    address = settings().mysql
    if address.user is not None:
        login = secrets.Login(address.user, address.password or "")
    else:
        login = secrets.read_login(settings().mysql_secret_id or "")
    return _connect_as(login, **options)


def _connect_as(login: secrets.Login, **options: Any) -> SharedTlsConnection:
    address = settings().mysql
    own: dict[str, Any] = {
        "host": address.host,
        "port": address.port,
        "user": login.username,
        "password": login.password,
    }
    if address.verifies_tls:
        own["ssl"] = tls.verifying_context(settings().mysql_ca)
    return driver.SharedTlsConnection(**options | own)


def _roll_back(connection: Connection[Cursor], error: BaseException) -> None:
    """Roll back after ``error``, or close the connection if that is impossible."""
    if isinstance(error, Exception) and not driver.is_outage(error):
        try:
            connection.rollback()
            return
        except driver.ERRORS:
            pass
    forget_connection()
