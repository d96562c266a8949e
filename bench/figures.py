"""Figures: a measured value, its peer, and whether its goal is reached. No I/O."""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Peer:
    """The value that a figure is compared with: same unit, same run."""

    name: str
    value: float


@dataclass(frozen=True, slots=True)
class Goal:
    """A bound for the measured value or for its ratio to the peer."""

    side: Literal["at least", "at most"]
    bound: float
    of: Literal["value", "ratio"] = "value"

    def __str__(self) -> str:
        sign = ">=" if self.side == "at least" else "<="
        return f"{sign} {format_number(self.bound)}{' x' if self.of == 'ratio' else ''}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: ``value`` in ``unit``. Without a goal it explains the figure above it."""

    name: str
    value: float
    unit: str
    peer: Peer | None = None
    goal: Goal | None = None

    @property
    def ratio(self) -> float | None:
        """Return the multiple of the peer's value; None without a peer or with 0."""
        return self.value / self.peer.value if self.peer and self.peer.value else None

    @property
    def reached(self) -> bool | None:
        """Return whether the goal is reached; None without a goal, False without a ratio."""
        if self.goal is None:
            return None
        reading = self.ratio if self.goal.of == "ratio" else self.value
        if reading is None:
            return False
        return (
            reading >= self.goal.bound
            if self.goal.side == "at least"
            else reading <= self.goal.bound
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "peer": self.peer and {"name": self.peer.name, "value": self.peer.value},
            "ratio": self.ratio,
            "goal": self.goal and str(self.goal),
            "reached": self.reached,
        }


def format_number(value: float) -> str:
    """Format with three significant digits: ``0.184``, ``14.2``, ``43,210``."""
    if value == int(value) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"
