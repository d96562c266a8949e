"""Rankings: recommended reviews of a shop, posts by likes; for moderators, scores of reviews."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.reactions.model import PostRank
from plaza.infra.http.cursors import BadCursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, find_caller
from plaza.infra.http.responses import encode_page
from plaza.infra.http.routes import MODERATOR, OPTIONAL, BodyOf, Responses
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.runtime.errors import Gone, NotFound, SwitchedOff
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify
from plaza.social.content.encoder import encode_ranked, encode_review
from plaza.social.content.schemas import Review
from plaza.social.recommendations import post_rankings, recommend
from plaza.social.recommendations.model import RecommendedCursor
from plaza.social.recommendations.schemas import InWindow, RankedPostResponse, ReviewScoreResponse

app = PlazaResolver(identify, tag="recommendations")


@app.get(
    "/shops/<shop_id>/reviews/recommended",
    security=OPTIONAL,
    responses=Responses(
        "A page of reviews. Empty until the first list is computed.", NotFound, Gone, SwitchedOff
    ),
)
def list_recommended_reviews(
    shop_id: Id, limit: Limit = 20, cursor: Cursor = None
) -> Annotated[str, BodyOf(Page[Review])]:
    """List the recommended reviews of a shop.

    Returns up to 100 reviews, those with the highest score first: of likes, length, images, age and
    the likes of the author. The list is computed in the background, so a new like may change it
    minutes later. The pages of one client are of one list, unless it was replaced several times.
    """
    actor_id = find_caller(app)
    after = (
        RecommendedCursor(*unpack_cursor(cursor, (int, int))) if cursor else RecommendedCursor(0, 0)
    )
    if not after.is_valid:
        raise BadCursor
    page = recommend.recommend(read_id(shop_id, "shop"), after, limit, actor_id)
    return encode_page([encode_review(view, actor_id) for view in page.reviews], page.next)


@app.get(
    "/ops/reviews/<review_id>/score",
    security=MODERATOR,
    tags=["operations"],
    responses=Responses("The score and its components.", NotFound, Gone),
)
def get_review_score(review_id: Id) -> ReviewScoreResponse:
    """Get the score of a review.

    Returns the components of the score that orders recommended reviews, computed now. For
    moderators.
    """
    return ReviewScoreResponse.of(recommend.explain_score(read_id(review_id, "review")))


@app.get("/posts/ranking", security=OPTIONAL, responses=Responses("A page of posts.", SwitchedOff))
def list_ranked_posts(
    window: InWindow = "all", limit: Limit = 20, cursor: Cursor = None
) -> Annotated[str, BodyOf(Page[RankedPostResponse])]:
    """List the most liked posts.

    Returns up to 1,000 posts, the most liked first and of equals the newest first. In `hot` each
    like counts half as much every 12 hours. A post may appear twice if its likes change while the
    client reads the pages.
    """
    actor_id = find_caller(app)
    after = PostRank(*unpack_cursor(cursor, (int, int))) if cursor else None
    page = post_rankings.list_most_liked(window, after, limit, actor_id)
    items = [encode_ranked(ranked.post, actor_id, ranked.likes) for ranked in page.posts]
    return encode_page(items, page.last)


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about recommendations."""
    return app.resolve(event, context)
