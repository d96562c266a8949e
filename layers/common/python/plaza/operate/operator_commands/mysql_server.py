"""What MySQL is doing: open transactions, plans of running statements, sizes of tables.

Each function runs one statement, unless stated otherwise, and raises MysqlDown. The user needs
PROCESS, and CONNECTION_ADMIN to end connections of other users.
"""

from __future__ import annotations

import re
from typing import Any

from pymysql.err import MySQLError

from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import driver, mysql
from plaza.infra.mysql.mysql import Cursor

MAX_LISTED = 100
MAX_STATEMENT_CHARS = 500
_LITERAL = re.compile(
    r"""'(?:[^'\\]|\\.|'')*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$)|\b0x[0-9a-f]+\b|\b\d+\b""",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = """
    SELECT trx_mysql_thread_id, trx_started, trx_state, trx_rows_locked, trx_rows_modified,
           COALESCE(trx_query, '')
    FROM information_schema.innodb_trx
    WHERE trx_mysql_thread_id <> 0
      AND trx_mysql_thread_id <> CONNECTION_ID()
    """


def list_transactions() -> list[dict[str, Any]]:
    """Return up to 100 open transactions, the oldest first, without literals of statements."""
    rows = mysql.fetch_all(f"{_OPEN} ORDER BY trx_started LIMIT {MAX_LISTED:d}")
    return [
        {
            "thread_id": thread_id,
            "started_at": started_at.isoformat(),
            "state": state,
            "rows_locked": locked,
            "rows_modified": modified,
            "statement": hide_literals(statement),
        }
        for thread_id, started_at, state, locked, modified, statement in rows
    ]


def hide_literals(statement: str) -> str:
    """Return a statement with ``?`` for each literal, which may be a phone number or a hash of a
    token, and at most 500 characters of it."""
    return " ".join(_LITERAL.sub("?", statement).split())[:MAX_STATEMENT_CHARS]


def end_transaction(thread_id: int) -> None:
    """Close the connection of an open transaction, which MySQL rolls back. Two statements.
    Raises Refused if the connection has no open transaction."""
    if not mysql.fetch_all(f"{_OPEN} AND trx_mysql_thread_id = %s", (thread_id,)):
        raise Refused("this connection has no open transaction; see list-transactions")
    mysql.write("KILL %s", (thread_id,))


def explain(thread_id: int) -> list[dict[str, Any]]:
    """Return the plan of the statement that a connection is running. Raises Refused without one."""

    def work(cursor: Cursor) -> list[dict[str, Any]]:
        cursor.execute("EXPLAIN FOR CONNECTION %s", (thread_id,))
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    try:
        return mysql.run_in_transaction(work)
    except MySQLError as error:
        if driver.means(error, driver.Meaning.NO_PLAN):
            raise Refused("this connection is running no statement that has a plan") from None
        raise


def read_sizes() -> dict[str, dict[str, int]]:
    """Return table -> its rows, as MySQL estimates them, and its bytes with all indexes."""
    rows = mysql.fetch_all(
        """
        SELECT table_name, COALESCE(table_rows, 0), COALESCE(data_length + index_length, 0)
        FROM information_schema.tables
        WHERE table_schema = DATABASE()
        ORDER BY table_name
        """
    )
    return {table: {"rows": int(count), "bytes": int(size)} for table, count, size in rows}
