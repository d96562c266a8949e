"""The audit report: equal stores are clean, and every kind of difference is found."""

import time
from collections import Counter
from typing import Any

import pytest

from local.audit.compare import AuditReport, compare
from local.audit.stores import (
    CachedCounter,
    Difference,
    MysqlState,
    OutboxEntry,
    RedisKeys,
    RedisState,
    TargetKind,
    TargetState,
)
from local.load.interactions import find_differences
from local.load.requests import Reaction
from plaza.core import counters
from plaza.core.counters import COMMENT, TargetCounter, UserCounter
from plaza.core.counters.model import USER_COLUMNS
from plaza.core.counters.redis_store import comments_key, user_key
from plaza.core.reactions import Target
from plaza.core.reactions.redis_keys import keys_of

POST = Target("post", 7)
AUTHOR = Target("user", 9)
LIKES = ("like", POST)
FOLLOWS = ("follow", AUTHOR)
COMMENTS = (COMMENT, POST)
NOTHING_QUEUED = {"reactions": (0, 0), "reactions_dlq": (0, 0)}


@pytest.fixture
def mysql_state() -> MysqlState:
    """Return a state with a liked post of user 9, a comment on it, and a follow of user 9."""
    return MysqlState(
        on={LIKES: {1: 100, 2: 200}, FOLLOWS: {1: 300}},
        totals={
            LIKES: TargetCounter(2, 2),
            COMMENTS: TargetCounter(1, 3),
            FOLLOWS: TargetCounter(1, 1),
        },
        users={
            1: UserCounter(following_total=1, version=1),
            9: UserCounter(followers_total=1, posts_total=1, likes_received_total=2, version=4),
        },
        authors={POST: 9, Target("comment", 8): 2},
        posts=Counter({9: 1}),
        comments=Counter({7: 1}),
        log=3,
        changes={LIKES: 2, FOLLOWS: 1},
    )


def hot(recent: dict[int, int], s: int, **fields: Any) -> TargetState:
    """Return a target that is loaded at version ``s`` with all its actors and an empty outbox."""
    of_target = {
        "loaded": True,
        "db_version": s,
        "base": len(recent),
        "version_us": max(recent.values(), default=0),
        "complete": True,
        "recent": recent,
    }
    return TargetState(**{**of_target, **fields})


@pytest.fixture
def redis_state(mysql_state: MysqlState) -> RedisState:
    return RedisState(
        hot={
            LIKES: hot({1: 100, 2: 200}, s=2),
            FOLLOWS: hot({1: 300}, s=1),
        },
        users={9: CachedCounter(4, counters.USER_COUNTER.encode(mysql_state.users[9]))},
        comments={7: CachedCounter(2, "1")},
    )


def run_compare(
    mysql_state: MysqlState, redis_state: RedisState, **depths: tuple[int, int]
) -> AuditReport:
    return compare(mysql_state, redis_state, NOTHING_QUEUED | depths)


def texts_of(
    mysql_state: MysqlState, redis_state: RedisState, **depths: tuple[int, int]
) -> list[str]:
    report = run_compare(mysql_state, redis_state, **depths)
    return [str(difference) for difference in report.differences]


def subjects_of(mysql_state: MysqlState, redis_state: RedisState) -> list[str]:
    return [d.subject for d in run_compare(mysql_state, redis_state).differences]


def details_of(mysql_state: MysqlState, redis_state: RedisState) -> list[str]:
    return [d.details for d in run_compare(mysql_state, redis_state).differences]


def replace(counter: UserCounter, **totals: int) -> UserCounter:
    fields = {name: getattr(counter, name) for name in (*USER_COLUMNS, "version")}
    return UserCounter(**{**fields, **totals})


def set_total(mysql_state: MysqlState, counted: TargetKind, total: int) -> None:
    counter = mysql_state.totals.get(counted, TargetCounter())
    mysql_state.totals[counted] = counter._replace(total=total)


