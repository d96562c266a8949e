"""The export has every row of MySQL that names the user, and each once."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date
from typing import Any

import pytest

from plaza.core.reactions import FOLLOW, Target, sorted_lists
from plaza.infra.mysql import mysql
from plaza.infra.mysql.export_sections import ExportedRow, Section
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import BadInput, TooManyRequests
from plaza.infra.runtime.settings import settings
from plaza.operate.accounts import export
from tests.support.accounts import BODY, PHONE, Account
from tests.support.consumers import statements
from tests.support.failures import failing
from tests.support.plaza import World
from tests.support.stores import explain
from tests.support.user_rows import fill

USER, OTHER = 700_001, 700_002
MANY = 60
SECTIONS = export.list_sections()
[FOLLOWERS] = [section for section in SECTIONS if section.name == "followers"]
in_order_of_an_index = pytest.mark.parametrize(
    "section", [s for s in SECTIONS if s is not FOLLOWERS], ids=lambda s: s.cursor_name
)


@pytest.fixture
def filled(plaza: World) -> dict[str, list[tuple[Any, ...]]]:
    """Name of each section -> the keys of 30 rows of it. Another user has as many."""
    keys: dict[str, list[tuple[Any, ...]]] = {}
    for section in SECTIONS:
        fill(section, OTHER, 30)
        keys.setdefault(section.name, []).extend(fill(section, USER, 30))
    return keys


def read_all(limit: int, user_id: int = USER, after: str | None = None) -> Iterator[ExportedRow]:
    while True:
        page, after = export.read_page(user_id, after, limit)
        assert len(page) <= limit
        yield from page
        if after is None:
            return
        assert len(page) == limit


def as_texts(key: Sequence[Any]) -> tuple[str, ...]:
    return tuple(
        part.isoformat()
        if isinstance(part, date)
        else part.hex()
        if isinstance(part, bytes)
        else str(part)
        for part in key
    )


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_each_row_of_each_table_is_exported_once_in_order(
    filled: dict[str, list[tuple[Any, ...]]], limit: int
) -> None:
    exported: dict[str, list[tuple[str, ...]]] = {}
    for row in read_all(limit):
        exported.setdefault(row.section, []).append(row.key)
    assert exported == {name: list(map(as_texts, keys)) for name, keys in filled.items()}


def test_a_user_without_rows_has_an_empty_export(filled: object) -> None:
    assert [*read_all(100, user_id=12_345)] == []


def test_rows_have_the_columns_of_their_section_as_json(plaza: World) -> None:
    account = Account()
    plaza.queues.drain()
    rows = [*read_all(100, user_id=account.id)]
    assert Counter(row.section for row in rows) == {
        "profile": 1, "phone": 1, "identity": 1, "totals": 1, "sessions": 1, "idempotency_keys": 1,
        "posts": 1, "comments": 1, "reviews": 1, "likes": 1, "collects": 1, "bookmarks": 1,
        "follows": 1, "followers": 2, "blocks": 1, "reports": 1, "orders": 1, "waitlists": 1,
        "checkins": 1, "notifications": 2,
    }  # fmt: skip
    of = {row.section: row.fields for row in rows}
    assert of["phone"]["phone"] == PHONE
    assert of["posts"]["images"] == ["https://a/b"]
    assert (of["posts"]["id"], of["posts"]["body"]) == (str(account.post.id), BODY)
    assert of["posts"]["created_at"].endswith("Z")
    assert of["orders"]["id"] == str(account.order.id)
    assert json.loads(json.dumps(of)) == of


# ------------------------------------------------------------------ cost


def test_a_page_is_charged_by_the_sections_that_it_reads(plaza: World) -> None:
    charged: list[int] = []
    assert export.read_page(USER, None, 100, charged.append) == ([], None)
    assert charged == [1] * ((len(SECTIONS) - 1) // export.SECTIONS_PER_TOKEN)
    charged.clear()
    posts = next(section for section in SECTIONS if section.name == "posts")
    fill(posts, USER, 2)
    export.read_page(USER, None, 1, charged.append)
    before = SECTIONS.index(posts)
    assert charged == [1] * (before // export.SECTIONS_PER_TOKEN), "it ends with that section"


def test_a_page_ends_where_its_charge_is_refused(plaza: World) -> None:
    before = statements()
    with pytest.raises(TooManyRequests):
        export.read_page(
            USER, None, 100, failing(TooManyRequests("The rate limit is exceeded.", 1))
        )
    assert statements() - before == export.SECTIONS_PER_TOKEN + 1, "one counts them"


def statements_of(section: Section, keys: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
    """Yield (statement, arguments) of the first page, and of one in the middle."""
    args = {"exported_user": USER, "exported_rows": 5}
    yield section.render_select(has_key=False), args
    middle = dict(zip(section.order, keys[len(keys) // 2], strict=True))
    yield section.render_select(has_key=True), {**middle, **args}


@pytest.mark.parametrize(("own", "of_others"), [(2, 0), (MANY, 0), (MANY, MANY)])
@in_order_of_an_index
def test_a_page_reads_its_own_rows_in_the_order_of_an_index(
    plaza: World, section: Section, own: int, of_others: int
) -> None:
    fill(section, OTHER, of_others)
    keys = fill(section, USER, own)
    for statement, args in statements_of(section, keys):
        for step in explain(statement, args):
            assert "filesort" not in (step["Extra"] or "")
            assert "temporary" not in (step["Extra"] or "")
            assert step["key"] in (section.index, None), "None: there is no such row"
        ties = 9  # rows with the same first columns of the key
        assert count_rows_read(statement, args) <= args["exported_rows"] + ties + 1


def test_a_page_of_many_followers_reads_their_sorted_list(plaza: World) -> None:
    """A page of few followers reads all of them."""
    fill(FOLLOWERS, OTHER, MANY)
    keys = fill(FOLLOWERS, USER, MANY)
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version)"
        " VALUES ('user', %s, 'follow', %s, 1)",
        (USER, MANY),
    )
    for statement, args in statements_of(FOLLOWERS, keys):
        assert count_rows_read(statement, args) <= MANY + 3 * args["exported_rows"]
    assert sorted_lists.sort_list(FOLLOW, Target("user", USER), Deadline.in_s(60)) is None
    for statement, args in statements_of(FOLLOWERS, keys):
        tables = {step["table"] for step in explain(statement, args)}
        assert "sorted_reaction" in tables
        assert "reaction" not in tables
        union, ties = 2 * args["exported_rows"] + 2, 9
        assert count_rows_read(statement, args) <= args["exported_rows"] + ties + union + 4


def count_rows_read(statement: str, args: dict[str, Any]) -> int:
    """Return how many rows of tables and indexes a statement reads."""
    database = settings().mysql.database
    with (
        closing(mysql.connect_dedicated(database=database)) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("FLUSH STATUS")
        cursor.execute(statement, args)
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(value) for _, value in cursor.fetchall())


# --------------------------------------------------------------- cursors


def pack(*parts: object) -> str:
    return urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "parts",
    [
        ("bookmarks 17",),
        ("profile soon",),
        ("profile",  "1"),
        ("checkins 2026-01-02 7",),
        ("checkins 2026-13-02",),
        ("sessions xy",),
        ("",),
        (22, 0, 0),
        (-1, 0, 0),
        (5, "9000001", 0),
        ("posts 1 2",),
    ],
)  # fmt: skip
def test_a_cursor_of_another_list_or_of_a_later_section_is_refused(
    plaza: World, parts: Sequence[object]
) -> None:
    with pytest.raises(BadInput, match="not returned by this API"):
        export.read_page(USER, pack(*parts), 10)
