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
    answers,
    api,
    caller,
    caller_if_any,
    pack_cursor,
    problems,
    read_id,
    serve,
    unpack_cursor,
)
from plaza.reactions import COLLECT, LIKE, Kind, Target, reacting, reading
from plaza.reactions.contract import (
    Collected,
    Liked,
    Liker,
    Mine,
    MyReaction,
    ReactionsAnswer,
    ReactionsQuestion,
    Totals,
)
from plaza.reactions.reactions import Reacted, Reactor

Order = Annotated[Literal["earliest", "latest"], Query(description="by when they liked it")]

app = api()

_OWN: dict[str, Any] = {"security": [BEARER], "tags": ["reactions"]}
_WISH = "taken as a wish while Redis is away"
_LIKE = _OWN | {
    "responses": answers(200, Liked, "done") | answers(202, Liked, _WISH) | problems(401, 404, 410)
}
_COLLECT = _OWN | {
    "responses": answers(200, Collected, "done")
    | answers(202, Collected, _WISH)
    | problems(401, 404, 410)
}
_LIST_OWN = _OWN | {"responses": answers(200, Page[MyReaction], "a page") | problems(400, 401)}
_LIST: dict[str, Any] = {
    "tags": ["reactions"],
    "responses": answers(200, Page[Liker], "a page") | problems(400, 401, 404, 410),
}
_QUERY: dict[str, Any] = {
    "tags": ["reactions"],
    "security": [{}, BEARER],
    "responses": answers(200, ReactionsAnswer, "totals and mine") | problems(400, 401),
}


@app.put("/posts/<post_id>/likes/me", **_LIKE)
def like_post(post_id: Id) -> tuple[Liked, int]:
    """Like a post."""
    return _like("post", post_id, True)


@app.delete("/posts/<post_id>/likes/me", **_LIKE)
def unlike_post(post_id: Id) -> tuple[Liked, int]:
    """Take the like of a post back."""
    return _like("post", post_id, False)


@app.put("/comments/<comment_id>/likes/me", **_LIKE)
def like_comment(comment_id: Id) -> tuple[Liked, int]:
    """Like a comment."""
    return _like("comment", comment_id, True)


@app.delete("/comments/<comment_id>/likes/me", **_LIKE)
def unlike_comment(comment_id: Id) -> tuple[Liked, int]:
    """Take the like of a comment back."""
    return _like("comment", comment_id, False)


@app.put("/reviews/<review_id>/likes/me", **_LIKE)
def like_review(review_id: Id) -> tuple[Liked, int]:
    """Like a review."""
    return _like("review", review_id, True)


@app.delete("/reviews/<review_id>/likes/me", **_LIKE)
def unlike_review(review_id: Id) -> tuple[Liked, int]:
    """Take the like of a review back."""
    return _like("review", review_id, False)


@app.put("/posts/<post_id>/collects/me", **_COLLECT)
def collect_post(post_id: Id) -> tuple[Collected, int]:
    """Collect a post."""
    return _collect("post", post_id, True)


@app.delete("/posts/<post_id>/collects/me", **_COLLECT)
def uncollect_post(post_id: Id) -> tuple[Collected, int]:
    """Take a post out of one's collection."""
    return _collect("post", post_id, False)


@app.get("/posts/<post_id>/likers", **_LIST)
def list_post_likers(
    post_id: Id, limit: Limit = 20, cursor: Cursor = None, order: Order = "earliest"
) -> Page[Liker]:
    """Who likes a post."""
    return _likers(_target("post", post_id), order, limit, cursor)


@app.get("/comments/<comment_id>/likers", **_LIST)
def list_comment_likers(
    comment_id: Id, limit: Limit = 20, cursor: Cursor = None, order: Order = "earliest"
) -> Page[Liker]:
    """Who likes a comment."""
    return _likers(_target("comment", comment_id), order, limit, cursor)


@app.get("/reviews/<review_id>/likers", **_LIST)
def list_review_likers(
    review_id: Id, limit: Limit = 20, cursor: Cursor = None, order: Order = "earliest"
) -> Page[Liker]:
    """Who likes a review."""
    return _likers(_target("review", review_id), order, limit, cursor)


@app.get("/users/me/likes", **_LIST_OWN)
def list_my_likes(limit: Limit = 20, cursor: Cursor = None) -> Page[MyReaction]:
    """What I like, newest first. Private."""
    return _my_reactions(LIKE, limit, cursor)


@app.get("/users/me/collects", **_LIST_OWN)
def list_my_collects(limit: Limit = 20, cursor: Cursor = None) -> Page[MyReaction]:
    """What I collected, newest first. Private."""
    return _my_reactions(COLLECT, limit, cursor)


@app.post("/reactions/query", **_QUERY)
def query_reactions(question: ReactionsQuestion) -> ReactionsAnswer:
    """Totals and mine of up to 100 targets, in one call."""
    actor_id = caller_if_any(app)
    targets = [_target(ref.type, ref.id) for ref in question.targets]
    wanted = [(kind, t) for t in targets for kind in (LIKE, COLLECT) if t.type in kind.targets]
    counts, exact = reading.count(wanted, actor_id)
    found = dict(zip(wanted, counts, strict=True))
    items = []
    for ref, target in zip(question.targets, targets, strict=True):
        likes, collects = found[LIKE, target], found.get((COLLECT, target))
        mine = Mine(liked=likes.mine, collected=collects.mine if collects else None)
        items.append(
            Totals(
                type=ref.type,
                id=ref.id,
                likes=likes.total,
                collects=collects.total if collects else None,
                mine=None if actor_id is None else mine,
            )
        )
    return ReactionsAnswer(items=items, exact=exact)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about reactions."""
    return serve(app, event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _like(target_type: str, target_id: str, on: bool) -> tuple[Liked, int]:
    actor_id = caller(app)
    outcome = reacting.react(LIKE, _target(target_type, target_id), actor_id, on)
    return Liked.of(outcome), 200 if outcome.exact else 202


def _collect(target_type: str, target_id: str, on: bool) -> tuple[Collected, int]:
    actor_id = caller(app)
    outcome = reacting.react(COLLECT, _target(target_type, target_id), actor_id, on)
    return Collected.of(outcome), 200 if outcome.exact else 202


def _likers(target: Target, order: str, limit: int, cursor: str | None) -> Page[Liker]:
    caller_if_any(app)  # a token that isn't good is refused here as everywhere
    after = Reactor(*unpack_cursor(cursor, (int, int))) if cursor else None
    page, last = reading.reactors(LIKE, target, after, order == "latest", limit)
    return Page(items=[Liker.of(r) for r in page], next=pack_cursor(*last) if last else None)


def _my_reactions(kind: Kind, limit: int, cursor: str | None) -> Page[MyReaction]:
    actor_id = caller(app)
    after = None
    if cursor:
        ver_us, target_type, target_id = unpack_cursor(cursor, (int, str, int))
        if target_type not in kind.targets:
            raise BadInput("cursor", "is not one that we gave")
        after = Reacted(Target(target_type, target_id), ver_us)
    page, last = reading.reacted(kind, actor_id, after, limit)
    cursor_after = pack_cursor(last.ver_us, *last.target) if last else None
    return Page(items=[MyReaction.of(r) for r in page], next=cursor_after)
