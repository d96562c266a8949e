"""Buyers at a sale: clicks, retries, and polls until the decision."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from local.load.buyers import Buyers
from local.load.crowd import Answer, Tally
from local.load.flash_sale import Disruption, Options, Report, SaleRecord
from local.load.requests import Call


class Shop:
    """An API with some stock that decides an order on the second poll."""

    def __init__(self, stock: int, *, crowded: int = 0, fails: int = 0) -> None:
        self.stock, self.crowded, self.fails = stock, crowded, fails
        self.orders: dict[int, int] = {}
        self.asked: Counter[int] = Counter()
        self.failed: set[int] = set()

    async def send(self, call: Call, user_id: int) -> Answer:
        await asyncio.sleep(0)
        if call.method == "POST":
            return self.order(user_id)
        order_id = int(call.path.rpartition("/")[2])
        self.asked[order_id] += 1
        if self.asked[order_id] == 2 and self.fails:
            self.fails -= 1
            self.stock += 1
            self.failed.add(order_id)
            del self.orders[user_id]
        return self.say(200, order_id)

    def order(self, user_id: int) -> Answer:
        if user_id in self.orders:
            return self.say(200, self.orders[user_id])
        if self.crowded:
            self.crowded -= 1
            return Answer(429, {"slug": "too-many-requests"}, {"retry-after": "0"})
        if not self.stock:
            return Answer(409, {"slug": "sold-out"}, {})
        self.stock -= 1
        self.orders[user_id] = 100 + user_id + 1000 * len(self.failed)
        return self.say(202, self.orders[user_id])

    def say(self, status: int, order_id: int) -> Answer:
        state = "failed" if order_id in self.failed else "pending"
        if self.asked[order_id] >= 2 and state == "pending":
            state = "success"
        return Answer(status, {"order_id": str(order_id), "status": state}, {"retry-after": "0"})


def play(shop: Shop, buyers: int, clicks: int = 3) -> Buyers:
    """Let each of ``buyers`` click at once, and again as soon as all were answered."""
    played = Buyers(5, shop.send, lambda clicks: None)

    async def run() -> None:
        for _ in range(clicks):
            await asyncio.gather(*(played.click(buyer) for buyer in range(1, buyers + 1)))
        await played.wait_for_decisions(10)

    asyncio.run(run())
    return played


def test_every_buyer_clicks_and_gets_a_decision() -> None:
    played = play(Shop(5), 20)
    assert played.clicks == 60
    assert played.answers["202"] == 5
    assert played.answers["200"] == 10
    assert played.answers["409 sold-out"] == 45
    assert [list(known.values()) for known in played.orders.values()] == [["success"]] * 5
    assert len(played.decision_s) == 5
    assert played.wrong == []


def test_decision_time_starts_with_the_accepted_click() -> None:
    class Decided(Shop):
        """Decide before the second click, whose answer has the decision."""

        def order(self, user_id: int) -> Answer:
            if user_id not in self.orders:
                return super().order(user_id)._replace(headers={"retry-after": "1"})
            self.asked[self.orders[user_id]] = 2
            return super().order(user_id)

        async def send(self, call: Call, user_id: int) -> Answer:
            await asyncio.sleep(0.05)
            return await super().send(call, user_id)

    [decision_s] = play(Decided(1), 1, clicks=2).decision_s
    assert 0.1 <= decision_s < 1


def test_temporarily_refused_buyer_retries() -> None:
    played = play(Shop(4, crowded=3), 4, clicks=1)
    assert played.answers == {"202": 4, "429 too-many-requests": 3}
    assert len(played.orders) == 4


def test_buyer_of_a_failed_order_orders_again() -> None:
    played = play(Shop(1, fails=1), 1, clicks=1)
    assert sorted(played.orders[1].values()) == ["failed", "success"]
    assert played.wrong == []


def test_second_order_of_a_buyer_is_wrong() -> None:
    class Generous(Shop):
        def order(self, user_id: int) -> Answer:
            self.orders.pop(user_id, None)
            self.asked[0] += 1
            self.orders[user_id] = self.asked[0]
            return self.say(202, self.orders[user_id])

    assert play(Generous(9), 1, clicks=2).wrong == ["1 has two orders: 1 and 2"]


class Late(Shop):
    """Give ``answers`` to clicks, each when as many clicks as its second value were sent."""

    def __init__(self, *answers: tuple[str, int]) -> None:
        super().__init__(1)
        self.answers, self.sent = list(answers), 0

    async def send(self, call: Call, user_id: int) -> Answer:
        (status, after), self.sent = self.answers.pop(0), self.sent + 1
        while self.sent < after:
            await asyncio.sleep(0)
        return Answer(200, {"order_id": "7", "status": status}, {"retry-after": "0"})


async def click_in_turn(played: Buyers, shop: Late) -> None:
    """Click until the shop has no answers left, each time before the answer to the one before."""
    async with asyncio.TaskGroup() as group:
        while shop.answers:
            group.create_task(played.click(1))
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("answers", "wrong"),
    [
        ((("pending", 3), ("success", 2), ("success", 3)), []),  # overtaken by the second
        ((("success", 1), ("failed", 2)), ["order 7 was success and is failed"]),
    ],
)
def test_a_later_answer_counts_against_an_earlier_one_only(
    answers: tuple[tuple[str, int], ...], wrong: list[str]
) -> None:
    shop = Late(*answers)
    played = Buyers(5, shop.send, lambda clicks: None)
    asyncio.run(click_in_turn(played, shop))
    assert played.wrong == wrong
    assert played.orders == {1: {7: "success"}}


def report(decided: dict[int, tuple[int, str | None]], **changes: object) -> Report:
    """Return the report of a sale of two vouchers to three buyers, of which 1 and 2 got one."""
    result = Buyers(5, Shop(2).send, lambda clicks: None)
    result.orders = {1: {101: "success"}, 2: {102: "success"}}
    won = sum(reason is None for _, reason in decided.values())
    record = SaleRecord(decided, stock=2 - won, redis=(2 - won, 0, won))
    outcome = Report(Options(3, 2, 1), result, record, Disruption(), Tally(), 1.0)
    for name, value in changes.items():
        setattr(outcome, name, value)
    return outcome


GOOD: dict[int, tuple[int, str | None]] = {101: (1, None), 102: (2, None)}


def test_sale_is_clean_when_all_reports_were_true() -> None:
    assert report(GOOD).clean


@pytest.mark.parametrize(
    ("decided", "what"),
    [
        ({101: (1, None)}, "lost"),
        (GOOD | {103: (3, None)}, "oversold"),
        (GOOD | {103: (1, None)}, "duplicated"),
        ({101: (1, None), 102: (2, "timed-out"), 103: (3, None)}, "mismatched"),
    ],
)
def test_sale_with_a_broken_promise_is_not_clean(
    decided: dict[int, tuple[int, str | None]], what: str
) -> None:
    result = report(decided)
    assert not result.clean
    assert result.to_json()[what] == 1


def test_sale_is_not_clean_with_pending_orders_or_drift() -> None:
    assert not report(GOOD, record=SaleRecord(GOOD, 0, (1, 0, 1))).clean
    assert not report(GOOD, record=SaleRecord(GOOD, 0, (-1, 1, 2))).clean
    waiting = report(GOOD | {103: (3, "sold-out")})
    assert waiting.clean
    waiting.result.orders[3] = {103: "pending"}
    assert not waiting.clean


@pytest.mark.parametrize(("buyers", "at_once"), [(600, 600), (20_000, 10_000)])
def test_each_buyer_has_a_click_in_flight_within_a_bound(buyers: int, at_once: int) -> None:
    assert Options(buyers, 10, 5).clicks_at_once == at_once
    assert Options(buyers, 10, 5, concurrency=7).clicks_at_once == 7
