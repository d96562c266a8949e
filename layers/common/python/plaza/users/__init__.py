"""Who people are: their cards, profiles and phones. MySQL is the record, Redis projects it.

Other contexts use ``cards`` for names, pictures and time zones, and ``sign_up``.
"""

from plaza.users.model import Card, Profile, User, UserMissing
from plaza.users.zones import Zone

__all__ = [
    "Card",
    "Profile",
    "User",
    "UserMissing",
    "Zone",
    "cards",
    "sign_up",
]
