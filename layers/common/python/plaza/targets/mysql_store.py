"""Targets in MySQL: content and users. Each function runs one statement at most; without a cursor
it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.targets.model import Existence, Visibility


def read_existence(target_type: str, target_id: int) -> Existence:
    """Return the existence of a target."""
    if target_type == "user":
        rows = mysql.fetch_all("SELECT 0 FROM user WHERE id = %s", (target_id,))
    else:
        rows = mysql.fetch_all(
            """
            SELECT deleted_at IS NOT NULL
            FROM content
            WHERE content_type = %s
              AND content_id = %s
            """,
            (target_type, target_id),
        )
    if not rows:
        return Existence.MISSING
    return Existence.DELETED if rows[0][0] else Existence.LIVE


def read_all_existence(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Existence]:
    """Return the existence of each of ``targets``."""
    listed = list(targets)
    arms = [
        f"SELECT 'user', id, 0 FROM user WHERE id IN ({numbers})"
        if target_type == "user"
        else f"""
        SELECT content_type, content_id, deleted_at IS NOT NULL
        FROM content
        WHERE content_type = '{target_type}'
          AND content_id IN ({numbers})
        """
        for target_type, numbers in sql.render_ids_by_type(listed).items()
    ]
    rows = mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ()
    existence = {(row[0], row[1]): Existence.DELETED if row[2] else Existence.LIVE for row in rows}
    return {target: existence.get(target, Existence.MISSING) for target in listed}


def read_hidden(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Visibility]:
    """Return the targets, which are texts, that are hidden."""
    arms = [
        f"""
        SELECT content_type, content_id, version, author_id
        FROM content
        WHERE content_type = '{target_type}'
          AND content_id IN ({numbers})
          AND hidden_at IS NOT NULL
        """
        for target_type, numbers in sql.render_ids_by_type(set(targets)).items()
    ]
    rows = mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ()
    return {(row[0], row[1]): Visibility(row[2], row[3]) for row in rows}


def read_owners(cursor: Cursor, targets: Collection[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the owner of each of ``targets``: the author, or the user itself."""
    [rows] = mysql.read_all(cursor, [select_owners(targets)])
    return owners_of(targets, rows)


def select_owners(targets: Iterable[tuple[str, int]]) -> str:
    """Return the SELECT of the owners of ``targets``, for ``owners_of``."""
    texts = {target for target in targets if target[0] != "user"}
    arms = [
        f"""
        SELECT '{target_type}', {sql.concat_rows("content_id", "author_id")}
        FROM content
        WHERE content_type = '{target_type}'
          AND content_id IN ({numbers})
        """
        for target_type, numbers in sql.render_ids_by_type(texts).items()
    ]
    return " UNION ALL ".join(arms) or "SELECT NULL, NULL FROM DUAL WHERE FALSE"


def owners_of(
    targets: Iterable[tuple[str, int]], rows: Iterable[mysql.Row]
) -> dict[tuple[str, int], int]:
    """Return the owner of each of ``targets`` from the rows of ``select_owners``."""
    return {target: target[1] for target in targets if target[0] == "user"} | {
        (target_type, target_id): owner
        for target_type, packed in rows
        for target_id, owner in sql.split_rows(packed)
    }
