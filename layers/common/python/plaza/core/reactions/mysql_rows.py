"""Rows of reactions in MySQL, and the reads that Redis cannot serve. Unless stated otherwise, a
function runs one statement; without a cursor it raises MysqlDown.

Keys and versions are rendered into the statements as numbers and validated names (see
``reactions.queues``): for a thousand rows the driver's escaping costs more than the query.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import (
    EventGroups,
    ReactedTarget,
    ReactionKey,
    ReactionRow,
    Reactor,
    Target,
)
from plaza.core.reactions.mysql_sorted_lists import select_rows
from plaza.core.targets.types import TYPES
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

VERSIONS_PER_EPOCH = 2**40
EPOCH_NOW = f"(SELECT epoch FROM log_barrier WHERE id = 1) * {VERSIONS_PER_EPOCH:d}"
_ROW = ("r.target_id", "r.actor_id", "r.state", "r.version", "r.notified_sequence")
_KINDS = ", ".join(f"'{kind}'" for kind in KINDS)
_TYPES = ", ".join(f"'{target_type}'" for target_type in TYPES)  # an erasure finds no other target
REMAINS = f"""
EXISTS (
  SELECT 1
  FROM reaction FORCE INDEX (by_actor)
  WHERE actor_id = {{user_id}}
    AND target_type IN ({_TYPES})
    AND kind IN ({_KINDS})
    AND state = 1
)
"""
"""Whether an erased user has reactions again."""


def read_rows(cursor: Cursor, keys: Collection[ReactionKey]) -> dict[ReactionKey, ReactionRow]:
    """Return the rows of ``keys`` that exist. One statement."""
    if not keys:
        return {}
    [rows] = mysql.read_all(cursor, [select_keys(keys)])
    return rows_of(rows)


def select_keys(keys: Iterable[ReactionKey]) -> str:
    """Return the SELECT of the rows of ``keys``, for ``rows_of``; one primary key look-up for each.

    Joins with JSON_TABLE: MariaDB reads ``(a, b, c, d) IN (...)`` by the wrong index
    (docs/decisions/0015-write-sql-for-mysql-and-mariadb.md).
    """
    ids: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for target_type, target_id, kind, actor_id in keys:
        ids.setdefault((target_type, kind), []).append((target_id, actor_id))
    arms = [
        f"""
        SELECT '{target_type}', '{kind}',
               {sql.concat_rows(*_ROW)}
        FROM JSON_TABLE('{json.dumps(sorted(of_kind))}', '$[*]'
            COLUMNS (target_id BIGINT PATH '$[0]', actor_id BIGINT PATH '$[1]')) AS k
        STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
            ON  r.target_type = '{target_type}'
            AND r.target_id = k.target_id
            AND r.kind = '{kind}'
            AND r.actor_id = k.actor_id
        """
        for (target_type, kind), of_kind in ids.items()
    ]
    return " UNION ALL ".join(arms)


def rows_of(rows: Iterable[mysql.Row]) -> dict[ReactionKey, ReactionRow]:
    """Return the rows that exist from the rows of ``select_keys``."""
    return {
        ReactionKey(target_type, target_id, kind, actor_id): ReactionRow(
            state == 1, version, notified_sequence
        )
        for target_type, kind, packed in rows
        for target_id, actor_id, state, version, notified_sequence in sql.split_rows(packed)
    }


def render_rows(groups: EventGroups) -> dict[ReactionKey, str]:
    """Render the newest event of each key as a row, without its notified_sequence."""
    return {
        event.key: "%s,%d,%d,%d" % (of, actor_id, event.on, at_us)
        for (target_type, target_id, kind), group in groups
        for of in (f"'{target_type}',{target_id:d},'{kind}'",)
        for (actor_id, at_us), event in group
    }


def upsert_rows(
    cursor: Cursor,
    rows: Mapping[ReactionKey, str],
    notified_sequences: Mapping[tuple[str, int, str, int], int] | None = None,
) -> None:
    """Store rendered rows where they are newer than the existing ones. ``notified_sequences``: key
    of a row -> its sequence, the present one of a row that is not newer, 0 without an entry; None:
    all stay as they are. MySQL assigns from left to right, so the version is assigned last."""
    column, sequence = "", ""
    values = "),(".join(rows.values())
    if notified_sequences is not None:
        at = notified_sequences.get
        values = "),(".join(["%s,%d" % (row, at(key, 0)) for key, row in rows.items()])
        column, sequence = ", notified_sequence", "notified_sequence = VALUES(notified_sequence),"
    mysql.send(
        cursor,
        f"""
        INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version{column})
        VALUES ({values})
        ON DUPLICATE KEY UPDATE
            state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state),
            {sequence}
            version = GREATEST(reaction.version, VALUES(version))
        """,
    )


def read_state(kind: Kind, target: Target, actor_id: int) -> tuple[bool, int]:
    """Return (whether the actor's row is on, db_version), at one instant."""
    rows = mysql.fetch_all(
        f"""
        SELECT COALESCE((
                   SELECT state
                   FROM reaction
                   WHERE target_type = %s
                     AND target_id = %s
                     AND kind = %s
                     AND actor_id = %s
               ), 0),
               {EPOCH_NOW} + COALESCE((
                   SELECT version
                   FROM counter
                   WHERE target_type = %s
                     AND target_id = %s
                     AND kind = %s
               ), 0)
        """,
        (*target, kind.name, actor_id, *target, kind.name),
    )
    return rows[0][0] == 1, rows[0][1]


def read_viewer_states(pairs: Sequence[tuple[Kind, Target]], actor_id: int) -> list[bool]:
    """Return whether the actor reacted to each of ``pairs``."""
    if not pairs:
        return []
    ids: dict[tuple[str, str], list[int]] = {}
    for kind, target in pairs:
        ids.setdefault((target.type, kind.name), []).append(target.id)
    arms = [
        f"""
        (
            SELECT kind, target_type, target_id
            FROM reaction FORCE INDEX (PRIMARY)
            WHERE target_type = '{target_type}'
              AND target_id IN ({sql.render_ids(of_type)})
              AND kind = '{kind}'
              AND actor_id = {actor_id:d}
              AND state = 1
        )
        """
        for (target_type, kind), of_type in ids.items()
    ]
    on = set(mysql.fetch_all(" UNION ALL ".join(arms)))
    return [(kind.name, *target) in on for kind, target in pairs]


def read_reactors(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, limit: int
) -> list[Reactor]:
    """Return a page of actors that are on, by (version, actor); ``latest``: in reverse order."""
    conditions, (sign, order) = "state = 1", ("<", "DESC") if latest else (">", "ASC")
    if after is not None:
        version, actor_id = f"{after.version_us:d}", f"{after.actor_id:d}"
        conditions += f"""
          AND version {sign}= {version}
          AND (version {sign} {version} OR actor_id {sign} {actor_id})
        """
    arms = [
        f"({select} ORDER BY version {order}, actor_id {order} LIMIT {limit:d})"
        for select in select_rows(kind, target, "actor_id, version", conditions)
    ]
    page = [Reactor(*row) for row in mysql.fetch_all(" UNION ALL ".join(arms))]
    return sorted(page, key=lambda r: (r.version_us, r.actor_id), reverse=latest)


def read_newest(pairs: Sequence[tuple[Kind, Target]], count: int) -> list[list[Reactor]]:
    """Return the ``count`` newest actors that are on of each of ``pairs``, newest first."""
    newest_first = f"ORDER BY version DESC, actor_id DESC LIMIT {count:d}"
    arms = [
        f"({select} {newest_first})"
        for index, (kind, target) in enumerate(pairs)
        for select in select_rows(kind, target, f"{index}, actor_id, version", "state = 1")
    ]
    newest: list[list[Reactor]] = [[] for _ in pairs]
    for index, actor_id, version in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        newest[index].append(Reactor(actor_id, version))
    for page in newest:
        page.sort(key=lambda reactor: (-reactor.version_us, -reactor.actor_id))
    return newest


def read_earliest(kind: Kind, target: Target, limit: int) -> tuple[int, list[Reactor]]:
    """Return (db_version, the earliest actors that are on), at one instant."""
    version = f"""
        SELECT 0, {EPOCH_NOW} + COALESCE((
            SELECT version
            FROM counter
            WHERE target_type = '{target.type}'
              AND target_id = {target.id:d}
              AND kind = '{kind.name}'
        ), 0)
        """
    arms = [
        f"({select} ORDER BY version, actor_id LIMIT {limit:d})"
        for select in select_rows(kind, target, "actor_id, version", "state = 1")
    ]
    rows = mysql.fetch_all(" UNION ALL ".join([f"({version})", *arms]))
    [db_version] = [version for actor_id, version in rows if actor_id == 0]
    earliest = [Reactor(actor_id, version) for actor_id, version in rows if actor_id > 0]
    return db_version, sorted(earliest, key=lambda r: (r.version_us, r.actor_id))


def read_earliest_of(kind: Kind, limits: Mapping[Target, int]) -> dict[Target, dict[str, int]]:
    """Return actor -> version of the earliest actors that are on, as many as ``limits`` has of each
    target."""
    arms = [
        f"({select} ORDER BY version, actor_id LIMIT {limit:d})"
        for target, limit in limits.items()
        for select in select_rows(
            kind, target, f"{target.id:d} AS target, actor_id, version", "state = 1"
        )
    ]
    pages: dict[Target, list[tuple[int, int]]] = {target: [] for target in limits}
    target_of = {target.id: target for target in limits}
    for target_id, actor_id, version in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        pages[target_of[target_id]].append((version, actor_id))
    return {
        target: {str(actor): version for version, actor in sorted(rows)[: limits[target]]}
        for target, rows in pages.items()
    }


def read_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int
) -> list[ReactedTarget]:
    """Return a page of an actor's targets, descending by (version, type, id)."""
    where, args = "", [actor_id, kind.name]
    if after is not None:
        where = (
            " AND (version < %s OR (version = %s AND (target_type < %s"
            " OR (target_type = %s AND target_id < %s))))"
        )
        target_type, target_id = after.target
        args += [after.version_us, after.version_us, target_type, target_type, target_id]
    rows = mysql.fetch_all(
        f"""
        SELECT target_type, target_id, version
        FROM reaction FORCE INDEX (by_actor)
        WHERE actor_id = %s
          AND kind = %s
          AND state = 1{where}
        ORDER BY version DESC, target_type DESC, target_id DESC
        LIMIT {limit:d}
        """,
        args,
    )
    return [ReactedTarget(Target(*target), version) for *target, version in rows]


