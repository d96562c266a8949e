"""Roll likes up to likes of reviews and hours of posts, in the order of the log."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.social.recommendations.like_roll_up import roll_up_likes


@scheduled("roll_up_likes")
def handler(event: object, context: object) -> dict[str, int]:
    """Roll up the events that were logged since the last run."""
    return {"rolled_up_to": roll_up_likes()}
