"""The term guard: the rows of MySQL by which a consumer knows that its master was deposed.

``redis_term`` has a row for each master of Redis. A transaction reads it with the log barrier,
under the shared lock that it keeps until its commit; the recovery after a failover replaces the
rows under the exclusive lock, before it reads the log. So each commit is either in the part of the
log that the recovery reads, or its consumer found another term than its own master's. See
docs/decisions/0007-detect-lost-and-restored-data.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from plaza.core.reactions import mysql_log
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Target
from plaza.core.reactions.redis_keys import keys_of
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.redis import masters
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.masters import Master
from plaza.infra.redis.shards import tag_of

Masters = Mapping[str, Master]


class MasterDeposed(RedisDown):
    """Another node became master of the keys; this process is connected to the one before it."""


def read_masters() -> Masters | None:
    """Return the masters that this process is connected to, by hash tag; None without Redis.
    No round trip when they were read less than 1 s ago, else one."""
    try:
        return masters.read_masters()
    except RedisDown:
        return None


def pass_guard(
    cursor: Cursor,
    stored: Mapping[int, str],
    masters: Masters | None,
    targets: Iterable[tuple[Kind, Target]],
) -> bool:
    """Return whether commits to ``targets`` may be applied by this process; else its master was
    deposed.

    ``stored``: the rows that the log barrier was read with; without any, all may. The successor of
    a stored master stores its own term, by one statement. Otherwise no statement.
    """
    if masters is None:
        return False
    if not stored:
        return True
    for tag in {tag_of(keys_of(kind.name, target).meta) for kind, target in targets}:
        first_slot, term, predecessor = masters[tag]
        if stored.get(first_slot) == term:
            continue
        if stored.get(first_slot) != predecessor:
            return False
        mysql_log.succeed_term(cursor, first_slot, predecessor, term)
    return True


def store_terms(masters: Masters) -> None:
    """Store the terms of all masters, after all transactions that read the rows before ended.
    Three statements, six if other terms were stored. Raises MysqlDown."""
    mysql_log.replace_terms({m.first_slot: m.term for m in masters.values()})
