"""Refresh the switches of this process, from Redis or, if Redis cannot answer, from MySQL.

A process reads them in a round trip that it makes anyway, at most every 2 s. While both stores are
unavailable, it follows the last ones that it read; a new process has all switches normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from plaza.core.switches import model, mysql_store, redis_store
from plaza.core.switches.model import Switches
from plaza.core.switches.redis_store import StoredSwitches
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call, Command
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.observability import error_fields, record


def run_all(calls: Sequence[Call], commands: Sequence[Command] = ()) -> list[Any]:
    """Run scripts and commands as ``redis.run_all`` does, and refresh the switches if they are due.

    One round trip; if Redis has no switches, a statement and a round trip more, and if they are due
    for a comparison, a round trip more, and both by one process. Raises RedisDown.
    """
    if not switch_state.is_due():
        return redis.run_all(calls, commands)
    try:
        *replies, copy = redis.run_all(calls, (*commands, redis_store.READ))
    except RedisDown:
        _follow(None)
        raise
    _follow(redis_store.parse(copy))
    return replies


def read() -> Switches:
    """Return the current switches, at most 2 s old. Costs as ``run_all`` does."""
    with suppress(RedisDown):
        run_all(())
    return model.current()


def _follow(stored: StoredSwitches | None) -> None:
    """Follow the switches of Redis, or of MySQL if there are none or the caller compares."""
    switch_state.follow(None)  # a failure is not repeated before the next refresh
    try:
        if stored is None or (stored.is_due and _claim_comparison()):
            with suppress(MysqlDown):
                switch_state.follow(_load())
                return
        if stored is not None:
            switch_state.follow(stored.switches)
    except (ValueError, TypeError) as error:
        _record_unread(error)


def _claim_comparison() -> bool:
    with suppress(RedisDown):
        return redis_store.claim_comparison()
    return False


def _load() -> Switches:
    """Read the switches from MySQL and store them in Redis. Raises MysqlDown."""
    try:
        newest = mysql_store.read_newest()
    except MysqlDown as error:
        _record_unread(error)
        raise
    with suppress(RedisDown):
        redis_store.store(newest.version, newest.switches)
    return newest.switches


def _record_unread(error: Exception) -> None:
    record("switches_unread", {"switches_unread": 1}, **error_fields(error))
