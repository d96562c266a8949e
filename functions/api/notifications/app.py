"""What is new for a user, and what is pushed to the browsers of a user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.core.switches import current
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.infra.http.routes import BEARER, WRITES, Responses
from plaza.infra.http.schemas import Cursor, Limit
from plaza.infra.runtime.lazy_modules import LazyModule
from plaza.infra.runtime.observability import logger, metrics
from plaza.notifications.notifications import GroupCursor, mark_read
from plaza.notifications.notifications import queries as unread_queries
from plaza.notifications.notifications.listed import decode_order
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
from plaza.people.auth.caller_identity import identify

if TYPE_CHECKING:
    from plaza.notifications.notifications import list_notifications as notifications
else:  # badges read no texts
    notifications = LazyModule("plaza.notifications.notifications.list_notifications")

app = PlazaResolver(identify, tag="users")


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


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about notifications."""
    return app.resolve(event, context)
