"""The modes of a fault, on a real Redis and on a fake SQS."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from typing import Any

import botocore.session
import pytest
import redis as redis_client
from botocore.config import Config
from redis.backoff import NoBackoff
from redis.retry import Retry

from local.stack.servers import Server
from tests.faults.aws import Aws
from tests.faults.transport import Fault, Killed, Mode, Transport

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def redis_url(redis_server: Server) -> str:
    """The address without a login, which would be a call of its own."""
    return redis_server.url


@pytest.fixture
def empty_redis(redis_url: str) -> Iterator[redis_client.Redis]:
    """Return a client that the transport does not see."""
    with redis_client.Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


@pytest.fixture
def transport(redis_url: str) -> Iterator[Transport]:
    port = int(redis_url.rpartition(":")[2].partition("/")[0])
    transport = Transport({port: "redis"})
    with transport.installed():
        yield transport


def connect(redis_url: str, retries: int = 0) -> redis_client.Redis:
    client = redis_client.Redis.from_url(
        redis_url,
        protocol=2,
        driver_info=None,
        single_connection_client=True,
        retry=Retry(NoBackoff(), retries, supported_errors=(redis_client.ConnectionError,)),
    )
    client.ping()
    return client


@pytest.mark.parametrize(
    ("mode", "error", "executed", "executed_later"),
    [
        (Mode.DROPPED, redis_client.ConnectionError, None, None),
        (Mode.REPLY_DROPPED, redis_client.ConnectionError, b"1", b"1"),
        (Mode.REPLY_LATE, redis_client.TimeoutError, b"1", b"1"),
        (Mode.DELAYED, redis_client.TimeoutError, None, b"1"),
        (Mode.OVERTAKEN, redis_client.TimeoutError, None, b"1"),
        (Mode.KILLED, Killed, b"1", b"1"),
    ],
)
def test_call_is_faulted(
    transport: Transport,
    redis_url: str,
    empty_redis: redis_client.Redis,
    mode: Mode,
    error: type[BaseException],
    executed: bytes | None,
    executed_later: bytes | None,
) -> None:
    client = connect(redis_url)
    with transport.recording(Fault(1, mode)):
        client.get("before")
        with pytest.raises(error):
            client.incr("count")
    assert [call.text for call in transport.calls] == ["GET before", "INCRBY count 1"]
    assert empty_redis.get("count") == executed
    transport.execute_late()
    assert empty_redis.get("count") == executed_later
    transport.restart()
    assert connect(redis_url).ping()


def test_repeat_by_the_client_library_is_a_call_of_its_own(
    transport: Transport, redis_url: str, empty_redis: redis_client.Redis
) -> None:
    client = connect(redis_url, retries=1)
    with transport.recording(Fault(0, Mode.REPLY_DROPPED)):
        assert client.incr("count") == 2
    assert [call.text for call in transport.calls] == ["INCRBY count 1"] * 2


def test_pipeline_is_one_call(
    transport: Transport, redis_url: str, empty_redis: redis_client.Redis
) -> None:
    pipe = connect(redis_url).pipeline(transaction=False)
    for _ in range(3000):
        pipe.incr("count")
    fault = Fault(0, Mode.REPLY_DROPPED)
    with transport.recording(fault), pytest.raises(redis_client.ConnectionError):
        pipe.execute()
    assert len(transport.calls) == 1
    assert empty_redis.get("count") == b"3000"


def test_killed_process_sends_nothing_more(
    transport: Transport, redis_url: str, empty_redis: redis_client.Redis
) -> None:
    client, other = connect(redis_url), connect(redis_url)
    with transport.recording(Fault(0, Mode.KILLED)), pytest.raises(Killed):
        client.incr("count")
    for send in (lambda: other.incr("count"), lambda: connect(redis_url)):
        with pytest.raises(Killed):
            send()
    assert empty_redis.get("count") == b"1"


def test_other_sockets_are_left_alone(transport: Transport) -> None:
    with (
        transport.recording(Fault(0, Mode.DROPPED)),
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        other = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
        with accepted, other:
            other.sendall(b"hello")
            assert accepted.recv(5) == b"hello"
    assert transport.calls == []


def test_sqs_and_s3_answer_botocore(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    aws = Aws()
    with aws.serving():
        config = Config(s3={"addressing_style": "path"})
        create: Callable[..., Any] = botocore.session.get_session().create_client
        sqs, s3 = (
            create(name, "us-east-1", endpoint_url=aws.url, config=config) for name in ("sqs", "s3")
        )
        queue = aws.url_of("likes")
        sqs.send_message(QueueUrl=queue, MessageBody="one")
        entries = [{"Id": "0", "MessageBody": "two", "DelaySeconds": 9}]
        assert len(sqs.send_message_batch(QueueUrl=queue, Entries=entries)["Successful"]) == 1
        [received] = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10)["Messages"]
        assert received["Body"] == "one"
        queue_attribute = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])[
            "Attributes"
        ]
        assert list(queue_attribute.values()) == ["0", "1", "1"]
        gone = [{"Id": "0", "ReceiptHandle": received["ReceiptHandle"]}]
        sqs.delete_message_batch(QueueUrl=queue, Entries=gone)
        assert [message.body for message in aws.remove_messages("likes", 10)] == ["two"]

        s3.put_object(Bucket="logs", Key="a/b", Body=b"text")
        assert s3.get_object(Bucket="logs", Key="a/b")["Body"].read() == b"text"
        listed = s3.list_objects_v2(Bucket="logs", Prefix="a/")["Contents"]
        assert [item["Key"] for item in listed] == ["a/b"]
        with pytest.raises(s3.exceptions.NoSuchKey):
            s3.get_object(Bucket="logs", Key="a/c")
