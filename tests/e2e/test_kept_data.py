"""What ``make run`` keeps: after a crash, and of what only the emulator has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from cli.paths import ROOT
from local.stack import deployment, kept
from local.stack.kept import Kept
from local.stack.stack import Stack
from tests.e2e.client import Client, connect, wait_until

START_S = 300
STOP_S = 60


@contextmanager
def run_up(directory: Path) -> Iterator[tuple[subprocess.Popen[str], Stack]]:
    """Run ``python -m local up`` as `make run` does; yields when the stack is complete."""
    command = [sys.executable, "-m", "local", "--dir", str(directory), "up", "--no-demo"]
    screen = directory.parent / f"{uuid4().hex}.txt"
    # Without the servers of the integration tests that ran in this process, whose data is not kept.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PLAZA_")}
    with screen.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=out, text=True)
    try:
        wait_until(
            "the stack runs",
            lambda: " Plaza " in screen.read_text() or process.poll() is not None,
            START_S,
        )
        assert process.poll() is None, screen.read_text()
        yield process, Stack.load(directory)
    finally:
        process.terminate()
        process.wait(STOP_S)


def token_of(directory: Path, user_id: int) -> str:
    command = [sys.executable, "-m", "local", "--dir", str(directory), "token", "--user"]
    completed = subprocess.run(
        [*command, str(user_id)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return completed.stdout.strip()


@pytest.mark.deep
def test_users_posts_and_sessions_survive_a_kill_and_the_next_run_finds_them(
    tmp_path: Path,
) -> None:
    directory = tmp_path / "kept"
    with run_up(directory) as (process, stack):
        first = stack
        secrets = Kept.load(directory)
        client = Client(stack.base_url, token_of(directory, 7))
        made = client("POST", "/posts", {"kind": "note", "title": "Kept?", "body": "Yes."})
        assert made.status == 201
        path = f"/posts/{made.json['id']}"
        assert client("PUT", f"{path}/likes/me").json["likes"] == 1
        process.kill()
        process.wait()
        connect.cache_clear()  # connections to the killed one
        with run_up(directory) as (_, stack):  # at once: what is left of the killed one ends
            assert (stack.base_url, stack.web_url) == (first.base_url, first.web_url)
            post = client("GET", path)
            assert (post.status, post.json["likes"], post.json["mine"]["liked"]) == (200, 1, True)
            assert client("PUT", f"{path}/likes/me").json["changed"] is False
            arns = deployment.read_secrets(stack.aws_endpoint_url)
            values = kept.exchange_secrets(stack.aws_endpoint_url, arns, {})
            assert secrets is not None
            # The keys of issuers are read again meanwhile.
            assert values["AuthSecret"] == secrets.secrets["AuthSecret"] != ""
            audit = [sys.executable, "-m", "local", "--dir", str(directory), "audit", "--wait"]
            assert subprocess.run(audit, cwd=ROOT, check=False, stdout=2).returncode == 0
    left = {entry.name for entry in directory.iterdir()} - {"lock", "end-lock", "logs"}
    assert left == set(kept.NAMES) - {kept.ARCHIVE}
    assert Stack(directory).empty()
    assert {entry.name for entry in directory.iterdir()} == {"lock", "end-lock", "logs"}


def test_messages_and_archived_objects_are_put_back(stack: Stack, tmp_path: Path) -> None:
    sqs, s3, name = stack.connect("sqs"), stack.connect("s3"), f"kept-{uuid4().hex}"
    before, after = (sqs.create_queue(QueueName=f"{name}-{n}")["QueueUrl"] for n in "12")
    buckets = [f"{name}-1", f"{name}-2"]
    for bucket in buckets:
        s3.create_bucket(Bucket=bucket)
    s3.put_object(Bucket=buckets[0], Key="log/2026/day=1.jsonl", Body=b"all of it")
    sent = {f"message {n}" for n in range(12)}
    for body in sent:
        attributes = {"kind": {"DataType": "String", "StringValue": "like"}}
        sqs.send_message(QueueUrl=before, MessageBody=body, MessageAttributes=attributes)
    sqs.receive_message(QueueUrl=before, MaxNumberOfMessages=3)  # these are in flight

    kept.save_emulated(tmp_path, stack.aws_endpoint_url, {"mine": before}, buckets[0])
    assert list(json.loads((tmp_path / kept.MESSAGES).read_text())) == ["mine"]
    kept.restore_emulated(tmp_path, stack.aws_endpoint_url, {"mine": after}, buckets[1])

    received: dict[str, str] = {}
    deadline_s = time.monotonic() + 30
    while len(received) < len(sent) and time.monotonic() < deadline_s:
        answer = sqs.receive_message(
            QueueUrl=after, MaxNumberOfMessages=10, MessageAttributeNames=["All"]
        )
        for message in answer.get("Messages", ()):
            received[message["Body"]] = message["MessageAttributes"]["kind"]["StringValue"]
    assert received == dict.fromkeys(sent, "like")
    archived = s3.get_object(Bucket=buckets[1], Key="log/2026/day=1.jsonl")["Body"].read()
    assert archived == b"all of it"


def test_a_second_secret_gets_the_kept_value(stack: Stack) -> None:
    secrets = stack.connect("secretsmanager")
    arn = secrets.create_secret(Name=f"kept-{uuid4().hex}", SecretString="new")["ARN"]
    url, arns = stack.aws_endpoint_url, {"AuthSecret": arn}
    assert kept.exchange_secrets(url, arns, {"Other": "x"}) == {"AuthSecret": "new"}
    assert kept.exchange_secrets(url, arns, {"AuthSecret": "old"}) == {"AuthSecret": "old"}
    assert secrets.get_secret_value(SecretId=arn)["SecretString"] == "old"
