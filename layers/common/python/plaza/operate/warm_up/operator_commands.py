"""What operators do when Redis is empty or new."""

from __future__ import annotations

from plaza.infra.jobs.operator_commands import OPERATOR, Result, command
from plaza.operate.warm_up import start_warm_up


@command
def warm_up() -> Result:
    """Start WarmUp, which loads what readers will ask for, and ends the level `warming`."""
    return {"started": start_warm_up.start_warm_up(OPERATOR)}
