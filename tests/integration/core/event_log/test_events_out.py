"""Events out: in the order of the commits, without gaps, from two logs, each at least once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from local.stack.servers import connect_mysql
from plaza.commerce.flash_sales import cancel_order, codes, place_order
from plaza.core.event_log import (
    append_events,
    archive_events,
    mysql_events,
    read_events,
    s3_archive,
)
from plaza.core.event_log.model import (
    DAYS_KEPT,
    MAX_OFFSET_AGE_S,
    EventDraft,
    EventOffset,
    EventsGone,
    LogHead,
    LogRow,
    OutgoingEvent,
    cut_page,
)
from plaza.core.reactions import FOLLOW, Target, mysql_log, persist
from plaza.infra.aws import archive
from plaza.infra.aws.objects import ObjectsDown
from plaza.infra.http.cursors import pack_cursor
from plaza.infra.mysql import mysql
from plaza.infra.runtime import clock
from plaza.people.auth.operate_server_keys import make_server_key
from tests.support import sales
from tests.support.archives import s3
from tests.support.consumers import deadlocks
from tests.support.content_api import ask, comment, post
from tests.support.failures import failing
from tests.support.likes_log import like
from tests.support.plaza import World
from tests.support.routes import check_documented
from tests.support.sign_in_client import send
from tests.support.stores import add_users, wait_for

__all__ = ["s3"]

POST, USER = Target("post", 11), Target("user", 5)
NOW_US = time.time_ns() // 1000


@pytest.fixture(autouse=True)
def _move_the_head_each_time(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mysql_events, "MIN_HEAD_AGE_S", 0)
    plaza.add(POST)
    add_users(5, 7, 8, 9)


@pytest.fixture
def begin() -> EventOffset:
    """The end of both logs."""
    head = read_events.find_head()
    return EventOffset(*head, int(time.time()))


def read_all(after: EventOffset, limit: int = 100) -> list[str]:
    """Return the ids of all events after a offset, page by page."""
    events: list[str] = []
    while True:
        page = read_events.read_page(after, limit)
        events += [event.id for event in page.events]
        after = page.next
        if not page.has_more:
            return events


def kinds(after: EventOffset) -> list[str]:
    return [event.kind for event in read_events.read_page(after, 100).events]


def test_an_event_of_a_moderating_key_names_the_key_and_the_moderator(
    begin: EventOffset, s3: object
) -> None:
    """Given a comment that a key hides and shows for moderator 8, and one that moderator 8 hides;
    and two reports, resolved by both."""
    mysql.write("UPDATE user SET role = 'moderator' WHERE id = 8")
    key_id, key = make_server_key("web", ["moderate"], 50, operator_id="ada")
    post_id = post(5)
    first, second = comment(post_id, 7), comment(post_id, 7)

    def send_as(token: str | None, method: str, path: str, body: object = None) -> None:
        folder, named = "api/moderation", {"plaza-user": "8"}
        if token is not None:
            status = send(method, path, body, token=token, headers=named, folder=folder).status
        else:
            status = ask(method, path, body, user=8, role="moderator", folder=folder).status
        assert status == 200

    send_as(key, "PUT", f"/ops/comments/{first}/hidden")
    send_as(key, "DELETE", f"/ops/comments/{first}/hidden")
    send_as(None, "PUT", f"/ops/comments/{second}/hidden")
    for of, token in ((first, key), (second, None)):
        body = {"target": {"type": "comment", "id": str(of)}, "reason": "spam"}
        report = ask("POST", "/reports", body, user=9, folder="api/moderation").body["id"]
        send_as(token, "PUT", f"/ops/reports/{report}/outcome", {"outcome": "upheld"})

    events = [event.to_dict() for event in read_events.read_page(begin, 100).events]
    moderated = [
        (event["type"], event["data"]["actor_id"], event["data"]["key_id"])
        for event in events
        if event["type"] in ("comment.hidden", "comment.shown", "report.resolved")
    ]
    assert moderated == [
        ("comment.hidden", "8", key_id),
        ("comment.shown", "8", key_id),
        ("comment.hidden", "8", None),
        ("report.resolved", "8", key_id),
        ("report.resolved", "8", None),
    ]
    today = datetime.now(UTC).date()
    rows = mysql_events.read_before(datetime.now(UTC) + timedelta(days=1), 100)
    s3_archive.put(today, rows)
    archived = {event.id: event.key_id for event in s3_archive.read_day(today)}
    stored = {event["id"]: event["data"]["key_id"] for event in events}
    assert archived == {id_: stored[id_] for id_ in archived}
    assert key_id in archived.values()


@contextmanager
def transaction(mysql_url: str) -> Iterator[tuple[Connection[Cursor], Cursor]]:
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        connection.begin()
        yield connection, cursor


def append(cursor: Cursor, resource_id: int) -> None:
    append_events.pass_barrier(cursor)
    append_events.append(cursor, [EventDraft("comment.created", 7, ("post", 1), resource_id)])
    mysql.flush(cursor)


def append_like(cursor: Cursor, actor_id: int) -> None:
    mysql.read_all(cursor, [mysql_log.SHARE_LOG_LOCK])
    cursor.execute(
        "INSERT INTO reaction_log (target_type, target_id, kind, actor_id, version, state,"
        " change_by, total, db_version, create_date)"
        " VALUES ('post', 11, 'like', %s, %s, 1, 1, 1, 1, UTC_DATE())",
        (actor_id, NOW_US + actor_id),
    )


# ---------------------------------------------------------------- order, without gaps


@pytest.mark.parametrize("append_one", [append, append_like])
def test_a_later_commit_waits_for_an_earlier_transaction(
    mysql_url: str, begin: EventOffset, append_one: Callable[[Cursor, int], None]
) -> None:
    with transaction(mysql_url) as (slow, earlier), transaction(mysql_url) as (fast, later):
        append_one(earlier, 1)
        append_one(later, 2)
        fast.commit()
        page = read_events.read_page(begin, 100)
        assert page.events == []
        slow.commit()
        events = read_events.read_page(page.next, 100).events
    numbers = [event.resource_id or event.actor_id for event in events]
    assert numbers == [1, 2]


def test_writers_do_not_wait_for_each_other_and_one_that_hangs_for_a_second_at_most(
    mysql_url: str, begin: EventOffset
) -> None:
    with transaction(mysql_url) as (_, hanging), transaction(mysql_url) as (other, cursor):
        append(hanging, 1)
        append(cursor, 2)
        other.commit()
        reader = threading.Thread(target=read_events.find_head)
        reader.start()
        wait_for(lambda: _is_waiting(mysql_url), "the reader waits at the barrier")
        other.begin()
        append(cursor, 3)
        other.commit()
        reader.join()
    assert read_all(begin)[0].startswith("comment_created_2")


def _is_waiting(mysql_url: str) -> bool:
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
        return int(cursor.fetchall()[0][1]) > 0


def test_concurrent_transactions_lose_repeat_and_swap_nothing(
    mysql_url: str, begin: EventOffset
) -> None:
    committed: list[int] = []
    deadlocks_before = deadlocks()

    def write(writer: int) -> None:
        draw = random.Random(writer)
        with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
            connection.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
            for number in range(60):
                connection.begin()
                append(cursor, writer * 1_000 + number)
                if draw.random() < 0.5:
                    append_events.append(
                        cursor,
                        [EventDraft("comment.deleted", 7, ("post", 1), writer * 1_000 + number)],
                    )
                if draw.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()
                    committed.append(writer * 1_000 + number)

    writers = [threading.Thread(target=write, args=(writer,)) for writer in range(1, 5)]
    for writer in writers:
        writer.start()
    seen: list[int] = []
    offset = begin
    while True:
        running = any(writer.is_alive() for writer in writers)
        page = read_events.read_page(offset, 7)
        seen += [e.resource_id or 0 for e in page.events if e.kind == "comment.created"]
        offset = page.next
        if not running and not page.has_more and not page.events:
            break
    rows = mysql.fetch_all(
        "SELECT resource_id FROM event_log WHERE seq > %s AND kind = 'comment.created'"
        " ORDER BY seq",
        (begin.event_seq,),
    )
    assert seen == [resource_id for (resource_id,) in rows]
    assert sorted(seen) == sorted(committed)
    assert deadlocks() == deadlocks_before


def test_both_logs_are_merged_by_time_and_paged_by_one_cursor(
    plaza: World, begin: EventOffset
) -> None:
    persist.save([like(POST, 7, at=-3_000_000)])
    first = comment(post())
    persist.save([like(POST, 8), like(USER, 7, kind=FOLLOW)])
    second = comment(post())
    whole = read_events.read_page(begin, 100)
    assert whole.events[0].kind == "like.added"
    assert {event.kind for event in whole.events} == {
        *("like.added", "follow.added", "comment.created"),
    }
    assert [e.resource_id for e in whole.events if e.resource_id] == [int(first), int(second)]
    ids = [event.id for event in whole.events]
    assert sorted(read_all(begin, 1)) == sorted(ids) == sorted(set(ids))
    assert read_all(begin, 2) == ids
    assert read_events.read_page(whole.next, 100).events == []


def test_a_page_that_ends_before_the_rows_of_a_log_leaves_them_to_the_next() -> None:
    first, second, late = (
        LogRow(seq, at, OutgoingEvent("like.added", at, 7, ("post", 11)))
        for seq, at in ((1, 1), (2, 2), (1, 3))
    )
    begin, head = EventOffset.at_start(0, 0), LogHead(0, 9, 9)
    page = cut_page(begin, head, [first, second], [late], limit=2, now_s=0)
    assert (page.events, page.has_more) == ([first.event, second.event], True)
    assert page.next == EventOffset(0, 2, 0, 0)


def test_what_changed_nothing_is_no_event_and_a_page_goes_past_it(begin: EventOffset) -> None:
    persist.save([like(POST, 7, at=5)])
    persist.save([like(POST, 7, at=number) for number in range(10, 20)])
    persist.save([like(POST, 7, on=False, at=30)])
    first = read_events.read_page(begin, 3)
    assert [event.kind for event in first.events] == ["like.added"]
    assert first.has_more
    assert [read.rpartition("_")[0] for read in read_all(begin, 3)] == [
        "like_added_post_11_7",
        "like_removed_post_11_7",
    ]


def test_a_reader_that_dies_reads_the_same_events_again(begin: EventOffset) -> None:
    comment(post())
    persist.save([like(POST, 7)])
    assert read_all(begin) == read_all(begin) != []


# ---------------------------------------------------------------- cursors


def test_a_cursor_is_good_for_eight_days_and_for_one_epoch(
    monkeypatch: pytest.MonkeyPatch, begin: EventOffset
) -> None:
    now_s = clock.now_s()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_s", lambda: now_s + DAYS_KEPT * 86_400 - 60)
        assert read_events.read_page(begin, 1).next.read_s > begin.read_s
        patch.setattr(clock, "now_s", lambda: now_s + DAYS_KEPT * 86_400 + 60)
        with pytest.raises(EventsGone):
            read_events.read_page(begin, 1)
    with pytest.raises(EventsGone):
        read_events.read_page(begin._replace(epoch=begin.epoch + 1), 1)


def test_a_restored_mysql_ends_all_cursors(begin: EventOffset) -> None:
    mysql_log.raise_epoch()
    with pytest.raises(EventsGone):
        read_events.read_page(begin, 1)
    assert read_events.read_page(None, 1).next.epoch > begin.epoch


def test_a_head_goes_back_in_a_new_epoch_only(begin: EventOffset) -> None:
    minute = int(clock.now_s()) // 60
    head = LogHead(begin.epoch + 1, 100, 200)
    assert mysql_events.store_head(head, minute) == head
    assert mysql_events.store_head(LogHead(head.epoch, 101, 199), minute) == (head.epoch, 101, 200)
    assert mysql_events.store_head(LogHead(head.epoch, 99, 201), minute) == (head.epoch, 101, 201)
    restored = LogHead(head.epoch + 1, 1, 2)
    assert mysql_events.store_head(restored, minute) == restored
    late = LogHead(head.epoch, 500, 600)  # of a process that read before the restore
    assert mysql_events.store_head(late, minute) == restored


def test_catching_up_keeps_the_age_of_a_cursor(begin: EventOffset) -> None:
    for number in range(3):
        persist.save([like(POST, 7 + number)])
    old = begin._replace(read_s=begin.read_s - 3_600)
    assert read_events.read_page(old, 1).next.read_s == old.read_s
    assert read_events.read_page(old, 100).next.read_s > old.read_s


def test_the_offset_of_a_time_is_before_all_that_was_stored_from_then_on(
    monkeypatch: pytest.MonkeyPatch, begin: EventOffset
) -> None:
    now_s = clock.now_s()
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_s", lambda: now_s - 180)
        read_events.find_head()
    comment(post())
    offset = read_events.find_offset(int(now_s) - 60)
    assert offset is not None
    assert offset.read_s <= now_s - 60
    assert kinds(offset) == ["comment.created"]


def test_before_its_first_offset_a_deployment_begins_with_all_that_it_has(
    begin: EventOffset,
) -> None:
    """Given a time before DispatchWebhooks ran for the first time; MySQL still has all of it."""
    comment(post())
    now_s = int(clock.now_s())
    offset = read_events.find_offset(now_s - 100_000)
    assert offset is not None
    assert offset.read_s <= now_s - 100_000
    assert kinds(offset) == ["comment.created"]
    assert read_events.find_offset(now_s - MAX_OFFSET_AGE_S - 60) is None


# ---------------------------------------------------------------- what is an event


def test_comments_and_their_moderation_are_events(begin: EventOffset) -> None:
    of_post = post(7)
    created = comment(of_post, 8)
    for method in ("PUT", "PUT", "DELETE"):
        path = f"/ops/comments/{created}/hidden"
        assert ask(method, path, user=1, role="admin", folder="api/moderation").status == 200
    assert ask("DELETE", f"/comments/{created}", user=8).status == 204
    assert ask("DELETE", f"/comments/{created}", user=8).status == 410
    events = read_events.read_page(begin, 100).events
    assert [event.kind for event in events] == [
        *("comment.created", "comment.hidden", "comment.shown", "comment.deleted"),
    ]
    assert {(e.target, e.resource_id) for e in events} == {(("post", int(of_post)), int(created))}
    assert [event.actor_id for event in events] == [8, 1, 1, 8]


def test_a_comment_that_is_refused_or_repeated_is_no_event(begin: EventOffset) -> None:
    of_post = post(7)
    body = {"body": "Hello"}
    for _ in range(2):
        assert ask("POST", f"/posts/{of_post}/comments", body, user=8, key="k").status == 201
    assert ask("DELETE", f"/posts/{of_post}", user=7).status == 204
    assert ask("POST", f"/posts/{of_post}/comments", body, user=8).status == 410
    assert kinds(begin) == ["comment.created"]


def test_each_transition_of_an_order_is_one_event(plaza: World, begin: EventOffset) -> None:
    voucher = sales.offer(stock=2)
    orders = {}
    for buyer in (7, 8):
        orders[buyer], _ = place_order.place_order(voucher.id, buyer)
        plaza.queues.drain()
    cancel_order.cancel_order(orders[8].id, 8)
    cancel_order.cancel_order(orders[8].id, 8)
    codes.redeem_code(voucher.id, codes.issue_code(orders[7].id, 7), sales.ADMIN)
    events = read_events.read_page(begin, 100).events
    assert [(e.kind, e.actor_id, e.target, e.resource_id) for e in events] == [
        ("order.success", 7, ("voucher", voucher.id), orders[7].id),
        ("order.success", 8, ("voucher", voucher.id), orders[8].id),
        ("order.cancelled", 8, ("voucher", voucher.id), orders[8].id),
        ("order.used", 7, ("voucher", voucher.id), orders[7].id),
    ]


def test_a_report_and_its_outcome_are_events(begin: EventOffset) -> None:
    of_post = post(7)
    body = {"target": {"type": "post", "id": of_post}, "reason": "spam"}
    report = ask("POST", "/reports", body, user=8, folder="api/moderation").body["id"]
    for _ in range(2):
        path, outcome = f"/ops/reports/{report}/outcome", {"outcome": "upheld"}
        reply = ask("PUT", path, outcome, user=1, role="admin", folder="api/moderation")
        assert reply.status == 200
    events = read_events.read_page(begin, 100).events
    assert [(e.kind, e.actor_id, e.target, e.resource_id, e.detail) for e in events] == [
        ("report.created", 8, ("post", int(of_post)), int(report), "spam"),
        ("report.resolved", 1, ("post", int(of_post)), int(report), "upheld"),
    ]


def test_old_reactions_that_are_imported_are_no_events(begin: EventOffset) -> None:
    persist.save_history([like(POST, 7, at=-(DAYS_KEPT + 2) * 86_400_000_000)])
    assert read_all(begin) == []


# ---------------------------------------------------------------- the route


def get(token: str, query: str = "", **headers: str) -> Any:
    path = f"/ops/events{query}"
    return send("GET", path, token=token, headers=headers, folder="api/operations")


def test_a_key_with_the_scope_reads_events_for_no_user(begin: EventOffset) -> None:
    of_post = post(7)
    created = comment(of_post, 8)
    key = make_server_key("feed", ["events"], 100, operator_id="test")[1]
    reply = get(key, f"?after={pack_cursor(*begin)}&limit=1")
    assert reply.status == 200, reply.body
    check_documented("GET /ops/events", {"statusCode": 200, "headers": {}, "body": ""})
    [item] = reply.body["events"]
    assert item["type"] == "comment.created"
    assert item["data"]["target"] == {"type": "post", "id": of_post}
    assert item["data"]["id"] == created
    assert "." not in item["id"]
    following = get(key, f"?after={reply.body['next']}")
    assert (following.status, following.body["events"]) == (200, [])


@pytest.mark.parametrize("scopes", [["read"], ["act"], ["moderate"], ["read", "act", "moderate"]])
def test_a_key_without_the_scope_does_not(scopes: list[str]) -> None:
    key = make_server_key("web", scopes, 100, operator_id="test")[1]
    assert get(key).status == 403
    assert get(key, **{"plaza-user": "7"}).status == 403


def test_the_scope_opens_no_other_route() -> None:
    key = make_server_key("feed", ["events"], 100, operator_id="test")[1]
    for path in ("/ops/health", "/ops/queues", "/ops/switches"):
        assert send("GET", path, token=key, folder="api/operations").status == 403


@pytest.mark.parametrize(
    "after", ["x", "WzEsMl0", pack_cursor(0, 1, 2), pack_cursor(0, "1", 2, 3), "%20"]
)
def test_a_cursor_of_something_else_is_refused(after: str) -> None:
    key = make_server_key("feed", ["events"], 100, operator_id="test")[1]
    assert get(key, f"?after={after}").status == 400


# ---------------------------------------------------------------- the archive


def add_old(days_ago: int, *resource_ids: int) -> None:
    at = datetime.now(UTC) - timedelta(days=days_ago)
    for resource_id in resource_ids:
        mysql.write(
            "INSERT INTO event_log (kind, actor_id, target_type, target_id, resource_id,"
            " created_at) VALUES ('comment.created', 7, 'post', 1, %s, %s)",
            (resource_id, at + timedelta(microseconds=resource_id)),
        )


def left() -> list[int]:
    return [row[0] for row in mysql.fetch_all("SELECT resource_id FROM event_log ORDER BY seq")]


def archived(days_ago: int) -> list[int]:
    day = (datetime.now(UTC) - timedelta(days=days_ago)).date()
    return sorted({event.resource_id or 0 for event in s3_archive.read_day(day)})


def test_closed_days_are_archived_and_the_others_stay(s3: Any) -> None:
    add_old(11, 1, 2)
    add_old(10, 3, 4, 5)
    add_old(DAYS_KEPT, 6)
    add_old(0, 7)
    assert archive_events.archive_events() == 5
    assert left() == [6, 7]
    assert (archived(11), archived(10), archived(8)) == ([1, 2], [3, 4, 5], [])
    assert archive_events.archive_events() == 0


def test_the_newest_row_stays_so_that_no_seq_repeats(s3: Any) -> None:
    add_old(11, 1, 2)
    assert archive_events.archive_events() == 1
    assert left() == [2]


def test_an_id_is_the_same_in_mysql_and_in_the_archive(s3: Any) -> None:
    add_old(9, 1)
    add_old(0, 2)
    day = (datetime.now(UTC) - timedelta(days=9)).date()
    [row] = [row for row in mysql_events.read_events(0, 2**62, 0, 100) if row.at_us][:1]
    archive_events.archive_events()
    [event] = s3_archive.read_day(day)
    assert row.event == event
    assert row.event.id == event.id


def test_a_run_that_ends_between_write_and_deletion_loses_nothing(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_events, "EVENTS_PER_OBJECT", 2)
    add_old(10, 1, 2, 3)
    add_old(0, 4)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_events, "delete", failing(ObjectsDown("ended, simulated by a test")))
        with pytest.raises(ObjectsDown):
            archive_events.archive_events()
    assert left() == [1, 2, 3, 4]
    archive_events.archive_events()
    assert left() == [4]
    assert archived(10) == [1, 2, 3]


def test_an_object_that_is_not_what_was_written_keeps_the_rows(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_old(10, 1, 2)
    add_old(0, 3)
    monkeypatch.setattr(archive, "read_text", lambda *_: "something else\n")
    assert archive_events.archive_events() == 0
    assert left() == [1, 2, 3]


def test_each_change_of_a_reaction_has_a_type(begin: EventOffset) -> None:
    persist.save([like(POST, 7, at=1), like(POST, 7, on=False, at=2)])
    persist.save([like(USER, 8, at=3, kind=FOLLOW), like(USER, 8, on=False, at=4, kind=FOLLOW)])
    assert kinds(begin) == ["like.added", "like.removed", "follow.added", "follow.removed"]
