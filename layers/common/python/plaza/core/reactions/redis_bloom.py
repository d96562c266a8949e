"""The Bloom filter of a target, built in pages (``infra.derived.builds``). Each function costs one
round trip and raises RedisDown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import Target
from plaza.core.reactions.redis_keys import keys_of, term_of
from plaza.infra.redis import redis
from plaza.infra.redis.scripts import load_script

_LUA = Path(__file__).with_name("lua")
BEGIN_BLOOM = load_script(_LUA / "begin_bloom.lua")
FILL_BLOOM = load_script(_LUA / "fill_bloom.lua")


def begin_bloom(kind: Kind, target: Target, build: str, actors: int) -> str:
    """Start a filter sized for ``actors``; return the code of begin_bloom.lua."""
    keys = keys_of(kind.name, target)
    args = (term_of(keys), build, actors)
    return str(redis.run(BEGIN_BLOOM, (keys.meta, keys.filling), args))


def fill_bloom(kind: Kind, target: Target, build: str, actor_ids: Sequence[int], last: bool) -> str:
    """Add a page of actors; return the code of fill_bloom.lua."""
    keys = keys_of(kind.name, target)
    return str(
        redis.run(FILL_BLOOM, (keys.meta, keys.filling, keys.bloom), (build, int(last), *actor_ids))
    )
