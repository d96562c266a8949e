"""Schemas of the API: subscriptions of browsers, and what is pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Path
from pydantic import ConfigDict, Field

from plaza.infra.http.schemas import RequestModel, ResponseModel
from plaza.notifications.push.model import MAX_ENDPOINT, Channel, Kind, Preference, Subscription

_PREFERENCES: list[Any] = [
    {"kind": "like", "channel": "push", "on": False},
    {"kind": "order", "channel": "push", "on": True},
]
_POINT = "B" + "A" * 86
_SUBSCRIPTION: dict[str, Any] = {
    "endpoint": "https://fcm.googleapis.com/fcm/send/d1",
    "keys": {"p256dh": _POINT, "auth": "A" * 22},
}


SubscriptionId = Annotated[
    str, Path(pattern=r"^[0-9a-f]{64}$", description="Id of a subscription of the caller.")
]


class PushPreference(RequestModel):
    """Whether the caller receives a kind of notification by a channel."""

    kind: Kind
    channel: Channel
    on: bool

    def to_preference(self) -> Preference:
        """Returns the preference."""
        return Preference(self.kind, self.channel, self.on)


class PushPreferencesRequest(RequestModel):
    """Preferences to change; the others stay."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"preferences": _PREFERENCES}]})

    preferences: Annotated[list[PushPreference], Field(min_length=1, max_length=20)]


class PushPreferenceResponse(ResponseModel):
    """Whether the caller receives a kind of notification by a channel."""

    kind: Kind
    channel: Channel
    on: bool


class PushResponse(ResponseModel):
    """The key that browsers subscribe with, and the preference of each kind and channel."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"public_key": _POINT, "preferences": _PREFERENCES}]}
    )

    public_key: Annotated[
        str | None, Field(description="`applicationServerKey`; null: nothing is pushed.")
    ]
    preferences: list[PushPreferenceResponse]

    @classmethod
    def of(cls, public_key: str | None, preferences: Sequence[Preference]) -> PushResponse:
        """Returns both as the API sends them."""
        return cls(
            public_key=public_key,
            preferences=[
                PushPreferenceResponse(kind=p.kind, channel=p.channel, on=p.is_on)
                for p in preferences
            ],
        )


class SubscriptionKeys(RequestModel):
    """The keys of a browser, in base64url."""

    p256dh: Annotated[str, Field(pattern=r"^B[A-Za-z0-9_-]{86}=?$")]
    auth: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{22}(==)?$")]


class SubscriptionRequest(RequestModel):
    """A subscription as `PushSubscription.toJSON()` of a browser returns it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SUBSCRIPTION]})

    endpoint: Annotated[
        str,
        Field(
            max_length=MAX_ENDPOINT,
            pattern=r"^https?://[!-~]+$",
            description="A URL of the push service of Chrome, Firefox, Safari or Edge.",
        ),
    ]
    keys: SubscriptionKeys

    def to_subscription(self) -> Subscription:
        """Returns the subscription."""
        return Subscription(self.endpoint, self.keys.p256dh, self.keys.auth)


class SubscriptionResponse(ResponseModel):
    """A subscription that was stored."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "0" * 64}]})

    id: Annotated[str, Field(description="Ends the subscription.")]
