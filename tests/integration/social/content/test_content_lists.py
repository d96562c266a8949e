"""Lists of posts, comments and reviews: pages without gaps, at a constant cost."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import COLLECT, LIKE, Target, react
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.redis import connections, redis
from plaza.social.content import mysql_store, queries
from plaza.social.content.model import MAX_PAGE_BYTES, ListCursor
from tests.support.content_api import (
    COMMENT,
    POST,
    SHOP,
    add_shop,
    add_users,
    as_another_process,
    ask,
    comment,
    counting_work,
    create,
    post,
    review,
)
from tests.support.plaza import World
from tests.support.servers import IS_CLUSTER
from tests.support.stores import explain

FIRST = "2026-01-01 00:00:00.000000"


@pytest.fixture(autouse=True)
def world(plaza: World) -> World:
    add_users(7, 8, 9)
    add_shop()
    return plaza


def fill(content_type: str, ids: list[int], *, author: int = 7, parent: int | None = None) -> None:
    """Insert texts of equal time into MySQL."""
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id, created_at, kind,"
        " title, body, score) VALUES "
        + ",".join(["(%s, %s, %s, %s, %s, 'note', 't', 'b', 3)"] * len(ids)),
        [part for i in ids for part in (content_type, i, author, parent, FIRST)],
    )


def pages(path: str, limit: int, between: Callable[[int], object] = lambda _: None) -> list[str]:
    """Return the ids of all pages in order; call ``between`` after each page."""
    items: list[str] = []
    cursor, number = "", 0
    sign = "&" if "?" in path else "?"
    while True:
        page = ask("GET", f"{path}{sign}limit={limit}{cursor}").body
        items += [item["id"] for item in page["items"]]
        if page["next"] is None:
            return items
        cursor = f"&cursor={page['next']}"
        number += 1
        assert number < 200, "the list never ends"
        between(number)


# ---------------------------------------------------------------- order and pages


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_together_are_the_list_newest_first(limit: int) -> None:
    posts = [post() for _ in range(7)]
    parent = posts[0]
    comments = [comment(parent) for _ in range(7)]
    reviews = [review(user) for user in range(20, 27)]
    post(8)
    comment(posts[1])
    assert pages("/users/7/posts", limit) == posts[::-1]
    assert pages(f"/posts/{parent}/comments", limit) == comments[::-1]
    assert pages(f"/posts/{parent}/comments?order=latest", limit) == comments[::-1]
    assert pages(f"/posts/{parent}/comments?order=earliest", limit) == comments
    assert pages(f"/shops/{SHOP}/reviews", limit) == reviews[::-1]


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_texts_of_one_microsecond_are_listed_once_each(limit: int) -> None:
    ids = random.Random(limit).sample(range(1, 2**62), 25)
    fill("post", ids)
    fill("comment", ids, parent=ids[0])
    fill("review", ids, parent=SHOP)
    newest_first = [str(i) for i in sorted(ids, reverse=True)]
    assert pages("/users/7/posts", limit) == newest_first
    assert pages(f"/posts/{ids[0]}/comments", limit) == newest_first
    assert pages(f"/posts/{ids[0]}/comments?order=earliest", limit) == newest_first[::-1]
    assert pages(f"/shops/{SHOP}/reviews", limit) == newest_first


@pytest.mark.parametrize("order", ["latest", "earliest"])
def test_concurrent_writes_and_deletions_cause_no_gap_and_no_repeat(order: str) -> None:
    parent = post()
    fill("comment", list(range(100, 130)), author=8, parent=int(parent))
    deleted: set[str] = set()

    def write_between(number: int) -> None:
        # The last comment of the page (the cursor), the next one and an earlier one.
        at = 129 - 5 * number + 1 if order == "latest" else 100 + 5 * number - 1
        for comment_id in (at, at + 1, at - 2):
            if ask("DELETE", f"/comments/{comment_id}", user=8).status == 204:
                deleted.add(str(comment_id))
        if order == "latest":
            comment(parent)  # before the current page

    shown = pages(f"/posts/{parent}/comments?order={order}", 5, write_between)
    assert len(shown) == len(set(shown)), "no repeats"
    live = {str(i) for i in range(100, 130)} - deleted
    assert live <= set(shown), "no gaps"
    old = [int(i) for i in shown if int(i) < 130]
    assert old == sorted(old, reverse=order == "latest")


def test_the_last_page_has_no_next_and_an_empty_list_is_one_page() -> None:
    assert ask("GET", "/users/9/posts").body == {"items": [], "next": None}
    first, second = post(9), post(9)
    page = ask("GET", "/users/9/posts?limit=2").body
    assert [item["id"] for item in page["items"]] == [second, first]
    assert page["next"] is None


def test_items_of_lists_equal_single_reads_of_the_caller(world: World) -> None:
    posts = [post(), post(), post(8)]
    comments = [comment(posts[0], 8), comment(posts[0], 9)]
    for target in (("post", posts[1]), ("comment", comments[0])):
        react.react(LIKE, Target(target[0], int(target[1])), 9, True)
    react.react(COLLECT, Target("post", int(posts[0])), 9, True)
    listed = ask("GET", "/users/7/posts", user=9).body["items"]
    singles = [ask("GET", f"/posts/{i}", user=9, ip="").body for i in posts[1::-1]]
    for single in singles:
        del single["likers"]
        single |= {"body_preview": single.pop("body"), "truncated": False}
    assert [item | {"viewers": 1} for item in listed] == singles
    assert [(i["likes"], i["collects"], i["comments"]) for i in listed] == [(1, 0, 0), (0, 1, 2)]
    assert [item["mine"] for item in listed] == [
        {"liked": True, "collected": False},
        {"liked": False, "collected": True},
    ]
    listed = ask("GET", f"/posts/{posts[0]}/comments?order=earliest", user=9).body["items"]
    assert listed == [ask("GET", f"/comments/{i}", user=9).body for i in comments]
    assert [item["mine"]["liked"] for item in listed] == [True, False]
    assert [item["author"]["nickname"] for item in listed] == ["user8", "user9"]
    assert {i["mine"] for i in ask("GET", "/users/7/posts", user=None).body["items"]} == {None}


# ---------------------------------------------------------------- cursors


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        "%00",
        pack_cursor(1),
        pack_cursor(1, "post"),
        pack_cursor(1, 2, 3),
        pack_cursor(-1, 1),
        pack_cursor(1, 0),
        pack_cursor(1, -5),
        pack_cursor(2**63 - 1, 1),
        pack_cursor(253_402_300_800_000_000, 1),
        "a" * 201,
    ],
    ids=str,
)
def test_a_forged_cursor_is_a_400(cursor: str) -> None:
    parent = post()
    for path in ("/users/7/posts", f"/posts/{parent}/comments", f"/shops/{SHOP}/reviews"):
        assert ask("GET", f"{path}?cursor={cursor}").status == 400


def test_cursors_of_the_earliest_and_the_latest_time_are_accepted() -> None:
    only = post()
    last = pack_cursor(253_402_214_400_000_000, 2**63 - 1)
    assert [i["id"] for i in ask("GET", f"/users/7/posts?cursor={last}").body["items"]] == [only]
    assert ask("GET", f"/users/7/posts?cursor={pack_cursor(0, 1)}").body["items"] == []


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "order=newest", "limit=1.5"])
def test_an_invalid_query_is_a_400(query: str) -> None:
    assert ask("GET", f"/posts/{post()}/comments?{query}").status == 400


# ---------------------------------------------------------------- cost


@pytest.fixture
def slow_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep texts cached in the process, however slow the machine is."""
    monkeypatch.setattr(queries._texts, "_ttl_s", math.inf)


