"""What clients send and get about users."""

from __future__ import annotations

from plaza.infra.http import Answer
from plaza.users.users import Card


class UserCard(Answer):
    """Who somebody is, in short. ``avatar`` is a URL, null for none."""

    id: str
    nickname: str
    avatar: str | None

    @classmethod
    def of(cls, card: Card) -> UserCard:
        """What to answer about the user of ``card``."""
        return cls(id=str(card.id), nickname=card.nickname, avatar=card.avatar)

    @classmethod
    def unknown(cls, user_id: int) -> UserCard:
        """What to answer about an id that no user has."""
        return cls(id=str(user_id), nickname="somebody", avatar=None)
