"""The newest switches in Redis, for all processes:

{<shard>}:switches:newest             hash    version; value: when to compare it with MySQL, seconds
                                              since 1970, and the switches as JSON
{<shard>}:switches:newest:comparison  string  claim of the process that compares
"""

from __future__ import annotations

from typing import Any, NamedTuple

from plaza.core.switches.model import SWITCHES, Switches
from plaza.infra.derived import projections
from plaza.infra.derived.projections import Projection, key_of
from plaza.infra.redis import locks, redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec

TTL_S = 30 * 86_400  # a new process finds the switches also while MySQL is unavailable
# A writer stores its change at once. A comparison repairs a change whose store was lost.
COMPARE_AFTER_S = 30
COMPARISON_CLAIM_TTL_S = 10

KEY = key_of("switches", "newest")
READ = projections.read_command(KEY)


class StoredSwitches(NamedTuple):
    """Switches, and when to compare them with MySQL, seconds since 1970."""

    compare_at_s: int
    switches: Switches

    @property
    def is_due(self) -> bool:
        return self.compare_at_s <= clock.now_s()


def _encode(stored: StoredSwitches) -> str:
    return f"{stored.compare_at_s};{SWITCHES.encode(stored.switches)}"


def _decode(text: str) -> StoredSwitches:
    compare_at_s, _, switches = text.partition(";")
    return StoredSwitches(int(compare_at_s), SWITCHES.decode(switches))


STORED = Codec("stored_switches", _encode, _decode)


def parse(reply: Any) -> StoredSwitches | None:
    """Return the switches in the reply to ``READ``, None if Redis has none."""
    stored = projections.parse_reply(reply, STORED)
    return None if stored is None else stored[1]


def read() -> StoredSwitches | None:
    """Return the switches in Redis, None if it has none. One round trip. Raises RedisDown."""
    return parse(redis.pipeline([READ])[0])


def claim_comparison() -> bool:
    """Claim the comparison with MySQL for 10 s; return whether the caller got it.
    One round trip. Raises RedisDown."""
    return locks.try_lock(f"{KEY}:comparison", COMPARISON_CLAIM_TTL_S) is not None


def drop() -> None:
    """Delete the switches in Redis; processes then follow MySQL's. One round trip. Raises
    RedisDown."""
    redis.execute("UNLINK", KEY)


def store(version: int, switches: Switches) -> None:
    """Store switches unless Redis has newer ones. One round trip. Raises RedisDown."""
    compare_at_s = int(clock.now_s()) + COMPARE_AFTER_S
    value = STORED.encode(StoredSwitches(compare_at_s, switches))
    projections.store_all([Projection(KEY, version, value, TTL_S)], create=True)
