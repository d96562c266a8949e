"""The sample events of events/: JSON as AWS sends it, from what is specific to each.

``make generate`` writes it from events/samples.yaml, and one event for each scheduled function. A
policy test fails while a file is out of date. ``tools.samples`` makes copies that a stack accepts.
"""

import argparse
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from cli.paths import ROOT
from plaza.infra.http.routes import BEARER, OPTIONAL, PUBLIC
from tools.template.functions import FUNCTIONS, list_functions, name_function
from tools.template.routes import Operation, read_operations

EVENTS = ROOT / "events"
DECLARED = EVENTS / "samples.yaml"
USER, OPERATOR = "7 user", "7 admin"
_ACCOUNT, _REGION = "123456789012", "us-east-1"
_AT_MS = 1_795_169_730_000  # 2026-11-20T10:15:30Z


def main(args: argparse.Namespace) -> None:
    files = make_files()
    for old in set(EVENTS.glob("*.json")) - set(files):
        old.unlink()
    for file, text in files.items():
        file.write_text(text)


def make_files() -> dict[Path, str]:
    """Return file -> its text. Raises ValueError for a sample of nothing."""
    return {
        EVENTS / f"{name}.json": json.dumps(event, indent=2) + "\n"
        for name, event in _make_events()
    }


def find_operation(name: str) -> Operation | None:
    """Return the operation of ``content.get_post`` or ``content.get_post_hidden``; None for a
    request that no route takes."""
    folder, case = name.split(".")
    operations = [
        operation
        for operation in read_operations()
        if operation.function == name_function(folder, "api")
        and f"{case}_".startswith(f"{operation.name}_")
    ]
    return max(operations, key=lambda operation: len(operation.name), default=None)


def _make_events() -> Iterator[tuple[str, Any]]:
    for name, declared in yaml.safe_load(DECLARED.read_text()).items():
        folder = name.partition(".")[0]
        if (FUNCTIONS / "api" / folder).is_dir():
            yield name, _make_request(name, **(declared or {}))
        elif (FUNCTIONS / "queue" / folder).is_dir():
            yield name, _make_batch(folder, declared)
        else:
            yield name, declared
    for function in list_functions("schedule", {}):
        yield f"{function.folder}.schedule", _make_schedule(function.name)


def _make_request(
    name: str,
    *,
    request: str = "",
    caller: str | None = "",
    path: Mapping[str, Any] | None = None,
    query: Mapping[str, Any] | None = None,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return a request. ``request``: method and path, if no route takes it. ``caller``: id and
    role; by default one whom the route admits; null for a request without a session."""
    operation = find_operation(name)
    if operation is None and not request:
        raise ValueError(f"{name} is a sample of no operation")
    method, _, raw_path = request.partition(" ")
    key, parameters = "$default", {k: str(value) for k, value in (path or {}).items()}
    if operation is not None:
        method, key = operation.method, f"{operation.method} {operation.path}"
        raw_path = operation.path.format_map(parameters)
        if caller == "":
            caller = _caller_of(operation)
    text = None if body is None else json.dumps(body)
    values = {k: str(value) for k, value in (query or {}).items()}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": key,
        "rawPath": raw_path,
        "rawQueryString": "&".join(f"{k}={quote(value, safe=',:')}" for k, value in values.items()),
        "headers": {
            "accept": "application/json",
            "host": "plaza.example",
            "user-agent": "plaza-app/1.0",
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
            **_authorize(caller),
            **({} if text is None else {"content-type": "application/json"}),
            **({} if text is None else {"content-length": str(len(text.encode()))}),
            **(headers or {}),
        },
        "requestContext": {
            "accountId": _ACCOUNT,
            "apiId": "plazaapi01",
            "domainName": "plaza.example",
            "domainPrefix": "plaza",
            "http": {
                "method": method,
                "path": raw_path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "plaza-app/1.0",
            },
            "requestId": "Jd3hQjEuoAMEMSg=",
            "routeKey": key,
            "stage": "$default",
            "time": "20/Nov/2026:10:15:30 +0000",
            "timeEpoch": _AT_MS,
        },
        "isBase64Encoded": False,
    }
    if values:
        event["queryStringParameters"] = values
    if parameters:
        event["pathParameters"] = parameters
    if text is not None:
        event["body"] = text
    return event


def _caller_of(operation: Operation) -> str | None:
    if operation.security == PUBLIC:
        return None
    return USER if operation.security in (BEARER, OPTIONAL) else OPERATOR


def _authorize(caller: str | None) -> dict[str, str]:
    """Return the header with a token that names its user in plain text, as tests accept it."""
    if not caller:
        return {}
    user_id, role = caller.split()
    return {"authorization": "Bearer " + f"plain_{user_id}_{role}_".ljust(43, "-")}


def _make_batch(folder: str, bodies: list[Any]) -> dict[str, Any]:
    """Return messages of the queue of a consumer. A body that is text is sent as it is."""
    [function] = [f for f in list_functions("queue", {}) if f.folder == folder]
    texts = [
        body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
        for body in bodies
    ]
    return {
        "Records": [
            _make_record(number, text, function.queues.consumed)
            for number, text in enumerate(texts, 1)
        ]
    }


def _make_record(number: int, body: str, queue: str) -> dict[str, Any]:
    return {
        "messageId": f"00000000-0000-4000-8000-{number:012}",
        "receiptHandle": f"AQEB-receipt-{number}",
        "body": body,
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": str(_AT_MS + 123),
            "SenderId": "AROAEXAMPLE:plaza",
            "ApproximateFirstReceiveTimestamp": str(_AT_MS + 456),
        },
        "messageAttributes": {},
        "md5OfBody": hashlib.md5(body.encode(), usedforsecurity=False).hexdigest(),
        "eventSource": "aws:sqs",
        "eventSourceARN": f"arn:aws:sqs:{_REGION}:{_ACCOUNT}:plaza-{queue}",
        "awsRegion": _REGION,
    }


def _make_schedule(function: str) -> dict[str, Any]:
    return {
        "version": "0",
        "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": _ACCOUNT,
        "time": "2026-11-20T10:15:00Z",
        "region": _REGION,
        "resources": [f"arn:aws:scheduler:{_REGION}:{_ACCOUNT}:schedule/default/plaza-{function}"],
        "detail": "{}",
    }
