"""Likes and collects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.auth.caller_identity import identify
from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import BEARER, OPTIONAL, WRITES, BodyOf, Compressed, Held, Responses
from plaza.infra.runtime.errors import Gone, NotFound
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.reactions import COLLECT, LIKE, Kind, Target, queries, react
from plaza.reactions.model import Outcome
from plaza.targets import TargetHidden

if TYPE_CHECKING:
    from plaza.infra.http import schemas as http
    from plaza.reactions import schemas
else:  # a like needs no pydantic
    http, schemas = LazyModule("plaza.infra.http.schemas"), LazyModule("plaza.reactions.schemas")

app = PlazaResolver(identify, tag="reactions")

_PROVISIONAL = "Accepted; not counted yet. Redis is unavailable."
_LIKED = Responses({200: "The caller likes it.", 202: _PROVISIONAL}, NotFound, Gone, TargetHidden)
_UNLIKED = Responses(
    {200: "The caller does not like it.", 202: _PROVISIONAL}, NotFound, Gone, example=2
)


@app.put("/posts/<post_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_LIKED)
def like_post(post_id: Id) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Like a post.

    Idempotent: a like counts once.
    """
    return _like("post", post_id, True)


@app.delete("/posts/<post_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_UNLIKED)
def unlike_post(post_id: Id) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Unlike a post.

    Idempotent.
    """
    return _like("post", post_id, False)


@app.put("/comments/<comment_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_LIKED)
def like_comment(
    comment_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Like a comment.

    Idempotent: a like counts once.
    """
    return _like("comment", comment_id, True)


@app.delete(
    "/comments/<comment_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_UNLIKED
)
def unlike_comment(
    comment_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Unlike a comment.

    Idempotent.
    """
    return _like("comment", comment_id, False)


@app.put("/reviews/<review_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_LIKED)
def like_review(
    review_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Like a review.

    Idempotent: a like counts once.
    """
    return _like("review", review_id, True)


@app.delete(
    "/reviews/<review_id>/likes/me", security=BEARER, middlewares=WRITES, responses=_UNLIKED
)
def unlike_review(
    review_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.LikeResponse)], int]:
    """Unlike a review.

    Idempotent.
    """
    return _like("review", review_id, False)


@app.put(
    "/posts/<post_id>/collects/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller collects it.", 202: _PROVISIONAL}, NotFound, Gone, TargetHidden
    ),
)
def collect_post(
    post_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.CollectResponse)], int]:
    """Collect a post.

    Saves the post in the caller's private list. Idempotent: a collect counts once.
    """
    return _collect("post", post_id, True)


@app.delete(
    "/posts/<post_id>/collects/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller does not collect it.", 202: _PROVISIONAL}, NotFound, Gone, example=2
    ),
)
def uncollect_post(
    post_id: Id,
) -> tuple[Annotated[dict[str, Any], BodyOf(schemas.CollectResponse)], int]:
    """Remove a post from the caller's collects.

    Idempotent.
    """
    return _collect("post", post_id, False)


@app.post(
    "/reactions/query",
    security=OPTIONAL,
    middlewares=[Compressed(True), Held(True)],
    responses=Responses("The totals."),
)
def query_reactions(
    request: schemas.ReactionQueryRequest,
) -> Annotated[dict[str, Any], BodyOf(schemas.ReactionQueryResponse)]:
    """Query the totals of up to 100 targets.

    Returns likes, collects and the caller's state of each target. A target that does not exist has
    zeros.
    """
    actor_id = find_caller(app)
    targets = [Target(ref.type, int(ref.id)) for ref in request.targets]
    pairs = [(kind, t) for t in targets for kind in (LIKE, COLLECT) if t.type in kind.targets]
    counts, exact = queries.read_counts(pairs, actor_id)
    next_counts = iter(counts)  # in the order of ``pairs``
    items = []
    for ref in request.targets:
        likes = next(next_counts)
        collects = next(next_counts) if ref.type in COLLECT.targets else None
        mine = {"liked": likes.viewer_state, "collected": collects and collects.viewer_state}
        items.append(
            {
                "type": ref.type,
                "id": ref.id,
                "likes": likes.total,
                "likes_at": likes.at,
                "collects": collects and collects.total,
                "collects_at": collects and collects.at,
                "mine": None if actor_id is None else mine,
            }
        )
    return {"items": items, "exact": exact}


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about reactions."""
    return app.resolve(event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _like(target_type: str, target_id: str, on: bool) -> tuple[dict[str, Any], int]:
    outcome = _react(LIKE, target_type, target_id, on)
    return _answer(outcome, liked=outcome.on, likes=outcome.total, likes_at=outcome.at)


def _collect(target_type: str, target_id: str, on: bool) -> tuple[dict[str, Any], int]:
    outcome = _react(COLLECT, target_type, target_id, on)
    return _answer(outcome, collected=outcome.on, collects=outcome.total, collects_at=outcome.at)


def _react(kind: Kind, target_type: str, target_id: str, on: bool) -> Outcome:
    return react.react(kind, _target(target_type, target_id), require_caller(app), on)


def _answer(outcome: Outcome, **fields: Any) -> tuple[dict[str, Any], int]:
    """Return a LikeResponse or CollectResponse as a dict, and its status."""
    fields |= {"changed": outcome.changed, "exact": outcome.exact}
    return fields, 200 if outcome.exact else 202
