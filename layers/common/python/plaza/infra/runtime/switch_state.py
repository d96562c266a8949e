"""The switches that this process follows: what operators switch off without a deploy.

``plaza.core.switches`` declares and stores them, and refreshes the copy of each process; this
module has the copy and what reads it for all contexts: routes, rate limits and logs. A process
without a copy has all switches normal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Protocol

from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import SwitchedOff
from plaza.infra.runtime.process import on_reset

MAX_AGE_S = 2.0
"""How old the copy of a process may be when it serves a request."""
WARMING_UP = "Plaza is warming up; read again soon."
READERS_RETRY_AFTER_S = 5
"""``Retry-After`` of held readers: warming up takes half a minute."""


@dataclass(frozen=True, slots=True)
class BaseSwitches:
    """The switches of all requests. A factor multiplies a rate limit; ``log_sample_rate`` is the
    share of successful requests that are logged, if the setting of that name is not lower.
    ``readers_held``: readers are asked to wait until Redis is warm."""

    read_only: bool = False
    readers_held: bool = False
    anonymous_factor: float = 1.0
    log_sample_rate: float = 1.0


class RequestSwitch(Protocol):
    """What a route declares: the switch that stops it. ``read_only`` stops all of them."""

    def find_reason(self, parameters: Mapping[str, str], /) -> str | None:
        """Return why the current switches stop a request with these parameters of the path."""


class _Writes:
    """The switch of a route that only ``read_only`` stops."""

    def find_reason(self, _: Mapping[str, str], /) -> str | None:
        return None


ANY_WRITE: RequestSwitch = _Writes()


class _Copy:
    """The copy of this process, and when it has to be refreshed, by the monotonic clock."""

    switches = BaseSwitches()
    due_s = -inf


_copy = _Copy()


def _reset() -> None:
    _copy.switches, _copy.due_s = BaseSwitches(), -inf


on_reset(_reset)


def current() -> BaseSwitches:
    """Return the switches that this process follows."""
    return _copy.switches


def is_due() -> bool:
    """Return whether the copy is older than ``MAX_AGE_S``."""
    return clock.monotonic_s() >= _copy.due_s


def follow(switches: BaseSwitches | None) -> None:
    """Replace the copy, or keep it (None), for ``MAX_AGE_S``."""
    _copy.due_s = clock.monotonic_s() + MAX_AGE_S
    if switches is not None:
        _copy.switches = switches


def require(switch: RequestSwitch, parameters: Mapping[str, str] | None = None) -> None:
    """Raise SwitchedOff if ``switch`` stops a request with these ``parameters`` of the path."""
    if _copy.switches.read_only:
        raise SwitchedOff("Plaza is in read-only mode.")
    if reason := switch.find_reason(parameters or {}):
        raise SwitchedOff(reason)


def require_warm() -> None:
    """Raise SwitchedOff while readers are held."""
    if _copy.switches.readers_held:
        raise SwitchedOff(WARMING_UP, READERS_RETRY_AFTER_S)
