"""What operators do with MySQL and Redis as a whole."""

from __future__ import annotations

from plaza.core.reactions import reaction_log
from plaza.infra.contexts import offers
from plaza.infra.derived import outbox
from plaza.infra.jobs.operator_commands import OPERATOR, Id, Refused, Result, command
from plaza.infra.runtime.settings import settings
from plaza.operate.operator_commands import mysql_server, redis_flush, sweep_now


@command
def list_transactions() -> Result:
    """List the open transactions of MySQL, the oldest first."""
    return {"transactions": mysql_server.list_transactions()}


@command
def end_transaction(*, thread_id: Id) -> Result:
    """Close the connection of an open transaction, which is rolled back."""
    mysql_server.end_transaction(thread_id)
    return {"thread_id": thread_id, "ended": True}


@command
def explain(*, thread_id: Id) -> Result:
    """Show the plan of the statement that a connection is running."""
    return {"plan": mysql_server.explain(thread_id)}


@command
def counts() -> Result:
    """Show the sizes of all tables, as MySQL estimates them, and the readers of the reaction
    log."""
    return {"tables": mysql_server.read_sizes(), "watermarks": reaction_log.read_watermarks()}


@command
def sweep(*, everything: bool = False) -> Result:
    """Send entries of outboxes again. Everything: also what was sent a moment ago."""
    return {**sweep_now.sweep_now(everything, operator_id=OPERATOR)}


@command
def flush_redis(*, environment: str, force: bool = False) -> Result:
    """Empty the Redis of the environment whose name is repeated, when no outbox has entries.
    Force: also with entries. Repeat it until it has finished."""
    if environment != settings().environment:
        raise Refused("environment: it is not the name of this environment")
    outboxes = sum(outbox.measure(sweep.index_key).outboxes for _, sweep in offers("sweeps"))
    if outboxes and not force:
        raise Refused(
            f"{outboxes} outboxes have entries that MySQL may lack: run sweep everything=true"
            " until they are stored, or give force=true"
        )
    return redis_flush.flush()._asdict()
