"""Vouchers and orders, and the rules by which orders succeed or fail. No I/O.

An order is pending from its reservation in Redis until it has a row in MySQL. The consumer, the
consumer of the DLQ and the recovery insert it by the same rule: the stock in MySQL. A failure is
final; a success can be used once, or cancelled while it is unused. An order is identified by (id,
voucher, buyer), never by its id alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime.errors import Conflict, Gone, NotFound, TooManyRequests, Unavailable

MAX_STOCK = 10_000_000
BUYERS_PER_BUCKET = 64  # on average: Redis encodes such hashes compactly; few keys
MAX_BUCKETS = 2**14

# Longer than any order waits for its row: an older id without a row belongs to no order.
MAX_PENDING_S = 86_400
MAX_CLOCK_SKEW_S = 60
# No younger order is archived: the month after it is over, with a margin for clocks.
MIN_ARCHIVED_AGE_S = 27 * 86_400

MAX_CANCELS = 5
"""Orders of one voucher that a buyer can cancel; bounds what Redis stores about them."""

OFFER_US = 900_000_000
"""The time to accept an offer."""

MAX_WAITING = 100_000
"""Buyers that may wait for one voucher, about."""

FLASH, ORDINARY = "flash", "ordinary"
SaleState = Literal["running", "coming", "ended"]
ALWAYS_OPEN_US = 0
NEVER_CLOSES_US = 32_503_679_999_000_000  # 2999-12-31T23:59:59Z

PENDING, SUCCESS, FAILED = "pending", "success", "failed"
USED, CANCELLED, EXPIRED = "used", "cancelled", "expired"
Reason = Literal["sold-out", "already-bought", "timed-out", "withdrawn", "cancelled"]


class VoucherMissing(NotFound):
    """The voucher, or the shop that would offer it, does not exist."""


class VoucherWithdrawn(Gone):
    """The voucher was withdrawn by its owner or an admin, or because its shop was deleted."""


class OrderMissing(NotFound):
    """The caller has no order with this id."""


class SoldOut(Conflict):
    """No unit of the voucher is left."""

    slug = "sold-out"
    title = "Sold out"
    example = "This voucher is sold out."


class NotOpen(Conflict):
    """The sale has not begun, or it is over."""

    slug = "not-open"
    title = "Sale not open"
    example = "This sale has not begun."


class UnitsLeft(Conflict):
    """The voucher is not sold out: there is nothing to wait for."""

    slug = "units-left"
    title = "Units left"
    example = "Units are left: order one."


class AlreadyOrdered(Conflict):
    """The buyer has an order of the voucher."""

    slug = "already-ordered"
    title = "Already ordered"
    example = "You have order 121007125353431041 of this voucher."


class WaitlistFull(Conflict):
    """Too many buyers wait for the voucher."""

    slug = "waitlist-full"
    title = "Waitlist full"
    example = "100000 buyers wait for this voucher."


class NotWaiting(NotFound):
    """The caller has no position in the waitlist."""


class NotCancellable(Conflict):
    """The order was used, has expired or has failed, or its buyer has cancelled too often."""

    slug = "not-cancellable"
    title = "Order cannot be cancelled"
    example = "This order was used."


class NotUsable(Conflict):
    """The order is not a success that is unused and has not expired."""

    slug = "not-usable"
    title = "Order cannot be used"
    example = "This order has expired."


class NotChangeable(Conflict):
    """Orders depend on what would be changed."""

    slug = "not-changeable"
    title = "Voucher cannot be changed"
    example = "The price of a voucher is fixed once its sale has begun."


class AlreadyUsed(Conflict):
    """The order with this code was used before."""

    slug = "already-used"
    title = "Order already used"
    example = "This order was used at 2030-12-03T18:04:09Z."


class WrongCode(NotFound):
    """No order of the voucher has this code."""

    slug = "wrong-code"
    title = "Wrong code"
    example = "No unused order of this voucher has this code."


class TooManyCodes(TooManyRequests):
    """The caller sent too many wrong codes."""


class OrderRateExceeded(TooManyRequests):
    """Orders arrive faster than they can be stored."""


class OrderMismatch(InvalidMessage):
    """The id of an event belongs to an order of another voucher or buyer."""


class ArchiveUnreadable(Unavailable):
    """The archive has no readable object with the order."""


class NotReady(Unavailable):
    """The state of the sale is being loaded into Redis, or MySQL may not be read now."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a voucher. Times are microseconds since 1970.

    The title may change, the price until the voucher opens, and ``expires_us`` to a later time
    until it has passed; the others never do. An ordinary voucher may open at ``ALWAYS_OPEN_US`` and
    close at ``NEVER_CLOSES_US``. ``expires_us``: until when its orders can be used;
    None: without an end.
    """

    shop_id: int
    title: str
    price_cents: int
    stock: int
    opens_us: int
    closes_us: int
    kind: str = FLASH
    expires_us: int | None = None


class Voucher(NamedTuple):
    """A voucher as stored in MySQL. ``stock``: the units that no success has; ``generation``: as in
    ``SaleGeneration``; ``shop_deleted``: whether its shop was deleted; ``withdrawn``: that, or it
    was withdrawn itself; ``cancelled``: the number of its cancelled orders."""

    id: int
    terms: Terms
    stock: int
    generation: int
    finalized: bool
    shop_deleted: bool = False
    withdrawn: bool = False
    cancelled: int = 0


class SaleGeneration(NamedTuple):
    """A voucher's state in Redis between two builds.

    ``generation`` is part of its keys and is checked by every script, so that commands for an older
    generation are refused. ``initial_stock`` determines the number of buckets.
    """

    voucher_id: int
    generation: int
    initial_stock: int

    @property
    def buckets(self) -> int:
        return min(MAX_BUCKETS, -(-self.initial_stock // BUYERS_PER_BUCKET))


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """A reservation that Redis made for a buyer, as sent to the queue.

    ``request_id`` is an attribute of the message, not part of its body; None if it is unknown.
    """

    order_id: int
    voucher_id: int
    buyer_id: int
    generation: int
    request_id: str | None = None

    @property
    def identity(self) -> tuple[int, int, int]:
        return self.order_id, self.voucher_id, self.buyer_id


class Order(NamedTuple):
    """An order as shown to its buyer; ``reason`` is set if it failed."""

    id: int
    voucher_id: int
    status: str
    reason: str | None = None


class VoucherSummary(NamedTuple):
    """What an order shows of its voucher and its shop. ``expires_us``: as in ``Terms``."""

    id: int
    title: str
    price_cents: int
    expires_us: int | None
    shop_id: int
    shop_name: str


class OrderView(NamedTuple):
    """An order with its times, microseconds since 1970, and its voucher.

    ``decided_us``: None while it is pending; ``used_us``: None unless it was used; ``voucher``:
    None while MySQL is unavailable.
    """

    order: Order
    decided_us: int | None = None
    used_us: int | None = None
    voucher: VoucherSummary | None = None


class OrderRow(NamedTuple):
    """A decided order; ``reason`` is None for a success. ``request_id`` is stored for operators
    and never read back. ``expired`` and the times, microseconds since 1970, are read with the row
    where it is shown."""

    order_id: int
    voucher_id: int
    buyer_id: int
    reason: str | None
    request_id: str | None = None
    decided_us: int | None = None
    used_us: int | None = None
    expired: bool = False

    @property
    def identity(self) -> tuple[int, int, int]:
        return self.order_id, self.voucher_id, self.buyer_id

    @property
    def is_success(self) -> bool:
        return self.reason is None

    @property
    def is_cancelled(self) -> bool:
        return self.reason == CANCELLED

    @property
    def order(self) -> Order:
        if self.is_cancelled:
            return Order(self.order_id, self.voucher_id, CANCELLED)
        if not self.is_success:
            return Order(self.order_id, self.voucher_id, FAILED, self.reason)
        status = SUCCESS if self.used_us is None else USED
        if status == SUCCESS and self.expired:
            status = EXPIRED
        return Order(self.order_id, self.voucher_id, status)

    @property
    def view(self) -> OrderView:
        return OrderView(self.order, self.decided_us, self.used_us)


class RedeemedOrder(NamedTuple):
    """An order that was used; ``used_us``: microseconds since 1970."""

    order_id: int
    voucher_id: int
    used_us: int
    used_by: int


class ArchivedOrder(NamedTuple):
    """A final order, as the archive has it. A success that was not used has expired. Times are
    microseconds since 1970."""

    order_id: int
    voucher_id: int
    buyer_id: int
    reason: str | None
    request_id: str | None
    decided_us: int
    used_us: int | None
    used_by: int | None

    @property
    def view(self) -> OrderView:
        """The order as its buyer reads it."""
        return OrderRow(
            *self[:4],
            decided_us=self.decided_us,
            used_us=self.used_us,
            expired=self.used_us is None,
        ).view


class WaitlistPosition(NamedTuple):
    """A position in the waitlist: ``position`` from 1, or the unit that is offered until
    ``accept_by_us``."""

    position: int | None
    accept_by_us: int | None = None


class VoucherAvailability(NamedTuple):
    """A voucher and its remaining units; not ``exact`` if ``left`` was read from MySQL, which does
    not subtract pending orders."""

    voucher: Voucher
    left: int
    exact: bool


def may_be_pending(age_s: float) -> bool:
    """Return whether an order whose id is ``age_s`` old may still be without its row."""
    return -MAX_CLOCK_SKEW_S <= age_s <= MAX_PENDING_S


def split_mismatched(
    events: Iterable[OrderEvent], existing: Mapping[int, OrderRow]
) -> tuple[list[OrderEvent], list[OrderEvent]]:
    """Return (``events`` that may be decided, events whose id belongs to another order).

    ``existing`` maps order ids to their rows. Of two events with one id and no row, the event with
    the lower (voucher, buyer) may be decided.
    """
    identities = {order_id: row.identity for order_id, row in existing.items()}
    matching: list[OrderEvent] = []
    mismatched: list[OrderEvent] = []
    for event in sorted(events, key=lambda event: event.identity):
        same = identities.setdefault(event.order_id, event.identity) == event.identity
        (matching if same else mismatched).append(event)
    return matching, mismatched


def decide(
    events: Iterable[OrderEvent],
    existing: Mapping[int, OrderRow],
    holders: Iterable[tuple[int, int]],
    stocks: Mapping[int, int | None],
) -> list[OrderRow]:
    """Decide the events without a row in ``existing``; return their rows, lowest order id first.

    ``holders``: the (voucher, buyer) pairs that have a success; ``stocks``: voucher -> units left,
    None if it was withdrawn.
    """
    successes, left = set(holders), dict(stocks)
    rows = []
    by_id = {event.order_id: event for event in events}
    for _, event in sorted(by_id.items()):
        if event.order_id in existing:
            continue
        voucher_id, buyer_id = event.voucher_id, event.buyer_id
        reason: Reason | None = None
        if (voucher_id, buyer_id) in successes:
            reason = "already-bought"
        elif (units := left.get(voucher_id, 0)) is None:
            reason = "withdrawn"
        elif units <= 0:
            reason = "sold-out"
        else:
            successes.add((voucher_id, buyer_id))
            left[voucher_id] = units - 1
        rows.append(OrderRow(event.order_id, voucher_id, buyer_id, reason, event.request_id))
    return rows


def count_units(rows: Sequence[OrderRow]) -> dict[int, int]:
    """Return voucher -> units that the successes in ``rows`` take."""
    taken: dict[int, int] = {}
    for row in rows:
        if row.is_success:
            taken[row.voucher_id] = taken.get(row.voucher_id, 0) + 1
    return taken
