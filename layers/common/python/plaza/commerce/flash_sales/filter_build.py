"""Build the bloom filter of all vouchers, one step a run.

{<shard>}:vouchers:build  string  <build>:<last voucher id>, of a build that the next run continues
"""

from __future__ import annotations

from plaza.commerce.flash_sales import mysql_vouchers
from plaza.commerce.flash_sales.voucher_filter import VOUCHER_IDS
from plaza.infra.derived import builds
from plaza.infra.derived.builds import FILLED, Builder
from plaza.infra.derived.projections import key_of
from plaza.infra.redis import redis
from plaza.infra.runtime.clock import Deadline

MAX_S = 10
MAX_PAGES = 1_000
BUILD_KEY = key_of("vouchers", "build")
_BUILD_TTL_S = 600
_PAGE = 1_000


def build_filter(max_s: float = MAX_S) -> int:
    """Build the filter if it is due, for about ``max_s`` seconds; the next run continues.

    Returns how many vouchers were added. One statement and one round trip a page of 1,000 ids.
    Raises MysqlDown, RedisDown.
    """
    deadline = Deadline.in_s(max_s)
    if not VOUCHER_IDS.is_due():
        return 0
    build, _, after_id = str(redis.execute("GET", BUILD_KEY) or ":0").partition(":")
    progress = builds.advance(_FILTER, build, int(after_id), _PAGE, MAX_PAGES, deadline)
    if progress.code == FILLED:
        redis.execute("SET", BUILD_KEY, f"{progress.build}:{progress.after_id}", "EX", _BUILD_TTL_S)
    elif build:
        redis.execute("UNLINK", BUILD_KEY)
    return progress.added


_FILTER: Builder[int] = Builder(
    "filter of vouchers",
    lambda build: VOUCHER_IDS.begin(build, mysql_vouchers.count()),
    lambda after_id, limit: mysql_vouchers.read_ids(after_id, limit),
    lambda build, voucher_ids, last: VOUCHER_IDS.fill(build, voucher_ids, last),
    int,
)
