"""The requests of the JSON client equal botocore's, byte for byte."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import botocore.session
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.credentials import Credentials as BotocoreCredentials
from botocore.serialize import create_serializer

from plaza.infra.aws.aws_json import SECRETS_MANAGER, SQS, AwsJsonClient, Credentials, make_client
from tests.support.depth import choose

QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/123456789012/plaza-reactions"
CREDENTIALS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG", "to/ken+with=signs")
MESSAGES = choose(1_000, 10_000)
ALPHABET = 'abcXYZ 019\n\t\r\0"\\/{}<>&%+=éß漢字\u2028\U0001f600'


# ---------------------------------------------------------------- the request


def make_botocore_client(service: str = "sqs") -> tuple[Any, list[AWSPreparedRequest]]:
    session = botocore.session.Session()
    session.set_credentials(*CREDENTIALS)
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    client = session.create_client(service, region_name="eu-central-1", config=config)

    def reply(request: AWSPreparedRequest, **_: object) -> Any:
        captured.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), Empty())

    captured: list[AWSPreparedRequest] = []
    client.meta.events.register(f"before-send.{service}.*", reply)
    return client, captured


class Empty:
    """The body of a reply."""

    def stream(self, **_: object) -> Iterator[bytes]:
        yield b"{}"


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(ALPHABET, k=rng.randint(1, 60)))


def random_parameters(rng: random.Random) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "QueueUrl": QUEUE_URL,
        "MessageBody": random_text(rng),
        "DelaySeconds": rng.randint(0, 900),
    }
    if rng.random() < 0.5:
        parameters["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": random_text(rng)}
            for name in rng.sample(["request_id", "first_sent_ms", "cause"], rng.randint(1, 3))
        }
    if rng.random() < 0.1:
        del parameters["QueueUrl"]
        parameters = {"QueueUrl": QUEUE_URL, "Entries": [{"Id": "0", **parameters}]}
    return parameters


def split_request(rendered: bytes) -> tuple[str, dict[str, str], bytes]:
    head, _, body = rendered.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return first, dict(line.split(": ", 1) for line in lines), body


def check(
    sender: AwsJsonClient,
    parameters: dict[str, Any],
    theirs: AWSPreparedRequest,
    action: str | None = None,
) -> None:
    """Assert that the client renders the request that botocore made of ``parameters``."""
    results: Mapping[str, Any] = dict(theirs.headers)
    headers = {
        name.lower(): value.decode() if isinstance(value, bytes) else value
        for name, value in results.items()
    }
    sent_at = datetime.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    action = action or ("SendMessageBatch" if "Entries" in parameters else "SendMessage")
    body = json.dumps(parameters).encode()
    first, ours, our_body = split_request(sender._render(action, body, sent_at.timestamp()))
    assert first == "POST / HTTP/1.1"
    assert our_body == theirs.body
    assert f"https://{ours.pop('host')}/" == theirs.url
    assert ours.pop("content-length") == str(len(theirs.body))
    assert ours == {name: headers[name] for name in ours}
    assert "authorization" in ours


@pytest.mark.sampled
def test_requests_equal_those_of_the_serializer_and_signer_of_botocore() -> None:
    client, _ = make_botocore_client()
    model, serializer = client.meta.service_model, create_serializer("json")
    signer = SigV4Auth(BotocoreCredentials(*CREDENTIALS), "sqs", "eu-central-1")
    sender = AwsJsonClient(SQS, QUEUE_URL, "eu-central-1", CREDENTIALS)
    rng = random.Random(20261122)
    for _ in range(MESSAGES):
        parameters = random_parameters(rng)
        operation = model.operation_model(
            "SendMessageBatch" if "Entries" in parameters else "SendMessage"
        )
        parameter = serializer.serialize_to_request(parameters, operation)
        url = "https://sqs.eu-central-1.amazonaws.com/"
        request = AWSRequest(parameter["method"], url, parameter["headers"], parameter["body"])
        signer.add_auth(request)
        check(sender, parameters, request.prepare())


def test_requests_equal_those_of_a_botocore_client() -> None:
    client, captured = make_botocore_client()
    sender = AwsJsonClient(SQS, QUEUE_URL, "eu-central-1", CREDENTIALS)
    rng = random.Random(1)
    for _ in range(100):
        parameters = random_parameters(rng)
        send = client.send_message_batch if "Entries" in parameters else client.send_message
        send(**parameters)
        check(sender, parameters, captured.pop())


def test_a_request_for_a_secret_equals_that_of_a_botocore_client() -> None:
    client, captured = make_botocore_client("secretsmanager")
    url = "https://secretsmanager.eu-central-1.amazonaws.com"
    reader = AwsJsonClient(SECRETS_MANAGER, url, "eu-central-1", CREDENTIALS)
    parameters = {"SecretId": "plaza/redis-AbC", "VersionStage": "AWSCURRENT"}
    client.get_secret_value(**parameters)
    theirs = captured.pop()
    check(reader, parameters, theirs, "GetSecretValue")
    assert theirs.headers["X-Amz-Target"] == b"secretsmanager.GetSecretValue"


def test_a_user_without_a_session_token_signs_without_one() -> None:
    sender = AwsJsonClient(SQS, QUEUE_URL, "eu-central-1", CREDENTIALS._replace(token=""))
    _, headers, _ = split_request(sender._render("SendMessage", b"{}", 0))
    assert "x-amz-security-token" not in headers
    assert "SignedHeaders=content-type;host;x-amz-date;x-amz-target" in headers["authorization"]


def test_the_signing_key_changes_with_the_day() -> None:
    sender = AwsJsonClient(SQS, QUEUE_URL, "eu-central-1", CREDENTIALS)
    first = sender._mac_of("20261122").digest()
    assert sender._mac_of("20261123").digest() != first
    assert sender._mac_of("20261122").digest() == first


# ---------------------------------------------------------------- the environment


@pytest.fixture
def lambda_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_SQS",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER",
        "AWS_CREDENTIAL_EXPIRATION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")


@pytest.mark.usefixtures("lambda_environment")
def test_the_environment_of_lambda_makes_a_sender() -> None:
    sender = make_client(SQS, QUEUE_URL)
    assert sender is not None
    assert sender._address == ("sqs.eu-central-1.amazonaws.com", 443)


@pytest.mark.usefixtures("lambda_environment")
@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("eu-central-1", "secretsmanager.eu-central-1.amazonaws.com"),
        ("cn-north-1", "secretsmanager.cn-north-1.amazonaws.com.cn"),
    ],
)
def test_secrets_are_read_in_the_region_of_the_function(
    monkeypatch: pytest.MonkeyPatch, region: str, host: str
) -> None:
    monkeypatch.setenv("AWS_REGION", region)
    client = make_client(SECRETS_MANAGER)
    assert client is not None
    assert client._address == (host, 443)


@pytest.mark.usefixtures("lambda_environment")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SECRET_ACCESS_KEY", ""),
        ("AWS_REGION", ""),
        ("AWS_CREDENTIAL_EXPIRATION", "2026-11-22T12:00:00Z"),
    ],
)
def test_other_credentials_are_left_to_botocore(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv(name, value)
    assert make_client(SQS, QUEUE_URL) is None
