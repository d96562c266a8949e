"""What operators do with accounts."""

from __future__ import annotations

from plaza.infra.jobs.operator_commands import Id, Result, command
from plaza.people.auth import request_erasure as erasures


@command
def erase_now(*, user_id: Id) -> Result:
    """Erase a user, or run the next pass of an erasure at once."""
    return {"user_id": user_id, "state": erasures.erase_now(user_id).state}
