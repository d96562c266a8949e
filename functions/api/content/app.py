"""Posts, comments and reviews."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.core.reach import visitor_ids
from plaza.core.reactions import Target
from plaza.core.switches import Switch
from plaza.core.targets import TargetHidden
from plaza.infra.http.cursors import BadCursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id, read_tags, tag_version
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.responses import encode_page
from plaza.infra.http.routes import (
    BEARER,
    OPTIONAL,
    WRITES,
    BodyOf,
    Headers,
    Responses,
    StoppedBy,
)
from plaza.infra.runtime.errors import ChangedMeanwhile, Forbidden, Gone, NotFound
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify
from plaza.people.blocks import Blocked
from plaza.social.content import listed_texts, queries
from plaza.social.content.encoder import (
    encode_comment,
    encode_post,
    encode_post_details,
    encode_preview,
    encode_review,
)
from plaza.social.content.model import (
    AlreadyReviewed,
    ContentView,
    Draft,
    ListCursor,
    OrderUnusable,
)

if TYPE_CHECKING:
    from plaza.core.reach import schemas as reach_schemas
    from plaza.infra.http import schemas as http
    from plaza.social.content import commands, schemas
else:  # reads need no commands, and a request without parameters no pydantic
    commands = LazyModule("plaza.social.content.commands")
    http, schemas = (
        LazyModule("plaza.infra.http.schemas"),
        LazyModule("plaza.social.content.schemas"),
    )
    reach_schemas = LazyModule("plaza.core.reach.schemas")

app = PlazaResolver(identify, tag="content", names={"/posts/ranking": ["GET"]})

_CREATED = "Created by this request, or by an earlier one with the same key."
_PAGE = "A page. Long texts make it shorter than `limit`."
_DELETED = Responses({204: "Deleted."}, Forbidden, NotFound, Gone)


@app.post(
    "/posts",
    security=BEARER,
    middlewares=[StoppedBy(Switch.POSTS)],
    responses=Responses({201: _CREATED}, KeyReused, Gone, example=1),
)
def create_post(
    request: schemas.PostRequest, key: http.IdempotencyKey = None
) -> tuple[Annotated[str, BodyOf(schemas.Post)], int]:
    """Create a post.

    The post appears in the feeds of the author's followers. With an `Idempotency-Key` the request
    can be repeated; without one, each request creates a post.
    """
    actor_id = require_caller(app)
    return encode_post(_create_content(request.to_draft(actor_id), key), actor_id), 201


@app.get("/posts", security=OPTIONAL, responses=Responses("The posts, in the order of `ids`."))
def list_posts_by_id(
    ids: http.Ids, cursor: http.Cursor = None
) -> Annotated[str, BodyOf(http.Page[schemas.PostPreview])]:
    """List posts by id.

    Leaves out ids of posts that do not exist, were deleted or are hidden; ten of them count as
    another read. Send `next` as `cursor` with the same `ids`.
    """
    actor_id = find_caller(app)
    begin = unpack_cursor(cursor, (int,))[0] if cursor else 0
    post_ids = list(dict.fromkeys(map(int, ids)))
    if not 0 <= begin < len(post_ids):
        raise BadCursor
    posts, answered = queries.read_posts_by_id(post_ids[begin:], actor_id)
    app.charge_unknown(answered, len(posts))
    end = begin + answered
    items = [encode_preview(view, actor_id) for view in posts]
    return encode_page(items, (end,) if end < len(post_ids) else None)


@app.get(
    "/posts/<post_id>",
    security=OPTIONAL,
    responses=Responses("The post.", NotFound, Gone, TargetHidden),
)
def get_post(
    post_id: Id, visitor_id: reach_schemas.VisitorId = None
) -> tuple[Annotated[str, BodyOf(schemas.PostDetails)], int, Headers]:
    """Get a post.

    Counts the caller as a viewer of the post, once. Without a session that is the anonymous id in
    `X-Visitor-Id`, and without a valid id all callers of the network. Its author gets an `ETag` for
    the `If-Match` of a change.
    """
    actor_id = find_caller(app)
    target = _target("post", post_id)
    visit = visitor_ids.build_visit(actor_id, visitor_id, app.client_ip)
    view = queries.read_one(target, actor_id, visit)
    likers = listed_texts.read_first_likers(target.id, actor_id)
    return encode_post_details(view, actor_id, likers), 200, _tag(view, actor_id)


@app.patch(
    "/posts/<post_id>",
    security=BEARER,
    middlewares=[StoppedBy(Switch.POSTS)],
    responses=Responses("The changed post.", Forbidden, NotFound, Gone, ChangedMeanwhile),
)
def update_post(
    post_id: Id, change: schemas.PostUpdateRequest, if_match: http.IfMatch = None
) -> tuple[Annotated[str, BodyOf(schemas.Post)], int, Headers]:
    """Update a post of the caller.

    Changes the fields that are sent: title, body, images. Feeds, lists and rankings show the
    change within 2 seconds. Idempotent.
    """
    actor_id, tags = require_caller(app), read_tags(if_match)
    view = commands.edit(read_id(post_id, "post"), actor_id, change.changes, tags)
    return encode_post(view, actor_id), 200, _tag(view, actor_id)


@app.delete("/posts/<post_id>", security=BEARER, middlewares=WRITES, responses=_DELETED)
def delete_post(post_id: Id) -> tuple[None, int]:
    """Delete a post of the caller.

    The likes and collects that it received stay in the author's totals. A repeat is a 410.
    """
    return _delete(_target("post", post_id))


@app.get("/users/<user_id>/posts", security=OPTIONAL, responses=Responses(_PAGE, NotFound))
def list_user_posts(
    user_id: Id, limit: http.Limit = 20, cursor: http.Cursor = None
) -> Annotated[str, BodyOf(http.Page[schemas.PostPreview])]:
    """List the posts of a user.

    Newest first.
    """
    actor_id = find_caller(app)
    page = queries.list_posts(read_id(user_id, "user"), _parse_cursor(cursor), limit, actor_id)
    return encode_page([encode_preview(view, actor_id) for view in page.items], page.last)


@app.post(
    "/posts/<post_id>/comments",
    security=BEARER,
    middlewares=[StoppedBy(Switch.COMMENTS)],
    responses=Responses(
        {201: _CREATED}, Blocked, NotFound, KeyReused, Gone, TargetHidden, example=1
    ),
)
def create_comment(
    post_id: Id, request: schemas.CommentRequest, key: http.IdempotencyKey = None
) -> tuple[Annotated[str, BodyOf(schemas.Comment)], int]:
    """Create a comment on a post.

    With an `Idempotency-Key` the request can be repeated; without one, each request creates a
    comment.
    """
    actor_id = require_caller(app)
    draft = request.to_draft(actor_id, read_id(post_id, "post"))
    return encode_comment(_create_content(draft, key), actor_id), 201


@app.get(
    "/posts/<post_id>/comments",
    security=OPTIONAL,
    responses=Responses(_PAGE, NotFound, Gone, TargetHidden),
)
def list_comments(
    post_id: Id,
    limit: http.Limit = 20,
    cursor: http.Cursor = None,
    order: schemas.SortOrder = "latest",
) -> Annotated[str, BodyOf(http.Page[schemas.Comment])]:
    """List the comments of a post.

    Newest first, unless `order` says otherwise. Comments of users whom the caller blocks are left
    out, so a page may be shorter than `limit`.
    """
    actor_id, latest = find_caller(app), order == "latest"
    post = read_id(post_id, "post")
    page = queries.list_comments(post, _parse_cursor(cursor), latest, limit, actor_id)
    return encode_page([encode_comment(view, actor_id) for view in page.items], page.last)


@app.get(
    "/comments/<comment_id>",
    security=OPTIONAL,
    responses=Responses("The comment.", NotFound, Gone, TargetHidden),
)
def get_comment(comment_id: Id) -> Annotated[str, BodyOf(schemas.Comment)]:
    """Get a comment.

    Returns one comment with its likes.
    """
    actor_id = find_caller(app)
    return encode_comment(queries.read_one(_target("comment", comment_id), actor_id), actor_id)


@app.delete("/comments/<comment_id>", security=BEARER, middlewares=WRITES, responses=_DELETED)
def delete_comment(comment_id: Id) -> tuple[None, int]:
    """Delete a comment of the caller.

    A repeat is a 410.
    """
    return _delete(_target("comment", comment_id))


@app.post(
    "/shops/<shop_id>/reviews",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {201: _CREATED}, NotFound, KeyReused, AlreadyReviewed, OrderUnusable, Gone, example=1
    ),
)
def create_review(
    shop_id: Id, request: schemas.ReviewRequest, key: http.IdempotencyKey = None
) -> tuple[Annotated[str, BodyOf(schemas.Review)], int]:
    """Create a review of a shop.

    A user reviews a shop once, and each order that was used there once more: with its `order_id`
    the review is `verified`. A deleted review can be replaced. With an `Idempotency-Key` the
    request can be repeated; without one, a repeat is a 409 `already-reviewed`.
    """
    actor_id = require_caller(app)
    draft = request.to_draft(actor_id, read_id(shop_id, "shop"))
    return encode_review(_create_content(draft, key), actor_id), 201


@app.get("/shops/<shop_id>/reviews", security=OPTIONAL, responses=Responses(_PAGE, NotFound, Gone))
def list_reviews(
    shop_id: Id, limit: http.Limit = 20, cursor: http.Cursor = None
) -> Annotated[str, BodyOf(http.Page[schemas.Review])]:
    """List the reviews of a shop.

    Newest first. Reviews of users whom the caller blocks are left out, so a page may be shorter
    than `limit`.
    """
    actor_id = find_caller(app)
    page = queries.list_reviews(read_id(shop_id, "shop"), _parse_cursor(cursor), limit, actor_id)
    return encode_page([encode_review(view, actor_id) for view in page.items], page.last)


@app.get(
    "/reviews/<review_id>",
    security=OPTIONAL,
    responses=Responses("The review.", NotFound, Gone, TargetHidden),
)
def get_review(review_id: Id) -> Annotated[str, BodyOf(schemas.Review)]:
    """Get a review.

    Returns one review with its likes.
    """
    actor_id = find_caller(app)
    return encode_review(queries.read_one(_target("review", review_id), actor_id), actor_id)


@app.delete("/reviews/<review_id>", security=BEARER, middlewares=WRITES, responses=_DELETED)
def delete_review(review_id: Id) -> tuple[None, int]:
    """Delete a review of the caller.

    A repeat is a 410.
    """
    return _delete(_target("review", review_id))


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about content."""
    return app.resolve(event, context)


def _target(target_type: str, target_id: str) -> Target:
    return Target(target_type, read_id(target_id, target_type))


def _create_content(draft: Draft, key: str | None) -> ContentView:
    return commands.create(draft, IdempotentRequest.of(key, asdict(draft)) if key else None)


def _delete(target: Target) -> tuple[None, int]:
    commands.delete(target, require_caller(app))
    return None, 204


def _parse_cursor(cursor: str | None) -> ListCursor | None:
    if cursor is None:
        return None
    after = ListCursor(*unpack_cursor(cursor, (int, int)))
    if not after.is_valid:
        raise BadCursor
    return after


def _tag(view: ContentView, actor_id: int | None) -> Headers:
    """Return the header ETag of a text for its author, none for others."""
    is_own = view.text.author_id == actor_id
    return {"etag": tag_version(view.text.version)} if is_own else {}
