"""Likes and collects: give them, take them back, count them, list them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza.infra.errors import BadInput
from plaza.infra.http import (
    BEARER,
    Cursor,
    Id,
    Limit,
    Page,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    pack_cursor,
    read_id,
    require_caller,
    serve,
    unpack_cursor,
)
from plaza.reactions import COLLECT, LIKE, Kind, Target, queries, react
from plaza.reactions.model import ReactedTarget, Reactor
from plaza.reactions.schemas import (
    CollectResponse,
    Liker,
    LikeResponse,
    ReactedItem,
    ReactionsRequest,
    ReactionsResponse,
    TargetTotals,
    ViewerState,
)

SortOrder = Annotated[Literal["earliest", "latest"], Query(description="by when they liked it")]

app = create_api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["reactions"]}
_PROVISIONAL = "taken as a wish while Redis is away"
_LIKE = _OWN | {
    "responses": describe_response(200, LikeResponse, "done")
    | describe_response(202, LikeResponse, _PROVISIONAL)
    | describe_problems(401, 404, 410)
}
_COLLECT = _OWN | {
    "responses": describe_response(200, CollectResponse, "done")
    | describe_response(202, CollectResponse, _PROVISIONAL)
    | describe_problems(401, 404, 410)
}
_LIST_OWN = _OWN | {
    "responses": describe_response(200, Page[ReactedItem], "a page") | describe_problems(400, 401)
}
_LIST: dict[str, Any] = {
    "tags": ["reactions"],
    "responses": describe_response(200, Page[Liker], "a page")
    | describe_problems(400, 401, 404, 410),
}
_QUERY: dict[str, Any] = {
    "tags": ["reactions"],
    "security": [{}, BEARER],
    "responses": describe_response(200, ReactionsResponse, "totals and mine")
    | describe_problems(400, 401),
}


@app.put("/posts/<post_id>/likes/me", **_LIKE)
def like_post(post_id: Id) -> tuple[LikeResponse, int]:
    """Like a post."""
    return _like("post", post_id, True)


@app.delete("/posts/<post_id>/likes/me", **_LIKE)
def unlike_post(post_id: Id) -> tuple[LikeResponse, int]:
    """Take the like of a post back."""
    return _like("post", post_id, False)


@app.put("/comments/<comment_id>/likes/me", **_LIKE)
def like_comment(comment_id: Id) -> tuple[LikeResponse, int]:
    """Like a comment."""
    return _like("comment", comment_id, True)


@app.delete("/comments/<comment_id>/likes/me", **_LIKE)
def unlike_comment(comment_id: Id) -> tuple[LikeResponse, int]:
    """Take the like of a comment back."""
    return _like("comment", comment_id, False)


@app.put("/reviews/<review_id>/likes/me", **_LIKE)
def like_review(review_id: Id) -> tuple[LikeResponse, int]:
    """Like a review."""
    return _like("review", review_id, True)


@app.delete("/reviews/<review_id>/likes/me", **_LIKE)
def unlike_review(review_id: Id) -> tuple[LikeResponse, int]:
    """Take the like of a review back."""
    return _like("review", review_id, False)


@app.put("/posts/<post_id>/collects/me", **_COLLECT)
def collect_post(post_id: Id) -> tuple[CollectResponse, int]:
    """Collect a post."""
    return _collect("post", post_id, True)


@app.delete("/posts/<post_id>/collects/me", **_COLLECT)
def uncollect_post(post_id: Id) -> tuple[CollectResponse, int]:
    """Take a post out of one's collection."""
    return _collect("post", post_id, False)


@app.get("/posts/<post_id>/likers", **_LIST)
def list_post_likers(
    post_id: Id, limit: Limit = 20, cursor: Cursor = None, order: SortOrder = "earliest"
) -> Page[Liker]:
    """Who likes a post."""
    return _likers(_target("post", post_id), order, limit, cursor)


