"""What readers are shown first: the best reviews of a shop, the most liked posts."""

from plaza.recommendations.rolling_up import roll_up_votes

__all__ = ["roll_up_votes"]
