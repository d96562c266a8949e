"""Polls and screens that this process answered, added up in Redis once a second, for the console.

{<shard>}:live:polls             string  number of polls ever answered; begins again after a loss
{<shard>}:live:screens:<minute>  string  HyperLogLog of the screens of a minute: pairs of an address
                                         and the references that it asked for
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import inf

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import on_reset

STORE_S = 1.0
SCREENS_TTL_S = 180
MAX_SCREENS = 1_000  # of a process in STORE_S; the polls of others are counted

_POLLS = key_of("live", "polls")


class _Counted:
    """What is not stored yet, and when it is due, by the monotonic clock."""

    def __init__(self) -> None:
        self.polls, self.screens, self.due_s = 0, set[str](), -inf


_counted = _Counted()
on_reset(lambda: vars(_counted).update(vars(_Counted())))


def count_poll(address: str, references: Sequence[str]) -> None:
    """Count a poll. One round trip a second; without Redis it is stored by a later poll."""
    _counted.polls += 1
    if len(_counted.screens) < MAX_SCREENS:
        _counted.screens.add(f"{address} {','.join(references)}")
    now_s = clock.monotonic_s()
    if now_s < _counted.due_s:
        return
    _counted.due_s = now_s + STORE_S
    key = _screens_key(_minute_now())
    with suppress(RedisDown):
        redis.pipeline(
            [
                ("INCRBY", _POLLS, _counted.polls),
                ("PFADD", key, *_counted.screens),
                ("EXPIRE", key, SCREENS_TTL_S),
            ]
        )
        _counted.polls, _counted.screens = 0, set()


def read_screens() -> dict[str, float]:
    """Return the number of polls that were ever answered, and of the screens of the last whole
    minute, within about 1 %. One round trip. Raises RedisDown."""
    polls, screens = redis.pipeline([("GET", _POLLS), ("PFCOUNT", _screens_key(_minute_now() - 1))])
    return {"polls_total": int(polls or 0), "screens": int(screens)}


def _screens_key(minute: int) -> str:
    return key_of("live", f"screens:{minute}")


def _minute_now() -> int:
    return int(clock.now_s()) // 60