@app.get("/comments/<comment_id>/likers", **_LIST)
def list_comment_likers(
    comment_id: Id, limit: Limit = 20, cursor: Cursor = None, order: SortOrder = "earliest"
) -> Page[Liker]:
    """Who likes a comment."""
    return _likers(_target("comment", comment_id), order, limit, cursor)


@app.get("/reviews/<review_id>/likers", **_LIST)
def list_review_likers(
    review_id: Id, limit: Limit = 20, cursor: Cursor = None, order: SortOrder = "earliest"
) -> Page[Liker]:
    """Who likes a review."""
    return _likers(_target("review", review_id), order, limit, cursor)


@app.get("/users/me/likes", **_LIST_OWN)
def list_my_likes(limit: Limit = 20, cursor: Cursor = None) -> Page[ReactedItem]:
    """What I like, newest first. Private."""
    return _my_reactions(LIKE, limit, cursor)


@app.get("/users/me/collects", **_LIST_OWN)
def list_my_collects(limit: Limit = 20, cursor: Cursor = None) -> Page[ReactedItem]:
    """What I collected, newest first. Private."""
    return _my_reactions(COLLECT, limit, cursor)


@app.post("/reactions/query", **_QUERY)
def query_reactions(request: ReactionsRequest) -> ReactionsResponse:
    """Totals and mine of up to 100 targets, in one call."""
    actor_id = find_caller(app)
    targets = [_target(ref.type, ref.id) for ref in request.targets]
    wanted = [(kind, t) for t in targets for kind in (LIKE, COLLECT) if t.type in kind.targets]
    counts, exact = queries.read_counts(wanted, actor_id)
    found = dict(zip(wanted, counts, strict=True))
    items = []
    for ref, target in zip(request.targets, targets, strict=True):
        likes, collects = found[LIKE, target], found.get((COLLECT, target))
        mine = ViewerState(
            liked=likes.viewer_state, collected=collects.viewer_state if collects else None
        )
        items.append(
            TargetTotals(
                type=ref.type,
                id=ref.id,
                likes=likes.total,
                collects=collects.total if collects else None,
                mine=None if actor_id is None else mine,
            )
        )
    return ReactionsResponse(items=items, exact=exact)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about reactions."""
    return serve(app, event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _like(target_type: str, target_id: str, on: bool) -> tuple[LikeResponse, int]:
    actor_id = require_caller(app)
    outcome = react.react(LIKE, _target(target_type, target_id), actor_id, on)
    return LikeResponse.of(outcome), 200 if outcome.exact else 202


def _collect(target_type: str, target_id: str, on: bool) -> tuple[CollectResponse, int]:
    actor_id = require_caller(app)
    outcome = react.react(COLLECT, _target(target_type, target_id), actor_id, on)
    return CollectResponse.of(outcome), 200 if outcome.exact else 202


def _likers(target: Target, order: str, limit: int, cursor: str | None) -> Page[Liker]:
    find_caller(app)  # a token that isn't good is refused here as everywhere
    after = Reactor(*unpack_cursor(cursor, (int, int))) if cursor else None
    page, last = queries.list_reactors(LIKE, target, after, order == "latest", limit)
    return Page(items=[Liker.of(r) for r in page], next=pack_cursor(*last) if last else None)


def _my_reactions(kind: Kind, limit: int, cursor: str | None) -> Page[ReactedItem]:
    actor_id = require_caller(app)
    after = None
    if cursor:
        version_us, target_type, target_id = unpack_cursor(cursor, (int, str, int))
        if target_type not in kind.targets:
            raise BadInput("cursor", "is not one that we gave")
        after = ReactedTarget(Target(target_type, target_id), version_us)
    page, last = queries.list_reacted(kind, actor_id, after, limit)
    cursor_after = pack_cursor(last.version_us, *last.target) if last else None
    return Page(items=[ReactedItem.of(r) for r in page], next=cursor_after)
