"""An event source mapping of the template: a queue, a function, and the rules of its batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EventSource:
    function: str
    queue_arn: str
    queue_url: str
    batch_size: int
    window_s: float
    max_concurrency: int
    reports_failures: bool

    @classmethod
    def from_description(cls, found: Mapping[str, Any], queue_url: str) -> EventSource:
        scaling = found.get("ScalingConfig") or {}
        return cls(
            function=str(found["FunctionArn"]).rpartition(":function:")[2],
            queue_arn=found["EventSourceArn"],
            queue_url=queue_url,
            batch_size=int(found.get("BatchSize", 10)),
            window_s=float(found.get("MaximumBatchingWindowInSeconds") or 0),
            max_concurrency=int(scaling.get("MaximumConcurrency") or 1000),
            reports_failures="ReportBatchItemFailures" in found.get("FunctionResponseTypes", []),
        )
