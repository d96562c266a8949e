"""Change the switches, as an operator, and list the changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from plaza.core.switches import mysql_store, redis_store
from plaza.core.switches.model import (
    NO_CHANGE,
    SWITCHES,
    SwitchChange,
    Switches,
    SwitchesChanged,
    at_level,
    level_of,
)
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor, MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.observability import record


class ListedChange(NamedTuple):
    """A change and the switches before it."""

    change: SwitchChange
    before: Switches


def read_newest() -> SwitchChange:
    """Return the newest change, whose switches are the current ones. One statement. Raises
    MysqlDown."""
    return mysql_store.read_newest()


def replace_switches(
    expected_version: int, values: Mapping[str, Any], reason: str, operator_id: int
) -> SwitchChange:
    """Set the switches named in ``values`` and return the change, as ``_change`` does."""
    return _change(expected_version, lambda before: replace(before, **values), reason, operator_id)


def set_level(expected_version: int, level: str, reason: str, operator_id: int) -> SwitchChange:
    """Set the switches of a level and return the change, as ``_change`` does."""
    return _change(expected_version, lambda before: at_level(level, before), reason, operator_id)


def set_again(document: str | None, level: str, reason: str, operator_id: int) -> SwitchChange:
    """Set the switches of ``document``, or of a level without one, whatever version Redis has.

    For a MySQL that was restored: its versions are behind those in Redis. Returns the change, as
    ``_change`` does. Raises ValueError or TypeError for a document that cannot be decoded,
    SwitchesChanged, MysqlDown, RedisDown.
    """
    switches = None if document is None else SWITCHES.decode(document)
    newest = read_newest()
    redis_store.drop()
    return _change(
        newest.version, lambda before: switches or at_level(level, before), reason, operator_id
    )


def show() -> tuple[str | None, tuple[int, str] | None]:
    """Return (the switches in Redis; version and switches of the newest change in MySQL) as
    documents. Each is None if it is unavailable or has none."""
    stored, newest = None, None
    with suppress(RedisDown):
        if copy := redis_store.read():
            stored = SWITCHES.encode(copy.switches)
    with suppress(MysqlDown):
        change = read_newest()
        newest = change.version, SWITCHES.encode(change.switches)
    return stored, newest


def list_changes(below: int, limit: int) -> tuple[list[ListedChange], int | None]:
    """Return (a page of the changes with versions below ``below``, newest first; its last version,
    None on the last page). One statement. Raises MysqlDown."""
    changes = mysql_store.read_changes(below, limit + 1)
    pairs = pairwise([*changes, NO_CHANGE])
    listed = [ListedChange(newer, older.switches) for newer, older in pairs][:limit]
    return listed, listed[-1].change.version if len(changes) > limit else None


def _change(
    expected_version: int,
    make: Callable[[Switches], Switches],
    reason: str,
    operator_id: int,
) -> SwitchChange:
    """Store a change if ``expected_version`` is still the newest one, and return it; a repeat of
    the newest change returns it. Other processes follow it within 2 s, within 30 s if Redis was
    unavailable. One transaction and one round trip. Raises SwitchesChanged, MysqlDown."""

    def work(cursor: Cursor) -> SwitchChange:
        before = mysql_store.lock_newest(cursor)
        switches = make(before.switches)
        if before[:4] == (expected_version + 1, switches, reason, operator_id):
            return before  # the answer to the first request was lost
        if before.version != expected_version or not mysql_store.insert(
            cursor, expected_version + 1, switches, reason, operator_id
        ):
            raise SwitchesChanged(f"The switches are newer than version {expected_version}.")
        return mysql_store.lock_newest(cursor)

    change = mysql.run_in_transaction(work)
    with suppress(RedisDown):
        redis_store.store(change.version, change.switches)
    switch_state.follow(change.switches)
    level = level_of(change.switches)
    record("switches_changed", version=change.version, level=level, operator_id=operator_id)
    return change
