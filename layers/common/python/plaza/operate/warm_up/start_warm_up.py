"""Start WarmUp: by an operator, after a deploy, and when another master of Redis serves."""

from __future__ import annotations

from plaza.infra.jobs.sweeps import Recovery
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import masters
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from plaza.operate.warm_up import redis_store
from plaza.operate.warm_up.queues import WARM_UPS, WarmUpStep
from plaza.operate.warm_up.settings import warm_up_settings


def start_warm_up(cause: str) -> bool:
    """Start a run; return False if another one is not finished. One round trip and one call.
    Raises RedisDown, QueueDown."""
    run_us = clock.now_us()
    if not redis_store.begin_run(run_us):
        return False
    try:
        WARM_UPS.send(WarmUpStep(run_us))
    except QueueDown:
        redis_store.end_run()
        raise
    record("warm_up_started", cause=cause)
    return True


def start_after_change() -> int:
    """Start a run if, since the last one, a master took over, Redis lost its data, or other code
    was deployed; return whether. Two round trips. Raises RedisDown, QueueDown: the next call
    starts it."""
    of_shards = masters.read_masters(max_age_s=0)
    names = sorted({(master.first_slot, master.term) for master in of_shards.values()})
    serving = " ".join(f"{first_slot}:{term}" for first_slot, term in names)
    current = f"{serving};{warm_up_settings().release}"
    known = redis_store.read_known()
    if known == current:
        return 0
    is_deploy = known is not None and known.partition(";")[0] == serving
    started = start_warm_up("deploy" if is_deploy else "failover")
    redis_store.store_known(current)
    return int(started)


RECOVERY = Recovery("warm_ups_started", start_after_change)
