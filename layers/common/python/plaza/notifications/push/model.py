"""Types and rules of push messages. No I/O."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from plaza.infra.http.urls import Url, parse_url
from plaza.infra.runtime.errors import Conflict, NotFound

if TYPE_CHECKING:
    from plaza.infra.queues.announcements import Notice

Kind = Literal["like", "comment", "follow", "order", "waitlist", "report"]
Channel = Literal["push"]
KINDS: tuple[Kind, ...] = get_args(Kind)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
MAX_SUBSCRIPTIONS = 10
MAX_ENDPOINT = 1_024
COALESCED_S = 30  # at most one round of pushes a user in this time
TTL_S = 86_400  # for which a push service keeps a message for a device that is off
EXPIRED_S = 4 * 3_600  # after which a request that a service did not accept is not repeated
_TOPIC_LENGTH = 32  # characters; RFC 8030 allows no more


class PushIsOff(NotFound):
    """This deployment has no key for push messages."""


class SubscriptionMissing(NotFound):
    """The user has no such subscription."""


class TooManySubscriptions(Conflict):
    """The user has as many subscriptions as are allowed."""

    slug = "too-many-subscriptions"
    title = "Too many subscriptions"
    example = "You have 10 subscriptions. End one."


class Subscription(NamedTuple):
    """A browser: its URL at a push service, and the keys that messages are encrypted with."""

    endpoint: str
    public_key: str
    auth_secret: str

    @property
    def endpoint_hash(self) -> bytes:
        return hashlib.sha256(self.endpoint.encode()).digest()


class Preference(NamedTuple):
    """Whether a user receives a kind by a channel."""

    kind: Kind
    channel: Channel
    is_on: bool


class Recipient(NamedTuple):
    """A user with subscriptions: the sequence up to which notifications were pushed, the kinds that
    are off, and the subscriptions."""

    pushed_sequence: int
    off: frozenset[str]
    subscriptions: Sequence[Subscription]


class PushTask(NamedTuple):
    """A message of PUSHES: users whose unread counters notified, notices, or subscriptions (user,
    hash of the endpoint) that a push service ended."""

    users: Sequence[int] = ()
    notices: Sequence[Notice] = ()
    ended: Sequence[tuple[int, bytes]] = ()


class PushRequest(NamedTuple):
    """A message of PUSH_REQUESTS: one push to one browser. A later one with the same ``topic``
    replaces it, as long as the device has not received it."""

    user_id: int
    subscription: Subscription
    topic: str
    payload: str
    made_s: int


def topic_of(user_id: int, kind: str, subject_type: str, subject_id: int) -> str:
    """Return the topic of all pushes about one subject to a user."""
    text = f"{user_id}:{kind}:{subject_type}:{subject_id}"
    return urlsafe_b64encode(hashlib.sha256(text.encode()).digest())[:_TOPIC_LENGTH].decode()


def parse_endpoint(endpoint: str, hosts: Iterable[str], *, is_local: bool) -> Url:
    """Return a URL of https at one of ``hosts``, of which ``*.`` stands for all names below;
    ``is_local``: or one of http at a loopback address. Raises ValueError."""
    url = parse_url(endpoint)
    is_known = any(
        url.host.endswith(name[1:]) if name.startswith("*.") else url.host == name for name in hosts
    )
    if not (url.is_public_https and is_known) and not (is_local and url.is_loopback_http):
        raise ValueError("is not one of a push service")
    return url
