"""``python -m bench.capacity``: dollars per million, per idle month, and ceilings.

Everything that is multiplied stands in the tables below: list prices, inputs and the resources of
one operation. ``--set like_cpu_ms=0.9`` changes an input. Nothing is measured here; each input
names the command that prints it, or says that it is assumed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from local.output import wide_console

REGION, PRICES_OF = "us-east-1", "list prices of 2025-06; compare before you rely on them"
MILLION, MONTH_H = 1_000_000, 730


class Price(NamedTuple):
    """A list price in USD."""

    usd: float
    per: str


PRICES = {
    "http_api": Price(1.00 / MILLION, "request of the HTTP API"),
    "lambda_request": Price(0.20 / MILLION, "invocation"),
    "lambda_gb_s": Price(0.0000133334, "GB second, arm64 (x86: 0.0000166667)"),
    "sqs": Price(0.40 / MILLION, "request of SQS"),
    "log_gb": Price(0.50, "GB ingested by CloudWatch Logs"),
    "egress_gb": Price(0.09, "GB sent to the internet"),
    "aurora_acu_h": Price(0.12, "hour of an Aurora capacity unit"),
    "aurora_io": Price(0.20 / MILLION, "I/O of Aurora"),
    "aurora_gb_month": Price(0.10, "GB of Aurora, a month"),
    "valkey_node_h": Price(0.1752, "hour of a cache.r7g.large with Valkey"),
    "valkey_small_h": Price(0.0256, "hour of a cache.t4g.small with Valkey"),
    "endpoint_h": Price(0.01, "hour of an interface endpoint in a zone"),
    "secret_month": Price(0.40, "secret, a month"),
    "alarm_month": Price(0.10, "alarm, a month"),
    "metric_month": Price(0.30, "custom metric, a month"),
    "cloudfront": Price(1.00 / MILLION, "HTTPS request of CloudFront"),
    "waf": Price(0.60 / MILLION, "request that WAF inspects"),
}


class Input(NamedTuple):
    """A number that the arithmetic uses, and where it comes from."""

    value: float
    source: str


INPUTS = {
    "like_cpu_ms": Input(1.59, "`python -m bench handler --quick`: like, CPU, total"),
    "feed_cpu_ms": Input(12, "assumed: `python -m bench feed` has round trips, not CPU of a page"),
    "order_cpu_ms": Input(1.9, "assumed: a like and one more round trip"),
    "like_round_trips": Input(2, "session and limit, then what `python -m bench round-trips` has"),
    "feed_round_trips": Input(8, "the same"),
    "order_round_trips": Input(4, "the same"),
    "redis_ms": Input(0.6, "assumed: a round trip to Redis in a zone"),
    "sqs_ms": Input(6, "assumed: SendMessage by a kept connection"),
    "events_per_s": Input(
        1_071, "`python -m bench consumer --quick`, two cores under a load of 13"
    ),
    "gate_per_s": Input(20_000, "assumed: changes a second of one node; `python -m bench gate`"),
    "memory_gb": Input(0.5, "template.yaml"),
    "vcpu_per_gb": Input(1 / 1.769, "Lambda: one vCPU at 1,769 MB"),
    "batch": Input(
        100, "assumed: messages a consumer gets at this rate; template.yaml allows 1,000"
    ),
    "log_bytes": Input(700, "assumed: one line of Plaza and Lambda's report of an invocation"),
    "response_bytes": Input(700, "assumed: a like, with headers"),
    "feed_bytes": Input(12_000, "assumed: a page of 20 posts"),
    "ios_per_event": Input(1.5, "assumed: I/Os of Aurora for a row, its log row and its counters"),
    "acus_at_events_per_s": Input(
        8, "assumed: two vCPUs of Aurora; the measured cores were shared, so too many"
    ),
    "redis_use": Input(0.5, "assumed: share of a node's capacity that is used"),
}

Inputs = Mapping[str, float]


def lambda_gb_s(cpu_ms: float, wait_ms: float, inputs: Inputs) -> float:
    """Return the GB seconds of an invocation: CPU at the function's share of a processor, and
    waits."""
    wall_ms = cpu_ms / (inputs["memory_gb"] * inputs["vcpu_per_gb"]) + wait_ms
    return wall_ms / 1000 * inputs["memory_gb"]


def store_event(inputs: Inputs) -> dict[str, float]:
    """Return the resources that storing one event of a queue takes."""
    event_s = 1 / inputs["events_per_s"]
    return {
        # Received ten at a time, and deleted ten at a time.
        "sqs": 0.2,
        "lambda_request": 1 / inputs["batch"],
        "lambda_gb_s": event_s * inputs["memory_gb"],
        "aurora_io": inputs["ios_per_event"],
        "aurora_acu_h": event_s * inputs["acus_at_events_per_s"] / 3600,
        "log_gb": inputs["log_bytes"] / inputs["batch"] / 1e9,
    }


def request(
    cpu_ms: float, round_trips: float, sends: float, sent_bytes: float, inputs: Inputs
) -> dict[str, float]:
    """Return the resources of one request of the API: one invocation."""
    wait_ms = round_trips * inputs["redis_ms"] + sends * inputs["sqs_ms"]
    return {
        "http_api": 1,
        "lambda_request": 1,
        "lambda_gb_s": lambda_gb_s(cpu_ms, wait_ms, inputs),
        "sqs": sends,
        "log_gb": inputs["log_bytes"] / 1e9,
        "egress_gb": sent_bytes / 1e9,
        "valkey_node_h": round_trips / (inputs["gate_per_s"] * inputs["redis_use"]) / 3600,
    }


def add(*parts: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of resources."""
    return {key: sum(part.get(key, 0) for part in parts) for key in PRICES}


