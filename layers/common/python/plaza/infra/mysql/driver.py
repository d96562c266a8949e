"""PyMySQL: its connections, and what its errors mean. Imported when a process first needs MySQL,
because a function that Redis answers does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pymysql.connections import Connection
from pymysql.constants import COMMAND, CR, ER
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from plaza.infra.aws import tls

ERRORS = (MySQLError, OSError)
"""What statements and connections raise."""

# Errors without a name in PyMySQL. MySQL: the connection was idle for too long, the server or the
# transaction is read-only. MariaDB: the connection was killed.
_IDLED, _READ_ONLY_MODE, _READ_ONLY_TRANSACTION, _CONNECTION_KILLED = 4031, 1836, 1792, 1927
_OUTAGE_CODES = (
    0,
    CR.CR_SERVER_GONE_ERROR,
    CR.CR_SERVER_LOST,
    CR.CR_CONN_HOST_ERROR,
    CR.CR_CONNECTION_ERROR,
    CR.CR_UNKNOWN_HOST,
    CR.CR_SSL_CONNECTION_ERROR,
    ER.ACCESS_DENIED_ERROR,  # between the two steps of a rotation
    ER.CON_COUNT_ERROR,
    ER.TOO_MANY_USER_CONNECTIONS,
    ER.HOST_IS_BLOCKED,
    ER.SERVER_SHUTDOWN,
    ER.ABORTING_CONNECTION,
    ER.QUERY_INTERRUPTED,
    ER.DISK_FULL,
    ER.RECORD_FILE_FULL,
    ER.OPTION_PREVENTS_STATEMENT,  # read_only: the server was demoted to a replica
    _READ_ONLY_MODE,
    _READ_ONLY_TRANSACTION,
    _CONNECTION_KILLED,
    _IDLED,
)
_LOCK_CODES = (ER.LOCK_DEADLOCK, ER.LOCK_WAIT_TIMEOUT)
_NOWAIT_CODES = (ER.LOCK_WAIT_TIMEOUT, 3572)  # in MariaDB, in MySQL
# The texts of these errors name tables and columns only; others quote values.
_NAMES_ONLY = (
    ER.BAD_FIELD_ERROR,
    ER.NO_SUCH_TABLE,
    ER.BAD_NULL_ERROR,
    ER.DATA_TOO_LONG,
    ER.WARN_DATA_OUT_OF_RANGE,
    ER.NO_DEFAULT_FOR_FIELD,
)


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


def code_of(error: BaseException) -> int | None:
    """Return the code of an error of MySQL, None for other errors."""
    if isinstance(error, MySQLError) and error.args:
        return error.args[0] if isinstance(error.args[0], int) else None
    return None


def is_outage(error: BaseException) -> bool:
    """Return whether MySQL failed; any other error is a reply of a working server."""
    return isinstance(error, OSError) or code_of(error) in _OUTAGE_CODES


def is_locked(error: BaseException) -> bool:
    """Return whether a row was locked for too long, or its lock would be a deadlock."""
    return code_of(error) in _LOCK_CODES


def is_lost(error: BaseException) -> bool:
    """Return whether the connection failed at once; a timeout is not repeated."""
    return is_outage(error) and "timed out" not in str(error)


def describe(error: BaseException) -> str:
    """Return the type and code of an error, without its text."""
    return f"{type(error).__name__} {code_of(error)}{tls.describe_failure(error)}"


def is_access_denied(error: BaseException) -> bool:
    """Return whether the server refused the login."""
    return code_of(error) == ER.ACCESS_DENIED_ERROR


def is_locked_now(error: BaseException) -> bool:
    """Return whether a statement with NOWAIT met a locked row."""
    return code_of(error) in _NOWAIT_CODES


def hide_values(error: Exception) -> None:
    """Remove quoted values from the text of an error: it is logged, and a value may be a phone
    number."""
    if code_of(error) not in _NAMES_ONLY:
        error.args = tuple(
            re.sub("'.*'", "'...'", part, flags=re.DOTALL) if isinstance(part, str) else part
            for part in error.args
        )
