"""Posts, comments and reviews."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza import content
from plaza.auth.caller_identity import identify
from plaza.content import ContentView, Draft, ListPosition, commands, queries
from plaza.content.schemas import (
    Comment,
    CommentRequest,
    Post,
    PostRequest,
    Review,
    ReviewRequest,
)
from plaza.idempotency import IdempotentRequest, KeyReused
from plaza.infra.errors import BadInput, PlazaError
from plaza.infra.http import (
    BEARER,
    OPTIONAL,
    Cursor,
    Id,
    IdempotencyKey,
    Limit,
    Page,
    Response,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    pack_cursor,
    read_id,
    read_source_ip,
    require_caller,
    serve,
    unpack_cursor,
)
from plaza.reactions import Target

SortOrder = Annotated[Literal["earliest", "latest"], Query(description="Order by creation time.")]

app = create_api(identify)

_TAGS: dict[str, Any] = {"tags": ["content"]}
_OWN = _TAGS | {"security": BEARER}
_ANY = _TAGS | {"security": OPTIONAL}
_DELETED = {204: {"description": "Deleted."}}
_DELETE = _OWN | {"responses": _DELETED | describe_problems(401, 403, 404, 410)}


def _create(model: Any, *problems: int | type[PlazaError]) -> dict[str, Any]:
    created = describe_response(
        201, model, "Created by this request, or by an earlier one with the same key.", example=1
    )
    return _OWN | {"responses": created | describe_problems(400, 401, KeyReused, 410, *problems)}


def _get(model: Any, description: str) -> dict[str, Any]:
    found = describe_response(200, model, description)
    return _ANY | {"responses": found | describe_problems(401, 404, 410)}


def _list(model: Any, *problems: int | type[PlazaError]) -> dict[str, Any]:
    page = describe_response(200, Page[model], "A page. Long texts make it shorter than `limit`.")
    return _ANY | {"responses": page | describe_problems(400, 401, 404, *problems)}


@app.post("/posts", **_create(Post))
def create_post(request: PostRequest, key: IdempotencyKey = None) -> tuple[Post, int]:
    """Create a post.

    The post appears in the feeds of the author's followers. With an `Idempotency-Key` the request
    can be repeated; without one, each request creates a post.
    """
    actor_id = require_caller(app)
    return Post.of(_create_content(request.to_draft(actor_id), key), actor_id), 201


@app.get("/posts/<post_id>", **_get(Post, "The post."))
def get_post(post_id: Id) -> Post:
    """Get a post.

    Counts the caller, or the network of an anonymous caller, as a viewer of the post, once.
    """
    actor_id = find_caller(app)
    viewer = content.hash_viewer(actor_id, read_source_ip(app))
    return Post.of(queries.read_one(_target("post", post_id), actor_id, viewer), actor_id)


@app.delete("/posts/<post_id>", **_DELETE)
def delete_post(post_id: Id) -> Response[None]:
    """Delete a post of the caller.

    The likes and collects that it received stay in the author's totals. A repeat is a 410.
    """
    return _delete(_target("post", post_id))


@app.get("/users/<user_id>/posts", **_list(Post))
def list_user_posts(user_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Post]:
    """List the posts of a user.

    Newest first.
    """
    actor_id = find_caller(app)
    page = queries.list_posts(read_id(user_id, "user"), _parse_cursor(cursor), limit, actor_id)
    return Page(items=[Post.of(view, actor_id) for view in page.items], next=_pack_next(page.last))


@app.post("/posts/<post_id>/comments", **_create(Comment, 404))
def create_comment(
    post_id: Id, request: CommentRequest, key: IdempotencyKey = None
) -> tuple[Comment, int]:
    """Create a comment on a post.

    With an `Idempotency-Key` the request can be repeated; without one, each request creates a
    comment.
    """
    actor_id = require_caller(app)
    draft = request.to_draft(actor_id, read_id(post_id, "post"))
    return Comment.of(_create_content(draft, key), actor_id), 201


@app.get("/posts/<post_id>/comments", **_list(Comment, 410))
def list_comments(
    post_id: Id, limit: Limit = 20, cursor: Cursor = None, order: SortOrder = "latest"
) -> Page[Comment]:
    """List the comments of a post.

    Newest first, unless `order` says otherwise.
    """
    actor_id, latest = find_caller(app), order == "latest"
    post = read_id(post_id, "post")
    page = queries.list_comments(post, _parse_cursor(cursor), latest, limit, actor_id)
    return Page(
        items=[Comment.of(view, actor_id) for view in page.items], next=_pack_next(page.last)
    )


@app.get("/comments/<comment_id>", **_get(Comment, "The comment."))
def get_comment(comment_id: Id) -> Comment:
    """Get a comment.

    Returns one comment with its likes.
    """
    actor_id = find_caller(app)
    return Comment.of(queries.read_one(_target("comment", comment_id), actor_id), actor_id)


@app.delete("/comments/<comment_id>", **_DELETE)
def delete_comment(comment_id: Id) -> Response[None]:
    """Delete a comment of the caller.

    A repeat is a 410.
    """
    return _delete(_target("comment", comment_id))


@app.post("/shops/<shop_id>/reviews", **_create(Review, 404))
def create_review(
    shop_id: Id, request: ReviewRequest, key: IdempotencyKey = None
) -> tuple[Review, int]:
    """Create a review of a shop.

    With an `Idempotency-Key` the request can be repeated; without one, each request creates a
    review.
    """
    actor_id = require_caller(app)
    draft = request.to_draft(actor_id, read_id(shop_id, "shop"))
    return Review.of(_create_content(draft, key), actor_id), 201


@app.get("/shops/<shop_id>/reviews", **_list(Review, 410))
def list_reviews(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Review]:
    """List the reviews of a shop.

    Newest first.
    """
    actor_id = find_caller(app)
    page = queries.list_reviews(read_id(shop_id, "shop"), _parse_cursor(cursor), limit, actor_id)
    return Page(
        items=[Review.of(view, actor_id) for view in page.items], next=_pack_next(page.last)
    )


@app.get("/reviews/<review_id>", **_get(Review, "The review."))
def get_review(review_id: Id) -> Review:
    """Get a review.

    Returns one review with its likes.
    """
    actor_id = find_caller(app)
    return Review.of(queries.read_one(_target("review", review_id), actor_id), actor_id)


@app.delete("/reviews/<review_id>", **_DELETE)
def delete_review(review_id: Id) -> Response[None]:
    """Delete a review of the caller.

    A repeat is a 410.
    """
    return _delete(_target("review", review_id))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about content."""
    return serve(app, event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _create_content(draft: Draft, key: str | None) -> ContentView:
    return commands.create(draft, IdempotentRequest.of(key, asdict(draft)) if key else None)


def _delete(target: Target) -> Response[None]:
    commands.delete(target, require_caller(app))
    return Response(204)


def _parse_cursor(cursor: str | None) -> ListPosition | None:
    if cursor is None:
        return None
    place = ListPosition(*unpack_cursor(cursor, (int, int)))
    if not place.is_valid:
        raise BadInput("cursor", "was not returned by this API")
    return place


def _pack_next(last: ListPosition | None) -> str | None:
    return pack_cursor(*last) if last else None
