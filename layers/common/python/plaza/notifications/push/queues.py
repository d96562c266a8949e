"""The queues of push messages: what is to be pushed, and requests to push services."""

from __future__ import annotations

from typing import Annotated, cast

from plaza.infra.queues.announcements import Notice
from plaza.infra.queues.messages import InvalidMessage, message_codec
from plaza.infra.queues.queue import Queue
from plaza.infra.queues.retries import RetryPolicy
from plaza.infra.runtime.codec import ID, VERSION, Meta, Struct
from plaza.notifications.push.model import (
    MAX_ENDPOINT,
    Kind,
    PushRequest,
    PushTask,
    Subscription,
)

MAX_USERS = 100  # in a message
_HASH = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
_Many = Meta(max_length=MAX_USERS)
_Key = Annotated[str, Meta(min_length=1, max_length=100)]


class _TaskBody(Struct, frozen=True, omit_defaults=True):
    users: Annotated[tuple[ID, ...], _Many] = ()
    notices: Annotated[tuple[tuple[Kind, ID, ID], ...], _Many] = ()
    ended: Annotated[tuple[tuple[ID, _HASH], ...], _Many] = ()


def _pack_task(task: PushTask) -> _TaskBody:
    ended = tuple((user_id, endpoint.hex()) for user_id, endpoint in task.ended)
    notices = tuple((cast(Kind, n.kind), n.user_id, n.subject_id) for n in task.notices)
    return _TaskBody(tuple(task.users), notices, ended)


def _unpack_task(body: _TaskBody) -> PushTask:
    if not (body.users or body.notices or body.ended):
        raise InvalidMessage("nothing to push")
    ended = tuple((user_id, bytes.fromhex(endpoint)) for user_id, endpoint in body.ended)
    return PushTask(body.users, tuple(Notice(*notice) for notice in body.notices), ended)


class _RequestBody(Struct, frozen=True):
    user_id: ID
    endpoint: Annotated[str, Meta(min_length=1, max_length=MAX_ENDPOINT)]
    public_key: _Key
    auth_secret: _Key
    topic: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{32}$")]
    payload: Annotated[str, Meta(max_length=3_000)]
    made_s: VERSION


def _pack_request(request: PushRequest) -> _RequestBody:
    user_id, subscription, topic, payload, made_s = request
    return _RequestBody(user_id, *subscription, topic, payload, made_s)


def _unpack_request(body: _RequestBody) -> PushRequest:
    subscription = Subscription(body.endpoint, body.public_key, body.auth_secret)
    return PushRequest(body.user_id, subscription, body.topic, body.payload, body.made_s)


PUSHES: Queue[PushTask] = Queue(
    message_codec("pushes", _TaskBody, _unpack_task, _pack_task),
    batch_size=1,
    retention_days=4,
)
"""What is to be pushed; notifications consumes it."""

PUSH_REQUESTS: Queue[PushRequest] = Queue(
    message_codec("push_requests", _RequestBody, _unpack_request, _pack_request),
    retention_days=4,
    retry=RetryPolicy(max_wait_s=4 * 3_600),  # what is older is not pushed
)
"""One push to one browser a message. Its consumer reaches the internet and no store."""
