"""What operators do with the reaction log, sorted lists and rankings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plaza.core.reactions import rankings, reaction_log, sorted_lists
from plaza.infra.jobs.operator_commands import Refused, Result, command
from plaza.infra.runtime.clock import Deadline

_MAX_SORT_S = 40.0


@command
def raise_epoch() -> Result:
    """Raise the epoch by one: later versions are above all earlier ones. It inserts a missing row
    of ``log_barrier``."""
    return {"epoch": reaction_log.raise_epoch()}


@command
def sort_reactions(
    *,
    after: Annotated[str, Field(pattern=r"^[a-z]{1,16}:[0-9]{1,19}:[0-9]{1,19}$")] | None = None,
) -> Result:
    """Fill the sorted lists that large targets lack. Repeat it with ``after`` of the result until
    that is null."""
    begin = None
    if after is not None:
        target_type, after_id, actor_id = after.split(":")
        if target_type not in sorted_lists.TARGET_TYPES:
            raise Refused("after: it is no cursor of this command")
        begin = sorted_lists.SortCursor(target_type, int(after_id), int(actor_id))
    deadline = Deadline.in_s(_MAX_SORT_S)
    count, left = sorted_lists.sort_all(begin, deadline)
    return {"sorted": count, "after": None if left is None else ":".join(map(str, left))}


@command
def drop_rankings() -> Result:
    """Drop all rankings of posts; RefreshRankings builds them again."""
    return {"dropped": rankings.drop_rankings()}
