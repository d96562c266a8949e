"""Sending codes by the SNS client to an SNS in this process, and by echo."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.sns.models import sns_backends

from plaza.infra.aws import aws_json, secrets
from plaza.infra.aws.secrets import SecretsDown
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.settings import BadSettings
from plaza.people.auth import sms
from plaza.people.auth.sms import SmsDown, SnsSender
from tests.support.keyspace import find_keys
from tests.support.moto_server import serving_aws
from tests.support.plaza import World, forget
from tests.support.sign_in_client import PHONE, request_code


@pytest.fixture
def aws(plaza: World) -> Iterator[None]:
    with mock_aws():
        yield


def test_a_code_is_sent_to_the_phone_by_sns(aws: None, set_up: Callable[..., None]) -> None:
    set_up(sms_sender="sns")
    assert request_code().status == 202
    [(phone, text, *_)] = sns_backends[DEFAULT_ACCOUNT_ID]["us-east-1"].sms_messages.values()
    assert phone == PHONE
    assert text.endswith(" is your Plaza code. It works for 5 minutes.")
    assert text[:6].isdigit()
    assert len(text) <= 140, "one text"
    assert find_keys("*:echo:*") == []


def test_a_text_is_sent_once_as_transactional(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, sent = SnsSender(), []

    def call(operation: str, parameters: dict[str, Any]) -> None:
        sent.append((operation, parameters))
        raise EndpointConnectionError(endpoint_url="https://sns")

    monkeypatch.setattr(sender._client, "_make_api_call", call)
    with pytest.raises(SmsDown):
        sender.send(PHONE, "text")
    [(operation, parameters)] = sent
    assert operation == "Publish"
    assert parameters["MessageAttributes"]["AWS.SNS.SMS.SMSType"]["StringValue"] == "Transactional"
    config = sender._client.meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.connect_timeout + config.read_timeout <= 5


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="https://sns"),
        ClientError({"Error": {"Code": "Throttled", "Message": f"for {PHONE}"}}, "Publish"),
        ClientError({"Error": {"Code": "InvalidParameter", "Message": PHONE}}, "Publish"),
    ],
    ids=["down", "throttled", "refused"],
)
def test_a_failure_of_sns_is_503_and_the_log_has_no_phone(
    plaza: World,
    set_up: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    set_up(sms_sender="sns")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(sms.sender()._client, "_make_api_call", fail)  # type: ignore[attr-defined]
    refused = request_code()
    assert (refused.status, refused.problem) == (503, "unavailable")
    logged = capsys.readouterr().out
    assert '"sms_failed":1' in logged
    assert type(error).__name__ in logged
    assert PHONE[1:] not in logged


def test_a_deployment_without_a_sender_refuses_to_send(
    plaza: World, set_up: Callable[..., None]
) -> None:
    set_up(sms_sender="")
    with pytest.raises(BadSettings, match="PLAZA_SMS_SENDER"):
        sms.sender()


def test_an_echo_expires_with_its_code(plaza: World) -> None:
    request_code()
    [key] = find_keys("*:echo:*")
    assert 299 <= redis.execute("TTL", key) <= 300
    assert PHONE[1:] not in key
    assert sms.read_echo("+12025550123") is None


def test_a_secret_is_cached_until_its_login_is_refused_later_than_5_s_after_the_read(
    migrated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = clock.monotonic_s()
    with mock_aws(), serving_aws() as url:
        import boto3

        client = boto3.client("secretsmanager")
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)  # of the other client
        client.create_secret(Name="a", SecretString="one")
        assert secrets.read("a") == "one"
        client.put_secret_value(SecretId="a", SecretString="two")
        assert not secrets.refresh("a")
        assert secrets.read("a") == "one"
        monkeypatch.setattr(clock, "monotonic_s", lambda: now_s + 2 * secrets.MIN_REFRESH_S)
        assert secrets.refresh("a")
        assert secrets.read("a") == "two"
    forget()


def test_a_secret_that_can_not_be_read_raises_secrets_down(
    migrated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert os.environ["AWS_ACCESS_KEY_ID"] == "test"
    with mock_aws(), serving_aws() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", url)
        with pytest.raises(SecretsDown):
            secrets.read("nowhere")


def test_credentials_that_expire_are_left_to_botocore(
    migrated: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aws_json, "make_client", lambda service: None)
    with mock_aws():
        secrets.connect().create_secret(Name="a", SecretString="one")
        assert secrets.read("a") == "one"
    forget()