def fill_page(count: int, parent: int) -> dict[str, int]:
    """Fill each list with ``count`` texts; return path -> maximum number of round trips."""
    fill("post", list(range(1001, 1001 + count)), author=9)
    for index in range(count):
        fill("comment", [2001 + index], author=100 + index, parent=parent)
        fill("review", [3001 + index], author=100 + index, parent=SHOP)
    return {"/users/9/posts": 5, f"/posts/{parent}/comments": 4, f"/shops/{SHOP}/reviews": 4}


@pytest.mark.parametrize("count", [1, 10, 100])
def test_a_cached_first_page_takes_no_statement_and_constant_round_trips(
    count: int, slow_clock: None
) -> None:
    parent = int(post())
    paths = fill_page(count, parent)
    add_users(*range(100, 100 + count))
    for path, round_trips in paths.items():
        assert len(ask("GET", f"{path}?limit=100").body["items"]) == count
        with counting_work() as work:
            assert ask("GET", f"{path}?limit=100").status == 200
        assert work.statements == 0, path
        assert work.round_trips <= round_trips, path


def test_an_uncached_page_of_30_costs_as_much_as_one_of_20() -> None:
    """A page of three takes a statement less: the sizes of more targets are read first."""
    parent = int(post())
    paths = fill_page(100, parent)
    for path in paths:
        costs = []
        for count in (3, 20, 100):
            redis.execute("FLUSHALL")
            connections.client().script_flush()
            as_another_process()
            with counting_work() as work:
                assert len(ask("GET", f"{path}?limit={count}").body["items"]) == count
            costs.append((work.statements, work.round_trips))
        of_3, of_20, of_30 = costs
        assert of_20 == of_30, path
        assert of_3[0] <= 9, path
        assert of_30[0] <= 10, path
        # On a cluster a second node also needs a script to be loaded.
        assert max(of_3[1], of_30[1]) <= (30 if IS_CLUSTER else 28), path


