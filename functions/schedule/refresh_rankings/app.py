"""Bring the rankings of posts to the counts in MySQL."""

from plaza.infra.jobs.scheduled_jobs import scheduled
from plaza.social.recommendations.post_rankings import refresh_rankings


@scheduled("refresh_rankings")
def handler(event: object, context: object) -> dict[str, int]:
    """Repair the ranking of all time; replace the rankings of the day and the week."""
    return {"ranked": refresh_rankings()}
