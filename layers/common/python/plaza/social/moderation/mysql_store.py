"""Reports in MySQL. Each function runs one statement; without a cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from plaza.core.reactions import Target
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.social.moderation.model import Report, ReportDraft

_COLUMNS = (
    "id, reporter_id, target_type, target_id, reason, details, outcome, created_at, resolved_at"
)


def insert(cursor: Cursor, report_id: int, draft: ReportDraft) -> bool:
    """Store an open report; return False if the reporter has one of the target."""
    return (
        cursor.execute(
            """
            INSERT INTO report (id, reporter_id, target_type, target_id, reason, details,
                created_at)
            VALUES (%s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE id = report.id
            """,
            (report_id, draft.reporter_id, *draft.target, draft.reason, draft.details),
        )
        == 1
    )


def delete_of_user(reporter_id: int) -> int:
    """Delete all reports of a user; return how many there were."""
    return mysql.write("DELETE FROM report WHERE reporter_id = %s", (reporter_id,))


def read(report_id: int) -> Report | None:
    """Return a report, None if it does not exist."""
    rows = mysql.fetch_all(f"SELECT {_COLUMNS} FROM report WHERE id = %s", (report_id,))
    return _report(rows[0]) if rows else None


def read_all(report_ids: Collection[int]) -> list[Report]:
    """Return the reports that exist, of at least one id."""
    rows = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM report WHERE id IN ({sql.render_ids(report_ids)})"
    )
    return [_report(row) for row in rows]


def lock(cursor: Cursor, report_id: int) -> Report | None:
    """Return a report, locked until the commit."""
    cursor.execute(f"SELECT {_COLUMNS} FROM report WHERE id = %s FOR UPDATE", (report_id,))
    row = cursor.fetchone()
    return _report(row) if row else None


def resolve(
    cursor: Cursor, report_id: int, outcome: str, operator_id: int, key_id: str | None
) -> None:
    """Store the outcome of an open report. ``key_id``: the key that acts for the operator."""
    cursor.execute(
        """
        UPDATE report
        SET is_open = NULL, outcome = %s, resolved_at = UTC_TIMESTAMP(6), resolved_by = %s,
            resolved_by_key = %s
        WHERE id = %s
        """,
        (outcome, operator_id, key_id, report_id),
    )


def read_open(after_id: int, limit: int) -> list[Report]:
    """Return a page of the open reports, oldest first."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM report FORCE INDEX (by_state)
        WHERE is_open = 1
          AND id > %s
        ORDER BY id LIMIT {limit:d}
        """,
        (after_id,),
    )
    return [_report(row) for row in rows]


def _report(row: tuple[Any, ...]) -> Report:
    report_id, reporter_id, target_type, target_id, reason, details, outcome, *times = row
    created_at, resolved_at = times
    return Report(
        report_id,
        reporter_id,
        Target(target_type, target_id),
        reason,
        details,
        outcome,
        sql.to_us(created_at),
        sql.to_us(resolved_at) if resolved_at else None,
    )
