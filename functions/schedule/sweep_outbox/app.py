"""What the queue never got is published again, every minute."""

from plaza.checkins import sweep_checkins
from plaza.reactions import sweep_outbox


def handler(event: object, context: object) -> dict[str, int]:
    """Sweep the outboxes once."""
    return {"republished": sweep_outbox(), "checkins_republished": sweep_checkins()}
