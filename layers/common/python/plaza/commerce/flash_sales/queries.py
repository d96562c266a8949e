"""Read orders and the vouchers of shops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import groupby, takewhile

from plaza.commerce.flash_sales import (
    mysql_archive,
    mysql_orders,
    mysql_vouchers,
    redis_orders,
    redis_pointers,
    redis_sales,
    voucher_lookup,
)
from plaza.commerce.flash_sales.model import (
    FAILED,
    MIN_ARCHIVED_AGE_S,
    PENDING,
    ArchiveUnreadable,
    NotReady,
    Order,
    OrderMissing,
    OrderRow,
    OrderView,
    RedeemedOrder,
    Voucher,
    VoucherAvailability,
    VoucherMissing,
    VoucherSummary,
    VoucherWithdrawn,
    may_be_pending,
)
from plaza.commerce.shops import queries as shop_queries
from plaza.infra.derived import cache, ids
from plaza.infra.derived.cache import StillLoading
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.process import LocalCache

# Lists of vouchers are public, so the reads of one process from MySQL are limited.
_list_budget = TokenBucket(rate_per_s=50, burst=200)
_MAX_PAGE_SIZE = 100
_vouchers: LocalCache[int, Voucher | None] = LocalCache(max_entries=1_000, ttl_s=1)
_UNKNOWN_RETRY_S = 5
MAX_OBJECTS_PER_PAGE = 3
"""Objects of the archive that a page of orders reads, tens of milliseconds each."""


def read_order(order_id: int, buyer_id: int) -> Order:
    """Return an order of a buyer: costs and errors as ``read_view``, without the voucher."""
    return _find(order_id, buyer_id).order


def read_pointed(order_id: int, buyer_id: int) -> Order | None:
    """Return an order of a buyer that has a pointer and is too young for the archive, as pending;
    it may be decided. None for others, and without Redis. One round trip."""
    if clock.now_s() - ids.created_at_s(order_id) > MIN_ARCHIVED_AGE_S:
        return None
    with suppress(RedisDown):
        voucher_id = redis_pointers.read_pointer(buyer_id, order_id)
        if voucher_id is not None:
            return Order(order_id, voucher_id, PENDING)
    return None


def read_view(order_id: int, buyer_id: int) -> OrderView:
    """Return an order of a buyer with its times and its voucher.

    * Pending: from Redis. An order with a pointer has its second copy, so it is pending until it
      has a row, even if Redis lost it.
    * Decided: from MySQL, which knows whether a success was used; while MySQL is unavailable, a
      success of Redis.
    * Archived: from S3.

    At most three round trips and a statement; another one for a voucher that this process did not
    read within a minute; for an id older than a month a statement more, for an archived order two
    calls of S3 more.

    Raises OrderMissing, also for another buyer's order.
    Raises NotReady for a young id that neither store has: the pointer may be lost.
    Raises RedisDown, MysqlDown, ObjectsDown, ArchiveUnreadable.
    """
    [view] = _add_vouchers([_find(order_id, buyer_id)])
    return view


def _add_vouchers(views: Sequence[OrderView]) -> list[OrderView]:
    """Return ``views`` with their vouchers, up to a minute old. At most one statement."""
    vouchers = voucher_lookup.find_summaries({view.order.voucher_id for view in views})
    return [view._replace(voucher=vouchers.get(view.order.voucher_id)) for view in views]


def _find(order_id: int, buyer_id: int) -> OrderView:
    redis_error: RedisDown | None = None
    voucher_id: int | None = None
    success: Order | None = None
    try:
        voucher_id = redis_pointers.read_pointer(buyer_id, order_id)
        if voucher_id is not None:
            pending = redis_orders.find_orders(buyer_id, {order_id: voucher_id}).get(order_id)
            if pending is not None and pending.status == PENDING:
                return OrderView(pending)
            success = pending
    except RedisDown as error:
        redis_error = error
    try:
        row = mysql_orders.read(order_id)
    except MysqlDown:
        if success is None:
            raise
        return OrderView(success)
    if row is not None and row.buyer_id == buyer_id:
        return row.view
    age_s = clock.now_s() - ids.created_at_s(order_id)
    if row is None and age_s > MIN_ARCHIVED_AGE_S:
        digest = mysql_archive.read_digest(buyer_id, order_id)
        if digest is not None:
            return _read_object([order_id], digest)[order_id]
    if voucher_id is not None:
        return _order_of_pointer(order_id, voucher_id, buyer_id, row)
    if row is None and redis_error is not None:
        raise redis_error  # the order may be pending
    if row is None and may_be_pending(age_s):
        raise NotReady(
            "This order may not be stored yet; retry after 5 s.", retry_after_s=_UNKNOWN_RETRY_S
        )
    raise OrderMissing(f"Order {order_id} does not exist.")


def _read_object(order_ids: Sequence[int], digest: str) -> dict[int, OrderView]:
    """Return archived orders of one object. Two calls of S3. Raises ObjectsDown,
    ArchiveUnreadable."""
    from plaza.commerce.flash_sales import s3_archive  # imports botocore
    from plaza.infra.aws.archive import ArchiveCorrupt

    try:
        orders = s3_archive.find_all(order_ids, digest)
        return {order_id: order.view for order_id, order in orders.items()}
    except ArchiveCorrupt as error:
        month = s3_archive.month_of(order_ids[0])
        record("archive_corrupt", day=month, what=str(error))
        raise ArchiveUnreadable(f"The archive of {month} cannot be read.") from error


def list_orders(
    buyer_id: int, before_id: int | None, limit: int
) -> tuple[list[OrderView], int | None]:
    """Return (a page of a buyer's orders, newest first; its last id, None on the last page).

    Three round trips and three statements; one more for orders with a pointer that are found in
    neither: as in ``read_view`` they are pending. Archived orders cost two calls of S3 an object:
    a page ends before a fourth object, and before all archived orders if one cannot be read.

    Raises MysqlDown, RedisDown; ObjectsDown, ArchiveUnreadable if a page begins with such an order.
    """
    pointers = redis_pointers.read_pointers(buyer_id)
    newest = sorted((i for i in pointers if before_id is None or i < before_id), reverse=True)
    voucher_ids = {order_id: pointers[order_id] for order_id in newest[: limit + 1]}
    pending = redis_orders.find_orders(buyer_id, voucher_ids) if voucher_ids else {}
    # Redis is read first: an order that is decided in between is then in MySQL.
    rows = mysql_orders.read_of_buyer(buyer_id, before_id, limit + 1)
    views = {order_id: OrderView(order) for order_id, order in pending.items()}
    views |= {row.order_id: row.view for row in rows}
    views |= _read_pointed(buyer_id, {i: voucher_ids[i] for i in voucher_ids.keys() - views.keys()})
    # After the rows: an order that is archived in between is then in the archive.
    archived = mysql_archive.read_of_buyer(buyer_id, before_id, limit + 1)
    order_ids = sorted({*views, *archived}, reverse=True)
    digests = {i: archived[i] for i in order_ids[:limit] if i not in views}
    page = _fit_objects(order_ids[:limit], digests)
    try:
        views |= _read_objects({i: digests[i] for i in page if i in digests})
    except Unavailable:  # of S3
        page = list(takewhile(lambda order_id: order_id in views, page))
        if not page:
            raise
    last = page[-1] if len(order_ids) > len(page) else None
    return _add_vouchers([views[order_id] for order_id in page]), last


def _fit_objects(order_ids: Sequence[int], digests: Mapping[int, str]) -> list[int]:
    """Return the first of ``order_ids`` for which ``MAX_OBJECTS_PER_PAGE`` objects are read."""
    objects: set[str] = set()
    for count, order_id in enumerate(order_ids):
        objects |= {digests[order_id]} if order_id in digests else set()
        if len(objects) > MAX_OBJECTS_PER_PAGE:
            return list(order_ids[:count])
    return list(order_ids)


def _read_objects(digests: Mapping[int, str]) -> dict[int, OrderView]:
    """Return archived orders (id -> digest of the object)."""
    views: dict[int, OrderView] = {}
    for digest, of_object in groupby(sorted(digests, key=digests.__getitem__), digests.get):
        views |= _read_object(list(of_object), str(digest))
    return views


def _read_pointed(buyer_id: int, pointers: Mapping[int, int]) -> dict[int, OrderView]:
    """Return orders (id -> voucher) of which Redis has the pointer alone. One statement."""
    rows = mysql_orders.read_by_ids(pointers) if pointers else {}
    return {
        order_id: _order_of_pointer(order_id, voucher_id, buyer_id, rows.get(order_id))
        for order_id, voucher_id in pointers.items()
    }


def _order_of_pointer(
    order_id: int, voucher_id: int, buyer_id: int, row: OrderRow | None
) -> OrderView:
    if row is None:
        return OrderView(Order(order_id, voucher_id, PENDING))
    if row.buyer_id != buyer_id:  # the id belongs to another order
        return OrderView(Order(order_id, voucher_id, FAILED, "timed-out"), row.decided_us)
    return row.view


def list_vouchers(
    shop_id: int, before_id: int | None, limit: int
) -> tuple[list[VoucherAvailability], int | None]:
    """Return (a page of a shop's vouchers, newest first; its last id, None on the last page).

    Raises ShopMissing, ShopDeleted, VoucherWithdrawn; NotReady, MysqlDown, RedisDown.
    """
    shop_queries.read(shop_id)  # the filter of all shops keeps invented ids from MySQL
    vouchers = _read_page(shop_id, before_id, limit + 1)
    if vouchers and vouchers[0].shop_deleted:
        mysql_vouchers.check_shop(shop_id)
    page = vouchers[:limit]
    offered = read_availability([voucher for voucher in page if not voucher.withdrawn])
    return offered, page[-1].id if len(vouchers) > limit else None


def read_voucher(voucher_id: int) -> VoucherAvailability:
    """Return a voucher and its units left. One round trip if this process read the voucher within
    1 s. Raises VoucherMissing, VoucherWithdrawn, NotReady, MysqlDown."""
    voucher = _read_recent([voucher_id])[voucher_id]
    if voucher is None:
        raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
    if voucher.withdrawn:
        raise VoucherWithdrawn(f"Voucher {voucher_id} was withdrawn.")
    [availability] = read_availability([voucher])
    return availability


def read_vouchers(voucher_ids: Iterable[int]) -> list[VoucherAvailability]:
    """Return the vouchers that exist and are not withdrawn, in the order of their ids, and their
    units left. Three round trips and a statement at most. Raises NotReady, MysqlDown."""
    vouchers = _read_recent(voucher_ids).values()
    return read_availability([v for v in vouchers if v is not None and not v.withdrawn])


def read_shop_id(voucher_id: int) -> int:
    """Return the shop of a voucher, also of a withdrawn one. At most two round trips and a
    statement; none if this process read the voucher within 1 s. Raises VoucherMissing, NotReady,
    MysqlDown."""
    voucher = _read_recent([voucher_id])[voucher_id]
    if voucher is None:
        raise VoucherMissing(f"Voucher {voucher_id} does not exist.")
    return voucher.terms.shop_id


def list_redeemed(
    shop_id: int, before: tuple[int, int] | None, limit: int
) -> tuple[list[tuple[RedeemedOrder, VoucherSummary | None]], tuple[int, int] | None]:
    """Return (a page of the used orders of a shop with their vouchers, newest first; time and id
    of the last one, None on the last page). Two statements at most. Raises MysqlDown."""
    orders = mysql_orders.read_redeemed(shop_id, before, limit + 1)
    page = orders[:limit]
    vouchers = voucher_lookup.find_summaries({order.voucher_id for order in page})
    last = (page[-1].used_us, page[-1].order_id) if len(orders) > limit else None
    return [(order, vouchers.get(order.voucher_id)) for order in page], last


def _read_recent(voucher_ids: Iterable[int]) -> dict[int, Voucher | None]:
    """Return vouchers, in order, from this process if it read them within 1 s; None: missing."""
    unique = list(dict.fromkeys(voucher_ids))
    cached = _vouchers.get_all(unique)
    if missing := [voucher_id for voucher_id in unique if voucher_id not in cached]:
        rows = voucher_lookup.find_vouchers(missing)
        _vouchers.put_all(rows)
        cached |= rows
    return {voucher_id: cached[voucher_id] for voucher_id in unique}


def read_availability(vouchers: Sequence[Voucher]) -> list[VoucherAvailability]:
    """Return the units left of each voucher. One round trip."""
    try:
        counts = redis_sales.read_counts([voucher.id for voucher in vouchers]) if vouchers else {}
        redis_up = True
    except RedisDown:
        counts, redis_up = {}, False
    return [
        VoucherAvailability(v, max(0, counts[v.id].stock), True)
        if v.id in counts
        # Not in Redis: never loaded, finalized, or lost; only a lost one has pending orders.
        else VoucherAvailability(v, v.stock, v.finalized or (redis_up and v.generation == 0))
        for v in vouchers
    ]


def _read_page(shop_id: int, before_id: int | None, limit: int) -> list[Voucher]:
    """Return a page of vouchers; the first is cached in Redis, up to 3 s old."""
    if before_id is None:
        with suppress(RedisDown, StillLoading):
            cached = cache.read_first_page(
                voucher_lookup.list_key(shop_id),
                voucher_lookup.VOUCHERS,
                lambda: _read(shop_id, None, _MAX_PAGE_SIZE + 1),
            )
            return cached[:limit]
    return _read(shop_id, before_id, limit)


def _read(shop_id: int, before_id: int | None, limit: int) -> list[Voucher]:
    if not _list_budget.take():
        raise NotReady("Too many lists are being read; retry after 1 s.", retry_after_s=1)
    return mysql_vouchers.read_of_shop(shop_id, before_id, limit)
