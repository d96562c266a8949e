"""What operators do with dead letters."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from plaza.infra.jobs.operator_commands import OPERATOR, Result, command
from plaza.operate.operations import queue_admin


@command
def purge_dead_letter(
    *,
    queue: Annotated[str, Field(pattern=r"^[a-z_]{1,40}$")],
    message_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,100}$")],
) -> Result:
    """Delete one message of a dead-letter queue for ever."""
    return queue_admin.purge(queue, OPERATOR, [message_id])._asdict()
