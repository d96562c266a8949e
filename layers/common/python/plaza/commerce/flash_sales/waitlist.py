"""Wait for a unit of a voucher that is sold out: join, leave, and offers that end.

MySQL has who waits and in which order, Redis makes the offers. Entries are written to MySQL first
and deleted there first, so Redis that lost its data makes the same offers again, with a new time to
accept, and an offer that has ended is not made again. A position that Redis lacks is in MySQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.commerce.flash_sales import (
    load_sale,
    mysql_waitlist,
    outcomes,
    redis_sales,
    redis_waitlist,
)
from plaza.commerce.flash_sales.model import (
    MAX_WAITING,
    AlreadyOrdered,
    NotOpen,
    NotReady,
    NotWaiting,
    SaleGeneration,
    UnitsLeft,
    Voucher,
    VoucherWithdrawn,
    WaitlistFull,
    WaitlistPosition,
)
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import PlazaError
from plaza.infra.runtime.observability import record

_PAGE = 1_000
_MAX_ATTEMPTS = 3
_JOINED = "JOINED"
_REFUSALS: dict[str, tuple[type[PlazaError], str]] = {
    "WITHDRAWN": (VoucherWithdrawn, "This voucher was withdrawn."),
    "NOT_OPEN": (NotOpen, "This sale is not open."),
    "UNITS_LEFT": (UnitsLeft, "Units are left: order one."),
    "FULL": (WaitlistFull, "Too many buyers wait for this voucher."),
}


def join_waitlist(voucher_id: int, buyer_id: int) -> WaitlistPosition:
    """Return the buyer's position, new or present. Three statements and five round trips for a new
    one.

    Raises UnitsLeft, AlreadyOrdered, WaitlistFull, NotOpen, VoucherMissing, VoucherWithdrawn; after
    NotReady, RedisDown and MysqlDown the buyer may wait: repeat the call.
    """
    stored = False
    for _ in range(_MAX_ATTEMPTS):
        sale = _find_sale(voucher_id)
        order, position = redis_waitlist.read_position(sale, buyer_id)
        if order is not None:
            raise AlreadyOrdered(f"You have order {order.id} of this voucher.")
        if position is not None and _has_ended(position):
            _end_offers(sale, [buyer_id])
            position = None
        code = redis_waitlist.try_join(sale, buyer_id, None, MAX_WAITING)  # before MySQL has a row
        if code == _JOINED:
            seq, stored = mysql_waitlist.add(voucher_id, buyer_id), True
            if position is not None:
                return position  # a request to leave may have deleted the row only
            code = redis_waitlist.try_join(sale, buyer_id, seq, MAX_WAITING)
            if code == _JOINED and not mysql_waitlist.find(voucher_id, [buyer_id]):
                redis_waitlist.leave(sale, [buyer_id])  # another request has left
        if code == _JOINED:
            _, position = redis_waitlist.read_position(sale, buyer_id)
            if position is not None:
                return position
        elif code == "LOADING":
            load_sale.load_sale(voucher_id)
        elif code in _REFUSALS:
            if stored:
                mysql_waitlist.delete([(voucher_id, buyer_id)])
            error, detail = _REFUSALS[code]
            raise error(detail)
    raise NotReady("This sale was reloaded on every attempt; retry after 2 s.")


def read_position(voucher_id: int, buyer_id: int) -> WaitlistPosition:
    """Return the position. Two round trips; a statement if Redis has none, and one more and two
    round trips if Redis lost it. Raises NotWaiting, also if the offer has ended; NotOpen,
    VoucherMissing, VoucherWithdrawn, NotReady; RedisDown, MysqlDown."""
    sale = _find_sale(voucher_id)
    order, position = redis_waitlist.read_position(sale, buyer_id)
    if order is None and position is None:
        lost = mysql_waitlist.find(voucher_id, [buyer_id])
        if lost and load_sale.join_stored(sale, lost):
            _, position = redis_waitlist.read_position(sale, buyer_id)
    if position is None or _has_ended(position):
        raise NotWaiting(f"You do not wait for voucher {voucher_id}.")
    return position


def list_positions(
    buyer_id: int, before_id: int | None, limit: int
) -> tuple[list[tuple[int, WaitlistPosition]], int | None]:
    """Return (a page of (voucher, position), newest voucher first; the last voucher that was
    looked at, None on the last page). Skips offers that have ended, and positions that Redis lost,
    until the recovery has added them. One statement and two round trips. Raises MysqlDown,
    RedisDown."""
    voucher_ids = mysql_waitlist.find_of_buyer(buyer_id, limit + 1, before_id)
    page = voucher_ids[:limit]
    sales = redis_sales.find_sales(page) if page else {}
    by_id = redis_waitlist.read_positions(list(sales.values()), buyer_id) if sales else {}
    waiting = [(i, by_id[i]) for i in page if i in by_id and not _has_ended(by_id[i])]
    return waiting, page[-1] if len(voucher_ids) > limit else None


def leave_waitlist(voucher_id: int, buyer_id: int) -> None:
    """Give up the buyer's position or offer. Safe to repeat. Raises RedisDown, MysqlDown."""
    mysql_waitlist.delete([(voucher_id, buyer_id)])
    sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
    if sale is not None:
        redis_waitlist.leave(sale, [buyer_id])


