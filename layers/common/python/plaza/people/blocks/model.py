"""Rules of blocks, and entries of the list of blocked users. No I/O."""

from __future__ import annotations

from typing import NamedTuple

from plaza.infra.runtime.errors import Conflict, Forbidden
from plaza.people.users import Card

MAX_BLOCKS = 1_000


class SelfBlock(Conflict):
    """A user cannot block itself."""

    slug = "self-block"
    title = "Users cannot block themselves"
    example = "User 7 is your own user. Block another one."


class BlockLimit(Conflict):
    """The user blocks MAX_BLOCKS users."""

    slug = "block-limit"
    title = "Block limit reached"
    example = "You block 1000 users. Unblock one first."


class Blocked(Forbidden):
    """A block between two users refuses the request, in either direction."""

    slug = "blocked"
    title = "Blocked"
    example = "A block between you and user 1 refuses this."


class BlockCursor(NamedTuple):
    """A cursor in the list of blocked users, ordered by time, then by id."""

    created_us: int
    user_id: int

    @property
    def is_valid(self) -> bool:
        """Return False for a time that no block has."""
        return 0 <= self.created_us <= 2**53


class BlockedUser(NamedTuple):
    """A blocked user, and when the block was made."""

    card: Card
    created_us: int
