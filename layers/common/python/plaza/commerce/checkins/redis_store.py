"""Keys and scripts of check-ins in Redis. Each call is one round trip.

All keys of a user are in the user's shard. Under ``{<shard>}:user:<id>:checkins``

                 hash    last: the newest day, 0 for none; streak: consecutive days up to last;
                         term of the node when it was hydrated (``infra.redis.terms``); and a
                         field for each month that was hydrated under that term, <YYYY-MM> -> 1
    :<YYYY-MM>   bitmap  32 bits: bit d is day d of the month; bit 0 marks a complete month
    :outbox      hash    day -> when it was accepted, until MySQL has confirmed it
    :lease       string  of readers that may hydrate; an acknowledgement ends it
    :sweep       string  when the last sweep of the outbox began, for two hours

and per shard ``{<shard>}:checkins:outboxes``, the index of outboxes (``infra.derived.outbox``):
user -> when the oldest entry was accepted. Days are numbers: 1 January of year 1
is 1 (``date.toordinal``).

A streak and a month that were hydrated under another term are not read: a master that failed may
have acknowledged days that the current one never received.
"""

from __future__ import annotations

import random
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from plaza.commerce.checkins.model import CheckInEvent, StoredCheckIns, next_month
from plaza.infra.redis import masters, redis
from plaza.infra.redis.commands import Argument, Call
from plaza.infra.redis.scripts import load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.redis.terms import Node
from plaza.infra.runtime.codec import MAX_ID

TTL_S = 40 * 86_400
LEASE_TTL_S = 10
_DAYS = 31  # index of the lowest bit
_HEAD = re.compile(r"\{\d+\}:user:([1-9]\d{0,18}):checkins", re.ASCII)
_MONTH = re.compile(r"[12]\d{3}-(?:0[1-9]|1[0-2])", re.ASCII)

_LUA = Path(__file__).with_name("lua")
ADD_TO_OUTBOX = load_script(_LUA / "add_to_outbox.lua")
CHECK_IN = load_script(_LUA / "check_in.lua")
HYDRATE = load_script(_LUA / "hydrate.lua")
ACKNOWLEDGE = load_script(_LUA / "acknowledge.lua")


@dataclass(frozen=True, slots=True)
class CheckInKeys:
    user_id: int

    @property
    def head(self) -> str:
        return f"{{{shard_of(f'user:{self.user_id}')}}}:user:{self.user_id}:checkins"

    @property
    def outbox(self) -> str:
        return f"{self.head}:outbox"

    @property
    def lease(self) -> str:
        return f"{self.head}:lease"

    @property
    def sweep(self) -> str:
        return f"{self.head}:sweep"

    @property
    def outboxes(self) -> str:
        return outboxes_key(shard_of(f"user:{self.user_id}"))

    def month(self, day: date) -> str:
        return f"{self.head}:{day:%Y-%m}"


class CheckInState(NamedTuple):
    """The streak that ends on ``last`` (None: no day), and the days of the requested month."""

    last: date | None
    streak: int
    days: Sequence[int]


class CachedCheckIns(NamedTuple):
    """All that Redis has of a user: the streak that ends on ``last``, the hydrated ``months`` and
    their ``days``, and the days of the outbox."""

    last: date | None
    streak: int
    months: Sequence[date]
    days: Sequence[date]
    outbox: frozenset[date]


class CheckInLease(NamedTuple):
    """A lease to hydrate a user, and the term of the node that gave it."""

    token: str
    term: str


class CheckInDecision(NamedTuple):
    """The reply of check_in.lua; ``state`` is None for COLD, ``accepted_us`` 0 if MySQL has it."""

    code: str
    state: CheckInState | None
    accepted_us: int = 0


def outboxes_key(shard: int) -> str:
    return f"{{{shard}}}:checkins:outboxes"


def _ttl_s() -> int:
    return int(
        TTL_S * random.uniform(0.9, 1.1)
    )  # spreads the expiry of keys that were created together


def check_in(user_id: int, day: date, now_us: int) -> CheckInDecision:
    """Set a day, see check_in.lua. Raises RedisDown."""
    keys, terms = CheckInKeys(user_id), [""]

    def args_for(node: Node) -> tuple[Argument, ...]:
        terms.append(node.term)
        return day.toordinal(), day.day, user_id, now_us, _ttl_s(), node.term

    code, *fields = masters.run_on_node(
        CHECK_IN, (keys.head, keys.month(day), keys.outbox, keys.outboxes), args_for
    )
    if not fields or terms[-1] != masters.find_node(keys.head).term:
        return CheckInDecision("COLD", None)
    *state, accepted_us = fields
    return CheckInDecision(code, _state_of(*state), int(accepted_us))


def read(user_id: int, first: date) -> CheckInState | None:
    """Return the streak and the month of ``first``, None: to hydrate. Raises RedisDown."""
    keys = CheckInKeys(user_id)
    (last, streak, term, hydrated), [bits] = redis.pipeline(
        [
            ("HMGET", keys.head, "last", "streak", "term", f"{first:%Y-%m}"),
            ("BITFIELD", keys.month(first), "GET", "u32", 0),
        ]
    )
    if last is None or not hydrated or not bits >> _DAYS:
        return None
    if term != masters.find_node(keys.head).term:
        return None
    return _state_of(int(last), int(streak), bits)


def acquire_lease(user_id: int) -> CheckInLease:
    """Acquire a lease to hydrate what is read from MySQL from now on. One round trip.

    Readers share the first one's lease, which an acknowledgement ends. Raises RedisDown.
    """
    key = CheckInKeys(user_id).lease
    lease = secrets.token_hex(8)
    _, current = redis.pipeline([("SET", key, lease, "NX", "EX", LEASE_TTL_S), ("GET", key)])
    return CheckInLease(str(current), masters.find_node(key).term)


