"""What is up, what the contract is, and an answer for every request that it doesn't have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from aws_lambda_powertools.event_handler import Response

from plaza.infra import health, limits
from plaza.infra.errors import MethodNotAllowed, NotFound
from plaza.infra.http import (
    ResponseModel,
    create_api,
    describe_problems,
    describe_response,
    refuse,
    serve,
)

State = Literal["up", "down"]

_CONTRACT = Path(__file__).with_name("openapi.json").read_text()
_PATHS = [
    (re.compile(re.sub(r"\{\w+\}", "[^/]+", path) + "/?"), sorted(m.upper() for m in methods))
    for path, methods in json.loads(_CONTRACT)["paths"].items()
]

app = create_api(limiter=limits.acquire_for_address)


class Health(ResponseModel):
    """What is up. Plaza works, with less, while some of it is down."""

    status: Literal["up", "degraded", "down"]
    redis: State
    mysql: State
    queue: State


@app.get(
    "/health",
    tags=["system"],
    responses=describe_response(200, Health, "what is up") | describe_problems(),
)
def get_health() -> Health:
    """What is up, or was up to 5 seconds ago."""
    # That SQS answers about one queue says that it is up.
    return Health.model_validate(health.read("reactions"))


@app.get(
    "/openapi.json",
    tags=["system"],
    responses=describe_response(200, dict[str, Any], "the contract, OpenAPI 3.1")
    | describe_problems(),
)
def get_contract() -> Response[str]:
    """The contract."""
    return Response(200, "application/json", _CONTRACT)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request; those on the $default route have no other function."""
    if event.get("routeKey") == "$default":
        return _refuse(event)
    return serve(app, event, context)


def _refuse(event: dict[str, Any]) -> dict[str, Any]:
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    for pattern, methods in _PATHS:
        if pattern.fullmatch(path):
            allowed = ", ".join(methods)
            error = MethodNotAllowed(f"{path} takes {allowed}, not {method}")
            return refuse(app, event, error, headers={"allow": allowed})
    return refuse(app, event, NotFound(f"There is nothing at {path[:200]}"))
