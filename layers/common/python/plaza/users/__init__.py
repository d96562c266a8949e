"""Who people are: their cards, profiles and phones. MySQL is the record, Redis projects it.

Other contexts use ``cards`` for names, pictures and time zones, and ``signing_up``.
"""

from plaza.users.users import Card, Profile, User, UserMissing
from plaza.users.zones import Zone

__all__ = [
    "Card",
    "Profile",
    "User",
    "UserMissing",
    "Zone",
    "cards",
    "signing_up",
]
