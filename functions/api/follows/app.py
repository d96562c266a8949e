"""Follows, lists of followers, and blocks."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.reactions.model import Outcome
from plaza.infra.http.cursors import BadCursor, pack_cursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import BEARER, OPTIONAL, WRITES, Responses
from plaza.infra.http.schemas import Cursor, Limit, Page
from plaza.infra.runtime.errors import NotFound
from plaza.infra.runtime.observability import logger, metrics
from plaza.people import follows
from plaza.people.auth.caller_identity import identify
from plaza.people.blocks import BlockCursor, Blocked, BlockLimit, SelfBlock, queries
from plaza.people.blocks.block_user import block, unblock
from plaza.people.blocks.schemas import BlockListItem, BlockResponse
from plaza.people.follows import FollowCursor, FollowLimit, Person, SelfFollow
from plaza.people.follows.schemas import FollowListItem, FollowResponse, SortOrder

app = PlazaResolver(identify, tag="follows")

_PROVISIONAL = "Accepted; not counted yet. Redis is unavailable."
_PAGE_OF_USERS = Responses("A page of users.", NotFound)


@app.put(
    "/users/<user_id>/followers/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller follows the user.", 202: _PROVISIONAL},
        Blocked,
        NotFound,
        SelfFollow,
        FollowLimit,
    ),
)
def follow_user(user_id: Id) -> tuple[FollowResponse, int]:
    """Follow a user.

    The user's posts appear in the caller's feed. Idempotent: a follow counts once. A user follows
    at most 5,000 users.
    """
    actor_id = require_caller(app)
    return _followed(follows.follow(read_id(user_id, "user"), actor_id))


@app.delete(
    "/users/<user_id>/followers/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        {200: "The caller does not follow the user.", 202: _PROVISIONAL}, NotFound, example=2
    ),
)
def unfollow_user(user_id: Id) -> tuple[FollowResponse, int]:
    """Unfollow a user.

    The user's posts leave the caller's feed. Idempotent.
    """
    actor_id = require_caller(app)
    return _followed(follows.unfollow(read_id(user_id, "user"), actor_id))


@app.get("/users/<user_id>/followers", security=OPTIONAL, responses=_PAGE_OF_USERS)
def list_followers(
    user_id: Id, limit: Limit = 20, cursor: Cursor = None, order: SortOrder = "latest"
) -> Page[FollowListItem]:
    """List the followers of a user.

    Latest follow first, unless `order` says otherwise. A new follow appears after a second or two.
    """
    actor_id, of_id = find_caller(app), read_id(user_id, "user")
    latest = order == "latest"
    return _page(follows.list_followers(of_id, actor_id, _parse_cursor(cursor), latest, limit))


@app.get("/users/<user_id>/following", security=OPTIONAL, responses=_PAGE_OF_USERS)
def list_following(user_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[FollowListItem]:
    """List the users whom a user follows.

    Latest follow first.
    """
    actor_id, of_id = find_caller(app), read_id(user_id, "user")
    return _page(follows.list_following(of_id, actor_id, _parse_cursor(cursor), limit))


@app.get("/users/<user_id>/common-follows", security=BEARER, responses=_PAGE_OF_USERS)
def list_common_follows(
    user_id: Id, limit: Limit = 20, cursor: Cursor = None
) -> Page[FollowListItem]:
    """List the users whom a user and the caller follow.

    The caller's latest follow first.
    """
    actor_id, of_id = require_caller(app), read_id(user_id, "user")
    return _page(follows.list_common(of_id, actor_id, _parse_cursor(cursor), limit))


@app.put(
    "/users/<user_id>/blocks/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The caller blocks the user.", NotFound, SelfBlock, BlockLimit),
)
def block_user(user_id: Id) -> BlockResponse:
    """Block a user.

    Ends the follows between the two users. While the block lasts, neither can follow the other or
    comment on the other's posts, and the caller's lists of comments and reviews leave out texts of
    the blocked user. What is public stays readable. Idempotent. A user blocks at most 1,000 users.
    """
    actor_id = require_caller(app)
    changed = block(read_id(user_id, "user"), actor_id)
    return BlockResponse(blocked=True, changed=changed)


@app.delete(
    "/users/<user_id>/blocks/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The caller does not block the user.", NotFound, example=1),
)
def unblock_user(user_id: Id) -> BlockResponse:
    """Unblock a user.

    The follows that the block ended stay ended. Idempotent.
    """
    actor_id = require_caller(app)
    changed = unblock(read_id(user_id, "user"), actor_id)
    return BlockResponse(blocked=False, changed=changed)


@app.get("/users/me/blocks", security=BEARER, responses=Responses("A page of users."))
def list_my_blocks(limit: Limit = 20, cursor: Cursor = None) -> Page[BlockListItem]:
    """List the users whom the caller blocks.

    Latest block first.
    """
    after = BlockCursor(*unpack_cursor(cursor, (int, int))) if cursor else None
    if after and not after.is_valid:
        raise BadCursor
    page, last = queries.list_blocked(require_caller(app), after, limit)
    return Page(
        items=[BlockListItem.of(item) for item in page], next=pack_cursor(*last) if last else None
    )


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about follows."""
    return app.resolve(event, context)


def _followed(outcome: Outcome) -> tuple[FollowResponse, int]:
    return FollowResponse.of(outcome), 200 if outcome.exact else 202


def _parse_cursor(cursor: str | None) -> FollowCursor | None:
    return FollowCursor(*unpack_cursor(cursor, (int, int))) if cursor else None


def _page(page: tuple[list[Person], FollowCursor | None]) -> Page[FollowListItem]:
    people, last = page
    items = [FollowListItem.of(person) for person in people]
    return Page(items=items, next=pack_cursor(*last) if last else None)
