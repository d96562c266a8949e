"""Check-ins of a user whose outbox has each day of a year of a MySQL outage."""

from datetime import date, timedelta

from bench.harness import Harness
from bench.scripts.cases import Case
from plaza.commerce.checkins import redis_outbox, redis_store
from plaza.commerce.checkins.model import CheckInEvent, DayRange, StoredCheckIns
from plaza.commerce.checkins.mysql_store import MAX_RANGES

DAYS = 366
_USER = 10**18
_FIRST = date(2025, 1, 1)
_LAST = _FIRST + timedelta(days=DAYS - 1)
_VERSION_US = 1_700_000_000_000_000


def _day(number: int) -> date:
    return _FIRST + timedelta(days=number)


def _fill_outbox(harness: Harness) -> None:
    events = [CheckInEvent(_USER, _day(n), _VERSION_US + n) for n in range(DAYS)]
    redis_store.add_to_outboxes(events)


def _hydrate(run: int = 0) -> None:
    """Hydrate with ranges that end on every second day of the months before the outbox."""
    ranges = [DayRange(_day(-2 * n), _day(-2 * n)) for n in range(1, MAX_RANGES + 1)]
    days = [_LAST.replace(day=d) for d in range(1, 32)]
    lease = redis_store.acquire_lease(_USER)
    redis_store.hydrate(_USER, lease, _LAST.replace(day=1), StoredCheckIns(ranges, days))


def _load(harness: Harness) -> None:
    _fill_outbox(harness)
    _hydrate()


CASES = [
    Case(
        "a full outbox",
        redis_store.CHECK_IN,
        _load,
        lambda run: redis_store.check_in(_USER, _LAST, _VERSION_US + DAYS),
    ),
    Case("40 ranges and a full outbox", redis_store.HYDRATE, _fill_outbox, _hydrate),
    Case(
        "a full outbox",
        redis_store.ACKNOWLEDGE,
        _load,
        lambda run: redis_store.acknowledge_all([CheckInEvent(_USER, _day(run), _VERSION_US)]),
    ),
    Case(
        "a full outbox",
        redis_outbox.SWEEP,
        _load,
        lambda run: redis_outbox.sweep_all([_USER], 0, 1),
    ),
    Case(
        "a full outbox",
        redis_store.ADD_TO_OUTBOX,
        _load,
        lambda run: redis_store.add_to_outboxes(
            [CheckInEvent(_USER, _day(DAYS + run), _VERSION_US)]
        ),
    ),
]
