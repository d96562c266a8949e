"""Counters and the rows that they count, in ranges of ids.

A counter changes in the transaction of its rows, so one SELECT that reads both is exact even during
writes. Statements contain only names of Plaza's and integers, never text of a client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plaza.core.counters import COMMENT, CounterKey
from plaza.core.reactions.drift import TARGET_KINDS, USER_TOTALS, MysqlState
from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import Fingerprint, Target
from plaza.core.reactions.mysql_rows import EPOCH_NOW
from plaza.core.reactions.mysql_sorted_lists import select_rows
from plaza.infra.contexts import offers
from plaza.infra.derived.comparisons import CountedRows, RangeCounts
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.id_ranges import (
    Source,
    estimate_left,
    estimate_rows,
    find_range_end,
    read_end,
    select_probes,
)
from plaza.infra.mysql.mysql import Cursor

MAX_RELATIONS = 50_000
_MAX_COUNTERS = 10_000
_MAX_OWNED = 2_000
_SAMPLED = 1_000
_RECEIVED = [kind.received for kind in KINDS.values() if kind.received and not kind.given]
_REACTIONS = ", ".join(
    f"'{name}'" for name, kind in KINDS.items() if kind.received and not kind.given
)
_GIVEN = ", ".join(f"'{name}'" for name, kind in KINDS.items() if kind.given)
_COUNTER = "counter "  # begins the first column of a row of ``counter``, before its kind
_MOD = 1_000_000_000
_COUNT_USERS = sql.load_sql(Path(__file__).with_name("sql") / "count_users.sql")


_Numbers = Mapping[tuple[str, Target], tuple[int, ...]]


class CountedState(NamedTuple):
    """MySQL's state of a target and kind; ``rows``: None if they were not counted."""

    has_counter: bool
    total: int
    version: int
    rows: int | None


def _list_counted() -> list[CountedRows]:
    """Return the rows of other contexts that counters count."""
    return [counted for _, counted in offers("counts")]


def _list_selects(target_type: str, kind: str) -> list[str]:
    """Return the SELECTs of other contexts for counters of a type and kind."""
    return [
        select
        for counted in _list_counted()
        for select in counted.of_targets.get((target_type, kind), ())
    ]


def find_target_range_end(target_type: str, after_id: int) -> int:
    """Return the last id of the next range of targets: about 50,000 relations, or one target.

    One statement. Raises MysqlDown.
    """
    of_type = f"target_type = '{target_type}'"
    sources = [
        Source("reaction", "PRIMARY", of_type, "target_id", MAX_RELATIONS),
        Source("counter", "PRIMARY", of_type, "target_id", _MAX_COUNTERS),
        *(
            Source(*source, MAX_RELATIONS)
            for counted in _list_counted()
            for source in counted.target_ranges.get(target_type, ())
        ),
    ]
    return find_range_end(sources, after_id)


def count_targets(target_type: str, after_id: int, last_id: int) -> RangeCounts:
    """Read counters and count rows of a range of targets. One statement. Raises MysqlDown."""
    return _count_targets(target_type, f"BETWEEN {after_id + 1:d} AND {last_id:d}")


def count_given_targets(target_type: str, ids: Sequence[int]) -> RangeCounts:
    """Read counters and count rows of some targets. One statement. Raises MysqlDown."""
    return _count_targets(target_type, f"IN ({sql.render_ids(ids)})")


def _count_targets(target_type: str, within: str) -> RangeCounts:
    arms = [
        _select_reactions(target_type, within),
        *(
            select.format(within=within, prefix="")
            for kind in TARGET_KINDS
            for select in _list_selects(target_type, kind)
        ),
        f"""
        SELECT CONCAT('{_COUNTER}', kind), target_id, total
        FROM counter FORCE INDEX (PRIMARY)
        WHERE target_type = '{target_type}'
          AND target_id {within}
        """,
    ]
    return _read_targets(mysql.fetch_all(" UNION ALL ".join(arms)))


