"""Users: cards, profiles, phones and time zones. MySQL is the record, Redis has projections.

Owns the tables user and user_phone. Other contexts use ``cards``, ``sign_up``, ``erasure`` and
``export``.
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
    "erasure",
    "export",
    "sign_up",
]
