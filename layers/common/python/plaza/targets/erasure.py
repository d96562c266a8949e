"""Take an erased user's name from the targets of the app."""

from __future__ import annotations

from plaza.infra.runtime.clock import Deadline
from plaza.targets import mysql_external

_TARGETS_PER_STATEMENT = 1_000


def erase(user_id: int, deadline: Deadline) -> int:
    """Take the owner, and the URLs that may name it, from a user's targets; return how many. Safe
    to repeat. Bounded by ``deadline``. Raises MysqlDown."""
    erased = 0
    while not deadline.has_passed:
        count = mysql_external.erase_owner(user_id, _TARGETS_PER_STATEMENT)
        erased += count
        if count < _TARGETS_PER_STATEMENT:
            break
    return erased
