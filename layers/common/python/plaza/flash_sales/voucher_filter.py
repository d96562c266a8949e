"""The Bloom filter of all vouchers: ids that were made up cost MySQL nothing (``infra.id_filter``).

{<shard>}:vouchers:walk  string  build:voucher, of a build that goes on in the next run
"""

from __future__ import annotations

import secrets

from plaza.flash_sales import mysql_vouchers
from plaza.infra import redis
from plaza.infra.clock import Deadline
from plaza.infra.id_filter import IdFilter
from plaza.infra.observability import record
from plaza.infra.projections import key_of

VOUCHER_IDS = IdFilter("vouchers")
MAX_S = 10
WALK_KEY = key_of("vouchers", "walk")
_WALK_TTL_S = 600
_PAGE = 1_000


def build_filter(max_s: float = MAX_S) -> int:
    """Build the filter if it is due, for about ``max_s``; the next run goes on. Returns how many
    vouchers were added.

    One statement and one round trip a page. Raises MysqlDown, RedisDown.
    """
    deadline, added = Deadline.in_s(max_s), 0
    if not VOUCHER_IDS.is_due() or (walk := _begin()) is None:
        return 0
    build, after_id = walk
    while True:
        voucher_ids = mysql_vouchers.read_ids(after_id, _PAGE)
        code = VOUCHER_IDS.fill(build, voucher_ids, last=len(voucher_ids) < _PAGE)
        added += len(voucher_ids)
        if code != "FILLED":
            redis.execute("DEL", WALK_KEY)
            break
        after_id = voucher_ids[-1]
        if deadline.has_passed:
            redis.execute("SET", WALK_KEY, f"{build}:{after_id}", "EX", _WALK_TTL_S)
            break
    record("vouchers_filtered", code=code, added=added)
    return added


def _begin() -> tuple[str, int] | None:
    """(The build that goes on, or a new one; the last voucher that is in it.) None when another
    build is at it."""
    if walk := redis.execute("GET", WALK_KEY):
        build, _, after_id = str(walk).partition(":")
        return build, int(after_id)
    build = secrets.token_hex(8)
    code = VOUCHER_IDS.begin(build, mysql_vouchers.count())
    return (build, 0) if code == "BEGUN" else None