def read_reacted_above(
    kind: Kind, floors_us: Mapping[int, int], limit: int
) -> dict[int, dict[str, int]]:
    """Return actor -> target, as text -> version of the actor's ``limit`` newest active rows above
    its floor. One statement."""
    arms = [
        f"""
        (
            SELECT actor_id, CONCAT(target_type, ':', target_id), version
            FROM reaction FORCE INDEX (by_actor)
            WHERE actor_id = {actor_id:d}
              AND kind = '{kind.name}'
              AND state = 1
              AND version > {floor_us:d}
            ORDER BY version DESC LIMIT {limit:d}
        )
        """
        for actor_id, floor_us in floors_us.items()
    ]
    of_actors: dict[int, dict[str, int]] = {actor_id: {} for actor_id in floors_us}
    for actor_id, target, version in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        of_actors[actor_id][target] = version
    return of_actors


def read_actors(kind: Kind, target: Target, after_id: int, limit: int) -> list[int]:
    """Return a page of the actors that are on, by id."""
    rows = mysql.fetch_all(
        f"""
        SELECT actor_id
        FROM reaction FORCE INDEX (PRIMARY)
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
          AND actor_id > %s
          AND state = 1
        ORDER BY actor_id LIMIT {limit:d}
        """,
        (*target, kind.name, after_id),
    )
    return [actor_id for (actor_id,) in rows]
