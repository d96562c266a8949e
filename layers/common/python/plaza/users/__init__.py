"""Who people are: their cards, profiles and phones. MySQL is the record, Redis projects it."""

from plaza.users.cards import read_cards, refresh_cards
from plaza.users.mysql_phones import User
from plaza.users.profiles import change_profile, read_profile
from plaza.users.signing_up import sign_up
from plaza.users.users import Card, Profile, UserMissing

__all__ = [
    "Card",
    "Profile",
    "User",
    "UserMissing",
    "change_profile",
    "read_cards",
    "read_profile",
    "refresh_cards",
    "sign_up",
]
