"""Access to Redis and MySQL, and calls of scripts, for tests of reactions."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from types import ModuleType
from typing import Any

import pytest
from pymysql.cursors import DictCursor

from local.audit.stores import unpack_meta
from plaza.core.counters import UserCounter, redis_store
from plaza.core.reactions import (
    LIKE,
    Kind,
    Target,
    hydration,
    kinds,
    queries,
    redis_commits,
    redis_gate,
    redis_hydration,
    redis_keys,
)
from plaza.core.reactions.model import Commit, Count, Snapshot
from plaza.core.reactions.redis_commits import ApplyResult
from plaza.core.reactions.redis_gate import GateDecision
from plaza.core.reactions.redis_keys import TargetKeys
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.infra.redis.scripts import Script
from plaza.infra.runtime.settings import settings
from tests.support.keyspace import find_keys

POST = Target("post", 11)


def explain(sql: str, args: Any = ()) -> list[dict[str, Any]]:
    """Return the plan of a statement: rows with the column names that MariaDB and MySQL share."""
    database = settings().mysql.database
    with (
        closing(mysql.connect_dedicated(database=database, cursorclass=DictCursor)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(f"EXPLAIN FORMAT=TRADITIONAL {sql}", args)
        return list(cursor.fetchall())


class _OrderToken:
    """Equals each order token."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(r"[-0-9A-Za-z_]{28}", other) is not None

    def __hash__(self) -> int:
        return 0


ORDER_TOKEN: Any = _OrderToken()


def reactions_of(target_type: str, at: Any = ORDER_TOKEN, **reacted: tuple[int, bool]) -> Any:
    """Return the field ``reactions`` of a view: ``reactions_of("post", like=(2, True))`` has two
    likes, one of them the caller's, and none of other kinds."""
    none = (0, False)
    return {
        kind.name: {
            "total": reacted.get(kind.name, none)[0],
            "at": at,
            "mine": reacted.get(kind.name, none)[1],
        }
        for kind in kinds.kinds_of(target_type)
    }