def read_target_sizes(target_type: str, ids: Sequence[int]) -> dict[int, int]:
    """Return target -> number of its rows by its counter. One statement. Raises MysqlDown."""
    return _read_sizes(
        f"""
        SELECT target_id, SUM(total)
        FROM counter
        WHERE target_type = '{target_type}'
          AND target_id IN ({sql.render_ids(ids)})
        GROUP BY target_id
        """
    )


def read_user_sizes(ids: Sequence[int]) -> dict[int, int]:
    """Return user -> number of rows that count, by the counter. One statement. Raises MysqlDown."""
    return _read_sizes(
        f"""
        SELECT user_id, {" + ".join(USER_TOTALS.values())}
        FROM user_counter
        WHERE user_id IN ({sql.render_ids(ids)})
        """
    )


def _read_sizes(select: str) -> dict[int, int]:
    return {subject_id: max(0, int(rows)) for subject_id, rows in mysql.fetch_all(select)}


def estimate_targets(target_type: str, after_id: int) -> int:
    """Return about how many targets of a type follow an id. Two statements. Raises MysqlDown."""
    where = f"target_type = '{target_type}' AND target_id > {after_id:d}"
    counters = estimate_rows("counter", where)
    # A target has a counter of each of its kinds; the next ones say how many.
    [(targets, sampled)] = mysql.fetch_all(
        f"""
        SELECT COUNT(DISTINCT target_id), COUNT(*)
        FROM (
            SELECT target_id
            FROM counter FORCE INDEX (PRIMARY)
            WHERE {where}
            ORDER BY target_id LIMIT {_SAMPLED:d}
        ) AS sampled
        """
    )
    return -(-counters * targets // sampled) if sampled else counters


def estimate_users(after_id: int) -> int:
    """Return about how many users follow an id. One statement. Raises MysqlDown."""
    return estimate_left("user_counter", "user_id", after_id)


def find_changed_targets(target_type: str, after_seq: int, until_seq: int) -> list[int]:
    """Return the targets of a type in a page of the log. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT DISTINCT target_id
        FROM reaction_log FORCE INDEX (by_seq)
        WHERE {_within(after_seq, until_seq)}
          AND target_type = '{target_type}'
        """
    )
    return [target_id for (target_id,) in rows]


def find_changed_users(after_seq: int, until_seq: int) -> list[int]:
    """Return the users whose totals a page of the log changed: targets, owners of targets, and
    actors of kinds that count for them. One statement. Raises MysqlDown."""
    changed = f"""(
            SELECT DISTINCT target_type, target_id
            FROM reaction_log FORCE INDEX (by_seq)
            WHERE {_within(after_seq, until_seq)}
        ) AS changed"""
    selects = [
        f"""
        SELECT target_id
        FROM reaction_log FORCE INDEX (by_seq)
        WHERE {_within(after_seq, until_seq)}
          AND target_type = 'user'
        """,
        f"""
        SELECT actor_id
        FROM reaction_log FORCE INDEX (by_seq)
        WHERE {_within(after_seq, until_seq)}
          AND kind IN ({_GIVEN})
        """,
        f"""
        SELECT t.owner_id
        FROM {changed}
        STRAIGHT_JOIN external_target AS t
            ON  t.type = changed.target_type
            AND t.id = changed.target_id
        WHERE t.owner_id IS NOT NULL
        """,
        *(counted.owners.format(changed=changed) for counted in _list_counted()),
    ]
    return [user_id for (user_id,) in mysql.fetch_all(" UNION ".join(selects))]


def _within(after_seq: int, until_seq: int) -> str:
    return f"seq > {after_seq:d} AND seq <= {until_seq:d}"


