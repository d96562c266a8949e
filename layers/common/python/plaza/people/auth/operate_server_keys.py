"""Make, list and end keys of servers, in the console, by IAM or at the stores."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from plaza.infra.runtime.errors import BadInput, NotFound
from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_server_keys
from plaza.people.auth.server_keys import (
    MAX_REQUESTS_PER_S,
    NAME_PATTERN,
    SCOPES,
    ServerKey,
    make_key,
)


def make_server_key(
    name: str, scopes: Collection[str], requests_per_s: int, *, operator_id: str
) -> tuple[str, str]:
    """Make a key; return its id, and the key, which is stored nowhere. One transaction. Raises
    BadInput; TooManyServerKeys if the name has two valid keys; MysqlDown."""
    if not re.fullmatch(NAME_PATTERN, name):
        raise BadInput("name", "has up to 32 lower-case letters and hyphens")
    if not scopes or not SCOPES.issuperset(scopes):
        raise BadInput("scopes", f"are some of {', '.join(sorted(SCOPES))}")
    if not 0 < requests_per_s <= MAX_REQUESTS_PER_S:
        raise BadInput("requests_per_s", f"is 1 to {MAX_REQUESTS_PER_S}")
    key, stored = make_key()
    mysql_server_keys.insert(stored, name, scopes, requests_per_s)
    record(
        "server_key_made",
        key_id=stored.key_id,
        scopes=",".join(sorted(scopes)),
        operator_id=operator_id,
    )
    return stored.key_id, key


def end_server_key(key_id: str, *, operator_id: str) -> None:
    """End a key. Processes accept it for a minute more (``MAX_KEY_AGE_S``). Safe to repeat. Two
    statements at most. Raises NotFound, MysqlDown."""
    if not mysql_server_keys.end(key_id):
        raise NotFound(f"There is no key {key_id}.")
    record("server_key_ended", key_id=key_id, operator_id=operator_id)


def list_server_keys() -> list[dict[str, Any]]:
    """Return the keys as rows, valid ones first. One statement. Raises MysqlDown."""
    return [_describe(key) for key in mysql_server_keys.list_all()]


def _describe(key: ServerKey) -> dict[str, Any]:
    times = {"created_at": key.created_at, "used_at": key.used_at, "ended_at": key.ended_at}
    return {
        "key_id": key.key_id,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "requests_per_s": key.requests_per_s,
        **{name: time and f"{time.isoformat(timespec='seconds')}Z" for name, time in times.items()},
    }
