"""How far the log was when Redis was last looked at, in MySQL: rows of ``watermark``."""

from __future__ import annotations

from collections.abc import Mapping

from plaza.infra import mysql
from plaza.reactions.reactions import Key


def read_marks(names: tuple[str, ...]) -> dict[str, int]:
    """The marks that there are, and the head of the log as ``log``. Raises MysqlDown."""
    listed = ", ".join(["%s"] * len(names))
    found = mysql.fetch_all(
        f"SELECT name, seq FROM watermark WHERE name IN ({listed})"
        " UNION ALL SELECT 'log', COALESCE(MAX(seq), 0) FROM reaction_log",
        names,
    )
    return {str(name): int(seq) for name, seq in found}


def keep_marks(marks: Mapping[str, int]) -> None:
    """Raises MysqlDown."""
    mysql.write(
        "INSERT INTO watermark (name, seq) VALUES "
        + ", ".join(["(%s, %s)"] * len(marks))
        + " ON DUPLICATE KEY UPDATE seq = VALUES(seq)",
        tuple(part for mark in marks.items() for part in mark),
    )


def read_logged(after: int, count: int) -> list[tuple[int, Key]]:
    """(seq, whose reaction) of the next ``count`` facts after ``after``. Raises MysqlDown."""
    found = mysql.fetch_all(
        "SELECT seq, target_type, target_id, kind, actor_id FROM reaction_log"
        " WHERE seq > %s ORDER BY seq LIMIT %s",
        (after, count),
    )
    return [(int(seq), Key(*key)) for seq, *key in found]