def test_a_cached_post_takes_no_statement(slow_clock: None) -> None:
    post_id = post()
    ask("GET", f"/posts/{post_id}")
    with counting_work() as work:
        ask("GET", f"/posts/{post_id}")
    assert (work.statements, work.round_trips) == (0, 3), "its text is cached in the process"
    as_another_process()
    with counting_work() as work:
        ask("GET", f"/posts/{post_id}")
    assert (work.statements, work.round_trips) == (0, 5)


@pytest.mark.parametrize("count", [1, 10, 100])
def test_reading_100_posts_costs_as_much_as_reading_one(count: int) -> None:
    ids = list(range(1001, 1001 + count))
    fill("post", ids, author=9)
    for expected in (6, 0):
        as_another_process()
        with counting_work() as work:
            posts = queries.read_posts([*ids, 4040, ids[0]], 7)
        assert list(posts) == ids
        assert work.statements <= expected + 1, "4040 is read again"
        assert work.round_trips <= 16


def test_read_posts_leaves_out_deleted_posts() -> None:
    posts = [post() for _ in range(4)]
    ask("DELETE", f"/posts/{posts[1]}")
    for forget in (lambda: None, as_another_process, lambda: redis.execute("FLUSHALL")):
        forget()
        result = queries.read_posts([int(i) for i in posts] + [404], None)
        assert list(result) == [int(posts[i]) for i in (0, 2, 3)]
    assert queries.read_posts([], 7) == {}


def test_mysql_reads_a_page_from_its_index() -> None:
    fill("post", list(range(1, 2001)), author=7)
    fill("post", list(range(3001, 3101)), author=8)
    fill("comment", list(range(1, 2001)), parent=1)
    fill("review", list(range(1, 2001)), parent=SHOP)
    mysql.write("UPDATE content SET deleted_at = created_at WHERE MOD(content_id, 3) = 0")
    mysql.write("ANALYZE TABLE content")
    statements: list[tuple[str, Any]] = []
    fetch_all = mysql.fetch_all

    def record(sql: str, args: Any = ()) -> Any:
        statements.append((sql, args))
        return fetch_all(sql, args)

    after = ListCursor(1_767_225_600_000_000, 1500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mysql, "fetch_all", record)
        for cursor in (None, after):
            assert len(mysql_store.read_of_author(7, cursor, 21)) == 21
            for latest in (True, False):
                mysql_store.read_of_parent("comment", 1, cursor, latest, 21)
            mysql_store.read_of_parent("review", SHOP, cursor, True, 21)
    assert len(statements) == 8
    for sql, args in statements:
        plan = explain(sql, args)
        assert not any("filesort" in (step["Extra"] or "") for step in plan), sql
        index = "by_author" if "author_id =" in sql else "by_parent"
        assert index in {step["key"] for step in plan}
        mysql.write("FLUSH STATUS")
        fetch_all(sql, args)
        reads: dict[str, str] = dict(fetch_all("SHOW SESSION STATUS LIKE 'Handler_read%%'"))
        assert sum(int(n) for n in reads.values()) < 100, (sql, reads)


# ---------------------------------------------------------------- sizes of responses


def test_lists_have_previews_of_long_texts() -> None:
    body = "Noodles " * 1_250
    result = create("/posts", POST | {"body": body})
    assert ask("GET", f"/posts/{result}").body["body"] == body
    for path in ("/users/7/posts", f"/posts?ids={result}"):
        [item] = ask("GET", path).body["items"]
        assert item["id"] == result
        assert item["body_preview"] == ("Noodles " * 37).rstrip()
        assert item["truncated"] is True
        assert "body" not in item


def test_long_texts_make_short_pages_without_gaps() -> None:
    """A load balancer takes 1 MB from a function; 100 comments may be more than 2 MB."""
    parent = post()
    comments = [create(f"/posts/{parent}/comments", {"body": "🍜" * 2_000}) for _ in range(30)]
    items, cursor, sizes = [], "", []
    while True:
        reply = ask("GET", f"/posts/{parent}/comments?limit=100{cursor}")
        items += [item["id"] for item in reply.body["items"]]
        # The function encodes the body, then Lambda's runtime encodes the response.
        sizes.append(len(json.dumps(json.dumps(reply.body))))
        if reply.body["next"] is None:
            break
        cursor = f"&cursor={reply.body['next']}"
    assert items == comments[::-1]
    assert len(sizes) > 1
    assert max(sizes) < 1_000_000
    assert max(sizes) > MAX_PAGE_BYTES / 2


def test_short_texts_make_full_pages() -> None:
    parent = int(post())
    fill("comment", list(range(1, 101)), parent=parent)
    page = ask("GET", f"/posts/{parent}/comments?limit=100").body
    assert (len(page["items"]), page["next"]) == (100, None)
    assert create(f"/posts/{parent}/comments", COMMENT)
