"""Counters and the rows that they count, in ranges of ids.

A counter changes in the transaction of its rows, so one SELECT that reads both is exact even during
writes. Statements contain only names of Plaza's and integers, never text of a client.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from plaza.core.counters import COMMENT, CounterKey
from plaza.core.reactions import KINDS, Kind, Target, inspection
from plaza.core.reactions.kinds import CONTENT_TYPES
from plaza.core.reactions.model import Fingerprint
from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.operate.reconciliation import mysql_cycles
from plaza.operate.reconciliation.model import (
    MAX_ID,
    SHOP_TOTALS,
    TARGET_KINDS,
    USER_TOTALS,
    MysqlState,
)

MAX_RELATIONS = 50_000
_MAX_COUNTERS = 10_000
_MAX_TEXTS = 2_000
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


class _Source(NamedTuple):
    """A table of which one range of ids may contain at most ``max_rows``."""

    table: str
    index_name: str
    where: str
    column: str
    max_rows: int


class RangeCounts(NamedTuple):
    """Counters, and numbers of rows, by (id, what is counted), without zeros.

    ``subjects``: number of ids; ``relations``: number of reactions that were counted.
    """

    counters: dict[tuple[int, str], int]
    rows: dict[tuple[int, str], int]
    subjects: int
    relations: int


class CountedState(NamedTuple):
    """MySQL's state of a target and kind; ``rows``: None if they were not counted."""

    has_counter: bool
    total: int
    version: int
    rows: int | None


def find_target_range_end(target_type: str, after_id: int) -> int:
    """Return the last id of the next range of targets: about 50,000 relations, or one target.

    One statement. Raises MysqlDown.
    """
    of_type = f"target_type = '{target_type}'"
    sources = [
        _Source("reaction", "PRIMARY", of_type, "target_id", MAX_RELATIONS),
        _Source("counter", "PRIMARY", of_type, "target_id", _MAX_COUNTERS),
    ]
    if target_type == "post":
        comments = "content_type = 'comment'"
        sources.append(_Source("content", "by_parent", comments, "parent_id", MAX_RELATIONS))
    return _find_range_end(mysql.fetch_all(" UNION ALL ".join(_select_probes(sources, after_id))))


def count_targets(target_type: str, after_id: int, last_id: int) -> RangeCounts:
    """Read counters and count rows of a range of targets. One statement. Raises MysqlDown."""
    return _count_targets(target_type, f"BETWEEN {after_id + 1:d} AND {last_id:d}")


def count_given_targets(target_type: str, ids: Sequence[int]) -> RangeCounts:
    """Read counters and count rows of some targets. One statement. Raises MysqlDown."""
    return _count_targets(target_type, f"IN ({sql.render_ids(ids)})")


def _count_targets(target_type: str, within: str) -> RangeCounts:
    arms = [
        _select_reactions(target_type, within),
        *(_select_comments(within) if target_type == "post" else ()),
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
    counters = mysql_cycles.estimate_rows("counter", where)
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
    return mysql_cycles.estimate_rows("user_counter", f"user_id > {after_id:d}")


def estimate_shops(after_id: int) -> int:
    """Return about how many shops with a counter follow an id. One statement. Raises MysqlDown."""
    return mysql_cycles.estimate_rows("shop_counter", f"shop_id > {after_id:d}")


def estimate_unread(after_id: int) -> int:
    """Return about how many users with an unread counter follow an id. One statement. Raises
    MysqlDown."""
    return mysql_cycles.estimate_rows("unread_counter", f"user_id > {after_id:d}")


def find_changed_users(after_seq: int, until_seq: int) -> list[int]:
    """Return the users whose totals a page of the log changed. One statement. Raises MysqlDown."""
    return mysql_cycles.find_changed_users(_GIVEN, after_seq, until_seq)


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
        elif target_type == "post":
            arms += _select_comments(within, prefix)
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
        _Source("reaction", "PRIMARY", "target_type = 'user'", "target_id", MAX_RELATIONS),
        _Source("reaction", "by_actor", "TRUE", "actor_id", MAX_RELATIONS),
        *(
            _Source("content", "by_author", f"content_type = '{name}'", "author_id", _MAX_TEXTS)
            for name in sorted(CONTENT_TYPES)
        ),
        _Source("external_target", "by_owner", "TRUE", "owner_id", _MAX_TEXTS),
    ]
    # Reactions received are taken from the counters: a wrong one only makes a range longer.
    received = " + ".join(_RECEIVED)
    arms = [
        *_select_probes(sources, after_id),
        f"""
        (
            SELECT -1, user_id, {received}
            FROM user_counter FORCE INDEX (PRIMARY)
            WHERE user_id > {after_id:d}
            ORDER BY user_id LIMIT {_MAX_TEXTS:d}
        )
        """,
    ]
    rows = mysql.fetch_all(" UNION ALL ".join(arms))
    last_id, work = _find_range_end(row for row in rows if row[0] >= 0), 0
    users = sorted((user_id, int(count)) for source, user_id, count in rows if source < 0)
    for number, (user_id, count) in enumerate(users):
        work += max(0, count)
        if work > MAX_RELATIONS:
            return min(last_id, int(user_id) - 1 if number else int(user_id))
    return min(last_id, int(users[-1][0])) if len(users) == _MAX_TEXTS else last_id


