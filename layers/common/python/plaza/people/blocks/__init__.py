"""Blocks: a user ends the contact with another user.

Neither can follow the other or comment on the other's posts, and the blocker's lists leave out the
blocked user's comments and reviews. Owns the table user_block. Other contexts use ``queries``, and
``block_user`` after announced writes.
"""

from plaza.people.blocks.model import BlockCursor, Blocked, BlockedUser, BlockLimit, SelfBlock

__all__ = [
    "BlockCursor",
    "BlockLimit",
    "Blocked",
    "BlockedUser",
    "SelfBlock",
    "block_user",
    "queries",
]
