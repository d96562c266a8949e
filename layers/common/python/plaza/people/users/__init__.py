"""Users: cards, profiles, phones, identities and time zones. MySQL is the record, Redis has
projections.

Owns the tables user, user_phone, user_identity, closed_user and erasure. Other contexts use
``cards``, ``likers``, ``sign_up``, ``closed_users``, ``erasures``, ``identities``, ``roles`` and
``erasure``, operators ``import_users``.
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
    "erasures",
    "identities",
    "import_users",
    "likers",
    "roles",
    "sign_up",
]
