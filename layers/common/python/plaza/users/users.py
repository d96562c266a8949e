"""What a user is to others. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass

from plaza.infra.errors import NotFound


class UserMissing(NotFound):
    """There is no such user."""


@dataclass(frozen=True, slots=True)
class Card:
    """What stands beside everything that a user does: a name and a picture (URL, None: none)."""

    id: int
    nickname: str
    avatar: str | None

    def to_json(self) -> str:
        """As it stands in Redis, under a key that has the id."""
        return json.dumps([self.nickname, self.avatar], separators=(",", ":"))

    @classmethod
    def from_json(cls, user_id: int, text: str) -> Card:
        """What ``to_json`` wrote."""
        return cls(user_id, *json.loads(text))
