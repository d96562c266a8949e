"""Reactions in MySQL: the rows, the log, and the reads that Redis cannot serve. Unless stated
otherwise, a function runs one statement; without a cursor it raises MysqlDown.

Keys and versions are rendered into the statements as numbers and validated names (see
``reactions.queues``): for a thousand rows the driver's escaping costs more than the query.

``db_version`` is the version of a counter's row plus the epoch of MySQL. The epoch is raised when
MySQL is restored to an earlier moment, so that versions never repeat.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.observability import record
from plaza.reactions.model import (
    Commit,
    CounterChange,
    EventGroups,
    Kind,
    ReactedTarget,
    ReactionKey,
    ReactionRow,
    Reactor,
    Size,
    Snapshot,
    Target,
)
from plaza.reactions.mysql_sorted_lists import select_rows

VERSIONS_PER_EPOCH = 2**40
EPOCH_NOW = f"(SELECT epoch FROM log_gate WHERE id = 1) * {VERSIONS_PER_EPOCH:d}"
# Neither a time zone nor an hour that comes twice.
_NOW_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
_SELECT_EPOCH = f"(SELECT 'epoch - -', 0, {_NOW_US}, {EPOCH_NOW})"
_ROWS_AT_ONCE = 1000
_ROW = ("r.target_id", "r.actor_id", "r.state", "r.version", "r.bell_position")
LOCK_TIMEOUT_S = 2  # consumers wait behind the exclusive lock of the log
_DAY_US = 86_400_000_000
_Key = tuple[str, str, int]  # a kind, a type, an id


class _CounterRow(NamedTuple):
    """A total, its version without the epoch, and whether the sorted list is complete."""

    total: int = 0
    version: int = 0
    is_sorted: bool = False


class _Rows(NamedTuple):
    """The rows of a statement: the epoch, the time of MySQL, counters, the newest version of a row
    that is off, and (actor, version) of the rows that are on."""

    epoch: int
    read_us: int
    counters: Mapping[_Key, _CounterRow]
    off_us: Mapping[_Key, int]
    on: Mapping[_Key, list[tuple[int, int]]]


class LogLock(NamedTuple):
    """The first version of the epoch, and first_slot -> reign of each master of Redis as the last
    recovery stored them (``reign_guard``)."""

    epoch: int
    reigns: Mapping[int, str]


def share_log_lock(cursor: Cursor) -> LogLock:
    """Lock the log and the reigns, shared, until the commit; return them.

    Call it before an append: when a reader gets the exclusive lock, all earlier appends are
    committed (docs/decisions/0022-read-the-log-behind-a-gate.md).
    """
    rows = cursor.execute(
        """
        SELECT log_gate.epoch, redis_reign.first_slot, redis_reign.reign
        FROM log_gate
        LEFT JOIN redis_reign ON TRUE
        WHERE log_gate.id = 1
        LOCK IN SHARE MODE
        """
    )
    if not rows:
        raise LookupError("log_gate has no row: readers could not wait for this transaction")
    held = cursor.fetchall()
    return LogLock(
        int(held[0][0]) * VERSIONS_PER_EPOCH,
        {first_slot: reign for _, first_slot, reign in held if reign is not None},
    )


def succeed_reign(cursor: Cursor, first_slot: int, predecessor: str, reign: str) -> None:
    """Replace the reign of a master by its successor's, unless another one did."""
    cursor.execute(
        """
        UPDATE redis_reign
        SET reign = %s
        WHERE first_slot = %s AND reign = %s
        """,
        (reign, first_slot, predecessor),
    )


def replace_reigns(reigns: Mapping[int, str]) -> None:
    """Store first_slot -> reign of all masters, behind all transactions that passed the log lock.
    Three statements, six if other reigns were stored. Raises MysqlDown as ``wait_for_log_writers``.

    Then the next run of the recovery begins as after a failover: this process may be connected to
    an earlier master, and be killed before it recovers.
    """

    def replace(cursor: Cursor) -> None:
        take_log_lock(cursor)
        cursor.execute("SELECT first_slot, reign FROM redis_reign")
        if dict(cursor.fetchall()) == reigns:
            return
        cursor.execute(
            "UPDATE redis_epoch SET epoch = 0, recovering_epoch = NULL, recovered_seq = NULL"
        )
        cursor.execute("DELETE FROM redis_reign")
        cursor.executemany(
            "INSERT INTO redis_reign (first_slot, reign) VALUES (%s, %s)", sorted(reigns.items())
        )

    mysql.run_in_transaction(replace)


