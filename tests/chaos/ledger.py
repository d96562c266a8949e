"""Requests of one reaction, and the states and answers that they allow.

Rules

- 200 is final: the reaction has the wanted state until the next change.
- 202 is a promise: the wanted state follows, unless a later request is answered 200.
- 503 may be executed or not; a request without an answer may be executed at any time.
- Overlapping requests may be executed in either order.
- When Redis loses its data, earlier requests may still be on the queue: until they are saved,
  answers may show the state before them (docs/limits.md, reactions). In the end they count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NO_ANSWER = 0


class Request(NamedTuple):
    """One request for a state, and its answer. Times are monotonic.

    ``changed`` is None unless the answer is 200.
    """

    began_s: float
    ended_s: float
    on: bool
    status: int
    changed: bool | None = None


@dataclass(slots=True)
class Ledger:
    """Requests of one reaction in the order of their answers; it was off before them.

    ``losses``: shared list of the times at which Redis lost its data (monotonic).
    """

    losses: Sequence[float] = ()
    requests: list[Request] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    @property
    def known(self) -> bool | None:
        """Return the state after the last answer; None when the answers leave it open."""
        if not self.requests:
            return False
        last = self.requests[-1]
        overlaps = any(request.ended_s > last.began_s for request in self.requests[:-1])
        unanswered = any(request.status == NO_ANSWER for request in self.requests)
        lost = bool(self.losses) and last.began_s <= self.losses[-1]
        return None if last.status != 200 or overlaps or unanswered or lost else last.on

    def add(self, request: Request) -> None:
        """Record a request of the only client, which waited for its earlier answers."""
        known = self.known
        if request.changed is not None and known is not None:
            changes = request.on != known
            if request.changed is not changes:
                self.wrong.append(
                    f"{_name(request.on)} after {_name(known)} is answered changed:"
                    f" {str(request.changed).lower()}; {self.describe_last()}"
                )
        self.requests.append(request)

    def add_both(self, first: Request, second: Request) -> None:
        """Record two requests of two devices that were sent at the same time."""
        self.requests += sorted((first, second), key=lambda request: request.ended_s)

    def observe(self, on: Any) -> None:
        """Record an exact answer to the only client about its own state."""
        known = self.known
        if known is not None and on is not known:
            self.wrong.append(f"after {_name(known)} its state is {on}; {self.describe_last()}")

    def find_allowed(self) -> set[bool]:
        """Return the states that the reaction may have when all queues are empty."""
        decisive = [request for request in self.requests if request.status in (200, 202)]
        allowed = set() if decisive else {False}
        for request in self.requests:
            if request.status == NO_ANSWER or not any(
                later.began_s >= request.ended_s and _outweighs(later, request)
                for later in decisive
            ):
                allowed.add(request.on)
        return allowed

    def describe_last(self, count: int = 5) -> str:
        """Return the last requests as text."""
        last = ", ".join(
            f"{_name(request.on)} {request.status}" for request in self.requests[-count:]
        )
        return f"last requests: {last}"


def find_violations(ledger: Ledger, row: bool, api_state: bool) -> list[str]:
    """Return errors of a reaction with empty queues: of its ``row`` and of the API's state."""
    allowed = ledger.find_allowed()
    broken = []
    if row not in allowed:
        broken.append(f"its row is {_name(row)}; {ledger.describe_last()}")
    if api_state is not row:
        broken.append(f"its row is {_name(row)}, the API answers {_name(api_state)}")
    return broken


def _outweighs(later: Request, earlier: Request) -> bool:
    """Return whether the state of ``later`` counts, in any outcome of ``earlier``."""
    return later.status == 200 or earlier.status in (200, 202)


def _name(on: bool) -> str:
    return "on" if on else "off"
