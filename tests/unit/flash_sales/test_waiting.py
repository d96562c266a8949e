"""How far the queue of orders is behind, and who is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import pytest

from plaza.flash_sales import mysql_orders, ordering, waiting
from plaza.flash_sales.flash_sales import OrderReserved
from plaza.infra import sqs
from plaza.infra.process import clear_caches
from plaza.infra.queues import QueueDown


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    clear_caches()
    yield
    clear_caches()


def test_a_buyer_whose_order_sqs_did_not_take_does_not_wait_for_it_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away(queue: str, body: str, delay_s: int) -> NoReturn:
        raise QueueDown("SQS is away (a test says so)")

    def asked(queue: str) -> NoReturn:
        raise AssertionError("SQS was just silent")

    monkeypatch.setattr(sqs, "send", away)
    monkeypatch.setattr(sqs, "measure", asked)
    stored: list[OrderReserved] = []
    monkeypatch.setattr(mysql_orders, "store", stored.append)
    assert not ordering.publish(OrderReserved(1 << 40, 7, 8, 1))
    assert stored == [OrderReserved(1 << 40, 7, 8, 1)]
    assert waiting.count_waiting() is None
    assert waiting.poll_after_s() == 5