def test_report_is_clean_when_all_stores_agree(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    report = run_compare(mysql_state, redis_state)
    assert report.clean
    assert report.to_json() == {
        "clean": True,
        "quiet": True,
        "targets": 2,
        "hot": 2,
        "drift": 0,
        "others": 0,
        "pending": 0,
        "outbox_index": 0,
        "queued": 0,
        "queues": {},
        "dead": 0,
        "spilled": 0,
        "moving": 0,
        "accepted": 3,
        "persisted": 3,
        "totals": {
            "like": {"rows": 2, "counters": 2, "hot": 2, "hot_counters": 2},
            "collect": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
            "follow": {"rows": 1, "counters": 1, "hot": 1, "hot_counters": 1},
            "bookmark": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
        },
        "counters": {
            "comments": {"rows": 1, "counters": 1, "hot": 1, "hot_counters": 1},
            "followers": {"rows": 1, "counters": 1, "hot": 1, "hot_counters": 1},
            "following": {"rows": 1, "counters": 1, "hot": 0, "hot_counters": 0},
            "posts": {"rows": 1, "counters": 1, "hot": 1, "hot_counters": 1},
            "likes_received": {"rows": 2, "counters": 2, "hot": 2, "hot_counters": 2},
            "collects_received": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
            "reviews": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
            "scores": {"rows": 0, "counters": 0, "hot": 0, "hot_counters": 0},
        },
        "vouchers": 0,
        "sold": 0,
        "checkins": 0,
        "unread": {"unread_counters": 0, "groups": 0, "fresh": 0},
        "differences": [],
        "accepted_differences": [],
    }


def test_empty_stores_are_clean() -> None:
    assert run_compare(MysqlState(), RedisState()).clean


def test_target_outside_of_redis_is_compared_in_mysql(mysql_state: MysqlState) -> None:
    assert run_compare(mysql_state, RedisState()).clean
    set_total(mysql_state, LIKES, 3)
    assert run_compare(mysql_state, RedisState()).differences == [
        Difference("like post:7", "Redis not loaded, counter 3, rows 2")
    ]


def test_followers_are_compared_as_totals(mysql_state: MysqlState, redis_state: RedisState) -> None:
    redis_state.hot[FOLLOWS].base = 2
    set_total(mysql_state, FOLLOWS, 3)
    report = run_compare(mysql_state, redis_state)
    assert [str(difference) for difference in report.differences] == [
        "follow user:9: Redis 2, counter 3, rows 1"
    ]
    assert report.drift == 1


def test_total_in_redis_that_is_too_high_is_drift(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES].base = 3
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.drift, report.others) == (False, 1, 0)
    assert str(report.differences[0]) == "like post:7: Redis 3, counter 2, rows 2"


def test_total_in_redis_without_rows_is_drift() -> None:
    report = run_compare(MysqlState(), RedisState(hot={LIKES: hot({1: 1}, s=0)}))
    assert report.drift == 1
    assert report.targets == 1


def test_rows_without_a_counter_are_drift(mysql_state: MysqlState) -> None:
    mysql_state.totals.clear()
    assert subjects_of(mysql_state, RedisState()) == [
        "follow user:9",
        "like post:7",
        "comments of post:7",
    ]


def test_total_of_a_kind_that_the_target_does_not_accept_is_drift(mysql_state: MysqlState) -> None:
    set_total(mysql_state, ("like", AUTHOR), 1)
    assert subjects_of(mysql_state, RedisState()) == ["like user:9"]


def test_rows_of_an_unknown_kind_are_drift(mysql_state: MysqlState) -> None:
    mysql_state.on["applause", POST] = {1: 400}
    assert subjects_of(mysql_state, RedisState()) == ["applause post:7"]


def test_wrong_actors_are_found_behind_a_correct_total(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES].recent = {1: 100, 3: 200}
    assert details_of(mysql_state, redis_state) == [
        "in Redis and not in the rows: 3",
        "in the rows and not in Redis: 2",
    ]


def test_incomplete_list_may_lack_actors(mysql_state: MysqlState, redis_state: RedisState) -> None:
    redis_state.hot[LIKES].recent = {2: 200}
    redis_state.hot[LIKES].complete = False
    redis_state.hot[LIKES].floor_us = 100
    assert run_compare(mysql_state, redis_state).clean


