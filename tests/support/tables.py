"""All tables: who owns each, and how export, erasure and audit treat it.

A migration that creates a table, or a column with the id of a user, adds it to ``TABLES``
(``tests/unit/policy/test_owned_data.py``). A text of one word is a state; others say why a table or
a column is not in that state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from plaza.infra.mysql.migrations import list_files, split_statements

EXPORTED = "exported"
"""The owner declares sections of this column in its module ``export``."""

ERASED = "erased"
"""No row has the user's id in this column after an erasure."""

AUDITED = "audited"
"""``local.audit`` compares the rows with Redis, counters or other rows."""


class User(NamedTuple):
    """A column with the id of a user: whether its rows are exported to the user, and erased."""

    export: str
    erasure: str


class Table(NamedTuple):
    """The context or module of infra that owns a table, whether the audit reads it, and its columns
    with ids of users."""

    owner: str
    audit: str
    users: Mapping[str, User] = {}


_LOGGED = "kept under a pseudonym"
_UNCOUNTED = "no total and no sale depends on its rows"
_PROGRESS = "the progress of a job, whose results are audited"
_ORDER = "the record of the shop, under a pseudonym"
_OPERATOR = User("the work of an operator", "the record of who did it")
_MEMBER = User("the work of a member", "the record of who did it")
_TOTAL = "a number under a pseudonym"
_REPEATED = "repeats totals"
_TAKEN_BACK = "its state is 0; its version is compared with late events"

