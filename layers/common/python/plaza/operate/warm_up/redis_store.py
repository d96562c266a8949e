"""Runs of WarmUp in Redis. Each function is one round trip, and raises RedisDown.

{<shard>}:warm_up:run    string  start of the run that is not finished, microseconds since 1970
{<shard>}:warm_up:known  string  masters with their terms, and the release, of the latest run
"""

from __future__ import annotations

from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis

RUN_TTL_S = 4 * 3_600  # as long as a step waits for a store
RUN_KEY, KNOWN_KEY = key_of("warm_up", "run"), key_of("warm_up", "known")


def begin_run(run_us: int) -> bool:
    """Begin a run; return False if another one is not finished."""
    return redis.execute("SET", RUN_KEY, run_us, "NX", "EX", RUN_TTL_S) is not None


def continue_run(run_us: int) -> bool:
    """Return whether a run is the one that was begun last; also if Redis lost its key since."""
    _, newest = redis.pipeline([("SET", RUN_KEY, run_us, "NX", "EX", RUN_TTL_S), ("GET", RUN_KEY)])
    return int(newest) == run_us


def end_run() -> None:
    """End the run."""
    redis.execute("UNLINK", RUN_KEY)


def read_known() -> str | None:
    """Return the masters and the release for which a run was started, None without one."""
    known: str | None = redis.execute("GET", KNOWN_KEY)
    return known


def store_known(known: str) -> None:
    """Store the masters and the release for which a run was started."""
    redis.execute("SET", KNOWN_KEY, known)
