"""Returns repeat unanswered requests, and find each kind of broken promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests.chaos.returns import Returns
from tests.chaos.traffic import Reply

VOUCHER = 7
PLACE = f"/vouchers/{VOUCHER}/waitlist/me"
ORDERS = f"/vouchers/{VOUCHER}/orders"
ORDERED = [Reply(202, {}, {"order_id": "10"}), Reply(202, {}, {"order_id": "11"})]
SOLD_OUT = Reply(
    409,
    {"content-type": "application/problem+json"},
    {"slug": "sold-out", "title": "Sold out", "detail": "No units.", "status": 409},
)
UNAVAILABLE = Reply(
    503,
    {"content-type": "application/problem+json", "retry-after": "2"},
    {"slug": "unavailable", "title": "Unavailable", "detail": "Later.", "status": 503},
)
WAITING = Reply(200, {}, {"status": "waiting", "position": 1})
OFFERED = Reply(200, {}, {"status": "offered", "position": None})
CANCELLED = Reply(200, {}, {"status": "cancelled"})


class FakeAddress:
    """Answers requests in order, and records them."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self._replies: Iterator[Reply] = iter(replies)

    def ask(
        self, method: str, path: str, token: str | None = None, body: Any = None, source: str = ""
    ) -> Reply:
        self.asked.append((method, path, token))
        return next(self._replies)


def play(*replies: Reply, steps: int) -> tuple[Returns, FakeAddress, list[str]]:
    address: Any = FakeAddress(replies)
    tokens = {buyer: f"token-{buyer}" for buyer in range(1, 9)}
    returns = Returns(address, tokens, VOUCHER, stock=1)
    return returns, address, [returns.step()[1] for _ in range(steps)]


def rows(*result: tuple[int, int, str | None]) -> Any:
    return lambda sql, *args: result


def test_a_cancelled_unit_goes_to_the_buyer_who_waits() -> None:
    replies = (ORDERED[0], CANCELLED, SOLD_OUT, WAITING, OFFERED, ORDERED[1])
    returns, address, labels = play(*replies, steps=5)
    assert labels == ["202", "200", "409 sold-out", "200", "202"]
    assert [(method, path) for method, path, _ in address.asked] == [
        ("POST", ORDERS),
        ("DELETE", "/orders/10"),
        ("POST", ORDERS),
        ("PUT", PLACE),
        ("GET", PLACE),
        ("POST", ORDERS),
    ]
    assert returns.promises.total() == 4
    assert returns.find_lost(rows((10, 1, "cancelled"), (11, 2, None))) == []


def test_an_unanswered_request_is_repeated_by_the_same_buyer() -> None:
    _, address, labels = play(UNAVAILABLE, ORDERED[0], UNAVAILABLE, SOLD_OUT, CANCELLED, steps=3)
    assert labels == ["503 unavailable", "202", "503 unavailable"]
    assert address.asked[0] == address.asked[1]
    assert address.asked[2] == ("DELETE", "/orders/10", "token-1")


@pytest.mark.parametrize(
    ("result", "lost"),
    [
        ([(11, 2, None)], "order 10 of 1: nowhere, not cancelled"),
        ([(10, 1, None), (11, 2, "cancelled")], "order 10 of 1: (1, None), not cancelled"),
        ([(10, 1, "cancelled")], "order 11 of 2: nowhere, not None"),
        ([(10, 1, "cancelled"), (11, 2, None), (12, 3, None)], "2 of 1 units are sold"),
    ],
)
def test_a_broken_promise_is_found(result: list[tuple[int, int, str | None]], lost: str) -> None:
    returns, _, _ = play(ORDERED[0], CANCELLED, SOLD_OUT, WAITING, OFFERED, ORDERED[1], steps=5)
    assert lost in [what for _, what in returns.find_lost(rows(*result))]


def test_a_lost_position_is_found() -> None:
    missing = Reply(404, {}, {})
    returns, _, _ = play(SOLD_OUT, WAITING, missing, steps=2)
    assert [what for _, what in returns.find_lost(rows())] == [
        "the position of 1: 404 and no problem+json, None"
    ]
