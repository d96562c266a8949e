"""Daily check-ins in the user's time zone, and their streaks.

Owns the table checkin, the queue of check-ins and the Redis keys listed in ``redis_store``.
Other contexts use ``gauges`` for outboxes, and ``inspection`` for the reconciliation.
"""

from plaza.commerce.checkins.model import CheckInEvent, Month

__all__ = ["CheckInEvent", "Month", "gauges", "inspection"]
