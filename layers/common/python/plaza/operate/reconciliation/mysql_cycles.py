"""Cycles in MySQL: where each comparison continues, and which of its subjects changed.

All times are MySQL's, so that the clocks of functions do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from plaza.infra.derived.comparisons import RunPart, StepResult
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.operate.reconciliation.model import Cycle

LOG = "log"  # the name of the cursor in the reaction log


def read_cycles() -> dict[str, Cycle]:
    """Return name -> open cycle, of all comparisons and of the log. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT name, resume_after, compared, expected,
               TIMESTAMPDIFF(SECOND, began_at, UTC_TIMESTAMP(6)),
               TIMESTAMPDIFF(SECOND, ended_at, UTC_TIMESTAMP(6))
        FROM reconciliation_cycle
        """
    )
    return {name: Cycle(*numbers) for name, *numbers in rows}


def read_interval_s() -> int:
    """Return how long after a run the next one begins: of the last two intervals the shorter, as
    the other may be a pause or a jump of the clock; 0 before the second run. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT TIMESTAMPDIFF(SECOND, started_at, UTC_TIMESTAMP(6))
        FROM reconciliation
        ORDER BY id DESC LIMIT 2
        """
    )
    ages_s = [0, *(int(age_s) for (age_s,) in rows)]
    return min((after - before for before, after in pairwise(ages_s)), default=0)


def begin(cursor: Cursor, expected: Mapping[str, int]) -> None:
    """Begin the cycles that have ended, and continue the others. ``expected``: name -> about how
    many subjects the cycle has.

    A cycle that began in the future, because MySQL's clock was set back, begins now. A cycle
    without expected subjects ends: a deploy left out its wing. Two statements.
    """
    cursor.executemany(
        """
        INSERT INTO reconciliation_cycle (name, expected, began_at)
        VALUES (%s, %s, UTC_TIMESTAMP(6))
        ON DUPLICATE KEY UPDATE expected = VALUES(expected)
        """,
        sorted(expected.items()),
    )
    names = [*expected]
    marks = sql.placeholders(len(names))
    cursor.execute(
        f"""
        UPDATE reconciliation_cycle
        SET resume_after = IF(name IN ({marks}), resume_after, ''),
            compared = IF(resume_after = '', 0, compared), began_at = UTC_TIMESTAMP(6)
        WHERE resume_after = ''
           OR began_at > UTC_TIMESTAMP(6)
           OR name NOT IN ({marks})
        """,
        [*names, *names],
    )


def store(cursor: Cursor, part: RunPart, result: StepResult) -> None:
    """Store the dirty rows and the progress of a step, in its transaction. Three statements at
    most."""
    if result.cycle is not None:
        mysql.send(
            cursor,
            """
            UPDATE reconciliation_cycle
            SET resume_after = %s, compared = compared + %s,
                ended_at = IF(%s, UTC_TIMESTAMP(6), ended_at)
            WHERE name = %s
            """,
            (
                result.cycle.cursor,
                result.cycle.compared,
                result.cycle.has_ended,
                result.cycle.name,
            ),
        )
    if result.dirty:
        cursor.executemany(
            """
            INSERT INTO reconciliation_dirty (name, subject_id)
            VALUES (%s, %s)
            ON DUPLICATE KEY UPDATE name = VALUES(name)
            """,
            sorted(result.dirty),
        )
    if result.cleaned is not None:
        mysql.send(
            cursor,
            """
            DELETE FROM reconciliation_dirty
            WHERE name = %s
              AND subject_id > %s
              AND subject_id <= %s
            """,
            (result.cleaned, int(part.cursor or 0), int(result.cursor)),
        )


def read_dirty(name: str, after_id: int, limit: int) -> list[int]:
    """Return the next subjects of a comparison that changed, in ascending order. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT subject_id
        FROM reconciliation_dirty
        WHERE name = %s
          AND subject_id > %s
        ORDER BY subject_id LIMIT {limit:d}
        """,
        (name, after_id),
    )
    return [subject_id for (subject_id,) in rows]
