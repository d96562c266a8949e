"""What operators do with the switches after MySQL was restored."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from plaza.core.switches import change_switches
from plaza.infra.jobs.operator_commands import Id, Refused, Result, command


@command
def show_switches() -> Result:
    """Show the switches in Redis and in MySQL, as documents for set-switches."""
    stored, newest = change_switches.show()
    version, document = newest or (None, None)
    return {"redis": stored, "mysql": document, "version": version}


@command
def set_switches(
    *,
    user_id: Id,
    reason: Annotated[str, Field(min_length=1, max_length=500)],
    document: Annotated[str, Field(max_length=10_000)] | None = None,
    level: Literal["normal", "relieved", "essential", "read_only", "warming"] = "normal",
) -> Result:
    """Set the switches of a document, or of a level without one, after MySQL was restored."""
    try:
        change = change_switches.set_again(document, level, reason, user_id)
    except (ValueError, TypeError):
        raise Refused("document: it is no document of show-switches") from None
    return {"version": change.version}
