"""The arithmetic of costs and ceilings."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bench import capacity
from bench.capacity import (
    GOAL,
    INPUTS,
    MEASURED_AT,
    PRICES,
    balanced,
    ceilings,
    count_page_reads,
    lambda_rate,
    month_of_screens,
    operations,
    price_of,
    sizes,
    slow_down,
    totals_of,
)
from bench.page_reads import MAX_READS

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


def test_screens_cost_by_their_polls_and_less_behind_a_load_balancer() -> None:
    active, resting = (month_of_screens(VALUES, n, "http-api") for n in (1, 5))
    assert active == pytest.approx(5 * resting)
    polls = 1_000 * 730 * 3600 / 5
    assert active > polls / 1e6 * (PRICES["http_api"].usd + PRICES["lambda_request"].usd) * 1e6
    assert month_of_screens(VALUES, 1, "load-balancer") < active / 2
    slower = month_of_screens(VALUES | {"poll_s": 10}, 1, "http-api")
    assert slower == pytest.approx(active / 2)


DEARER = (
    "with a binlog (Binlog=followed)",
    "a table of nine times the memory",
)
BESIDE = (
    "as it is",
    "the same, Aurora I/O-Optimized",
    "connections that are used for 100 requests",
)


@pytest.mark.parametrize("name", [name for name in capacity.CHANGES if name not in BESIDE])
def test_a_change_makes_likes_cheaper_and_a_binlog_or_a_large_table_dearer(name: str) -> None:
    change = capacity.CHANGES[name]

    def cost(values: dict[str, float]) -> float:
        return sum(price_of(operations(values)["like"]).values())

    assert (cost(VALUES | change) > cost(VALUES)) is (name in DEARER)
    assert cost(VALUES | change) != cost(VALUES)
    assert set(change) <= set(VALUES)


@pytest.mark.parametrize("ratio", [0.1, 1, MEASURED_AT])
def test_page_reads_and_rate_of_a_table_are_as_measured(ratio: float) -> None:
    inputs = {**VALUES, "table_per_memory": ratio}
    is_large = ratio == MEASURED_AT
    reads = VALUES["page_reads" if is_large else "page_reads_in_memory"]
    assert count_page_reads(inputs) == pytest.approx(reads)
    assert slow_down(inputs) == pytest.approx(VALUES["rate_left"] if is_large else 1)
    assert VALUES["page_reads"] <= MAX_READS, "the goal of `python -m bench page-reads`"


def test_a_larger_table_costs_more_a_like_and_a_month() -> None:
    rows = list(sizes(VALUES))
    for smaller, larger in pairwise(rows):
        assert larger.reads > smaller.reads
        assert larger.rate < smaller.rate
        assert larger.like_usd > smaller.like_usd
        assert larger.month_usd > smaller.month_usd
    gb = VALUES["reaction_bytes"] / 1000
    assert rows[0].month_usd / rows[0].likes == pytest.approx(0.1 * gb), "a million likes, a month"


def test_a_quota_of_executions_allows_ten_requests_a_second_each() -> None:
    assert lambda_rate(1_000, 0.009) == 10_000
    assert lambda_rate(10, 0.009) == 100
    assert lambda_rate(1_000, 0.5) == 2_000, "each is busy for half a second"
    rates = {item.part: item.likes_per_s for item in ceilings(VALUES)}
    assert rates["Lambda, quota 1,000"] == 10_000
    assert min(rates.values()) == rates["Lambda, quota 10 of a new account"]


def test_behind_a_load_balancer_one_request_in_ten_is_logged() -> None:
    like, balanced_like = (
        operations(VALUES, ingress=ingress)["like"]["log_gb"] for ingress in capacity.INGRESS
    )
    stored = VALUES["event_log_bytes"] / 1e9
    assert balanced_like - stored == pytest.approx((like - stored) / 10)


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
    assert with_waf < GOAL, "docs/scaling.md says so"


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
    [writer] = [item for item in ceilings(VALUES | {"mysql_cpu_us": 1e6}) if "writer" in item.part]
    assert writer.likes_per_s == 2, "half of the four vCPUs of 16 ACU"
    result = ceilings(VALUES)
    assert result == sorted(result, key=lambda ceiling: ceiling.likes_per_s)


def test_the_tables_are_printed_with_changed_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert capacity.main(["--set", "mysql_cpu_us=321"]) == 0
    assert "6,231" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        capacity.main(["--set", "nothing=1"])