def find_shop_range_end(after_id: int) -> int:
    """Return the last id of the next range of shops: about 50,000 reviews, or one shop. One
    statement. Raises MysqlDown."""
    sources = [
        _Source("shop_counter", "PRIMARY", "TRUE", "shop_id", _MAX_TEXTS),
        _Source("content", "by_parent", "content_type = 'review'", "parent_id", MAX_RELATIONS),
    ]
    return _find_range_end(mysql.fetch_all(" UNION ALL ".join(_select_probes(sources, after_id))))


def find_review_range_end(after_id: int) -> int:
    """Return the last id of the next range of reviews. One statement. Raises MysqlDown."""
    of_type = "content_type = 'review'"
    sources = [_Source("content", "PRIMARY", of_type, "content_id", _MAX_COUNTERS)]
    return _find_range_end(mysql.fetch_all(" UNION ALL ".join(_select_probes(sources, after_id))))


def estimate_ids(table: str, after_id: int) -> int:
    """Return about how many rows of ``table``, shop or voucher, follow an id. One statement. Raises
    MysqlDown."""
    return mysql_cycles.estimate_rows(table, f"id > {after_id:d}")


def estimate_reviews(after_id: int) -> int:
    """Return about how many reviews follow an id. One statement. Raises MysqlDown."""
    return mysql_cycles.estimate_rows(
        "content", f"content_type = 'review' AND content_id > {after_id:d}"
    )


def count_shops(after_id: int, last_id: int) -> RangeCounts:
    """Read the counters of a range of shops, and count their reviews. A shop without a counter is
    left out: its first reader counts. One statement. Raises MysqlDown."""
    within = f"BETWEEN {after_id + 1:d} AND {last_id:d}"
    rows = mysql.fetch_all(
        f"""
        SELECT k.shop_id, k.reviews_total, k.score_total, COALESCE(c.reviews, 0),
               COALESCE(c.score, 0)
        FROM shop_counter AS k
        LEFT JOIN (
            SELECT parent_id, COUNT(*) AS reviews, SUM(COALESCE(score, 0)) AS score
            FROM content FORCE INDEX (by_parent)
            WHERE content_type = 'review'
              AND parent_id {within}
              AND deleted_at IS NULL
            GROUP BY parent_id
        ) AS c ON c.parent_id = k.shop_id
        WHERE k.shop_id {within}
        """
    )
    counters: dict[tuple[int, str], int] = {}
    counted: dict[tuple[int, str], int] = {}
    for shop_id, *numbers in rows:
        stored, of_rows = map(int, numbers[:2]), map(int, numbers[2:])
        counters |= {(shop_id, w): n for w, n in zip(SHOP_TOTALS, stored, strict=True) if n}
        counted |= {(shop_id, w): n for w, n in zip(SHOP_TOTALS, of_rows, strict=True) if n}
    return RangeCounts(counters, counted, len(rows), 0)


def select_user_counts(within: str) -> str:
    """Return the statement of count_users.sql for the users ``within``, with all their totals."""
    return _COUNT_USERS.format(
        within=within,
        totals=", ".join(USER_TOTALS.values()),
        zeros=", 0" * (len(USER_TOTALS) - 1),
        received=_REACTIONS,
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
        f"(SELECT 'epoch', '', 0, {inspection.EPOCH_NOW}, 0, 0)",
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
                for select in inspection.select_rows(kind, target, sums_of, above)
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
    arms.append(f"(SELECT 'epoch', '', 0, {inspection.EPOCH_NOW}, 0, 0)")
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
        for select in inspection.select_rows(
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


def _select_comments(within: str, prefix: str = "") -> tuple[str, str]:
    """Build SELECTs of (COMMENT, post, how many)."""
    return (
        f"""
        SELECT {prefix}'{COMMENT}', parent_id, COUNT(*)
        FROM content FORCE INDEX (by_parent)
        WHERE content_type = 'comment'
          AND parent_id {within}
          AND deleted_at IS NULL
        GROUP BY parent_id
        """,
        # The counter does not include these yet.
        f"""
        SELECT {prefix}'{COMMENT}', post_id, CAST(-SUM(delta) AS SIGNED)
        FROM delayed_comment_count
        WHERE post_id {within}
        GROUP BY post_id
        """,
    )


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


def _select_probes(sources: Sequence[_Source], after_id: int) -> list[str]:
    """Build SELECTs of (source, next id, 0) and (source, id of the first row over the limit, 1)."""
    arms = []
    for number, (table, index_name, where, column, max_rows) in enumerate(sources):
        rows = (
            f"FROM {table} FORCE INDEX ({index_name}) WHERE {where} AND {column} > {after_id:d}"
            f" ORDER BY {column} LIMIT 1"
        )
        arms += [
            f"(SELECT {number}, {column}, 0 {rows})",
            f"(SELECT {number}, {column}, 1 {rows} OFFSET {max_rows:d})",
        ]
    return arms


def _find_range_end(probed: Iterable[Sequence[int]]) -> int:
    """Return the end of a range in which no source exceeds its limit, at least one id."""
    first: dict[int, int] = {}
    over_limit: dict[int, int] = {}
    for source, subject_id, is_over_limit in probed:
        (over_limit if is_over_limit else first)[source] = subject_id
    return min((max(i - 1, first[source]) for source, i in over_limit.items()), default=MAX_ID)
