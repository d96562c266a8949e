"""The rankings of posts are brought to what MySQL has."""

from plaza.recommendations.post_rankings import refresh_rankings


def handler(event: object, context: object) -> dict[str, int]:
    """Heal the ranking of all time, and make those of the windows."""
    return {"ranked": refresh_rankings()}
