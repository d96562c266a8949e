"""Pages below the inbox: in parts of the followees, kept in Redis between pages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from plaza.core.reactions import FOLLOW, Target, react
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.errors import TooManyRequests
from plaza.social.content import commands
from plaza.social.content.model import ListCursor
from plaza.social.feed import mysql_store, older_posts, queries, redis_store
from plaza.social.feed.model import (
    INBOX,
    OLDEST,
    FeedEntry,
    OlderPart,
    Timeline,
    first_window_us,
    merge_parts,
)
from tests.integration.conftest import Away
from tests.support.content_api import as_another_process, counting_work
from tests.support.feeds import BASE_US, expected_feed, ids, insert_follows, insert_posts, scroll
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.stores import add_users, explain

ME = 7
OTHERS = range(11, 31)
DAY_US = 86_400_000_000
BELOW = ListCursor(BASE_US + 30, 1)  # below the newest ten of the hundred posts


@pytest.fixture
def world(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """ME follows 20 authors with 100 posts; the inbox has the newest ten."""
    monkeypatch.setattr(Timeline, "cap", 10)
    add_users(ME, 8, *OTHERS)
    insert_follows([(ME, other) for other in OTHERS])
    insert_posts([(n, OTHERS[n % 20], BASE_US + n // 3) for n in range(1, 101)])
    queries.read_feed(ME, None, 100)
    plaza.queues.drain()
    redis.execute("DEL", redis_store.older_key(ME))
    return plaza


@pytest.fixture
def in_parts(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A page looks up seven followees, so that 20 have three parts."""
    monkeypatch.setattr(older_posts, "MAX_SEEKS", 7)
    monkeypatch.setattr(older_posts, "POSTS_AT_ONCE", 6)
    return world


def read_on(after: ListCursor | None, limit: int = 20) -> tuple[list[int], ListCursor | None]:
    """Return the next page that is not empty, and past what it ends."""
    for _ in range(100):
        page = queries.read_feed(ME, after, limit)
        if page.items or page.last is None:
            return ids(page.items), page.last
        after = page.last
    raise AssertionError("no page has posts")


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("limit", [1, 3, 20, 100])
def test_a_scroll_in_parts_lists_each_post_once(in_parts: World, limit: int) -> None:
    assert ids(scroll(ME, limit, short=True)) == expected_feed(ME)


