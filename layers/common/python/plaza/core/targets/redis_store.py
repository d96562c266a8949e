"""Markers of existence in Redis, in the shard of the target. Unless stated otherwise, a function
costs one round trip and raises RedisDown.

{<shard>}:<type>:<id>:existence  string  live, missing or deleted; live:<external id> of a target
of the app
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from plaza.core.targets.model import Existence, Mark
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of

_TTL_S = {Existence.LIVE: 3600, Existence.MISSING: 30, Existence.DELETED: 3600}
MARK = load_script(Path(__file__).with_name("lua") / "mark.lua")


def existence_key(target_type: str, target_id: int) -> str:
    name = f"{target_type}:{target_id}"
    return f"{{{shard_of(name)}}}:{name}:existence"


def overwrite_marks(marks: Mapping[tuple[str, int], Mark]) -> None:
    """Set markers after a creation or deletion; see mark.lua."""
    redis.run_all(
        [
            Call(MARK, (existence_key(*target),), (str(mark), _TTL_S[mark.existence]))
            for target, mark in marks.items()
        ]
    )


def mark_all(marks: Mapping[tuple[str, int], Mark]) -> None:
    """Set markers unless there are some, which may be newer."""
    redis.pipeline(
        [
            ("SET", existence_key(*target), str(mark), "EX", _TTL_S[mark.existence], "NX")
            for target, mark in marks.items()
        ]
    )


def read_marks(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Mark]:
    """Return the markers of the targets that have one."""
    listed = list(targets)
    marks = redis.pipeline([("GET", existence_key(*target)) for target in listed])
    return {target: _read(mark) for target, mark in zip(listed, marks, strict=True) if mark}


def _read(marker: str) -> Mark:
    existence, _, external_id = marker.partition(":")
    return Mark(Existence(existence), external_id)
