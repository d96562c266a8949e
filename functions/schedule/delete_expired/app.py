"""What has expired is deleted, every hour."""

from plaza import idempotency
from plaza.auth import expired_sessions
from plaza.infra.expiry import delete_in_steps
from plaza.infra.observability import record

_DELETES = {
    "session": expired_sessions.delete_expired,
    "idempotency_key": idempotency.delete_expired,
}


def handler(event: object, context: object) -> dict[str, int]:
    """Delete what expired, for less than a minute; what is left is there in an hour still."""
    deleted = delete_in_steps(_DELETES)
    metrics = {
        "sessions_deleted": deleted["session"],
        "idempotency_keys_deleted": deleted["idempotency_key"],
    }
    record("expired_deleted", metrics)
    return deleted