def hydrate(user_id: int, lease: CheckInLease, first: date, stored: StoredCheckIns) -> bool:
    """Store the streak and a month; return False if the lease has ended. Raises RedisDown."""
    keys = CheckInKeys(user_id)
    bits = 1 << _DAYS | sum(1 << (_DAYS - day.day) for day in stored.days)
    length = (next_month(first) - first).days
    ranges = (day.toordinal() for part in stored.ranges for day in (part.first, part.last))
    stored_it = redis.run(
        HYDRATE,
        (keys.head, keys.month(first), keys.outbox, keys.lease),
        (lease.token, _ttl_s(), first.toordinal(), length, bits, lease.term, *ranges),
    )
    return bool(stored_it)


def acknowledge_all(events: Sequence[CheckInEvent]) -> int:
    """Acknowledge stored days; return how many Redis lacked. Raises RedisDown."""
    calls = []
    for event in events:
        keys, day = CheckInKeys(event.user_id), event.day
        calls.append(
            Call(
                ACKNOWLEDGE,
                (keys.head, keys.month(day), keys.outbox, keys.lease, keys.outboxes),
                (day.toordinal(), day.day, event.user_id),
            )
        )
    return sum(redis.run_all(calls))


def add_to_outboxes(events: Sequence[CheckInEvent]) -> int:
    """Add days to the outboxes; return how many they lacked. Raises RedisDown."""
    calls = []
    for event in events:
        keys, day = CheckInKeys(event.user_id), event.day
        calls.append(
            Call(
                ADD_TO_OUTBOX,
                (keys.head, keys.month(day), keys.outbox, keys.outboxes),
                (day.toordinal(), day.day, event.user_id, event.version_us),
            )
        )
    return sum(redis.run_all(calls))


def forget(user_id: int, days: Iterable[date]) -> None:
    """Delete the keys of a user with the months of ``days``. Raises RedisDown."""
    keys = CheckInKeys(user_id)
    months = {keys.month(day) for day in days}
    deletions = redis.delete_commands([keys.head, keys.outbox, keys.lease, keys.sweep, *months])
    redis.pipeline([*deletions, ("ZREM", keys.outboxes, user_id)])


def owner_of_key(key: str) -> int | None:
    """Return the user whose streak ``key`` has, None for any other key. No round trip."""
    match = _HEAD.fullmatch(key)
    if match is None or int(match[1]) > MAX_ID:
        return None
    user_id = int(match[1])
    return user_id if CheckInKeys(user_id).head == key else None


def read_cached(user_ids: Sequence[int]) -> dict[int, CachedCheckIns]:
    """Return what Redis has of users, without those that are not hydrated under the term of their
    node. Two round trips. Raises RedisDown."""
    replies = redis.pipeline(
        [
            command
            for keys in map(CheckInKeys, user_ids)
            for command in (("HGETALL", keys.head), ("HKEYS", keys.outbox))
        ]
    )
    heads: dict[int, dict[str, str]] = {}
    outboxes: dict[int, frozenset[date]] = {}
    for user_id, fields, outbox in zip(user_ids, replies[::2], replies[1::2], strict=True):
        head = dict(fields) if isinstance(fields, dict) else _pair(fields)
        if head.get("term") == masters.find_node(CheckInKeys(user_id).head).term:
            heads[user_id] = head
            outboxes[user_id] = frozenset(day for day in map(_read_day, outbox) if day)
    months = [
        (user_id, date.fromisoformat(f"{name}-01"))
        for user_id, head in heads.items()
        for name in sorted(head)
        if _MONTH.fullmatch(name)
    ]
    bits_of = redis.pipeline(
        [
            ("BITFIELD", CheckInKeys(user_id).month(first), "GET", "u32", 0)
            for user_id, first in months
        ]
    )
    hydrated: dict[int, list[date]] = {user_id: [] for user_id in heads}
    days: dict[int, list[date]] = {user_id: [] for user_id in heads}
    for (user_id, first), [bits] in zip(months, bits_of, strict=True):
        if bits >> _DAYS:
            hydrated[user_id].append(first)
            days[user_id] += (first + timedelta(days=day - 1) for day in _state_of(0, 0, bits).days)
    return {
        user_id: CachedCheckIns(
            _read_day(head.get("last", "")),
            int(streak) if (streak := head.get("streak", "")).isdecimal() else -1,
            hydrated[user_id],
            days[user_id],
            outboxes[user_id],
        )
        for user_id, head in heads.items()
    }


def drop(user_ids: Iterable[int]) -> None:
    """Drop the streaks of users, so that their months are hydrated again, too, and the leases to
    hydrate them. The outboxes stay. One round trip. Raises RedisDown."""
    keys = [key for of in map(CheckInKeys, user_ids) for key in (of.head, of.lease)]
    redis.pipeline(redis.delete_commands(keys))


def _read_day(text: str) -> date | None:
    """Return a day that is stored as a number, None for 0 and for what Plaza does not write."""
    try:
        return date.fromordinal(int(text)) if text != "0" else None
    except (ValueError, OverflowError):
        return None


def _pair(reply: Sequence[str]) -> dict[str, str]:
    parts = iter(reply)
    return dict(zip(parts, parts, strict=True))


def _state_of(last: int, streak: int, bits: int) -> CheckInState:
    days = [day for day in range(1, _DAYS + 1) if bits >> (_DAYS - day) & 1]
    return CheckInState(date.fromordinal(last) if last else None, streak, days)
