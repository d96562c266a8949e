"""What is recommended, as it stands on the queue and in lists. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.content import Whole
from plaza.infra import messages
from plaza.infra.messages import ID, list_of, read
from plaza.reactions.reactions import Ranked

LENGTH = 100
MOST_SHOPS = 10  # of one message
_SHOP_IDS = list_of(ID, 1, MOST_SHOPS)


class Recommended(NamedTuple):
    """The best reviews of a shop, and the newest fact it was stale by (None: it wasn't)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class Rebuild(NamedTuple):
    """Shops whose lists are to be made again."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"shop_ids": list(self.shop_ids)})

    @classmethod
    def from_json(cls, body: str) -> Rebuild:
        """What ``to_json`` wrote. Raises BadRecord."""
        return cls(read(messages.read_object(body), "shop_ids", _SHOP_IDS))


class RankedPost(NamedTuple):
    """A post in a ranking, and the likes by which it stands there."""

    post: Whole
    likes: int


class RankingPage(NamedTuple):
    """A page of a ranking, and behind whom the next begins (None: the end)."""

    posts: list[RankedPost]
    last: Ranked | None


class RecommendedPage(NamedTuple):
    """A page of reviews; the place in the list at which the next begins (None: the end)."""

    reviews: list[Whole]
    next_place: int | None
