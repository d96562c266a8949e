"""Load of a small voucher during a fault: buyers cancel, others wait for the units."""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.chaos.traffic import Address, Lost, Operation, Reply, Rows, label_of, read_decided, timed

_MAX_WAITING = 5


@dataclass
class Returns(Operation):
    """Orders of a voucher with few units. The oldest order is cancelled, refused buyers join the
    waitlist, and the first of them orders the unit that is offered.

    A request without an answer, or with 503, is repeated until it has one. ``tokens``: buyer ->
    token. ``stock``: units of the voucher.
    """

    address: Address
    tokens: Mapping[int, str]
    voucher: int
    stock: int
    name = "return"
    normal = ("200", "202", "409 sold-out", "409 units-left")
    held: dict[int, tuple[int, str]] = field(default_factory=dict)  # order -> buyer, phase
    cancelled: dict[int, tuple[int, str]] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)  # buyer -> phase, in the order of joining
    promises: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._buyers = iter(self.tokens)
        self._refused: deque[int] = deque()
        self._cancelling: int | None = None  # an order that may be cancelled
        self._accepting: int | None = None  # a buyer who may have ordered the offered unit
        self._turn = itertools.cycle((self._order, self._join, self._cancel, self._accept))
        self._buyer = next(self._buyers)

    def step(self) -> tuple[float, str]:
        return next(completed for turn in self._turn if (completed := turn()) is not None)

    def _order(self) -> tuple[float, str] | None:
        if len(self.waiting) + len(self._refused) >= _MAX_WAITING:
            return None
        took_s, reply = self._send_order(self._buyer)
        if reply.status == 409:
            self._refused.append(self._buyer)
        if reply.status in (200, 202, 409):
            self._buyer = next(self._buyers)
        return took_s, label_of(reply)

    def _join(self) -> tuple[float, str] | None:
        if not self._refused:
            return None
        buyer = self._refused[0]
        took_s, reply = self._ask("PUT", self._waitlist_path, buyer)
        if reply.status == 200:
            self._promise()
            self.waiting[buyer] = self.phase
        if reply.status in (200, 409):
            self._refused.popleft()
        return took_s, label_of(reply)

    def _cancel(self) -> tuple[float, str] | None:
        if len(self.held) < self.stock and self._cancelling is None:
            return None
        order = self._cancelling = next(iter(self.held))
        buyer, _ = self.held[order]
        took_s, reply = self._ask("DELETE", f"/orders/{order}", buyer)
        if reply.status == 200:
            del self.held[order]
            self._cancelling = None
            self._promise()
            self.cancelled[order] = buyer, self.phase
            if reply.body["status"] != "cancelled":
                return took_s, f"200 {reply.body['status']} for a cancellation"
        return took_s, label_of(reply)

    def _accept(self) -> tuple[float, str] | None:
        if not self.waiting:
            return None
        buyer = next(iter(self.waiting))
        if self._accepting is None:
            took_s, reply = self._ask("GET", self._waitlist_path, buyer)
            if reply.status != 200 or reply.body["status"] != "offered":
                return took_s, label_of(reply)
        self._accepting = buyer
        took_s, reply = self._send_order(buyer)
        if reply.status in (200, 202):
            del self.waiting[buyer]
        if reply.status in (200, 202, 409):
            self._accepting = None
        return took_s, label_of(reply)

    @property
    def _waitlist_path(self) -> str:
        return f"/vouchers/{self.voucher}/waitlist/me"

    def _send_order(self, buyer: int) -> tuple[float, Reply]:
        took_s, reply = self._ask("POST", f"/vouchers/{self.voucher}/orders", buyer)
        if reply.status in (200, 202):
            self._promise()
            self.held[int(reply.body["order_id"])] = buyer, self.phase
        return took_s, reply

    def _ask(self, method: str, path: str, buyer: int) -> tuple[float, Reply]:
        return timed(lambda: self.address.ask(method, path, self.tokens[buyer]))

    def _promise(self) -> None:
        self.promises[self.phase] += 1

    def count_undecided(self, rows: Rows) -> int:
        return len(self.held.keys() - read_decided(rows, self.voucher).keys())

    def find_lost(self, rows: Rows) -> list[Lost]:
        decided = read_decided(rows, self.voucher)
        lost = [
            (phase, f"order {order} of {buyer}: {decided.get(order, 'nowhere')}, not {expected}")
            for orders, expected in ((self.held, None), (self.cancelled, "cancelled"))
            for order, (buyer, phase) in orders.items()
            if order != self._cancelling and decided.get(order) != (buyer, expected)
        ]
        sold = sum(reason is None for _, reason in decided.values())
        if sold > self.stock:
            lost.append((self.phase, f"{sold} of {self.stock} units are sold"))
        return lost + self._find_lost_positions()

    def _find_lost_positions(self) -> list[Lost]:
        """Return buyers who wait and have no position, or one before those who joined earlier."""
        lost: list[Lost] = []
        highest = 0
        for buyer, phase in self.waiting.items():
            if buyer == self._accepting:
                continue
            _, reply = self._ask("GET", self._waitlist_path, buyer)
            position = (reply.body["position"] or 0) if reply.status == 200 else None
            if position is None or position < highest:
                lost.append((phase, f"the position of {buyer}: {label_of(reply)}, {position}"))
            highest = max(highest, position or 0)
        return lost
