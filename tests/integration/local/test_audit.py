"""The audit on real stores: what it reads and reports, and how many statements it costs."""

from __future__ import annotations

from collections.abc import Callable

import pymysql.cursors
import pytest
import redis.client

from local.audit import backlog
from local.audit.compare import AuditReport
from plaza.commerce.checkins import daily_checkin
from plaza.commerce.checkins.redis_store import CheckInKeys
from plaza.commerce.flash_sales import place_order, recover_orders, redis_orders, redis_sales
from plaza.core import counters
from plaza.core.reaction_log import recount
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Kind,
    Target,
    persist,
    rebuild,
    redis_hydration,
    redis_keys,
)
from plaza.core.reactions.hydration import hydrate
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import BloomBuildStep
from plaza.core.reactions.react import react
from plaza.core.reactions.redis_keys import TargetKeys
from plaza.infra.mysql import mysql
from plaza.infra.queues.spill import spill
from plaza.infra.redis import connections
from plaza.infra.redis import redis as plaza_redis
from plaza.operate.reconciliation import orchestrator
from plaza.social.recommendations import like_roll_up
from tests.support import stores
from tests.support.audits import Audit
from tests.support.keyspace import find_keys
from tests.support.plaza import World
from tests.support.sales import change_counts, offer

POST = Target("post", 7)
COMMENT = Target("comment", 8)
REVIEW = Target("review", 70)


@pytest.fixture
def people(plaza: World) -> World:
    """Users 1 to 4; user 1 wrote a post that 2 and 3 like, 4 commented on; 2 and 3 follow 1."""
    for user_id in range(1, 5):
        mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'user')", (user_id,))
    plaza.add(POST, author_id=1)
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " VALUES ('comment', 8, 4, 7)"
    )
    counters.run_in_transaction(_count_content)
    for user_id in (2, 3):
        react(LIKE, POST, user_id, True)
        react(FOLLOW, Target("user", 1), user_id, True)
    plaza.queues.drain()
    counters.read_users([1, 2])
    counters.read_comments([7])
    return plaza


def make_like(actor_id: int, at: int, on: bool = True) -> ReactionEvent:
    return ReactionEvent(ReactionKey(*COMMENT, "like", actor_id), on, 1_790_000_000_000_000 + at)


def _count_content(cursor: pymysql.cursors.Cursor) -> None:
    key = (*POST, counters.COMMENT)
    counters.lock_targets(cursor, [key])
    counters.add_to_targets(cursor, {key: counters.CounterDelta(1)})
    counters.add_to_users(cursor, {(1,): {"posts_total": 1}})


def test_data_written_by_plaza_is_clean_and_counted_completely(people: World, audit: Audit) -> None:
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    assert report.totals["like"] == (2, 2, 2, 2)
    assert report.totals["follow"] == (2, 2, 2, 2)
    assert report.counters == {
        "comments": (1, 1, 1, 1),
        "followers": (2, 2, 2, 2),
        "following": (2, 2, 1, 1),
        "posts": (1, 1, 1, 1),
        "likes_received": (2, 2, 2, 2),
        "collects_received": (0, 0, 0, 0),
        "reviews": (0, 0, 0, 0),
        "scores": (0, 0, 0, 0),
    }


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        (
            "UPDATE user_counter SET followers_total = 3 WHERE user_id = 1",
            "followers of user 1: counter 3, rows 2",
        ),
        (
            "UPDATE user_counter SET following_total = 0 WHERE user_id = 3",
            "following of user 3: counter 0, rows 1",
        ),
        (
            "UPDATE content SET deleted_at = NOW(6) WHERE content_type = 'post'",
            "posts of user 1: counter 1, rows 0",
        ),
        (
            "UPDATE content SET deleted_at = NOW(6) WHERE content_type = 'comment'",
            "comments of post:7: counter 1, rows 0",
        ),
        (
            "DELETE FROM user_counter WHERE user_id = 1",
            "likes received of user 1: counter 0, rows 2",
        ),
        (
            "UPDATE counter SET total = 1 WHERE target_type = 'user' AND kind = 'follow'",
            "follow user:1: Redis 2, counter 1, rows 2",
        ),
    ],
)
def test_a_changed_row_is_reported_as_drift(
    people: World, audit: Audit, statement: str, difference: str
) -> None:
    mysql.write(statement)
    report = audit()
    assert difference in [str(item) for item in report.differences]
    assert report.drift >= 1


