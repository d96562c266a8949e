"""Append events in the transaction of what happened; the gate of the log comes first in it."""

from plaza.event_log.mysql_append import append, pass_gate

__all__ = ["append", "pass_gate"]
