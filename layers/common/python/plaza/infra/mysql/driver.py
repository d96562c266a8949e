"""PyMySQL: its connections, and what its errors mean. Imported when a process first needs MySQL,
because a function that Redis answers does not."""

from __future__ import annotations

import re
from enum import Flag, auto
from typing import TYPE_CHECKING, Any

from pymysql.connections import Connection
from pymysql.constants import COMMAND, CR, ER
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from plaza.infra.aws import tls

ERRORS = (MySQLError, OSError)
"""What statements and connections raise."""


class Meaning(Flag):
    """What an error of MySQL means. An error that is not in ``MEANINGS`` is a bug of the caller."""

    BUG = 0
    OUTAGE = auto()  # out of reach, or unable to work: the next connection may lead elsewhere
    CONFLICT = auto()  # with another transaction: the transaction is repeated
    LOCKED = auto()  # a statement with NOWAIT met a locked row
    DENIED = auto()  # the login was refused
    QUOTES_NOTHING = auto()  # the text names tables and columns only; others quote values
    APPLIED = auto()  # a statement of a migration ran before
    LOG_PURGED = auto()  # a position is in a deleted file of the binlog
    NO_PARTITION = auto()
    NO_PLAN = auto()  # no such connection, or it runs nothing that has a plan
    NO_PROCEDURE = auto()
    SYNTAX = auto()  # also: this server lacks the statement


# Numbers without a name in PyMySQL are from MySQL 8, 1927 and 1933 from MariaDB.
MEANINGS = {
    0: Meaning.OUTAGE,  # PyMySQL: the connection is closed
    CR.CR_CONN_HOST_ERROR: Meaning.OUTAGE,
    CR.CR_SERVER_GONE_ERROR: Meaning.OUTAGE,
    CR.CR_SERVER_LOST: Meaning.OUTAGE,
    CR.CR_SSL_CONNECTION_ERROR: Meaning.OUTAGE,
    # The server accepts no login, or ends connections.
    ER.ACCESS_DENIED_ERROR: Meaning.OUTAGE | Meaning.DENIED,  # between two steps of a rotation
    ER.CON_COUNT_ERROR: Meaning.OUTAGE,
    ER.TOO_MANY_USER_CONNECTIONS: Meaning.OUTAGE,
    ER.USER_LIMIT_REACHED: Meaning.OUTAGE,
    ER.HOST_IS_BLOCKED: Meaning.OUTAGE,
    ER.SERVER_SHUTDOWN: Meaning.OUTAGE,
    ER.ABORTING_CONNECTION: Meaning.OUTAGE,
    1927: Meaning.OUTAGE,  # the connection was killed
    3032: Meaning.OUTAGE,  # offline_mode
    4031: Meaning.OUTAGE,  # the connection was idle for too long
    # An operator or a limit ends the statement.
    ER.QUERY_INTERRUPTED: Meaning.OUTAGE,
    ER.STATEMENT_TIMEOUT: Meaning.OUTAGE,  # a limit of the server: MariaDB
    ER.QUERY_TIMEOUT: Meaning.OUTAGE,  # MySQL
    # The server lacks a resource.
    ER.DISK_FULL: Meaning.OUTAGE,
    ER.RECORD_FILE_FULL: Meaning.OUTAGE,
    ER.OUTOFMEMORY: Meaning.OUTAGE,
    ER.OUT_OF_RESOURCES: Meaning.OUTAGE,
    ER.CANT_CREATE_THREAD: Meaning.OUTAGE,
    ER.LOCK_TABLE_FULL: Meaning.OUTAGE,
    # The server was demoted to a replica.
    ER.OPTION_PREVENTS_STATEMENT: Meaning.OUTAGE,  # read_only
    1792: Meaning.OUTAGE,  # the transaction is read-only
    1836: Meaning.OUTAGE,  # innodb_read_only
    ER.LOCK_DEADLOCK: Meaning.CONFLICT,
    ER.LOCK_WAIT_TIMEOUT: Meaning.CONFLICT | Meaning.LOCKED,  # NOWAIT: MariaDB
    3572: Meaning.LOCKED,  # NOWAIT: MySQL
    # A row changed after the statement read it and before it was locked: MariaDB with
    # innodb_snapshot_isolation, its default since 11.6.
    ER.CHECKREAD: Meaning.CONFLICT,
    ER.TABLE_DEF_CHANGED: Meaning.CONFLICT,  # a table was altered after the snapshot began
    ER.BAD_FIELD_ERROR: Meaning.QUOTES_NOTHING,
    ER.NO_SUCH_TABLE: Meaning.QUOTES_NOTHING,
    ER.BAD_NULL_ERROR: Meaning.QUOTES_NOTHING,
    ER.DATA_TOO_LONG: Meaning.QUOTES_NOTHING,
    ER.WARN_DATA_OUT_OF_RANGE: Meaning.QUOTES_NOTHING,
    ER.NO_DEFAULT_FOR_FIELD: Meaning.QUOTES_NOTHING,
    ER.DUP_FIELDNAME: Meaning.APPLIED,
    ER.DUP_KEYNAME: Meaning.APPLIED,
    ER.CANT_DROP_FIELD_OR_KEY: Meaning.APPLIED,
    ER.MASTER_FATAL_ERROR_READING_BINLOG: Meaning.LOG_PURGED,
    1735: Meaning.NO_PARTITION,
    ER.NO_SUCH_THREAD: Meaning.NO_PLAN,
    1933: Meaning.NO_PLAN,
    3012: Meaning.NO_PLAN,
    ER.SP_DOES_NOT_EXIST: Meaning.NO_PROCEDURE,
    ER.PARSE_ERROR: Meaning.SYNTAX,
}
"""Code of an error -> what it means, on all servers."""

