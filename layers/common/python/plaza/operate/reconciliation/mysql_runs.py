"""Runs in MySQL: their parts with a cursor each, suspects and findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, fields
from datetime import UTC, datetime
from typing import Any

from plaza.infra.derived.comparisons import Finding, RunPart, StepResult, Subject, Suspect, Tally
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import Codec, json_codec
from plaza.operate.reconciliation import mysql_cycles
from plaza.operate.reconciliation.model import MAX_DETAIL_CHARS, Example, NewPart, RunReport

RETAINED_RUNS = 30
_MAX_DELETED = 10_000
REASON_COUNTS: Codec[dict[str, int]] = json_codec("reason_counts", dict[str, int])
_TALLY = [column.name for column in fields(Tally)]
_SUBJECT = "what, target_type, target_id"


def begin(parts: Sequence[NewPart], expected: Mapping[str, int]) -> tuple[int, bool]:
    """Begin a run unless one is open; return (id of the open run, whether this call began it).

    ``expected``: name of a cycle -> about how many subjects it has.
    Deletes up to 10,000 parts, suspects and findings each of runs older than the last 30. Raises
    MysqlDown.
    """

    def work(cursor: Cursor) -> tuple[int, bool]:
        began = cursor.execute(
            """
            INSERT INTO reconciliation (started_at)
            VALUES (UTC_TIMESTAMP(6))
            ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)
            """
        )
        run_id = int(cursor.lastrowid)
        if began == 1:
            _insert(
                cursor,
                "part",
                "run_id, part, resume_after, quota",
                [(run_id, part.name, part.cursor, part.quota) for part in parts],
            )
            mysql_cycles.begin(cursor, expected)
            for table in ("part", "suspect", "finding"):
                cursor.execute(
                    f"DELETE FROM reconciliation_{table} WHERE run_id <= %s LIMIT {_MAX_DELETED}",
                    (run_id - RETAINED_RUNS,),
                )
        return run_id, began == 1

    return mysql.run_in_transaction(work)


def read_age_s() -> int:
    """Return the seconds since the newest run began that has ended, 0 without one. Raises
    MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT TIMESTAMPDIFF(SECOND, started_at, UTC_TIMESTAMP(6))
        FROM reconciliation
        WHERE ended_at IS NOT NULL
        ORDER BY id DESC LIMIT 1
        """
    )
    return int(rows[0][0]) if rows else 0


def read_parts(run_id: int) -> list[RunPart]:
    """Return all parts of an open run; none when it has ended. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT p.run_id, part, resume_after, is_done
        FROM reconciliation_part AS p
        JOIN reconciliation AS r ON r.id = p.run_id
        WHERE p.run_id = %s
          AND r.ended_at IS NULL
        ORDER BY part
        """,
        (run_id,),
    )
    return [RunPart(run, name, cursor, bool(is_done)) for run, name, cursor, is_done in rows]


def has_unfinished(run_id: int, excluding: Sequence[str]) -> bool:
    """Return whether any part other than ``excluding`` is not done. Raises MysqlDown."""
    marks = sql.placeholders(len(excluding))
    return bool(
        mysql.fetch_all(
            f"""
            SELECT 1
            FROM reconciliation_part
            WHERE run_id = %s
              AND is_done = 0
              AND part NOT IN ({marks})
            LIMIT 1
            """,
            (run_id, *excluding),
        )
    )


def read_part(run_id: int, name: str) -> RunPart | None:
    """Return a part of an open run, None when it or the run has ended. Raises MysqlDown."""
    rows = mysql.fetch_all(
        """
        SELECT resume_after, quota, steps, p.targets + p.users + p.cached
        FROM reconciliation_part AS p
        JOIN reconciliation AS r ON r.id = p.run_id
        WHERE p.run_id = %s
          AND part = %s
          AND is_done = 0
          AND r.ended_at IS NULL
        """,
        (run_id, name),
    )
    for cursor, quota, steps, subjects in rows:
        return RunPart(run_id, name, cursor, False, quota, steps, int(subjects))
    return None


def add_part(run_id: int, name: str) -> None:
    """Add a part unless it exists. Raises MysqlDown."""
    mysql.run_in_transaction(lambda cursor: _add_parts(cursor, run_id, [name]))


def commit_step(part: RunPart, result: StepResult) -> bool:
    """Store the new cursor of ``part`` and the findings of the step, in one transaction.

    Return False, and store nothing, when another consumer did this step. Six statements at most.
    Raises MysqlDown.
    """

    def work(cursor: Cursor) -> bool:
        sums = ", ".join(f"{column} = {column} + %s" for column in _TALLY)
        moved = cursor.execute(
            f"""
            UPDATE reconciliation_part
            SET resume_after = %s, is_done = %s, steps = steps + 1, {sums}
            WHERE run_id = %s
              AND part = %s
              AND resume_after = %s
              AND is_done = 0
            """,
            (
                result.cursor,
                result.is_last,
                *astuple(result.tally),
                part.run_id,
                part.name,
                part.cursor,
            ),
        )
        if moved:
            _add_parts(cursor, part.run_id, result.parts)
            _add_suspects(cursor, part.run_id, result.suspects)
            _add_findings(cursor, part.run_id, result.findings)
            mysql_cycles.store(cursor, part, result)
        return moved == 1

    return mysql.run_in_transaction(work)


def has_suspects(run_id: int) -> bool:
    """Return whether a run has suspects. Raises MysqlDown."""
    return bool(
        mysql.fetch_all("SELECT 1 FROM reconciliation_suspect WHERE run_id = %s LIMIT 1", (run_id,))
    )


def read_suspects(run_id: int, after_id: int, limit: int) -> list[tuple[int, Suspect]]:
    """Return a page of (id, suspect). Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT id, check_kind, {_SUBJECT}, observed
        FROM reconciliation_suspect
        WHERE run_id = %s
          AND id > %s
        ORDER BY id LIMIT {limit:d}
        """,
        (run_id, after_id),
    )
    return [
        (i, Suspect(check, Subject(*subject), observed)) for i, check, *subject, observed in rows
    ]


def read_unrepaired(run_id: int, after_id: int, limit: int) -> list[int]:
    """Return a page of ids of findings that are not repaired. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT id
        FROM reconciliation_finding
        WHERE run_id = %s
          AND id > %s
          AND repaired_at IS NULL
        ORDER BY id LIMIT {limit:d}
        """,
        (run_id, after_id),
    )
    return [finding_id for (finding_id,) in rows]


def read_findings(finding_ids: Iterable[int]) -> dict[int, Finding]:
    """Return the findings that are not repaired. One statement. Raises MysqlDown."""
    numbers = sql.render_ids(finding_ids)
    rows = mysql.fetch_all(
        f"""
        SELECT id, reason, {_SUBJECT}, details
        FROM reconciliation_finding
        WHERE id IN ({numbers})
          AND repaired_at IS NULL
        """
    )
    return {i: Finding(reason, Subject(*subject), details) for i, reason, *subject, details in rows}


def mark_repaired(finding_ids: Iterable[int]) -> int:
    """Mark findings as repaired; return how many were not before. Raises MysqlDown."""
    numbers = sql.render_ids(finding_ids)
    return mysql.write(
        f"""
        UPDATE reconciliation_finding
        SET repaired_at = UTC_TIMESTAMP(6)
        WHERE id IN ({numbers})
          AND repaired_at IS NULL
        """
    )


def end(run_id: int) -> bool:
    """End a run with the sums of its parts; False if it had ended before. Raises MysqlDown."""

    def work(cursor: Cursor) -> bool:
        cursor.execute(
            "SELECT reason, COUNT(*) FROM reconciliation_finding WHERE run_id = %s GROUP BY reason",
            (run_id,),
        )
        reason_counts = dict(cursor.fetchall())
        sums = ", ".join(f"COALESCE(SUM({column}), 0)" for column in _TALLY)
        cursor.execute(
            f"SELECT {sums} FROM reconciliation_part WHERE run_id = %s",
            (run_id,),
        )
        [tally] = cursor.fetchall()
        totals = ", ".join(f"{column} = %s" for column in _TALLY)
        return (
            cursor.execute(
                f"""
                UPDATE reconciliation
                SET is_open = NULL, ended_at = UTC_TIMESTAMP(6), differing = %s, reason_counts = %s,
                    {totals}
                WHERE id = %s
                  AND ended_at IS NULL
                """,
                (
                    sum(reason_counts.values()),
                    REASON_COUNTS.encode(reason_counts),
                    *map(int, tally),
                    run_id,
                ),
            )
            == 1
        )

    return mysql.run_in_transaction(work)


def read_reports(before_id: int, limit: int, examples: int) -> list[RunReport]:
    """Return up to ``limit`` runs before an id, the newest first, with ``examples`` findings each.

    Three statements. Raises MysqlDown.
    """
    runs = mysql.fetch_all(
        f"""
        SELECT id, started_at, ended_at, {", ".join(_TALLY)}, differing, reason_counts
        FROM reconciliation
        WHERE id < %s
        ORDER BY id DESC LIMIT {limit:d}
        """,
        (before_id,),
    )
    if not runs:
        return []
    numbers = sql.render_ids(run[0] for run in runs)
    sums = ", ".join(f"COALESCE(SUM({column}), 0)" for column in _TALLY)
    # The sums so far of open runs, and the number of repaired findings.
    counts = mysql.fetch_all(
        f"""
        (
            SELECT 'tally', run_id, '', {sums}
            FROM reconciliation_part
            WHERE run_id IN ({numbers})
            GROUP BY run_id
        )
        UNION ALL (
            SELECT 'reason_counts', run_id, reason, COUNT(*), COUNT(repaired_at), 0, 0, 0, 0
            FROM reconciliation_finding
            WHERE run_id IN ({numbers})
            GROUP BY run_id, reason
        )
        """
    )
    rows = mysql.fetch_all(
        " UNION ALL ".join(
            f"""
            (
                SELECT run_id, reason, {_SUBJECT}, details, found_at, repaired_at
                FROM reconciliation_finding
                WHERE run_id = {run[0]:d}
                ORDER BY id LIMIT {examples:d}
            )
            """
            for run in runs
        )
    )
    return [_build_report(run, counts, rows) for run in runs]


def _build_report(
    run: Sequence[Any], counts: Iterable[Sequence[Any]], examples: Iterable[Sequence[Any]]
) -> RunReport:
    run_id, started_at, ended_at, *tally, differing, reason_counts = run
    now, repaired = Tally(*tally), 0
    reasons: dict[str, int] = {}
    for what, of_run, reason, *numbers in counts:
        if of_run == run_id and what == "tally" and ended_at is None:
            now = Tally(*map(int, numbers))
        elif of_run == run_id and what == "reason_counts":
            reasons[reason] = int(numbers[0])
            repaired += int(numbers[1])
    if not reasons and differing:  # the findings of old runs are deleted
        reasons, repaired = REASON_COUNTS.decode(reason_counts), differing
    return RunReport(
        run_id,
        _as_utc(started_at),
        ended_at and _as_utc(ended_at),
        now,
        sum(reasons.values()),
        repaired,
        reasons,
        [
            Example(
                Finding(reason, Subject(*subject), details), _as_utc(at), right and _as_utc(right)
            )
            for of_run, reason, *subject, details, at, right in examples
            if of_run == run_id
        ],
    )


def _as_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC)


def _add_parts(cursor: Cursor, run_id: int, parts: Iterable[str]) -> None:
    _insert(cursor, "part", "run_id, part", [(run_id, name) for name in parts])


def _add_suspects(cursor: Cursor, run_id: int, suspects: Iterable[Suspect]) -> None:
    rows = [(run_id, s.check, *s.subject, s.observed) for s in suspects]
    _insert(cursor, "suspect", f"run_id, check_kind, {_SUBJECT}, observed", rows)


def _add_findings(cursor: Cursor, run_id: int, findings: Iterable[Finding]) -> None:
    rows = [(run_id, f.reason, *f.subject, f.details[:MAX_DETAIL_CHARS]) for f in findings]
    _insert(cursor, "finding", f"run_id, reason, {_SUBJECT}, details", rows)


def _insert(cursor: Cursor, table: str, columns: str, rows: Sequence[Sequence[Any]]) -> None:
    """Insert the missing rows. PyMySQL sends one statement for each megabyte."""
    if rows:
        marks = sql.placeholders(len(rows[0]))
        cursor.executemany(
            f"""
            INSERT INTO reconciliation_{table} ({columns})
            VALUES ({marks})
            ON DUPLICATE KEY UPDATE run_id = VALUES(run_id)
            """,
            sorted(map(tuple, rows)),
        )
