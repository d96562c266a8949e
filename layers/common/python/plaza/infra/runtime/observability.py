"""Logs and metrics of all functions: ``logger`` and ``metrics``, which are Powertools'.

    @logger.inject_lambda_context
    @metrics.log_metrics(capture_cold_start_metric=True)
    def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]: ...

``record`` writes one JSON line for an event, with its metrics (CloudWatch Embedded Metric Format):
a metric in a line costs nothing beyond the line. Never logged: phone numbers, tokens, codes,
request bodies.

All lines of a request have its id as ``correlation_id``: the client's ``X-Request-Id`` if that is
well-formed, else API Gateway's. ``PlazaResolver`` sets it, in a tenth of the time of a path for
``inject_lambda_context``.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.logging import Logger
from aws_lambda_powertools.logging.formatter import BasePowertoolsFormatter
from aws_lambda_powertools.metrics import EphemeralMetrics, Metrics, MetricUnit

from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import PlazaError

NAMESPACE = "Plaza"
SERVICE = "plaza"
REQUEST_ID = re.compile(r"[A-Za-z0-9+/=._-]{1,64}")
"""A well-formed request id: safe in a log line, in a header and in SQL."""
FUNCTION = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "local")
VERSION = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")

_MIN_CLIENT_ID_CHARS = 8  # a sign-in code has 6 digits
_LEVELS = {
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
}  # as Lambda names them
_BY_VERSION = "server_errors"
"""Metric that is written for each version of a function, too: a deployment goes back by it."""
_NOT_WRITTEN = {"function_name", "function_memory_size", "function_arn", "sampling_rate"}
_UNITS = {"s": MetricUnit.Seconds, "ms": MetricUnit.Milliseconds, "bytes": MetricUnit.Bytes}
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode


class LineFormatter(BasePowertoolsFormatter):
    """Formats a line for Lambda, which reads ``level`` and ``timestamp``, and for CloudWatch.

    It has ``function``, the dimension of metrics, and no other name of the function. Powertools'
    own formatter takes twice the CPU and writes 330 bytes more.
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: dict[str, Any] = {}

    def append_keys(self, **additional_keys: Any) -> None:
        """Add keys to all lines from now on; None removes a key."""
        for name, value in additional_keys.items():
            if value is None or name in _NOT_WRITTEN:
                self._keys.pop(name, None)
            else:
                self._keys[name] = value

    def remove_keys(self, keys: Iterable[str]) -> None:
        """Remove keys."""
        for name in keys:
            self._keys.pop(name, None)

    def get_current_keys(self) -> dict[str, Any]:
        """Return the keys of all lines."""
        return self._keys

    def clear_state(self) -> None:
        """Remove all keys."""
        self._keys.clear()

    def thread_safe_clear_keys(self) -> None:
        """Remove the keys of this thread: there are none of a thread."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a line. The fields of a message that is a dict are fields of the line."""
        if type(record.msg) is dict:
            fields = record.msg
        else:
            fields = {"logger": record.name, "message": record.getMessage()}
        if record.exc_info:
            fields = fields | {"trace": self.formatException(record.exc_info)[-4000:]}
        return self.make_line(record.levelno, record.created, fields)

    def make_line(self, level: int, at_s: float, fields: Mapping[str, Any]) -> str:
        """Return a line with ``fields`` besides the fields of all lines."""
        at = datetime.fromtimestamp(at_s, UTC)
        line = {
            "level": _LEVELS.get(level) or logging.getLevelName(level),
            "timestamp": at.isoformat(timespec="milliseconds")[:-6] + "Z",
            "function": FUNCTION,
            **self._keys,
        }
        if trace_id := os.environ.get("_X_AMZN_TRACE_ID"):
            line["xray_trace_id"] = trace_id.partition(";")[0].removeprefix("Root=")
        line.update(fields)
        return _encode(line)


class LineMetrics(EphemeralMetrics):
    """Metrics in lines of ``logger``: Lambda drops lines without a level as it drops lines of INFO.

    A metric with one value is a number, not a list, so that a query can compare it.
    """

    def serialize_metric_set(self, *args: Any, **kwargs: Any) -> Any:
        """Return the metrics as fields of a line."""
        fields: dict[str, Any] = {**super().serialize_metric_set(*args, **kwargs)}
        for name in self.metric_set:
            if len(values := fields[name]) == 1:
                fields[name] = int(values[0]) if values[0].is_integer() else values[0]
        if _BY_VERSION in self.metric_set:
            fields["version"] = VERSION
            [directive] = fields["_aws"]["CloudWatchMetrics"]
            directive["Dimensions"] = [["function"], ["function", "version"]]
        return fields

    def add_cold_start_metric(self, context: Any) -> None:  # noqa: ARG002
        """Count a cold start, with the CPU from the start of the process to its first response."""
        self.add_metric("ColdStart", MetricUnit.Count, 1)
        self.add_metric("cold_start_cpu_ms", MetricUnit.Milliseconds, round(clock.cpu_s() * 1000))

    def flush_metrics(self, raise_on_empty_metrics: bool = False) -> None:
        """Write a line with the metrics that are in no line yet, if there are some. After the first
        request the process begins to collect garbage (``plaza/__init__.py``)."""
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        if self.metric_set or raise_on_empty_metrics:
            record("metrics_flushed", {})


