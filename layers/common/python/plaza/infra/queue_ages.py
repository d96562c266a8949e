"""How old the oldest message of a queue is, as CloudWatch knows it: SQS itself tells nobody.

A look, no promise: where CloudWatch can't be asked (a laptop, a VPC without its endpoint) nothing
is said, and nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from plaza.infra import clock
from plaza.infra.observability import cause, record
from plaza.infra.settings import settings

_WINDOW_S = 600
_PERIOD_S = 60


def read_ages(queues: Sequence[str]) -> dict[str, float]:
    """Name -> age in seconds of the oldest message, of those queues of which it is known."""
    now_s = clock.now_s()
    wanted: list[Any] = [
        {
            "Id": f"q{index}",
            "MetricStat": {
                "Metric": {
                    "Namespace": "AWS/SQS",
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [
                        {
                            "Name": "QueueName",
                            "Value": settings().queues[queue].rpartition("/")[2],
                        }
                    ],
                },
                "Period": _PERIOD_S,
                "Stat": "Maximum",
            },
        }
        for index, queue in enumerate(queues)
    ]
    try:
        answer = _client().get_metric_data(
            MetricDataQueries=wanted,
            StartTime=datetime.fromtimestamp(now_s - _WINDOW_S, UTC),
            EndTime=datetime.fromtimestamp(now_s, UTC),
            ScanBy="TimestampDescending",
        )
    except (BotoCoreError, ClientError) as error:
        record("ages_unknown", **cause(error))
        return {}
    return {
        queues[int(found["Id"][1:])]: float(found["Values"][0])
        for found in answer["MetricDataResults"]
        if found["Values"]
    }


def _client() -> Any:
    config = Config(connect_timeout=1, read_timeout=2, retries={"total_max_attempts": 1})
    return botocore.session.get_session().create_client("cloudwatch", config=config)