@pytest.mark.parametrize(
    ("user_id", "column", "total", "text"),
    [
        (9, "followers_total", 2, "followers of user 9: counter 2, rows 1"),
        (1, "following_total", 0, "following of user 1: counter 0, rows 1"),
        (9, "posts_total", 0, "posts of user 9: counter 0, rows 1"),
        (9, "likes_received_total", 1, "likes received of user 9: counter 1, rows 2"),
        (1, "collects_received_total", 4, "collects received of user 1: counter 4, rows 0"),
    ],
)
def test_each_counter_of_a_user_must_equal_its_rows(
    mysql_state: MysqlState, user_id: int, column: str, total: int, text: str
) -> None:
    mysql_state.users[user_id] = replace(mysql_state.users[user_id], **{column: total})
    report = run_compare(mysql_state, RedisState())
    assert [str(difference) for difference in report.differences] == [text]
    assert (report.clean, report.drift) == (False, 1)


def test_user_with_rows_and_without_a_counter_is_found(mysql_state: MysqlState) -> None:
    del mysql_state.users[9]
    assert texts_of(mysql_state, RedisState()) == [
        "followers of user 9: counter 0, rows 1",
        "posts of user 9: counter 0, rows 1",
        "likes received of user 9: counter 0, rows 2",
    ]


def test_user_with_a_counter_and_without_rows_is_found(mysql_state: MysqlState) -> None:
    mysql_state.users[5] = UserCounter(followers_total=1, version=1)
    assert run_compare(mysql_state, RedisState()).differences == [
        Difference("followers of user 5", "counter 1, rows 0")
    ]


def test_likes_received_for_deleted_content_remain(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    mysql_state.posts.clear()  # the post was deleted: its row is there, and its likes are
    mysql_state.users[9] = replace(mysql_state.users[9], posts_total=0, version=5)
    redis_state.users[9] = CachedCounter(5, counters.USER_COUNTER.encode(mysql_state.users[9]))
    assert run_compare(mysql_state, redis_state).clean


def test_likes_of_unknown_content_count_for_no_author_and_are_reported(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    del mysql_state.authors[POST]
    mysql_state.users[9] = replace(mysql_state.users[9], likes_received_total=0, version=5)
    redis_state.users[9] = CachedCounter(5, counters.USER_COUNTER.encode(mysql_state.users[9]))
    report = run_compare(mysql_state, redis_state)
    assert [str(difference) for difference in report.differences] == [
        "like post:7: rows 2, the target does not exist"
    ]
    assert (report.clean, report.drift, report.others) == (False, 0, 1)


def test_a_removed_like_of_unknown_content_is_reported(mysql_state: MysqlState) -> None:
    mysql_state.on.pop(LIKES)
    mysql_state.off["like", Target("review", 5)] = {1: 100}
    assert "like review:5: rows 1, the target does not exist" in texts_of(mysql_state, RedisState())


@pytest.mark.parametrize(("rows", "counter"), [(0, 1), (1, 0), (2, 1)])
def test_comments_of_a_post_must_equal_the_live_ones(
    mysql_state: MysqlState, rows: int, counter: int
) -> None:
    set_total(mysql_state, COMMENTS, counter)
    mysql_state.comments[POST.id] = rows
    report = run_compare(mysql_state, RedisState())
    assert report.differences == [
        Difference("comments of post:7", f"counter {counter}, rows {rows}")
    ]
    assert report.drift == 1


def test_comments_of_a_post_without_a_counter_are_found(mysql_state: MysqlState) -> None:
    mysql_state.comments[11] = 1
    assert texts_of(mysql_state, RedisState()) == ["comments of post:11: counter 0, rows 1"]


def test_user_that_differs_between_redis_and_mysql_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.users[9] = CachedCounter(
        4, counters.USER_COUNTER.encode(replace(mysql_state.users[9], followers_total=2))
    )
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.drift, report.others) == (False, 0, 1)
    assert report.differences[0].subject == "counters of user 9"
    assert report.counters["followers"] == (1, 1, 2, 1)


@pytest.mark.parametrize("value", ["", "{", "[]", "{}", '{"followers_total": 1, "likes": 2}'])
def test_unreadable_user_in_redis_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState, value: str
) -> None:
    redis_state.users[9] = CachedCounter(4, value)
    assert run_compare(mysql_state, redis_state).others == 1


