"""Buyers: each clicks on one voucher several times and polls the order until it is decided.

A refused buyer clicks again after Retry-After, and a buyer with an order polls it until it is
decided. A buyer that waits has no request in flight: another one's click takes the connection.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from local.load.crowd import Answer
from local.load.requests import Call

Send = Callable[[Call, int], Awaitable[Answer]]
_REFUSED = (0, 429, 503)


@dataclass(slots=True)
class Buyers:
    """The buyers of a voucher, and what they were answered.

    ``orders``: buyer -> {order id: last reported status}. ``latencies_s`` are of clicks,
    ``decision_s`` from the accepted click to the decision. ``wrong``: answers that cannot be true.
    """

    voucher_id: int
    send: Send
    on_click: Callable[[int], None]
    clicks: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    orders: dict[int, dict[int, str]] = field(default_factory=dict)
    latencies_s: list[float] = field(default_factory=list)
    decision_s: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    _accepted_s: dict[int, float] = field(default_factory=dict)  # order -> start of its click
    _known_s: dict[int, float] = field(default_factory=dict)  # order -> its last new status
    _second_orders: list[tuple[int, int, int]] = field(default_factory=list)  # of a buyer, beside
    _waiting: set[asyncio.Task[None]] = field(default_factory=set)

    async def click(self, buyer_id: int) -> None:
        """Order once; click again later when the request is refused for now."""
        began_s = time.monotonic()
        answer = await self.send(Call("POST", f"/vouchers/{self.voucher_id}/orders"), buyer_id)
        self.clicks += 1
        self.on_click(self.clicks)
        self.answers[_name(answer)] += 1
        if answer.status:
            self.latencies_s.append(answer.took_s)
        if answer.status in (200, 202):
            self._record_order(buyer_id, answer, began_s)
        elif answer.status in _REFUSED:
            self._do_later(answer, lambda: self.click(buyer_id))
        elif answer.status != 409:
            self.wrong.append(f"{buyer_id} clicks: {answer}")

    async def wait_for_decisions(self, timeout_s: float) -> None:
        """Wait until no buyer waits any more, or the timeout is over; then find double orders."""
        end_s = time.monotonic() + timeout_s
        while self._waiting and time.monotonic() < end_s:
            await asyncio.wait(self._waiting, timeout=end_s - time.monotonic())
        for task in self._waiting:
            task.cancel()
        for buyer_id, order_id, earlier_id in self._second_orders:
            if self.orders[buyer_id][earlier_id] == "success":
                self.wrong.append(f"{buyer_id} has two orders: {earlier_id} and {order_id}")

    async def _poll(self, buyer_id: int, order_id: int) -> None:
        began_s = time.monotonic()
        answer = await self.send(Call("GET", f"/orders/{order_id}"), buyer_id)
        if answer.status == 200:
            self._record_order(buyer_id, answer, began_s, polled=True)
        elif answer.status in _REFUSED:
            self._do_later(answer, lambda: self._poll(buyer_id, order_id))
        else:
            self.wrong.append(f"{buyer_id} polls {order_id}: {answer}")

    def _record_order(
        self, buyer_id: int, answer: Answer, began_s: float, *, polled: bool = False
    ) -> None:
        """Record the status of an order by a request that began at ``began_s``; poll a pending one.

        A buyer's requests overtake each other: an answer counts against another one only if its
        request began after that.
        """
        order_id, status = int(answer.body["order_id"]), str(answer.body["status"])
        known = self.orders.setdefault(buyer_id, {})
        before, now_s = known.get(order_id), time.monotonic()
        if before is None:
            self._known_s[order_id], self._accepted_s[order_id] = now_s, began_s
            self._second_orders += [
                (buyer_id, order_id, other)
                for other, its_status in known.items()
                if its_status != "failed" and self._known_s[other] < began_s
            ]
        elif before != "pending":
            if status != before and self._known_s[order_id] < began_s:
                self.wrong.append(f"order {order_id} was {before} and is {status}")
            return
        known[order_id] = status
        if status == "pending":
            if before is None or polled:
                self._do_later(answer, lambda: self._poll(buyer_id, order_id))
            return
        self._known_s[order_id] = now_s
        self.decision_s.append(now_s - self._accepted_s[order_id])
        if status == "failed":  # the unit is on sale again
            self._do_later(answer, lambda: self.click(buyer_id))

    def _do_later(self, answer: Answer, action: Callable[[], Awaitable[None]]) -> None:
        wait_s = answer.retry_after_s if "retry-after" in answer.headers else 1.0

        async def wait_and_do() -> None:
            await asyncio.sleep(wait_s * random.uniform(1, 1.3))
            await action()

        task = asyncio.get_running_loop().create_task(wait_and_do())
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)


def _name(answer: Answer) -> str:
    slug = str(answer.body.get("slug", ""))
    return f"{answer.status} {slug}".strip() if answer.status else "no answer"