class _Stdout(logging.StreamHandler[Any]):
    """Writes to what is the standard output at that time."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        """The standard output."""
        return sys.stdout


_formatter = LineFormatter()
logger = Logger(service=SERVICE, logger_formatter=_formatter, logger_handler=_Stdout())
metrics = Metrics(provider=LineMetrics(namespace=NAMESPACE))
metrics.service = None  # the only dimension is the function
metrics.set_default_dimensions(function=FUNCTION)
_lines = logging.getLogger(SERVICE)  # the one of ``logger``
_lines.propagate = False
if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:  # warnings of libraries are lines, too
    logging.basicConfig(handlers=logger.handlers, level=logging.WARNING, force=True)


def begin_request(event: Mapping[str, Any]) -> str | None:
    """Add the id of the request of ``event`` to all lines from now on; return it, None for none."""
    request_id = read_request_id(event)
    _formatter.append_keys(correlation_id=request_id)
    return request_id


def end_request() -> None:
    """Stop adding the request id to lines."""
    _formatter.append_keys(correlation_id=None)


def current_request_id() -> str | None:
    """Return the id of the request that is being served, None outside of a request."""
    return _formatter.get_current_keys().get("correlation_id")


def read_request_id(event: Mapping[str, Any]) -> str | None:
    """Return the id of a request: the client's, if it sent a valid one, or the gateway's."""
    headers = event.get("headers") or {}
    client_id = headers.get("x-request-id")
    if _is_valid_client_id(client_id) and client_id not in headers.get("authorization", ""):
        return str(client_id)
    gateway_id = event.get("requestContext", {}).get("requestId")
    is_valid = isinstance(gateway_id, str) and REQUEST_ID.fullmatch(gateway_id)
    return gateway_id if is_valid else None


def _is_valid_client_id(text: object) -> bool:
    """Return whether a client's id is well-formed; without a letter it could be a phone number."""
    return (
        isinstance(text, str)
        and len(text) >= _MIN_CLIENT_ID_CHARS
        and REQUEST_ID.fullmatch(text) is not None
        and any(c.isalpha() for c in text)
    )


def record(event: str, values: Mapping[str, float] | None = None, /, **fields: Any) -> None:
    """Write one line for ``event``, a name in the past tense, with ``fields`` and metrics.

    Its level is ERROR with the trace of an unexpected error, WARN with another error, else INFO. A
    line with metrics is written whatever the ``ApplicationLogLevel`` of the function is. It is that
    of ``logger``, without the record and the handlers of ``logging``, which take twice its time. It
    is not flushed: the runtime of Lambda flushes each write.
    """
    level = _level_of(fields)
    if values is not None:
        for name, value in values.items():
            unit = _UNITS.get(name.rpartition("_")[2], MetricUnit.Count)
            metrics.add_metric(name, unit, value)
        if metrics.provider.metric_set:
            fields |= metrics.serialize_metric_set()
            metrics.clear_metrics()
            level = max(level, _lines.level)
    if _lines.isEnabledFor(level):
        line = _formatter.make_line(level, clock.now_s(), {"event": event, **fields})
        sys.stdout.write(f"{line}\n")


def record_unknown(what: str, name: str) -> None:
    """Write a line for a stored name that this version does not know, because another version or
    an operator wrote it. The caller reads it as a default, so that its user can replace it."""
    record("unknown_name_read", {"unknown_names": 1}, what=what, name=name[:100])


def _level_of(fields: Mapping[str, Any]) -> int:
    if "trace" in fields:
        return logging.ERROR
    return logging.WARNING if "error" in fields else logging.INFO


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the log fields of ``error``: type, text, cause, and the trace unless a PlazaError."""
    fields = {"error": type(error).__name__, "detail": str(error)[:500]}
    if error.__cause__ is not None:
        fields["caused_by"] = f"{type(error.__cause__).__name__}: {error.__cause__}"[:500]
    if not isinstance(error, PlazaError):
        fields["trace"] = "".join(traceback.format_exception(error))[-4000:]
    return fields
