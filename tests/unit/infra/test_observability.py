"""Lines of logs and metrics, as Lambda and CloudWatch read them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aws_lambda_powertools.logging import correlation_paths
from aws_lambda_powertools.metrics.provider import cold_start
from aws_lambda_powertools.utilities.typing import LambdaContext

from local.stack.functions import CONTEXT
from plaza.infra.runtime import observability
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import (
    SERVICE,
    error_fields,
    logger,
    metrics,
    record,
)
from tests.support.logs import read_log
from tests.unit.policy.modules import LAYER

Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    return lambda: read_log(capsys)


@pytest.fixture(autouse=True)
def no_keys() -> Iterator[None]:
    keys = dict(logger.registered_formatter.get_current_keys())
    yield
    logger.registered_formatter.clear_state()
    logger.append_keys(**keys)


@pytest.fixture
def warn(caplog: pytest.LogCaptureFixture) -> None:
    """``ApplicationLogLevel: WARN``: what Powertools reads from the environment at a cold start."""
    caplog.set_level(logging.WARNING, logger=SERVICE)


def run_handler(body: Callable[[], object], event: dict[str, Any] | None = None) -> None:
    @logger.inject_lambda_context(correlation_id_path=correlation_paths.API_GATEWAY_HTTP)
    @metrics.log_metrics(capture_cold_start_metric=True)
    def handler(event: dict[str, Any], context: LambdaContext) -> None:
        body()

    handler(event or {}, CONTEXT)


def named(line: dict[str, Any]) -> dict[str, str]:
    """Return metric -> unit of a line."""
    [directive] = line["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("Plaza", [["function"]])
    return {metric["Name"]: metric["Unit"] for metric in directive["Metrics"]}


def test_a_line_has_what_lambda_and_cloudwatch_read(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    event = {"requestContext": {"requestId": "JKJaXmPLvHcESHA="}}
    run_handler(lambda: record("thing_read", thing=7), event)
    [line] = lines()
    assert line.pop("timestamp").endswith("Z")
    assert line.pop("cold_start") in (True, False)
    assert line == {
        "level": "INFO",
        "service": "plaza",
        "function": "local",
        "function_request_id": CONTEXT.aws_request_id,
        "correlation_id": "JKJaXmPLvHcESHA=",
        "xray_trace_id": "1-5759e988-bd862e3fe1be46a994272793",
        "event": "thing_read",
        "thing": 7,
    }


def test_a_text_with_line_breaks_stays_in_its_line(lines: Lines) -> None:
    forged = 'a\n{"event": "forged"}\r\u2028'
    record("thing_read", name=forged)
    assert [(line["event"], line["name"]) for line in lines()] == [("thing_read", forged)]


@pytest.mark.parametrize(
    ("error", "level"), [(Unavailable("Redis is unavailable"), "WARN"), (ValueError("x"), "ERROR")]
)
def test_the_level_of_a_line_is_that_of_its_error(
    lines: Lines, error: Exception, level: str
) -> None:
    record("thing_failed", **error_fields(error))
    assert [line["level"] for line in lines()] == [level]


def test_metrics_are_numbers_in_the_line_of_their_event(lines: Lines) -> None:
    record("things_saved", {"things": 2, "lag_s": 0.25, "part_ms": 7, "size_bytes": 9}, queue="q")
    record("thing_read")
    saved, read = lines()
    assert (saved["things"], saved["lag_s"], saved["queue"]) == (2, 0.25, "q")
    assert named(saved) == {
        "things": "Count", "lag_s": "Seconds", "part_ms": "Milliseconds", "size_bytes": "Bytes",
    }  # fmt: skip
    assert "_aws" not in read


@pytest.mark.usefixtures("warn")
def test_a_level_of_warn_keeps_errors_and_metrics(lines: Lines) -> None:
    record("thing_read")
    record("things_saved", {"things": 2})
    record("thing_failed", **error_fields(ValueError("x")))
    saved, failed = lines()
    assert (saved["event"], saved["level"], named(saved)) == (
        "things_saved", "WARN", {"things": "Count"},
    )  # fmt: skip
    assert (failed["event"], failed["level"]) == ("thing_failed", "ERROR")


@pytest.mark.usefixtures("warn")
def test_metrics_without_a_line_are_written_after_the_handler(lines: Lines) -> None:
    run_handler(lambda: metrics.add_metric("things", "Count", 3))
    [line] = lines()
    assert (line["event"], line["level"], line["things"]) == ("metrics_flushed", "WARN", 3)


def test_the_first_request_of_a_process_is_counted(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cold_start, "is_cold_start", True)
    for _ in range(2):
        run_handler(lambda: record("thing_read"))
    _, counted, _ = lines()
    assert named(counted) == {"ColdStart": "Count", "cold_start_cpu_ms": "Milliseconds"}
    assert counted["ColdStart"] == 1
    assert counted["cold_start_cpu_ms"] > 0


def test_warnings_of_libraries_are_lines_in_a_function() -> None:
    code = (
        "import logging; import plaza.infra.runtime.observability;"
        "logging.getLogger('urllib3').warning('retry %d', 1);"
        "logging.getLogger('urllib3').info('connected')"
    )
    env = os.environ | {"PYTHONPATH": str(LAYER), "AWS_LAMBDA_FUNCTION_NAME": "LikeIt"}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    [line] = [json.loads(line) for line in completed.stdout.splitlines()]
    assert (line["level"], line["logger"], line["message"]) == ("WARN", "urllib3", "retry 1")
    assert line["function"] == "LikeIt"


def test_a_function_collects_no_garbage_before_its_first_response() -> None:
    """Collections while modules are imported find nothing."""
    code = """
import gc
from plaza.infra.runtime.observability import metrics
from plaza.infra.runtime.process import paused_collection
states = [gc.isenabled()]
batch = paused_collection()(lambda: states.append(gc.isenabled()))
handle = metrics.log_metrics(lambda event, context: [batch(), states.append(gc.isenabled())])
handle({}, None)
print(*states, gc.isenabled(), gc.get_freeze_count() > 1000)
"""
    env = os.environ | {"PYTHONPATH": str(LAYER), "AWS_LAMBDA_FUNCTION_NAME": "LikeIt"}
    for environment, expected in (
        (env, "False False False True True"),
        (
            {k: v for k, v in env.items() if k != "AWS_LAMBDA_FUNCTION_NAME"},
            "True False True True False",
        ),
    ):
        completed = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert completed.stdout.splitlines()[-1] == expected


def test_the_level_is_that_of_the_function() -> None:
    code = (
        "from plaza.infra.runtime.observability import record; record('a'); record('b', {'c': 1})"
    )
    env = os.environ | {"PYTHONPATH": str(LAYER), "AWS_LAMBDA_LOG_LEVEL": "ERROR"}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    [line] = [json.loads(line) for line in completed.stdout.splitlines()]
    assert (line["event"], line["level"]) == ("b", "ERROR")


def test_failures_are_counted_by_version_too(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm of a deployment watches failures of the new version only."""
    monkeypatch.setattr(observability, "VERSION", "7")
    run_handler(lambda: record("request_served", {"server_errors": 1}))
    run_handler(lambda: record("request_served", {"requests_limited": 1}))
    failed, limited = lines()[:2]
    [directive] = failed["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["function"], ["function", "version"]]
    assert (failed["version"], failed["server_errors"]) == ("7", 1)
    [directive] = limited["_aws"]["CloudWatchMetrics"]
    assert directive["Dimensions"] == [["function"]]
    assert "version" not in limited
