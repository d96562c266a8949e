"""The rate at which consumers store rows in MySQL, all together, so that a database that recovers
is not flooded with the backlog of an outage. Off unless the parameter SavedRowsPerSecond is set.

{<shard>}:saves:paid  string  when the rows so far are paid, microseconds since 1970

A batch takes its rows from a token bucket without a burst: they are paid at the rate, and the next
batch begins when they are. So a batch is never cut, and its consumer waits instead of MySQL.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import SHARED, load_script
from plaza.infra.redis.shards import shard_of
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Busy
from plaza.infra.runtime.observability import error_fields, record
from plaza.infra.runtime.settings import declare, read_rate

MAX_TURN_S = 3  # a third of the timeout of the fastest consumer
_MAX_ROWS = 100_000  # of a batch
_ACQUIRE = load_script(SHARED / "acquire_token.lua")
KEY = f"{{{shard_of('saves:paid')}}}:saves:paid"


class SaveSettings(NamedTuple):
    """``rows_per_s``: rows that all consumers together store in a second; None: no limit."""

    rows_per_s: float | None


save_settings = declare(
    SaveSettings, rows_per_s=lambda env: read_rate(env, "PLAZA_SAVED_ROWS_PER_S")
)


def wait_for_turn(rows: int) -> None:
    """Wait until a batch of ``rows`` may be stored, at most ``MAX_TURN_S``.

    No round trip without a limit, else one. Without Redis there is no limit. Raises Busy, and takes
    nothing, if the turn is later: SQS delivers the batch again within seconds.
    """
    rows_per_s = save_settings().rows_per_s
    if rows_per_s is None or not rows:
        return
    us_per_row = math.ceil(1_000_000 / rows_per_s)
    turn_rows = MAX_TURN_S * 1_000_000 // us_per_row
    args = (rows_per_s, rows + turn_rows, rows, _MAX_ROWS + turn_rows)
    try:
        reply = int(redis.run(_ACQUIRE, (KEY,), args))
    except RedisDown as error:
        record("save_rate_skipped", **error_fields(error))
        return
    if reply > 0:
        raise Busy(f"Consumers store {rows_per_s:g} rows a second; others are before this batch.")
    wait_s = max(0.0, -reply / 1e6 - rows * us_per_row / 1e6)
    if wait_s:
        record("save_paced", {"save_wait_s": round(wait_s, 3)})
        clock.sleep(wait_s)
