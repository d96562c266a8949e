"""Lists of the newest reactions of users. Each function costs one round trip and raises RedisDown.

A list is filled in one call, under a lease that ends when a reaction of the user is saved. It does
not use ``infra.derived.builds``, which fill data in pages while consumers write.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from plaza.core.reactions.kinds import KINDS, Kind
from plaza.core.reactions.model import MAX_ID, ReactedTarget, Target
from plaza.core.reactions.redis_keys import list_keys
from plaza.infra.redis import masters, redis
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.terms import Node

FILL_LIST = load_script(Path(__file__).with_name("lua") / "fill_list.lua")

LIST_LENGTH = 100
LIST_TTL_S = 86_400
LEASE_TTL_S = 10
_KEY = re.compile(r"\{\d+\}:([a-z]+):user:([1-9]\d{0,18}):newest", re.ASCII)


class ListLease(NamedTuple):
    """Permission to fill the list of a user, given by ``node``."""

    token: str
    node: Node


def read_list(kind: Kind, actor_id: int) -> tuple[int, list[ReactedTarget]] | None:
    """Return (floor_us, the newest reactions of a user, unsorted): complete above the floor. None
    without a list, or when it was filled before the node restarted and may be older."""
    key, _ = list_keys(kind.name, actor_id)
    pairs = iter(redis.execute("ZRANGE", key, 0, -1, "WITHSCORES"))
    score_of = dict(zip(pairs, pairs, strict=True))
    floor = score_of.pop(_floor_at(masters.find_node(key)), None)
    if floor is None:
        return None
    entries = []
    for member, score in score_of.items():
        target_type, _, target_id = member.partition(":")
        entries.append(ReactedTarget(Target(target_type, int(target_id)), int(float(score))))
    return int(float(floor)), entries


def owner_of_list(key: str) -> tuple[Kind, int] | None:
    """Return the kind and the user of the key of a list, None for any other key. No round trip."""
    match = _KEY.fullmatch(key)
    if match is None or match[1] not in KINDS:
        return None
    kind, actor_id = KINDS[match[1]], int(match[2])
    is_valid = actor_id <= MAX_ID and list_keys(kind.name, actor_id)[0] == key
    return (kind, actor_id) if is_valid else None


def read_lists(kind: Kind, actor_ids: Sequence[int]) -> dict[int, tuple[int, dict[str, int]]]:
    """Return user -> (floor_us, entry -> version_us above it) as stored, without users whose list
    no reader uses."""
    keys = [list_keys(kind.name, actor_id)[0] for actor_id in actor_ids]
    replies = redis.pipeline([("ZRANGE", key, 0, -1, "WITHSCORES") for key in keys])
    lists: dict[int, tuple[int, dict[str, int]]] = {}
    for actor_id, key, reply in zip(actor_ids, keys, replies, strict=True):
        pairs = iter(reply)
        score_of = dict(zip(pairs, pairs, strict=True))
        floor = score_of.pop(_floor_at(masters.find_node(key)), None)
        if floor is not None:
            versions = {member: int(float(score)) for member, score in score_of.items()}
            floor_us = int(float(floor))
            lists[actor_id] = floor_us, {m: v for m, v in versions.items() if v > floor_us}
    return lists


def take_lease(kind: Kind, actor_id: int) -> ListLease:
    """Take the lease to fill the user's list; read MySQL after it."""
    key, token = list_keys(kind.name, actor_id)[1], secrets.token_hex(8)
    redis.execute("SET", key, token, "EX", LEASE_TTL_S)
    return ListLease(token, masters.find_node(key))


def fill_list(
    kind: Kind, actor_id: int, lease: ListLease, newest: Sequence[ReactedTarget], floor_us: int
) -> None:
    """Store ``newest`` as the user's list unless the lease ended."""
    members: list[int | str] = [floor_us, _floor_at(lease.node)]
    for reacted in newest:
        members += [reacted.version_us, str(reacted.target)]
    redis.run(FILL_LIST, list_keys(kind.name, actor_id), (lease.token, LIST_TTL_S, *members))


def drop_lists(actors: Iterable[tuple[Kind, int]]) -> None:
    """Drop the lists of these kinds and users, and the leases to fill them."""
    keys = [key for kind, actor_id in actors for key in list_keys(kind.name, actor_id)]
    redis.pipeline(redis.delete_commands(keys))


def _floor_at(node: Node) -> str:
    return f"floor:{node.term}"
