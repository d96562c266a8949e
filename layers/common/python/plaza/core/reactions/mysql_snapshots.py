"""Counters and snapshots of targets in MySQL, from which Redis is loaded. Unless stated otherwise,
a function runs one statement and raises MysqlDown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple

from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import ReactionKey, ReactionRow, Size, Snapshot, Target
from plaza.core.reactions.mysql_rows import EPOCH_NOW, read_rows
from plaza.core.reactions.mysql_sorted_lists import select_rows
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor

# Neither a time zone nor an hour that comes twice.
_NOW_US = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
_SELECT_EPOCH = f"(SELECT 'epoch - -', 0, {_NOW_US}, {EPOCH_NOW})"
_ROWS_AT_ONCE = 1000
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
            SELECT IF(sorted_at > 0 AND sorted_at = version, 'sorted {of}', 'counter {of}'),
                   target_id, total, version
            FROM counter FORCE INDEX (PRIMARY)
            WHERE target_type = '{target_type}'
              AND kind = '{kind.name}'
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