def recover_waitlists(vouchers: Sequence[Voucher], deadline: Deadline) -> None:
    """End offers that were not accepted in time, at most 500 a sale, offer units in stock to
    the next buyers, announce new offers, and add buyers that Redis lacks.

    A round trip and a statement for all; a few for each sale with a waitlist, or one for each 1,000
    buyers if Redis lacks some. Raises RedisDown, MysqlDown.
    """
    stored = mysql_waitlist.count([voucher.id for voucher in vouchers])
    counts_by_id = redis_sales.read_counts([voucher.id for voucher in vouchers])
    ended = offered = rejoined = 0
    offering = []
    for voucher_id, counts in counts_by_id.items():
        if deadline.has_passed:
            break
        sale = SaleGeneration(voucher_id, counts.generation, counts.initial_stock)
        if counts.live and counts.waiting + counts.offered < stored.get(voucher_id, 0):
            rejoined += _rejoin(sale, deadline)
        if counts.offered or counts.waiting:
            offering.append(sale)
        if counts.offered and (buyer_ids := redis_waitlist.find_ended(sale, clock.now_us())):
            offered += _end_offers(sale, buyer_ids)
            ended += len(buyer_ids)
        if counts.waiting and counts.stock > 0:
            offered += redis_waitlist.leave(sale, [])
    outcomes.announce_offers(offering)
    if ended or offered or rejoined:
        record(
            "waitlists_recovered",
            {"offers_ended": ended, "units_offered": offered},
            rejoined=rejoined,
        )


def _rejoin(sale: SaleGeneration, deadline: Deadline) -> int:
    """Add all buyers of MySQL without a success; return how many."""
    mysql_waitlist.delete_holders(sale.voucher_id)
    rejoined = after_seq = 0
    while not deadline.has_passed and (
        page := mysql_waitlist.read(sale.voucher_id, after_seq, _PAGE)
    ):
        if not load_sale.join_stored(sale, page):
            break
        rejoined, after_seq = rejoined + len(page), page[-1][0]
    return rejoined


def _end_offers(sale: SaleGeneration, buyer_ids: Sequence[int]) -> int:
    """Delete entries whose offers have ended, then return their units; return how many units are
    offered to the next buyers."""
    mysql_waitlist.delete([(sale.voucher_id, buyer_id) for buyer_id in buyer_ids])
    return redis_waitlist.leave(sale, buyer_ids, only_ended=True)


def _find_sale(voucher_id: int) -> SaleGeneration:
    sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
    if sale is None:
        load_sale.load_sale(voucher_id)
        sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
    if sale is None:
        raise NotReady("This sale was reloaded; retry after 2 s.")
    return sale


def _has_ended(position: WaitlistPosition) -> bool:
    return position.accept_by_us is not None and position.accept_by_us <= clock.now_us()
