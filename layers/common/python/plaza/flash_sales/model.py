"""Flash sales: vouchers, orders, and what MySQL decides about them. No I/O.

An order is pending from its reservation in Redis until it has its row in MySQL. The row decides,
by the stock that MySQL has, whichever of consumer, recovery and consumer of the DLQ inserts it.
An order is identified by (id, voucher, buyer). An id alone decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from plaza.infra import messages
from plaza.infra.errors import Conflict, Gone, NotFound, TooManyRequests, Unavailable
from plaza.infra.messages import ID, InvalidMessage, integer, read

MAX_GENERATION = messages.MAX_VERSION
MAX_STOCK = 10_000_000
BUYERS_PER_BUCKET = 64  # about; Redis keeps so few in one piece of memory, and small sales few keys
MAX_BUCKETS = 2**14

# An id is checked in MySQL for so long before it counts as one that no order has: longer than any
# order waits for its row.
MAX_PENDING_S = 86_400
MAX_CLOCK_SKEW_S = 60

PENDING, SUCCESS, FAILED = "pending", "success", "failed"
Reason = Literal["sold-out", "already-bought", "timed-out", "withdrawn"]
_GENERATION = integer(1, MAX_GENERATION)


class VoucherMissing(NotFound):
    """There is no such voucher, or no shop for it."""


class VoucherWithdrawn(Gone):
    """The shop of the voucher was deleted."""


class OrderMissing(NotFound):
    """There is no such order, or it is somebody else's."""


class SoldOut(Conflict):
    """Nothing is left."""

    slug = "sold-out"
    title = "Sold out"


class NotOpen(Conflict):
    """The sale has not begun, or is over."""

    slug = "not-open"
    title = "Sale not open"


class OrderRateExceeded(TooManyRequests):
    """More want to order than can be saved at this rate."""


class OrderMismatch(InvalidMessage):
    """An event has the id of an order of another voucher or buyer."""


class NotReady(Unavailable):
    """The state of the sale is being brought back into Redis."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is offered. Times are microseconds since 1970; never changes."""

    shop_id: int
    title: str
    price_cents: int
    stock: int
    opens_us: int
    closes_us: int


class Voucher(NamedTuple):
    """A voucher as MySQL has it. ``stock`` is what no success has; ``generation`` as in ``SaleGeneration``;
    ``shop_deleted``: its shop was deleted."""

    id: int
    terms: Terms
    stock: int
    generation: int
    finalized: bool
    shop_deleted: bool = False


class SaleGeneration(NamedTuple):
    """One sale of a voucher's state in Redis, from when it was made to when it was lost.

    ``generation`` is in the names of its keys and in every script: what belongs to an older sale is
    refused. ``initial_stock`` says how many buckets of buyers it has.
    """

    voucher_id: int
    generation: int
    initial_stock: int

    @property
    def buckets(self) -> int:
        """How many keys its buyers are spread over."""
        return min(MAX_BUCKETS, -(-self.initial_stock // BUYERS_PER_BUCKET))


@dataclass(frozen=True, slots=True)
class OrderEvent:
    """Redis took a unit for somebody. The event on the queue.

    ``request_id`` is an attribute of the message, not of its body: None where nobody knows it.
    """

    order_id: int
    voucher_id: int
    buyer_id: int
    generation: int
    request_id: str | None = None

    @property
    def identity(self) -> tuple[int, int, int]:
        """(order, voucher, buyer)."""
        return self.order_id, self.voucher_id, self.buyer_id

    def to_json(self) -> str:
        """The event as it stands on the queue."""
        return messages.encode(
            {
                "order_id": self.order_id,
                "voucher_id": self.voucher_id,
                "buyer_id": self.buyer_id,
                "generation": self.generation,
            }
        )

    @classmethod
    def from_json(cls, body: str) -> OrderEvent:
        """The event in ``body``. Raises InvalidMessage when it is none that we could have written."""
        fields = messages.read_object(body)
        return cls(
            read(fields, "order_id", ID),
            read(fields, "voucher_id", ID),
            read(fields, "buyer_id", ID),
            read(fields, "generation", _GENERATION),
        )


class Order(NamedTuple):
    """An order as its buyer sees it; ``reason`` is that of a failure."""

    id: int
    voucher_id: int
    status: str
    reason: str | None = None


class OrderRow(NamedTuple):
    """An order that MySQL has decided; ``reason`` None: a success. ``request_id`` is written, and
    read by people only."""

    order_id: int
    voucher_id: int
    buyer_id: int
    reason: str | None
    request_id: str | None = None

    @property
    def identity(self) -> tuple[int, int, int]:
        """(order, voucher, buyer)."""
        return self.order_id, self.voucher_id, self.buyer_id

    @property
    def is_success(self) -> bool:
        """Whether the buyer has it."""
        return self.reason is None

    @property
    def order(self) -> Order:
        """As its buyer sees it."""
        status = SUCCESS if self.is_success else FAILED
        return Order(self.order_id, self.voucher_id, status, self.reason)


class VoucherAvailability(NamedTuple):
    """A voucher with what is left of it; not ``exact`` while only MySQL could be asked: orders
    that are pending aren't taken off then."""

    voucher: Voucher
    left: int
    exact: bool


def may_be_pending(age_s: float) -> bool:
    """Whether an order whose id is so old may wait for its row."""
    return -MAX_CLOCK_SKEW_S <= age_s <= MAX_PENDING_S


def split_mismatched(
    events: Iterable[OrderEvent], known: Mapping[int, OrderRow]
) -> tuple[list[OrderEvent], list[OrderEvent]]:
    """Return (``events`` that may be decided, those whose id is that of another order).

    ``known`` are the rows of the ids. Of two events with one id and no row, that of the lower
    voucher and buyer may be decided.
    """
    identities = {order_id: row.identity for order_id, row in known.items()}
    sound: list[OrderEvent] = []
    mismatched: list[OrderEvent] = []
    for event in sorted(events, key=lambda event: event.identity):
        same = identities.setdefault(event.order_id, event.identity) == event.identity
        (sound if same else mismatched).append(event)
    return sound, mismatched


def decide(
    events: Iterable[OrderEvent],
    known: Mapping[int, OrderRow],
    holders: Iterable[tuple[int, int]],
    stocks: Mapping[int, int | None],
) -> list[OrderRow]:
    """The rows of those of ``events`` that have none yet (``known``), earliest order first.

    ``holders`` are (voucher, buyer) who have a success already; ``stocks``: voucher -> units left,
    None when its shop was deleted.
    """
    held, left = set(holders), dict(stocks)
    rows = []
    for event in sorted({f.order_id: f for f in events}.values(), key=lambda f: f.order_id):
        if event.order_id in known:
            continue
        voucher_id, buyer_id = event.voucher_id, event.buyer_id
        reason: Reason | None = None
        if (voucher_id, buyer_id) in held:
            reason = "already-bought"
        elif (units := left.get(voucher_id, 0)) is None:
            reason = "withdrawn"
        elif units <= 0:
            reason = "sold-out"
        else:
            held.add((voucher_id, buyer_id))
            left[voucher_id] = units - 1
        rows.append(OrderRow(event.order_id, voucher_id, buyer_id, reason, event.request_id))
    return rows


def count_units(rows: Sequence[OrderRow]) -> dict[int, int]:
    """Voucher -> units that ``rows`` take."""
    taken: dict[int, int] = {}
    for row in rows:
        if row.is_success:
            taken[row.voucher_id] = taken.get(row.voucher_id, 0) + 1
    return taken
