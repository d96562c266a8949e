"""Read blocks: from Redis, else from MySQL."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.derived import projections
from plaza.people.blocks import mysql_store, redis_store
from plaza.people.blocks.model import BlockCursor, Blocked, BlockedUser
from plaza.people.users import Card, cards


def read_blocked(user_id: int) -> frozenset[int]:
    """Return the users that a user blocks. One round trip; one more and one statement when Redis
    lacks them. Raises MysqlDown."""
    return _read([user_id])[user_id]


def require_unblocked(user_id: int, other_id: int) -> None:
    """Raise Blocked if one of the users blocks the other; otherwise as ``read_blocked``."""
    blocked = _read([user_id, other_id])
    if other_id in blocked[user_id] or user_id in blocked[other_id]:
        raise Blocked(f"A block between you and user {other_id} refuses this.")


def list_blocked(
    user_id: int, after: BlockCursor | None, limit: int
) -> tuple[list[BlockedUser], BlockCursor | None]:
    """Return a page of the users that a user blocks, the newest block first, and the next page's
    ``after``. One statement, and the round trips of cards. Raises MysqlDown."""
    page = mysql_store.read_page(user_id, after, limit + 1)
    last = page[limit - 1] if len(page) > limit else None
    cards_by_id = cards.read_cards(cursor.user_id for cursor in page[:limit])
    return [
        BlockedUser(cards_by_id.get(item.user_id) or Card.unknown(item.user_id), item.created_us)
        for item in page[:limit]
    ], last


def _read(user_ids: Sequence[int]) -> dict[int, frozenset[int]]:
    blocked = projections.read_through(
        user_ids, redis_store.read_blocked, mysql_store.read_blocked, redis_store.store_blocked
    )
    return {user_id: ids for user_id, (ids, _) in blocked.items()}
