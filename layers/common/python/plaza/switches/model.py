"""Changes of switches, and levels of degradation: named sets of switches. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from plaza.infra.runtime.errors import Conflict
from plaza.infra.runtime.switch_state import Switches

_RELIEVED = Switches(cached_lists_only=True, anonymous_factor=0.5, log_sample_rate=0.1)
_ESSENTIAL = replace(
    _RELIEVED,
    comments_stopped=True,
    posts_stopped=True,
    sign_ups_stopped=True,
    reads_factor=0.5,
    writes_factor=0.5,
)
LEVELS: Mapping[str, Switches] = {
    "normal": Switches(),
    "relieved": _RELIEVED,
    "essential": _ESSENTIAL,
    "read_only": replace(_ESSENTIAL, read_only=True),
}
"""Level -> its switches, each level stricter than the one before. No level stops a sale."""


class SwitchesChanged(Conflict):
    """Another operator changed the switches since this one read them."""

    slug = "switches-changed"
    title = "Switches changed"
    example = "The switches are newer than version 2."


class SwitchChange(NamedTuple):
    """The switches after one change."""

    version: int
    switches: Switches
    reason: str
    changed_by: int
    changed_us: int


NO_CHANGE = SwitchChange(0, Switches(), "", 0, 0)
"""Before the first change."""


def level_of(switches: Switches) -> str | None:
    """Return the level with these switches, stopped sales aside; None if there is none."""
    general = replace(switches, stopped_sales=frozenset())
    return next((name for name, level in LEVELS.items() if level == general), None)


def at_level(name: str, switches: Switches) -> Switches:
    """Return ``switches`` at a level: sales that are stopped stay stopped."""
    return replace(LEVELS[name], stopped_sales=switches.stopped_sales)
