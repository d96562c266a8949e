"""Request new recommendations for shops whose reviews got likes."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.social.recommendations.recommend import refresh_recommendations


@scheduled("refresh_recommendations")
def handler(event: object, context: object) -> dict[str, int]:
    """Queue a rebuild of each stale list."""
    return {"rebuilds_requested": refresh_recommendations()}
