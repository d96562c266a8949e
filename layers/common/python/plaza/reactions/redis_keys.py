"""Keys of reactions in Redis: a replica of MySQL, and the outbox above it.

A target and kind in Redis is what MySQL had at version ``db_version`` of its counter; commits are applied
in the order of that version, as a replica applies a log. The outbox is an overlay of what was
accepted and is not saved: total = base + delta, and an actor's state is that of their entry, else
the saved one. See docs/decisions/0001-redis-is-a-replica-of-mysql-with-an-outbox.md.

Everything about one target lives in one of 128 logical shards, and every key of a shard carries
the hash tag ``{<shard>}``. Per target and kind, under ``{<shard>}:<kind>:<target>:``

    meta     hash    protocol; run_id of the node that it was loaded at; db_version; base, the counter at it;
                     delta, sum over the outbox of want - base; version, the newest version; outbox_count,
                     entries of the outbox; complete, recent has all actors that are on; floor, else
                     recent has all with a version above it; bloom, the bits of the filter in use, 0
                     none; filling, build_id, build_active_at: of the filter being built; build_requested_at,
                     when a build was last requested; blocked, since when a commit is missing; deleted,
                     1 when it was deleted; earliest, a later row on with at most this version comes into
                     the page; sweeps, sweep_cursor
    outbox   hash    actor -> want:version:base:nonce; accepted, not yet confirmed. The nonce has a
                     letter before it: c when the request changed the state, u when it did not
    recent   zset    actor -> version; the newest saved actors, at most cap
    earliest zset    actor -> version; the first page of the earliest saved actors, good as long as
                     meta has the field
    bloom    bitmap  Bloom filter of the saved actors that are not in recent
    filling  bitmap  the Bloom filter that is being built
    ahead    hash    db_version -> total|rows; commits that wait for the one before them
    fence    string  newest db_version heard of while the target was not loaded
    lease    string  who loads the target
    loading  hash    sums over the outbox while the target is loaded
    row_requests  hash    actor -> db_version when its row was requested
    toggles  hash    actor -> full_us of its bucket of quick changes

per shard ``{<shard>}:outboxes``, the index of outboxes (``infra.outbox``): <kind>:<target> ->
oldest version in the outbox, or when it is due again; and per user and kind, in the shard of the
user, ``{<shard>}:<kind>:user:<id>:``

    newest   zset    target -> version; floor:<run_id of the node that it was filled at> -> the version
                     above which the list is whole
    lease    string  who may fill it
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import NamedTuple

from plaza.infra import redis
from plaza.infra.settings import settings
from plaza.infra.shards import shard_of
from plaza.reactions.model import Target
from plaza.targets.markers import existence_key


class TargetKeys(NamedTuple):
    """The keys of one target and kind; ``member`` is its name in the index of its shard.

    The first ten are those of apply.lua, in its order.
    """

    meta: str
    outbox: str
    recent: str
    bloom: str
    filling: str
    ahead: str
    fence: str
    lease: str
    row_requests: str
    earliest: str
    loading: str
    toggles: str
    existence: str
    outboxes: str
    member: str


@lru_cache(maxsize=8192)
def keys_of(kind: str, target: Target) -> TargetKeys:
    """The keys of ``target``. Every script gets its keys from here."""
    shard = shard_of(str(target))
    base = f"{{{shard}}}:{kind}:{target}"
    return TargetKeys(
        meta=f"{base}:meta",
        outbox=f"{base}:outbox",
        recent=f"{base}:recent",
        bloom=f"{base}:bloom",
        filling=f"{base}:filling",
        ahead=f"{base}:ahead",
        fence=f"{base}:fence",
        lease=f"{base}:lease",
        row_requests=f"{base}:row_requests",
        earliest=f"{base}:earliest",
        loading=f"{base}:loading",
        toggles=f"{base}:toggles",
        existence=existence_key(*target),
        outboxes=outboxes_key(shard),
        member=f"{kind}:{target}",
    )


def outboxes_key(shard: int) -> str:
    """The index of the outboxes of a shard."""
    return f"{{{shard}}}:outboxes"


def list_keys(kind: str, actor_id: int) -> tuple[str, str]:
    """The list of what a user reacted to, and the lease of who fills it."""
    base = f"{{{shard_of(f'user:{actor_id}')}}}:{kind}:user:{actor_id}"
    return f"{base}:newest", f"{base}:lease"


def idle_ttl_ms() -> int:
    """How long a target without readers stays: ten days by default.

    More or less, so that what was loaded together does not expire together.
    """
    return int(settings().idle_ttl_s * 1000 * random.uniform(0.9, 1.1))


def run_id_of(keys: TargetKeys) -> str:
    """The run of the node that has a target. Raises RedisDown."""
    return redis.find_node(keys.meta).run_id
