"""Lists, rankings and messages of recommendations. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

from plaza.core.reactions.model import PostRank
from plaza.infra.runtime.codec import ID, Meta, Struct
from plaza.social.content.model import ContentView

LIST_LENGTH = 100
MAX_POINTS = 1_000_000
HOT_HALF_LIVES = 10  # an older like has less than a thousandth of its weight
MAX_HOT_HOURS = 7 * 24  # hourly likes are kept for a day more
MAX_SHOPS_PER_MESSAGE = 10


class ReviewList(NamedTuple):
    """The best reviews of a shop, and the ``seq`` of its stale mark (None: no mark)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class RebuildLists(Struct, frozen=True):
    """A request to rebuild the lists of shops."""

    shop_ids: Annotated[list[ID], Meta(min_length=1, max_length=MAX_SHOPS_PER_MESSAGE)]


class RankedPost(NamedTuple):
    """A post in a ranking, and the likes that it is ranked by."""

    post: ContentView
    likes: int


class RankingPage(NamedTuple):
    """A page of a ranking, and the rank after which the next page begins (None: the end)."""

    posts: list[RankedPost]
    last: PostRank | None


class RecommendedCursor(NamedTuple):
    """A cursor in the recommended reviews of a shop: in the list ``number``, in the latest one if
    that is no longer stored."""

    offset: int
    number: int

    @property
    def is_valid(self) -> bool:
        """Return False for a cursor in no list."""
        return 0 <= self.offset <= LIST_LENGTH and self.number >= 0


class RecommendedPage(NamedTuple):
    """A page of reviews, and where the next page begins (None: the end)."""

    reviews: list[ContentView]
    next: RecommendedCursor | None


class ScoreComponent(NamedTuple):
    """A component of a review's score: a measured ``value`` that gives ``points`` of 1,000,000,
    half of them at ``half``, and counts with ``weight``."""

    name: str
    value: int
    points: int
    weight: int
    half: int


class ReviewScore(NamedTuple):
    """The score of a review, of 1,000,000, and its components; ``rank`` (from 1) is its place in
    the list that readers get, None if it is not in it."""

    review_id: int
    shop_id: int
    score: int
    components: list[ScoreComponent]
    rank: int | None


class RankedHours(NamedTuple):
    """The hours whose likes a ranking counts, by hours since 1970, both inclusive.

    With a half-life, in hours, likes decay: a like of an hour has the weight (h + r) * 2**k, where
    h is the half-life, and k and r are the quotient and the remainder of the hours since the
    ``landmark`` by h. Weights grow instead of shrinking with age, so that the order of posts
    changes by new likes only, not by the passing of time. All of it is exact in 64-bit integers.
    """

    first: int
    last: int
    half_life_h: int | None = None

    @property
    def landmark(self) -> int:
        """The hour from which weights are counted. It moves every ten half-lives; weights of one
        landmark are the scores of another times a power of two."""
        period_h = HOT_HALF_LIVES * (self.half_life_h or 1)
        return self.first // period_h * period_h