def test_a_page_looks_up_as_many_followees_as_one_part_has(
    in_parts: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[int] = []
    read = mysql_store.read_window

    def count(author_ids: list[int], *rest: Any) -> Any:
        looked_up.append(len(author_ids))
        return read(author_ids, *rest)

    monkeypatch.setattr(mysql_store, "read_window", count)
    after: ListCursor | None = BELOW
    pages = 0
    while after is not None:
        looked_up.clear()
        with counting_work() as work:
            after = queries.read_feed(ME, after, 10).last
        assert sum(looked_up) <= 7, "a page is bounded"
        assert work.statements <= 4, "followees, a window, texts and totals"
        pages += 1
    assert pages < 60


def test_a_page_without_posts_continues_where_it_began(in_parts: World) -> None:
    for _ in range(2):
        assert queries.read_feed(ME, BELOW, 20) == ([], BELOW)
    listed, _ = read_on(BELOW)
    assert listed == list(range(89, 89 - len(listed), -1))


def test_a_first_page_without_an_inbox_continues_in_parts(in_parts: World) -> None:
    redis.execute("FLUSHALL")
    page = queries.read_feed(ME, None, 20)
    assert page.items == []
    assert page.last is not None
    assert page.last.is_valid
    listed, _ = read_on(page.last)
    assert listed == expected_feed(ME)[: len(listed)]
    redis.execute("FLUSHALL")
    assert ids(scroll(ME, 20, short=True)) == expected_feed(ME)


def test_a_first_page_does_not_show_what_was_kept_before(world: World) -> None:
    """Given a reader without an inbox, whose first page was read a moment ago."""
    redis.execute("FLUSHALL")
    queries.read_feed(ME, None, 5)
    insert_posts([(500, OTHERS[3], clock.now_us() - 1)])
    assert ids(queries.read_feed(ME, None, 1).items) == [500]


def test_pages_are_read_from_what_was_kept(world: World) -> None:
    first, after = read_on(BELOW, 5)
    with counting_work() as work:
        again, _ = read_on(BELOW, 5)
        more, _ = read_on(after, 5)
    assert work.statements <= 4, "texts and totals only"
    assert again == first
    assert set(first).isdisjoint(more)


def test_a_reader_who_jumps_up_and_down_gets_the_posts_of_each_place(in_parts: World) -> None:
    rng = random.Random(1)
    expected = [n for n in expected_feed(ME) if n <= 89]
    for _ in range(40):
        start = rng.randrange(len(expected) - 3)
        post = expected[start]
        listed, _ = read_on(ListCursor(BASE_US + post // 3, post), 2)
        assert listed == expected[start + 1 : start + 1 + len(listed)]


# ---------------------------------------------------------------- meanwhile


def test_posts_of_followees_meanwhile_neither_repeat_nor_hide_older_ones(in_parts: World) -> None:
    """Given authors who post between any two pages, below and above the old floor."""
    before = expected_feed(ME)
    new = iter(range(1_000, 2_000))

    def post() -> None:
        post_id = next(new)
        insert_posts([(post_id, OTHERS[post_id % 20], clock.now_us())])

    listed = ids(scroll(ME, 3, post, short=True))
    assert len(listed) == len(set(listed))
    assert [n for n in listed if n < 1_000] == before


def test_an_author_unfollowed_between_pages_is_hidden_on_the_next(in_parts: World) -> None:
    first, after = read_on(BELOW, 5)
    author = OTHERS[(first[-1] - 1) % 20]
    react.react(FOLLOW, Target("user", author), ME, False)
    rest: list[int] = []
    while after is not None:
        listed, after = read_on(after, 5)
        rest += listed
    assert rest
    assert all(OTHERS[n % 20] != author for n in rest)
    assert rest == [n for n in expected_feed(ME) if n < first[-1] and OTHERS[n % 20] != author]


def test_an_author_followed_between_pages_appears_with_old_posts(in_parts: World) -> None:
    """Given kept parts that were read before the follow."""
    insert_posts([(3_000 + n, 8, BASE_US - n) for n in range(1, 4)])
    read_on(BELOW, 5)
    react.react(FOLLOW, Target("user", 8), ME, True)
    in_parts.queues.drain()
    listed = [n for n in ids(scroll(ME, 5, short=True)) if n > 3_000]
    assert listed == [3_001, 3_002, 3_003]


def test_a_part_that_was_read_before_a_follow_and_kept_after_it_is_not_used(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_posts([(3_000, 8, BASE_US - 1)])
    read = mysql_store.read_followees

    def follow_after_reading(user_id: int) -> Any:
        followees = read(user_id)
        monkeypatch.setattr(mysql_store, "read_followees", read)
        react.react(FOLLOW, Target("user", 8), ME, True)
        world.queues.drain()
        return followees

    monkeypatch.setattr(mysql_store, "read_followees", follow_after_reading)
    queries.read_feed(ME, BELOW, 5)
    assert 3_000 in ids(scroll(ME, 50))


def test_more_followees_than_parts_were_made_for_begin_again(in_parts: World) -> None:
    queries.read_feed(ME, BELOW, 20)
    insert_follows([(ME, other) for other in range(31, 40)])
    listed, after = read_on(BELOW)
    while after is not None:
        more, after = read_on(after)
        listed += more
    assert listed == [n for n in expected_feed(ME) if (BASE_US + n // 3, n) < BELOW]


def test_a_deleted_post_is_not_shown_from_what_was_kept(world: World) -> None:
    first, _ = read_on(BELOW, 5)
    commands.delete(Target("post", first[1]), OTHERS[first[1] % 20])
    assert first[1] not in read_on(BELOW, 5)[0]


def test_a_page_is_full_after_most_of_what_was_kept_was_deleted(world: World) -> None:
    queries.read_feed(ME, BELOW, 5)
    mysql.write("UPDATE content SET deleted_at = NOW(6) WHERE content_id BETWEEN 20 AND 83")
    redis.pipeline(redis.delete_commands(find_keys("*:text")))
    as_another_process()
    after = ListCursor(BASE_US + 28, 84)
    assert ids(queries.read_feed(ME, after, 5).items) == [19, 18, 17, 16, 15]


# ---------------------------------------------------------------- windows, cost


def test_the_end_of_a_feed_is_kept(world: World) -> None:
    oldest = ListCursor(BASE_US, 1)
    assert queries.read_feed(ME, oldest, 20) == ([], None)
    with counting_work() as work:
        assert queries.read_feed(ME, oldest, 20) == ([], None)
        assert queries.read_feed(ME, ListCursor(BASE_US // 2, 1), 20) == ([], None)
    assert work.statements == 0


def test_what_was_kept_ends_after_ten_minutes(world: World) -> None:
    queries.read_feed(ME, BELOW, 20)
    assert 0 < redis.execute("TTL", redis_store.older_key(ME)) <= redis_store.OLDER_TTL_S == 600


def test_sparse_posts_are_found_by_growing_windows(in_parts: World) -> None:
    """Given posts that are years apart."""
    insert_posts([(4_000 + n, OTHERS[n], BASE_US - 400 * n * DAY_US) for n in range(1, 20)])
    assert ids(scroll(ME, 4, short=True)) == expected_feed(ME)


def test_a_full_window_is_followed_by_a_shorter_one(world: World) -> None:
    before = OlderPart(1, "", BELOW, BELOW, 10 * DAY_US, [])
    full = older_posts._extend(before, OTHERS, BELOW, 10)
    assert len(full.entries) == 10
    assert full.window_us < before.window_us
    assert full.bottom == full.entries[-1].cursor
    rest = older_posts._extend(full, OTHERS, full.bottom, 1_000)
    assert [entry.id for entry in rest.entries] == list(range(79, 0, -1))


def test_a_part_does_not_keep_posts_above_the_page(world: World) -> None:
    part = older_posts._extend(OlderPart(1, "", BELOW, BELOW, DAY_US, []), OTHERS, BELOW, 10)
    below = part.entries[6].cursor
    more = older_posts._extend(part, OTHERS, below, 10)
    assert more.top == below
    assert all(entry.cursor < below for entry in more.entries)
    assert len(more.entries) == 3 + 10


def test_the_first_window_depends_on_the_authors_and_on_the_inbox() -> None:
    assert first_window_us(1_000, 400) == 2 * DAY_US
    assert first_window_us(1_000, 400, span_us=DAY_US // 10) == 4 * DAY_US // 10
    assert first_window_us(1_000, 400, span_us=DAY_US) == 2 * DAY_US


def test_parts_are_merged_down_to_the_first_bottom() -> None:
    def part(bottom: int, *times: int) -> OlderPart:
        entries = [FeedEntry(at, at, 1) for at in times]
        return OlderPart(2, "", ListCursor(99, 9), ListCursor(bottom, bottom), 1, entries)

    parts = [part(50, 90, 70, 50), part(20, 80, 60, 40, 20)]
    page = merge_parts(parts, ListCursor(85, 1), 10)
    assert [entry.id for entry in page.entries] == [80, 70, 60, 50]
    assert page[1:] == (ListCursor(50, 50), False)
    assert merge_parts(parts, ListCursor(85, 1), 2)[1:] == (ListCursor(70, 70), False)
    ended = [p._replace(bottom=OLDEST) for p in parts]
    assert merge_parts(ended, ListCursor(60, 1), 10)[1:] == (OLDEST, True)


def test_each_window_is_charged_before_it_is_read(world: World) -> None:
    charged: list[int] = []

    def refuse(tokens: int) -> None:
        charged.append(tokens)
        raise TooManyRequests("The rate limit is exceeded.", retry_after_s=1)

    with counting_work() as work, pytest.raises(TooManyRequests):
        queries.read_feed(ME, BELOW, 20, refuse)
    assert (work.statements, charged) == (1, [1]), "only the followees"


def test_a_page_ends_where_the_next_window_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(older_posts, "POSTS_AT_ONCE", 3)
    left = [1]

    def charge(_: int) -> None:
        if not left:
            raise TooManyRequests("The rate limit is exceeded.", retry_after_s=1)
        left.pop()

    page = queries.read_feed(ME, BELOW, 20, charge)
    assert len(page.items) == 3
    assert read_on(page.last, 20)[0][0] == ids(page.items)[-1] - 1


def test_the_index_finds_the_posts_of_authors_by_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[tuple[str, Any]] = []
    fetch: Callable[..., Any] = mysql.fetch_all

    def record(sql: str, args: Any = ()) -> Any:
        statements.append((sql, args))
        return fetch(sql, args)

    insert_posts([(n, 50 + n % 300, BASE_US - n * 10**9) for n in range(1000, 4000)])
    monkeypatch.setattr(mysql, "fetch_all", record)
    before = ListCursor(BASE_US, 1)
    mysql_store.read_window(range(50, 350), before, BASE_US - 1_100 * 10**9, 5)
    sql, args = statements[0]
    [plan] = explain(sql, args)
    assert (plan["type"], plan["key"]) == ("range", "by_author")
    assert int(plan["rows"]) < 1_500, "not all posts of the authors"


# ---------------------------------------------------------------- versions, outages


def test_without_redis_a_page_looks_up_all_followees(
    in_parts: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = [n for n in expected_feed(ME) if (BASE_US + n // 3, n) < BELOW]
    with redis_away():
        assert ids(queries.read_feed(ME, BELOW, 20).items) == expected[:20]


def test_without_mysql_what_was_kept_is_read(world: World, mysql_away: Away) -> None:
    expected = ids(queries.read_feed(ME, BELOW, 10).items)
    as_another_process()
    with mysql_away():
        assert ids(queries.read_feed(ME, BELOW, 10).items) == expected
        redis.execute("DEL", redis_store.older_key(ME))
        with pytest.raises(MysqlDown):
            queries.read_feed(ME, BELOW, 10)


def test_a_reader_without_an_inbox_is_marked_when_follows_change(world: World) -> None:
    assert redis_store.mark_follows([ME, 8]) == {ME}
    generation, parts = redis_store.read_older(8)
    assert generation
    assert parts == {}
    assert redis_store.key(Timeline(INBOX, ME)) != redis_store.older_key(ME)