def read_epoch(cursor: Cursor) -> int:
    """Return the first version of the current epoch."""
    cursor.execute(f"SELECT {EPOCH_NOW}")
    [(epoch,)] = cursor.fetchall()
    return int(epoch)


def raise_epoch() -> int:
    """Raise the epoch by one and return it; if ``log_gate`` has no row, insert it with an epoch
    above all that the log has. One transaction. Raises MysqlDown while writers hold the gate."""

    def work(cursor: Cursor) -> int:
        if cursor.execute("SELECT epoch FROM log_gate WHERE id = 1 FOR UPDATE"):
            cursor.execute("UPDATE log_gate SET epoch = epoch + 1 WHERE id = 1")
        else:
            cursor.execute(
                f"""
                INSERT INTO log_gate (id, epoch)
                SELECT 1, COALESCE(MAX(db_version) DIV {VERSIONS_PER_EPOCH:d}, 0) + 1
                FROM reaction_log
                """
            )
        cursor.execute("SELECT epoch FROM log_gate WHERE id = 1")
        [(epoch,)] = cursor.fetchall()
        return int(epoch)

    epoch = mysql.run_in_transaction(work)
    record("epoch_raised", epoch=epoch)
    return epoch


def wait_for_log_writers() -> None:
    """Wait until all transactions that append to the log are committed or rolled back; later ones
    get a higher seq. Raises MysqlDown when a transaction takes longer than 2 s, three times."""

    mysql.run_in_transaction(take_log_lock)


def take_log_lock(cursor: Cursor) -> None:
    """Take the log lock, exclusively, until the commit. Two statements."""
    cursor.execute("SET SESSION innodb_lock_wait_timeout = %s", (LOCK_TIMEOUT_S,))
    if not cursor.execute("SELECT id FROM log_gate WHERE id = 1 FOR UPDATE"):
        raise LookupError("log_gate has no row: writers cannot be waited for")


def read_log_head() -> int:
    """Return the highest seq in the log, 0 when it is empty."""
    return int(mysql.fetch_all("SELECT COALESCE(MAX(seq), 0) FROM reaction_log")[0][0])


def find_log_page_end(cursor: Cursor, after_seq: int, head: int, size: int) -> int:
    """Return the seq at which a page of ``size`` events ends, ``head`` at the most. One statement.

    Seqs have gaps of any width.
    """
    cursor.execute(
        f"""
        SELECT COUNT(*), MAX(seq)
        FROM (
            SELECT seq
            FROM reaction_log FORCE INDEX (by_seq)
            WHERE seq > %s
              AND seq <= %s
            ORDER BY seq LIMIT {size:d}
        ) AS page
        """,
        (after_seq, head),
    )
    [(count, last)] = cursor.fetchall()
    return int(last) if count == size else head


def read_latest_targets(limit: int) -> list[tuple[str, Target]]:
    """Return (kind, target) of the ``limit`` newest events of the log, newest first."""
    rows = mysql.fetch_all(
        f"""
        SELECT kind, target_type, target_id
        FROM reaction_log FORCE INDEX (by_seq)
        ORDER BY seq DESC LIMIT {limit:d}
        """
    )
    return [(kind, Target(*target)) for kind, *target in rows]


def read_hottest_targets(limit: int) -> list[tuple[str, Target]]:
    """Return (kind, target) of the most events of today and yesterday (UTC), the hottest first.
    Reads the log of these days."""
    rows = mysql.fetch_all(
        f"""
        SELECT kind, target_type, target_id
        FROM reaction_log
        WHERE create_date >= UTC_DATE() - INTERVAL 1 DAY
        GROUP BY target_type, target_id, kind
        ORDER BY COUNT(*) DESC, target_id DESC LIMIT {limit:d}
        """
    )
    return [(kind, Target(*target)) for kind, *target in rows]


