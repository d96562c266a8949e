"""Users: cards, profiles, phones, identities and time zones. MySQL is the record, Redis has
projections.

Owns the tables user, user_phone and user_identity. Other contexts use ``cards``, ``sign_up``,
``roles``, ``erasure`` and ``export``.
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
    "roles",
    "sign_up",
]
