"""What a client gets in each cell of the matrix (design 2, "When parts are down"), as one table.

During a fault an operation is answered by one of the labels of its cell, and by nothing else; by
those behind ``!`` at least once, or the fault did not happen. Nothing promised is ever lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAULTS = ("down", "hanging", "slow", "refusing", "emptied", "failing-over")
OPERATIONS = ("like", "read", "feed", "order", "sign-in", "toggle")

MAX_EXTRA_ANSWER_S = 5.0  # the slowest answer, above the slowest before the fault
MAX_RECOVERY_S = 45.0  # until all is served as ever again


@dataclass(frozen=True, slots=True)
class Expected:
    """The labels that may be seen during a fault, and those that must."""

    allowed: frozenset[str]
    required: frozenset[str]


def _read(cell: str) -> Expected:
    labels = [label.strip() for label in cell.split(",")]
    must = frozenset(label.removeprefix("!") for label in labels if label.startswith("!"))
    return Expected(frozenset(label.removeprefix("!") for label in labels), must)


_NORMAL = ("200", "200", "200", "202", "201")
_WITHOUT_REDIS = (
    "!202 inexact",
    "!200 inexact",
    "!200 inexact",
    "!503 unavailable",
    "!503 unavailable",
)
_WITHOUT_MYSQL = ("200", "200", "200", "202", "!503 unavailable")
_WITHOUT_BOTH = ("!503 unavailable",) * 5

_TABLE: dict[str, tuple[str, ...]] = {
    # a wish; MySQL's counts; MySQL's posts; Redis decides orders; and codes
    "redis down": _WITHOUT_REDIS,
    "redis hanging": _WITHOUT_REDIS,
    "redis slow": _NORMAL,
    "redis refusing": _WITHOUT_REDIS,
    # read again from MySQL; a sale is held until the queue is empty, if it isn't; codes are gone
    "redis emptied": (
        "200",
        "200",
        "200",
        "202, 503 unavailable",
        "201, 401 code-refused, 202 without a code",
    ),
    # a master that became a replica still answers reads
    "redis failing-over": (
        "200, !202 inexact",
        "200, 200 inexact",
        "200, 200 inexact",
        "!503 unavailable",
        "!503 unavailable",
    ),
    # until a replica is elected, a third of all slots is away, and the voucher's among them
    "cluster failing-over": (
        "200, 202 inexact",
        "200, 200 inexact",
        "200, 200 inexact",
        "202, !503 unavailable",
        "201, 503 unavailable, 401 code-refused, 202 without a code",
    ),
    "mysql down": _WITHOUT_MYSQL,
    "mysql hanging": _WITHOUT_MYSQL,
    "mysql slow": _NORMAL,
    "mysql refusing": _WITHOUT_MYSQL,
    "mysql failing-over": _WITHOUT_MYSQL,
    # the outbox has it; the sweeper and the recovery send it later
    "sqs down": _NORMAL,
    "sqs hanging": _NORMAL,
    "sqs slow": _NORMAL,
    "sqs refusing": _NORMAL,
    "sqs emptied": _NORMAL,
    "sqs failing-over": _NORMAL,
    "redis+mysql down": _WITHOUT_BOTH,
    "redis+mysql hanging": _WITHOUT_BOTH,
    "redis+mysql slow": _NORMAL,
    "redis+mysql refusing": _WITHOUT_BOTH,
}


def _read_row(row: tuple[str, ...]) -> dict[str, Expected]:
    """One more than the row has: toggles are answered as likes and reads are, in any share."""
    found = dict(zip(OPERATIONS[:-1], map(_read, row), strict=True))
    may = found["like"].allowed | found["read"].allowed
    return found | {"toggle": Expected(may, frozenset())}


EXPECTED: Mapping[str, Mapping[str, Expected]] = {
    cell: _read_row(row) for cell, row in _TABLE.items()
}

NOT_TESTED: Mapping[str, str] = {
    "mysql emptied": "it is the record: without its data there is a backup to restore",
    "redis+mysql emptied": "as MySQL emptied",
    "redis+mysql failing-over": "two failovers at once are both of them down",
}
