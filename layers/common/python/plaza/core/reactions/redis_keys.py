"""Keys of reactions in Redis: a replica of MySQL, and an outbox on top of it.

A target and kind in Redis has the state that MySQL had at version ``db_version`` of its counter.
Commits are applied in the order of that version, as a replica applies a log. The outbox has the
accepted and not yet saved reactions: total = base + delta, and an actor's state is the one of its
entry, else the saved one. See docs/decisions/0001-redis-is-a-replica-of-mysql-with-an-outbox.md.

All keys of a target are in one of 128 logical shards and have its hash tag ``{<shard>}``. Per
target and kind, under ``{<shard>}:<kind>:<target>:``

    meta     hash    the fields below
    outbox   hash    actor -> want:version:base:nonce; accepted, not yet confirmed. A letter before
                     the nonce: c, the request changed the state; u, it did not
    recent   zset    actor -> version; the newest saved actors, at most cap
    earliest zset    actor -> version; the first page of the earliest saved actors, valid while
                     meta has the field earliest
    bloom    bitmap  Bloom filter of the saved actors that are not in recent; without its last bit,
                     the seal, it is not used
    filling  bitmap  the Bloom filter under construction
    ahead    hash    db_version -> total|rows; commits that wait for an earlier one
    fence    string  newest db_version reported while the target was not loaded
    lease    string  token of the caller that loads the target
    sweep    string  swept:began:cursor:oldest; progress of its sweeps, for two hours
    loading  hash    sums over the outbox while the target is loaded
    toggles  hash    actor -> full_us of its token bucket for quick changes
    row_requests  hash    actor -> db_version when its row was requested

    Fields of meta: term of the node that loaded it; mode, <protocol>:<live, hidden or deleted>:
    <complete when recent has all actors that are on, else the bits of the filter in use, 0 without
    one>; base, the counter at db_version; accepted, <delta>:<outbox_count>:<version>: the sum of
    want - base over the outbox, its number of entries, and the newest version; db_version; floor,
    version above which recent has all actors; filling, build_id, build_active_at of the filter
    under construction; build_requested_at, time of the last request of a build; blocked, time since
    which a commit is missing; visibility, version of the text when it was hidden or shown; author
    of a hidden text; earliest, last version of the page earliest; loaded, when MySQL took the
    snapshot of the load; changes, how often the gate changed the total since then.

Per shard ``{<shard>}:outboxes``, the index of outboxes (``infra.derived.outbox``): <kind>:<target>
-> when the oldest entry of the outbox was accepted. Per user and kind, in the shard of the
user, ``{<shard>}:<kind>:user:<id>:``

    newest   zset    target -> version; floor:<term of the node when it was filled> -> version
                     above which the list is complete
    lease    string  token of the caller that may fill the list
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from plaza.core.reactions.model import Target
from plaza.core.targets.markers import existence_key
from plaza.infra.redis import masters, redis
from plaza.infra.redis.commands import Call, Command, RunAll
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime.settings import settings

_MAX_ATTEMPTS = 3


class TargetKeys(NamedTuple):
    """The keys of one target and kind; ``member`` is its name in the index of outboxes. The first
    ten are the keys of apply.lua, in its order."""

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
    sweep: str
    existence: str
    outboxes: str
    member: str


@lru_cache(maxsize=8192)
def keys_of(kind: str, target: Target) -> TargetKeys:
    """Return the keys of a target and kind; all scripts get their keys from here."""
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
        sweep=f"{base}:sweep",
        existence=existence_key(*target),
        outboxes=outboxes_key(shard),
        member=f"{kind}:{target}",
    )


def outboxes_key(shard: int) -> str:
    return f"{{{shard}}}:outboxes"


def list_keys(kind: str, actor_id: int) -> tuple[str, str]:
    """Return the keys of the list of a user's newest reactions and of the lease to fill it."""
    base = f"{{{shard_of(f'user:{actor_id}')}}}:{kind}:user:{actor_id}"
    return f"{base}:newest", f"{base}:lease"


def idle_ttl_ms() -> int:
    """Return the TTL of a target without readers: ten days by default, plus or minus 10 %, so that
    targets that were loaded together do not expire together."""
    return int(settings().idle_ttl_s * 1000 * random.uniform(0.9, 1.1))


def term_of(keys: TargetKeys) -> str:
    """Return the term of the node that has these keys. Raises RedisDown."""
    return masters.find_node(keys.meta).term


def terms_of(all_keys: Sequence[TargetKeys]) -> list[str]:
    """Return ``term_of`` each of ``all_keys``. Raises RedisDown."""
    if all_keys and not settings().redis_cluster:
        return [term_of(all_keys[0])] * len(all_keys)
    return [term_of(keys) for keys in all_keys]


def run_on_known_nodes(
    all_keys: Sequence[TargetKeys],
    calls: Callable[[], Sequence[Call]],
    commands: Sequence[Command] = (),
    source: RunAll = redis.run_all,
) -> list[Any]:
    """Run scripts whose arguments contain the term of their node, then ``commands``.

    A lost connection is replaced while a command is sent, maybe by one to a node that restarted:
    then ``calls`` builds the scripts again. One round trip otherwise. Raises RedisDown.
    """
    for _ in range(_MAX_ATTEMPTS):
        before = terms_of(all_keys)
        replies = source(calls(), commands)
        if before == terms_of(all_keys):
            return replies
    raise RedisDown("Redis restarted during every attempt")
