"""Subscriptions, preferences and recipients of push messages in MySQL. Unless stated otherwise, a
function runs one statement; without a cursor it raises MysqlDown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from plaza.infra.mysql import mysql, sql
from plaza.infra.mysql.mysql import Cursor
from plaza.notifications.push.model import COALESCED_S, Preference, Recipient, Subscription


def add_subscription(
    cursor: Cursor, user_id: int, subscription: Subscription, sequence: int
) -> bool:
    """Store a subscription, which another user may have had, and its recipient: what notified up to
    ``sequence`` is not pushed. Return whether the subscription is new. Two statements."""
    added = cursor.execute(
        """
        INSERT INTO push_subscription (user_id, endpoint_hash, endpoint, public_key, auth_secret)
        VALUES (%s, %s, %s, %s, %s)
        ON DUPLICATE KEY UPDATE
            user_id = VALUES(user_id),
            public_key = VALUES(public_key),
            auth_secret = VALUES(auth_secret)
        """,
        (user_id, subscription.endpoint_hash, *subscription),
    )
    cursor.execute(
        """
        INSERT INTO push_recipient (user_id, pushed_sequence)
        VALUES (%s, %s)
        ON DUPLICATE KEY UPDATE user_id = push_recipient.user_id
        """,
        (user_id, sequence),
    )
    return added == 1  # 2: it was changed, 0: it is the same


def lock_recipient(cursor: Cursor, user_id: int) -> None:
    """Serialize changes of a user's subscriptions until the commit."""
    cursor.execute("SELECT 1 FROM push_recipient WHERE user_id = %s FOR UPDATE", (user_id,))


def count_subscriptions(cursor: Cursor, user_id: int) -> int:
    """Return how many subscriptions a user has."""
    cursor.execute("SELECT COUNT(*) FROM push_subscription WHERE user_id = %s", (user_id,))
    [(count,)] = cursor.fetchall()
    return int(count)


def reset_sequence(cursor: Cursor, user_id: int, sequence: int) -> None:
    """Let what notified up to ``sequence`` not be pushed to a user whose first subscription this
    is."""
    cursor.execute(
        "UPDATE push_recipient SET pushed_sequence = %s WHERE user_id = %s", (sequence, user_id)
    )


def has_subscription(user_id: int, endpoint_hash: bytes) -> bool:
    """Return whether a user has the subscription of an endpoint."""
    rows = mysql.fetch_all(
        "SELECT 1 FROM push_subscription WHERE user_id = %s AND endpoint_hash = %s",
        (user_id, endpoint_hash),
    )
    return bool(rows)


def delete_subscriptions(ended: Collection[tuple[int, bytes]]) -> int:
    """Delete subscriptions (user, hash of the endpoint); return how many there were."""
    where = " OR ".join(
        f"(user_id = {int(user_id)} AND endpoint_hash = X'{endpoint_hash.hex()}')"
        for user_id, endpoint_hash in ended
    )
    return mysql.write(f"DELETE FROM push_subscription WHERE {where}") if where else 0


def find_unscheduled(user_ids: Iterable[int]) -> list[int]:
    """Return the users among ``user_ids``, at least one, who have a subscription and for whom no
    message is on its way. A later time is of a clock that went back."""
    rows = mysql.fetch_all(
        f"""
        SELECT r.user_id
        FROM push_recipient AS r FORCE INDEX (PRIMARY)
        WHERE r.user_id IN ({sql.render_ids(user_ids)})
          AND (r.due_at IS NULL OR r.due_at < UTC_TIMESTAMP(6)
            OR r.due_at > UTC_TIMESTAMP(6) + INTERVAL {COALESCED_S:d} SECOND)
          AND EXISTS (SELECT 1 FROM push_subscription AS s WHERE s.user_id = r.user_id)
        ORDER BY r.user_id
        """
    )
    return [user_id for (user_id,) in rows]


