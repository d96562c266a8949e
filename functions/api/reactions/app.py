"""Likes and collects."""

from __future__ import annotations

from typing import Any

from plaza.auth.caller_identity import identify
from plaza.infra.http import (
    BEARER,
    OPTIONAL,
    Id,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    read_id,
    require_caller,
    serve,
)
from plaza.reactions import COLLECT, LIKE, Target, queries, react
from plaza.reactions.schemas import (
    CollectResponse,
    LikeResponse,
    ReactionQueryRequest,
    ReactionQueryResponse,
    TargetTotals,
    TargetViewerState,
)

app = create_api(identify)

_OWN: dict[str, Any] = {"security": BEARER, "tags": ["reactions"]}
_PROVISIONAL = "Accepted; not counted yet. Redis is unavailable."


def _change(model: Any, description: str, *, example: int = 0) -> dict[str, Any]:
    decided = describe_response(200, model, description, example=example)
    provisional = describe_response(202, model, _PROVISIONAL, example=example + 1)
    return _OWN | {"responses": decided | provisional | describe_problems(401, 404, 410)}


_LIKE = _change(LikeResponse, "The caller likes it.")
_UNLIKE = _change(LikeResponse, "The caller does not like it.", example=2)
_COLLECT = _change(CollectResponse, "The caller collects it.")
_UNCOLLECT = _change(CollectResponse, "The caller does not collect it.", example=2)
_QUERY: dict[str, Any] = {
    "tags": ["reactions"],
    "security": OPTIONAL,
    "responses": describe_response(200, ReactionQueryResponse, "The totals.")
    | describe_problems(400, 401),
}


@app.put("/posts/<post_id>/likes/me", **_LIKE)
def like_post(post_id: Id) -> tuple[LikeResponse, int]:
    """Like a post.

    Idempotent: a like counts once.
    """
    return _like("post", post_id, True)


@app.delete("/posts/<post_id>/likes/me", **_UNLIKE)
def unlike_post(post_id: Id) -> tuple[LikeResponse, int]:
    """Unlike a post.

    Idempotent.
    """
    return _like("post", post_id, False)


@app.put("/comments/<comment_id>/likes/me", **_LIKE)
def like_comment(comment_id: Id) -> tuple[LikeResponse, int]:
    """Like a comment.

    Idempotent: a like counts once.
    """
    return _like("comment", comment_id, True)


@app.delete("/comments/<comment_id>/likes/me", **_UNLIKE)
def unlike_comment(comment_id: Id) -> tuple[LikeResponse, int]:
    """Unlike a comment.

    Idempotent.
    """
    return _like("comment", comment_id, False)


@app.put("/reviews/<review_id>/likes/me", **_LIKE)
def like_review(review_id: Id) -> tuple[LikeResponse, int]:
    """Like a review.

    Idempotent: a like counts once.
    """
    return _like("review", review_id, True)


@app.delete("/reviews/<review_id>/likes/me", **_UNLIKE)
def unlike_review(review_id: Id) -> tuple[LikeResponse, int]:
    """Unlike a review.

    Idempotent.
    """
    return _like("review", review_id, False)


@app.put("/posts/<post_id>/collects/me", **_COLLECT)
def collect_post(post_id: Id) -> tuple[CollectResponse, int]:
    """Collect a post.

    Saves the post in the caller's private list. Idempotent: a collect counts once.
    """
    return _collect("post", post_id, True)


@app.delete("/posts/<post_id>/collects/me", **_UNCOLLECT)
def uncollect_post(post_id: Id) -> tuple[CollectResponse, int]:
    """Remove a post from the caller's collects.

    Idempotent.
    """
    return _collect("post", post_id, False)


@app.post("/reactions/query", **_QUERY)
def query_reactions(request: ReactionQueryRequest) -> ReactionQueryResponse:
    """Query the totals of up to 100 targets.

    Returns likes, collects and the caller's state of each target. A target that does not exist has
    zeros.
    """
    actor_id = find_caller(app)
    targets = [_target(ref.type, ref.id) for ref in request.targets]
    wanted = [(kind, t) for t in targets for kind in (LIKE, COLLECT) if t.type in kind.targets]
    counts, exact = queries.read_counts(wanted, actor_id)
    found = dict(zip(wanted, counts, strict=True))
    items = []
    for ref, target in zip(request.targets, targets, strict=True):
        likes, collects = found[LIKE, target], found.get((COLLECT, target))
        mine = TargetViewerState(
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
    return ReactionQueryResponse(items=items, exact=exact)


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
