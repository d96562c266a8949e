"""Check-ins: once a day, by the user's own clock, and the streak that comes of it."""

from plaza.checkins.checkins import CheckedIn, Month

__all__ = [
    "CheckedIn",
    "Month",
]
