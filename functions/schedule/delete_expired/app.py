"""Delete expired rows, every hour."""

from plaza import idempotency
from plaza.auth import expired_sessions
from plaza.infra.expiry import delete_in_steps
from plaza.infra.observability import record

_DELETES = {
    "session": expired_sessions.delete_expired,
    "idempotency_key": idempotency.delete_expired,
}


def handler(event: object, context: object) -> dict[str, int]:
    """Delete for less than a minute; the next run continues."""
    deleted = delete_in_steps(_DELETES)
    metrics = {
        "sessions_deleted": deleted["session"],
        "idempotency_keys_deleted": deleted["idempotency_key"],
    }
    record("expired_deleted", metrics)
    return deleted
