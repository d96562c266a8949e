"""Custom resources of CloudFormation: a step of a deploy that fails the deploy when it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.request import Request, urlopen

from plaza.infra.runtime.observability import error_fields, record

ANSWER_TIMEOUT_S = 10
MAX_REASON_CHARS = 500  # CloudFormation takes 4 KB for the whole answer


def serve(event: Mapping[str, Any], step: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run ``step`` and return its result, which CloudFormation gets if it sent ``event``.

    A deletion runs nothing. An error becomes the reason for which CloudFormation rolls back; it is
    raised if the function was invoked otherwise. Raises OSError if CloudFormation is unreachable.
    """
    if "ResponseURL" not in event:
        return step()
    result: dict[str, Any] = {}
    reason = ""
    if event["RequestType"] != "Delete":
        try:
            result = step()
        except Exception as error:
            record("deploy_step_failed", step=event["LogicalResourceId"], **error_fields(error))
            reason = f"{type(error).__name__}: {error}"[:MAX_REASON_CHARS]
    _answer(event, result, reason)
    return result


def _answer(event: Mapping[str, Any], result: Mapping[str, Any], reason: str) -> None:
    body = {
        "Status": "FAILED" if reason else "SUCCESS",
        "Reason": reason,
        # The same at each update: another one would make CloudFormation delete the old resource.
        "PhysicalResourceId": event.get("PhysicalResourceId") or event["LogicalResourceId"],
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": result,
    }
    request = Request(  # noqa: S310 - CloudFormation signed the URL
        event["ResponseURL"],
        data=json.dumps(body).encode(),
        headers={"content-type": ""},  # the signature covers an empty type
        method="PUT",
    )
    with urlopen(request, timeout=ANSWER_TIMEOUT_S):  # noqa: S310
        pass
