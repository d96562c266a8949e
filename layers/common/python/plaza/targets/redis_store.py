"""Markers of existence in Redis, in the shard of the target. Unless stated otherwise, a function
costs one round trip and raises RedisDown.

{<shard>}:<type>:<id>:existence  string  live, missing or deleted
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.targets.model import Existence

_TTL_S = {Existence.LIVE: 3600, Existence.MISSING: 30, Existence.DELETED: 3600}
MARK = load_script(Path(__file__).with_name("lua") / "mark.lua")


def existence_key(target_type: str, target_id: int) -> str:
    name = f"{target_type}:{target_id}"
    return f"{{{shard_of(name)}}}:{name}:existence"


def mark(target_type: str, target_id: int, existence: Existence) -> None:
    """Set a marker unless there is one, which may be newer."""
    key = existence_key(target_type, target_id)
    redis.execute("SET", key, existence.value, "EX", _TTL_S[existence], "NX")


def overwrite_marks(targets: Iterable[tuple[str, int]], existence: Existence) -> None:
    """Set markers after a creation or deletion; see mark.lua."""
    redis.run_all(
        [
            Call(MARK, (existence_key(*target),), (existence.value, _TTL_S[existence]))
            for target in targets
        ]
    )


def mark_all(marks: Mapping[tuple[str, int], Existence]) -> None:
    """Set markers as ``mark`` does."""
    redis.pipeline(
        [
            ("SET", existence_key(*target), existence.value, "EX", _TTL_S[existence], "NX")
            for target, existence in marks.items()
        ]
    )


def read_marks(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Existence]:
    """Return the markers of the targets that have one."""
    listed = list(targets)
    marks = redis.pipeline([("GET", existence_key(*target)) for target in listed])
    return {target: Existence(mark) for target, mark in zip(listed, marks, strict=True) if mark}


def read_mark(target_type: str, target_id: int) -> Existence | None:
    """Return the marker of a target or None."""
    marker = redis.execute("GET", existence_key(target_type, target_id))
    return Existence(marker) if marker else None
