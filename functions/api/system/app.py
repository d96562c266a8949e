"""Health, the contract, and the response to requests that no route takes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from plaza.auth.caller_identity import identify
from plaza.infra import health
from plaza.infra.errors import MethodNotAllowed, NotFound
from plaza.infra.http import (
    PUBLIC,
    Response,
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

app = create_api(identify)


class Health(ResponseModel):
    """The state of the stores. Plaza works with limits while some of them are down."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"status": "up", "redis": "up", "mysql": "up", "queue": "up"}]
        }
    )

    status: Annotated[
        Literal["up", "degraded", "down"],
        Field(description="`degraded`: some stores are down. `down`: Plaza does not work."),
    ]
    redis: State
    mysql: State
    queue: State


@app.get(
    "/health",
    tags=["system"],
    security=PUBLIC,
    responses=describe_response(200, Health, "The state of the stores.") | describe_problems(),
)
def get_health() -> Health:
    """Get the state of Redis, MySQL and SQS.

    The state is at most 5 seconds old.
    """
    # If SQS answers about one queue, it is up.
    return Health.model_validate(health.read("reactions"))


@app.get(
    "/openapi.json",
    tags=["system"],
    security=PUBLIC,
    responses=describe_response(200, dict[str, Any], "An OpenAPI 3.1 document.")
    | describe_problems(),
)
def get_contract() -> Response[str]:
    """Get this contract.

    Returns the OpenAPI document of the API.
    """
    return Response(200, "application/json", _CONTRACT)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request. Requests on the $default route match no other route."""
    if event.get("routeKey") == "$default":
        return _refuse(event)
    return serve(app, event, context)


def _refuse(event: dict[str, Any]) -> dict[str, Any]:
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    for pattern, methods in _PATHS:
        if pattern.fullmatch(path):
            allowed = ", ".join(methods)
            error = MethodNotAllowed(f"{path} allows {allowed}, not {method}")
            return refuse(app, event, error, headers={"allow": allowed})
    return refuse(app, event, NotFound(f"Path {path[:200]} does not exist"))
