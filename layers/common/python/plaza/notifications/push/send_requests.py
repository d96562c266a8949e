"""Send requests to push services, from a function outside of the VPC. At least once: a process that
ends after a service accepted a push sends it again, with the same topic."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from plaza.infra.aws import secrets
from plaza.infra.http import web_client
from plaza.infra.http.web_client import Answer, ServerFailed
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record
from plaza.infra.runtime.settings import BadSettings, settings
from plaza.notifications.push.model import EXPIRED_S, TTL_S, PushRequest, PushTask, parse_endpoint
from plaza.notifications.push.queues import PUSH_REQUESTS, PUSHES
from plaza.notifications.push.settings import push_settings

if TYPE_CHECKING:
    from py_vapid import Vapid

__all__ = ["PUSH_REQUESTS", "send"]

_SIGNED_S = 12 * 3_600  # a push service accepts a signature for a day at most
RETRY_AFTER_S = 60
MAX_RETRY_AFTER_S = 900  # of a message of SQS
_ENDED = (404, 410)


class _Outcome(Enum):
    SENT = auto()
    ENDED = auto()
    REFUSED = auto()
    AGAIN = auto()


class _Sender(NamedTuple):
    """Plaza as push services know it."""

    key: Vapid
    contact: str


class _Result(NamedTuple):
    request: PushRequest
    outcome: _Outcome
    status: int = 0
    retry_after_s: int = 0


@PUSH_REQUESTS.consumer
def send(requests: Sequence[PushRequest]) -> None:
    """Send a batch, its requests at once.

    A subscription that its service does not know, or knows to have ended, ends here. A request that
    a service refuses for now (429, 5xx), or does not answer in 10 s, is sent again when the service
    allows it, for 4 h. One that it refuses for good is dropped. Raises SecretsDown; QueueDown:
    repeat the batch.
    """
    now_s = int(clock.now_s())
    current = [request for request in requests if now_s - request.made_s < EXPIRED_S]
    results: list[_Result] = []
    if current:
        sender = _read_sender()
        with ThreadPoolExecutor(max_workers=len(current)) as threads:
            results = list(threads.map(lambda request: _send(request, sender), current))
    _handle(results)
    record(
        "pushes_sent",
        {
            "pushes_sent": _count(results, _Outcome.SENT),
            "pushes_postponed": _count(results, _Outcome.AGAIN),
            "pushes_refused": _count(results, _Outcome.REFUSED),
            "pushes_expired": len(requests) - len(current),
        },
        ended=_count(results, _Outcome.ENDED),
        statuses=sorted({result.status for result in results}),
    )


def _handle(results: Sequence[_Result]) -> None:
    """End subscriptions, and send again what was postponed."""
    ended = [
        (request.user_id, request.subscription.endpoint_hash)
        for request, outcome, *_ in results
        if outcome is _Outcome.ENDED
    ]
    if ended:
        PUSHES.send(PushTask(ended=ended))
    for request, outcome, _, retry_after_s in results:
        if outcome is _Outcome.AGAIN:
            PUSH_REQUESTS.send(request, retry_after_s)


def _count(results: Sequence[_Result], outcome: _Outcome) -> int:
    return sum(result.outcome is outcome for result in results)


def _read_sender() -> _Sender:
    from py_vapid import Vapid

    config = push_settings()
    if config.key_secret_id is None or config.contact is None:
        raise BadSettings("PLAZA_PUSH_KEY_ID or PLAZA_PUSH_CONTACT is not set")
    return _Sender(Vapid.from_pem(secrets.read(config.key_secret_id).encode()), config.contact)


def _send(request: PushRequest, sender: _Sender) -> _Result:
    """Send one request, encrypted for its browser and signed for its push service."""
    is_local = settings().environment == "local"
    try:
        url = parse_endpoint(
            request.subscription.endpoint, push_settings().hosts, is_local=is_local
        )
        body = _encrypt(request)
    except ValueError:
        return _Result(request, _Outcome.REFUSED)
    claims = {"sub": sender.contact, "aud": url.origin, "exp": int(clock.now_s()) + _SIGNED_S}
    headers = {
        **sender.key.sign(claims),
        "Content-Encoding": "aes128gcm",
        "TTL": str(TTL_S),
        "Topic": request.topic,
        "Urgency": "normal",
    }
    try:
        answer = web_client.post(url, body, headers, allows_loopback=is_local)
    except ServerFailed:
        return _Result(request, _Outcome.AGAIN, retry_after_s=RETRY_AFTER_S)
    return _judge(request, answer)


def _encrypt(request: PushRequest) -> bytes:
    """Return the payload, encrypted for the browser. Raises ValueError if its keys are no keys."""
    from pywebpush import WebPusher, WebPushException

    endpoint, public_key, auth_secret = request.subscription
    keys = {"p256dh": public_key, "auth": auth_secret}
    try:
        encoded = WebPusher({"endpoint": endpoint, "keys": keys}).encode(request.payload.encode())
    except WebPushException as error:
        raise ValueError("the keys of the browser are no keys") from error
    return bytes(encoded["body"])


def _judge(request: PushRequest, answer: Answer) -> _Result:
    status, retry_after = answer
    if 200 <= status < 300:
        return _Result(request, _Outcome.SENT, status)
    if status in _ENDED:
        return _Result(request, _Outcome.ENDED, status)
    if status == 429 or status >= 500:
        wait_s = int(retry_after) if retry_after and retry_after.isdecimal() else RETRY_AFTER_S
        return _Result(request, _Outcome.AGAIN, status, min(max(wait_s, 1), MAX_RETRY_AFTER_S))
    return _Result(request, _Outcome.REFUSED, status)
