"""The arithmetic of costs and ceilings."""

from __future__ import annotations

import pytest

from bench import capacity
from bench.capacity import GOAL, INPUTS, PRICES, balanced, ceilings, operations, price_of, totals_of

VALUES = {name: given.value for name, given in INPUTS.items()}


def test_a_like_is_one_request_one_message_and_its_part_of_a_batch() -> None:
    like = operations(VALUES)["like"]
    assert like["http_api"] == 1
    assert like["lambda_request"] == 1 + 1 / VALUES["batch"]
    assert like["sqs"] == pytest.approx(1.2), "sent alone; received and deleted ten at a time"


def test_a_feed_page_sends_no_message_and_writes_nothing() -> None:
    page = operations(VALUES)["feed page"]
    assert (page["sqs"], page["aurora_io"], page["aurora_acu_h"]) == (0, 0, 0)


def test_the_price_of_a_million_is_the_sum_of_its_resources() -> None:
    priced = price_of({"http_api": 1, "sqs": 2})
    assert sum(priced.values()) == pytest.approx(1.00 + 2 * 0.40)
    assert list(priced) == ["http_api", "sqs"] or priced["http_api"] < priced["sqs"]


@pytest.mark.parametrize("change", [item for item in capacity.CHANGES.values() if item])
def test_each_change_makes_likes_cheaper(change: dict[str, float]) -> None:
    def cost(values: dict[str, float]) -> float:
        return sum(price_of(operations(values)["like"]).values())

    assert cost(VALUES | change) < cost(VALUES)
    assert set(change) <= set(VALUES)


def test_a_reader_that_scales_with_the_writer_is_paid_for() -> None:
    two = operations(VALUES | {"mysql_instances": 2})["like"]["aurora_acu_h"]
    assert two == 2 * operations(VALUES | {"mysql_instances": 1})["like"]["aurora_acu_h"]


def test_io_optimized_storage_has_no_price_for_an_io_and_dearer_capacity() -> None:
    before, after = (operations(VALUES | {"io_optimized": on})["like"] for on in (0, 1))
    assert after["aurora_io"] == 0
    assert after["aurora_acu_h"] == pytest.approx(1.3 * before["aurora_acu_h"])


def test_the_goal_is_reached_behind_a_load_balancer_only() -> None:
    """Given the HTTP API and SQS, whatever else is turned, a like costs more."""
    assert totals_of(VALUES | capacity.CHANGES["all of them"], "http-api")["like"] > GOAL
    assert totals_of(VALUES, "load-balancer")["like"] < GOAL
    with_waf = totals_of(VALUES, "load-balancer")["like"] + PRICES["waf"].usd * 1e6
    assert with_waf > GOAL, "docs/scaling.md says so"


@pytest.mark.parametrize(
    ("change", "evaluated", "lcu_h"),
    [
        ({}, 1, 1 / 25 / 3600),
        ({"requests_of_connection": 1e9}, 1, 1_400 / 0.4e9),
        ({"requests_of_connection": 1e9}, 10, 1_400 / 0.4e9),
        ({"requests_of_connection": 1e9}, 100, 90 / 1_000 / 3_600),
    ],
)
def test_a_capacity_unit_is_the_largest_of_its_dimensions(
    change: dict[str, float], evaluated: int, lcu_h: float
) -> None:
    like = operations(VALUES)["like"]
    result = balanced(like, evaluated, VALUES | change)
    assert result["lcu_h"] == pytest.approx(lcu_h)
    assert (result["http_api"], result["cheap_log_gb"]) == (0, 0)


def test_an_idle_month_counts_what_the_templates_have() -> None:
    parts = " ".join(capacity.idle_month())
    assert "interface endpoints (8)" in parts
    assert min(capacity.idle_month().values()) > 0


def test_every_price_is_used() -> None:
    used = set().union(*(op for op in operations(VALUES).values()))
    assert used == set(PRICES)


def test_ceilings_follow_the_inputs() -> None:
    [writer] = [item for item in ceilings(VALUES | {"events_per_s": 9}) if "writer" in item.part]
    assert writer.likes_per_s == 9
    result = ceilings(VALUES)
    assert result == sorted(result, key=lambda ceiling: ceiling.likes_per_s)


def test_the_tables_are_printed_with_changed_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert capacity.main(["--set", "events_per_s=4321"]) == 0
    assert "4,321" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        capacity.main(["--set", "nothing=1"])