def find_recipients(user_ids: Iterable[int]) -> set[int]:
    """Return the users among ``user_ids``, at least one, who have a subscription."""
    rows = mysql.fetch_all(
        f"""
        SELECT DISTINCT user_id
        FROM push_subscription
        WHERE user_id IN ({sql.render_ids(user_ids)})
        """
    )
    return {user_id for (user_id,) in rows}


def set_due(user_ids: Collection[int], in_s: int) -> None:
    """Store that a message is on its way that pushes what notifies users in the next ``in_s``."""
    mysql.write(
        f"""
        UPDATE push_recipient
        SET due_at = UTC_TIMESTAMP(6) + INTERVAL %s SECOND
        WHERE user_id IN ({sql.render_ids(user_ids)})
        """,
        (in_s,),
    )


def read_recipients(user_ids: Iterable[int]) -> dict[int, Recipient]:
    """Return user -> recipient, of ``user_ids``, at least one, who have a subscription. Two
    statements."""
    ids = sql.render_ids(user_ids)
    off: dict[int, set[str]] = {}
    for user_id, kind in mysql.fetch_all(
        f"""
        SELECT user_id, kind
        FROM notification_preference
        WHERE user_id IN ({ids})
          AND channel = 'push'
          AND is_on = 0
        """
    ):
        off.setdefault(user_id, set()).add(kind)
    sequences: dict[int, int] = {}
    subscriptions: dict[int, list[Subscription]] = {}
    for user_id, sequence, *subscription in mysql.fetch_all(
        f"""
        SELECT r.user_id, r.pushed_sequence, s.endpoint, s.public_key, s.auth_secret
        FROM push_recipient AS r FORCE INDEX (PRIMARY)
        JOIN push_subscription AS s ON s.user_id = r.user_id
        WHERE r.user_id IN ({ids})
        ORDER BY r.user_id, s.endpoint_hash
        """
    ):
        sequences[user_id] = sequence
        subscriptions.setdefault(user_id, []).append(Subscription(*subscription))
    return {
        user_id: Recipient(sequences[user_id], frozenset(off.get(user_id, ())), of_user)
        for user_id, of_user in subscriptions.items()
    }


def raise_sequences(sequences: Mapping[int, int]) -> None:
    """Store up to which sequences the notifications of users were pushed."""
    if sequences:
        cases = " ".join(f"WHEN {user:d} THEN {sequence:d}" for user, sequence in sequences.items())
        mysql.write(
            f"""
            UPDATE push_recipient
            SET pushed_sequence = GREATEST(pushed_sequence, CASE user_id {cases} END)
            WHERE user_id IN ({sql.render_ids(sequences)})
            """
        )


def read_preferences(user_id: int) -> list[Preference]:
    """Return the preferences that a user has stored."""
    rows = mysql.fetch_all(
        "SELECT kind, channel, is_on FROM notification_preference WHERE user_id = %s", (user_id,)
    )
    return [Preference(kind, channel, is_on == 1) for kind, channel, is_on in rows]


def store_preferences(user_id: int, preferences: Sequence[Preference]) -> None:
    """Store preferences of a user, at least one."""
    rows = ",".join(["(%s, %s, %s, %s)"] * len(preferences))
    mysql.write(
        f"""
        INSERT INTO notification_preference (user_id, kind, channel, is_on)
        VALUES {rows}
        ON DUPLICATE KEY UPDATE is_on = VALUES(is_on)
        """,
        [value for preference in preferences for value in (user_id, *preference)],
    )


def delete_subscriptions_of_user(user_id: int) -> int:
    """Delete the subscriptions of a user; return how many."""
    return mysql.write("DELETE FROM push_subscription WHERE user_id = %s", (user_id,))


def delete_of_user(user_id: int) -> int:
    """Delete what is stored about a user; return how many rows. Three statements."""
    return sum(
        mysql.write(f"DELETE FROM {table} WHERE user_id = %s", (user_id,))
        for table in ("push_subscription", "notification_preference", "push_recipient")
    )
