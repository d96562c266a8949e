"""Posts, comments and reviews: write them, read them, list them, delete one's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza import content
from plaza.content import Draft, Place, Whole, reading, writing
from plaza.content.contract import (
    Comment,
    CommentQuestion,
    Post,
    PostQuestion,
    Review,
    ReviewQuestion,
)
from plaza.idempotency import Attempt
from plaza.infra.errors import BadInput
from plaza.infra.http import (
    BEARER,
    Cursor,
    Id,
    IdempotencyKey,
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
    source_address,
    unpack_cursor,
)
from plaza.reactions import Target

Order = Annotated[Literal["earliest", "latest"], Query(description="by when they were written")]

app = api()

_TAGS: dict[str, Any] = {"tags": ["content"]}
_OWN = _TAGS | {"security": [BEARER]}
_ANY = _TAGS | {"security": [{}, BEARER]}
_DELETED = {204: {"description": "deleted"}}
_DELETE = _OWN | {"responses": _DELETED | problems(401, 403, 404, 410)}


def _create(model: Any) -> dict[str, Any]:
    made = answers(201, model, "made, by this request or by one before with this key")
    return _OWN | {"responses": made | problems(400, 401, 404, 409, 410)}


def _read(model: Any) -> dict[str, Any]:
    return _ANY | {"responses": answers(200, model, "as it is now") | problems(401, 404, 410)}


def _list(model: Any) -> dict[str, Any]:
    page = answers(200, Page[model], "a page; long texts make it shorter than `limit`")
    return _ANY | {"responses": page | problems(400, 401, 404, 410)}


@app.post("/posts", **_create(Post))
def create_post(question: PostQuestion, key: IdempotencyKey = None) -> tuple[Post, int]:
    """Write a post."""
    actor_id = caller(app)
    return Post.of(_made(question.draft(actor_id), key), actor_id), 201


@app.get("/posts/<post_id>", **_read(Post))
def read_post(post_id: Id) -> Post:
    """A post. Who reads it is one of its viewers."""
    actor_id = caller_if_any(app)
    viewer = content.name_viewer(actor_id, source_address(app))
    return Post.of(reading.read_one(_target("post", post_id), actor_id, viewer), actor_id)


@app.delete("/posts/<post_id>", **_DELETE)
def delete_post(post_id: Id) -> Response[None]:
    """Delete a post of one's own. What it received stays counted."""
    return _delete(_target("post", post_id))


@app.get("/users/<user_id>/posts", **_list(Post))
def list_user_posts(user_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Post]:
    """What somebody posted, newest first."""
    actor_id = caller_if_any(app)
    page = reading.list_posts(read_id(user_id, "user"), _place(cursor), limit, actor_id)
    return Page(items=[Post.of(whole, actor_id) for whole in page.items], next=_next(page.last))


@app.post("/posts/<post_id>/comments", **_create(Comment))
def create_comment(
    post_id: Id, question: CommentQuestion, key: IdempotencyKey = None
) -> tuple[Comment, int]:
    """Comment on a post."""
    actor_id = caller(app)
    draft = question.draft(actor_id, read_id(post_id, "post"))
    return Comment.of(_made(draft, key), actor_id), 201


@app.get("/posts/<post_id>/comments", **_list(Comment))
def list_comments(
    post_id: Id, limit: Limit = 20, cursor: Cursor = None, order: Order = "latest"
) -> Page[Comment]:
    """The comments of a post."""
    actor_id, latest = caller_if_any(app), order == "latest"
    post = read_id(post_id, "post")
    page = reading.list_comments(post, _place(cursor), latest, limit, actor_id)
    return Page(items=[Comment.of(whole, actor_id) for whole in page.items], next=_next(page.last))


@app.get("/comments/<comment_id>", **_read(Comment))
def read_comment(comment_id: Id) -> Comment:
    """A comment."""
    actor_id = caller_if_any(app)
    return Comment.of(reading.read_one(_target("comment", comment_id), actor_id), actor_id)


@app.delete("/comments/<comment_id>", **_DELETE)
def delete_comment(comment_id: Id) -> Response[None]:
    """Delete a comment of one's own."""
    return _delete(_target("comment", comment_id))


@app.post("/shops/<shop_id>/reviews", **_create(Review))
def create_review(
    shop_id: Id, question: ReviewQuestion, key: IdempotencyKey = None
) -> tuple[Review, int]:
    """Review a shop."""
    actor_id = caller(app)
    draft = question.draft(actor_id, read_id(shop_id, "shop"))
    return Review.of(_made(draft, key), actor_id), 201


@app.get("/shops/<shop_id>/reviews", **_list(Review))
def list_reviews(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Review]:
    """The reviews of a shop, newest first."""
    actor_id = caller_if_any(app)
    page = reading.list_reviews(read_id(shop_id, "shop"), _place(cursor), limit, actor_id)
    return Page(items=[Review.of(whole, actor_id) for whole in page.items], next=_next(page.last))


@app.get("/reviews/<review_id>", **_read(Review))
def read_review(review_id: Id) -> Review:
    """A review."""
    actor_id = caller_if_any(app)
    return Review.of(reading.read_one(_target("review", review_id), actor_id), actor_id)


@app.delete("/reviews/<review_id>", **_DELETE)
def delete_review(review_id: Id) -> Response[None]:
    """Delete a review of one's own."""
    return _delete(_target("review", review_id))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about content."""
    return serve(app, event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _made(draft: Draft, key: str | None) -> Whole:
    return writing.create(draft, Attempt.of(key, asdict(draft)) if key else None)


def _delete(target: Target) -> Response[None]:
    writing.delete(target, caller(app))
    return Response(204)


def _place(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    place = Place(*unpack_cursor(cursor, (int, int)))
    if not place.possible:
        raise BadInput("cursor", "is not one that we gave")
    return place


def _next(last: Place | None) -> str | None:
    return pack_cursor(*last) if last else None
