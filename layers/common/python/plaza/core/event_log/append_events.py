"""Append events in the transaction of what happened; the barrier of the log comes first in it."""

from plaza.core.event_log.mysql_append import SHARE_BARRIER, append, pass_barrier, require_barrier

__all__ = ["SHARE_BARRIER", "append", "pass_barrier", "require_barrier"]
