"""Rankings: recommended reviews of a shop, posts by likes."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza import recommendations
from plaza.auth.caller_identity import identify
from plaza.content.schemas import Review
from plaza.infra.errors import BadInput, SwitchedOff
from plaza.infra.http import (
    OPTIONAL,
    Api,
    Cursor,
    Id,
    Limit,
    Page,
    describe_problems,
    describe_response,
    find_caller,
    pack_cursor,
    read_id,
    serve,
    unpack_cursor,
)
from plaza.reactions.model import PostRank, Window
from plaza.recommendations import post_rankings, recommend
from plaza.recommendations.schemas import RankedPostResponse

InWindow = Annotated[
    Window,
    Query(description="Which likes count: of the last 24 hours, of the last 7 days, or all."),
]

app = Api(identify)

_ANY: dict[str, Any] = {"tags": ["recommendations"], "security": OPTIONAL}
_RECOMMENDED = _ANY | {
    "responses": describe_response(
        200, Page[Review], "A page of reviews. Empty until the first list is computed."
    )
    | describe_problems(400, 401, 404, 410, SwitchedOff)
}
_RANKING = _ANY | {
    "responses": describe_response(
        200, Page[RankedPostResponse], "A page of posts. Long texts make it shorter than `limit`."
    )
    | describe_problems(400, 401, SwitchedOff)
}


@app.get("/shops/<shop_id>/reviews/recommended", **_RECOMMENDED)
def list_recommended_reviews(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Review]:
    """List the recommended reviews of a shop.

    Returns up to 100 reviews, the most liked first. The list is computed in the background, so a
    new like may change it minutes later.
    """
    actor_id = find_caller(app)
    offset = unpack_cursor(cursor, (int,))[0] if cursor else 0
    if not 0 <= offset <= recommendations.LIST_LENGTH:
        raise BadInput("cursor", "was not returned by this API")
    page = recommend.recommend(read_id(shop_id, "shop"), offset, limit, actor_id)
    return Page(
        items=[Review.of(view, actor_id) for view in page.reviews],
        next=None if page.next_offset is None else pack_cursor(page.next_offset),
    )


@app.get("/posts/ranking", **_RANKING)
def list_ranked_posts(
    window: InWindow = "all", limit: Limit = 20, cursor: Cursor = None
) -> Page[RankedPostResponse]:
    """List the most liked posts.

    Returns up to 1,000 posts, the most liked first and of equals the newest first. A post may
    appear twice if its likes change while the client reads the pages.
    """
    actor_id = find_caller(app)
    after = PostRank(*unpack_cursor(cursor, (int, int))) if cursor else None
    page = post_rankings.list_most_liked(window, after, limit, actor_id)
    return Page(
        items=[RankedPostResponse.at(ranked, actor_id) for ranked in page.posts],
        next=pack_cursor(*page.last) if page.last else None,
    )


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about recommendations."""
    return serve(app, event, context)
