"""Request ids: validation, logs, responses, messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from local.stack.deployment import list_queues
from plaza.infra.http.callers import Caller
from plaza.infra.http.requests import Id
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.responses import PROBLEM
from plaza.infra.http.routes import OPTIONAL
from plaza.infra.mysql import mysql, sql
from plaza.infra.queues import sqs as sqs_client
from plaza.infra.queues.messages import InvalidMessage
from plaza.infra.runtime import settings
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import begin_request, current_request_id, end_request, record
from tests.support.batches import consume
from tests.support.failures import failing
from tests.support.logs import read_log

GATEWAY_ID = "JKJaXmPLvHcESHA="  # in the form of API Gateway
TOKEN = "Zm9yLXRlc3RzLW9ubHktbm90LWEtcmVhbC10b2tlbi0"

pytestmark = pytest.mark.usefixtures("configured")


def event(client_id: Any = None, gateway_id: Any = GATEWAY_ID, **more: Any) -> dict[str, Any]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {TOKEN}"}
    if client_id is not None:
        headers["x-request-id"] = client_id
    return {
        "version": "2.0",
        "routeKey": "GET /things/{thing_id}",
        "rawPath": "/things/7",
        "rawQueryString": "",
        "pathParameters": {"thing_id": "7"},
        "headers": headers,
        "requestContext": {
            "http": {"method": "GET", "path": "/things/7", "sourceIp": "203.0.113.7"},
            "requestId": gateway_id,
            "stage": "$default",
        },
        "isBase64Encoded": False,
        **more,
    }


# ---------------------------------------------------------------- validation


@pytest.mark.parametrize(
    "client_id", ["8f14e45f-ceea-467f-a0f4-5a5f1b2c3d4e", "a.b_c-d/e+f=", "request1", "x" * 64]
)
def test_a_client_may_send_its_own_request_id(client_id: str) -> None:
    assert begin_request(event(client_id)) == client_id


HOSTILE = [
    "",
    "short-1",
    "x" * 65,
    "x" * 100_000,
    "two words",
    "line\nevent",
    "line\r\nset-cookie: a=b",
    "trailing-newline\n",
    '{"event":"forged"}',
    "');DROP TABLE user;--",
    "back\\slash-1",
    "quote'quote",
    "%s%s%s%s%s",
    "<script>alert",
    "ünïcödé-id-1",
    "١٢٣٤٥٦٧٨a",
    "null\x00byte-1",
    "8613800138000",
    "+8613800138000",
    "13800138000.1",
    TOKEN,
    TOKEN[4:30],
]


@pytest.mark.parametrize("client_id", HOSTILE, ids=range(len(HOSTILE)))
def test_a_malformed_or_secret_client_id_is_ignored(client_id: str) -> None:
    assert begin_request(event(client_id)) == GATEWAY_ID


@pytest.mark.parametrize("gateway_id", [None, 7, "", "a b", "a'b", "x" * 65])
def test_without_a_valid_id_a_request_has_none(gateway_id: Any) -> None:
    assert begin_request(event(None, gateway_id)) is None
    assert begin_request({}) is None


# ---------------------------------------------------------------- logs and responses

app = PlazaResolver(lambda *_: Caller(9))


@app.get("/things/<thing_id>", security=OPTIONAL)
def get_thing(thing_id: Id) -> dict[str, str | None]:
    record("thing_read")
    if thing_id == "8":
        raise Unavailable("MySQL is unavailable")
    return {"id": current_request_id()}


def test_all_lines_and_the_response_of_a_request_have_its_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    response = app.resolve(event("my-request-1"), None)
    assert json.loads(response["body"]) == {"id": "my-request-1"}
    assert response["headers"]["x-request-id"] == "my-request-1"
    result = read_log(capsys)
    assert [line["event"] for line in result] == ["thing_read", "request_served"]
    assert {line["correlation_id"] for line in result} == {"my-request-1"}
    assert (result[1]["caller_id"], result[1]["thing_id"]) == ("9", "7")
    record("something_else")
    [line] = read_log(capsys)
    assert "correlation_id" not in line


def test_error_responses_have_the_request_id(capsys: pytest.CaptureFixture[str]) -> None:
    def other(**more: Any) -> dict[str, Any]:
        return event("my-request-2", **more)

    responses = [
        app.resolve(other(pathParameters={"thing_id": "8"}), None),
        app.resolve(other(routeKey="GET /nowhere", rawPath="/nowhere"), None),
        app.resolve(other(body="x" * 100_000), None),
    ]
    assert [response["statusCode"] for response in responses] == [503, 404, 400]
    for response in responses:
        headers = {name.lower(): value for name, value in response["headers"].items()}
        assert (headers["x-request-id"], headers["content-type"]) == ("my-request-2", PROBLEM)
    served = [line for line in read_log(capsys) if line["event"] == "request_served"]
    assert [line["correlation_id"] for line in served] == ["my-request-2"] * 3


def test_only_ids_of_a_path_are_logged(capsys: pytest.CaptureFixture[str]) -> None:
    app.resolve(event(None, pathParameters={"thing_id": "+8613800138000", "a": "1\n2"}), None)
    line = read_log(capsys)[-1]
    assert "8613800138000" not in json.dumps(line)
    assert "a" not in line


def test_the_id_of_the_caller_and_of_the_path_are_separate_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    app.resolve(event(None, pathParameters={"user_id": "5"}), None)
    line = read_log(capsys)[-1]
    assert (line["caller_id"], line["user_id"]) == ("9", "5")


# ---------------------------------------------------------------- queues


@dataclass(frozen=True, slots=True)
class Event:
    body: str
    request_id: str | None = None


def read(body: str) -> Event:
    if body == "unreadable":
        raise InvalidMessage("unreadable body")
    return Event(body)


class FakeSqs:
    """Accepts all messages."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def send_message(self, **message: Any) -> dict[str, Any]:
        self.sent.append(message)
        return {}

    def send_message_batch(self, **batch: Any) -> dict[str, Any]:
        self.sent += batch["Entries"]
        return {"Successful": batch["Entries"]}

    def change_message_visibility_batch(self, **batch: Any) -> dict[str, Any]:
        return {}