def operations(inputs: Inputs) -> dict[str, dict[str, float]]:
    """Return operation -> the resources that one takes."""
    size = inputs["response_bytes"]
    like = request(inputs["like_cpu_ms"], inputs["like_round_trips"], 1, size, inputs)
    feed = request(
        inputs["feed_cpu_ms"], inputs["feed_round_trips"], 0, inputs["feed_bytes"], inputs
    )
    order = request(inputs["order_cpu_ms"], inputs["order_round_trips"], 1, size, inputs)
    return {
        "like": add(like, store_event(inputs)),
        "feed page": add(feed),
        "order": add(order, store_event(inputs)),
    }


def idle_month(functions: int, alarms: int, schedules_per_minute: int) -> dict[str, float]:
    """Return the USD of a month without a request, by part."""
    runs = schedules_per_minute * 60 * MONTH_H
    return {
        "Valkey, two cache.t4g.small": 2 * MONTH_H * PRICES["valkey_small_h"].usd,
        "Aurora, two of 0.5 ACU": 2 * 0.5 * MONTH_H * PRICES["aurora_acu_h"].usd,
        "interface endpoints, 3 in 2 zones": 6 * MONTH_H * PRICES["endpoint_h"].usd,
        f"alarms ({alarms})": alarms * PRICES["alarm_month"].usd,
        "secrets (6)": 6 * PRICES["secret_month"].usd,
        "custom metrics (100)": 100 * PRICES["metric_month"].usd,
        f"schedules ({schedules_per_minute} a minute)": runs
        * (PRICES["lambda_request"].usd + 0.05 * 0.5 * PRICES["lambda_gb_s"].usd),
        f"polling of queues ({functions} consumers)": functions
        * 5 * 3 * 60 * MONTH_H * PRICES["sqs"].usd,
    }  # fmt: skip


class Ceiling(NamedTuple):
    """What ends at which rate of likes, and what to turn."""

    part: str
    likes_per_s: float
    ten_times: str
    hundred_times: str


def ceilings(inputs: Inputs) -> list[Ceiling]:
    """Return the ceilings of a new account with the smallest stores, the lowest first."""
    wait_ms = inputs["redis_ms"] + inputs["sqs_ms"]
    like_s = lambda_gb_s(inputs["like_cpu_ms"], wait_ms, inputs) / inputs["memory_gb"]
    gate, writer = inputs["gate_per_s"], inputs["events_per_s"]
    found = [
        Ceiling("writer of two vCPUs", writer, "16 to 32 vCPUs", "Vitess or TiDB"),
        Ceiling("HTTP API, quota 10,000/s", 10_000, "quota", "several APIs behind CloudFront"),
        Ceiling("one hot target: one slot", gate, "none: refuse or sample", "the same"),
        Ceiling("gate, one node", gate, "ten shards", "forty nodes, then more hash tags"),
        Ceiling("Lambda, quota 1,000", 1_000 / like_s, "quota 10,000", "quota, several accounts"),
    ]
    return sorted(found, key=lambda ceiling: ceiling.likes_per_s)


