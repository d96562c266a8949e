"""The cached backlog of orders while SQS is down."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plaza.commerce.flash_sales import backlog, mysql_orders, place_order
from plaza.commerce.flash_sales.model import OrderEvent
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.runtime.process import clear_caches
from tests.support.failures import failing


@pytest.fixture(autouse=True)
def empty_caches() -> Iterator[None]:
    clear_caches()
    yield
    clear_caches()


def test_the_backlog_is_not_read_right_after_sqs_refused_an_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqs, "send", failing(QueueDown("SQS is down, simulated by a test")))
    monkeypatch.setattr(
        sqs, "measure", failing(AssertionError("SQS was polled right after a failure"))
    )
    stored: list[OrderEvent] = []
    monkeypatch.setattr(mysql_orders, "spill", stored.append)
    assert not place_order.publish(OrderEvent(1 << 40, 7, 8, 1))
    assert stored == [OrderEvent(1 << 40, 7, 8, 1)]
    assert backlog.count_unfinished() is None
    assert backlog.poll_after_s() == 5
