"""Check-ins: once a day, by the user's own clock, and the streak that comes of it."""

from plaza.checkins.model import CheckInEvent, Month

__all__ = [
    "CheckInEvent",
    "Month",
]
