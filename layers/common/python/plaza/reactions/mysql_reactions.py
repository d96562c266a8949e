"""Reactions in MySQL: the record, the log, and the reads that Redis can't answer.

Keys and versions are rendered into the statements as numbers and as names of ours (an event has no
others, see ``ReactionEvent.from_json``): for a thousand rows the driver's own escaping costs more
than the database.

The version of a counter, ``db_version``, is that of its row plus the epoch of MySQL, which is raised when
MySQL is restored to an earlier moment: so versions never repeat.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from pymysql.cursors import Cursor

from plaza.infra import mysql, sql
from plaza.reactions.model import (
    Kind,
    LogEntry,
    ReactedTarget,
    ReactionKey,
    ReactionRow,
    Reactor,
    Snapshot,
    Target,
)

EPOCH = 2**40  # versions of a counter in one epoch
EPOCH_NOW = f"(SELECT epoch FROM log_gate WHERE id = 1) * {EPOCH:d}"
_ROWS_AT_ONCE = 1000
LOCK_TIMEOUT_S = 2  # while somebody waits for the log gate alone, consumers wait behind them
_DAY_US = 86_400_000_000
_KEYS_TABLE = """JSON_TABLE(%s, '$[*]' COLUMNS (
    target_type VARCHAR(16) CHARACTER SET ascii PATH '$[0]', target_id BIGINT PATH '$[1]',
    kind VARCHAR(16) CHARACTER SET ascii PATH '$[2]', actor_id BIGINT PATH '$[3]'))"""
_PACKED_ROW = sql.concat_columns(
    "r.target_type", "r.target_id", "r.kind", "r.actor_id", "r.state", "r.version"
)


def pass_log_gate(cursor: Cursor) -> int:
    """Hold the log gate shared until the commit; returns the version that an epoch begins with.

    One statement. Before anything is appended: a reader that holds the gate alone then knows that
    all that was appended before is committed (docs/decisions/0022-read-the-log-behind-a-gate.md).
    """
    if not cursor.execute("SELECT epoch FROM log_gate WHERE id = 1 LOCK IN SHARE MODE"):
        raise LookupError("log_gate has no row: nothing would wait for this transaction")
    [(epoch,)] = cursor.fetchall()
    return int(epoch) * EPOCH


def read_epoch(cursor: Cursor) -> int:
    """The version that the present epoch begins with. One statement."""
    cursor.execute(f"SELECT {EPOCH_NOW}")
    [(epoch,)] = cursor.fetchall()
    return int(epoch)


def wait_for_log_writers() -> None:
    """Returns when everything that was in the log, or on its way, is committed or given up.

    Those who begin to append later get a higher seq. Raises MysqlDown when somebody takes longer
    than a consumer should: 2 s, three times.
    """

    def wait(cursor: Cursor) -> None:
        cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (LOCK_TIMEOUT_S,))
        if not cursor.execute("SELECT id FROM log_gate WHERE id = 1 FOR UPDATE"):
            raise LookupError("log_gate has no row: writers could not be waited for")

    mysql.run_in_transaction(wait)


def read_log_head() -> int:
    """The highest seq in the log, 0 when it is empty. Raises MysqlDown."""
    return int(mysql.fetch_all("SELECT COALESCE(MAX(seq), 0) FROM reaction_log")[0][0])


def append_log(
    cursor: Cursor, entries: Sequence[LogEntry], versions: Mapping[ReactionKey, int]
) -> None:
    """Log ``entries`` (in key order), each event once however often it comes. One statement.

    ``versions``: of each key, the version of the commit of this transaction that has its row.
    """
    rows = ",".join(
        "('%s',%d,'%s',%d,%d,%d,%d,%d,'%s',%s)"
        % (
            *event.key,
            version_us,
            event.on,
            change,
            versions[event.key],
            _utc_day(version_us // _DAY_US),
            sql.render_request_id(event.request_id),
        )
        for event, version_us, change in entries
    )
    cursor.execute(
        f"""
        INSERT IGNORE INTO reaction_log (target_type, target_id, kind, actor_id, version, state,
            change_by, db_version, create_date, request_id)
        VALUES {rows}
        """
    )


def read_rows(cursor: Cursor, keys: Collection[ReactionKey]) -> dict[ReactionKey, ReactionRow]:
    """The rows of ``keys`` that exist. One statement; one primary key look-up each.

    A join with a table made of one parameter: MariaDB reads ``(a, b, c, d) IN (...)`` by the wrong
    index (docs/decisions/0015-write-sql-for-mysql-and-mariadb.md).
    """
    cursor.execute(
        f"""
        SELECT {_PACKED_ROW}
        FROM {_KEYS_TABLE} AS k
        STRAIGHT_JOIN reaction AS r FORCE INDEX (PRIMARY)
          USING (target_type, target_id, kind, actor_id)
        """,
        (json.dumps(sorted(keys)),),
    )
    found = {}
    for (packed,) in cursor.fetchall():
        of, target_id, kind, actor_id, state, version = packed.split()
        found[ReactionKey(of, int(target_id), kind, int(actor_id))] = ReactionRow(
            state == "1", int(version)
        )
    return found


def upsert_rows(cursor: Cursor, rows: Mapping[ReactionKey, ReactionRow]) -> None:
    """Bring rows to their new state, unless they are newer. One statement.

    The state comes before the version: MySQL assigns from left to right.
    """
    values = ",".join("('%s',%d,'%s',%d,%d,%d)" % (*key, *row) for key, row in rows.items())
    cursor.execute(
        f"""
        INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)
        VALUES {values}
        ON DUPLICATE KEY UPDATE
            state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state),
            version = GREATEST(reaction.version, VALUES(version))
        """
    )


def read_snapshots(
    wanted: Sequence[tuple[Kind, Target, Sequence[int]]], depth: int
) -> list[Snapshot]:
    """A snapshot of each of ``wanted``, with its ``depth`` newest actors and some actors' rows.

    One statement when no rows are asked for; else five, and one for each 1,000 rows. All of it is
    of one instant. Raises MysqlDown.
    """
    select = " UNION ALL ".join(
        arm
        for index, (kind, target, _) in enumerate(wanted)
        for arm in _select_snapshot(index, kind, target, depth)
    )
    rows: list[list[tuple[int, int, bool]]] = [[] for _ in wanted]
    if not any(actor_ids for _, _, actor_ids in wanted):
        return _read_snapshots(mysql.fetch_all(select) if wanted else (), rows, depth)

    def look(cursor: Cursor) -> list[Snapshot]:
        cursor.execute(select)
        found = cursor.fetchall()
        asked = [
            (index, ReactionKey(*target, kind.name, actor_id))
            for index, (kind, target, actor_ids) in enumerate(wanted)
            for actor_id in actor_ids
        ]
        for start in range(0, len(asked), _ROWS_AT_ONCE):
            part = asked[start : start + _ROWS_AT_ONCE]
            held = read_rows(cursor, [key for _, key in part])
            for index, key in part:
                on, version_us = held.get(key, (False, 0))
                rows[index].append((key.actor_id, version_us, on))
        return _read_snapshots(found, rows, depth)

    return mysql.run_in_snapshot(look)


def _select_snapshot(index: int, kind: Kind, target: Target, depth: int) -> list[str]:
    of_target = f"target_type = '{target.type}' AND target_id = {target.id:d}"
    of_kind = f"{of_target} AND kind = '{kind.name}'"
    return [
        f"(SELECT {index}, 'epoch', 0, {EPOCH_NOW})",
        f"""
        (
            SELECT {index}, 'counter', {kind.total}, {kind.version}
            FROM content_counter
            WHERE {of_target}
        )
        """,
        f"""
        (
            SELECT {index}, 'off', 0, MAX(version)
            FROM reaction FORCE INDEX (by_target)
            WHERE {of_kind}
              AND state = 0
        )
        """,
        f"""
        (
            SELECT {index}, 'on', actor_id, version
            FROM reaction FORCE INDEX (by_target)
            WHERE {of_kind}
              AND state = 1
            ORDER BY version DESC, actor_id DESC LIMIT {depth:d}
        )
        """,
    ]


def _read_snapshots(
    found: Iterable[mysql.Row], rows: Sequence[list[tuple[int, int, bool]]], depth: int
) -> list[Snapshot]:
    count = len(rows)
    total, n, last_version_us = [0] * count, [0] * count, [0] * count
    newest: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for index, what, value, version in found:
        match what:
            case "epoch":
                n[index] += version
            case "counter":
                total[index] = value
                n[index] += version
            case "off":
                last_version_us[index] = max(last_version_us[index], version or 0)
            case "on":
                last_version_us[index] = max(last_version_us[index], version)
                newest[index].append((value, version))
    return [
        Snapshot(
            total[i],
            n[i],
            last_version_us[i],
            sorted(newest[i], key=lambda pair: (-pair[1], -pair[0])),
            len(newest[i]) < depth,
            rows[i],
        )
        for i in range(count)
    ]


def read_counters(wanted: Sequence[tuple[Kind, Target]]) -> list[tuple[int, int]]:
    """(total, n) of each of ``wanted``. One statement. Raises MysqlDown."""
    arms = [f"(SELECT -1, 0, {EPOCH_NOW})"] + [
        f"""
        (
            SELECT {index}, {kind.total}, {kind.version}
            FROM content_counter
            WHERE target_type = '{target.type}'
              AND target_id = {target.id:d}
        )
        """
        for index, (kind, target) in enumerate(wanted)
    ]
    found = mysql.fetch_all(" UNION ALL ".join(arms)) if wanted else []
    epoch = next((version for index, _, version in found if index < 0), 0)
    counters = [(0, epoch)] * len(wanted)
    for index, total, version in found:
        if index >= 0:
            counters[index] = total, epoch + version
    return counters


def read_state(kind: Kind, target: Target, actor_id: int) -> tuple[bool, int]:
    """(whether the actor's row is on, n of the counter), at one instant. One statement.

    Raises MysqlDown.
    """
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
                   SELECT {kind.version}
                   FROM content_counter
                   WHERE target_type = %s
                     AND target_id = %s
               ), 0)
        """,
        (*target, kind.name, actor_id, *target),
    )
    return rows[0][0] == 1, rows[0][1]