def test_user_in_redis_without_rows_must_be_zero(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.users[5] = CachedCounter(0, counters.USER_COUNTER.encode(UserCounter()))
    assert run_compare(mysql_state, redis_state).clean
    redis_state.users[5] = CachedCounter(
        0, counters.USER_COUNTER.encode(UserCounter(posts_total=1))
    )
    assert run_compare(mysql_state, redis_state).others == 1


def test_version_newer_than_in_mysql_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.users[9] = redis_state.users[9]._replace(version=5)
    redis_state.comments[7] = redis_state.comments[7]._replace(version=4)
    assert subjects_of(mysql_state, redis_state) == [
        "counters of user 9",
        "comments of post:7",
    ]


@pytest.mark.parametrize("value", ["0", "2", "-1", "one"])
def test_comments_that_differ_between_redis_and_mysql_are_a_difference(
    mysql_state: MysqlState, redis_state: RedisState, value: str
) -> None:
    redis_state.comments[7] = CachedCounter(3, value)
    report = run_compare(mysql_state, redis_state)
    assert (report.drift, report.others) == (0, 1)
    assert report.differences == [Difference("comments of post:7", f"Redis {value} @3, MySQL 1 @3")]


def test_comments_in_redis_without_a_counter_must_be_zero(redis_state: RedisState) -> None:
    assert run_compare(MysqlState(), RedisState(comments={5: CachedCounter(0, "0")})).clean
    assert run_compare(MysqlState(), RedisState(comments={5: CachedCounter(0, "1")})).others == 1


def test_unreleased_holds_are_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.holds[1] = {"user:9": 0}
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.others) == (False, 1)
    assert str(report.differences[0]) == "holds of user 1: not released: user:9"


def test_a_hold_whose_follow_was_not_stored_is_accepted_for_an_hour(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.holds[1] = {"user:8": 1_800_000_000_000_000}
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.differences) == (True, [])
    accepted = ["hold of user 1: user:8, until 2027-01-15T09:00:00Z"]
    assert report.to_json()["accepted_differences"] == accepted
    assert run_compare(mysql_state, redis_state, reactions=(1, 0)).accepted_differences == []