def recount_targets(cursor: Cursor, keys: Iterable[CounterKey]) -> dict[CounterKey, int]:
    """Count what the counters of ``keys`` must be. One statement.

    Exact while they are locked, because each writer of a row locks its counter first.
    """
    right = dict.fromkeys(sorted(keys), 0)
    ids: dict[tuple[str, str], list[int]] = {}
    for target_type, target_id, kind in right:
        ids.setdefault((target_type, kind), []).append(target_id)
    arms = []
    for (target_type, kind), of_kind in ids.items():
        within, prefix = f"IN ({sql.render_ids(of_kind)})", f"'{target_type}', "
        if kind != COMMENT:
            arms.append(_select_reactions(target_type, within, kind, prefix))
        arms += [
            select.format(within=within, prefix=prefix)
            for select in _list_selects(target_type, kind)
        ]
    if arms:
        cursor.execute(" UNION ALL ".join(arms))
        for target_type, kind, target_id, count in cursor:
            right[target_type, target_id, kind] += int(count)
    return right


def find_user_range_end(after_id: int) -> int:
    """Return the last id of the next range of users, by reactions given, received, and content.

    One statement. Raises MysqlDown.
    """
    sources = [
        Source("reaction", "PRIMARY", "target_type = 'user'", "target_id", MAX_RELATIONS),
        Source("reaction", "by_actor", "TRUE", "actor_id", MAX_RELATIONS),
        Source("external_target", "by_owner", "TRUE", "owner_id", _MAX_OWNED),
        *(Source(*s, _MAX_OWNED) for counted in _list_counted() for s in counted.user_ranges),
    ]
    # Reactions received are taken from the counters: a wrong one only makes a range longer.
    received = " + ".join(_RECEIVED)
    arms = [
        *select_probes(sources, after_id),
        f"""
        (
            SELECT -1, user_id, {received}
            FROM user_counter FORCE INDEX (PRIMARY)
            WHERE user_id > {after_id:d}
            ORDER BY user_id LIMIT {_MAX_OWNED:d}
        )
        """,
    ]
    rows = mysql.fetch_all(" UNION ALL ".join(arms))
    last_id, work = read_end(row for row in rows if row[0] >= 0), 0
    users = sorted((user_id, int(count)) for source, user_id, count in rows if source < 0)
    for number, (user_id, count) in enumerate(users):
        work += max(0, count)
        if work > MAX_RELATIONS:
            return min(last_id, int(user_id) - 1 if number else int(user_id))
    return min(last_id, int(users[-1][0])) if len(users) == _MAX_OWNED else last_id


def select_user_counts(within: str) -> str:
    """Return the statement of count_users.sql for the users ``within``, with all their totals, and
    the rows of other contexts."""
    return " UNION ALL ".join(
        statement.format(
            within=within,
            totals=", ".join(USER_TOTALS.values()),
            zeros=", 0" * (len(USER_TOTALS) - 1),
            received=_REACTIONS,
        )
        for statement in (_COUNT_USERS, *(counted.of_users for counted in _list_counted()))
    )


def count_users(after_id: int, last_id: int) -> RangeCounts:
    """Read counters and count rows of a range of users. One statement. Raises MysqlDown."""
    return _count_users(f"BETWEEN {after_id + 1:d} AND {last_id:d}")


def count_given_users(ids: Sequence[int]) -> RangeCounts:
    """Read counters and count rows of some users. One statement. Raises MysqlDown."""
    return _count_users(f"IN ({sql.render_ids(ids)})")


def _count_users(within: str) -> RangeCounts:
    select = select_user_counts(within)
    counters: dict[tuple[int, str], int] = {}
    rows: dict[tuple[int, str], int] = {}
    ids = set()
    for source, user_id, *numbers in mysql.fetch_all(select):
        ids.add(user_id)
        if not source:
            counters |= {
                (user_id, what): n for what, n in zip(USER_TOTALS, numbers, strict=True) if n
            }
        else:
            rows[user_id, source] = rows.get((user_id, source), 0) + numbers[0]
    return RangeCounts(counters, rows, len(ids), 0)