def read_viewer_states(wanted: Sequence[tuple[Kind, Target]], actor_id: int) -> list[bool]:
    """Whether the actor's row of each of ``wanted`` is on. One statement. Raises MysqlDown."""
    if not wanted:
        return []
    ids: dict[tuple[str, str], list[int]] = {}
    for kind, target in wanted:
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
    return [(kind.name, *target) in on for kind, target in wanted]


def read_reactors(
    kind: Kind, target: Target, after: Reactor | None, latest: bool, limit: int
) -> list[Reactor]:
    """A page of who is on, in the order of (version, actor), or backwards. Raises MysqlDown."""
    where, args = "", [*target, kind.name]
    sign, order = ("<", "DESC") if latest else (">", "ASC")
    if after is not None:
        where = f" AND (version {sign} %s OR (version = %s AND actor_id {sign} %s))"
        args += [after.version_us, after.version_us, after.actor_id]
    rows = mysql.fetch_all(
        f"""
        SELECT actor_id, version
        FROM reaction FORCE INDEX (by_target)
        WHERE target_type = %s
          AND target_id = %s
          AND kind = %s
          AND state = 1{where}
        ORDER BY version {order}, actor_id {order} LIMIT {limit:d}
        """,
        args,
    )
    return [Reactor(actor_id, version) for actor_id, version in rows]