def render_log(changes: Sequence[CounterChange], commits: Sequence[Commit]) -> str:
    """Render the entries of ``changes`` as rows of the log. ``commits``: the commit of each of
    ``changes``; each row has its db_version and the total after it."""
    return ",".join(
        [
            f"{key},{event.key[3]:d},{version_us:d},{event.on:d},{change_by:d},{counted}"
            f",'{_utc_day(version_us // _DAY_US)}',{sql.render_request_id(event.request_id)})"
            for change, commit in zip(changes, commits, strict=True)
            for key, counted in ((_begin_row(change), f"{commit.db_version:d},{commit.total:d}"),)
            for event, version_us, change_by in change.entries
        ]
    )


def append_log(cursor: Cursor, rows: str) -> None:
    """Append the rows of ``render_log`` to the log, each event once."""
    mysql.send(
        cursor,
        f"""
        INSERT IGNORE INTO reaction_log (target_type, target_id, kind, actor_id, version, state,
            change_by, db_version, total, create_date, request_id)
        VALUES {rows}
        """,
    )


def _begin_row(change: CounterChange) -> str:
    """Render the first three columns of the rows of a target and kind."""
    return "('%s',%d,'%s'" % (*change.target, change.kind.name)


def read_rows(cursor: Cursor, keys: Collection[ReactionKey]) -> dict[ReactionKey, ReactionRow]:
    """Return the rows of ``keys`` that exist. One statement."""
    if not keys:
        return {}
    request_rows(cursor, keys)
    return receive_rows(cursor)


