"""Changes of switches, and levels of degradation: named sets of switches. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from plaza.infra.runtime import switch_state
from plaza.infra.runtime.codec import Codec, json_codec
from plaza.infra.runtime.errors import Conflict
from plaza.infra.runtime.switch_state import BaseSwitches


@dataclass(frozen=True, slots=True)
class Switches(BaseSwitches):
    """All switches. ``stopped_sales`` are ids of vouchers, as the API writes them; ``live_poll_s``
    is the interval at which clients poll totals, 0: they do not."""

    comments_stopped: bool = False
    posts_stopped: bool = False
    notifications_stopped: bool = False
    sign_ups_stopped: bool = False
    stopped_sales: frozenset[str] = frozenset()
    cached_lists_only: bool = False
    reads_factor: float = 1.0
    writes_factor: float = 1.0
    live_poll_s: int = 5


SWITCHES: Codec[Switches] = json_codec("switches", Switches, order="sorted")
"""Equal switches are equal texts. Switches of another version are ignored or normal."""

_NORMAL = Switches()


def current() -> Switches:
    """Return the switches that this process follows."""
    followed = switch_state.current()
    return followed if isinstance(followed, Switches) else _NORMAL


class Switch(Enum):
    """The switch that stops a route."""

    COMMENTS = "New comments are switched off."
    POSTS = "New posts and changes of posts are switched off."
    SIGN_UPS = "New accounts are switched off."
    ORDERS = "Orders of voucher {} are switched off."

    def find_reason(self, parameters: Mapping[str, str]) -> str | None:
        """Return why the current switches stop a request with these parameters of the path."""
        switches = current()
        match self:
            case Switch.COMMENTS:
                is_stopped = switches.comments_stopped
            case Switch.POSTS:
                is_stopped = switches.posts_stopped
            case Switch.SIGN_UPS:
                is_stopped = switches.sign_ups_stopped
            case Switch.ORDERS:
                is_stopped = parameters["voucher_id"] in switches.stopped_sales
        return self.value.format(parameters.get("voucher_id")) if is_stopped else None


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
    "warming": Switches(readers_held=True),
}
"""Level -> its switches, each level stricter than the one before, but for ``warming``, which ends
when WarmUp does. No level changes the switches of one sale, of live numbers or of
notifications."""


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
    """Return the level with these switches, those aside that no level changes; None if there is
    none."""
    return next((name for name in LEVELS if at_level(name, switches) == switches), None)


def at_level(name: str, switches: Switches) -> Switches:
    """Return ``switches`` at a level: sales that are stopped stay stopped, live numbers and
    notifications as they are."""
    return replace(
        LEVELS[name],
        stopped_sales=switches.stopped_sales,
        live_poll_s=switches.live_poll_s,
        notifications_stopped=switches.notifications_stopped,
    )
