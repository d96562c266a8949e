"""Check-ins of a user whose outbox has each day of a year in which MySQL was away."""

from __future__ import annotations

from datetime import date, timedelta

from bench.scripts.cases import Case
from bench.stage import Stage
from plaza.checkins import redis_checkins, redis_outbox
from plaza.checkins.checkins import CheckedIn, Recorded, Run
from plaza.checkins.mysql_checkins import MOST_RUNS

DAYS = 366
_USER = 10**18
_FIRST = date(2025, 1, 1)
_LAST = _FIRST + timedelta(days=DAYS - 1)
_VER_US = 1_700_000_000_000_000


def _day(number: int) -> date:
    return _FIRST + timedelta(days=number)


def _fill_outbox(stage: Stage) -> None:
    facts = [CheckedIn(_USER, _day(n), _VER_US + n) for n in range(DAYS)]
    redis_checkins.adopt_all(facts)


def _hydrate(run: int = 0) -> None:
    """The runs of MySQL end on every second day of the outbox's months before."""
    runs = [Run(_day(-2 * n), _day(-2 * n)) for n in range(1, MOST_RUNS + 1)]
    days = [_LAST.replace(day=d) for d in range(1, 32)]
    lease = redis_checkins.take_lease(_USER)
    redis_checkins.hydrate(_USER, lease, _LAST.replace(day=1), Recorded(runs, days))


def _load(stage: Stage) -> None:
    _fill_outbox(stage)
    _hydrate()


CASES = [
    Case(
        "a full outbox",
        redis_checkins.CHECK_IN,
        _load,
        lambda run: redis_checkins.check_in(_USER, _LAST, _VER_US + DAYS),
    ),
    Case("40 runs and a full outbox", redis_checkins.HYDRATE, _fill_outbox, _hydrate),
    Case(
        "a full outbox",
        redis_checkins.SETTLE,
        _load,
        lambda run: redis_checkins.settle_all([CheckedIn(_USER, _day(run), _VER_US)]),
    ),
    Case(
        "a full outbox",
        redis_outbox.SWEEP,
        _load,
        lambda run: redis_outbox.sweep_all([_USER], 0, 1),
    ),
    Case(
        "a full outbox",
        redis_checkins.ADOPT,
        _load,
        lambda run: redis_checkins.adopt_all([CheckedIn(_USER, _day(DAYS + run), _VER_US)]),
    ),
]
