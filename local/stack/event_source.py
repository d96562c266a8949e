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
    def from_description(cls, description: Mapping[str, Any], queue_url: str) -> EventSource:
        scaling = description.get("ScalingConfig") or {}
        return cls(
            function=str(description["FunctionArn"]).rpartition(":function:")[2],
            queue_arn=description["EventSourceArn"],
            queue_url=queue_url,
            batch_size=int(description.get("BatchSize", 10)),
            window_s=float(description.get("MaximumBatchingWindowInSeconds") or 0),
            max_concurrency=int(scaling.get("MaximumConcurrency") or 1000),
            reports_failures="ReportBatchItemFailures"
            in description.get("FunctionResponseTypes", []),
        )
