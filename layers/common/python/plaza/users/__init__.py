"""Who people are: their cards, profiles and phones. MySQL is the record, Redis projects it."""

from plaza.users.cards import read_cards, read_zone, refresh_cards
from plaza.users.mysql_phones import User
from plaza.users.profiles import change_profile, read_own_profile, read_profile
from plaza.users.signing_up import sign_up
from plaza.users.users import Card, Profile, UserMissing
from plaza.users.zones import Zone

__all__ = [
    "Card",
    "Profile",
    "User",
    "UserMissing",
    "Zone",
    "change_profile",
    "read_cards",
    "read_own_profile",
    "read_profile",
    "read_zone",
    "refresh_cards",
    "sign_up",
]
