"""``python -m bench.capacity``: dollars per million, per idle month, and ceilings.

Everything that is multiplied stands in the tables below: list prices, inputs and the resources of
one operation. ``--set like_cpu_ms=0.9`` changes an input. Nothing is measured here; each input
names the command that prints it, or says that it is assumed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.table import Table

from cli.output import wide_console
from cli.paths import ALARMS, ROOT
from tools.balancer import FREE_RULES, count_evaluated, make_rules, read_routes

REGION = "us-east-1"
PRICES_OF = "list prices of 2025-06 from memory; compare them with AWS before you rely on them"
GOAL = 1.80
INGRESS = ("http-api", "load-balancer")
MILLION, MONTH_H = 1_000_000, 730
REQUESTS_PER_EXECUTION = 10  # a second, of Lambda's quota of concurrent executions

MAX_ACU, GB_PER_ACU = 16, 2  # deploy/data.yaml: MysqlMaxCapacity
BUFFER_SHARE = 0.75  # of the memory, for pages

# Measured on InnoDB with the table reaction alone and uniform targets, `table : memory` of 9 : 1.
MEASURED_AT = 9  # times the memory: the second size that page reads are measured at


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
    "cheap_log_gb": Price(0.25, "the same in the class Infrequent Access"),
    "egress_gb": Price(0.09, "GB sent to the internet"),
    "zone_gb": Price(0.02, "GB sent to another zone, out and in"),
    "endpoint_gb": Price(0.01, "GB through an interface endpoint"),
    "aurora_acu_h": Price(0.12, "hour of an Aurora capacity unit"),
    "aurora_io": Price(0.20 / MILLION, "I/O of Aurora"),
    "aurora_gb_month": Price(0.10, "GB of Aurora, a month"),
    "valkey_node_h": Price(0.1752, "hour of a cache.r7g.large with Valkey"),
    "valkey_small_h": Price(0.052, "hour of a cache.t4g.medium with Valkey"),
    "endpoint_h": Price(0.01, "hour of an interface endpoint in a zone"),
    "secret_month": Price(0.40, "secret, a month"),
    "alarm_month": Price(0.10, "alarm, a month"),
    "metric_month": Price(0.30, "custom metric, a month"),
    "alb_h": Price(0.0225, "hour of an Application Load Balancer"),
    "lcu_h": Price(0.008, "hour of its capacity unit"),
    "address_h": Price(0.005, "hour of a public IPv4 address"),
    "cloudfront": Price(1.00 / MILLION, "HTTPS request of CloudFront"),
    "waf": Price(0.60 / MILLION, "request that WAF inspects"),
}


class Input(NamedTuple):
    """A number that the arithmetic uses, and where it comes from."""

    value: float
    source: str


INPUTS = {
    "like_cpu_ms": Input(0.30, "`python -m bench handler`: like, CPU, all of it"),
    "feed_cpu_ms": Input(1.44, "`python -m bench reads`: feed page of 20, without cached texts"),
    "order_cpu_ms": Input(0.34, "`python -m bench field`: a like, and likes by orders a second"),
    "like_round_trips": Input(2, "session and limit, then what `python -m bench round-trips` has"),
    "feed_round_trips": Input(8, "the same"),
    "order_round_trips": Input(4, "the same"),
    "redis_ms": Input(0.6, "assumed: a round trip to Redis in a zone"),
    "sqs_ms": Input(6, "assumed: SendMessage by a kept connection"),
    "events_per_s": Input(10_987, "`python -m bench consumer`: events stored, many targets"),
    "hot_events_per_s": Input(22_647, "the same: events stored, likes of one post, on a core"),
    "mysql_cpu_us": Input(46, "the same: CPU of MySQL for an event, likes of one post"),
    "redo_bytes": Input(768, "the same: redo log of an event, in batches of 100"),
    "binlog_bytes": Input(493, "the same: binlog of an event"),
    "binlog": Input(0, "deploy/data.yaml: 1 with Binlog=followed"),
    "table_per_memory": Input(1, "the table reaction by the memory that MySQL has for pages"),
    "reaction_bytes": Input(183, "`python -m bench page-reads`: a row with by_actor, of InnoDB"),
    "page_reads_in_memory": Input(0.02, "the same: page reads of a like, a table in memory"),
    "page_reads": Input(1.90, "the same: of a table of nine times the memory"),
    "rate_left": Input(0.32, "the same: share of the rows a second that is left"),
    "mysql_use": Input(0.5, "assumed: share of the capacity of Aurora that is used"),
    "vcpu_per_acu": Input(0.25, "assumed: 8 ACUs have the memory of an instance with two vCPUs"),
    "mysql_instances": Input(
        2, "deploy/data.yaml: the reader that takes over scales with the writer"
    ),
    "io_optimized": Input(0, "1: no price for an I/O, and 30 % more for an ACU"),
    "redis_us": Input(
        30,
        "CPU of a node for a round trip: 21 of a gate (`bench gate`), 29 of a commit (`consumer`)",
    ),
    "redis_nodes": Input(2, "deploy/data.yaml: a master and its replica"),
    "redis_use": Input(0.5, "assumed: share of a node's capacity that is used"),
    "memory_gb": Input(0.5, "template.yaml"),
    "consumer_gb": Input(1.769, "template.yaml: SaveReactions"),
    "vcpu_per_gb": Input(1 / 1.769, "Lambda: one vCPU at 1,769 MB"),
    "batch": Input(
        100, "assumed: messages a consumer gets at this rate; template.yaml allows 4,000"
    ),
    "log_bytes": Input(266, "the line request_served of a like, and 26 bytes of CloudWatch"),
    "log_share": Input(1, "template.yaml: requests that are logged with the HTTP API"),
    "balanced_log_share": Input(0.1, "template.yaml: the same with a load balancer"),
    "access_log_bytes": Input(226, "the line of the access log (template.yaml), the same"),
    "event_log_bytes": Input(35, "the lines of a consumer, with the request id of each event"),
    "sent_bytes": Input(3_000, "assumed: SendMessage and its answer, with headers and TLS"),
    "store_bytes": Input(2_500, "assumed: to Redis and MySQL, half of it in another zone"),
    "response_bytes": Input(700, "assumed: a like, with headers"),
    "request_bytes": Input(700, "assumed: a like's headers; a load balancer counts both ways"),
    "requests_of_connection": Input(1, "assumed, the worst: each request opens a connection"),
    "poll_cpu_ms": Input(0.41, "`python -m bench reads`: poll of ten posts, without cached texts"),
    "poll_round_trips": Input(2, "`GET /totals`: its limit and the switches, then the totals"),
    "poll_gb": Input(0.25, "functions.yaml: TotalsApi"),
    "poll_log_share": Input(0.01, "functions/api/totals: polls that are logged"),
    "poll_bytes": Input(900, "assumed: ten posts with tokens, gzipped, with headers"),
    "poll_s": Input(5, "the switch live_poll_s"),
    "feed_bytes": Input(3_700, "`python -m bench reads`: feed page of 20, gzipped"),
}

Inputs = Mapping[str, float]


def lambda_gb_s(cpu_ms: float, wait_ms: float, inputs: Inputs) -> float:
    """Return the GB seconds of an invocation: CPU at the function's share of a processor, and
    waits."""
    wall_ms = cpu_ms / (inputs["memory_gb"] * inputs["vcpu_per_gb"]) + wait_ms
    return wall_ms / 1000 * inputs["memory_gb"]


def count_page_reads(inputs: Inputs) -> float:
    """Return the pages that storing an event reads, of which most of a small table are in memory.

    Measured with rows and targets chosen at random, in memory and with a table of nine times the
    memory. Between them it grows with the share of the table that is not in memory.
    """
    missing = max(0, 1 - 1 / inputs["table_per_memory"]) / (1 - 1 / MEASURED_AT)
    in_memory = inputs["page_reads_in_memory"]
    return in_memory + (inputs["page_reads"] - in_memory) * missing


def slow_down(inputs: Inputs) -> float:
    """Return the share of the rate of events that is left; 1 in memory. The time of an event grows
    with its page reads."""
    in_memory = inputs["page_reads_in_memory"]
    more = (count_page_reads(inputs) - in_memory) / (inputs["page_reads"] - in_memory)
    return 1 / (1 + (1 / inputs["rate_left"] - 1) * more)


def store_event(inputs: Inputs) -> dict[str, float]:
    """Return the resources that storing one event of a queue takes."""
    vcpu_s = inputs["mysql_cpu_us"] / 1e6 / inputs["mysql_use"]
    acu_s = vcpu_s / inputs["vcpu_per_acu"] * (1 + 0.3 * inputs["io_optimized"])
    # Aurora writes its logs in units of 4 KB.
    log_bytes = inputs["redo_bytes"] + inputs["binlog"] * inputs["binlog_bytes"]
    ios = log_bytes / 4096 + count_page_reads(inputs)
    return {
        # Received ten at a time, and deleted ten at a time.
        "sqs": 0.2,
        "lambda_request": 1 / inputs["batch"],
        "lambda_gb_s": inputs["memory_gb"] / inputs["events_per_s"],
        "aurora_io": ios * (1 - inputs["io_optimized"]),
        "aurora_acu_h": acu_s * inputs["mysql_instances"] / 3600,
        "log_gb": inputs["event_log_bytes"] / 1e9,
    }


def request(
    cpu_ms: float, round_trips: float, sends: float, answered_bytes: float, inputs: Inputs
) -> dict[str, float]:
    """Return the resources of one request of the API: one invocation."""
    wait_ms = round_trips * inputs["redis_ms"] + sends * inputs["sqs_ms"]
    redis_s = round_trips * inputs["redis_us"] / 1e6 / inputs["redis_use"]
    return {
        "http_api": 1,
        "lambda_request": 1,
        "lambda_gb_s": lambda_gb_s(cpu_ms, wait_ms, inputs),
        "sqs": sends,
        "log_gb": inputs["log_share"] * inputs["log_bytes"] / 1e9,
        "cheap_log_gb": inputs["access_log_bytes"] / 1e9,
        "egress_gb": answered_bytes / 1e9,
        "zone_gb": inputs["store_bytes"] / 2 / 1e9,
        "endpoint_gb": sends * inputs["sent_bytes"] / 1e9,
        "valkey_node_h": redis_s * inputs["redis_nodes"] / 3600,
    }


def balanced(resources: Mapping[str, float], evaluated: int, inputs: Inputs) -> dict[str, float]:
    """Return the resources of a request behind a load balancer instead of the HTTP API, without
    its hours. A capacity unit is the largest of four dimensions; ``evaluated``: rules."""
    connections = 1 / inputs["requests_of_connection"]
    moved_gb = inputs["request_bytes"] / 1e9 + resources["egress_gb"]
    lcu_h = max(
        connections / 25 / 3600,  # opened a second
        connections / 3000 / 60,  # active for a minute
        moved_gb / 0.4,  # an hour, to and from functions
        max(0, evaluated - FREE_RULES) / 1000 / 3600,  # a second
    )
    log_gb = inputs["balanced_log_share"] * inputs["log_bytes"] / 1e9
    return {**resources, "http_api": 0, "cheap_log_gb": 0, "log_gb": log_gb, "lcu_h": lcu_h}


def add(*parts: Mapping[str, float]) -> dict[str, float]:
    """Return the sum of resources."""
    return {key: sum(part.get(key, 0) for part in parts) for key in PRICES}


PATHS = {"like": "/posts/7/likes/me", "feed page": "/feed", "order": "/vouchers/7/orders"}
"""Operation -> its path, which decides how many rules of a load balancer it is compared with."""


def operations(inputs: Inputs, *, ingress: str = "http-api") -> dict[str, dict[str, float]]:
    """Return operation -> the resources that one takes. ``ingress``: as in template.yaml."""
    size = inputs["response_bytes"]
    like = request(inputs["like_cpu_ms"], inputs["like_round_trips"], 1, size, inputs)
    feed = request(
        inputs["feed_cpu_ms"], inputs["feed_round_trips"], 0, inputs["feed_bytes"], inputs
    )
    order = request(inputs["order_cpu_ms"], inputs["order_round_trips"], 1, size, inputs)
    requests = {"like": like, "feed page": feed, "order": order}
    if ingress == "load-balancer":
        rules = make_rules(read_routes())
        for name, path in PATHS.items():
            requests[name] = balanced(requests[name], count_evaluated(rules, path), inputs)
    stored = store_event(inputs)
    return {name: add(r, {} if name == "feed page" else stored) for name, r in requests.items()}


POLLS = {
    "that change": 1,
    "at rest": 5,
    "untouched for five minutes": 12,
}
"""Screens -> how many intervals pass between two polls."""


def month_of_screens(inputs: Inputs, intervals: float, ingress: str) -> float:
    """Return the USD of 1,000 screens that poll all month, without what an edge answers."""
    inputs = {**inputs, "memory_gb": inputs["poll_gb"], "log_share": inputs["poll_log_share"]}
    poll = request(
        inputs["poll_cpu_ms"], inputs["poll_round_trips"], 0, inputs["poll_bytes"], inputs
    )
    if ingress == "load-balancer":
        inputs |= {"balanced_log_share": inputs["poll_log_share"]}
        poll = balanced(poll, count_evaluated(make_rules(read_routes()), "/totals"), inputs)
    polls = 1_000 * MONTH_H * 3600 / (intervals * inputs["poll_s"])
    return sum(price_of(poll).values()) * polls / MILLION


def month_of_balancer() -> float:
    """Return the USD of a month of a load balancer in two zones, without a request."""
    return MONTH_H * (PRICES["alb_h"].usd + 2 * PRICES["address_h"].usd)


def idle_month() -> dict[str, float]:
    """Return the USD of a month without a request, by part, with the templates' defaults."""
    template, data, network = (
        (ROOT / name).read_text()
        for name in ("template.yaml", "deploy/data.yaml", "deploy/network.yaml")
    )
    alarms = len(json.loads(ALARMS.read_text())) + data.count("AWS::CloudWatch::Alarm")
    endpoints = 2 * network.count("VpcEndpointType: Interface")
    consumers = template.count("AWS::Lambda::EventSourceMapping")
    schedules_per_minute = template.count("rate(1 minute)") + template.count("rate(5 minutes)") / 5
    runs = schedules_per_minute * 60 * MONTH_H
    run_usd = PRICES["lambda_request"].usd + 0.05 * 0.5 * PRICES["lambda_gb_s"].usd
    receives_per_h = 5 * 3 * 60  # five pollers, each of which waits for 20 s
    return {
        "Valkey, two cache.t4g.medium": 2 * MONTH_H * PRICES["valkey_small_h"].usd,
        "Aurora, two of 0.5 ACU": 2 * 0.5 * MONTH_H * PRICES["aurora_acu_h"].usd,
        f"interface endpoints ({endpoints})": endpoints * MONTH_H * PRICES["endpoint_h"].usd,
        f"alarms ({alarms})": alarms * PRICES["alarm_month"].usd,
        "secrets (6)": 6 * PRICES["secret_month"].usd,
        "custom metrics (100, assumed)": 100 * PRICES["metric_month"].usd,
        f"schedules ({schedules_per_minute:g} a minute)": runs * run_usd,
        f"polling of queues ({consumers})": consumers
        * receives_per_h * MONTH_H * PRICES["sqs"].usd,
    }  # fmt: skip


