"""Who people are: their cards, profiles and phones. MySQL is the record, Redis projects it."""

from plaza.users.cards import read_cards, refresh_cards
from plaza.users.users import Card, UserMissing

__all__ = ["Card", "UserMissing", "read_cards", "refresh_cards"]
