"""Shops whose reviews got other votes have their recommendations made again."""

from plaza.recommendations.recommending import refresh_recommendations


def handler(event: object, context: object) -> dict[str, int]:
    """Ask for the rebuild of each list that isn't up to date."""
    return {"asked_for": refresh_recommendations()}
