"""How far the queue of orders is behind, and who is not asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn

import pytest

from plaza.flash_sales import backlog, mysql_orders, place_order
from plaza.flash_sales.model import OrderEvent
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
    stored: list[OrderEvent] = []
    monkeypatch.setattr(mysql_orders, "add_to_outbox", stored.append)
    assert not place_order.publish(OrderEvent(1 << 40, 7, 8, 1))
    assert stored == [OrderEvent(1 << 40, 7, 8, 1)]
    assert backlog.count_unfinished() is None
    assert backlog.poll_after_s() == 5