def test_holds_and_projections_may_have_queued_changes(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.holds[1] = {"user:9": 0}
    redis_state.users[9] = CachedCounter(3, counters.USER_COUNTER.encode(UserCounter()))
    redis_state.comments[7] = CachedCounter(1, "0")
    assert run_compare(mysql_state, redis_state, reactions=(1, 0)).differences == []
    assert run_compare(mysql_state, redis_state).others == 3


def test_keys_of_redis_are_classified() -> None:
    redis_keys = RedisKeys()
    kept = [
        user_key(7),
        comments_key(8),
        user_key(9).replace("counters", "holds"),
        keys_of("follow", AUTHOR).meta,
        keys_of("like", POST).outbox,
        keys_of("like", POST).outboxes,
    ]
    others = [
        keys_of("follow", AUTHOR).recent,
        keys_of("follow", AUTHOR).fence,
        keys_of("follow", AUTHOR).lease,
        keys_of("follow", AUTHOR).bloom,
        "{3}:user:7:card",
        "{3}:user:7:existence",
        "{3}:user:7:comments",
        "{3}:user:7:counters:more",
        "{3}:follow:user:7:newest",
        "{3}:applause:post:7:meta",
        "{3}:post:7:page",
        "{3}:post:7:viewers",
        "{3}:post:7:existence",
        "{3}:post:7:counters",
        "{3}:post:7:holds",
        "{3}:phone:ab12:codes",
        "{3}:ids:serials",
        "user:7:counters",
    ]
    for key in kept + others:
        redis_keys.add_key(key)
    assert redis_keys == RedisKeys(
        reactions={FOLLOWS, LIKES},
        outbox_index={keys_of("like", POST).outboxes},
        users={7: user_key(7)},
        comments={8: comments_key(8)},
        holds={9: user_key(9).replace("counters", "holds")},
    )


def test_log_that_differs_from_the_rows_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    mysql_state.log_differences.append(Difference("like post:7 by 1", "log 1@100, row 0@90"))
    report = run_compare(mysql_state, redis_state)
    assert not report.clean
    assert report.others == 1


def wait_for(redis_state: RedisState, actor_id: int, entry: OutboxEntry) -> None:
    """Add an entry to the outbox of the post's likes, as the gate writes it."""
    likes = redis_state.hot[LIKES]
    likes.outbox[actor_id] = entry
    likes.outbox_count += 1
    likes.delta += entry.want - entry.base
    likes.version_us = max(likes.version_us, entry.version_us)
    likes.indexed_us = likes.indexed_us or entry.version_us
    redis_state.outbox_index = {"like:post:7"}


def test_outbox_entry_is_not_clean_and_not_drift(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    wait_for(redis_state, 3, OutboxEntry(True, 300, False))
    wait_for(redis_state, 2, OutboxEntry(False, 400, True))
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.quiet, report.drift, report.others) == (False, False, 0, 0)
    assert (report.pending, report.accepted, report.persisted) == (2, 5, 3)


def test_saved_outbox_entry_counts_once(mysql_state: MysqlState, redis_state: RedisState) -> None:
    mysql_state.off[LIKES] = {5: 500}
    wait_for(redis_state, 2, OutboxEntry(True, 200, True))
    wait_for(redis_state, 5, OutboxEntry(False, 500, False))
    assert run_compare(mysql_state, redis_state).accepted == 3


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"indexed_us": None}, "1 pending, and not in the outbox index"),
        ({"outbox_count": 2}, "outbox_count 2, the outbox has 1"),
        ({"delta": 0}, "delta 0, the outbox adds up to -1"),
        ({"version_us": 299}, "version 299, and an actor has 300"),
    ],
)
def test_outbox_that_differs_from_its_totals_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState, fields: dict[str, Any], text: str
) -> None:
    wait_for(redis_state, 2, OutboxEntry(False, 300, True))
    for name, value in fields.items():
        setattr(redis_state.hot[LIKES], name, value)
    assert run_compare(mysql_state, redis_state).differences == [Difference("like post:7", text)]


def test_outbox_entry_based_on_another_state_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    wait_for(redis_state, 2, OutboxEntry(True, 300, False))
    wait_for(redis_state, 3, OutboxEntry(True, 301, True))
    assert texts_of(mysql_state, redis_state) == [
        "like post:7: pending with another base than the rows: 2, 3"
    ]


def test_outbox_without_its_target_is_not_clean(mysql_state: MysqlState) -> None:
    outbox = {3: OutboxEntry(True, 300, False)}
    redis_state = RedisState(
        hot={LIKES: TargetState(outbox=outbox, indexed_us=300)}, outbox_index={"like:post:7"}
    )
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.hot, report.pending, report.drift) == (False, 0, 1, 0)
    assert report.differences == []
    redis_state.hot[LIKES].indexed_us = None
    assert run_compare(mysql_state, redis_state).others == 1


