"""Users: cards, profiles, phones, identities and time zones. MySQL is the record, Redis has
projections.

Owns the tables user, user_phone, user_identity and closed_user. Other contexts use ``cards``,
``sign_up``, ``closed_users``, ``identities``, ``roles``, ``erasure`` and ``export``, operators
``import_users``.
"""

from plaza.people.users.model import Card, Profile, User, UserMissing
from plaza.people.users.zones import Zone

__all__ = [
    "Card",
    "Profile",
    "User",
    "UserMissing",
    "Zone",
    "cards",
    "closed_users",
    "erasure",
    "export",
    "identities",
    "import_users",
    "roles",
    "sign_up",
]
