"""``make operate`` and ``make smoke`` in AWS: what they invoke, and what they say."""

from __future__ import annotations

import argparse
import io
import json
from typing import Any

import boto3
import pytest

from cli.paths import CommandError
from deploy import operate, smoke
from deploy.account import Account
from deploy.operate import Operator
from deploy.parts import DeployError

ARN = "arn:aws:sts::123456789012:assumed-role/oncall/ada"


class Aws:
    """Stands in for Lambda and STS. ``replies``: what the function returns, in order."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.events: list[dict[str, Any]] = []

    def invoke(self, **call: Any) -> dict[str, Any]:
        assert call.pop("FunctionName") == "plaza-staging-Operate-1"
        self.events.append(json.loads(call.pop("Payload")))
        assert not call
        reply = self.replies.pop(0)
        body = io.BytesIO(json.dumps(reply).encode())
        failed = isinstance(reply, dict) and "errorMessage" in reply
        return {"Payload": body, **({"FunctionError": "Unhandled"} if failed else {})}

    def get_caller_identity(self) -> dict[str, str]:
        return {"Arn": ARN}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Aws:
    stand_in = Aws()
    outputs = [{"OutputKey": "OperateFunction", "OutputValue": "plaza-staging-Operate-1"}]
    monkeypatch.setattr(Account, "describe", lambda *_: {"Outputs": outputs})
    monkeypatch.setattr(boto3, "client", lambda *_, **__: stand_in)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):  # samconfig.toml has the region
        monkeypatch.delenv(name, raising=False)
    return stand_in


def arguments(command: str, *pairs: str) -> argparse.Namespace:
    return argparse.Namespace(environment="staging", name=command, arguments=list(pairs))


def test_a_command_is_invoked_with_its_arguments_and_the_caller(
    aws: Aws, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.replies = [{"before": "user"}]
    assert operate.main(arguments("set-role", "user_id=7", "role=admin")) == 0
    assert aws.events == [
        {"command": "set-role", "arguments": {"user_id": "7", "role": "admin"}, "caller": ARN}
    ]
    assert json.loads(capsys.readouterr().out) == {"before": "user"}


def test_a_command_that_has_not_finished_is_repeated(aws: Aws) -> None:
    aws.replies = [{"deleted": 9, "finished": False}, {"deleted": 1, "finished": True}]
    operate.main(arguments("flush-redis", "environment=staging"))
    assert len(aws.events) == 2


def test_a_refusal_is_the_message_of_the_command(aws: Aws) -> None:
    aws.replies = [{"errorMessage": "there is no such command", "errorType": "Refused"}]
    with pytest.raises(DeployError, match=r"^drop: there is no such command$"):
        operate.main(arguments("drop"))


def test_a_value_may_have_the_sign_between_name_and_value(aws: Aws) -> None:
    aws.replies = [{"version": 1}]
    operate.main(arguments("set-switches", 'document={"a": "b=c"}'))
    assert aws.events[0]["arguments"] == {"document": '{"a": "b=c"}'}
    with pytest.raises(CommandError, match="'user_id' is not name=value"):
        operate.main(arguments("set-role", "user_id"))


def test_an_environment_without_the_function_is_named(
    aws: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Account, "describe", lambda *_: None)
    with pytest.raises(DeployError, match="no environment staging"):
        Operator("staging")


@pytest.mark.parametrize("fails", [False, True])
def test_the_admin_of_a_check_exists_for_the_check_only(
    aws: Aws, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    aws.replies = [{"user_id": 7, "token": "of-an-admin"}]
    calls = []

    def check(client: smoke.Client) -> None:
        calls.append(vars(client)["_token"])
        if fails:
            raise smoke.SmokeError("a wrong answer")

    def expect(_: smoke.Client, method: str, path: str, statuses: set[int]) -> None:
        calls.append(f"{method} {path} {statuses}")

    monkeypatch.setattr(smoke, "check", check)
    monkeypatch.setattr(smoke.Client, "expect", expect)
    if fails:
        with pytest.raises(smoke.SmokeError, match="a wrong answer"):
            smoke.check_as_new_admin("https://api.example", Operator("staging"))
    else:
        smoke.check_as_new_admin("https://api.example", Operator("staging"))
    assert calls == ["of-an-admin", "DELETE /users/me {202}"]
    assert aws.events[0]["command"] == "open-smoke-session"
