"""Shops whose reviews got other votes have their recommendations made again."""

from plaza.recommendations.recommend import refresh_recommendations


def handler(event: object, context: object) -> dict[str, int]:
    """Ask for the rebuild of each list that isn't up to date."""
    return {"rebuilds_requested": refresh_recommendations()}
