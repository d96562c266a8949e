"""Times in files that are imported."""

import re
from datetime import UTC, datetime

from plaza.infra.mysql import sql

_UNIX_TIME = re.compile(r"(\d{1,11})(?:\.(\d{1,6}))?", re.ASCII)


def parse_time(column: str, text: str, now_us: int) -> int:
    """Return microseconds since 1970; a time without an offset is UTC. Raises ValueError, also for
    a time after ``now_us``: what users do now has no later one, and lists and cursors order by it.
    """
    if match := _UNIX_TIME.fullmatch(text):
        at_us = int(match[1]) * 1_000_000 + int((match[2] or "").ljust(6, "0"))
    else:
        try:
            at = datetime.fromisoformat(text)
            at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError(
                f"{column} is {text[:40]!r}, not a time like 2026-11-22T12:00:00Z or 1795348800"
            ) from None
        at_us = sql.to_us(at)
    if at_us <= 0:
        raise ValueError(f"{column} is {text[:40]!r}, not after 1970")
    if at_us > now_us:
        raise ValueError(f"{column} is {text[:40]!r}, in the future")
    return at_us
