"""Queues, what they gave up, and its way back. For admins."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Path

from plaza import operations
from plaza.infra.http import (
    BEARER,
    Limit,
    Page,
    answers,
    api,
    caller_with_role,
    problems,
    serve,
)
from plaza.operations.contract import (
    DeadLetterAnswer,
    QueueAnswer,
    RedriveAnswer,
    RedriveQuestion,
)

QueueName = Annotated[str, Path(pattern=r"^[a-z_]{1,40}$", description="as in `GET /ops/queues`")]

app = api()

_OWN: dict[str, Any] = {"tags": ["operations"], "security": [BEARER]}
_QUEUES = _OWN | {
    "responses": answers(200, Page[QueueAnswer], "all of them, by name") | problems(401, 403)
}
_DEAD = _OWN | {
    "responses": answers(200, Page[DeadLetterAnswer], "some of them, the oldest first")
    | problems(400, 401, 403, 404, 409)
}
_REDRIVE = _OWN | {
    "responses": answers(200, RedriveAnswer, "what was sent back")
    | problems(400, 401, 403, 404, 409)
}


@app.get("/ops/queues", **_QUEUES)
def list_queues() -> Page[QueueAnswer]:
    """The queues: what waits, is in work, is put off, and was given up. For admins."""
    caller_with_role(app, "admin")
    return Page(items=[QueueAnswer.of(one) for one in operations.read_queues()], next=None)


@app.get("/ops/queues/<queue>/dead-letters", **_DEAD)
def list_dead_letters(queue: QueueName, limit: Limit = 20) -> Page[DeadLetterAnswer]:
    """Messages that a queue gave up; SQS chooses which, when there are more. For admins."""
    admin_id = caller_with_role(app, "admin")
    letters = operations.show_dead_letters(queue, limit, by=str(admin_id))
    return Page(items=[DeadLetterAnswer.of(one) for one in letters], next=None)


@app.post("/ops/queues/<queue>/redrives", **_REDRIVE)
def redrive(queue: QueueName, question: RedriveQuestion) -> RedriveAnswer:
    """Send back what a queue gave up, some 500 messages a call. For admins."""
    admin_id = caller_with_role(app, "admin")
    redriven = operations.redrive(queue, str(admin_id), question.ids, question.most)
    return RedriveAnswer.of(redriven)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request of an operator."""
    return serve(app, event, context)
