"""The switches that this process follows: what operators switch off without a deploy.

``plaza.switches`` stores them and refreshes the copy of each process; this module has the copy and
what reads it: routes, rate limits and logs. A process without a copy has all switches normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf

from plaza.infra.runtime import clock
from plaza.infra.runtime.codec import Codec, json_codec
from plaza.infra.runtime.errors import SwitchedOff
from plaza.infra.runtime.process import on_reset

MAX_AGE_S = 2.0
"""How old the copy of a process may be when it serves a request."""


class Switch(Enum):
    """What a route declares: the switch that stops it. ``read_only`` stops all of them."""

    WRITES = "read_only"
    COMMENTS = "comments_stopped"
    POSTS = "posts_stopped"
    SIGN_UPS = "sign_ups_stopped"
    ORDERS = "stopped_sales"


@dataclass(frozen=True, slots=True)
class Switches:
    """All switches. ``stopped_sales`` are ids of vouchers, as the API writes them; a factor
    multiplies a rate limit; ``log_sample_rate`` is the share of requests that are logged."""

    read_only: bool = False
    comments_stopped: bool = False
    posts_stopped: bool = False
    sign_ups_stopped: bool = False
    stopped_sales: frozenset[str] = frozenset()
    cached_lists_only: bool = False
    reads_factor: float = 1.0
    writes_factor: float = 1.0
    anonymous_factor: float = 1.0
    log_sample_rate: float = 1.0


SWITCHES: Codec[Switches] = json_codec("switches", Switches, order="sorted")
"""Equal switches are equal texts. Switches of another version are ignored or normal."""

_REASONS = {
    Switch.COMMENTS: "New comments are switched off.",
    Switch.POSTS: "New posts and changes of posts are switched off.",
    Switch.SIGN_UPS: "New accounts are switched off.",
}


class _Copy:
    """The copy of this process, and when it has to be refreshed, by the monotonic clock."""

    switches = Switches()
    due_s = -inf


_copy = _Copy()


def _reset() -> None:
    _copy.switches, _copy.due_s = Switches(), -inf


on_reset(_reset)


def current() -> Switches:
    """Return the switches that this process follows."""
    return _copy.switches


def is_due() -> bool:
    """Return whether the copy is older than ``MAX_AGE_S``."""
    return clock.monotonic_s() >= _copy.due_s


def follow(switches: Switches | None) -> None:
    """Replace the copy, or keep it (None), for ``MAX_AGE_S``."""
    _copy.due_s = clock.monotonic_s() + MAX_AGE_S
    if switches is not None:
        _copy.switches = switches


def require(switch: Switch, parameters: Mapping[str, str] | None = None) -> None:
    """Raise SwitchedOff if ``switch`` stops a request with these ``parameters`` of the path."""
    switches = _copy.switches
    if switches.read_only:
        raise SwitchedOff("Plaza is in read-only mode.")
    if switch is Switch.WRITES:
        return
    if switch is Switch.ORDERS:
        voucher_id = (parameters or {})["voucher_id"]
        if voucher_id in switches.stopped_sales:
            raise SwitchedOff(f"Orders of voucher {voucher_id} are switched off.")
    elif getattr(switches, switch.value):
        raise SwitchedOff(_REASONS[switch])
