"""Send posts to the fan-out queue that SQS refused, every minute."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.social.content.publish import publish_unsent


@scheduled("publish_unsent")
def handler(event: object, context: object) -> dict[str, int]:
    """Run once; return how many posts were sent."""
    return {"published": publish_unsent()}
