"""Buyers at a sale: clicks, retries, and polls until the decision."""

from __future__ import annotations

from collections import Counter

import pytest

from local.load.buyers import BuyerGroup, Reply, play
from local.load.flash_sale import Disruption, Options, Report, SaleRecord, add_up, split


class Shop:
    """An API with some stock that decides an order on the second poll."""

    def __init__(self, stock: int, *, crowded: int = 0, fails: int = 0) -> None:
        self.stock, self.crowded, self.fails = stock, crowded, fails
        self.orders: dict[int, int] = {}
        self.asked: Counter[int] = Counter()
        self.failed: set[int] = set()

    def send(self, method: str, path: str, user_id: int) -> Reply:
        if method == "POST":
            return self.order(user_id)
        order_id = int(path.rpartition("/")[2])
        self.asked[order_id] += 1
        if self.asked[order_id] == 2 and self.fails:
            self.fails -= 1
            self.stock += 1
            self.failed.add(order_id)
            del self.orders[user_id]
        return self.say(200, order_id)

    def order(self, user_id: int) -> Reply:
        if user_id in self.orders:
            return self.say(200, self.orders[user_id])
        if self.crowded:
            self.crowded -= 1
            return Reply(429, {"retry-after": "0"}, {"type": "p/too-many-requests"})
        if not self.stock:
            return Reply(409, {}, {"type": "p/sold-out"})
        self.stock -= 1
        self.orders[user_id] = 100 + user_id + 1000 * len(self.failed)
        return self.say(202, self.orders[user_id])

    def say(self, status: int, order_id: int) -> Reply:
        state = "failed" if order_id in self.failed else "pending"
        if self.asked[order_id] >= 2 and state == "pending":
            state = "success"
        return Reply(status, {"retry-after": "0"}, {"order_id": str(order_id), "status": state})


def crowd(buyers: int, clicks: int = 3) -> BuyerGroup:
    return BuyerGroup(5, list(range(1, buyers + 1)), clicks, seed=1, timeout_s=10)


def test_every_buyer_clicks_and_gets_a_decision() -> None:
    progress: list[int] = []
    result = play(crowd(20), Shop(5), progress.append)
    assert sum(progress) == result.clicks == 60
    assert result.answers["202"] == 5
    assert result.answers["200"] == 10
    assert result.answers["409 sold-out"] == 45
    assert [list(heard.values()) for heard in result.orders.values()] == [["success"]] * 5
    assert len(result.decision_s) == 5
    assert (result.undecided, result.wrong) == (0, [])


def test_decision_time_starts_with_the_accepted_click(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = iter(range(1000))
    monkeypatch.setattr("local.load.buyers.time.monotonic", lambda: next(now_s))

    class Decided(Shop):
        """Decide before the second click, whose answer has the decision."""

        def order(self, user_id: int) -> Reply:
            if user_id not in self.orders:
                return super().order(user_id)._replace(headers={"retry-after": "10"})
            self.asked[self.orders[user_id]] = 2
            return super().order(user_id)

    result = play(crowd(1, clicks=2), Decided(1), lambda _: None)
    first_began_s, [decision_s] = 1, result.decision_s
    assert decision_s > result.latencies_s[1] + first_began_s


def test_temporarily_refused_buyer_retries() -> None:
    result = play(crowd(4, clicks=1), Shop(4, crowded=3), lambda _: None)
    assert result.answers == {"202": 4, "429 too-many-requests": 3}
    assert len(result.orders) == 4


def test_buyer_of_a_failed_order_orders_again() -> None:
    result = play(crowd(1, clicks=1), Shop(1, fails=1), lambda _: None)
    assert sorted(result.orders[1].values()) == ["failed", "success"]
    assert result.wrong == []


def test_second_order_of_a_buyer_is_wrong() -> None:
    class Generous(Shop):
        def order(self, user_id: int) -> Reply:
            self.orders.pop(user_id, None)
            self.asked[0] += 1
            self.orders[user_id] = self.asked[0]
            return self.say(202, self.orders[user_id])

    result = play(crowd(1, clicks=2), Generous(9), lambda _: None)
    assert "two orders" in result.wrong[0]


def report(decided: dict[int, tuple[int, str | None]], **changes: object) -> Report:
    """Return the report of a sale of two vouchers to three buyers, of which 1 and 2 got one."""
    result = add_up([])
    result.orders = {1: {101: "success"}, 2: {102: "success"}}
    won = sum(reason is None for _, reason in decided.values())
    record = SaleRecord(decided, stock=2 - won, redis=(2 - won, 0, won))
    outcome = Report(Options(3, 2, 1), result, record, Disruption(), 1.0, 1)
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
    waiting = report(GOOD)
    waiting.result.undecided = 1
    assert not waiting.clean


def test_split_keeps_every_buyer() -> None:
    groups = split(Options(10, 2, 1), 5, 4)
    assert sorted(buyer for group in groups for buyer in group.buyer_ids) == sorted(
        range(groups[0].buyer_ids[0], groups[0].buyer_ids[0] + 10)
    )
    assert len(split(Options(2, 2, 1), 5, 4)) == 2


@pytest.mark.parametrize(("buyers", "over_http"), [(600, True), (601, False)])
def test_large_crowd_uses_the_handlers(buyers: int, over_http: bool) -> None:
    assert Options(buyers, 10, 5).over_http is over_http
    assert Options(buyers, 10, 5, through="http").over_http
    assert not Options(buyers, 10, 5, through="handlers").over_http