@pytest.fixture
def sqs(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeSqs]:
    for name, value in {
        "PLAZA_ENVIRONMENT": "local",
        "PLAZA_REDIS_URL": "redis://nowhere",
        "PLAZA_MYSQL_URL": "mysql://plaza@nowhere/plaza",
        **list_queues({"work": "https://sqs/work", "work_dlq": "https://sqs/work_dlq"}),
    }.items():
        monkeypatch.setenv(name, value)
    settings.settings.cache_clear()
    fake = FakeSqs()
    monkeypatch.setattr(sqs_client, "client", lambda: fake)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)  # so that botocore's client sends
    sqs_client._sender.reset()
    sqs_client.SQS.breaker.close()
    yield fake
    settings.settings.cache_clear()


def message(body: str, request_id: Any = None, sent_ms: int = 1) -> dict[str, Any]:
    attribute = {"stringValue": request_id, "dataType": "String"}
    return {
        "messageId": f"{body}-{request_id}",
        "receiptHandle": "r",
        "body": body,
        "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": str(sent_ms)},
        "messageAttributes": {} if request_id is None else {"request_id": attribute},
    }


def test_messages_of_a_request_have_its_id_and_others_have_none(sqs: FakeSqs) -> None:
    begin_request(event("my-request-3"))
    sqs_client.send("work", "a")
    sqs_client.send_all("work", ["b"])
    end_request()
    sqs_client.send("work", "c")
    sqs_client.send_all("work", ["d"])
    attribute = {"request_id": {"DataType": "String", "StringValue": "my-request-3"}}
    assert [m.get("MessageAttributes") for m in sqs.sent] == [attribute, attribute, None, None]
    assert sqs.sent[0]["MessageBody"] == "a", "the body has no id"


def test_a_message_for_an_earlier_request_has_the_id_of_that_request(sqs: FakeSqs) -> None:
    earlier = [sqs_client.for_request("a", "my-request-3"), sqs_client.for_request("b", None)]
    sqs_client.send_all("work", earlier)
    attribute = {"request_id": {"DataType": "String", "StringValue": "my-request-3"}}
    assert [m.get("MessageAttributes") for m in sqs.sent] == [attribute, None]


def test_an_event_gets_the_request_id_of_its_message(sqs: FakeSqs) -> None:
    taken: list[Event] = []
    consume({"Records": [message("a", "my-id-1"), message("b")]}, "work", read, taken.extend)
    assert taken == [Event("a", "my-id-1"), Event("b", None)]