def test_a_stored_like_of_a_post_that_was_never_created_is_reported(
    people: World, audit: Audit
) -> None:
    """Given an event that no gate accepted, as a sample event is."""
    persist.save([ReactionEvent(ReactionKey("post", 11, "like", 2), True, 1)])
    people.queues.drain()
    assert [str(difference) for difference in audit().differences] == [
        "like post:11: rows 1, the target does not exist"
    ]


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("UPDATE notification_group SET fresh = fresh + 1", "fresh 4, rows 3"),
        ("UPDATE unread_counter SET unread = unread + 1", "unread 3, groups 2"),
        ("UPDATE unread_counter SET sequence = 0", "fresh 3, rows 3"),
        ("DELETE FROM notification_group", "unread 2, groups 0"),
    ],
)
def test_unread_are_counted_and_a_wrong_one_is_reported(
    statement: str, difference: str, people: World, audit: Audit
) -> None:
    """Given three likes of a post and two follows of its author, unread."""
    assert react(LIKE, POST, 4, True).changed
    people.queues.drain()
    report = audit()
    assert (report.differences, report.unread_counters) == ([], (1, 2, 5))
    mysql.write(statement)
    assert difference in str([row.details for row in audit().differences])


def test_stale_projections_and_holds_without_a_follow_are_reported(
    people: World, audit: Audit
) -> None:
    mysql.write("UPDATE user_counter SET version = version + 1, posts_total = 2 WHERE user_id = 1")
    plaza_redis.execute("FLUSHALL")
    counters.read_users([1])
    mysql.write("UPDATE user_counter SET version = version + 1, posts_total = 1 WHERE user_id = 1")
    assert counters.hold(2, "following_total", 5000, "user:3")
    report = audit()
    assert [difference.subject for difference in report.differences] == ["counters of user 1"]
    assert (report.drift, report.others) == (0, 1)
    [accepted] = report.accepted_differences
    assert accepted.startswith("hold of user 2: user:3, until ")


# ---------------------------------------------------------------- likes, vouchers, check-ins


@pytest.fixture
def busy(people: World) -> World:
    """A review that 2 and 3 like and post 7, rolled up; a sale that 2 won; days of 2 and 3."""
    people.add(REVIEW, author_id=1)
    for user_id in (2, 3):
        react(LIKE, REVIEW, user_id, True)
        daily_checkin.check_in(user_id)
    voucher = offer(stock=3)
    place_order.place_order(voucher.id, 2)
    people.queues.drain()
    like_roll_up.roll_up_likes()
    return people


def test_likes_orders_and_checkins_written_by_plaza_are_clean(busy: World, audit: Audit) -> None:
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    assert (report.vouchers, report.sold, report.checkins) == (1, 1, 2)


def subjects(report: AuditReport) -> list[str]:
    return [difference.subject.partition(" ")[0] for difference in report.differences]


@pytest.mark.parametrize(
    ("statement", "of"),
    [
        ("UPDATE content SET likes = 3 WHERE content_type = 'review'", ["review_likes"]),
        ("UPDATE post_hour SET net = net + 1", ["hours"]),
        ("DELETE FROM post_hour", ["hours"]),
        ("UPDATE voucher SET stock = 1", ["voucher", "voucher"]),
        ("DELETE FROM voucher_order", ["voucher", "order", "voucher"]),
        ("DELETE FROM checkin WHERE user_id = 2", ["streak", "check-ins"]),
        (
            "INSERT INTO checkin (user_id, day, version)"
            " SELECT user_id, day - INTERVAL 1 DAY, version FROM checkin WHERE user_id = 3",
            ["streak"],
        ),
    ],
)
def test_a_changed_like_voucher_or_checkin_row_is_reported(
    busy: World, audit: Audit, statement: str, of: list[str]
) -> None:
    mysql.write(statement)
    report = audit()
    assert subjects(report)[: len(of)] == of
    assert not report.clean


