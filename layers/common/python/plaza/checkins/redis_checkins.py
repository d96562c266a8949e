"""Where check-ins are in Redis, and the scripts that touch them.

Everything of a user is in their shard. Under ``{<shard>}:user:<id>:checkins``

                 hash    last, the newest day, 0 for none; streak, how many in a row end there
    :<YYYY-MM>   bitmap  32 bits: bit d is day d of the month; bit 0 says that it is whole
    :outbox      hash    day -> when it was accepted; not yet confirmed by MySQL
    :lease       string  which readers may bring back what MySQL says; a settle ends it

and per shard ``{<shard>}:checkins:outboxes``, the index of outboxes (``infra.outbox``): user ->
when the oldest entry was accepted, or when it is due again. Days are numbers: 1 January of year 1
is 1 (``date.toordinal``).
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import NamedTuple

from plaza.checkins.checkins import CheckedIn, Recorded, next_month
from plaza.infra import redis
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.infra.shards import shard_of

TTL_S = 40 * 86_400
LEASE_TTL_S = 10
_DAYS = 31  # the number of the lowest bit

_LUA = Path(__file__).with_name("lua")
ADOPT = load_script(_LUA / "adopt.lua")
CHECK_IN = load_script(_LUA / "check_in.lua")
HYDRATE = load_script(_LUA / "hydrate.lua")
SETTLE = load_script(_LUA / "settle.lua")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of a user; every script gets its keys from here."""

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
    def outboxes(self) -> str:
        return outboxes_key(shard_of(f"user:{self.user_id}"))

    def month(self, day: date) -> str:
        return f"{self.head}:{day:%Y-%m}"


class Seen(NamedTuple):
    """What Redis has of a user: the streak that ends on ``last`` (None: no day), and the days of
    the month that was asked for."""

    last: date | None
    streak: int
    days: Sequence[int]


class Decision(NamedTuple):
    """What checking in came to; see check_in.lua for the codes. ``seen`` None: COLD.

    ``accepted_us``: when the day was accepted, 0 when MySQL has it already.
    """

    code: str
    seen: Seen | None
    accepted_us: int = 0


def outboxes_key(shard: int) -> str:
    """The index of the outboxes of a shard."""
    return f"{{{shard}}}:checkins:outboxes"


def _ttl_s() -> int:
    return int(TTL_S * random.uniform(0.9, 1.1))  # what came together need not go together


def check_in(user_id: int, day: date, now_us: int) -> Decision:
    """Set a day. One round trip. Raises RedisDown."""
    keys = Keys(user_id)
    code, *found = redis.run(
        CHECK_IN,
        (keys.head, keys.month(day), keys.outbox, keys.outboxes),
        (day.toordinal(), day.day, user_id, now_us, _ttl_s()),
    )
    if not found:
        return Decision(code, None)
    *seen, accepted_us = found
    return Decision(code, _seen(*seen), int(accepted_us))


def read(user_id: int, first: date) -> Seen | None:
    """The streak and the month that begins on ``first``; None when not all is there.

    One round trip. Raises RedisDown.
    """
    keys = Keys(user_id)
    (last, streak), [bits] = redis.pipeline(
        [
            ("HMGET", keys.head, "last", "streak"),
            ("BITFIELD", keys.month(first), "GET", "u32", 0),
        ]
    )
    if last is None or not bits >> _DAYS:
        return None
    return _seen(int(last), int(streak), bits)


def take_lease(user_id: int) -> str:
    """Leave to bring back what MySQL says from now on. One round trip. Raises RedisDown."""
    key = Keys(user_id).lease
    lease = secrets.token_hex(8)
    # Who comes second shares the first one's: it stands as long as nothing was settled since.
    _, held = redis.pipeline([("SET", key, lease, "NX", "EX", LEASE_TTL_S), ("GET", key)])
    return str(held)


def hydrate(user_id: int, lease: str, first: date, recorded: Recorded) -> bool:
    """Bring the streak and the month of ``first`` back; False when the lease has ended.

    One round trip. Raises RedisDown.
    """
    keys = Keys(user_id)
    bits = 1 << _DAYS | sum(1 << (_DAYS - day.day) for day in recorded.days)
    length = (next_month(first) - first).days
    runs = (day.toordinal() for run in recorded.runs for day in (run.first, run.last))
    done = redis.run(
        HYDRATE,
        (keys.head, keys.month(first), keys.outbox, keys.lease),
        (lease, _ttl_s(), first.toordinal(), length, bits, *runs),
    )
    return bool(done)


def settle_all(saved: Sequence[CheckedIn]) -> int:
    """Tell Redis what MySQL has; of how many it didn't know. One round trip. Raises RedisDown."""
    calls = []
    for fact in saved:
        keys, day = Keys(fact.user_id), fact.day
        calls.append(
            Call(
                SETTLE,
                (keys.head, keys.month(day), keys.outbox, keys.lease, keys.outboxes),
                (day.toordinal(), day.day, fact.user_id),
            )
        )
    return sum(redis.run_all(calls))


def adopt_all(unsaved: Sequence[CheckedIn]) -> int:
    """Put days that MySQL could not take into the outbox; of how many Redis did not know.

    One round trip. Raises RedisDown.
    """
    calls = []
    for fact in unsaved:
        keys, day = Keys(fact.user_id), fact.day
        calls.append(
            Call(
                ADOPT,
                (keys.head, keys.month(day), keys.outbox, keys.outboxes),
                (day.toordinal(), day.day, fact.user_id, fact.ver_us),
            )
        )
    return sum(redis.run_all(calls))


def _seen(last: int, streak: int, bits: int) -> Seen:
    days = [day for day in range(1, _DAYS + 1) if bits >> (_DAYS - day) & 1]
    return Seen(date.fromordinal(last) if last else None, streak, days)
