"""Known failures, each with its reason. An entry that no triple needs any more is an error."""

from __future__ import annotations

from typing import NamedTuple

from tests.faults.play import Triple
from tests.faults.transport import Mode


class Expected(NamedTuple):
    """Triples that fail. ``call``: a part of its text; no ``modes``: all of them."""

    case: str
    call: str
    modes: tuple[Mode, ...]
    reason: str

    @property
    def id(self) -> str:
        """For the name of a test."""
        return " ".join([self.case, self.call, *self.modes])

    def matches(self, triple: Triple) -> bool:
        """Whether ``triple`` is one of them."""
        return (
            triple.case.name == self.case
            and self.call in str(triple.call)
            and (not self.modes or triple.fault.mode in self.modes)
        )


EXPECTED: list[Expected] = []


def find_expected(triple: Triple) -> Expected | None:
    """The entry that says that ``triple`` fails."""
    return next((expected for expected in EXPECTED if expected.matches(triple)), None)