class Size(NamedTuple):
    """Likes that are stored, in millions, and what one more takes. ``rate``: share of the events a
    second of a table in memory. ``like_usd``: of a million."""

    ratio: float
    likes: float
    reads: float
    rate: float
    like_usd: float
    month_usd: float


class Ceiling(NamedTuple):
    """What ends at which rate of likes, and what to turn."""

    part: str
    likes_per_s: float
    ten_times: str
    hundred_times: str


def ceilings(inputs: Inputs) -> list[Ceiling]:
    """Return the ceilings of a new account with the default stores, the lowest first."""
    wait_ms = inputs["redis_ms"] + inputs["sqs_ms"]
    like_s = lambda_gb_s(inputs["like_cpu_ms"], wait_ms, inputs) / inputs["memory_gb"]
    node = 1e6 / (inputs["like_round_trips"] * inputs["redis_us"])
    vcpus = inputs["mysql_use"] * MAX_ACU * inputs["vcpu_per_acu"]
    writer = vcpus * 1e6 / inputs["mysql_cpu_us"] * slow_down(inputs)
    consumer = inputs["hot_events_per_s"] * inputs["consumer_gb"] * inputs["vcpu_per_gb"]
    limits = [
        Ceiling("Lambda, quota 10 of a new account", lambda_rate(10, like_s), "quota", "quota"),
        Ceiling("stage throttle, RequestsPerSecond", 2_000, "parameter", "a load balancer"),
        Ceiling(
            "default node, cache.t4g.medium: a fifth of two vCPUs",
            0.4 * node,
            "cache.m7g.large, then shards",
            "shards",
        ),
        Ceiling(
            f"writer of {MAX_ACU} ACU, half used", writer, "128 ACU", "several clusters, by target"
        ),
        Ceiling("HTTP API, quota 10,000/s", 10_000, "quota", "several APIs behind CloudFront"),
        Ceiling(
            "Lambda, quota 1,000", lambda_rate(1_000, like_s), "quota", "quota, several accounts"
        ),
        Ceiling("one hot target: its one consumer", consumer, "sub-targets", "the same"),
        Ceiling("gate, one core of a node", node, "ten shards", "forty nodes, more hash tags"),
    ]
    return sorted(limits, key=lambda ceiling: ceiling.likes_per_s)


