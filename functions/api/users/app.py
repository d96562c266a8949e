"""Profiles and accounts of users."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.switches import current
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id, read_tags
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import (
    ADMIN,
    BEARER,
    OPERATOR,
    OPTIONAL,
    WRITES,
    Compressed,
    FreshSignIn,
    Headers,
    Responses,
)
from plaza.infra.http.schemas import Cursor, Ids, IfMatch, Limit, Page
from plaza.infra.runtime.errors import ChangedMeanwhile, Forbidden, NotFound, Unavailable
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.notifications.notifications.model import decode_order
from plaza.notifications.notifications.schemas import (
    MarkReadRequest,
    MarkReadResponse,
    NotificationsResponse,
    UnreadResponse,
)
from plaza.notifications.push import subscriptions
from plaza.notifications.push.model import PushIsOff, SubscriptionMissing, TooManySubscriptions
from plaza.notifications.push.schemas import (
    PushPreferencesRequest,
    PushResponse,
    SubscriptionId,
    SubscriptionRequest,
    SubscriptionResponse,
)
from plaza.notifications.unread import GroupCursor, mark_read
from plaza.notifications.unread import queries as unread_queries
from plaza.operate.accounts import export
from plaza.operate.accounts.request_erasure import (
    close_account,
    close_account_of,
    read_latest,
    require_known,
)
from plaza.operate.accounts.schemas import ErasureResponse, ExportedRowResponse
from plaza.people.auth import own_sessions, parse_bearer, session_end
from plaza.people.auth.caller_identity import identify
from plaza.people.auth.own_sessions import SessionMissing
from plaza.people.auth.session_schemas import OwnSessionResponse, SessionId
from plaza.people.auth.sessions import hash_token
from plaza.people.blocks import queries as block_queries
from plaza.people.users import profiles
from plaza.people.users.model import Profile
from plaza.people.users.schemas import (
    EndSessionsResponse,
    OwnProfile,
    ProfileUpdateRequest,
    UserProfile,
)

if TYPE_CHECKING:
    from plaza.notifications.notifications import list_notifications as notifications
else:  # profiles and badges read no texts
    notifications = LazyModule("plaza.notifications.notifications.list_notifications")

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


@app.get(
    "/users/me/notifications/unread",
    security=BEARER,
    responses=Responses("What is new for the caller."),
)
def get_my_unread() -> UnreadResponse:
    """Get how many notifications are new.

    Returns the number that a badge shows. Poll it; an answer with a lower `at` than one before is
    late.
    """
    return UnreadResponse.of(unread_queries.read_unread(require_caller(app)))


@app.get(
    "/users/me/notifications",
    security=BEARER,
    responses=Responses("Notifications, those with the newest event first."),
)
def list_my_notifications(limit: Limit = 20, cursor: Cursor = None) -> NotificationsResponse:
    """List notifications.

    Returns all likes or comments of a text, or all follows, as one item each, read or not. A page
    may have fewer items than `limit`.
    """
    user_id = require_caller(app)
    after = cursor and GroupCursor(*unpack_cursor(cursor, (int, str, str, int)))
    page = notifications.list_notifications(
        user_id,
        after or None,
        limit,
        is_displayed=not (app.current_event.http_method == "HEAD" or current().read_only),
    )
    following = page.last and pack_cursor(*page.last)
    return NotificationsResponse.of_page(page, following)


@app.put(
    "/users/me/notifications/read",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("What is new after the mark."),
)
def update_my_notifications(mark: MarkReadRequest) -> MarkReadResponse:
    """Mark notifications as read.

    Marks what the list displayed, and leaves what is new since. Idempotent.
    """
    user_id = require_caller(app)
    marked = mark_read.mark_read(user_id, decode_order(mark.at), mark.keys_of(user_id))
    state = UnreadResponse.of(marked.state)
    return MarkReadResponse(unread=state.unread, at=state.at, left=marked.left)


@app.get("/users/me/push", security=BEARER, responses=Responses("What is pushed to the caller."))
def get_my_push() -> PushResponse:
    """Get what is pushed.

    Returns the key with which a browser subscribes, and the preference of each kind of
    notification.
    """
    preferences = subscriptions.read_preferences(require_caller(app))
    return PushResponse.of(subscriptions.read_public_key(), preferences)


@app.put(
    "/users/me/push",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("What is pushed to the caller."),
)
def update_my_push(change: PushPreferencesRequest) -> PushResponse:
    """Choose what is pushed.

    Changes the preferences that it names. Notifications are listed as before.
    """
    changed = subscriptions.change_preferences(
        require_caller(app), [preference.to_preference() for preference in change.preferences]
    )
    return PushResponse.of(subscriptions.read_public_key(), changed)


@app.put(
    "/push-subscriptions",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The subscription.", PushIsOff, TooManySubscriptions),
)
def create_push_subscription(request: SubscriptionRequest) -> SubscriptionResponse:
    """Push to a browser.

    What was new before is not pushed. A browser belongs to the user who added it last. Idempotent.
    """
    user_id = require_caller(app)
    sequence = unread_queries.read_states([user_id])[user_id].sequence
    added = subscriptions.subscribe(user_id, request.to_subscription(), sequence)
    return SubscriptionResponse(id=added)


@app.delete(
    "/push-subscriptions/<subscription_id>",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses({204: "Nothing is pushed to it."}, SubscriptionMissing),
)
def delete_push_subscription(subscription_id: SubscriptionId) -> tuple[None, int]:
    """End the pushes to a browser.

    Call it before the session ends.
    """
    subscriptions.unsubscribe(require_caller(app), subscription_id)
    return None, 204


@app.get("/ops/erasures", security=OPERATOR, responses=Responses("The latest erasures.", example=1))
def list_erasures(limit: Limit = 100) -> Page[ErasureResponse]:
    """List erasures of accounts.

    Returns the latest ones; those that are not closed come first. For operators.
    """
    return Page(items=[ErasureResponse.of(erasure) for erasure in read_latest(limit)], next=None)


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


@app.get(
    "/users/<user_id>/export",
    security=ADMIN,
    middlewares=[Compressed(False), FreshSignIn()],
    responses=Responses("Rows about the user.", NotFound),
)
def get_user_export(
    user_id: Id, limit: Limit = 100, cursor: Cursor = None
) -> Page[ExportedRowResponse]:
    """Get what is stored about a user.

    For a user who asked for it and cannot sign in. Needs a sign-in within five minutes; a session
    signs in again for the next pages. For admins.
    """
    admin_id, exported_id = require_caller(app), read_id(user_id, "user")
    rows, following = export.read_page_of(exported_id, admin_id, cursor, limit, app.charge)
    if not rows:
        require_known(exported_id)
    return Page(items=[ExportedRowResponse.of(row) for row in rows], next=following)


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
