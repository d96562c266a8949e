"""The retries of an order that could not be stored: soon at first, as its buyer waits."""

from __future__ import annotations

import pytest

from plaza.commerce.flash_sales.queues import ORDERS
from plaza.infra.queues.retries import Action, Delivery, RetryDecision, decide
from plaza.infra.runtime.errors import Unavailable


def decisions(outage_s: float) -> list[tuple[float, RetryDecision]]:
    """Return (time, decision) of each try during an outage that begins when the order is sent."""
    now_s, receives, resent, result = 0.0, 1, False, []
    while now_s < outage_s:
        delivery = Delivery(receives, 0, 0, 0, resent)
        decision = decide(delivery, Unavailable("down"), ORDERS.retry, int(now_s * 1000))
        result.append((now_s, decision))
        if decision.action is Action.DEAD_LETTER:
            break
        resent = resent or decision.action is Action.SEND_AGAIN
        receives = receives + 1 if decision.action is Action.HIDE else 1
        now_s += decision.delay_s
    return result


@pytest.mark.parametrize("outage_s", [1, 2, 5, 10, 15, 20])
def test_an_order_is_tried_within_three_seconds_of_the_end_of_a_short_outage(
    outage_s: int,
) -> None:
    at_s, decision = decisions(outage_s)[-1]
    assert at_s + decision.delay_s - outage_s <= 3


def test_an_outage_of_hours_uses_up_no_attempt() -> None:
    at_s, decision = decisions(10**9)[-1]
    assert (decision.action, decision.attempts) == (Action.DEAD_LETTER, 0)
    assert at_s >= 12 * 3_600


def test_tries_become_rare_during_a_long_outage() -> None:
    assert len(decisions(3_600)) <= 20
