"""The export has every row of MySQL that names the user, and each once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from plaza.accounts import ExportPosition, export, mysql_export
from plaza.infra.mysql import mysql
from tests.support.accounts import BODY, PHONE, Account
from tests.support.plaza import World

# Columns that may contain the id of a user: (table, column) -> its section, or why it has none.
COLUMNS = {
    ("cancelled_order", "buyer_id"): "repeats orders",
    ("checkin", "user_id"): "checkins",
    ("content", "author_id"): "posts",
    ("content", "hidden_by"): "an admin's work",
    ("content_counter", "target_id"): "repeats totals",
    ("erasure", "user_id"): "none without an erasure, which ends all sessions",
    ("idempotency_key", "user_id"): "idempotency_keys",
    ("archived_order", "buyer_id"): "archived_orders",
    ("order_outbox", "buyer_id"): "a message on its way to voucher_order",
    ("reaction", "actor_id"): "likes",
    ("reaction", "target_id"): "followers",
    ("reaction_log", "actor_id"): "the last eight days of reaction, without a key by user",
    ("reaction_log", "target_id"): "the same",
    ("report", "reporter_id"): "reports",
    ("report", "resolved_by"): "an admin's work",
    ("report", "target_id"): "of their reporters",
    ("reconciliation_finding", "target_id"): "repeats totals",
    ("reconciliation_suspect", "target_id"): "repeats totals",
    ("session", "user_id"): "sessions",
    ("star", "user_id"): "star",
    ("switch_change", "changed_by"): "an operator's work",
    ("user", "id"): "profile",
    ("user_counter", "user_id"): "totals",
    ("user_block", "blocked_id"): "of their blockers",
    ("user_block", "blocker_id"): "blocks",
    ("user_phone", "user_id"): "phone",
    ("voucher", "created_by"): "an admin's work",
    ("voucher", "withdrawn_by"): "an admin's work",
    ("voucher_order", "buyer_id"): "orders",
    ("voucher_order", "holder_id"): "repeats buyer_id",
    ("voucher_order", "used_by"): "an operator's work",
    ("waitlist_entry", "buyer_id"): "waitlists",
}
SECTIONS = {section.name for section in mysql_export.SECTIONS}


@pytest.fixture
def account(plaza: World) -> Account:
    made = Account()
    plaza.queues.drain()
    mysql.write("INSERT INTO star (user_id) VALUES (%s)", (made.id,))
    return made


def read_all(user_id: int, limit: int) -> list[tuple[str, str]]:
    rows, after = [], ExportPosition(0, 0, 0)
    while True:
        page, last = export.read_page(user_id, after, limit)
        assert len(page) <= limit
        rows += [(row.section, str(row.fields)) for row in page]
        if last is None:
            return rows
        after = last


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_every_row_is_exported_once_in_pages_of_any_size(account: Account, limit: int) -> None:
    rows = read_all(account.id, limit)
    assert len(set(rows)) == len(rows)
    assert Counter(section for section, _ in rows) == {
        "profile": 1, "phone": 1, "totals": 1, "sessions": 1, "idempotency_keys": 1, "posts": 1,
        "comments": 1, "reviews": 1, "likes": 1, "collects": 1, "follows": 1, "followers": 2,
        "blocks": 1, "reports": 1, "star": 1, "orders": 1, "waitlists": 1, "checkins": 1,
    }  # fmt: skip
    text = str(rows)
    assert PHONE in text
    assert BODY in text
    assert str(account.order.id) in text


def test_rows_of_others_are_not_exported(account: Account) -> None:
    assert read_all(12_345, 100) == []


def test_every_column_that_can_name_a_user_is_exported_or_has_a_reason(plaza: World) -> None:
    names = r"(user|actor|author|buyer|holder|target|owner|block\w+|report\w+)_id|\w+_by"
    results = {
        (table, column)
        for table, column in mysql.fetch_all(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = DATABASE() AND DATA_TYPE = 'bigint'"
        )
        if re.fullmatch(names, column) or (table, column) == ("user", "id")
    }
    assert results == set(COLUMNS)
    assert {to for to in COLUMNS.values() if " " not in to} <= SECTIONS
