"""The functions of the template in this process; each module is named app."""

import os
import re
import sys
from collections.abc import Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from cli.paths import ROOT

_HEADERS = {
    "accept": "*/*",
    "accept-encoding": "gzip, deflate",
    "content-type": "application/json",
    "host": "abcdefghij.execute-api.eu-central-1.amazonaws.com",
    "user-agent": "plaza-app/4.2 (iPhone; iOS 18.1)",
}
_PLAIN = re.compile(r"Bearer plain_(\d+)_([a-z]+)_-*")


class CONTEXT:
    """A context object as Lambda passes it to a handler."""

    function_name = "local"
    function_version = "$LATEST"
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:local"
    memory_limit_in_mb = 512
    aws_request_id = "5a1c4b7e-0000-4000-8000-000000000000"

    @staticmethod
    def get_remaining_time_in_millis() -> int:
        """Return what is left of a time limit of 10 s."""
        return 10_000


def load_function(folder: str, root: Path = ROOT) -> ModuleType:
    """Import the module of a function (``api/shops``) of a checkout again. Raises ImportError."""
    name = "function_" + folder.replace("/", "_")
    spec = spec_from_file_location(name, root / "functions" / folder / "app.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} can't be loaded")
    module = sys.modules[name] = module_from_spec(spec)  # pydantic looks up the module of a model
    spec.loader.exec_module(module)
    return module


def load_open_function(folder: str) -> ModuleType:
    """Import the module of an API function that believes plain tokens and limits no caller, for
    tests and measurements that are not about sessions. Raises ImportError."""
    module = load_function(folder)
    if hasattr(module, "app"):
        module.app.identify = _identify_plain
    return module


def make_plain_token(user_id: int, role: str = "user") -> str:
    """Return a token in the form of a session's, which has the user in plain text."""
    return f"plain_{user_id}_{role}_".ljust(43, "-")


def _identify_plain(header: str | None, address: str, route: str) -> Any:
    from plaza.infra.http.callers import Caller
    from plaza.infra.runtime import clock

    if header is None:
        return Caller()
    match = _PLAIN.fullmatch(header)
    if match is None:
        return Caller(refusal="unknown")
    return Caller(int(match[1]), match[2], signed_in_at_s=int(clock.now_s()))


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
    adds and a token of ``make_plain_token``."""
    # The interpreter of the functions lacks the packages of these modules.
    from local.stack import gateway
    from local.stack.routes import Route

    path_parameters = {name: str(value) for name, value in parameters.items()}
    method, _, pattern = route.partition(" ")
    path = pattern.format(**path_parameters)
    headers = _HEADERS | {"authorization": f"Bearer {make_plain_token(user_id)}"}
    request = gateway.Request(method, path, headers, (), b"", "203.0.113.7")
    match = gateway.Match(Route(route, "", "2.0"), path_parameters)
    return gateway.make_event(
        request, match, api_id="abcdefghij", account="123456789012", now_s=1_743_760_800
    )
