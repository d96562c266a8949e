"""Append events in the transaction of what happened; the gate of the log comes first in it."""

from plaza.event_log.mysql_append import SHARE_GATE, append, pass_gate, require_gate

__all__ = ["SHARE_GATE", "append", "pass_gate", "require_gate"]
