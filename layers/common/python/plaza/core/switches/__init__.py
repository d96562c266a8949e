"""Switches: what operators stop, limit or slow down without a deploy, and who changed it.

Owns the table switch_change, whose newest row has the current switches, and their copy in Redis.
``infra.runtime.switch_state`` has the copy of a process. ``auth`` calls ``refresh`` when it
identifies a caller; schedules call ``refresh.read``.
"""

from plaza.core.switches.model import (
    LEVELS,
    Switch,
    SwitchChange,
    Switches,
    SwitchesChanged,
    current,
    level_of,
)

__all__ = [
    "LEVELS",
    "Switch",
    "SwitchChange",
    "Switches",
    "SwitchesChanged",
    "change_switches",
    "current",
    "level_of",
    "refresh",
]
