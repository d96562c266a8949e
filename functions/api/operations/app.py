"""The state of the stores, keys, queues and dead letters, and the reach. For admins."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Path

from plaza import operations
from plaza.auth.caller_identity import identify
from plaza.infra import health
from plaza.infra.http import (
    ADMIN,
    Api,
    Limit,
    Page,
    describe_problems,
    describe_response,
    require_caller,
    serve,
)
from plaza.keyspace import key_scan
from plaza.keyspace.schemas import KeysResponse
from plaza.operations.schemas import (
    DeadLetterResponse,
    HealthResponse,
    QueueResponse,
    RedriveRequest,
    RedriveResponse,
)
from plaza.reach import report
from plaza.reach.schemas import Days, ReachResponse

QueueName = Annotated[
    str,
    Path(pattern=r"^[a-z_]{1,40}$", description="Name of a queue, as `GET /ops/queues` lists it."),
]

app = Api(identify)

_ADMIN: dict[str, Any] = {"tags": ["operations"], "security": ADMIN}
_HEALTH = _ADMIN | {
    "responses": describe_response(200, HealthResponse, "The state of the stores.")
    | describe_problems(401, 403)
}
_KEYS = _ADMIN | {
    "responses": describe_response(200, KeysResponse, "The keys.") | describe_problems(401, 403)
}
_REACH = _ADMIN | {
    "responses": describe_response(200, ReachResponse, "The visitors.")
    | describe_problems(400, 401, 403)
}
_QUEUES = _ADMIN | {
    "responses": describe_response(200, Page[QueueResponse], "All queues, by name.")
    | describe_problems(401, 403)
}
_DEAD_LETTERS = _ADMIN | {
    "responses": describe_response(200, Page[DeadLetterResponse], "Dead letters, oldest first.")
    | describe_problems(400, 401, 403, 404, operations.DlqHasConsumer)
}
_REDRIVE = _ADMIN | {
    "responses": describe_response(200, RedriveResponse, "The result of the redrive.")
    | describe_problems(400, 401, 403, 404, operations.DlqHasConsumer)
}


@app.get("/ops/health", **_HEALTH)
def get_store_health() -> HealthResponse:
    """Get the state of Redis, MySQL and SQS.

    Asks each of them once. A 503 means that the caller's session could not be checked, because
    Redis and MySQL are down. For admins.
    """
    # If SQS answers about one queue, it is up.
    return HealthResponse.model_validate(health.check("reactions"))


@app.get("/ops/keys", **_KEYS)
def get_keys() -> KeysResponse:
    """Get the largest and the hottest keys of Redis.

    Large keys are those of the last complete scan, which takes some minutes. For admins.
    """
    return KeysResponse.of(key_scan.read_report(), key_scan.read_hot_keys())


@app.get("/ops/reach", **_REACH)
def get_reach(days: Days = 7) -> ReachResponse:
    """Get the numbers of visitors.

    Returns estimates, within about 1 %, of who viewed posts: users, anonymous ids, and networks of
    callers without an id. For admins.
    """
    return ReachResponse.of(report.read_reach(days))


@app.get("/ops/queues", **_QUEUES)
def list_queues() -> Page[QueueResponse]:
    """List queues.

    Returns the state of each queue that has a dead-letter queue. For admins.
    """
    return Page(items=[QueueResponse.of(one) for one in operations.read_queues()], next=None)


@app.get("/ops/queues/<queue>/dead-letters", **_DEAD_LETTERS)
def list_dead_letters(queue: QueueName, limit: Limit = 20) -> Page[DeadLetterResponse]:
    """List the dead letters of a queue.

    Returns messages that a queue dead-lettered. If there are more than `limit`, SQS chooses which.
    The messages stay where they are. For admins.
    """
    admin_id = require_caller(app)
    letters = operations.list_dead_letters(queue, limit, operator_id=str(admin_id))
    return Page(items=[DeadLetterResponse.of(one) for one in letters], next=None)


@app.post("/ops/queues/<queue>/redrives", **_REDRIVE)
def redrive_dead_letters(queue: QueueName, request: RedriveRequest) -> RedriveResponse:
    """Redrive the dead letters of a queue.

    Moves dead letters back to the queue, about 500 messages a request: repeat it while `remaining`
    is above 0. A message may be processed twice, which does no harm. For admins.
    """
    admin_id = require_caller(app)
    redriven = operations.redrive(queue, str(admin_id), request.ids, request.limit)
    return RedriveResponse.of(redriven)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request of an operator."""
    return serve(app, event, context)
