"""What operators do with webhooks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from plaza.infra.jobs.operator_commands import OPERATOR, Id, Refused, Result, command
from plaza.integrations.webhooks import operate_webhooks as webhooks
from plaza.integrations.webhooks.model import MAX_URL_CHARS

_Url = Annotated[str, Field(pattern=r"^https?://[!-~]+$", max_length=MAX_URL_CHARS)]
_Types = Annotated[str, Field(pattern=r"^[a-z.,]*$", max_length=500)]
_Time = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z$")]


def _split(types: str) -> list[str]:
    return [word for word in types.split(",") if word]


@command
def make_webhook(*, url: _Url, types: _Types = "") -> Result:
    """Make a webhook that gets events from now on, of types such as like.added,comment.created or
    of all; its secret is shown this once."""
    webhook_id, secret = webhooks.make_webhook(url, _split(types), operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "secret": secret}


@command
def list_webhooks() -> Result:
    """List the webhooks: their states, and why events are not received."""
    return {"webhooks": webhooks.list_webhooks()}


@command
def change_webhook(
    *, webhook_id: Id, url: _Url | None = None, types: _Types | None = None
) -> Result:
    """Change the URL or the types of a webhook; its secret stays."""
    of_types = None if types is None else _split(types)
    webhooks.change_webhook(webhook_id, url, of_types, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}


@command
def end_webhook(*, webhook_id: Id) -> Result:
    """End a webhook for ever."""
    webhooks.end_webhook(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}


@command
def rotate_webhook_secret(*, webhook_id: Id) -> Result:
    """Make another secret of a webhook; the one before signs for a day more."""
    secret = webhooks.rotate_secret(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "secret": secret}


@command
def replay_webhook(*, webhook_id: Id, since: _Time) -> Result:
    """Send all events since a time again, of the last eight days."""
    try:
        at = datetime.fromisoformat(since)
    except ValueError:
        raise Refused("since: it is no time") from None
    begin = webhooks.replay(webhook_id, at, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id), "since": f"{begin:%Y-%m-%dT%H:%M:%SZ}"}


@command
def enable_webhook(*, webhook_id: Id) -> Result:
    """Enable a webhook that was disabled; it goes on where it stopped."""
    webhooks.enable_webhook(webhook_id, operator_id=OPERATOR)
    return {"webhook_id": str(webhook_id)}
