"""PyMySQL: its connections, and what its errors mean. Imported when a process first needs MySQL,
because a function that Redis answers does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, CR, ER
from pymysql.cursors import Cursor
from pymysql.err import MySQLError

from plaza.infra.aws import tls

ERRORS = (MySQLError, OSError)
"""What statements and connections raise."""

MULTI_STATEMENTS: int = CLIENT.MULTI_STATEMENTS
"""Flag of a connection whose packets may have several statements."""

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


# On a line of its own: a comment at the end of a statement would hide it.
_SEPARATOR = b"\n;\n"
_MAX_NAME = 60

if TYPE_CHECKING:  # PyMySQL's types are generic, its classes aren't
    import ssl

    _Connection = Connection[Cursor]
else:
    _Connection = Connection


class Packet(NamedTuple):
    """A command with one or more statements."""

    text: bytes
    statements: int


class SharedTlsConnection(_Connection):
    """A connection that shares its TLS context with the others of the process, and that sends
    several statements in one packet.

    PyMySQL creates a context for each and loads the system's certificates: 30 ms of CPU. Without
    ``ssl``, TLS is used if the server offers it, and its certificate is not verified.
    """

    used_at_s = 0.0
    max_packet_bytes = 0
    """Size of a packet of several statements; 0: each statement is a packet of its own."""

    def __init__(self, **options: Any) -> None:
        self._waiting: list[str] = []
        super().__init__(**options)

    def begin(self) -> None:
        """Begin a transaction, with its first statement that is read."""
        self.send("BEGIN")

    def commit(self) -> None:
        """Commit, with the statements that wait."""
        self._run("COMMIT")

    def rollback(self) -> None:
        """Drop the statements that wait, and roll back."""
        self._waiting.clear()
        super().rollback()

    def query(self, sql: str | bytes, unbuffered: bool = False) -> int:
        """Run a statement after those that wait; return how many rows it affected or returned."""
        if unbuffered or not self._waiting:
            self.flush()
            return super().query(sql, unbuffered)
        self._run(sql if isinstance(sql, str) else bytes(sql).decode())
        return int(self._affected_rows)

    def send(self, sql: str) -> None:
        """Let a statement wait for the next one that is read, or for the commit, which raises its
        error."""
        self._waiting.append(sql)

    def flush(self) -> None:
        """Run the statements that wait."""
        self._run()

    def read_all(self, selects: Sequence[str]) -> list[Sequence[tuple[Any, ...]]]:
        """Run SELECTs after the statements that wait; return the rows of each."""
        return self._run(*selects)[-len(selects) :] if selects else []

    def _run(self, *last: str) -> list[Sequence[tuple[Any, ...]]]:
        """Run what waits and ``last``; return the rows of each statement. The server runs nothing
        after an error; the error is raised with the place and the beginning of its statement."""
        statements = [*self._waiting, *last]
        self._waiting.clear()
        results: list[Sequence[tuple[Any, ...]]] = []
        for packet in self._pack(statements):
            self._execute_command(COMMAND.COM_QUERY, packet.text)  # type: ignore[attr-defined]
            for _ in range(packet.statements):
                try:
                    self._affected_rows = self._read_query_result()  # type: ignore[attr-defined]
                except MySQLError as error:
                    number = len(results)
                    error.add_note(
                        f"{_name(statements[number])}, {number + 1} of {len(statements)}"
                    )
                    raise
                results.append(self._result.rows)  # type: ignore[attr-defined]
        return results

    def _pack(self, statements: Iterable[str]) -> Iterator[Packet]:
        """Yield packets of at most ``max_packet_bytes``, or of one statement."""
        texts: list[bytes] = []
        size = 0
        for statement in statements:
            text = statement.encode()
            size += len(text) + len(_SEPARATOR)
            if texts and size > self.max_packet_bytes:
                yield Packet(_SEPARATOR.join(texts), len(texts))
                texts, size = [], len(text) + len(_SEPARATOR)
            texts.append(text)
        if texts:
            yield Packet(_SEPARATOR.join(texts), len(texts))

    def _create_ssl_ctx(self, sslp: dict[str, Any]) -> ssl.SSLContext:
        return super()._create_ssl_ctx(sslp) if sslp else tls.unverified_context()  # type: ignore[misc]


def _name(statement: str) -> str:
    """Return the first line of a statement, without values."""
    first, _, _ = statement.strip().partition("\n")
    return re.sub(r"'[^']*'|\d+", "?", first)[:_MAX_NAME]


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
    """Return the type, code and statement of an error, without its text."""
    statement = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__} {code_of(error)}{statement}{tls.describe_failure(error)}"


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
