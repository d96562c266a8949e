"""The settings of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.runtime.settings import BadSettings, declare


class WebhookSettings(NamedTuple):
    """``key_secret_id``: the secret with the key of all secrets of webhooks, which only the sender
    and the commands of operators have. ``allows_loopback``: whether a receiver may be on this
    machine, for a local stack only."""

    key_secret_id: str | None
    allows_loopback: bool

    def require_key_secret_id(self) -> str:
        """Return ``key_secret_id``. Raises BadSettings without one."""
        if self.key_secret_id is None:
            raise BadSettings("PLAZA_WEBHOOK_KEY_ID is not set")
        return self.key_secret_id


def _allows_loopback(env: Mapping[str, str]) -> bool:
    allowed = env.get("PLAZA_WEBHOOK_LOOPBACK", "") == "1"
    if allowed and env.get("PLAZA_ENVIRONMENT") != "local":
        raise BadSettings("PLAZA_WEBHOOK_LOOPBACK requires PLAZA_ENVIRONMENT=local")
    return allowed


webhook_settings = declare(
    WebhookSettings,
    key_secret_id=lambda env: env.get("PLAZA_WEBHOOK_KEY_ID") or None,
    allows_loopback=_allows_loopback,
)