def read_earliest(kind: Kind, target: Target, limit: int) -> tuple[int, list[Reactor]]:
    """(n of the counter, the earliest who are on), at one instant. One statement.

    Raises MysqlDown.
    """
    of_target = f"target_type = '{target.type}' AND target_id = {target.id:d}"
    found = mysql.fetch_all(
        f"""
        (
            SELECT 0, {EPOCH_NOW} + COALESCE((
                SELECT {kind.version}
                FROM content_counter
                WHERE {of_target}
            ), 0)
        )
        UNION ALL (
            SELECT actor_id, version
            FROM reaction FORCE INDEX (by_target)
            WHERE {of_target}
              AND kind = '{kind.name}'
              AND state = 1
            ORDER BY version, actor_id LIMIT {limit:d}
        )
        """
    )
    [n] = [version for actor_id, version in found if actor_id == 0]
    earliest = [Reactor(actor_id, version) for actor_id, version in found if actor_id > 0]
    return n, sorted(earliest, key=lambda reactor: (reactor.version_us, reactor.actor_id))


def read_reacted(
    kind: Kind, actor_id: int, after: ReactedTarget | None, limit: int
) -> list[ReactedTarget]:
    """A page of what an actor reacted to, newest first by (version, type, id). Raises MysqlDown."""
    where, args = "", [actor_id, kind.name]
    if after is not None:
        where = (
            " AND (version < %s OR (version = %s AND (target_type < %s"
            " OR (target_type = %s AND target_id < %s))))"
        )
        of_type, of_id = after.target
        args += [after.version_us, after.version_us, of_type, of_type, of_id]
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
    return [ReactedTarget(Target(of_type, of_id), version) for of_type, of_id, version in rows]


def read_actors(kind: Kind, target: Target, after_id: int, limit: int) -> list[int]:
    """A page of the actors that are on, by their id. Raises MysqlDown."""
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


@lru_cache(maxsize=64)
def _utc_day(days: int) -> str:
    return datetime.fromtimestamp(days * 86_400, UTC).date().isoformat()
