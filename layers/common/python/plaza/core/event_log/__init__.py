"""Events out: what happened, for other systems, in the order of the commits and without gaps.

Owns the tables event_log, event_barrier, event_head and event_offset. Reactions and follows are
read from the reaction log; the owners of comments, orders and reports append theirs by
``append_events``. Webhooks use ``read_events`` and ``model``.
"""

__all__ = ["append_events", "model", "read_events"]
