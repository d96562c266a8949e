"""One JSON line per event, which is its metric too (CloudWatch Embedded Metric Format).

A line per invocation is what a Lambda pays for logging; a metric in it costs nothing more.
Never logged: phone numbers, tokens, codes, bodies of requests.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from typing import Any

from plaza.infra.errors import PlazaError

NAMESPACE = "Plaza"

# json.dumps would make a new encoder each time.
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_function = os.environ.get("AWS_LAMBDA_FUNCTION_NAME", "local")


def record(event: str, metrics: Mapping[str, float] | None = None, /, **fields: Any) -> None:
    """Write that ``event`` (past tense) happened, with ``fields``; ``metrics`` are counted."""
    now_s = time.time()
    line: dict[str, Any] = {"event": event, "function": _function, "time_s": round(now_s, 3)}
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


def cause(error: BaseException) -> dict[str, str]:
    """What to log of ``error``: type and text, and for what we did not foresee, its trace."""
    said = {"error": type(error).__name__, "detail": str(error)[:500]}
    if error.__cause__ is not None:
        said["caused_by"] = f"{type(error.__cause__).__name__}: {error.__cause__}"[:500]
    if not isinstance(error, PlazaError):
        said["trace"] = "".join(traceback.format_exception(error))[-4000:]
    return said