def recount_users(cursor: Cursor, user_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """Count what the counters of users must be, as ``recount_targets``. One statement."""
    right = {user_id: dict.fromkeys(USER_TOTALS.values(), 0) for user_id in user_ids}
    if user_ids:
        cursor.execute(select_user_counts(f"IN ({sql.render_ids(user_ids)})"))
        for source, user_id, count, *_ in cursor:
            if source:
                right[user_id][USER_TOTALS[source]] += int(count)
    return right


def read_counted(
    pairs: Sequence[tuple[Kind, Target]], counted: Collection[Target]
) -> list[CountedState]:
    """Return the counter of each of ``pairs``, and the number of rows if it is in ``counted``.

    One statement. Raises MysqlDown.
    """
    arms = [
        f"(SELECT 'epoch', '', 0, {EPOCH_NOW}, 0, 0)",
        *_select_counters(target for _, target in pairs),
        *(
            f"""
            (
                SELECT kind, '{target_type}', target_id, COUNT(*), 0, 0
                FROM reaction FORCE INDEX (PRIMARY)
                WHERE target_type = '{target_type}'
                  AND target_id IN ({numbers})
                  AND state = 1
                GROUP BY target_id, kind
            )
            """
            for target_type, numbers in sql.render_ids_by_type(counted).items()
        ),
    ]
    epoch, counters, others = _read_arms(mysql.fetch_all(" UNION ALL ".join(arms)))
    states = []
    for kind, target in pairs:
        total, version = counters.get((kind.name, target), (0, 0))
        [number, *_] = others.get((kind.name, target), (0,))
        rows = number if target in counted else None
        states.append(CountedState((kind.name, target) in counters, total, epoch + version, rows))
    return states


def read_states(requests: Sequence[tuple[Kind, Target, int | None]]) -> list[MysqlState]:
    """Return the state of each (kind, target, floor version), in their order.

    The fingerprint covers active rows above the floor; None skips it. One statement. Raises
    MysqlDown.
    """
    sums = f"COUNT(*), SUM(MOD(actor_id, {_MOD})), SUM(MOD(version, {_MOD}))"
    arms: list[str] = []
    whole: dict[tuple[str, str], list[int]] = {}
    for kind, target, floor_us in requests:
        if floor_us == 0:
            whole.setdefault((kind.name, target.type), []).append(target.id)
        elif floor_us is not None:
            sums_of = f"'{kind.name}', '{target.type}', {target.id:d}, {sums}"
            above = f"state = 1 AND version > {floor_us:d}"
            arms += [
                f"({select} HAVING COUNT(*) > 0)"
                for select in select_rows(kind, target, sums_of, above)
            ]
    for (name, target_type), ids in whole.items():
        arms.append(
            f"""
            (
                SELECT '{name}', '{target_type}', target_id, {sums}
                FROM reaction FORCE INDEX (PRIMARY)
                WHERE target_type = '{target_type}'
                  AND target_id IN ({sql.render_ids(ids)})
                  AND kind = '{name}'
                  AND state = 1
                GROUP BY target_id
            )
            """
        )
    arms += _select_counters(target for _, target, _ in requests)
    arms.append(f"(SELECT 'epoch', '', 0, {EPOCH_NOW}, 0, 0)")
    epoch, counters, others = _read_arms(mysql.fetch_all(" UNION ALL ".join(arms)))
    states = []
    for kind, target, _ in requests:
        key = kind.name, target
        total, version = counters.get(key, (0, 0))
        newest = Fingerprint(*others.get(key, (0, 0, 0)))
        states.append(MysqlState(key in counters, total, epoch + version, newest))
    return states


def read_comments(post_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """Return post -> (comments, version) of the counters. One statement. Raises MysqlDown."""
    rows = mysql.fetch_all(
        f"""
        SELECT target_id, total, version
        FROM counter
        WHERE target_type = 'post'
          AND target_id IN ({sql.render_ids(post_ids)})
          AND kind = '{COMMENT}'
        """
    )
    return dict.fromkeys(post_ids, (0, 0)) | {i: (total, version) for i, total, version in rows}


def read_newest_versions(
    requests: Sequence[tuple[Kind, Target, int]], limit: int
) -> list[dict[int, int]]:
    """Return actor -> version of active rows above a version, the newest ``limit`` of each target.

    One statement. Raises MysqlDown.
    """
    arms = [
        f"({select} ORDER BY version DESC LIMIT {limit:d})"
        for i, (kind, target, floor_us) in enumerate(requests)
        for select in select_rows(
            kind, target, f"{i}, actor_id, version", f"state = 1 AND version > {floor_us:d}"
        )
    ]
    return _fetch_versions(arms, len(requests))


def read_active_versions(
    requests: Sequence[tuple[Kind, Target, Sequence[int]]],
) -> list[dict[int, int]]:
    """Return actor -> version of each target's given actors whose row is active.

    One statement. Raises MysqlDown.
    """
    arms = [
        f"""
        (
            SELECT {i}, actor_id, version
            FROM reaction FORCE INDEX (PRIMARY)
            WHERE target_type = '{target.type}'
              AND target_id = {target.id:d}
              AND kind = '{kind.name}'
              AND state = 1
              AND actor_id IN ({sql.render_ids(actor_ids)})
        )
        """
        for i, (kind, target, actor_ids) in enumerate(requests)
    ]
    return _fetch_versions(arms, len(requests))


def _fetch_versions(arms: Sequence[str], count: int) -> list[dict[int, int]]:
    versions: list[dict[int, int]] = [{} for _ in range(count)]
    for index, actor_id, version in mysql.fetch_all(" UNION ALL ".join(arms)) if arms else ():
        versions[index][actor_id] = version
    return versions


def _select_reactions(target_type: str, within: str, kind: str = "", prefix: str = "") -> str:
    """Build a SELECT of (kind, id, how many) of one kind or of all."""
    of_kind = f"AND kind = '{kind}'" if kind else ""
    return f"""
        SELECT {prefix}kind, target_id, COUNT(*)
        FROM reaction FORCE INDEX (PRIMARY)
        WHERE target_type = '{target_type}'
          AND target_id {within} {of_kind}
          AND state = 1
        GROUP BY target_id, kind
        """


def _read_targets(target_rows: Iterable[tuple[Any, ...]]) -> RangeCounts:
    counters: dict[tuple[int, str], int] = {}
    rows: dict[tuple[int, str], int] = {}
    ids, relations = set(), 0
    for what, target_id, number in target_rows:
        ids.add(target_id)
        kind = what.removeprefix(_COUNTER)
        if kind not in TARGET_KINDS:
            continue
        if kind != what:
            counters[target_id, kind] = number
        else:
            rows[target_id, kind] = rows.get((target_id, kind), 0) + number
            relations += number if kind in KINDS else 0
    counters, rows = ({of: n for of, n in by.items() if n} for by in (counters, rows))
    return RangeCounts(counters, rows, len(ids), relations)


def _select_counters(targets: Iterable[Target]) -> list[str]:
    return [
        f"""
        (
            SELECT CONCAT('{_COUNTER}', kind), target_type, target_id, total, version, 0
            FROM counter FORCE INDEX (PRIMARY)
            WHERE target_type = '{target_type}'
              AND target_id IN ({numbers})
        )
        """
        for target_type, numbers in sql.render_ids_by_type(sorted(set(targets))).items()
    ]


def _read_arms(rows: Iterable[mysql.Row]) -> tuple[int, _Numbers, _Numbers]:
    """Return the epoch, (total, version) of the counters, and the numbers of the other rows."""
    epoch = 0
    counters: dict[tuple[str, Target], tuple[int, ...]] = {}
    others: dict[tuple[str, Target], tuple[int, ...]] = {}
    for name, target_type, target_id, *numbers in rows:
        kind = name.removeprefix(_COUNTER)
        if name == "epoch":
            epoch = int(numbers[0])
        elif kind == name:
            others[kind, Target(target_type, target_id)] = tuple(int(n or 0) for n in numbers)
        else:
            counters[kind, Target(target_type, target_id)] = tuple(map(int, numbers[:2]))
    return epoch, counters, others
