"""Webhooks in MySQL. A function runs one statement and raises MysqlDown, unless stated otherwise.
Times are MySQL's."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from plaza.core.event_log.model import EventOffset, LogHead
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.errors import Conflict
from plaza.integrations.webhooks.model import (
    DISABLED,
    ENABLED,
    ENDED,
    MAX_FAILING_S,
    MAX_LEASE_S,
    MAX_WEBHOOKS,
    RETRIES_S,
    DeliveryOutcome,
    Webhook,
    find_pause_s,
)

_COLUMNS = (
    "id, url, kinds, state, secret_serial, rotated_at, reaction_seq, event_seq, read_s, attempt,"
    " failures, failing_since, last_error, created_at"
)
_IS_FREE = f"""
    (leased_until <= UTC_TIMESTAMP(6)
      OR leased_until > UTC_TIMESTAMP(6) + INTERVAL {MAX_LEASE_S:d} SECOND)
    """
_IS_DUE = f"""
    (next_at <= UTC_TIMESTAMP(6)
      OR next_at > UTC_TIMESTAMP(6) + INTERVAL COALESCE(
          ELT(LEAST(failures, {len(RETRIES_S)}), {", ".join(map(str, RETRIES_S))}), 0) SECOND)
    """
# A lease or a pause that ends later than a new one would is of a clock that went back.
MAX_LISTED = 200


def read(webhook_id: int) -> Webhook | None:
    """Return a webhook that was not ended, None without one."""
    rows = mysql.fetch_all(
        f"SELECT {_COLUMNS} FROM webhook WHERE id = %s AND state <> '{ENDED}'", (webhook_id,)
    )
    return _webhook(rows[0]) if rows else None


def list_all() -> list[Webhook]:
    """Return the webhooks, newest first; those that were ended last."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM webhook
        ORDER BY state = '{ENDED}', created_at DESC, id
        LIMIT {MAX_LISTED:d}
        """
    )
    return [_webhook(row) for row in rows]


def count_by_state() -> dict[str, int]:
    """Return state -> number of webhooks, and ``failing`` -> enabled ones that fail."""
    rows = mysql.fetch_all(
        "SELECT state, COUNT(*), SUM(failing_since IS NOT NULL) FROM webhook GROUP BY state"
    )
    counts = {state: int(count) for state, count, _ in rows}
    return counts | {"failing": sum(int(failing) for state, _, failing in rows if state == ENABLED)}


def insert(webhook_id: int, url: str, kinds: Collection[str], at: EventOffset) -> None:
    """Store a new webhook; raise Conflict if there are too many. One transaction of two
    statements."""

    def work(cursor: Cursor) -> None:
        cursor.execute(
            f"""
            INSERT INTO webhook (id, url, kinds, state, reaction_seq, event_seq, read_s, created_at)
            VALUES (%s, %s, %s, '{ENABLED}', %s, %s, %s, UTC_TIMESTAMP(6))
            """,
            (webhook_id, url, _join(kinds), *at[1:]),
        )
        # After the INSERT: a lock on no rows keeps no other process from inserting the first ones.
        cursor.execute(f"SELECT id FROM webhook WHERE state <> '{ENDED}' FOR UPDATE")
        if len(cursor.fetchall()) > MAX_WEBHOOKS:
            raise Conflict(f"There are {MAX_WEBHOOKS} webhooks; end one of them.")

    mysql.run_in_transaction(work)


def change(webhook_id: int, url: str, kinds: Collection[str]) -> None:
    """Store another URL and other types; the next batch has them.

    A dispatcher that read the row before stores nothing: it would pass over events of a new type.
    The events of a batch on its way are from before the change, so its outcome counts.
    """
    mysql.write(
        f"""
        UPDATE webhook
        SET url = %s, kinds = %s, attempt = attempt + {_IS_FREE}
        WHERE id = %s
        """,
        (url, _join(kinds), webhook_id),
    )


def end(webhook_id: int) -> None:
    """End a webhook for ever."""
    mysql.write(
        f"UPDATE webhook SET state = '{ENDED}', attempt = attempt + 1 WHERE id = %s", (webhook_id,)
    )


def rotate(webhook_id: int, serial: int) -> None:
    """Store that a webhook has the next secret after ``serial``; the one before signs for a day."""
    mysql.write(
        """
        UPDATE webhook
        SET secret_serial = %s, rotated_at = UTC_TIMESTAMP(6)
        WHERE id = %s
          AND secret_serial = %s
        """,
        (serial + 1, webhook_id, serial),
    )


def set_offset(webhook_id: int, at: EventOffset) -> None:
    """Set the offset of a webhook, and try it at once; a batch on its way does not count."""
    mysql.write(
        """
        UPDATE webhook
        SET reaction_seq = %s, event_seq = %s, read_s = %s, attempt = attempt + 1,
            leased_until = UTC_TIMESTAMP(6), next_at = UTC_TIMESTAMP(6)
        WHERE id = %s
        """,
        (*at[1:], webhook_id),
    )


def enable(webhook_id: int) -> None:
    """Enable a webhook that was disabled, and try it at once."""
    mysql.write(
        f"""
        UPDATE webhook
        SET state = '{ENABLED}', failures = 0, failing_since = NULL, next_at = UTC_TIMESTAMP(6)
        WHERE id = %s
        """,
        (webhook_id,),
    )


def disable(webhook: Webhook, error: str) -> None:
    """Disable a webhook, unless it changed since it was read."""
    mysql.write(
        f"""
        UPDATE webhook
        SET state = '{DISABLED}', last_error = %s
        WHERE id = %s
          AND attempt = %s
        """,
        (error, webhook.id, webhook.attempt),
    )


def find_due(head: LogHead) -> list[Webhook]:
    """Return enabled webhooks that may get a batch now, and that lack events before ``head``."""
    rows = mysql.fetch_all(
        f"""
        SELECT {_COLUMNS}
        FROM webhook
        WHERE state = '{ENABLED}'
          AND {_IS_FREE}
          AND {_IS_DUE}
          AND (reaction_seq < %s OR event_seq < %s)
        ORDER BY next_at, id
        """,
        (head.reaction_seq, head.event_seq),
    )
    return [_webhook(row) for row in rows]


def lease(webhook: Webhook) -> bool:
    """Return whether this process may send the next batch: one at a time."""
    return bool(
        mysql.write(
            f"""
            UPDATE webhook
            SET attempt = attempt + 1,
                leased_until = UTC_TIMESTAMP(6) + INTERVAL {MAX_LEASE_S:d} SECOND
            WHERE id = %s
              AND attempt = %s
              AND state = '{ENABLED}'
            """,
            (webhook.id, webhook.attempt),
        )
    )


def pass_events(webhook: Webhook, at: EventOffset) -> None:
    """Move the offset over events that the webhook does not get."""
    mysql.write(
        """
        UPDATE webhook
        SET reaction_seq = %s, event_seq = %s, read_s = %s
        WHERE id = %s
          AND attempt = %s
        """,
        (*at[1:], webhook.id, webhook.attempt),
    )


def release(webhook_id: int, attempt: int) -> None:
    """Let the next batch be sent: one was not queued."""
    mysql.write(
        "UPDATE webhook SET leased_until = UTC_TIMESTAMP(6) WHERE id = %s AND attempt = %s",
        (webhook_id, attempt),
    )


def record_outcome(outcome: DeliveryOutcome) -> str | None:
    """Move the offset to what was received, and store when to try again what was not; return the
    state of the webhook, None if the outcome is of an earlier batch. One transaction of two
    statements. Safe to repeat."""

    def work(cursor: Cursor) -> str | None:
        cursor.execute(
            f"""
            SELECT failures,
                   COALESCE(failing_since < UTC_TIMESTAMP(6) - INTERVAL {MAX_FAILING_S:d} SECOND,
                            0),
                   reaction_seq, event_seq, read_s, state
            FROM webhook
            WHERE id = %s
              AND attempt = %s FOR UPDATE
            """,
            (outcome.webhook_id, outcome.attempt),
        )
        row = cursor.fetchone()
        if row is None:
            return None
        failures, has_failed_long, reaction_seq, event_seq, read_s, state = row
        if outcome.offset is not None:
            reaction_seq, event_seq, read = outcome.offset
            read_s = read_s if read is None else read
        if outcome.received:
            failures = has_failed_long = 0
        if outcome.error is not None:
            failures += 1
            state = DISABLED if has_failed_long and state == ENABLED else state
        pause_s = find_pause_s(failures) if outcome.error is not None else 0
        cursor.execute(
            f"""
            UPDATE webhook
            SET reaction_seq = %s, event_seq = %s, read_s = %s, failures = %s, state = %s,
                failing_since = IF(%s IS NULL, NULL,
                                   IF(%s > 0, UTC_TIMESTAMP(6),
                                      COALESCE(failing_since, UTC_TIMESTAMP(6)))),
                last_error = %s, attempt = attempt + 1, leased_until = UTC_TIMESTAMP(6),
                next_at = UTC_TIMESTAMP(6) + INTERVAL {pause_s:d} SECOND
            WHERE id = %s
            """,
            (
                *(reaction_seq, event_seq, read_s, failures, state),
                *(outcome.error, outcome.received, outcome.error, outcome.webhook_id),
            ),
        )
        return str(state)

    return mysql.run_in_transaction(work)


def _join(kinds: Collection[str]) -> str:
    return ",".join(sorted(kinds))


def _webhook(row: tuple[Any, ...]) -> Webhook:
    webhook_id, url, kinds, *rest = row
    return Webhook(webhook_id, url, frozenset(filter(None, kinds.split(","))), *rest)
