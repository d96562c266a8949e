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


EXPECTED: list[Expected] = [
    Expected(
        "POST /vouchers/{voucher_id}/orders",
        "EVALSHA reserve",
        (Mode.REPLY_DROPPED,),
        "the repeat answers EXISTS with our own id, which the next buyer gets, too",
    ),
    Expected(
        "POST /vouchers/{voucher_id}/orders, twice",
        "EVALSHA reserve",
        (Mode.REPLY_DROPPED,),
        "the repeat answers EXISTS with our own id: 200, and the order is not published",
    ),
    Expected(
        "POST /vouchers/{voucher_id}/orders, the last unit",
        "EVALSHA reserve",
        (Mode.REPLY_DROPPED,),
        "the repeat answers EXISTS with our own id, which the next buyer gets, too",
    ),
    Expected(
        "POST /auth/sessions",
        "EVALSHA check_code",
        (Mode.REPLY_DROPPED,),
        "the repeat finds the code used: 401 for the right code",
    ),
]


def find_expected(triple: Triple) -> Expected | None:
    """The entry that says that ``triple`` fails."""
    return next((expected for expected in EXPECTED if expected.matches(triple)), None)
