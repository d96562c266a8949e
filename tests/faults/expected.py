"""Known failures, each with its reason. An entry that no triple needs is an error."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.faults.play import Triple
from tests.faults.transport import Mode
from tests.faults.use_cases import UseCase


class Expected(NamedTuple):
    """Triples that may fail. ``cases``: a regular expression for whole names; ``call``: part of the
    call's text."""

    cases: str
    call: str
    modes: tuple[Mode, ...]
    reason: str

    @property
    def id(self) -> str:
        """Return the entry as part of a test's name."""
        return " ".join([self.cases, self.call, *self.modes])

    def covers(self, case: UseCase) -> bool:
        """Return whether triples of ``case`` may match."""
        return re.fullmatch(self.cases, case.name) is not None

    def matches(self, triple: Triple) -> bool:
        """Return whether ``triple`` matches."""
        return (
            self.covers(triple.case)
            and self.call in str(triple.call)
            and triple.fault.mode in self.modes
        )


EXPECTED: list[Expected] = []


def find_expected(triple: Triple) -> Expected | None:
    """Return the entry that allows ``triple`` to fail."""
    return next((expected for expected in EXPECTED if expected.matches(triple)), None)
