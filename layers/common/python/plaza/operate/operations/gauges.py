"""Gauges: numbers that contexts measure, read now or sampled once a minute for plots.

A meter is a function that returns gauges: name -> value. A name may end with ``:`` and the queue
that the gauge is of. The value of a gauge ``..._total`` never falls; plots show its increase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from plaza.infra.jobs.expiry import Expiry
from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec, json_codec
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.operate.operations import mysql_samples

Meter = Callable[[], Mapping[str, float]]

RETAINED_MIN = 1_440
MAX_GAP_MIN = 5  # between two samples whose difference is shown
SAMPLE: Codec[Mapping[str, float]] = json_codec("gauge_samples", dict[str, float])
_TOTAL, _RATE = "_total", "_per_min"


class Series(NamedTuple):
    """A gauge of ``queue``, or of no queue: one value a minute, None without a sample."""

    name: str
    queue: str | None
    values: list[float | None]


def read_gauges(meters: Iterable[Meter]) -> dict[str, float]:
    """Return the gauges of ``meters``, without meters that raised Unavailable."""
    gauges: dict[str, float] = {}
    for meter in meters:
        try:
            gauges |= meter()
        except Unavailable as error:
            record("gauges_unavailable", meter=meter.__name__, **error_fields(error))
    return gauges


def take_sample(meters: Iterable[Meter]) -> int:
    """Store the gauges of this minute; return how many. Safe to repeat. Raises MysqlDown."""
    gauges = read_gauges(meters)
    mysql_samples.store(_minute_now(), SAMPLE.encode(gauges))
    record("gauges_sampled", gauges=len(gauges))
    return len(gauges)


def read_series(minutes: int) -> tuple[int, list[Series]]:
    """Return (the first minute since 1970, the series of the last ``minutes``, by name).

    The last value is the current minute's. One statement. Raises MysqlDown.
    """
    first = _minute_now() - minutes + 1
    # Earlier samples only serve as the begin of an increase.
    rows = mysql_samples.read(first - MAX_GAP_MIN)
    samples = {minute: sample for minute, text in rows if (sample := SAMPLE.read(text))}
    names = sorted({name for sample in samples.values() for name in sample})
    return first, [_build_series(name, samples, first, minutes) for name in names]


def delete_expired(limit: int) -> int:
    """Delete up to ``limit`` samples older than a day; return how many. One statement. Raises
    MysqlDown."""
    return mysql_samples.delete_before(_minute_now() - RETAINED_MIN - MAX_GAP_MIN, limit)


EXPIRY = Expiry("gauge_sample", delete_expired)


def _minute_now() -> int:
    return int(clock.now_s()) // 60


def _build_series(
    full_name: str, samples: Mapping[int, Mapping[str, float]], first: int, minutes: int
) -> Series:
    name, _, queue = full_name.partition(":")
    known = {minute: gauges[full_name] for minute, gauges in samples.items() if full_name in gauges}
    if name.endswith(_TOTAL):
        name = name.removesuffix(_TOTAL) + _RATE
        known = _to_rates(sorted(known.items()))
    values = [known.get(minute) for minute in range(first, first + minutes)]
    return Series(name, queue or None, values)


def _to_rates(totals: Sequence[tuple[int, float]]) -> dict[int, float]:
    """Return minute -> increase a minute since the sample before. A total that fell, because MySQL
    was restored, and one after a gap have none."""
    return {
        minute: round((total - before) / (minute - earlier), 1)
        for (earlier, before), (minute, total) in pairwise(totals)
        if total >= before and minute - earlier <= MAX_GAP_MIN
    }
