"""Subscribe browsers, and choose what is pushed."""

from __future__ import annotations

from collections.abc import Sequence

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.settings import settings
from plaza.notifications.push import mysql_store
from plaza.notifications.push.model import (
    CHANNELS,
    KINDS,
    MAX_SUBSCRIPTIONS,
    Preference,
    PushIsOff,
    Subscription,
    SubscriptionMissing,
    TooManySubscriptions,
    parse_endpoint,
)
from plaza.notifications.push.settings import push_settings


def read_public_key() -> str | None:
    """Return the key that browsers subscribe with, None if nothing is pushed."""
    return push_settings().public_key


def subscribe(user_id: int, subscription: Subscription, sequence: int) -> str:
    """Add a browser of a user and return its id; what notified up to ``sequence`` is not pushed.
    The browser of another user becomes this one's. One transaction of five statements at most. Safe
    to repeat. Raises PushIsOff, TooManySubscriptions, BadInput for another host than a push
    service's, MysqlDown."""
    if not push_settings().is_on:
        raise PushIsOff("This deployment sends no push messages.")
    is_local = settings().environment == "local"
    try:
        parse_endpoint(subscription.endpoint, push_settings().hosts, is_local=is_local)
    except ValueError as error:
        raise BadInput("endpoint", str(error), code="not-listed") from None

    def work(cursor: Cursor) -> None:
        is_new = mysql_store.add_subscription(cursor, user_id, subscription, sequence)
        mysql_store.lock_recipient(cursor, user_id)
        count = mysql_store.count_subscriptions(cursor, user_id)
        if count > MAX_SUBSCRIPTIONS:
            raise TooManySubscriptions
        if is_new and count == 1:
            mysql_store.reset_sequence(cursor, user_id, sequence)

    mysql.run_in_transaction(work)
    return subscription.endpoint_hash.hex()


def unsubscribe(user_id: int, subscription_id: str) -> None:
    """End a subscription of a user. Two statements. Raises SubscriptionMissing, also for a repeat;
    MysqlDown."""
    endpoint_hash = bytes.fromhex(subscription_id)
    # A DELETE whose reply is lost runs again, and then deletes nothing.
    if not mysql_store.has_subscription(user_id, endpoint_hash):
        raise SubscriptionMissing("You have no such subscription.")
    mysql_store.delete_subscriptions([(user_id, endpoint_hash)])


def read_preferences(user_id: int) -> list[Preference]:
    """Return the preference of each kind and channel. One statement. Raises MysqlDown."""
    stored = {(p.kind, p.channel): p for p in mysql_store.read_preferences(user_id)}
    return [
        stored.get((kind, channel), Preference(kind, channel, True))
        for kind in KINDS
        for channel in CHANNELS
    ]


def change_preferences(user_id: int, preferences: Sequence[Preference]) -> list[Preference]:
    """Store some preferences; return all. Two statements. Raises MysqlDown."""
    if preferences:
        mysql_store.store_preferences(user_id, preferences)
    return read_preferences(user_id)
