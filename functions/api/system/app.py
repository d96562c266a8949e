"""Liveness, the contract, and the response to requests that no route takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import ConfigDict

from plaza.infra.http.requests import JSON, as_get
from plaza.infra.http.resolver import PlazaResolver
from plaza.infra.http.responses import SECURITY_HEADERS, drop_body
from plaza.infra.http.routes import PUBLIC, BodyOf, Held, Responses
from plaza.infra.http.schemas import ResponseModel
from plaza.infra.runtime.observability import logger, metrics, read_request_id
from plaza.people.auth.caller_identity import identify

# Without its indentation: a load balancer passes 1 MB, each quotation mark counted twice.
_CONTRACT = "".join(
    line.lstrip() for line in Path(__file__).with_name("openapi.json").read_text().split("\n")
)

_HEALTH: dict[str, Any] = {
    "statusCode": 200,
    "headers": {"content-type": JSON, "cache-control": "max-age=5", **SECURITY_HEADERS},
    "body": json.dumps({"status": "up"}),
}

app = PlazaResolver(identify, tag="system", paths=json.loads(_CONTRACT)["paths"])


class Health(ResponseModel):
    """Plaza answers. Says nothing about the stores."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "up"}]})

    status: Literal["up"]


@app.get(
    "/health",
    security=PUBLIC,
    middlewares=[Held(False)],
    responses={200: {"description": "Plaza answers.", "content": {JSON: {"model": Health}}}},
)
def get_health() -> Health:
    """Check that Plaza answers.

    A constant answer for load balancers and probes, whatever the query: it asks no store, and is
    not limited. `GET /ops/health` has the state of the stores.
    """
    return Health(status="up")


@app.get(
    "/openapi.json",
    security=PUBLIC,
    middlewares=[Held(False)],
    responses=Responses("An OpenAPI 3.1 document."),
)
def get_contract() -> Annotated[str, BodyOf(dict[str, Any])]:
    """Get this contract.

    Returns the OpenAPI document of the API.
    """
    return _CONTRACT


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request. Requests on the $default route match no other route."""
    if "routeKey" not in event:
        from plaza.infra.http import balancer_events

        return balancer_events.serve(tuple(app.endpoints), event, context, handler)
    if as_get(event)["routeKey"] == "GET /health":  # constant: neither limited nor logged
        request_id = read_request_id(event)
        named = {} if request_id is None else {"x-request-id": request_id}
        return drop_body(event, {**_HEALTH, "headers": {**_HEALTH["headers"], **named}})
    return app.resolve(event, context)
