"""Check-ins: once a day, by the user's own clock, and the streak that comes of it."""

from plaza.checkins.checking_in import check_in, read_month
from plaza.checkins.checkins import CheckedIn, Month
from plaza.checkins.queues import CHECKINS
from plaza.checkins.saving import save, sweep_checkins

__all__ = [
    "CHECKINS",
    "CheckedIn",
    "Month",
    "check_in",
    "read_month",
    "save",
    "sweep_checkins",
]
