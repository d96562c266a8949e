"""Profiles and accounts of users."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.accounts import export
from plaza.accounts.request_erasure import read_latest, request_erasure
from plaza.accounts.schemas import ErasureResponse, ExportedRowResponse
from plaza.auth import session_end
from plaza.auth.caller_identity import identify
from plaza.blocks import queries as block_queries
from plaza.infra.http.requests import Id, read_id
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import ADMIN, BEARER, OPTIONAL, WRITES, Compressed, Responses
from plaza.infra.http.schemas import Cursor, Ids, Limit, Page
from plaza.infra.runtime.errors import NotFound, Unavailable
from plaza.infra.runtime.observability import logger, metrics
from plaza.users import profiles
from plaza.users.schemas import EndSessionsResponse, OwnProfile, ProfileUpdateRequest, UserProfile

app = PlazaResolver(identify, tag="users")


@app.get("/users/me", security=BEARER, responses=Responses("The caller's profile.", NotFound))
def get_my_profile() -> OwnProfile:
    """Get the caller's profile.

    Returns what other users see, and the time zone.
    """
    return OwnProfile.of(profiles.read_own_profile(require_caller(app)))


@app.patch(
    "/users/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The changed profile.", NotFound),
)
def update_my_profile(change: ProfileUpdateRequest) -> OwnProfile:
    """Update the caller's profile.

    Changes the fields that are sent: nickname, avatar, time zone. Idempotent.
    """
    return OwnProfile.of(profiles.change_profile(require_caller(app), change.changes))


@app.delete(
    "/users/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses({202: "The account is being erased."}),
)
def delete_my_account() -> tuple[ErasureResponse, int]:
    """Erase the caller's account.

    Ends all sessions and removes profile and phone number at once; the number may sign up again.
    Posts, comments, reviews, likes, collects, follows, followers and check-ins are removed within
    minutes. Orders stay, without a name. It cannot be undone.
    """
    return ErasureResponse.of(request_erasure(require_caller(app))), 202


@app.get(
    "/users/me/export",
    security=BEARER,
    middlewares=[Compressed(False)],
    responses=Responses("Rows about the caller."),
)
def get_my_export(limit: Limit = 100, cursor: Cursor = None) -> Page[ExportedRowResponse]:
    """Get what is stored about the caller.

    Returns the rows of all tables that name the caller, section by section.
    """
    rows, following = export.read_page(require_caller(app), cursor, limit, app.charge)
    return Page(items=[ExportedRowResponse.of(row) for row in rows], next=following)


@app.get("/ops/erasures", security=ADMIN, responses=Responses("The latest erasures.", example=1))
def list_erasures(limit: Limit = 100) -> Page[ErasureResponse]:
    """List erasures of accounts.

    Returns the latest ones; those that are not closed come first. For admins.
    """
    return Page(items=[ErasureResponse.of(erasure) for erasure in read_latest(limit)], next=None)


@app.get("/users", security=OPTIONAL, responses=Responses("The profiles, in the order of `ids`."))
def list_users_by_id(ids: Ids) -> Page[UserProfile]:
    """List users by id.

    Leaves out ids of users that do not exist.
    """
    actor_id = find_caller(app)
    found_profiles = profiles.read_profiles(list(dict.fromkeys(map(int, ids))), actor_id)
    blocked = _read_blocked(actor_id)
    return Page(items=[UserProfile.of(profile, blocked) for profile in found_profiles], next=None)


@app.get(
    "/users/<user_id>", security=OPTIONAL, responses=Responses("The profile of the user.", NotFound)
)
def get_user(user_id: Id) -> UserProfile:
    """Get a user's profile.

    Returns the name, the avatar and the totals of a user, and whether the caller follows or blocks
    the user.
    """
    actor_id = find_caller(app)
    profile = profiles.read_profile(read_id(user_id, "user"), actor_id)
    return UserProfile.of(profile, _read_blocked(actor_id))


@app.delete(
    "/users/<user_id>/sessions",
    security=ADMIN,
    responses=Responses("All sessions have ended.", NotFound),
)
def delete_user_sessions(user_id: Id) -> EndSessionsResponse:
    """End all sessions of a user.

    Idempotent. For admins.
    """
    admin_id = require_caller(app)
    return EndSessionsResponse(
        ended=session_end.end_user_sessions(read_id(user_id, "user"), operator_id=admin_id)
    )


def _read_blocked(actor_id: int | None) -> frozenset[int] | None:
    """Return the users that the caller blocks; None for anonymous callers, and while neither Redis
    nor MySQL has them."""
    if actor_id is None:
        return None
    with suppress(Unavailable):
        return block_queries.read_blocked(actor_id)
    return None


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about users."""
    return app.resolve(event, context)
