"""Check-ins for the audit: days in MySQL, streaks and months in Redis."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

import redis
from pymysql.cursors import Cursor

from plaza.commerce.checkins.redis_store import CheckInKeys

_KEY = re.compile(r"\{\d+\}:user:(\d{1,19}):checkins(?::(\d{4}-\d\d)|:outbox)?", re.ASCII)
_OUTBOX_INDEX_KEY = re.compile(r"\{\d+\}:checkins:outboxes", re.ASCII)
_WHOLE = 31  # the bit that marks a month as complete


@dataclass(slots=True)
class Calendar:
    """A user's check-ins in Redis. ``streak``: (last day, length); ``months``: days of complete
    months; ``pending``: number of days in the outbox."""

    streak: tuple[date | None, int] | None = None
    months: dict[date, frozenset[date]] = field(default_factory=dict)
    pending: int = 0


@dataclass(slots=True)
class CheckinKeys:
    """The keys of check-ins. ``users``: user -> months; ``outbox_index``: keys of the indexes."""

    users: dict[int, set[date]] = field(default_factory=dict)
    outbox_index: set[str] = field(default_factory=set)

    def add_key(self, key: str) -> None:
        """Add ``key`` if it belongs to check-ins."""
        if _OUTBOX_INDEX_KEY.fullmatch(key):
            self.outbox_index.add(key)
        elif match := _KEY.fullmatch(key):
            months = self.users.setdefault(int(match[1]), set())
            if match[2]:
                months.add(date.fromisoformat(f"{match[2]}-01"))


def read_days(cursor: Cursor) -> dict[int, set[date]]:
    """Return the days of every user. One statement."""
    cursor.execute("SELECT user_id, day FROM checkin")
    days: dict[int, set[date]] = {}
    for user_id, day in cursor:
        days.setdefault(user_id, set()).add(day)
    return days


def read_calendars(
    client: redis.Redis, checkin_keys: CheckinKeys, find_term: Callable[[str], str]
) -> dict[int, Calendar]:
    """Read the calendars of the users of ``checkin_keys``, unless hydrated under another term
    than the term of a key's node, which ``find_term`` returns. One pipeline."""
    pipe = client.pipeline(transaction=False)
    for user_id, months in checkin_keys.users.items():
        keys = CheckInKeys(user_id)
        pipe.hgetall(keys.head)
        pipe.hlen(keys.outbox)
        for month in sorted(months):
            pipe.bitfield(keys.month(month)).get("u32", 0).execute()
    replies = iter(pipe.execute() if checkin_keys.users else ())
    calendars = {}
    for user_id, months in checkin_keys.users.items():
        head, pending = next(replies), next(replies)
        calendar = Calendar(pending=pending)
        is_loaded = head.get("term") == find_term(CheckInKeys(user_id).head)
        if is_loaded and "last" in head:
            last = int(head["last"])
            calendar.streak = date.fromordinal(last) if last else None, int(head["streak"])
        for month in sorted(months):
            [bits] = next(replies)
            if is_loaded and f"{month:%Y-%m}" in head and bits >> _WHOLE:
                calendar.months[month] = frozenset(
                    month + timedelta(days=day - 1)
                    for day in range(1, _WHOLE + 1)
                    if bits >> (_WHOLE - day) & 1
                )
        calendars[user_id] = calendar
    return calendars


def find_wrong_calendars(
    days: Mapping[int, Collection[date]], calendars: Mapping[int, Calendar]
) -> Iterator[tuple[str, str]]:
    """Yield users whose days or streak in Redis differ from the rows.

    Users with pending days are skipped: Redis has days that MySQL does not have yet.
    """
    for user_id, calendar in sorted(calendars.items()):
        own_days = set(days.get(user_id, ()))
        if calendar.pending:
            continue
        streak = count_streak(own_days)
        if calendar.streak is not None and calendar.streak != streak:
            details = "Redis {1} up to {0}, rows {3} up to {2}".format(*calendar.streak, *streak)
            yield f"streak of user {user_id}", details
        for month, shown in sorted(calendar.months.items()):
            rows = {day for day in own_days if day.replace(day=1) == month}
            if differing := sorted(shown ^ rows):
                details = f"Redis {len(shown)} days, rows {len(rows)}; first: {differing[0]}"
                yield f"check-ins of user {user_id} in {month:%Y-%m}", details


def count_streak(days: Collection[date]) -> tuple[date | None, int]:
    """Return (the newest day, number of consecutive days that end there)."""
    if not days:
        return None, 0
    unique, last = set(days), max(days)
    length = 1
    while last - timedelta(days=length) in unique:
        length += 1
    return last, length
