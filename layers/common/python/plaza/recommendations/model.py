"""Lists, rankings and messages of recommendations. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.content import ContentView
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, read
from plaza.reactions.model import PostRank

LIST_LENGTH = 100
MAX_SHOPS_PER_MESSAGE = 10
_SHOP_IDS = list_of(ID, 1, MAX_SHOPS_PER_MESSAGE)


class ReviewList(NamedTuple):
    """The best reviews of a shop, and the ``seq`` of its stale mark (None: no mark)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class RebuildLists(NamedTuple):
    """A request to rebuild the lists of shops."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        return messages.encode({"shop_ids": list(self.shop_ids)})

    @classmethod
    def from_json(cls, body: str) -> RebuildLists:
        """Return the request that ``to_json`` encoded. Raises InvalidMessage."""
        return cls(read(messages.read_object(body), "shop_ids", _SHOP_IDS))


class RankedPost(NamedTuple):
    """A post in a ranking, and the likes that it is ranked by."""

    post: ContentView
    likes: int


class RankingPage(NamedTuple):
    """A page of a ranking, and the rank after which the next page begins (None: the end)."""

    posts: list[RankedPost]
    last: PostRank | None


class RecommendedPage(NamedTuple):
    """A page of reviews, and the offset of the next page (None: the end)."""

    reviews: list[ContentView]
    next_offset: int | None