def without_tokens(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a text without the order tokens of its totals, which a new text has not."""
    reactions = {kind: {**count, "at": None} for kind, count in body["reactions"].items()}
    return {name: body[name] for name in body.keys() - {"likes_at", "collects_at"}} | {
        "reactions": reactions
    }


def read_counts(
    pairs: Sequence[tuple[Kind, Target]], actor_id: int | None
) -> tuple[list[Count], bool]:
    """Return what ``queries.read_counts`` does, without order tokens, which have a test file of
    their own."""
    counts, exact = queries.read_counts(pairs, actor_id)
    return [count._replace(at=None) for count in counts], exact


def keys(target: Target = POST, kind: Kind = LIKE) -> TargetKeys:
    return redis_keys.keys_of(kind.name, target)


def meta(target: Target = POST, kind: Kind = LIKE) -> dict[str, Any]:
    """Return the fields of the meta hash, with numbers as int."""
    packed = connections.client().hgetall(keys(target, kind).meta)
    result = unpack_meta(packed) if packed else {}
    return {name: int(v) if v.lstrip("-").isdigit() else v for name, v in result.items()}


def outbox(target: Target = POST, kind: Kind = LIKE) -> dict[int, tuple[int, int, int]]:
    """Return actor -> (wanted state, version, base)."""
    entries = connections.client().hgetall(keys(target, kind).outbox)
    return {
        int(actor): tuple(int(part) for part in entry.split(":")[:3])  # type: ignore[misc]
        for actor, entry in entries.items()
    }


def recent(target: Target = POST, kind: Kind = LIKE) -> list[int]:
    """Return the actors in recent, oldest first."""
    return [int(a) for a in redis.execute("ZRANGE", keys(target, kind).recent, 0, -1)]


def due(target: Target = POST, kind: Kind = LIKE) -> int | None:
    """Return the target's time in the outbox index, None if it is not indexed."""
    score = redis.execute("ZSCORE", keys(target, kind).outboxes, keys(target, kind).member)
    return None if score is None else int(float(score))


def shift_time(patch: pytest.MonkeyPatch, module: ModuleType, name: str, by_us: int) -> None:
    """Set the clock of a script ``by_us`` ahead."""
    script: Script = getattr(module, name)
    ahead = (
        "(function() local t = redis.call('TIME') local us = t[1] * 1000000 + t[2]"
        f" + {by_us} return {{math.floor(us / 1000000), us % 1000000}} end)()"
    )
    source = script.source.replace("redis.call('TIME')", ahead)
    assert source != script.source
    patch.setattr(module, name, Script(script.name, lambda: source))


def put(
    total: int = 0,
    n: int = 0,
    newest: Sequence[tuple[int, int]] = (),
    *,
    complete: bool = True,
    last_version_us: int = 0,
    rows: Sequence[tuple[int, int, bool]] = (),
    target: Target = POST,
    kind: Kind = LIKE,
) -> str:
    """Hydrate a target with a snapshot of these values; return the code."""
    last = max([last_version_us, *(version for _, version in newest)])
    snapshot = Snapshot(total, n, last, list(newest), complete, list(rows), 1)
    [lease] = redis_hydration.take_hydration_leases([(kind, target)])
    return redis_hydration.hydrate_all([(kind, target, lease, snapshot)])[0]


def gate(
    actor: int,
    on: bool = True,
    expected: tuple[bool, int] | None = None,
    *,
    nonce: str = "",
    target: Target = POST,
    kind: Kind = LIKE,
    only_repeat: bool = False,
) -> GateDecision:
    """Run the gate script once."""
    nonce = nonce or secrets.token_hex(6)
    return redis_gate.gate(kind, target, actor, on, nonce, expected, only_repeat=only_repeat)


def gate_as_read(
    actor: int, on: bool = True, *, was_on: bool, n: int, target: Target = POST, kind: Kind = LIKE
) -> GateDecision:
    """Run the gate, then again with a row that was read: ``was_on`` at the counter's version n."""
    first = gate(actor, on, target=target, kind=kind)
    assert first.code == "UNKNOWN"
    return gate(actor, on, (was_on, n), target=target, kind=kind)


def save_outbox(n: int, total: int, target: Target = POST, kind: Kind = LIKE) -> ApplyResult:
    """Apply commit ``n``, which saved the whole outbox."""
    results = [(a, version, want == 1) for a, (want, version, _) in outbox(target, kind).items()]
    return apply(n, total, results, target=target, kind=kind)


def apply(
    n: int,
    total: int,
    rows: Sequence[tuple[int, int, bool]],
    *,
    is_new: bool = True,
    target: Target = POST,
    kind: Kind = LIKE,
) -> ApplyResult:
    """Run the apply script once."""
    return redis_commits.apply_all([Commit(kind, target, n, total, is_new, rows)])[0]


def total(target: Target = POST, kind: Kind = LIKE) -> int:
    """Return the total in Redis."""
    fields = meta(target, kind)
    return int(fields["base"]) + int(fields["delta"])


def rows(target: Target = POST, kind: Kind = LIKE) -> dict[int, tuple[bool, int]]:
    """Return actor -> (on, version) in MySQL."""
    result = mysql.fetch_all(
        "SELECT actor_id, state, version FROM reaction"
        " WHERE target_type = %s AND target_id = %s AND kind = %s",
        (*target, kind.name),
    )
    return {actor: (state == 1, version) for actor, state, version in result}


def counter(target: Target = POST, kind: Kind = LIKE) -> int | None:
    """Return the total in MySQL, None without a row."""
    result = mysql.fetch_all(
        "SELECT total FROM counter WHERE target_type = %s AND target_id = %s AND kind = %s",
        (*target, kind.name),
    )
    return result[0][0] if result else None


def received(author_id: int = 99, kind: Kind = LIKE) -> int:
    """Return an author's received reactions in user_counter."""
    result = mysql.fetch_all(
        f"SELECT {kind.received} FROM user_counter WHERE user_id = %s", (author_id,)
    )
    return result[0][0] if result else 0


def insert_rows(result: Sequence[tuple[Target, int, int, int]], kind: Kind = LIKE) -> None:
    """Insert (target, actor, state, version) into MySQL with their counters."""
    values = ",".join(
        f"('{t.type}',{t.id},'{kind.name}',{actor},{state},{version})"
        for t, actor, state, version in result
    )
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        f" VALUES {values}"
    )
    ranked = ", ".join(f"'{target_type}'" for target_type in kind.ranked) or "NULL"
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version, ranked)"
        " SELECT target_type, target_id, kind, SUM(state), COUNT(*),"
        f" IF(target_type IN ({ranked}), SUM(state), NULL)"
        " FROM reaction WHERE kind = %s GROUP BY target_type, target_id"
        " ON DUPLICATE KEY UPDATE total = VALUES(total), version = VALUES(version),"
        " ranked = VALUES(ranked)",
        (kind.name,),
    )


def add_users(*user_ids: int) -> None:
    """Insert users."""
    values = ",".join(f"({user_id:d},'user')" for user_id in user_ids)
    mysql.write(f"INSERT IGNORE INTO user (id, nickname) VALUES {values}")


def put_totals(totals: Mapping[int, UserCounter]) -> None:
    """Store totals of users in Redis as a reader does, unless Redis has newer ones."""
    redis_store.store_read_users(totals, redis_store.announce_reads(list(totals)))


def hydrate(target: Target = POST, kind: Kind = LIKE) -> None:
    """Hydrate a target from MySQL."""
    hydration.hydrate([(kind, target)])


def marker_key() -> str:
    """Return the key of the only existence marker."""
    [key] = find_keys("*:existence")
    return str(key)


def wait_for(condition: Callable[[], Any], what: str, timeout_s: float = 60) -> Any:
    """Wait until ``condition`` is true and return its result; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not (result := condition()):
        assert time.monotonic() < deadline, f"timeout: {what}"
        time.sleep(0.01)
    return result
