"""What a stack keeps between its runs: the files of its stores, secrets, messages, the archive.

A directory has ``kept.json`` once a stack that keeps its data has started in it completely. Redis
and MariaDB write their files themselves. What only the emulator's memory has is written when the
stack stops: all messages, and the objects of the archive. A crash of the emulator loses them;
Plaza sends again what was not acknowledged.
"""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

import urllib3

from cli.paths import CommandError
from local.stack.aws import connect
from local.stack.servers import require_binary

LAYOUT = 1
FILE = "kept.json"
MESSAGES = "messages.json"
ARCHIVE = "archive"
NAMES = (FILE, MESSAGES, ARCHIVE, "mysql", "redis")
"""Files and folders that a stop leaves."""
SERVERS = {"redis": "redis-server", "mysql": "mariadbd"}
REDIS_SETTINGS = ("appendonly yes", "appendfsync everysec")
MAX_DELAY_S = 900  # of SQS
MAX_BATCH_BYTES = 200_000  # of SQS: 256 KiB with the attributes
_BATCH = 10


@dataclass
class Kept:
    """``servers``: part -> version of the program that wrote its files last; a part that the stack
    did not start is missing. ``secrets``: logical id -> value. ``ports``: of the API and of the
    web pages, so that a browser that comes back finds its session."""

    servers: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    layout: int = LAYOUT

    @classmethod
    def load(cls, directory: Path) -> Self | None:
        """Return what is kept in a directory, or None. Raises CommandError for a newer layout."""
        try:
            record = json.loads((directory / FILE).read_text())
        except FileNotFoundError:
            return None
        if record.get("layout") != LAYOUT:
            raise CommandError(
                f"the data in {directory} is of another version of Plaza (layout "
                f"{record.get('layout')}, not {LAYOUT}); check that version out, or start empty: "
                "`make fresh`"
            )
        return cls(**record)

    def save(self, directory: Path) -> None:
        write_private(directory / FILE, asdict(self))

    def check(self, servers: Mapping[str, str]) -> None:
        """Raise CommandError unless these programs can read the files."""
        if servers.keys() != self.servers.keys():
            differ = " and ".join(sorted(servers.keys() ^ self.servers.keys()))
            raise CommandError(
                f"the kept data was written with another choice of servers ({differ}): set or "
                "unset PLAZA_REDIS_URL and PLAZA_MYSQL_URL as before, or start empty: `make fresh`"
            )
        for part, version in self.servers.items():
            if _release(servers[part]) < _release(version):
                raise CommandError(
                    f"the kept data was written by {SERVERS[part]} {version}, and this is "
                    f"{servers[part]}, which may not read it; install {version}, or start empty: "
                    "`make fresh`"
                )


def write_private(path: Path, content: dict[str, Any]) -> None:
    """Write JSON atomically; only its owner may read it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(content, indent=2) + "\n")
    draft.replace(path)


def read_version(part: str) -> str:
    """Return the version of the program of ``redis`` or ``mysql``. Raises CommandError."""
    program = SERVERS[part]
    completed = subprocess.run(
        [require_binary(program), "--version"], capture_output=True, text=True, check=False
    )
    match = re.search(r"\d+\.\d+\.\d+", completed.stdout)
    if match is None:
        raise CommandError(f"{program} --version prints no version: {completed.stdout[:200]}")
    return match[0]


def _release(version: str) -> tuple[int, ...]:
    """Return the part of a version within which files are compatible both ways."""
    return tuple(int(number) for number in version.split(".")[:2])


def save_emulated(
    directory: Path, endpoint_url: str, queues: Mapping[str, str], bucket: str
) -> None:
    """Write all messages and archived objects of the emulator, while no consumer receives."""
    by_queue = _read_messages(endpoint_url)
    names = {url.rpartition("/")[2]: name for name, url in queues.items()}
    messages = {names[queue]: sent for queue, sent in by_queue.items() if sent and queue in names}
    write_private(directory / MESSAGES, messages)
    s3, folder = connect("s3", endpoint_url), directory / ARCHIVE
    for key in _list_keys(s3, bucket):
        path = folder / key
        if not path.exists():  # an object of the archive is written once
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}")
            draft.write_bytes(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
            draft.replace(path)


def restore_emulated(
    directory: Path, endpoint_url: str, queues: Mapping[str, str], bucket: str
) -> None:
    """Put archived objects back, and send the messages that were left.

    Their file stays until ``forget_messages``: a start that fails sends them with the next one.
    """
    s3, folder = connect("s3", endpoint_url), directory / ARCHIVE
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            s3.put_object(Bucket=bucket, Key=str(path.relative_to(folder)), Body=path.read_bytes())
    with contextlib.suppress(FileNotFoundError):
        messages = json.loads((directory / MESSAGES).read_text())
        sqs = connect("sqs", endpoint_url)
        for name, sent in messages.items():
            if (url := queues.get(name)) is not None:  # a queue may be gone since
                for batch in _make_batches(sent):
                    sqs.send_message_batch(QueueUrl=url, Entries=batch)


def forget_messages(directory: Path) -> None:
    (directory / MESSAGES).unlink(missing_ok=True)


def exchange_secrets(
    endpoint_url: str, arns: Mapping[str, str], kept: Mapping[str, str]
) -> dict[str, str]:
    """Give secrets (logical id -> ARN) the values that are kept. Returns the values of all."""
    secrets, values = connect("secretsmanager", endpoint_url), {}
    for logical_id, arn in arns.items():
        if logical_id in kept:
            secrets.put_secret_value(SecretId=arn, SecretString=kept[logical_id])
        values[logical_id] = str(secrets.get_secret_value(SecretId=arn)["SecretString"])
    return values


def _read_messages(endpoint_url: str) -> dict[str, list[dict[str, Any]]]:
    """Return name of a queue -> all messages in it, also those that are received or delayed."""
    answer = urllib3.request("GET", f"{endpoint_url}/_ministack/sqs/messages", timeout=30)
    [accounts] = answer.json().values()
    return {
        unquote(url).rpartition("/")[2]: messages
        for regions in accounts.values()
        for queues in regions.values()
        for url, messages in queues.items()
    }


def _make_batches(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of SendMessageBatch; a message that was not due yet keeps its delay."""
    batch: list[dict[str, Any]] = []
    size = 0
    for message in messages:
        bytes_ = len(message["Body"].encode())
        if batch and (len(batch) == _BATCH or size + bytes_ > MAX_BATCH_BYTES):
            yield batch
            batch, size = [], 0
        entry = {"Id": str(len(batch)), "MessageBody": message["Body"]}
        if attributes := message["MessageAttributes"]:
            entry["MessageAttributes"] = attributes
        wait_s = int(message["VisibleAt"] - time.time())
        if message["ReceiveCount"] == 0 and wait_s > 0:
            entry["DelaySeconds"] = min(wait_s, MAX_DELAY_S)
        batch.append(entry)
        size += bytes_
    if batch:
        yield batch


def _list_keys(s3: Any, bucket: str) -> list[str]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [item["Key"] for page in pages for item in page.get("Contents", ())]