CHANGES: dict[str, dict[str, float]] = {
    "as it is": {},
    "one line in ten requests, platform lines off": {"log_bytes": 70},
    "Aurora I/O-Optimized (an ACU costs 1/3 more)": {
        "ios_per_event": 0, "acus_at_events_per_s": 10.7,
    },
    "a writer that stores 5,000/s with 8 ACUs": {"events_per_s": 5_000},
    "all three": {
        "log_bytes": 70, "ios_per_event": 0, "events_per_s": 5_000, "acus_at_events_per_s": 10.7,
    },
}  # fmt: skip
"""What to turn -> the inputs that it changes."""


def price_of(resources: Mapping[str, float]) -> dict[str, float]:
    """Return the USD of a million, by resource, the largest first."""
    usd = {key: amount * PRICES[key].usd * MILLION for key, amount in resources.items()}
    return dict(sorted(usd.items(), key=lambda item: -item[1]))


def main(argv: Sequence[str]) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    parser.add_argument("--set", action="append", default=[], metavar="INPUT=VALUE")
    options = parser.parse_args(argv)
    inputs = {name: given.value for name, given in INPUTS.items()}
    for change in options.set:
        name, _, value = change.partition("=")
        if name not in inputs:
            parser.error(f"unknown input {name}; choose from {', '.join(inputs)}")
        inputs[name] = float(value)
    console = wide_console()
    for table in tables(inputs):
        console.print(table)
    return 0


def tables(inputs: Inputs) -> Iterable[Table]:
    """Yield the tables: costs of a million and of an idle month, what to turn, ceilings, inputs."""
    cost = new_table(f"USD per million, {REGION}, {PRICES_OF}", "resource", *operations(inputs))
    priced = {name: price_of(resources) for name, resources in operations(inputs).items()}
    for key, price in PRICES.items():
        if any(usd[key] >= 0.0005 for usd in priced.values()):
            cost.add_row(price.per, *(f"{usd[key]:.3f}" for usd in priced.values()))
    totals = [sum(usd.values()) for usd in priced.values()]
    cost.add_row("all in, behind the HTTP API", *(f"{total:.2f}" for total in totals))
    edge = (PRICES["cloudfront"].usd + PRICES["waf"].usd) * MILLION
    cost.add_row("with CloudFront and WAF", *(f"{total + edge:.2f}" for total in totals))
    goal = "reached" if totals[0] <= 1.80 else "missed"
    cost.caption = f"goal: at most 1.80 for a like: {goal}"
    yield cost

    month = new_table("An idle month, USD", "part", "USD")
    parts = idle_month(functions=15, alarms=70, schedules_per_minute=7)
    for part, usd in parts.items():
        month.add_row(part, f"{usd:.2f}")
    month.add_row("sum", f"{sum(parts.values()):.2f}")
    yield month

    turned = new_table("A million likes, USD, and what to turn", "change", "USD")
    for name, change in CHANGES.items():
        like = price_of(operations({**inputs, **change})["like"])
        turned.add_row(name, f"{sum(like.values()):.2f}")
    yield turned

    ends = new_table("Ceilings, likes a second", "part", "today", "for 10 x", "for 100 x")
    for part, likes_per_s, ten_times, hundred_times in ceilings(inputs):
        ends.add_row(part, f"{likes_per_s:,.0f}", ten_times, hundred_times)
    yield ends

    sources = new_table("Inputs", "input", "value", "from")
    for name, given in INPUTS.items():
        sources.add_row(name, f"{inputs[name]:g}", given.source)
    yield sources


def new_table(title: str, *columns: str) -> Table:
    """Return an empty table."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
