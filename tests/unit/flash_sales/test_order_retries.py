"""When an order comes again that could not be saved: soon at first, for its buyer waits."""

from __future__ import annotations

import pytest

from plaza.flash_sales.queues import ORDERS
from plaza.infra.errors import Unavailable
from plaza.infra.retries import Action, Delivery, RetryDecision, decide


def decisions(outage_s: float) -> list[tuple[float, RetryDecision]]:
    """When an order is tried in an outage that began as it was sent, and what becomes of it."""
    now_s, receives, resent, found = 0.0, 1, False, []
    while now_s < outage_s:
        delivery = Delivery(receives, 0, 0, 0, resent)
        decision = decide(delivery, Unavailable("away"), ORDERS.retry, int(now_s * 1000))
        found.append((now_s, decision))
        if decision.action is Action.DEAD_LETTER:
            break
        resent = resent or decision.action is Action.SEND_AGAIN
        receives = receives + 1 if decision.action is Action.HIDE else 1
        now_s += decision.delay_s
    return found


@pytest.mark.parametrize("outage_s", [1, 2, 5, 10, 15, 20])
def test_an_order_is_tried_within_three_seconds_of_the_end_of_a_short_outage(
    outage_s: int,
) -> None:
    at_s, decision = decisions(outage_s)[-1]
    assert at_s + decision.delay_s - outage_s <= 3


def test_an_order_waits_for_hours_and_spends_no_attempt() -> None:
    at_s, decision = decisions(10**9)[-1]
    assert (decision.action, decision.attempts) == (Action.DEAD_LETTER, 0)
    assert at_s >= 12 * 3_600


def test_an_order_of_a_long_outage_is_not_tried_often() -> None:
    assert len(decisions(3_600)) <= 20