def test_a_value_without_a_request_id_field_is_unchanged(sqs: FakeSqs) -> None:
    taken: list[str] = []
    consume({"Records": [message("a", "my-id-1")]}, "work", str, taken.extend)
    assert taken == ["a"]


@pytest.mark.parametrize("forged", [text for text in HOSTILE if not text.isalnum()] + [None, 7])
def test_a_forged_request_id_attribute_is_ignored(
    sqs: FakeSqs, forged: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    taken: list[Event] = []
    records = [message("a") | {"messageAttributes": {"request_id": {"stringValue": forged}}}]
    consume({"Records": records}, "work", read, taken.extend)
    [received] = taken
    rendered = sql.render_request_id(received.request_id)
    assert rendered == "NULL" or rendered == f"'{received.request_id}'"
    assert not set(rendered[1:-1]) & set("'\"\\%; \n\r\x00<>{}")
    [line] = read_log(capsys)
    assert line.get("request_ids", [received.request_id]) == [received.request_id]


@pytest.mark.parametrize("request_id", HOSTILE)
def test_a_malformed_request_id_is_rendered_as_null(request_id: str) -> None:
    rendered = sql.render_request_id(request_id)
    assert rendered == "NULL" or request_id.isascii()
    assert rendered == "NULL" or not set(request_id) & set("'\"\\%;\n\r\x00 ")


def test_a_batch_is_recorded_with_its_size_lag_and_request_ids(
    sqs: FakeSqs, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plaza.infra.runtime.clock.now_us", lambda: 100_000_000)
    records = [
        message("a", "id-1", 97_500),
        message("b", "id-2", 90_000),
        message("c", "id-1", 99_000),
        message("d", None, 99_000),
        message("unreadable", "id-3", 99_000),
    ]
    consume({"Records": records}, "work", read, lambda _: None)
    dead_lettered, consumed = read_log(capsys)
    assert dead_lettered["event"] == "message_dead_lettered"
    assert dead_lettered["request_ids"] == ["id-3"]
    assert consumed["event"] == "batch_consumed"
    assert (consumed["batch_size"], consumed["consumer_lag_s"]) == (5, 10.0)
    assert consumed["request_ids"] == ["id-1", "id-2", "id-3"]
    assert sqs.sent[0]["MessageAttributes"]["request_id"]["StringValue"] == "id-3"


def test_a_failed_batch_is_recorded_with_its_request_ids(
    sqs: FakeSqs, capsys: pytest.CaptureFixture[str]
) -> None:
    def save(events: list[Event]) -> None:
        if any(event.body == "poison" for event in events):
            raise ValueError("poison")

    records = [message("a", "id-1"), message("poison", "id-2")]
    consume({"Records": records}, "work", read, save)
    failed, consumed = read_log(capsys)
    assert (failed["event"], failed["request_ids"]) == ("batch_failed", ["id-2"])
    assert (consumed["request_ids"], consumed["batch_size"]) == (["id-1"], 1)


def test_a_batch_that_failed_whole_has_no_lag(
    sqs: FakeSqs, capsys: pytest.CaptureFixture[str]
) -> None:
    consume(
        {"Records": [message("a", "id-1")]}, "work", read, failing(Unavailable("the store is down"))
    )
    assert [line["event"] for line in read_log(capsys)] == ["batch_failed"]


# ---------------------------------------------------------------- breakers


@pytest.mark.parametrize(
    ("breaker", "name"),
    [(sqs_client.SQS.breaker, "sqs"), (mysql.MYSQL.breaker, "mysql")],
    ids=["sqs", "mysql"],
)
def test_a_breaker_records_when_it_opens_and_closes(
    breaker: Any, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    breaker.close()
    capsys.readouterr()
    for _ in range(breaker.fail_max):
        with pytest.raises(OSError, match="unreachable"):
            breaker.call(failing(OSError("unreachable")))
    breaker.half_open()
    breaker.close()
    breaker.close()
    opened, closed = read_log(capsys)
    assert (opened["event"], opened["state"]) == ("breaker_state_changed", "open")
    assert opened[f"{name}_breaker_open"] == 1
    assert (closed["state"], closed[f"{name}_breaker_open"]) == ("closed", 0)
