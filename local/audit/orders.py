"""Orders for the audit: ids that are used twice, and orders that nothing will decide."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pymysql.cursors import Cursor

_SALE = re.compile(r"\{\d+\}:voucher:(\d{1,19}):(\d{1,19}):(recovery|buyers:\d+)", re.ASCII)
_POINTERS = re.compile(r"\{\d+\}:user:(\d{1,19}):orders", re.ASCII)
_PER_TRIP = 1_000
QUEUES = ("orders", "orders_dlq", "orders_dlq_dlq")


class OrderEntry(NamedTuple):
    """An order in Redis. ``generation``: of the key that has it, None for a pointer.

    ``in_recovery``: it is in the list ``recovery``. ``pending``: its buyer's entry is pending.
    """

    order_id: int
    voucher_id: int
    buyer_id: int
    generation: int | None
    in_recovery: bool
    pending: bool

    @property
    def identity(self) -> tuple[int, int, int]:
        """(order, voucher, buyer)."""
        return self[:3]


@dataclass(slots=True)
class OrderKeys:
    """The keys that have orders: key -> (voucher, generation), and key -> buyer."""

    sales: dict[str, tuple[int, int]] = field(default_factory=dict)
    pointers: dict[str, int] = field(default_factory=dict)

    def add_key(self, key: str) -> bool:
        """Add ``key`` if it has orders; return whether it has."""
        if match := _SALE.fullmatch(key):
            self.sales[key] = int(match[1]), int(match[2])
        elif match := _POINTERS.fullmatch(key):
            self.pointers[key] = int(match[1])
        else:
            return False
        return True


@dataclass(slots=True)
class OrderRecord:
    """Orders in MySQL. ``rows``: order -> (voucher, buyer). ``stored``: identities of orders that
    SQS refused. ``recovered``: vouchers whose pending orders the recovery processes."""

    rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    stored: list[tuple[int, int, int]] = field(default_factory=list)
    recovered: set[int] = field(default_factory=set)


def read_orders(cursor: Cursor) -> OrderRecord:
    """Return all orders of MySQL, archived ones included. Three statements."""
    record = OrderRecord()
    cursor.execute(
        """
        SELECT order_id, voucher_id, buyer_id
        FROM voucher_order
        UNION ALL
        SELECT order_id, voucher_id, buyer_id
        FROM archived_order
        """
    )
    record.rows = {order_id: (voucher, buyer) for order_id, voucher, buyer in cursor}
    cursor.execute("SELECT order_id, voucher_id, buyer_id FROM order_outbox")
    record.stored = list(cursor)
    cursor.execute(
        "SELECT id FROM voucher WHERE finalized_at IS NULL AND opens_at <= UTC_TIMESTAMP(6)"
    )
    record.recovered = {voucher_id for (voucher_id,) in cursor}
    return record


def read_entries(client: Any, keys: OrderKeys) -> list[OrderEntry]:
    """Return all orders in Redis. One pipeline for 1,000 keys.

    Buyers are read before ``recovery``: an order that has left ``recovery`` has its row by then.
    """
    entries = []
    buyers = sorted(key for key in keys.sales if not key.endswith(":recovery"))
    for key, fields in _read(client, buyers, "hgetall"):
        voucher_id, generation = keys.sales[key]
        for buyer_id, entry in fields.items():
            status, _, order_id = entry.partition(":")
            pending = status == "pending"
            entries.append(
                OrderEntry(int(order_id), voucher_id, int(buyer_id), generation, False, pending)
            )
    for key, members in _read(client, sorted(keys.sales.keys() - set(buyers)), "lrange", 0, -1):
        voucher_id, generation = keys.sales[key]
        for member in members:
            order_id, buyer_id, _ = member.split(":")
            entries.append(
                OrderEntry(int(order_id), voucher_id, int(buyer_id), generation, True, False)
            )
    for key, members in _read(client, sorted(keys.pointers), "zrange", 0, -1):
        for member in members:
            order_id, _, voucher_id = member.partition(":")
            of = int(order_id), int(voucher_id), keys.pointers[key]
            entries.append(OrderEntry(*of, None, False, False))
    return entries


def find_reused_ids(
    record: OrderRecord, entries: Sequence[OrderEntry]
) -> Iterator[tuple[str, str]]:
    """Yield ids of more than one order, in rows, in the outbox and in Redis. Always exact."""
    uses: dict[int, set[tuple[int, int]]] = {id_: {of} for id_, of in record.rows.items()}
    for order_id, *of in [*record.stored, *(entry.identity for entry in entries)]:
        uses.setdefault(order_id, set()).add((of[0], of[1]))
    for order_id, orders in sorted(uses.items()):
        if len(orders) > 1:
            shown = ", ".join(f"voucher {v} of buyer {b}" for v, b in sorted(orders))
            yield f"order {order_id}", f"one id, {len(orders)} orders: {shown}"


def find_stranded_orders(
    record: OrderRecord, entries: Sequence[OrderEntry], generations: Mapping[int, int], quiet: bool
) -> Iterator[tuple[str, str]]:
    """Yield orders without a row that no queue, outbox or recovery will decide.

    Exact while the queues of orders are empty. ``generations``: voucher -> current generation.
    Pointers are checked only when ``quiet``. A pending order of an older generation without a
    pointer was never confirmed to its buyer.
    """
    decided = {(order_id, *of) for order_id, of in record.rows.items()} | set(record.stored)
    present = [e for e in entries if e.generation == generations.get(e.voucher_id, 0)]
    undecided = [entry for entry in present if entry.pending]
    decided |= {entry.identity for entry in undecided} & {
        entry.identity
        for entry in present
        if entry.in_recovery and entry.voucher_id in record.recovered
    }
    if quiet:
        undecided += [entry for entry in entries if entry.generation is None]
    for order_id, voucher_id, buyer_id in sorted({e.identity for e in undecided} - decided):
        yield f"order {order_id}", f"of buyer {buyer_id}, voucher {voucher_id}: nothing decides it"


def _read(
    client: Any, keys: Sequence[str], command: str, *args: object
) -> Iterator[tuple[str, Any]]:
    for start in range(0, len(keys), _PER_TRIP):
        part = keys[start : start + _PER_TRIP]
        pipe = client.pipeline(transaction=False)
        for key in part:
            getattr(pipe, command)(key, *args)
        yield from zip(part, pipe.execute(), strict=True)
