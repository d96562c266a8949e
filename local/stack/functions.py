"""The functions of the template in this process; each module is named app."""

import os
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

from local.paths import ROOT

_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "authorization": "Bearer 3q2-7wAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "content-type": "application/json",
    "host": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
    "user-agent": "plaza-app/4.2 (iPhone; iOS 18.1)",
}


def load_function(folder: str) -> ModuleType:
    """Import the module of a function (``api/shops``) again. Raises ImportError."""
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
    # The interpreter of the functions lacks the packages of these modules.
    from local.stack import gateway
    from local.stack.routes import Route

    path_parameters = {name: str(value) for name, value in parameters.items()}
    method, _, pattern = route.partition(" ")
    path = pattern.format(**path_parameters)
    request = gateway.Request(method, path, _HEADERS, (), b"", "203.0.113.7")
    match = gateway.Match(Route(route, "", "2.0", None), path_parameters)
    event = gateway.make_event(
        request, match, api_id="abcdefghij", account="123456789012", now_s=1_743_760_800
    )
    event["requestContext"]["authorizer"] = {"lambda": {"user_id": str(user_id), "role": "user"}}
    return event
