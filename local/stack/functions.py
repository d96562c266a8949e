"""The functions of the template in this process; each module is named app."""

import os
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from local.paths import ROOT


def load_function(folder: str) -> ModuleType:
    """Import the module of a function (``api/shops``) anew. Raises ImportError."""
    name = "function_" + folder.replace("/", "_")
    spec = spec_from_file_location(name, ROOT / "functions" / folder / "app.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} can't be loaded")
    module = sys.modules[name] = module_from_spec(spec)  # pydantic looks up the module of a model
    spec.loader.exec_module(module)
    return module


def become_function(environment: Mapping[str, str]) -> None:
    """Give a new process the settings of a function, and discard its log."""
    os.environ.update(environment)
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - to the end of the process


def make_record(number: int, body: str, sent_ms: int) -> dict[str, Any]:
    """Return a message as Lambda passes it to a consumer, received for the first time."""
    return {
        "messageId": str(number),
        "receiptHandle": str(number),
        "body": body,
        "attributes": {"SentTimestamp": str(sent_ms), "ApproximateReceiveCount": "1"},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
    }


def make_api_event(route: str, user_id: int, /, **parameters: int | str) -> dict[str, Any]:
    """Return the event of ``PUT /posts/{post_id}/likes/me`` by a user, with all that API Gateway
    adds."""
    path_parameters = {name: str(value) for name, value in parameters.items()}
    method, _, pattern = route.partition(" ")
    path = pattern.format(**path_parameters)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            "accept-encoding": "gzip, deflate",
            "authorization": "Bearer 3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "content-length": "0",
            "content-type": "application/json",
            "host": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
            "user-agent": "plaza-app/4.2 (iPhone; iOS 18.1)",
            "x-amzn-trace-id": "Root=1-67f0c0de-0123456789abcdef01234567",
            "x-forwarded-for": "203.0.113.7",
            "x-forwarded-port": "443",
            "x-forwarded-proto": "https",
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "abcdefghij",
            "authorizer": {"lambda": {"user_id": str(user_id), "role": "user"}},
            "domainName": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
            "domainPrefix": "abcdefghij",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "plaza-app/4.2 (iPhone; iOS 18.1)",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": route,
            "stage": "$default",
            "time": "04/Apr/2025:10:00:00 +0000",
            "timeEpoch": 1743760800000,
        },
        "isBase64Encoded": False,
    }
    if path_parameters:
        event["pathParameters"] = path_parameters
    return event
