"""The stores, keys, queues, schedules, dead letters, switches and the reach."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.event_log import read_events
from plaza.core.event_log.model import EventsGone
from plaza.core.event_log.schemas import After, EventLimit, EventsResponse, read_offset
from plaza.core.reach import report
from plaza.core.reach.schemas import Days, ReachResponse
from plaza.core.switches import SwitchesChanged, change_switches
from plaza.core.switches.schemas import (
    LevelRequest,
    SwitchChangeResponse,
    SwitchesRequest,
    SwitchesResponse,
)
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.requests import MAX_ID
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import (
    ADMIN,
    OPERATOR,
    SALES_OR_OPERATOR,
    CreatesAt,
    FreshSignIn,
    Responses,
)
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.jobs import health
from plaza.infra.runtime.errors import NotFound
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.operate.keyspace import key_scan
from plaza.operate.keyspace.schemas import KeysResponse
from plaza.operate.operations import DlqHasConsumer, breakers, gauges, lag, queue_admin
from plaza.operate.operations.schemas import (
    BreakersResponse,
    DeadLetterResponse,
    HealthResponse,
    LagResponse,
    Minutes,
    PurgeRequest,
    PurgeResponse,
    QueueName,
    QueueResponse,
    RedriveRequest,
    RedriveResponse,
    SeriesResponse,
    SweepRequest,
    SweepResponse,
)
from plaza.people.auth import operate_server_keys
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.server_key_schemas import (
    NewServerKeyResponse,
    ServerKeyId,
    ServerKeyRequest,
    ServerKeyResponse,
)
from plaza.people.auth.server_keys import TooManyServerKeys

if TYPE_CHECKING:
    from plaza.operate.operator_commands import sweep_now
else:  # few requests need it
    sweep_now = LazyModule("plaza.operate.operator_commands.sweep_now")

app = PlazaResolver(identify, tag="operations")

_CHANGED = Responses("The new switches.", SwitchesChanged)


@app.get("/ops/health", security=OPERATOR, responses=Responses("The state of the stores."))
def get_store_health() -> HealthResponse:
    """Get the state of Redis, MySQL and SQS.

    Asks each of them once. A 503 means that the caller's session could not be checked, because
    Redis and MySQL are down. For operators.
    """
    # If SQS answers about one queue, it is up.
    return HealthResponse.model_validate(health.check("reactions"))


@app.get("/ops/keys", security=OPERATOR, responses=Responses("The keys."))
def get_keys() -> KeysResponse:
    """Get the largest and the hottest keys of Redis.

    Large keys are as of the last complete scan, which takes some minutes. For operators.
    """
    return KeysResponse.of(key_scan.read_report(), key_scan.read_hot_keys())


@app.get("/ops/reach", security=SALES_OR_OPERATOR, responses=Responses("The visitors."))
def get_reach(days: Days = 7) -> ReachResponse:
    """Get the numbers of visitors.

    Returns estimates, within about 1 %, of who viewed posts: users, anonymous ids, and networks of
    callers without an id. For sales and operators.
    """
    return ReachResponse.of(report.read_reach(days))


@app.get(
    "/ops/events", security=ADMIN, responses=Responses("The events after a cursor.", EventsGone)
)
def list_events(after: After = None, limit: EventLimit = 100) -> EventsResponse:
    """List what happened, for other systems.

    Returns events of the last eight days: reactions and follows in the order in which they were
    stored, and so comments, orders and reports, each at least once. Repeat the request with `next`
    as `after`, at once while `has_more`, else after some seconds. For admins, and for keys with
    the scope `events`.
    """
    return EventsResponse.of(read_events.read_page(read_offset(after), limit))


@app.get("/ops/queues", security=OPERATOR, responses=Responses("All queues, by name."))
def list_queues() -> Page[QueueResponse]:
    """List queues.

    Returns the state of each queue that has a dead-letter queue. For operators.
    """
    return Page(items=[QueueResponse.of(queue) for queue in queue_admin.read_queues()], next=None)


@app.get(
    "/ops/queues/<queue>/dead-letters",
    security=OPERATOR,
    responses=Responses("Dead letters, oldest first.", NotFound, DlqHasConsumer),
)
def list_dead_letters(queue: QueueName, limit: Limit = 20) -> Page[DeadLetterResponse]:
    """List the dead letters of a queue.

    Returns messages that a queue dead-lettered. If there are more than `limit`, SQS chooses which.
    The messages stay where they are. For operators.
    """
    admin_id = require_caller(app)
    letters = queue_admin.list_dead_letters(queue, limit, operator_id=str(admin_id))
    return Page(items=[DeadLetterResponse.of(letter) for letter in letters], next=None)


@app.post(
    "/ops/queues/<queue>/redrives",
    security=OPERATOR,
    responses=Responses("The result of the redrive.", NotFound, DlqHasConsumer),
)
def redrive_dead_letters(queue: QueueName, request: RedriveRequest) -> RedriveResponse:
    """Redrive the dead letters of a queue.

    Moves dead letters back to the queue, about 500 messages a request: repeat it while `remaining`
    is above 0. A message may be processed twice, which does no harm. For operators.
    """
    admin_id = require_caller(app)
    redriven = queue_admin.redrive(queue, str(admin_id), request.ids, request.limit)
    return RedriveResponse.of(redriven)


@app.post(
    "/ops/queues/<queue>/purges",
    security=OPERATOR,
    responses=Responses("The result of the purge.", NotFound, DlqHasConsumer),
)
def purge_dead_letters(queue: QueueName, request: PurgeRequest) -> PurgeResponse:
    """Purge dead letters of a queue.

    Deletes the dead letters with these ids for ever, such as messages that no version can read.
    Repeat it for `missing` ids, which SQS may have hidden from this request. For operators.
    """
    admin_id = require_caller(app)
    return PurgeResponse.of(queue_admin.purge(queue, str(admin_id), request.ids))


@app.post("/ops/sweeps", security=OPERATOR, responses=Responses("The result of the sweep."))
def sweep_outboxes(request: SweepRequest) -> SweepResponse:
    """Sweep the outboxes now.

    Sends entries of outboxes again that MySQL has not confirmed, as each minute's sweep does, for a
    few seconds: repeat it while a number is above 0. Events have versions, so late and repeated
    ones are harmless. For operators.
    """
    admin_id = require_caller(app)
    swept = sweep_now.sweep_now(request.everything, operator_id=str(admin_id))
    return SweepResponse(reactions=swept["reactions"], checkins=swept.get("checkins", 0))


@app.get("/ops/breakers", security=OPERATOR, responses=Responses("A report of each dependency."))
def get_breakers() -> BreakersResponse:
    """Get the circuit breakers of all processes.

    Each process has a breaker for each dependency, and reports its changes with its next command to
    Redis. While Redis is unavailable only the process that answers is known. For operators.
    """
    return BreakersResponse.of(*breakers.read_breakers())


@app.get("/ops/lag", security=OPERATOR, responses=Responses("The lag."))
def get_lag() -> LagResponse:
    """Get the lag of queues, outboxes and schedules.

    Returns what is left to do and how old it is, and the last run of each schedule. What cannot be
    read now is missing or null. For operators.
    """
    return LagResponse.of(lag.read_lag())


@app.get("/ops/series", security=OPERATOR, responses=Responses("The series."))
def list_series(minutes: Minutes = 60) -> SeriesResponse:
    """List gauges by minute, for plots.

    Gauges are sampled once a minute and kept for a day. For operators.
    """
    first_minute, series = gauges.read_series(minutes)
    return SeriesResponse.of(first_minute, minutes, series)


@app.get("/ops/switches", security=OPERATOR, responses=Responses("The current switches."))
def get_switches() -> SwitchesResponse:
    """Get the switches.

    Returns what operators stopped, limited or slowed down, and the newest change. For operators.
    """
    return SwitchesResponse.of(change_switches.read_newest())


@app.put("/ops/switches", security=OPERATOR, responses=_CHANGED)
def replace_switches(request: SwitchesRequest) -> SwitchesResponse:
    """Replace the switches.

    Replaces the switches that are sent, for all requests 2 s later. If another operator changed
    them since `version`, the response is a 409 and nothing is changed. A repeat changes nothing.
    For operators.
    """
    changed = change_switches.replace_switches(
        request.version, request.switches.to_values(), request.reason, require_caller(app)
    )
    return SwitchesResponse.of(changed)


@app.put("/ops/switches/level", security=OPERATOR, responses=_CHANGED)
def replace_level(request: LevelRequest) -> SwitchesResponse:
    """Set a level of degradation.

    Replaces all switches by the level's; `stopped_sales` stays. Otherwise as
    `PUT /ops/switches`. For operators.
    """
    changed = change_switches.set_level(
        request.version, request.level, request.reason, require_caller(app)
    )
    return SwitchesResponse.of(changed)


@app.get("/ops/switches/changes", security=OPERATOR, responses=Responses("A page of changes."))
def list_switch_changes(limit: Limit = 20, cursor: Cursor = None) -> Page[SwitchChangeResponse]:
    """List the changes of the switches.

    Newest first, each with the switches before and after it. For operators.
    """
    below = unpack_cursor(cursor, (int,))[0] if cursor else MAX_ID
    page, last = change_switches.list_changes(below, limit)
    return Page(
        items=[SwitchChangeResponse.of(change) for change in page],
        next=pack_cursor(last) if last else None,
    )


@app.get(
    "/ops/server-keys",
    security=OPERATOR,
    responses=Responses("All keys, valid ones first. `next` is null."),
)
def list_server_keys() -> Page[ServerKeyResponse]:
    """List the keys of servers.

    Returns up to 1,000 keys without their secrets, ended ones, too. For operators.
    """
    listed = operate_server_keys.list_server_keys()
    return Page(items=[ServerKeyResponse.model_validate(key) for key in listed], next=None)


@app.post(
    "/ops/server-keys",
    security=OPERATOR,
    middlewares=[CreatesAt("/ops/server-keys"), FreshSignIn()],
    responses=Responses({201: "The key, this once."}, TooManyServerKeys),
)
def create_server_key(request: ServerKeyRequest) -> tuple[NewServerKeyResponse, int]:
    """Make a key of a server.

    The key is in this response only: do not repeat a request whose response is lost, but end its
    key. Two keys of a name are valid at a time. Needs a sign-in within five minutes. For operators.
    """
    key_id, key = operate_server_keys.make_server_key(
        request.name,
        set(request.scopes),
        request.requests_per_s,
        operator_id=str(require_caller(app)),
    )
    return NewServerKeyResponse(key_id=key_id, key=key), 201


@app.delete(
    "/ops/server-keys/<key_id>",
    security=OPERATOR,
    responses=Responses({204: "Ended; processes accept it for a minute more."}, NotFound),
)
def delete_server_key(key_id: ServerKeyId) -> tuple[None, int]:
    """End a key of a server.

    Idempotent. For operators.
    """
    operate_server_keys.end_server_key(key_id, operator_id=str(require_caller(app)))
    return None, 204


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request of an operator."""
    return app.resolve(event, context)
