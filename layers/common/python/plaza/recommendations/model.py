"""What is recommended, as it stands on the queue and in lists. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.content import ContentView
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, read
from plaza.reactions.model import PostRank

LIST_LENGTH = 100
MAX_SHOPS_PER_MESSAGE = 10  # of one message
_SHOP_IDS = list_of(ID, 1, MAX_SHOPS_PER_MESSAGE)


class ReviewList(NamedTuple):
    """The best reviews of a shop, and the newest fact it was stale by (None: it wasn't)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class RebuildLists(NamedTuple):
    """Shops whose lists are to be made again."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"shop_ids": list(self.shop_ids)})

    @classmethod
    def from_json(cls, body: str) -> RebuildLists:
        """What ``to_json`` wrote. Raises InvalidMessage."""
        return cls(read(messages.read_object(body), "shop_ids", _SHOP_IDS))


class RankedPost(NamedTuple):
    """A post in a ranking, and the likes by which it stands there."""

    post: ContentView
    likes: int


class RankingPage(NamedTuple):
    """A page of a ranking, and behind whom the next begins (None: the end)."""

    posts: list[RankedPost]
    last: PostRank | None


class RecommendedPage(NamedTuple):
    """A page of reviews; the place in the list at which the next begins (None: the end)."""

    reviews: list[ContentView]
    next_offset: int | None