if TYPE_CHECKING:  # PyMySQL's types are generic, its classes aren't
    import ssl

    _Connection = Connection[Cursor]
else:
    _Connection = Connection


class SharedTlsConnection(_Connection):
    """A connection that shares its TLS context with the others of the process.

    PyMySQL creates a context for each and loads the system's certificates: 30 ms of CPU. Without
    ``ssl``, TLS is used if the server offers it, and its certificate is not verified.
    """

    used_at_s = 0.0
    _is_pending = False  # whether the reply to a statement of ``send`` is not read yet

    def send(self, sql: str) -> None:
        """Send a statement without reading its reply. The next command reads it before it is sent,
        and raises its error; so does ``receive``."""
        self._execute_command(COMMAND.COM_QUERY, sql.encode())
        self._is_pending = True

    def begin(self) -> None:
        """Begin a transaction; the reply is read before the first statement is sent."""
        self.send("BEGIN")

    def receive(self) -> None:
        """Read the reply to the last statement if it is not read yet."""
        if self._is_pending:
            self._is_pending = False
            self._affected_rows = self._read_query_result()  # type: ignore[attr-defined]

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        self.receive()
        super()._execute_command(command, sql)  # type: ignore[misc]

    def _create_ssl_ctx(self, sslp: dict[str, Any]) -> ssl.SSLContext:
        return super()._create_ssl_ctx(sslp) if sslp else tls.unverified_context()  # type: ignore[misc]


def code_of(error: BaseException) -> int:
    """Return the code of an error of MySQL, -1 for other errors."""
    if isinstance(error, MySQLError) and error.args and isinstance(error.args[0], int):
        return error.args[0]
    return -1


def means(error: BaseException, meaning: Meaning) -> bool:
    """Return whether ``meaning`` is one of an error's."""
    return meaning in MEANINGS.get(code_of(error), Meaning.BUG)


def is_outage(error: BaseException) -> bool:
    """Return whether MySQL failed; any other error is a reply of a working server."""
    return isinstance(error, OSError) or means(error, Meaning.OUTAGE)


def is_conflict(error: BaseException) -> bool:
    """Return whether another transaction had a row: it locked it for too long, or changed it."""
    return means(error, Meaning.CONFLICT)


def is_lost(error: BaseException) -> bool:
    """Return whether the connection failed at once; a timeout is not repeated."""
    return is_outage(error) and "timed out" not in str(error)


def describe(error: BaseException) -> str:
    """Return the type and code of an error, without its text."""
    return f"{type(error).__name__} {code_of(error)}{tls.describe_failure(error)}"


def hide_values(error: Exception) -> None:
    """Remove quoted values from the text of an error: it is logged, and a value may be a phone
    number."""
    if not means(error, Meaning.QUOTES_NOTHING):
        error.args = tuple(
            re.sub("'.*'", "'...'", part, flags=re.DOTALL) if isinstance(part, str) else part
            for part in error.args
        )