def lambda_rate(quota: int, request_s: float) -> float:
    """Return the requests a second that a quota of concurrent executions allows."""
    return min(quota * REQUESTS_PER_EXECUTION, quota / request_s)


def sizes(inputs: Inputs) -> Iterator[Size]:
    """Yield what storing a like takes when the table is 1 to 32 times the memory for its pages."""
    for ratio in (1, 2, 4, 9, 32):
        changed = {**inputs, "table_per_memory": ratio}
        likes = ratio * MAX_ACU * GB_PER_ACU * BUFFER_SHARE * 1e9 / inputs["reaction_bytes"]
        stored_gb = likes * inputs["reaction_bytes"] / 1e9
        yield Size(
            ratio,
            likes / MILLION,
            count_page_reads(changed),
            slow_down(changed),
            totals_of(changed, "http-api")["like"],
            stored_gb * PRICES["aurora_gb_month"].usd,
        )


CHANGES: dict[str, dict[str, float]] = {
    "as it is": {},
    "one line of a function in ten requests": {"log_share": 0.1},
    "connections that are used for 100 requests": {"requests_of_connection": 100},
    "Aurora I/O-Optimized": {"io_optimized": 1},
    "no reader of Aurora": {"mysql_instances": 1},
    "all of them": {
        "log_share": 0.1,
        "requests_of_connection": 100,
        "io_optimized": 1,
        "mysql_instances": 1,
    },
    "with a binlog (Binlog=followed)": {"binlog": 1},
    "a table of nine times the memory": {"table_per_memory": 9},
    "the same, Aurora I/O-Optimized": {"table_per_memory": 9, "io_optimized": 1},
}
"""What to turn -> the inputs that it changes."""


