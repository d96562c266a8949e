"""Logs and metrics: one JSON line per event, with its metrics (CloudWatch Embedded Metric Format).

A metric in a line costs nothing beyond the line. Never logged: phone numbers, tokens, codes,
request bodies.

While a request is served, every line has its id: the client's ``X-Request-Id`` if that is
well-formed, else API Gateway's. The first line of a process also has the metrics of its cold start.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from plaza.infra import clock
from plaza.infra.errors import PlazaError
from plaza.infra.json_encoders import make_encoder

NAMESPACE = "Plaza"
REQUEST_ID = re.compile(r"[A-Za-z0-9+/=._-]{1,64}")
"""A well-formed request id: safe in a log line, in a header and in SQL."""

_MIN_CLIENT_ID_CHARS = 8  # a sign-in code has 6 digits

_encode = make_encoder(default=str)
FUNCTION = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "local")


class _Process:
    """State that lines depend on; a Lambda serves one request at a time."""

    is_cold = True  # until the first line
    request_id: str | None = None


_process = _Process()


def begin_request(event: Mapping[str, Any]) -> str | None:
    """Add the id of the request of ``event`` to all lines from now on; return it, None for none."""
    _process.request_id = _read_request_id(event)
    return _process.request_id


def end_request() -> None:
    """Stop adding the request id to lines."""
    _process.request_id = None


def current_request_id() -> str | None:
    """Return the id of the request that is being served, None outside of a request."""
    return _process.request_id


def _read_request_id(event: Mapping[str, Any]) -> str | None:
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


def record(event: str, metrics: Mapping[str, float] | None = None, /, **fields: Any) -> None:
    """Write one line for ``event``, a name in the past tense, with ``fields`` and ``metrics``."""
    now_s = clock.now_s()
    line: dict[str, Any] = {"event": event, "function": FUNCTION, "time_s": round(now_s, 3)}
    if _process.request_id is not None:
        line["request_id"] = _process.request_id
    if _process.is_cold:
        _process.is_cold = False
        cold = {"cold_starts": 1, "cold_start_cpu_ms": round(clock.cpu_s() * 1000)}
        metrics = {**(metrics or {}), **cold}
    line.update(fields)
    if metrics:
        line.update(metrics)
        line["_aws"] = {
            "Timestamp": int(now_s * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": NAMESPACE,
                    "Dimensions": [["function"]],
                    "Metrics": [{"Name": name} for name in metrics],
                }
            ],
        }
    sys.stdout.write(_encode(line) + "\n")
    sys.stdout.flush()


def error_fields(error: BaseException) -> dict[str, str]:
    """Return the log fields of ``error``: type, text, cause, and the trace unless a PlazaError."""
    fields = {"error": type(error).__name__, "detail": str(error)[:500]}
    if error.__cause__ is not None:
        fields["caused_by"] = f"{type(error.__cause__).__name__}: {error.__cause__}"[:500]
    if not isinstance(error, PlazaError):
        fields["trace"] = "".join(traceback.format_exception(error))[-4000:]
    return fields
