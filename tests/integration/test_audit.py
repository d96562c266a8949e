"""The audit on a real Redis and a real database: what it reads, and with how many questions."""

from __future__ import annotations

import pymysql.cursors
import pytest
import redis.client

from local.evidence import read_cache, read_record
from local.truth import Truth, compare
from plaza import checkins, counters, flash_sales, recommendations
from plaza.checkins.redis_checkins import Keys
from plaza.flash_sales import redis_vouchers
from plaza.infra import mysql
from plaza.infra import redis as plaza_redis
from plaza.reactions import FOLLOW, LIKE, Target, react
from tests.keyspace import find_keys
from tests.plaza import World
from tests.sales import offer
from tests.servers import IS_CLUSTER

POST = Target("post", 7)
REVIEW = Target("review", 70)


class Audit:
    """``python -m local audit``, without the queues of a stack."""

    def __init__(self, redis_url: str, mysql_url: str) -> None:
        self.redis_url, self.mysql_url = redis_url, mysql_url

    def __call__(self) -> Truth:
        cache = read_cache(self.redis_url, cluster=IS_CLUSTER)
        return compare(read_record(self.mysql_url), cache, {})


@pytest.fixture
def audit(redis_url: str, mysql_url: str, plaza: World) -> Audit:
    return Audit(redis_url, mysql_url)


@pytest.fixture
def people(plaza: World) -> World:
    """Users 1 to 4; user 1 wrote a post that 2 and 3 like, 4 commented on; 2 and 3 follow 1."""
    for user_id in range(1, 5):
        mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'somebody')", (user_id,))
    plaza.add(POST, author_id=1)
    mysql.write(
        "INSERT INTO content (content_type, content_id, author_id, parent_id)"
        " VALUES ('comment', 8, 4, 7)"
    )
    mysql.atomically(_count_what_was_written)
    for user_id in (2, 3):
        react(LIKE, POST, user_id, True)
        react(FOLLOW, Target("user", 1), user_id, True)
    plaza.queues.drain()
    counters.read_users([1, 2])
    counters.read_comments([7])
    return plaza


def _count_what_was_written(cursor: pymysql.cursors.Cursor) -> None:
    counters.lock_content(cursor, [POST])
    counters.add_to_content(cursor, {POST: {"comment_total": 1}})
    counters.add_to_users(cursor, {(1,): {"posts_total": 1}})


def test_what_plaza_wrote_is_clean_and_all_of_it_is_seen(people: World, audit: Audit) -> None:
    truth = audit()
    assert (truth.clean, truth.differences) == (True, [])
    assert truth.totals["like"] == (2, 2, 2, 2)
    assert truth.totals["follow"] == (2, 2, 2, 2)
    assert truth.counters == {
        "comments": (1, 1, 1, 1),
        "followers": (2, 2, 2, 2),
        "following": (2, 2, 1, 1),
        "posts": (1, 1, 1, 1),
        "likes_received": (2, 2, 2, 2),
        "collects_received": (0, 0, 0, 0),
    }


@pytest.mark.parametrize(
    ("statement", "said"),
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
            "UPDATE content_counter SET follow_total = 1 WHERE target_type = 'user'",
            "follow user:1: Redis 2, counter 1, rows 2",
        ),
    ],
)
def test_a_row_that_somebody_touched_is_found(
    people: World, audit: Audit, statement: str, said: str
) -> None:
    mysql.write(statement)
    truth = audit()
    assert said in [str(difference) for difference in truth.differences]
    assert truth.drift >= 1


def test_claims_and_old_projections_are_found(people: World, audit: Audit) -> None:
    mysql.write("UPDATE user_counter SET ver = ver + 1, posts_total = 2 WHERE user_id = 1")
    plaza_redis.execute("FLUSHALL")
    counters.read_users([1])
    mysql.write("UPDATE user_counter SET ver = ver + 1, posts_total = 1 WHERE user_id = 1")
    assert counters.claim(2, "following_total", 5000, "user:3")
    truth = audit()
    assert [difference.of for difference in truth.differences] == [
        "counters of user 1",
        "claims of user 2",
    ]
    assert (truth.drift, truth.others) == (0, 2)


# ---------------------------------------------------------------- votes, vouchers, check-ins


@pytest.fixture
def busy(people: World) -> World:
    """A review that 2 and 3 like and post 7, rolled up; a sale that 2 won; days of 2 and 3."""
    people.add(REVIEW, author_id=1)
    for user_id in (2, 3):
        react(LIKE, REVIEW, user_id, True)
        checkins.check_in(user_id)
    voucher = offer(stock=3)
    flash_sales.order(voucher.id, 2)
    people.queues.drain()
    recommendations.roll_up_votes()
    return people


def test_what_all_of_plaza_wrote_is_clean_and_all_of_it_is_seen(busy: World, audit: Audit) -> None:
    truth = audit()
    assert (truth.clean, truth.differences) == (True, [])
    assert (truth.vouchers, truth.sold, truth.checkins) == (1, 1, 2)


def said(truth: Truth) -> list[str]:
    return [difference.of.partition(" ")[0] for difference in truth.differences]


