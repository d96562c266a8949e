"""Make, list, change and end webhooks, rotate their secrets and set their offsets: what operators
do, by IAM or at the stores."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from plaza.core.event_log import read_events
from plaza.core.event_log.model import EventOffset
from plaza.infra.aws import secrets
from plaza.infra.derived import ids
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.observability import record
from plaza.integrations.webhooks import mysql_webhooks
from plaza.integrations.webhooks.model import (
    Webhook,
    WebhookMissing,
    check_kinds,
    check_url,
)
from plaza.integrations.webhooks.settings import webhook_settings
from plaza.integrations.webhooks.signature import derive_secret


def make_webhook(url: str, kinds: Sequence[str], *, operator_id: str) -> tuple[int, str]:
    """Make a webhook that gets events from now on; return its id and its secret, which is stored
    nowhere. Raises BadInput; Conflict if there are too many; SecretsDown, MysqlDown, RedisDown."""
    checked = _check_url(url), _check_kinds(kinds)
    key, head = _read_key(), read_events.find_head()
    webhook_id = ids.new_id()
    mysql_webhooks.insert(webhook_id, *checked, EventOffset(*head, int(clock.now_s())))
    record("webhook_made", webhook_id=str(webhook_id), operator_id=operator_id)
    return webhook_id, derive_secret(key, webhook_id, 1)


def change_webhook(
    webhook_id: int, url: str | None, kinds: Sequence[str] | None, *, operator_id: str
) -> None:
    """Change the URL or the types of a webhook. Two statements. Raises BadInput, WebhookMissing,
    MysqlDown."""
    webhook = _require(webhook_id)
    mysql_webhooks.change(
        webhook_id,
        webhook.url if url is None else _check_url(url),
        webhook.kinds if kinds is None else _check_kinds(kinds),
    )
    record("webhook_changed", webhook_id=str(webhook_id), operator_id=operator_id)


def end_webhook(webhook_id: int, *, operator_id: str) -> None:
    """End a webhook. A batch on its way is still sent. Two statements. Raises WebhookMissing,
    MysqlDown."""
    _require(webhook_id)
    mysql_webhooks.end(webhook_id)
    record("webhook_ended", webhook_id=str(webhook_id), operator_id=operator_id)


def rotate_secret(webhook_id: int, *, operator_id: str) -> str:
    """Return another secret of a webhook; the one before signs for a day more. Two statements.
    Raises WebhookMissing, SecretsDown, MysqlDown."""
    webhook, key = _require(webhook_id), _read_key()
    mysql_webhooks.rotate(webhook_id, webhook.secret_serial)
    record("webhook_secret_rotated", webhook_id=str(webhook_id), operator_id=operator_id)
    return derive_secret(key, webhook_id, webhook.secret_serial + 1)


def replay(webhook_id: int, since: datetime, *, operator_id: str) -> datetime:
    """Set the offset of a webhook to before all events that were stored since a time; return the
    time of that offset, at most some minutes before. Four statements, and what moves the head.
    Raises WebhookMissing; BadInput if MySQL does not have all of them; MysqlDown."""
    _require(webhook_id)
    offset = read_events.find_offset(int(since.timestamp()))
    if offset is None or since.timestamp() > clock.now_s():
        raise BadInput("since", "is within the last eight days")
    mysql_webhooks.set_offset(webhook_id, offset)
    record("webhook_replayed", webhook_id=str(webhook_id), operator_id=operator_id)
    return datetime.fromtimestamp(offset.read_s, UTC)


def enable_webhook(webhook_id: int, *, operator_id: str) -> None:
    """Enable a webhook that was disabled; it goes on at its offset. Two statements. Raises
    WebhookMissing, MysqlDown."""
    _require(webhook_id)
    mysql_webhooks.enable(webhook_id)
    record("webhook_enabled", webhook_id=str(webhook_id), operator_id=operator_id)


def list_webhooks() -> list[dict[str, Any]]:
    """Return the webhooks as rows, without their secrets. One statement. Raises MysqlDown."""
    return [_describe(webhook) for webhook in mysql_webhooks.list_all()]


def _describe(webhook: Webhook) -> dict[str, Any]:
    since = webhook.failing_since
    return {
        "webhook_id": str(webhook.id),
        "url": webhook.url,
        "types": sorted(webhook.kinds),
        "state": webhook.state,
        "failures": webhook.failures,
        "failing_since": since and f"{since.isoformat(timespec='seconds')}Z",
        "last_error": webhook.last_error,
    }


def _require(webhook_id: int) -> Webhook:
    webhook = mysql_webhooks.read(webhook_id)
    if webhook is None:
        raise WebhookMissing(f"There is no webhook {webhook_id}.")
    return webhook


def _read_key() -> str:
    return secrets.read(webhook_settings().require_key_secret_id())


def _check_url(url: str) -> str:
    try:
        return check_url(url, allows_loopback=webhook_settings().allows_loopback).text
    except ValueError as error:
        raise BadInput("url", str(error)) from None


def _check_kinds(kinds: Sequence[str]) -> frozenset[str]:
    try:
        return check_kinds(kinds)
    except ValueError as error:
        raise BadInput("types", str(error)) from None
