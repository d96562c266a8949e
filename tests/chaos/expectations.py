"""Expected answers of the failure matrix, as one table.

During a fault an operation may be answered only by the labels of its cell; those after ``!`` must
appear at least once, otherwise the fault did not take place. No promise may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

FAULTS = ("down", "hanging", "slow", "refusing", "emptied", "held", "failing-over")
OPERATIONS = ("like", "read", "feed", "order", "sign-in", "toggle", "return")

MAX_EXTRA_ANSWER_S = 5.0  # above the slowest answer before the fault
MAX_RECOVERY_S = 45.0  # until all answers are normal again


@dataclass(frozen=True, slots=True)
class Expected:
    """Labels that may appear during a fault, and labels that must."""

    allowed: frozenset[str]
    required: frozenset[str]


def _read(cell: str) -> Expected:
    labels = [label.strip() for label in cell.split(",")]
    must = frozenset(label.removeprefix("!") for label in labels if label.startswith("!"))
    return Expected(frozenset(label.removeprefix("!") for label in labels), must)


HELD = "redis held"
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

_RETURN = frozenset({"200", "202", "409 sold-out", "409 units-left", "503 unavailable"})

_TABLE: dict[str, tuple[str, ...]] = {
    # provisional; MySQL's counts; MySQL's posts; orders and codes need Redis
    "redis down": _WITHOUT_REDIS,
    "redis hanging": _WITHOUT_REDIS,
    "redis slow": _NORMAL,
    "redis refusing": _WITHOUT_REDIS,
    # reloaded from MySQL; a sale stays closed until its queue is empty; codes are lost
    "redis emptied": (
        "200",
        "200",
        "200",
        "202, 503 unavailable",
        "201, 401 code-refused, 202 without a code",
    ),
    # readers wait until WarmUp has ended; else as emptied
    HELD: (
        "200, 202 inexact",
        "200, 200 inexact, !503 switched-off",
        "200, 200 inexact, !503 switched-off",
        "202, 503 unavailable",
        "201, 503 unavailable, 401 code-refused, 202 without a code",
    ),
    # a master that became a replica still answers reads
    "redis failing-over": (
        "200, !202 inexact",
        "200, 200 inexact",
        "200, 200 inexact",
        "!503 unavailable",
        "!503 unavailable",
    ),
    # until a replica is elected a third of all slots is unavailable, with the voucher's
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
    # stored in the outbox; the sweeper and the recovery send it later
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
    """Return the labels of a row. Toggles may be labelled as likes and reads; which request of a
    return a fault meets is open."""
    results = dict(zip(OPERATIONS[:-2], map(_read, row), strict=True))
    may = results["like"].allowed | results["read"].allowed
    of_return = _RETURN | (results["read"].allowed & {"503 switched-off"})
    return results | {
        "toggle": Expected(may, frozenset()),
        "return": Expected(of_return, frozenset()),
    }


EXPECTED: Mapping[str, Mapping[str, Expected]] = {
    cell: _read_row(row) for cell, row in _TABLE.items()
}

# Two failovers, there and back, of a Redis with a replica.
SWAPS = ("redis swapping", "redis swapping-kept", "redis swapping-unreplicated")
SWAP_OPERATIONS = ("like", "follow", "check-in", "order", "read", "feed", "toggle")
_SWAP_ROW = (
    "200, !202 inexact",
    "200, !202 inexact",
    "200, !202 inexact",
    "202, !503 unavailable",
    "200, 200 inexact",
    "200, 200 inexact",
    "200, 202 inexact, 200 inexact",
)
EXPECTED_OF_SWAPS: Mapping[str, Mapping[str, Expected]] = {
    swap: dict(zip(SWAP_OPERATIONS, map(_read, _SWAP_ROW), strict=True)) for swap in SWAPS
}

NOT_TESTED: Mapping[str, str] = {
    "mysql held": "readers are held for a Redis that has little",
    "sqs held": "as MySQL held",
    "redis+mysql held": "WarmUp waits until both are back, and readers with it",
    "mysql emptied": "it is the system of record; a backup is restored",
    "redis+mysql emptied": "as MySQL emptied",
    "redis+mysql failing-over": "two failovers at once are both of them down",
}