@pytest.mark.parametrize(
    ("statement", "of"),
    [
        ("UPDATE content SET votes = 3 WHERE content_type = 'review'", ["votes"]),
        ("UPDATE post_hour SET net = net + 1", ["hours"]),
        ("DELETE FROM post_hour", ["hours"]),
        ("UPDATE voucher SET stock = 1", ["voucher", "voucher"]),
        ("DELETE FROM voucher_order", ["voucher", "order", "voucher"]),
        ("DELETE FROM checkin WHERE user_id = 2", ["streak", "check-ins"]),
        (
            "INSERT INTO checkin (user_id, day, ver)"
            " SELECT user_id, day - INTERVAL 1 DAY, ver FROM checkin WHERE user_id = 3",
            ["streak"],
        ),
    ],
)
def test_a_vote_a_voucher_or_a_day_that_somebody_touched_is_found(
    busy: World, audit: Audit, statement: str, of: list[str]
) -> None:
    mysql.write(statement)
    truth = audit()
    assert said(truth)[: len(of)] == of
    assert not truth.clean


def test_votes_that_are_not_rolled_up_yet_are_no_difference(busy: World, audit: Audit) -> None:
    react(LIKE, REVIEW, 4, True)
    react(LIKE, POST, 4, True)
    busy.queues.drain()
    assert audit().clean
    recommendations.roll_up_votes()
    assert audit().clean


def test_redis_that_was_touched_is_found(busy: World, audit: Audit) -> None:
    [state] = find_keys("*:voucher:*:state")
    plaza_redis.execute("HINCRBY", state, "stock", 1)
    keys = Keys(2)
    plaza_redis.execute("HSET", keys.head, "streak", 5)
    assert said(audit()) == ["voucher", "streak"]


def test_what_is_pending_is_told_as_pending(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    flash_sales.order(voucher.id, 3)
    checkins.check_in(4)
    truth = audit()
    assert (truth.pending, truth.dirty, truth.quiet, truth.differences) == (2, 1, False, [])
    busy.queues.drain()
    assert audit().clean


def test_an_order_that_sqs_did_not_take_is_pending_until_the_recovery_decides_it(
    busy: World, audit: Audit
) -> None:
    voucher = offer(stock=3)
    busy.queues.away = True
    flash_sales.order(voucher.id, 3)
    busy.queues.away = False
    truth = audit()
    assert (truth.pending, truth.quiet, truth.differences) == (2, False, [])  # in both places
    flash_sales.recover_orders()
    assert audit().clean


def test_one_id_of_two_orders_is_found_at_any_time(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    made, _ = flash_sales.order(voucher.id, 3)
    life = redis_vouchers.find_lives([voucher.id])[voucher.id]
    redis_vouchers.reserve(life, made.id, 4)
    truth = audit()
    assert [str(difference) for difference in truth.differences] == [
        f"order {made.id}: one id, 2 orders:"
        f" voucher {voucher.id} of buyer 3, voucher {voucher.id} of buyer 4"
    ]
    assert truth.drift == 1


def test_an_order_that_nothing_decides_is_found(busy: World, audit: Audit) -> None:
    voucher = offer(stock=3)
    made, _ = flash_sales.order(voucher.id, 3)
    assert audit().differences == []  # the recovery will
    mysql.write("UPDATE voucher SET settled_at = UTC_TIMESTAMP(6) WHERE id = %s", (voucher.id,))
    said = f"order {made.id}: of buyer 3, voucher {voucher.id}: nothing decides it"
    assert [str(difference) for difference in audit().differences] == [said]
    plaza_redis.execute("DEL", *find_keys(f"*:voucher:{voucher.id}:*"))
    assert [str(difference) for difference in audit().differences] == [said]  # by its pointer


def test_an_outbox_of_check_ins_that_no_sweeper_finds_is_a_difference(
    busy: World, audit: Audit
) -> None:
    checkins.check_in(4)
    plaza_redis.execute("DEL", Keys(4).dirty)
    assert [str(d) for d in audit().differences] == [
        "check-ins of user 4: 1 pending, and not dirty"
    ]


def test_a_fence_says_nothing(people: World, audit: Audit) -> None:
    plaza_redis.execute("FLUSHALL")
    react(FOLLOW, Target("user", 1), 4, True)
    people.queues.drain()  # leaves the version of a counter that is not in Redis
    truth = audit()
    assert (truth.clean, truth.counters["followers"]) == (True, (3, 3, 0, 0))


def test_how_often_it_asks_does_not_depend_on_what_is_there(
    people: World, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, int] = {}

    def count(owner: type, name: str) -> None:
        real = getattr(owner, name)

        def counted(self: object, *args: object, **named: object) -> object:
            asked[name] = asked.get(name, 0) + 1
            return real(self, *args, **named)

        monkeypatch.setattr(owner, name, counted)

    count(pymysql.cursors.Cursor, "execute")
    count(redis.client.Pipeline, "execute")
    count(redis.client.Redis, "scan")
    audit()
    before = dict(asked)
    asked.clear()
    for user_id in range(100, 200):
        mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'somebody')", (user_id,))
        react(FOLLOW, Target("user", user_id), 1, True)
    people.queues.drain()
    counters.read_users(list(range(100, 200)))
    asked.clear()
    truth = audit()
    assert (truth.clean, truth.counters["following"].rows) == (True, 102)
    assert asked == before
