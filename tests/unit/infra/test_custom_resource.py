"""Steps of a deploy: CloudFormation learns how each ended, and a failure fails the deploy."""

from __future__ import annotations

import io
import json
from typing import Any
from urllib.error import URLError

import pytest

from plaza.infra.aws import custom_resource
from tests.support.failures import failing

EVENT = {
    "RequestType": "Create",
    "ResponseURL": "https://answers.example/signed",
    "StackId": "arn:aws:cloudformation:us-east-1:000000000000:stack/plaza-staging/1",
    "RequestId": "2",
    "LogicalResourceId": "Migration",
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The answers that CloudFormation got."""
    answers: list[dict[str, Any]] = []

    def put(request: Any, timeout: float) -> Any:
        assert (request.method, request.full_url) == ("PUT", EVENT["ResponseURL"])
        assert request.get_header("Content-type") == "", "the signature covers an empty type"
        answers.append(json.loads(request.data))
        return io.BytesIO()

    monkeypatch.setattr(custom_resource, "urlopen", put)
    return answers


fail = failing(ValueError("the column exists" + "!" * 1000))


def test_the_result_is_the_answer(sent: list[dict[str, Any]]) -> None:
    assert custom_resource.serve(EVENT, lambda: {"applied": []}) == {"applied": []}
    [answer] = sent
    assert answer["Status"] == "SUCCESS"
    assert answer["Data"] == {"applied": []}
    assert {k: answer[k] for k in ("StackId", "RequestId", "LogicalResourceId")} == {
        k: EVENT[k] for k in ("StackId", "RequestId", "LogicalResourceId")
    }


def test_a_failure_is_the_reason_and_is_not_raised(sent: list[dict[str, Any]]) -> None:
    """Lambda would run the step twice again, while CloudFormation waits for an answer."""
    custom_resource.serve(EVENT, fail)
    [answer] = sent
    assert answer["Status"] == "FAILED"
    assert answer["Reason"].startswith("ValueError: the column exists")
    assert len(json.dumps(answer)) < 4096


def test_an_update_keeps_the_physical_id_so_that_nothing_is_deleted(
    sent: list[dict[str, Any]],
) -> None:
    custom_resource.serve(EVENT, dict)
    update = EVENT | {
        "RequestType": "Update",
        "PhysicalResourceId": sent[0]["PhysicalResourceId"],
    }
    custom_resource.serve(update, dict)
    assert sent[0]["PhysicalResourceId"] == sent[1]["PhysicalResourceId"]


def test_a_deletion_runs_nothing(sent: list[dict[str, Any]]) -> None:
    delete = EVENT | {"RequestType": "Delete", "PhysicalResourceId": "Migration"}
    custom_resource.serve(delete, fail)
    assert sent[0]["Status"] == "SUCCESS"


def test_an_operator_sees_the_error_itself(sent: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match="the column exists"):
        custom_resource.serve({}, fail)
    assert sent == []


def test_an_answer_that_can_not_be_sent_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_resource, "urlopen", failing(URLError("refused")))
    with pytest.raises(OSError, match="refused"):
        custom_resource.serve(EVENT, dict)
