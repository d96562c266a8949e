"""Markers in Redis of what is there, in the shard of the target:

{<shard>}:<type>:<id>:there  string  live, none or gone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.infra.shards import shard_of
from plaza.targets.targets import There

_TTL_S = {There.LIVE: 3600, There.NONE: 30, There.GONE: 3600}
MARK = load_script(Path(__file__).with_name("lua") / "mark.lua")


def there_key(target_type: str, target_id: int) -> str:
    """The key of the marker, in the shard of the target."""
    name = f"{target_type}:{target_id}"
    return f"{{{shard_of(name)}}}:{name}:there"


def mark(target_type: str, target_id: int, there: There) -> None:
    """Leave a marker, unless somebody who knew better (a deletion) left one. Raises RedisDown."""
    key = there_key(target_type, target_id)
    redis.execute("SET", key, there.value, "EX", _TTL_S[there], "NX")


def mark_for_sure(targets: Iterable[tuple[str, int]], there: There) -> None:
    """Leave the markers of what was just made or deleted; see mark.lua. One round trip.

    Raises RedisDown.
    """
    redis.run_all(
        [Call(MARK, (there_key(*target),), (there.value, _TTL_S[there])) for target in targets]
    )


def mark_all(found: Mapping[tuple[str, int], There]) -> None:
    """Leave markers as ``mark`` does. One round trip. Raises RedisDown."""
    redis.pipeline(
        [
            ("SET", there_key(*target), there.value, "EX", _TTL_S[there], "NX")
            for target, there in found.items()
        ]
    )


def read_marks(targets: Iterable[tuple[str, int]]) -> dict[tuple[str, int], There]:
    """Returns what the markers say, of those that have one. One round trip. Raises RedisDown."""
    wanted = list(targets)
    marks = redis.pipeline([("GET", there_key(*target)) for target in wanted])
    return {target: There(mark) for target, mark in zip(wanted, marks, strict=True) if mark}


def read_mark(target_type: str, target_id: int) -> There | None:
    """What the marker says, None when there is none. Raises RedisDown."""
    said = redis.execute("GET", there_key(target_type, target_id))
    return There(said) if said else None