def request_rows(cursor: Cursor, keys: Iterable[ReactionKey]) -> None:
    """Send the statement that reads the rows of ``keys``; one primary key look-up for each.

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
    mysql.send(cursor, " UNION ALL ".join(arms))


def receive_rows(cursor: Cursor) -> dict[ReactionKey, ReactionRow]:
    """Return the rows that exist of those that ``request_rows`` requested."""
    return {
        ReactionKey(target_type, target_id, kind, actor_id): ReactionRow(
            state == 1, version, bell_position
        )
        for target_type, kind, rows in mysql.receive(cursor)
        for target_id, actor_id, state, version, bell_position in sql.split_rows(rows)
    }


def render_rows(groups: EventGroups) -> dict[ReactionKey, str]:
    """Render the newest event of each key as a row, without its bell_position."""
    return {
        event.key: "%s,%d,%d,%d" % (of, actor_id, event.on, at_us)
        for (target_type, target_id, kind), group in groups
        for of in (f"'{target_type}',{target_id:d},'{kind}'",)
        for (actor_id, at_us), event in group
    }


def upsert_rows(
    cursor: Cursor,
    rows: Mapping[ReactionKey, str],
    bell_positions: Mapping[tuple[str, int, str, int], int] | None = None,
) -> None:
    """Store rendered rows where they are newer than the existing ones. ``bell_positions``: key of a
    row -> its position, the present one of a row that is not newer, 0 without an entry; None: all
    stay as they are. MySQL assigns from left to right, so the version is assigned last."""
    column, position = "", ""
    values = "),(".join(rows.values())
    if bell_positions is not None:
        at = bell_positions.get
        values = "),(".join(["%s,%d" % (row, at(key, 0)) for key, row in rows.items()])
        column, position = ", bell_position", "bell_position = VALUES(bell_position),"
    mysql.send(
        cursor,
        f"""
        INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version{column})
        VALUES ({values})
        ON DUPLICATE KEY UPDATE
            state = IF(VALUES(version) > reaction.version, VALUES(state), reaction.state),
            {position}
            version = GREATEST(reaction.version, VALUES(version))
        """,
    )


def read_counters(pairs: Sequence[tuple[Kind, Target]]) -> list[tuple[int, int]]:
    """Return (total, db_version) of each of ``pairs``."""
    rows = _read_counters(pairs)
    counters = [_counter_of(rows, pair) for pair in pairs]
    return [(counter.total, rows.epoch + counter.version) for counter in counters]


def read_sizes(pairs: Sequence[tuple[Kind, Target]]) -> dict[tuple[Kind, Target], Size]:
    """Return what there is to read of each of ``pairs``."""
    rows = _read_counters(pairs)
    return {w: Size(c.total, c.is_sorted) for w in pairs for c in (_counter_of(rows, w),)}


def _read_counters(pairs: Sequence[tuple[Kind, Target]]) -> _Rows:
    arms = [_SELECT_EPOCH, *starmap(_select_counters, _group(pairs))]
    return _sort_rows(mysql.fetch_all(" UNION ALL ".join(arms)) if pairs else ())


def read_snapshots(
    requests: Sequence[tuple[Kind, Target, Sequence[int]]],
    depth: int,
    sizes: Mapping[tuple[Kind, Target], Size] | None = None,
) -> list[Snapshot]:
    """Return a snapshot of each (kind, target, actors): its newest actors, and rows of ``actors``.

    All are of one instant, with ``depth`` newest actors. One statement without actors; else five,
    and one for each 1,000 actors. With ``sizes``, a statement of many targets has few parts; one
    more reads targets whose sorted list has ended since.
    """
    pairs, sizes = [(kind, target) for kind, target, _ in requests], sizes or {}
    if not any(actor_ids for _, _, actor_ids in requests):
        snapshots = _read_states(mysql.fetch_all, pairs, depth, sizes)
        return [snapshots[pair] for pair in pairs]

    def read(cursor: Cursor) -> list[Snapshot]:
        def fetch_all(select: str) -> Sequence[mysql.Row]:
            cursor.execute(select)
            return cursor.fetchall()

        snapshots = _read_states(fetch_all, pairs, depth, sizes)
        rows: list[list[tuple[int, int, bool]]] = [[] for _ in requests]
        keys = [
            (index, ReactionKey(*target, kind.name, actor_id))
            for index, (kind, target, actor_ids) in enumerate(requests)
            for actor_id in actor_ids
        ]
        for start in range(0, len(keys), _ROWS_AT_ONCE):
            part = keys[start : start + _ROWS_AT_ONCE]
            existing = read_rows(cursor, [key for _, key in part])
            for index, key in part:
                on, version_us, _ = existing.get(key, ReactionRow(False, 0))
                rows[index].append((key.actor_id, version_us, on))
        return [
            snapshots[w]._replace(rows=of_actors) for w, of_actors in zip(pairs, rows, strict=True)
        ]

    return mysql.run_in_snapshot(read)


def _read_states(
    fetch_all: Callable[[str], Sequence[mysql.Row]],
    pairs: Sequence[tuple[Kind, Target]],
    depth: int,
    sizes: Mapping[tuple[Kind, Target], Size],
) -> dict[tuple[Kind, Target], Snapshot]:
    """Return the snapshots of ``pairs`` without rows of requested actors. Those whose sorted list
    has ended since ``sizes`` were read are read once more: both sources, of which one is right."""
    if not pairs:
        return {}
    arms = [_SELECT_EPOCH, *starmap(_select_counters, _group(pairs))]
    arms += _select_sized([w for w in pairs if w in sizes], sizes, depth)
    for kind, target in pairs:
        if (kind, target) not in sizes:
            arms += _select_unsized(kind, target, depth)
    rows = _sort_rows(fetch_all(" UNION ALL ".join(arms)))
    ended = [
        w for w in pairs if w in sizes and sizes[w].is_sorted and not _counter_of(rows, w).is_sorted
    ]
    return {w: _snapshot_of(rows, w, depth) for w in pairs} | _read_states(
        fetch_all, ended, depth, {}
    )


def _group(pairs: Iterable[tuple[Kind, Target]]) -> list[tuple[Kind, str, list[int]]]:
    """Return the ids of each kind and type of ``pairs``."""
    ids: dict[tuple[Kind, str], list[int]] = {}
    for kind, target in pairs:
        ids.setdefault((kind, target.type), []).append(target.id)
    return [(*of, of_both) for of, of_both in ids.items()]


def _select_counters(kind: Kind, target_type: str, target_ids: Iterable[int]) -> str:
    of = f"{kind.name} {target_type}"
    return f"""
        (
            SELECT IF({kind.sorted} = {kind.version}, 'sorted {of}', 'counter {of}'),
                   target_id, {kind.total}, {kind.version}
            FROM content_counter FORCE INDEX (PRIMARY)
            WHERE target_type = '{target_type}'
              AND target_id IN ({sql.render_ids(target_ids)})
        )
        """


def _select_sized(
    pairs: Iterable[tuple[Kind, Target]], sizes: Mapping[tuple[Kind, Target], Size], depth: int
) -> Iterator[str]:
    """Return SELECTs of the rows of targets: three for each kind, type and source, and one for each
    target that has more than ``depth`` actors."""
    for table, of_table in (
        ("reaction", [w for w in pairs if not sizes[w].is_sorted]),
        ("sorted_reaction", [w for w in pairs if sizes[w].is_sorted]),
    ):
        for kind, target_type, target_ids in _group(of_table):
            of = f"{kind.name} {target_type}"
            where = f"target_type = '{target_type}' AND kind = '{kind.name}'"
            on = f"SELECT 'on {of}', target_id, actor_id, version FROM {table} WHERE {where}"
            yield f"""
                (
                    SELECT 'off {of}', listed.target_id, 0, (
                        SELECT version
                        FROM {table}
                        WHERE {where}
                          AND target_id = listed.target_id
                          AND state = 0
                        ORDER BY version DESC LIMIT 1
                    )
                    FROM JSON_TABLE('[{sql.render_ids(target_ids)}]', '$[*]'
                        COLUMNS (target_id BIGINT PATH '$')) AS listed
                )
                """
            totals = {i: sizes[kind, Target(target_type, i)].total for i in target_ids}
            if small := [i for i, total in totals.items() if total < depth]:
                yield f"({on} AND target_id IN ({sql.render_ids(small)}) AND state = 1)"
            for target_id in totals.keys() - set(small):
                yield f"({on} AND target_id = {target_id:d} AND state = 1 {_newest(depth)})"


def _select_unsized(kind: Kind, target: Target, depth: int) -> Iterator[str]:
    """Return SELECTs of the rows of a target from both sources."""
    of = f"{kind.name} {target.type}"
    off = f"'off {of}', {target.id:d}, 0, MAX(version)"
    on = f"'on {of}', {target.id:d}, actor_id, version"
    for select in select_rows(kind, target, off, "state = 0"):
        yield f"({select})"
    for select in select_rows(kind, target, on, "state = 1"):
        yield f"({select} {_newest(depth)})"


def _newest(depth: int) -> str:
    return f"ORDER BY version DESC, actor_id DESC LIMIT {depth:d}"


def _sort_rows(rows: Iterable[mysql.Row]) -> _Rows:
    """Sort the rows of a statement, (what, target, value, version), by what they are."""
    epoch, read_us = 0, 0
    counters: dict[_Key, _CounterRow] = {}
    off_us: dict[_Key, int] = {}
    on: dict[_Key, list[tuple[int, int]]] = {}
    for what, target_id, value, version in rows:
        arm, kind, target_type = what.split()
        key = kind, target_type, target_id
        match arm:
            case "epoch":
                epoch, read_us = version, value
            case "counter" | "sorted":
                counters[key] = _CounterRow(value, version, arm == "sorted")
            case "off":
                off_us[key] = max(off_us.get(key, 0), version or 0)
            case "on":
                on.setdefault(key, []).append((value, version))
    return _Rows(epoch, read_us, counters, off_us, on)


def _counter_of(rows: _Rows, pair: tuple[Kind, Target]) -> _CounterRow:
    return rows.counters.get((pair[0].name, *pair[1]), _CounterRow())


def _snapshot_of(rows: _Rows, pair: tuple[Kind, Target], depth: int) -> Snapshot:
    key, counter = (pair[0].name, *pair[1]), _counter_of(rows, pair)
    newest = sorted(rows.on.get(key, ()), key=lambda reaction: (-reaction[1], -reaction[0]))
    last_us = max((rows.off_us.get(key, 0), *(version for _, version in newest[:1])))
    return Snapshot(
        counter.total,
        rows.epoch + counter.version,
        last_us,
        newest[:depth],
        len(newest) < depth,
        [],
        rows.read_us,
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
                   SELECT {kind.version}
                   FROM content_counter
                   WHERE target_type = %s
                     AND target_id = %s
               ), 0)
        """,
        (*target, kind.name, actor_id, *target),
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
            SELECT {kind.version}
            FROM content_counter
            WHERE target_type = '{target.type}'
              AND target_id = {target.id:d}
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


@lru_cache(maxsize=64)
def _utc_day(days: int) -> str:
    return datetime.fromtimestamp(days * 86_400, UTC).date().isoformat()
