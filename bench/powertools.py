"""Parts of Powertools, with the inside of Plaza and with their own: CPU of a call."""

import logging
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.metrics import MetricUnit, single_metric

from bench.api import like_event
from bench.figures import Figure, Peer
from bench.harness import Harness
from bench.meters import cpu_ms
from local.stack.functions import CONTEXT
from plaza.infra.api import BEARER, Id, PlazaResolver
from plaza.infra.callers import Caller
from plaza.infra.observability import CORRELATION_ID, logger, metrics, record

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

CALLS = 2_000
ROUNDS = 9


def measure(harness: Harness) -> list[Figure]:
    """Measure each part beside that of Powertools. The best of nine rounds, in turn."""
    return [*_log_lines(harness), *_routes(harness)]


def _log_lines(harness: Harness) -> list[Figure]:
    discarded = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process
    default = Logger(service="default", stream=discarded)
    logging.getLogger("default").propagate = False
    theirs = Metrics(service="default", namespace="Plaza")
    fields = {"route": "PUT /posts/{post_id}/likes/me", "status": 200, "duration_ms": 1.23}

    def write_default() -> None:
        default.info("request_served", extra=fields)

    def write_metric() -> None:
        with single_metric("requests_limited", MetricUnit.Count, 1, namespace="Plaza") as metric:
            metric.add_dimension("function", "local")
            for name, value in fields.items():
                metric.add_metadata(name, value)

    @logger.inject_lambda_context(correlation_id_path=CORRELATION_ID)
    @metrics.log_metrics(capture_cold_start_metric=True)
    def ours(event: object, context: object) -> None: ...

    @default.inject_lambda_context(correlation_id_path=CORRELATION_ID)
    @theirs.log_metrics(capture_cold_start_metric=True)
    def default_handler(event: object, context: object) -> None: ...

    event = {"requestContext": {"requestId": "JKJaXmPLvHcESHA="}}
    line, default_line, metric, default_metric, context, default_context = _cpu_us(
        harness,
        lambda: record("request_served", **fields),
        write_default,
        lambda: record("request_served", {"requests_limited": 1}, **fields),
        write_metric,
        lambda: ours(event, CONTEXT),
        lambda: default_handler(event, CONTEXT),
    )
    return [
        Figure("a log line", line, "us", Peer("default formatter", default_line)),
        Figure("a log line with a metric", metric, "us", Peer("single_metric", default_metric)),
        Figure("context and metrics of a call", context, "us", Peer("default", default_context)),
    ]


def _routes(harness: Harness) -> list[Figure]:
    """Measure a request that does nothing, each with its log line."""
    ours = PlazaResolver(lambda *_: Caller(7))
    inherited, validating = (
        APIGatewayHttpResolver(enable_validation=validates) for validates in (False, True)
    )

    @ours.put("/posts/<post_id>/likes/me", security=BEARER)
    def like_post(post_id: Id) -> dict[str, Any]:
        return {"liked": True, "likes": 41, "changed": True, "exact": True}

    for app in (inherited, validating):

        @app.put("/posts/<post_id>/likes/me")
        def like_post_too(post_id: str) -> dict[str, Any]:
            return {"liked": True, "likes": 41, "changed": True, "exact": True}

    event, context = like_event(11, 7), cast("LambdaContext", CONTEXT)
    fields = {"route": event["routeKey"], "status": 200, "duration_ms": 1.23, "caller_id": "7"}

    def resolve(app: APIGatewayHttpResolver) -> None:
        app.resolve(event, context)
        record("request_served", **fields)

    route, their_route, validated = _cpu_us(
        harness,
        lambda: ours.resolve(event, context),
        lambda: resolve(inherited),
        lambda: resolve(validating),
    )
    return [
        Figure("a request, with its log line", route, "us", Peer("inherited", their_route)),
        Figure("  the same with validation", route, "us", Peer("validating", validated)),
    ]


def _cpu_us(harness: Harness, *cases: Callable[[], object]) -> list[float]:
    """Return the CPU of a call in us, for each case."""
    calls = harness.scale(CALLS)

    def repeat(case: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                case()

        return run

    runs = [repeat(case) for case in cases]
    rounds = [[cpu_ms(run) for run in runs] for _ in range(ROUNDS)]
    return [min(of_case) * 1000 / calls for of_case in zip(*rounds, strict=True)]
