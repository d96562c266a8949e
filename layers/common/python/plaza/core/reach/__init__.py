"""Reach: how many visitors viewed posts, by day and week, and the anonymous ids that tell them
apart.

Owns the keys ``reach:*`` and ``visitor-ids:*``. Called by content for each view of a post, by the
function of sign-in for ids, and by operators.
"""

from plaza.core.reach.model import MAX_DAYS, IssuedId, Reach, Visit, Visitors

__all__ = [
    "MAX_DAYS",
    "IssuedId",
    "Reach",
    "Visit",
    "Visitors",
    "report",
    "visitor_ids",
]