def test_leftover_entry_of_the_outbox_index_is_not_clean(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.outbox_index = {"like:post:7"}
    assert not run_compare(mysql_state, redis_state).quiet


def commit(mysql_state: MysqlState, actor_id: int, version_us: int) -> None:
    """Save one more like of the post in MySQL, without Redis."""
    mysql_state.on[LIKES][actor_id] = version_us
    counter = mysql_state.totals[LIKES]
    mysql_state.totals[LIKES] = TargetCounter(counter.total + 1, counter.version + 1)
    mysql_state.since.setdefault(LIKES, {})[actor_id] = 1
    mysql_state.changes = {**(mysql_state.changes or {}), LIKES: len(mysql_state.on[LIKES])}
    mysql_state.users[9] = replace(mysql_state.users[9], likes_received_total=counter.total + 1)


def test_target_in_redis_is_compared_with_its_version_in_mysql(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    commit(mysql_state, 3, 300)
    busy = {"reactions": (1, 0)}
    assert run_compare(mysql_state, redis_state, **busy).differences == []
    redis_state.hot[LIKES].base = 3
    redis_state.hot[LIKES].recent = {1: 100, 4: 200}
    assert texts_of(mysql_state, redis_state, **busy) == [
        "like post:7: Redis 3 @2, 1 since, counter 3, rows 3",
        "like post:7: in Redis and not in the rows: 4",
        "like post:7: in the rows and not in Redis: 2",
    ]


def test_outdated_target_is_a_difference_when_all_is_quiet(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    commit(mysql_state, 3, 300)
    redis_state.users.clear()
    assert texts_of(mysql_state, redis_state) == ["like post:7: Redis @2, MySQL @3"]


def test_outdated_target_is_skipped_without_the_log(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    commit(mysql_state, 3, 300)
    mysql_state.since.clear()
    redis_state.hot[LIKES].recent = {}
    assert run_compare(mysql_state, redis_state, reactions=(1, 0)).differences == []


def test_target_version_newer_than_in_mysql_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES].db_version = 3
    report = run_compare(mysql_state, redis_state, reactions=(1, 0))
    assert [str(d) for d in report.differences] == ["like post:7: Redis @3, MySQL @2"]


def test_epoch_is_part_of_the_version(mysql_state: MysqlState, redis_state: RedisState) -> None:
    mysql_state.epoch = 2**40
    assert run_compare(mysql_state, redis_state).others == 2
    redis_state.hot[LIKES].db_version += 2**40
    redis_state.hot[FOLLOWS].db_version += 2**40
    assert run_compare(mysql_state, redis_state).clean


def test_another_version_of_an_actor_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES].recent[2] = 199
    assert texts_of(mysql_state, redis_state) == ["like post:7: at another version in Redis: 2"]


def test_active_actor_missing_in_the_filter_is_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    likes = redis_state.hot[LIKES]
    likes.recent, likes.complete, likes.floor_us, likes.bits = {2: 200}, False, 100, 131_072
    assert run_compare(mysql_state, redis_state).clean, "a filter without its seal is not used"
    seal = b"\x80"
    likes.bloom = bytes(131_072 // 8) + seal
    assert texts_of(mysql_state, redis_state) == [
        "like post:7: in the rows and denied by the filter: 1"
    ]
    likes.bloom = b"\xff" * (131_072 // 8) + seal
    assert run_compare(mysql_state, redis_state).clean
    likes.floor_us = 99
    assert texts_of(mysql_state, redis_state) == ["like post:7: in the rows and not in Redis: 1"]


def test_logged_changes_that_differ_from_the_rows_are_drift(mysql_state: MysqlState) -> None:
    mysql_state.changes = {LIKES: 3, FOLLOWS: 1, ("like", Target("post", 8)): 1}
    report = run_compare(mysql_state, RedisState())
    assert [str(d) for d in report.differences] == [
        "like post:7: Redis not loaded, counter 2, rows 2, log 3",
        "like post:8: Redis not loaded, counter 0, rows 0, log 1",
    ]
    assert report.drift == 2
    mysql_state.changes = None
    assert run_compare(mysql_state, RedisState()).clean


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"ahead": {2}, "blocked": True}, "ahead, but applied @2: 2"),
        ({"ahead": {4}}, "ahead @2, and not swept: 4"),
        ({"ahead": {4}, "blocked": True}, "ahead @2, and not swept: 4"),
        (
            {"ahead": {4}, "loaded": False, "ahead_stays": True},
            "not loaded, ahead does not expire: 4",
        ),
    ],
)
def test_buffered_commits_without_a_gap_are_a_difference(
    mysql_state: MysqlState, redis_state: RedisState, fields: dict[str, Any], text: str
) -> None:
    for name, value in fields.items():
        setattr(redis_state.hot[LIKES], name, value)
    report = run_compare(mysql_state, redis_state, reactions=(1, 0))
    assert [str(d) for d in report.differences] == [f"like post:7: {text}"]


