"""One JSON line per event, which is its metric too (CloudWatch Embedded Metric Format).

A line per invocation is what a Lambda pays for logging; a metric in it costs nothing more.
Never logged: phone numbers, tokens, codes, bodies of requests.

While a request is answered, every line has its id: the client's ``X-Request-Id`` when that is
well-formed, else API Gateway's. The first line of a process tells of its cold start as well.
"""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Any

from plaza.infra import clock
from plaza.infra.errors import PlazaError

NAMESPACE = "Plaza"
REQUEST_ID = re.compile(r"[A-Za-z0-9+/=._-]{1,64}")
"""What an id of a request may look like: safe in a log line, in a header and in SQL."""

_MIN_CLIENT_ID_CHARS = 8  # a code to sign in has 6 digits

# json.dumps would make a new encoder each time.
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "local")


class _Process:
    """What lines tell of their process; a Lambda serves one request at a time."""

    is_cold = True  # until the first line
    request_id: str | None = None


_process = _Process()


def begin_request(event: Mapping[str, Any]) -> str | None:
    """From here on every line is about the request of ``event``; its id, None if it has none."""
    _process.request_id = _read_request_id(event)
    return _process.request_id


def end_request() -> None:
    """The request was answered."""
    _process.request_id = None


def current_request_id() -> str | None:
    """The id of the request that is answered now, None outside of any."""
    return _process.request_id


def _read_request_id(event: Mapping[str, Any]) -> str | None:
    headers = event.get("headers") or {}
    said = headers.get("x-request-id")
    if said and _is_valid_client_id(said) and said not in headers.get("authorization", ""):
        return str(said)
    given = event.get("requestContext", {}).get("requestId")
    return given if isinstance(given, str) and REQUEST_ID.fullmatch(given) else None


def _is_valid_client_id(said: object) -> bool:
    """A client's own id; one without a letter could be a phone number."""
    return (
        isinstance(said, str)
        and len(said) >= _MIN_CLIENT_ID_CHARS
        and REQUEST_ID.fullmatch(said) is not None
        and any(c.isalpha() for c in said)
    )


def record(event: str, metrics: Mapping[str, float] | None = None, /, **fields: Any) -> None:
    """Write that ``event`` (past tense) happened, with ``fields``; ``metrics`` are counted."""
    now_s = clock.now_s()
    line: dict[str, Any] = {"event": event, "function": _function, "time_s": round(now_s, 3)}
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
    """What to log of ``error``: type and text, and for what we did not foresee, its trace."""
    said = {"error": type(error).__name__, "detail": str(error)[:500]}
    if error.__cause__ is not None:
        said["caused_by"] = f"{type(error.__cause__).__name__}: {error.__cause__}"[:500]
    if not isinstance(error, PlazaError):
        said["trace"] = "".join(traceback.format_exception(error))[-4000:]
    return said