TABLES: Mapping[str, Table] = {
    "archived_order": Table("flash_sales", AUDITED, {"buyer_id": User(EXPORTED, _ORDER)}),
    "unread_counter": Table(
        "notifications", AUDITED, {"user_id": User("repeats the groups", _TOTAL)}
    ),
    "notification_group": Table("notifications", AUDITED, {"user_id": User(EXPORTED, ERASED)}),
    "binlog_offset": Table("changes", _PROGRESS),
    "cancelled_order": Table("flash_sales", AUDITED, {"buyer_id": User("repeats orders", _ORDER)}),
    "checkin": Table("checkins", AUDITED, {"user_id": User(EXPORTED, ERASED)}),
    "closed_user": Table("users", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "content": Table(
        "content",
        AUDITED,
        {
            "author_id": User(EXPORTED, "deleted, with its texts set to NULL"),
            "hidden_by": _OPERATOR,
        },
    ),
    "counter": Table("counters", AUDITED, {"target_id": User(_REPEATED, _TOTAL)}),
    "delayed_comment_count": Table("content", "reconciliation adds it to the counter"),
    "erasure": Table(
        "users",
        _UNCOUNTED,
        {
            "user_id": User(
                "none before an erasure, which ends all sessions", "the record that it was done"
            )
        },
    ),
    "event_barrier": Table("event_log", "one row, without which no transaction appends"),
    "event_head": Table("event_log", _PROGRESS),
    "event_log": Table(
        "event_log",
        "appended in the transactions of what it repeats",
        {
            "actor_id": User("the last eight days of comments, orders, reports", _LOGGED),
            "target_id": User("of their actors", _LOGGED),
        },
    ),
    "event_offset": Table("event_log", _PROGRESS),
    "gauge_sample": Table("operations", _UNCOUNTED),
    "idempotency_key": Table("idempotency", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "log_barrier": Table("reactions", AUDITED),
    "order_outbox": Table(
        "flash_sales", AUDITED, {"buyer_id": User("a message on its way to voucher_order", _ORDER)}
    ),
    "notification_preference": Table("push", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "post_hour": Table("recommendations", AUDITED),
    "push_recipient": Table(
        "push",
        _UNCOUNTED,
        {"user_id": User("up to where the unread counter was pushed, a number", ERASED)},
    ),
    "push_subscription": Table("push", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "reaction": Table(
        "reactions",
        AUDITED,
        {"actor_id": User(EXPORTED, _TAKEN_BACK), "target_id": User(EXPORTED, _TAKEN_BACK)},
    ),
    "reaction_log": Table(
        "reactions",
        AUDITED,
        {
            "actor_id": User("the last eight days of reaction, without a key by user", _LOGGED),
            "target_id": User("of their actors", _LOGGED),
        },
    ),
    "reaction_log_sum": Table("reaction_log", _PROGRESS),
    "reconciliation": Table("reconciliation", _PROGRESS),
    "reconciliation_finding": Table(
        "reconciliation", _PROGRESS, {"target_id": User(_REPEATED, _TOTAL)}
    ),
    "reconciliation_dirty": Table("reconciliation", _PROGRESS),
    "reconciliation_part": Table("reconciliation", _PROGRESS),
    "reconciliation_cycle": Table("reconciliation", _PROGRESS),
    "reconciliation_suspect": Table(
        "reconciliation", _PROGRESS, {"target_id": User(_REPEATED, _TOTAL)}
    ),
    "redemption": Table("flash_sales", "repeats the uses in voucher_order", {"used_by": _MEMBER}),
    "redis_epoch": Table("reactions", _PROGRESS),
    "redis_term": Table("reactions", _PROGRESS),
    "report": Table(
        "moderation",
        _UNCOUNTED,
        {
            "reporter_id": User(EXPORTED, ERASED),
            "resolved_by": _OPERATOR,
            "target_id": User("of their reporters", "of their reporters"),
        },
    ),
    "review_slot": Table(
        "content", _UNCOUNTED, {"author_id": User("repeats content", "deleted with the review")}
    ),
    "external_target": Table("targets", AUDITED, {"owner_id": User(EXPORTED, ERASED)}),
    "schema_migration": Table("infra/mysql/migrations", _PROGRESS),
    "server_key": Table("auth", _UNCOUNTED),
    "passkey": Table("auth", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "passkey_code": Table("auth", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "session": Table("auth", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "shop": Table("shops", _UNCOUNTED),
    "shop_counter": Table("shop_scores", AUDITED),
    "shop_member": Table(
        "shops", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED), "appointed_by": _MEMBER}
    ),
    "shop_type": Table("shops", _UNCOUNTED),
    "sorted_reaction": Table(
        "reactions",
        AUDITED,
        {
            "actor_id": User("repeats reaction", _TAKEN_BACK),
            "target_id": User("repeats reaction", _TAKEN_BACK),
        },
    ),
    "spilled_message": Table("infra/queues/spill", AUDITED),
    "stale_list": Table("recommendations", _PROGRESS),
    "celebrity": Table("feed", _UNCOUNTED, {"user_id": User(EXPORTED, "a mark on a pseudonym")}),
    "switch_change": Table("switches", _UNCOUNTED, {"changed_by": _OPERATOR}),
    "user": Table("users", _UNCOUNTED, {"id": User(EXPORTED, ERASED)}),
    "user_block": Table(
        "blocks",
        AUDITED,
        {
            "blocked_id": User("of their blockers", "of their blockers"),
            "blocker_id": User(EXPORTED, ERASED),
        },
    ),
    "user_counter": Table("counters", AUDITED, {"user_id": User(EXPORTED, _TOTAL)}),
    "user_identity": Table("users", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "user_phone": Table("users", _UNCOUNTED, {"user_id": User(EXPORTED, ERASED)}),
    "voucher": Table("flash_sales", AUDITED, {"created_by": _MEMBER, "withdrawn_by": _MEMBER}),
    "voucher_order": Table(
        "flash_sales",
        AUDITED,
        {
            "buyer_id": User(EXPORTED, _ORDER),
            "holder_id": User("repeats buyer_id", _ORDER),
            "used_by": _MEMBER,
        },
    ),
    "waitlist_entry": Table(
        "flash_sales",
        "read again with each generation of a sale",
        {"buyer_id": User(EXPORTED, ERASED)},
    ),
    "watermark": Table("reactions", AUDITED),
    "webhook": Table("webhooks", _UNCOUNTED),
}

_USER = re.compile(r"(?:user|actor|author|buyer|holder|target|owner|block\w+|report\w+)_id|\w+_by")
_CREATED = re.compile(r"^-- (\S+): (?:.+\n-- )*.+\nCREATE TABLE IF NOT EXISTS (\w+)", re.M)
_CHANGED = re.compile(r"(?:CREATE TABLE IF NOT EXISTS|ALTER TABLE) (\w+)")
_COLUMN = re.compile(r"^\s+(?:ADD COLUMN )?(\w+)\s+BIGINT\b", re.M)


def read_owners() -> dict[str, str]:
    """Return table -> the owner that the comment of its migration names."""
    made = {"schema_migration": "infra/mysql/migrations"}  # created by the runner
    for file in list_files().values():
        made |= {table: owner for owner, table in _CREATED.findall(file.read_text())}
    return made


def read_user_columns() -> set[tuple[str, str]]:
    """Return (table, column) of each column of the migrations that may have the id of a user."""
    return {
        (table, column)
        for file in list_files().values()
        for statement in split_statements(file.read_text())
        for table in _CHANGED.findall(statement)
        for column in _COLUMN.findall(statement)
        if _USER.fullmatch(column) or (table, column) == ("user", "id")
    }


def find_users(state: str) -> set[tuple[str, str]]:
    """Return (table, column) of the columns with this state of export or erasure."""
    return {
        (name, column)
        for name, table in TABLES.items()
        for column, user in table.users.items()
        if state in user
    }