def test_buffered_commits_behind_a_gap_are_pending(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    likes = redis_state.hot[LIKES]
    likes.ahead, likes.blocked, likes.indexed_us = frozenset({4}), True, time.time_ns() // 1000
    redis_state.outbox_index = {"like:post:7"}
    report = run_compare(mysql_state, redis_state)
    assert (report.clean, report.differences) == (False, [])
    likes.loaded = False
    assert run_compare(mysql_state, redis_state).differences == []


def test_values_of_unknown_form_are_a_difference(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES] = TargetState(unreadable="protocol 3")
    assert texts_of(mysql_state, redis_state) == ["like post:7: unreadable: protocol 3"]


def test_target_that_changes_too_fast_is_skipped(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    redis_state.hot[LIKES] = hot({}, s=1, moving=True)
    report = run_compare(mysql_state, redis_state)
    assert (report.moving, report.quiet, report.drift, report.others) == (1, False, 0, 0)


def test_spilled_messages_are_pending_if_the_sweeper_sends_them(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    mysql_state.spilled = {"reactions": 2}
    report = run_compare(mysql_state, redis_state)
    assert (report.quiet, report.clean, report.differences) == (False, False, [])
    mysql_state.spilled = {"orders": 2}
    assert texts_of(mysql_state, redis_state) == [
        "queue orders: 2 spilled, and no sweep sends them"
    ]


@pytest.mark.parametrize("depth", [(1, 0), (0, 1)])
def test_queued_messages_are_not_clean(
    mysql_state: MysqlState, redis_state: RedisState, depth: tuple[int, int]
) -> None:
    report = run_compare(mysql_state, redis_state, reactions=depth)
    assert (report.quiet, report.clean) == (False, False)
    assert report.queued == {"reactions": 1}


def test_messages_in_a_dlq_are_quiet_and_not_clean(
    mysql_state: MysqlState, redis_state: RedisState
) -> None:
    report = run_compare(mysql_state, redis_state, reactions_dlq=(2, 0))
    assert (report.quiet, report.clean, report.dead) == (True, False, {"reactions_dlq": 2})


def test_report_lists_twenty_differences_and_counts_all() -> None:
    mysql_state = MysqlState(on={("like", Target("post", id_)): {1: 1} for id_ in range(1, 31)})
    text = run_compare(mysql_state, RedisState()).to_json()
    assert text["drift"] == 30
    assert len(text["differences"]) == 20


def like(item_id: int, user_id: int) -> Reaction:
    return Reaction("like", item_id, user_id)


def test_file_is_compared_actor_by_actor() -> None:
    expected, rows = {like(7, 1), like(7, 2)}, {like(7, 1), like(7, 3)}
    reported = {"like": {7: 2}, "collect": {7: 0}}
    assert find_differences(expected, rows, reported, {7: [1, 2]}) == [
        "like of post 7 by user 3 is in the rows, not in the file",
        "like of post 7 by user 2 is in the file, not in the rows",
    ]


def test_totals_of_the_api_are_compared_with_the_file() -> None:
    expected = {like(7, 1), Reaction("collect", 7, 1)}
    reported = {"like": {7: 2, 8: 0}, "collect": {7: 1, 8: 0}}
    assert find_differences(expected, expected, reported, {}) == [
        "post 7 has 2 likes by the API, 1 by the file"
    ]


@pytest.mark.parametrize("likers", [[1], [1, 2, 2], [1, 2, 3], []])
def test_likers_of_the_api_are_compared_with_the_file(likers: list[int]) -> None:
    expected = {like(7, 1), like(7, 2)}
    reported = {"like": {7: 2}, "collect": {7: 0}}
    (difference,) = find_differences(expected, expected, reported, {7: likers})
    assert difference.startswith("likers of post 7 by the API are wrong")
