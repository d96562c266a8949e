"""Parts of Powertools, with the inside of Plaza and with their own: CPU of a call."""

import logging
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics import MetricUnit, single_metric
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from bench.api import like_event
from bench.figures import Figure, Peer
from bench.first_request import import_path
from bench.harness import Harness
from bench.meters import cpu_ms
from cli.paths import LAYER, ROOT
from local.stack.functions import CONTEXT, make_record
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.infra.http.callers import Caller
from plaza.infra.http.requests import Id
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.routes import BEARER
from plaza.infra.queues.processor import QueueProcessor
from plaza.infra.runtime.observability import (
    begin_request,
    end_request,
    logger,
    metrics,
    record,
)

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

CALLS = 2_000
IMPORTED = {
    "the batch processor": "aws_lambda_powertools.utilities.batch",
    "Idempotency": "aws_lambda_powertools.utilities.idempotency",
    "Parameters": "aws_lambda_powertools.utilities.parameters",
    "FeatureFlags": "aws_lambda_powertools.utilities.feature_flags",
    "boto3": "boto3",
}
ROUNDS = 9


def measure(harness: Harness) -> list[Figure]:
    """Measure each part beside its counterpart in Powertools. The best of nine rounds, in turn."""
    return [*_log_lines(harness), *_routes(harness), *_batches(harness), *_imports(harness)]


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

    @logger.inject_lambda_context
    @metrics.log_metrics(capture_cold_start_metric=True)
    def ours(event: dict[str, Any], context: object) -> None:
        begin_request(event)  # as PlazaResolver
        end_request()

    @default.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP)
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


def _batches(harness: Harness) -> list[Figure]:
    """Measure batches of a consumer that does nothing."""
    event = ReactionEvent(ReactionKey("post", 1, "like", 7), True, 1_743_760_800_000_000)
    figures = []
    for size in (10, 1_000):
        records = [make_record(i, REACTIONS.encode(event), 1_743_760_800_000) for i in range(size)]
        ours = QueueProcessor("reactions", REACTIONS.decode, lambda batch: None)
        theirs = BatchProcessor(EventType.SQS)

        def decode(record: SQSRecord) -> ReactionEvent:
            return REACTIONS.decode(record.body)

        def process(processor: BatchProcessor, handler: Callable[..., Any], batch: Any) -> None:
            process_partial_response(batch, handler, processor)

        own, plain = _cpu_us(
            harness,
            partial(process, ours, ours.record_handler, {"Records": records}),
            partial(process, theirs, decode, {"Records": records}),
            calls=CALLS // size,
        )
        peer = Peer("BatchProcessor, one by one", plain / size)
        figures.append(Figure(f"a message in a batch of {size}", own / size, "us", peer))
    return figures


def _imports(harness: Harness) -> list[Figure]:
    """Measure what parts cost a cold start that has what a like has."""
    function = ROOT / "functions" / "api" / "reactions"
    env = {**os.environ, **import_path(LAYER, function)}
    code = "import app, time; began_s = time.process_time(); import {}; "
    code += "print(time.process_time() - began_s)"

    def run(module: str) -> float:
        command = [sys.executable, "-c", code.format(module)]
        completed = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        return float(completed.stdout) * 1_000

    rounds = [[run(module) for module in IMPORTED.values()] for _ in range(ROUNDS)]
    medians = [statistics.median(of_module) for of_module in zip(*rounds, strict=True)]
    return [
        Figure(f"import of {name}, after the imports of a like", ms, "ms")
        for name, ms in zip(IMPORTED, medians, strict=True)
    ]


def _cpu_us(harness: Harness, *cases: Callable[[], object], calls: int = CALLS) -> list[float]:
    """Return the CPU of a call in us, for each case."""
    calls = max(1, harness.scale(calls))

    def repeat(case: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(calls):
                case()

        return run

    runs = [repeat(case) for case in cases]
    rounds = [[cpu_ms(run) for run in runs] for _ in range(ROUNDS)]
    return [min(of_case) * 1000 / calls for of_case in zip(*rounds, strict=True)]
