"""PyMySQL: its connections, and what its errors mean. Imported when a process first needs MySQL,
because a function that Redis answers does not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Flag, auto
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


class Meaning(Flag):
    """What an error of MySQL means. An error that is not in ``MEANINGS`` is a bug of the caller."""

    BUG = 0
    OUTAGE = auto()  # out of reach, or unable to work: the next connection may lead elsewhere
    CONFLICT = auto()  # with another transaction: the transaction is repeated
    LOCKED = auto()  # a statement with NOWAIT met a locked row
    DENIED = auto()  # the login was refused
    NO_PRIVILEGE = auto()  # the login may not do this
    QUOTES_NOTHING = auto()  # the text names tables and columns only; others quote values
    APPLIED = auto()  # a statement of a migration ran before
    LOG_PURGED = auto()  # an offset is in a deleted file of the binlog
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
    # Between two steps of a rotation; also the reply to a GRANT of what one has not.
    ER.ACCESS_DENIED_ERROR: Meaning.OUTAGE | Meaning.DENIED | Meaning.NO_PRIVILEGE,
    ER.KILL_DENIED_ERROR: Meaning.NO_PRIVILEGE,
    ER.SPECIFIC_ACCESS_DENIED_ERROR: Meaning.NO_PRIVILEGE,
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
    """Return the type, code and statement of an error, without its text."""
    statement = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__} {code_of(error)}{statement}{tls.describe_failure(error)}"


def hide_values(error: Exception) -> None:
    """Remove quoted values from the text of an error: it is logged, and a value may be a phone
    number."""
    if not means(error, Meaning.QUOTES_NOTHING):
        error.args = tuple(
            re.sub("'.*'", "'...'", part, flags=re.DOTALL) if isinstance(part, str) else part
            for part in error.args
        )
