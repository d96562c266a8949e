"""Posts that could not be sent to be pushed, since SQS was away, are sent, every minute."""

from plaza.content.publish import publish_unsent


def handler(event: object, context: object) -> dict[str, int]:
    """Send what waits."""
    return {"published": publish_unsent()}
