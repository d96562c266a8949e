"""Profiles and accounts of users."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.infra.http.requests import Id, read_id, read_tags
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import (
    ADMIN,
    BEARER,
    OPERATOR,
    OPTIONAL,
    WRITES,
    FreshSignIn,
    Headers,
    Responses,
)
from plaza.infra.http.schemas import Ids, IfMatch, Page
from plaza.infra.runtime.errors import ChangedMeanwhile, Forbidden, NotFound, Unavailable
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth import own_sessions, parse_bearer, session_end
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.own_sessions import SessionMissing
from plaza.people.auth.request_erasure import close_account, close_account_of
from plaza.people.auth.session_schemas import OwnSessionResponse, SessionId
from plaza.people.auth.sessions import hash_token
from plaza.people.blocks import queries as block_queries
from plaza.people.users import profiles
from plaza.people.users.model import Profile
from plaza.people.users.schemas import (
    EndSessionsResponse,
    ErasureResponse,
    OwnProfile,
    ProfileUpdateRequest,
    UserProfile,
)

app = PlazaResolver(identify, tag="users")


@app.get("/users/me", security=BEARER, responses=Responses("The caller's profile.", NotFound))
def get_my_profile() -> tuple[OwnProfile, int, Headers]:
    """Get the caller's profile.

    Returns what other users see, the time zone, and an `ETag` for the `If-Match` of a change.
    """
    return _own(profiles.read_own_profile(require_caller(app)))


@app.patch(
    "/users/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The changed profile.", NotFound, ChangedMeanwhile),
)
def update_my_profile(
    change: ProfileUpdateRequest, if_match: IfMatch = None
) -> tuple[OwnProfile, int, Headers]:
    """Update the caller's profile.

    Changes the fields that are sent: nickname, avatar, time zone. Idempotent.
    """
    user_id, tags = require_caller(app), read_tags(if_match)
    return _own(profiles.change_profile(user_id, change.changes, tags))


@app.delete(
    "/users/me",
    security=BEARER,
    middlewares=[*WRITES, FreshSignIn(admits_keys=True)],
    responses=Responses({202: "The account is closed."}),
)
def delete_my_account() -> tuple[ErasureResponse, int]:
    """Close and erase the caller's account.

    Ends all sessions and hides the profile at once, posts, comments and reviews within minutes.
    Signing in within seven days opens the account again. Then all is erased: also likes, collects,
    follows, followers and check-ins. Orders stay, without a name. A session needs a sign-in within
    five minutes.
    """
    return ErasureResponse.of(close_account(require_caller(app))), 202


@app.get(
    "/users/me/sessions",
    security=BEARER,
    responses=Responses("Open sessions, the newest first. `next` is null."),
)
def list_my_sessions() -> Page[OwnSessionResponse]:
    """List the sessions of the caller.

    Returns the newest 100, each with the client that signed in and what it may do.
    """
    current = hash_token(_read_token())
    listed = own_sessions.list_sessions(require_caller(app))
    return Page(items=[OwnSessionResponse.of(each, current) for each in listed], next=None)


@app.delete(
    "/users/me/sessions/<session_id>",
    security=BEARER,
    responses=Responses({204: "It has ended."}, SessionMissing),
)
def delete_my_session(session_id: SessionId) -> tuple[None, int]:
    """End a session of the caller.

    Such as one on a device that was lost; also the session of this request.
    """
    _read_token()  # a server key has no sessions
    own_sessions.end_session(require_caller(app), session_id)
    return None, 204


@app.get("/users", security=OPTIONAL, responses=Responses("The profiles, in the order of `ids`."))
def list_users_by_id(ids: Ids) -> Page[UserProfile]:
    """List users by id.

    Leaves out ids of users that do not exist. Ten of them count as another read.
    """
    actor_id, asked = find_caller(app), list(dict.fromkeys(map(int, ids)))
    found_profiles = profiles.read_profiles(asked, actor_id)
    app.charge_unknown(len(asked), len(found_profiles))
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
    security=OPERATOR,
    responses=Responses("All sessions have ended.", NotFound),
)
def delete_user_sessions(user_id: Id) -> EndSessionsResponse:
    """End all sessions of a user.

    Idempotent. For operators.
    """
    admin_id = require_caller(app)
    return EndSessionsResponse(
        ended=session_end.end_user_sessions(read_id(user_id, "user"), operator_id=admin_id)
    )


@app.delete(
    "/users/<user_id>",
    security=ADMIN,
    middlewares=[*WRITES, FreshSignIn()],
    responses=Responses({202: "The account is closed."}, NotFound),
)
def delete_user(user_id: Id) -> tuple[ErasureResponse, int]:
    """Close and erase the account of a user.

    As the user can: it is closed at once, opens again if the user signs in within seven days, and
    is erased then. Needs a sign-in within five minutes. For admins.
    """
    admin_id, erased_id = require_caller(app), read_id(user_id, "user")
    return ErasureResponse.of(close_account_of(erased_id, operator_id=admin_id)), 202


def _own(profile: Profile) -> tuple[OwnProfile, int, Headers]:
    return OwnProfile.of(profile), 200, {"etag": profiles.tag_of(profile)}


def _read_token() -> str:
    token = parse_bearer(app.current_event.headers.get("authorization", ""))
    if token is None:
        raise Forbidden("A key of a server has no sessions.")
    return token


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
