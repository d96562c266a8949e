"""Lists of shops without a place: of a type, and by the beginning of a name. Read from MySQL."""

from __future__ import annotations

from plaza.commerce.shops import mysql_shops, queries
from plaza.commerce.shops.model import Shop
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.process import LocalCache

# Lists are public, so the pages that one process reads from MySQL are limited, and cached for 3 s.
_budget = TokenBucket(rate_per_s=50, burst=200)
_pages: LocalCache[tuple[int | None, int | str | None, int], list[Shop]] = LocalCache(500, ttl_s=3)


class ShopListsBusy(Unavailable):
    """This process has used up its budget of lists read from MySQL."""


def list_of_type(type_id: int, before_id: int | None, limit: int) -> tuple[list[Shop], int | None]:
    """Return (a page of the shops of a type, newest first; its last id, None on the last page). A
    change may be missing for 3 s. Raises TypeMissing, ShopListsBusy, MysqlDown."""
    queries.require_type(type_id)

    def load() -> list[Shop]:
        _take_token()
        return mysql_shops.read_of_type(type_id, before_id, limit + 1)

    page = _pages.get_or_load((type_id, before_id, limit), load)
    return page[:limit], page[limit - 1].id if len(page) > limit else None


def search(prefix: str, type_id: int | None, limit: int) -> list[Shop]:
    """Return the first shops, by name, whose names begin with ``prefix``, of any case. A change may
    be missing for 3 s. Raises TypeMissing, ShopListsBusy, MysqlDown."""
    if type_id is not None:
        queries.require_type(type_id)

    def load() -> list[Shop]:
        _take_token()
        return mysql_shops.search_names(prefix, type_id, limit)

    return _pages.get_or_load((type_id, prefix, limit), load)


def _take_token() -> None:
    if not _budget.take():
        raise ShopListsBusy("Too many lists of shops are requested.", retry_after_s=1)