def price_of(resources: Mapping[str, float]) -> dict[str, float]:
    """Return the USD of a million, by resource, the largest first."""
    usd = {key: amount * PRICES[key].usd * MILLION for key, amount in resources.items()}
    return dict(sorted(usd.items(), key=lambda item: -item[1]))


def totals_of(inputs: Inputs, ingress: str) -> dict[str, float]:
    """Return operation -> the USD of a million, all in."""
    resources = operations(inputs, ingress=ingress)
    return {name: sum(price_of(resource).values()) for name, resource in resources.items()}


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
    http_api, balancer = (totals_of(inputs, ingress) for ingress in INGRESS)
    cost = new_table(f"USD per million, {REGION}, {PRICES_OF}", "resource", *PATHS)
    priced = {name: price_of(resources) for name, resources in operations(inputs).items()}
    for key, price in PRICES.items():
        if any(usd[key] >= 0.0005 for usd in priced.values()):
            cost.add_row(price.per, *(f"{usd[key]:.3f}" for usd in priced.values()))
    cloudfront, waf = PRICES["cloudfront"].usd * MILLION, PRICES["waf"].usd * MILLION
    for text, totals, more in (
        ("all in, behind the HTTP API", http_api, 0),
        ("  with CloudFront and WAF", http_api, cloudfront + waf),
        ("all in, behind the load balancer", balancer, 0),
        ("  with WAF", balancer, waf),
        ("  with CloudFront and WAF", balancer, cloudfront + waf),
    ):
        cost.add_row(text, *(f"{total + more:.2f}" for total in totals.values()))
    judged = [
        f"{'reached' if totals['like'] <= GOAL else 'missed'} with Ingress={ingress}"
        for ingress, totals in zip(INGRESS, (http_api, balancer), strict=True)
    ]
    cost.caption = f"goal: at most {GOAL:.2f} for a like, without WAF: {', '.join(judged)}"
    yield cost

    entry = new_table("A load balancer instead of the HTTP API, USD", "what", "USD")
    saved = http_api["like"] - balancer["like"]
    entry.add_row("saved on a million likes", f"{saved:.2f}")
    entry.add_row("its hours and two addresses, a month", f"{month_of_balancer():.2f}")
    entry.add_row("pays from likes a month, millions", f"{month_of_balancer() / saved:.0f}")
    yield entry

    screens = new_table(
        "1,000 screens that poll all month, without what the edge answers, USD",
        *("screens", "a poll each, s", "HTTP API", "load balancer", "connections used again"),
    )
    for name, intervals in POLLS.items():
        again = {**inputs, "requests_of_connection": 100}
        months = [month_of_screens(inputs, intervals, ingress) for ingress in INGRESS]
        months.append(month_of_screens(again, intervals, "load-balancer"))
        screens.add_row(
            name, f"{intervals * inputs['poll_s']:g}", *(f"{value:,.0f}" for value in months)
        )
    yield screens

    month = new_table("An idle month, USD", "part", "USD")
    parts = idle_month()
    for part, usd in parts.items():
        month.add_row(part, f"{usd:.2f}")
    month.add_row("sum", f"{sum(parts.values()):.2f}")
    yield month

    turned = new_table(
        "A million likes, USD, and what to turn", "change", "HTTP API", "load balancer"
    )
    for name, change in CHANGES.items():
        likes = (totals_of({**inputs, **change}, ingress)["like"] for ingress in INGRESS)
        turned.add_row(name, *(f"{usd:.2f}" for usd in likes))
    yield turned

    grown = new_table(
        "Likes that are stored, and what a million more cost, HTTP API",
        *("table : memory", "likes, millions", "page reads", "rate", "USD", "USD a month to keep"),
    )
    for size in sizes(inputs):
        grown.add_row(
            f"{size.ratio:g}",
            f"{size.likes:,.0f}",
            f"{size.reads:.2f}",
            f"{size.rate:.2f}",
            f"{size.like_usd:.2f}",
            f"{size.month_usd:,.0f}",
        )
    grown.caption = (
        f"a million likes take {inputs['reaction_bytes'] / 1000:.2f} GB,"
        f" {inputs['reaction_bytes'] / 1000 * PRICES['aurora_gb_month'].usd:.3f} USD a month"
    )
    yield grown

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