def test_likes_before_their_roll_up_are_not_reported(busy: World, audit: Audit) -> None:
    react(LIKE, REVIEW, 4, True)
    react(LIKE, POST, 4, True)
    busy.queues.drain()
    assert audit().clean
    like_roll_up.roll_up_likes()
    assert audit().clean


def test_changed_sale_and_streak_in_redis_are_reported(busy: World, audit: Audit) -> None:
    [state] = find_keys("*:voucher:*:sale")
    change_counts(int(state.split(":")[2]), stock=1)
    keys = CheckInKeys(2)
    plaza_redis.execute("HSET", keys.head, "streak", 5)
    assert subjects(audit()) == ["voucher", "streak"]


def test_orders_and_checkins_in_transit_are_reported_as_pending(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    place_order.place_order(voucher.id, 3)
    daily_checkin.check_in(4)
    report = audit()
    assert (report.pending, report.outbox_index, report.quiet, report.differences) == (
        2,
        1,
        False,
        [],
    )
    assert backlog.count_pending(connections.client()) == (1, 1)
    busy.queues.drain()
    assert audit().clean
    assert backlog.count_pending(connections.client()) == (0, 0)


def test_an_order_that_sqs_refused_is_pending_until_the_recovery_decides_it(
    busy: World, audit: Audit
) -> None:
    voucher = offer(stock=3)
    busy.queues.away = True
    place_order.place_order(voucher.id, 3)
    busy.queues.away = False
    report = audit()
    # In Redis and in the order outbox.
    assert (report.pending, report.quiet, report.differences) == (2, False, [])
    assert backlog.count_pending(connections.client()) == (0, 1)
    assert backlog.count_spilled(audit.mysql_url) == 1
    recover_orders.recover_orders()
    assert audit().clean
    assert backlog.count_pending(connections.client()) == (0, 0)
    assert backlog.count_spilled(audit.mysql_url) == 0


def test_an_id_of_two_orders_is_reported_while_busy(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    made, _ = place_order.place_order(voucher.id, 3)
    generation = redis_sales.find_sales([voucher.id])[voucher.id]
    redis_orders.reserve(generation, made.id, 4)
    report = audit()
    assert [str(difference) for difference in report.differences] == [
        f"order {made.id}: one id, 2 orders:"
        f" voucher {voucher.id} of buyer 3, voucher {voucher.id} of buyer 4"
    ]
    assert report.drift == 1


def test_an_order_that_nothing_will_decide_is_reported(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    made, _ = place_order.place_order(voucher.id, 3)
    assert audit().differences == []  # the recovery will decide it
    mysql.write("UPDATE voucher SET finalized_at = UTC_TIMESTAMP(6) WHERE id = %s", (voucher.id,))
    stranded = f"order {made.id}: of buyer 3, voucher {voucher.id}: nothing decides it"
    assert [str(difference) for difference in audit().differences] == [stranded]
    plaza_redis.execute("DEL", *find_keys(f"*:voucher:{voucher.id}:*"))
    assert [str(difference) for difference in audit().differences] == [stranded]  # by its pointer


def test_an_unindexed_outbox_of_checkins_is_reported(busy: World, audit: Audit) -> None:
    daily_checkin.check_in(4)
    plaza_redis.execute("DEL", CheckInKeys(4).outboxes)
    assert [str(d) for d in audit().differences] == [
        "check-ins of user 4: 1 pending, and not in the outbox index"
    ]


# ---------------------------------------------------------------- membership, outboxes, commits


def of_post(kind: Kind = LIKE) -> TargetKeys:
    return redis_keys.keys_of(kind.name, POST)


@pytest.fixture
def viral(people: World, set_up: Callable[..., None]) -> World:
    """Twelve more users like the post; Redis keeps four of them and a Bloom filter."""
    set_up(recent_cap=4)
    redis_hydration.evict_all([(LIKE, POST, None)])
    for user_id in range(101, 113):
        react(LIKE, POST, user_id, True)
    people.queues.drain()
    rebuild.rebuild([BloomBuildStep(LIKE, POST, "", 0)])
    return people


def test_a_target_with_a_filter_is_clean(viral: World, audit: Audit) -> None:
    report = audit()
    assert (report.clean, report.totals["like"]) == (True, (14, 14, 14, 14))
    meta = stores.meta(POST)
    assert (meta["complete"], len(stores.recent(POST))) == (0, 4)
    assert meta["bloom"] > 0


def test_actors_that_the_filter_denies_are_reported(viral: World, audit: Audit) -> None:
    keys = of_post()
    plaza_redis.execute("DEL", keys.bloom)
    plaza_redis.execute("SETBIT", keys.bloom, stores.meta(POST)["bloom"], 1)
    [difference] = audit().differences
    assert "in the rows and denied by the filter: 2, 3, 101" in str(difference)


@pytest.mark.parametrize(
    ("command", "details"),
    [
        (("ZREM", "recent", 112), "in the rows and not in Redis: 112"),
        (("ZADD", "recent", 1, 112), "at another version in Redis: 112"),
        (("ZADD", "recent", 2**52, 999), "in Redis and not in the rows: 999"),
    ],
)
def test_a_changed_member_of_recent_is_reported(
    viral: World, audit: Audit, command: tuple[str, str, int], details: str
) -> None:
    name, of, *rest = command
    plaza_redis.execute(name, getattr(of_post(), of), *rest)
    assert details in [difference.details for difference in audit().differences]


@pytest.mark.parametrize(
    ("field", "by", "details"),
    [
        ("base", 1, "Redis 4, counter 3, rows 3"),
        ("db_version", 1, "Redis @3, MySQL @2"),
        ("accepted", (1, 0, 0), "delta 2, the outbox adds up to 1"),
        ("accepted", (0, 1, 0), "outbox_count 2, the outbox has 1"),
        ("accepted", (0, 0, -(10**15)), "version"),
        ("mode", "3:live:complete", "unreadable: protocol 3"),
        ("mode", "2", "unreadable: meta: ValueError"),
    ],
)
def test_a_changed_field_of_meta_is_reported_while_the_target_is_busy(
    people: World, audit: Audit, field: str, by: int | str | tuple[int, ...], details: str
) -> None:
    react(LIKE, POST, 4, True)
    people.queues.drain()
    react(LIKE, POST, 1, True)
    assert audit().differences == []
    before = plaza_redis.execute("HGET", of_post().meta, field)
    match by:
        case int():
            after = str(int(before) + by)
        case str():
            after = by
        case _:
            parts = zip(before.split(":"), by, strict=True)
            after = ":".join(str(int(part) + n) for part, n in parts)
    plaza_redis.execute("HSET", of_post().meta, field, after)
    results = [difference.details for difference in audit().differences]
    expected = details.replace("Redis 4,", "Redis 5 with 1 pending,")
    assert any(item.startswith(expected) for item in results)


def test_unacknowledged_commits_are_pending_and_hide_no_drift(
    people: World, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    db_version = stores.meta(POST)["db_version"]
    react(LIKE, POST, 4, True)
    react(LIKE, POST, 2, False)
    with monkeypatch.context() as patched:
        patched.setattr(persist, "acknowledge", lambda saved: None)
        people.queues.drain()
    report = audit()
    assert (report.pending, report.differences) == (2, []), "right for the version that Redis has"
    plaza_redis.execute("HINCRBY", of_post().meta, "base", 1)
    plaza_redis.execute("ZREM", of_post().recent, 3)
    assert [d.details for d in audit().differences] == [
        f"Redis 3 with 2 pending @{db_version}, 0 since, counter 2, rows 2",
        "in the rows and not in Redis: 3",
    ]


def test_a_lost_commit_is_reported_when_quiet(people: World, audit: Audit) -> None:
    persist.save([ReactionEvent(ReactionKey(*POST, "like", 4), True, 2**50)])
    assert audit().clean
    newest = stores.meta(POST)["db_version"]
    plaza_redis.execute("HSET", of_post().meta, "db_version", newest - 1, "base", 2)
    plaza_redis.execute("ZREM", of_post().recent, 4)
    assert [d.details for d in audit().differences] == [f"Redis @{newest - 1}, MySQL @{newest}"]


def test_an_outbox_that_no_sweep_finds_is_reported(people: World, audit: Audit) -> None:
    react(LIKE, POST, 4, True)
    keys = of_post()
    plaza_redis.execute("ZREM", keys.outboxes, keys.member)
    assert [str(d) for d in audit().differences] == [
        "like post:7: 1 pending, and not in the outbox index"
    ]


def test_commits_ahead_that_no_sweep_applies_are_reported(people: World, audit: Audit) -> None:
    keys = of_post()
    plaza_redis.execute("HSET", keys.ahead, 9, "3|4 5 1")
    assert [d.details for d in audit().differences] == ["ahead @1, and not swept: 9"]
    plaza_redis.execute("DEL", keys.meta)
    assert [d.details for d in audit().differences] == ["not loaded, ahead does not expire: 9"]


def test_spilled_messages_that_no_sweep_sends_are_reported(people: World, audit: Audit) -> None:
    spill("reactions", "{}")
    report = audit()
    assert (report.quiet, report.spilled, report.differences) == (False, {"reactions": 1}, [])
    spill("orders", "{}")
    assert [str(d) for d in audit().differences] == [
        "queue orders: 1 spilled, and no sweep sends them"
    ]


def test_a_target_loaded_before_a_restart_of_redis_is_not_loaded(
    people: World, audit: Audit
) -> None:
    keys = of_post()
    plaza_redis.execute("HSET", keys.meta, "term", "another", "base", 77)
    report = audit()
    assert (report.clean, report.totals["like"].hot) == (True, 0)
    hydrate([(LIKE, POST)])
    assert audit().totals["like"] == (2, 2, 2, 2)


def test_an_evicted_target_is_compared_with_the_log(people: World, audit: Audit) -> None:
    react(COLLECT, POST, 2, True)
    people.queues.drain()
    redis_hydration.evict_all([(COLLECT, POST, None)])
    assert audit().clean
    mysql.write("UPDATE reaction_log SET change_by = 0 WHERE kind = 'collect'")
    assert [str(d) for d in audit().differences] == [
        "collect post:7: Redis not loaded, counter 1, rows 1, log 0"
    ]


@pytest.mark.parametrize(
    ("statement", "difference"),
    [
        ("5 WHERE db_version = 1", "@2: log 2, not 6"),
        ("5 WHERE db_version = 2", "@2: log 5, not 2"),
        ("5 WHERE db_version = 3", "@3: log 5, not 2"),
        ("5 WHERE actor_id = 4", "@2: 2 and 5"),
        ("1 + total WHERE TRUE", "@3: log 3, not 2"),
    ],
)
def test_a_wrong_total_in_the_log_is_reported(
    people: World, audit: Audit, statement: str, difference: str
) -> None:
    """Given likes whose commits have the totals 1, 2 and 2."""
    persist.save([make_like(2, at=1)])
    persist.save([make_like(3, at=2), make_like(4, at=2), make_like(2, on=False, at=2)])
    persist.save([make_like(3, on=False, at=3), make_like(5, at=3)])
    assert audit().clean
    mysql.write(f"UPDATE reaction_log SET total = {statement} AND target_id = 8")
    of = "total in the log of like comment:8 "
    assert of + difference in [str(row) for row in audit().differences]


def test_a_counter_that_was_corrected_is_not_compared_with_the_log(
    people: World, audit: Audit
) -> None:
    persist.save([make_like(2, at=1)])
    mysql.write("UPDATE reaction_log SET total = 5 WHERE target_id = 8")
    assert not audit().clean
    mysql.write("UPDATE counter SET version = 2 WHERE target_id = 8 AND kind = 'like'")
    assert "total in the log" not in str(audit().differences)


def test_totals_of_the_log_are_compared_from_the_repair_of_a_counter_on(
    people: World, audit: Audit
) -> None:
    """Given a like that was logged while the counter was wrong, which a repair can't change."""
    persist.save([make_like(2, at=1)])
    mysql.write("UPDATE counter SET total = 5 WHERE target_id = 8 AND kind = 'like'")
    persist.save([make_like(3, at=2)])
    of = "total in the log of like comment:8 @"
    orchestrator.start()
    people.queues.drain()
    assert (audit().clean, audit().differences) == (True, [])
    for actor_id in (4, 5, 6):
        persist.save([make_like(actor_id, at=actor_id)])
    assert (audit().clean, audit().differences) == (True, [])
    mysql.write("UPDATE reaction_log SET total = 9 WHERE target_id = 8 AND actor_id = 5")
    assert [str(row) for row in audit().differences] == [f"{of}6: log 9, not 4"]
    mysql.write("UPDATE reaction_log SET total = 8 WHERE target_id = 8 AND actor_id = 6")
    assert f"{of}7: log 8, not 5" in [str(row) for row in audit().differences]


def test_totals_are_not_added_to_across_a_repair_with_an_older_event_after_it(
    people: World, audit: Audit
) -> None:
    """Given a like that was logged while the counter was wrong, and after its repair an event that
    changes nothing: its row has the version and the total of the repair."""
    persist.save([make_like(2, at=2)])
    mysql.write("UPDATE counter SET total = 5 WHERE target_id = 8 AND kind = 'like'")
    persist.save([make_like(3, at=3)])
    orchestrator.start()
    people.queues.drain()
    persist.save([make_like(2, on=False, at=1)])
    persist.save([make_like(4, at=4)])
    assert (audit().clean, audit().differences) == (True, [])


def test_totals_are_not_added_to_while_rows_of_a_commit_are_archived(
    people: World, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a commit of two likes, the row of one of which is in an archive only."""
    persist.save([make_like(2, at=1)])
    persist.save([make_like(3, at=2), make_like(4, at=2)])
    persist.save([make_like(5, at=3)])
    monkeypatch.setattr(recount, "find_contradictions", lambda *_, **__: ())
    count = recount.count_events
    monkeypatch.setattr(recount, "count_events", lambda *a, **k: count(*a, **k) + 1)
    mysql.write("DELETE FROM reaction_log WHERE target_id = 8 AND actor_id = 4")
    assert audit().differences == []
    mysql.write("UPDATE reaction_log SET total = 9 WHERE target_id = 8 AND actor_id = 5")
    assert [row.details for row in audit().differences] == ["log 9, not 4"]


def test_a_fence_is_not_reported(people: World, audit: Audit) -> None:
    plaza_redis.execute("FLUSHALL")
    react(FOLLOW, Target("user", 1), 4, True)
    people.queues.drain()  # leaves a fence for a counter that is not in Redis
    report = audit()
    assert (report.clean, report.counters["followers"]) == (True, (3, 3, 0, 0))


def test_the_number_of_calls_does_not_depend_on_the_data(
    people: World, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: dict[str, int] = {}

    def count(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(self: object, *args: object, **named: object) -> object:
            calls[name] = calls.get(name, 0) + 1
            return real(self, *args, **named)

        monkeypatch.setattr(owner, name, counted)

    count(pymysql.cursors.Cursor, "execute")
    count(redis.client.Pipeline, "execute")
    count(redis.client.Redis, "scan")
    audit()
    before = dict(calls)
    for user_id in range(100, 200):
        mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'user')", (user_id,))
        react(FOLLOW, Target("user", user_id), 1, True)
    people.queues.drain()
    counters.read_users(list(range(100, 200)))
    calls.clear()
    report = audit()
    assert (report.clean, report.counters["following"].rows) == (True, 102)
    assert calls == before
