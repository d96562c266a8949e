"""Hot-key counts: each process samples its commands and reports the keys of most commands.

One command in about 100 is counted in memory. Once a minute the counts are sent along with an
ordinary command, into a zset in the shard of its key: no extra round trip, no other node.

{<shard>}:hot:<minute since 1970>     zset  key -> estimated number of commands
{<shard>}:spared:<minute since 1970>  zset  "memory" or "replica", a space, key -> estimated number
                                            of reads that were answered there, not by the master
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

from plaza.infra.redis.commands import Command, key_of_command
from plaza.infra.redis.shards import tag_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import on_reset

SAMPLE_EVERY = 100  # commands per sample, on average
REPORT_EVERY_S = 60
MAX_KEYS = 100  # keys of one zset
REPORT_TTL_S = 900
_MAX_COUNTED_KEYS = 1_000
_MAX_REPORTED_KEYS = 20


class Sampler:
    """The counts of one process. ``gap`` returns the number of commands to the next sample."""

    def __init__(
        self, gap: Callable[[], int] = lambda: random.randint(1, 2 * SAMPLE_EVERY - 1)
    ) -> None:
        self._gap = gap
        self.counts: Counter[str] = Counter()
        self.spared: Counter[str] = Counter()
        self.reset()

    def reset(self) -> None:
        """Clear the counts."""
        self.counts.clear()
        self.spared.clear()
        self._left = self._gap()
        self._spared_left = self._gap()
        self._reported_s = clock.now_s()

    def sample(self, commands: Sequence[Command]) -> list[Command]:
        """Sample ``commands`` before they are sent; return commands to send along, mostly none."""
        self._left -= len(commands)
        return [] if self._left > 0 else self._count(commands)

    def sample_spared(self, source: str, name_key: Callable[[], str]) -> None:
        """Sample a read that ``source`` answered, ``memory`` or ``replica``."""
        self._spared_left -= 1
        if self._spared_left <= 0:
            self._spared_left += self._gap()
            self.spared[f"{source} {name_key()}"] += 1
            self.spared = _trim(self.spared)

    def _count(self, commands: Sequence[Command]) -> list[Command]:
        key = ""
        while self._left <= 0:
            key = key_of_command(commands[self._left - 1]) or key
            if key:
                self.counts[key] += 1
            self._left += self._gap()
        self.counts = _trim(self.counts)
        now_s = clock.now_s()
        if now_s - self._reported_s < REPORT_EVERY_S or not key:
            return []
        self._reported_s = now_s
        return self._report(tag_of(key) + "}", int(now_s // 60))

    def _report(self, tag: str, minute: int) -> list[Command]:
        reported, self.counts = self.counts.most_common(_MAX_REPORTED_KEYS), Counter()
        spared, self.spared = self.spared.most_common(_MAX_REPORTED_KEYS), Counter()
        return [
            *_add_counts(hot_key(tag, minute), reported),
            *_add_counts(spared_key(tag, minute), spared),
        ]


def _trim(counts: Counter[str]) -> Counter[str]:
    if len(counts) <= _MAX_COUNTED_KEYS:
        return counts
    return Counter(dict(counts.most_common(_MAX_COUNTED_KEYS // 2)))


def _add_counts(key: str, counts: Sequence[tuple[str, int]]) -> list[Command]:
    if not counts:
        return []
    return [
        *(("ZINCRBY", key, count * SAMPLE_EVERY, member) for member, count in counts),
        ("ZREMRANGEBYRANK", key, 0, -MAX_KEYS - 1),
        ("EXPIRE", key, REPORT_TTL_S),
    ]


def hot_key(tag: str, minute: int) -> str:
    """Return the key of a minute's counts that were sent along with keys of ``tag`` (``{7}``)."""
    return f"{tag}:hot:{minute}"


def spared_key(tag: str, minute: int) -> str:
    """Return the key of a minute's reads that the master did not answer, as ``hot_key``."""
    return f"{tag}:spared:{minute}"


sampler = Sampler()
on_reset(sampler.reset)
