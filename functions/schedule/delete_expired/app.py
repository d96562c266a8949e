"""What has expired is deleted, every hour."""

from plaza import idempotency
from plaza.auth import expired
from plaza.infra.expiry import delete_in_steps
from plaza.infra.observability import record

_DELETES = {"session": expired.delete_expired, "creation": idempotency.delete_expired}


def handler(event: object, context: object) -> dict[str, int]:
    """Delete what expired, for less than a minute; what is left is there in an hour still."""
    deleted = delete_in_steps(_DELETES)
    metrics = {
        "sessions_deleted": deleted["session"],
        "creations_deleted": deleted["creation"],
    }
    record("expired_deleted", metrics)
    return deleted
