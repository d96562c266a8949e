"""Queues, what they gave up, and its way back. For admins."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Path

from plaza import operations
from plaza.infra.http import (
    BEARER,
    Limit,
    Page,
    create_api,
    describe_problems,
    describe_response,
    require_caller_with_role,
    serve,
)
from plaza.operations.schemas import (
    DeadLetterResponse,
    QueueResponse,
    RedriveRequest,
    RedriveResponse,
)

QueueName = Annotated[str, Path(pattern=r"^[a-z_]{1,40}$", description="as in `GET /ops/queues`")]

app = create_api()

_OWN: dict[str, Any] = {"tags": ["operations"], "security": [BEARER]}
_QUEUES = _OWN | {
    "responses": describe_response(200, Page[QueueResponse], "all of them, by name")
    | describe_problems(401, 403)
}
_DEAD_LETTERS = _OWN | {
    "responses": describe_response(200, Page[DeadLetterResponse], "some of them, the oldest first")
    | describe_problems(400, 401, 403, 404, 409)
}
_REDRIVE = _OWN | {
    "responses": describe_response(200, RedriveResponse, "what was sent back")
    | describe_problems(400, 401, 403, 404, 409)
}


@app.get("/ops/queues", **_QUEUES)
def list_queues() -> Page[QueueResponse]:
    """The queues: what waits, is in work, is put off, and was given up. For admins."""
    require_caller_with_role(app, "admin")
    return Page(items=[QueueResponse.of(one) for one in operations.read_queues()], next=None)


@app.get("/ops/queues/<queue>/dead-letters", **_DEAD_LETTERS)
def list_dead_letters(queue: QueueName, limit: Limit = 20) -> Page[DeadLetterResponse]:
    """Messages that a queue gave up; SQS chooses which, when there are more. For admins."""
    admin_id = require_caller_with_role(app, "admin")
    letters = operations.list_dead_letters(queue, limit, operator_id=str(admin_id))
    return Page(items=[DeadLetterResponse.of(one) for one in letters], next=None)


@app.post("/ops/queues/<queue>/redrives", **_REDRIVE)
def redrive(queue: QueueName, request: RedriveRequest) -> RedriveResponse:
    """Send back what a queue gave up, some 500 messages a call. For admins."""
    admin_id = require_caller_with_role(app, "admin")
    redriven = operations.redrive(queue, str(admin_id), request.ids, request.limit)
    return RedriveResponse.of(redriven)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request of an operator."""
    return serve(app, event, context)
