"""Likes become votes of reviews and hours of posts, in the order of the log."""

from plaza.recommendations.vote_roll_up import roll_up_votes


def handler(event: object, context: object) -> dict[str, int]:
    """Roll up what was logged since the last time."""
    return {"rolled_up_to": roll_up_votes()}
