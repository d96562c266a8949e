"""Erasing an account: hidden at once, erased step by step, counted exactly at each moment."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest
from pymysql.err import OperationalError

from local.stack.servers import connect_mysql
from plaza.commerce.checkins import erasure as checkins_erasure
from plaza.core import counters
from plaza.core.idempotency import erasure as idempotency_erasure
from plaza.core.reactions import KINDS, LIKE, persist, queries, react
from plaza.core.reactions import erasure as reactions_erasure
from plaza.core.reactions.model import ReactionEvent, ReactionKey, TargetMissing
from plaza.infra.mysql import mysql
from plaza.infra.mysql.export_sections import ExportedRow
from plaza.infra.redis import redis
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.operate.accounts import erase, export
from plaza.people.auth import session_end, session_lookup
from plaza.people.auth.request_erasure import erase_now
from plaza.people.follows import follow_user
from plaza.people.users import erasure as users_erasure
from plaza.people.users import erasures, mysql_imports, profiles, sign_up
from plaza.people.users.identities import Identity
from plaza.people.users.model import KEPT_OPEN_S, UserMissing
from plaza.people.users.mysql_logins import PHONES
from plaza.social.content import commands
from plaza.social.content import erasure as content_erasure
from plaza.social.content.model import Draft
from plaza.social.feed import erasure as feed_erasure
from tests.integration.conftest import Away
from tests.support.accounts import (
    FRIEND,
    PHONE,
    Account,
    let_pass_be_due,
    run_until_erased,
)
from tests.support.audits import Audit
from tests.support.failures import Killed
from tests.support.functions import handler
from tests.support.interleave import run_after_statement
from tests.support.keyspace import find_keys
from tests.support.plaza import World, forget
from tests.support.stores import add_users
from tests.support.tables import ERASED, find_users

# Keys without data of the user, which keep late readers from storing old values, and expire.
MARKS = {"existence", "fence", "toggles", "latest", "earliest", "older"}
SECTIONS = export.list_sections()


@pytest.fixture
def account(plaza: World) -> Account:
    made = Account()
    plaza.queues.drain()
    made.read()
    plaza.queues.drain()
    return made


@pytest.fixture
def audit(redis_url: str, mysql_url: str) -> Audit:
    return Audit(redis_url, mysql_url)


def export_all(user_id: int) -> list[ExportedRow]:
    rows, following = export.read_page(user_id, None, 1_000)
    assert following is None
    return rows


def require_erased(plaza: World, account: Account, audit: Audit) -> None:
    """Assert that nothing of the user is left but what docs/limits.md lists."""
    user_id = account.id
    forget()
    for table, column in find_users(ERASED):
        assert mysql.fetch_all(f"SELECT 1 FROM {table} WHERE {column} = %s", (user_id,)) == []
    assert mysql.fetch_all(
        "SELECT 1 FROM reaction WHERE state = 1 AND (actor_id = %s OR target_id = %s)",
        (user_id, user_id),
    ) == []  # fmt: skip
    assert set(
        mysql.fetch_all(
            "SELECT title, body, images, score, request_id, deleted_at IS NULL FROM content"
            " WHERE author_id = %s",
            (user_id,),
        )
    ) == {(None, None, None, None, None, 0)}
    of_user = {key.partition("}:")[2]: key for key in find_keys(f"*user:{user_id}*")}
    of_user.pop(f"user:{user_id}:orders", None)  # the shop's record, as in voucher_order
    for name, key in of_user.items():
        assert name.rpartition(":")[2] in MARKS or ":hold:" in name, name
        assert 0 < redis.execute("TTL", key) <= 3600, name
        if name.endswith(":older"):
            assert redis.execute("HKEYS", key) == ["generation"], "no part"
    texts = [redis.execute("HGET", key, "value") for key in find_keys("*:text")]
    assert [text for text in texts if text != "deleted" and str(user_id) in text] == []
    assert [bodies for bodies in plaza.queues.messages.values() if bodies] == []
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    assert counters.read_users([FRIEND])[FRIEND].followers_total == 0
    assert counters.read_users([FRIEND])[FRIEND].following_total == 0
    [likes] = queries.read_counts([(LIKE, account.of_friend)], FRIEND)[0]
    assert likes.total == 0


def test_an_erased_user_is_gone_at_once_for_others(account: Account) -> None:
    erase_now(account.id)
    assert session_lookup.find_session(account.token) is None
    with pytest.raises((UserMissing, TargetMissing)):
        profiles.read_profile(account.id, FRIEND)
    with pytest.raises(TargetMissing):
        follow_user.follow(account.id, FRIEND)
    assert sign_up.sign_up(PHONE).id != account.id, "the phone is free for a new user"


def test_a_user_is_erased_and_all_counters_are_exact(
    plaza: World, account: Account, audit: Audit
) -> None:
    erase_now(account.id)
    assert run_until_erased(plaza, account.id) == 2, "one that erases, one that finds nothing"
    require_erased(plaza, account, audit)
    [(order, buyer)] = mysql.fetch_all("SELECT order_id, buyer_id FROM voucher_order")
    assert (order, buyer) == (account.order.id, account.id), "the shop's record stays"


@pytest.mark.parametrize("by", ["user", "identity", "like", "post", "follower"])
def test_what_returns_after_the_last_pass_is_erased_within_a_day(
    plaza: World, account: Account, audit: Audit, by: str
) -> None:
    """Given a closed erasure, and a restored table or a message that was redriven."""
    erase_now(account.id)
    run_until_erased(plaza, account.id)
    let_pass_be_due(account.id, age_s=KEPT_OPEN_S + 1)
    erase.run_passes()
    [closed] = erasures.read_latest(1)
    assert closed.state == "closed"
    now_us = clock.now_us()
    match by:
        case "user":
            mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'back')", (account.id,))
        case "identity":
            mysql.write(
                "INSERT INTO user_identity (issuer, subject, user_id) VALUES ('a', 'b', %s)",
                (account.id,),
            )
        case "like":
            key = ReactionKey("post", account.of_friend.id, "like", account.id)
            persist.save([ReactionEvent(key, True, now_us)])
        case "follower":
            key = ReactionKey("user", account.id, "follow", FRIEND)
            persist.save([ReactionEvent(key, True, now_us)])
        case "post":
            commands.create(
                Draft(type="post", author_id=account.id, body="b", kind="note", title="a")
            )
    plaza.queues.drain()
    erase.run_passes()
    [unchanged] = erasures.read_latest(1)
    assert unchanged.state == "closed", "it is not due before a day has passed"
    mysql.write("UPDATE erasure SET next_pass_at = UTC_TIMESTAMP(6)")
    for _ in range(3):
        erase.run_passes()
        plaza.queues.drain()
        mysql.write("UPDATE erasure SET next_pass_at = UTC_TIMESTAMP(6) WHERE closed_at IS NULL")
    require_erased(plaza, account, audit)
    [closed_again] = erasures.read_latest(1)
    assert closed_again.state == "closed"


def test_a_closed_erasure_stays_closed_and_is_looked_at_once_a_day(
    plaza: World, account: Account
) -> None:
    """Given what an erasure leaves: deleted texts and reactions that were taken back."""
    erase_now(account.id)
    run_until_erased(plaza, account.id)
    let_pass_be_due(account.id, age_s=KEPT_OPEN_S + 1)
    erase.run_passes()
    mysql.write("UPDATE erasure SET next_pass_at = UTC_TIMESTAMP(6)")
    assert erase.run_passes() == 0, "it was opened again"
    assert mysql.fetch_all(
        "SELECT closed_at IS NULL, TIMESTAMPDIFF(HOUR, UTC_TIMESTAMP(6), next_pass_at) FROM erasure"
    ) == [(0, 23)]
    for table, column in (("content", "author_id"), ("reaction", "actor_id")):
        left = f"SELECT COUNT(*) > 0 FROM {table} WHERE {column} = %s"
        assert mysql.fetch_all(left, (account.id,)) == [(1,)], table


def test_after_an_erasure_the_export_has_only_what_is_listed_with_a_reason(
    plaza: World, account: Account
) -> None:
    """Given a row in each section: a new one needs a row here, and an entry in the list."""
    mysql.write("INSERT INTO celebrity (user_id) VALUES (%s)", (account.id,))
    mysql.write(
        "INSERT INTO external_target (type, id, external_id, owner_id)"
        " VALUES ('article', 7, 'x', %s)",
        (account.id,),
    )
    mysql.write(
        "INSERT INTO shop_member (shop_id, user_id, role, appointed_by, created_at)"
        " VALUES (5, %s, 'owner', 1, NOW(6))",
        (account.id,),
    )
    mysql.write(
        "INSERT INTO archived_order (buyer_id, order_id, voucher_id, digest)"
        " VALUES (%s, 1, 1, 'x')",
        (account.id,),
    )
    account.take_back()
    plaza.queues.drain()
    mysql.write("INSERT IGNORE INTO unread_counter (user_id) VALUES (%s)", (account.id,))
    mysql.write(
        "INSERT IGNORE INTO notification_group (user_id, kind, subject_type, subject_id, fresh,"
        " read_sequence,"
        " changed, shown_sequence, fresh_after, is_open, changed_at, changed_on)"
        " VALUES (%s, 'like', 'post', %s, 0, 0, 0, 0, 0, 0, NOW(), CURDATE())",
        (account.id, account.post.id),
    )
    mysql.write(
        "INSERT INTO push_subscription (user_id, endpoint_hash, endpoint, public_key, auth_secret)"
        " VALUES (%s, REPEAT('h', 32), 'https://fcm.googleapis.com/x', 'B', 'A')",
        (account.id,),
    )
    mysql.write(
        "INSERT INTO passkey (credential_sha256, user_id, credential_id, public_key, sign_count,"
        " may_be_synced, name) VALUES (REPEAT('h', 32), %s, 'c', 'k', 0, 0, 'Laptop')",
        (account.id,),
    )
    mysql.write(
        "INSERT INTO passkey_code VALUES (%s, REPEAT('h', 32), UTC_TIMESTAMP(6))", (account.id,)
    )
    mysql.write(
        "INSERT INTO closed_user (user_id, nickname, role, time_zone, version, created_at,"
        " closed_at, reopened_at) VALUES (%s, 'ann', 'user', 'UTC', 1, NOW(6), NOW(6), NOW(6))",
        (account.id,),
    )
    mysql.write("INSERT INTO notification_preference VALUES (%s, 'like', 'push', 0)", (account.id,))
    assert {row.section for row in export_all(account.id)} == {section.name for section in SECTIONS}
    erase_now(account.id)
    run_until_erased(plaza, account.id)
    left = export_all(account.id)
    kept = {s.name for s in SECTIONS if (s.table, s.user) not in find_users(ERASED)}
    assert {row.section for row in left} == kept - {"followers"} - {f"{kind}s" for kind in KINDS}
    assert not [row for row in left if row.fields.get("body") or row.fields.get("images")]


def test_a_new_user_of_the_phone_has_nothing_of_the_erased_one(
    plaza: World, account: Account
) -> None:
    erase_now(account.id)
    run_until_erased(plaza, account.id)
    new = sign_up.sign_up(PHONE).id
    assert queries.list_reacted(LIKE, new, None, 10) == ([], None)
    assert profiles.read_own_profile(new).card.nickname != "erasable"
    assert react.react(LIKE, account.of_friend, new, True).total == 1


def test_what_another_device_does_meanwhile_is_erased_by_a_later_pass(
    plaza: World, account: Account, audit: Audit
) -> None:
    """Given requests in each gap, and an event that SQS delivers after the user is erased."""
    erase_now(account.id)
    account.use_other_device()
    let_pass_be_due(account.id)
    erase.run_passes()
    account.use_other_device()
    plaza.queues.drain()
    run_until_erased(plaza, account.id)
    account.use_other_device()
    late = {name: list(bodies) for name, bodies in plaza.queues.messages.items()}
    for name in late:
        plaza.queues.messages[name] = []
    let_pass_be_due(account.id)
    erase.run_passes()
    plaza.queues.drain()
    for name, bodies in late.items():
        plaza.queues.messages[name] += bodies * 2
    plaza.queues.drain()
    for _ in range(2):
        let_pass_be_due(account.id)
        erase.run_passes()
        plaza.queues.drain()
    require_erased(plaza, account, audit)


STEPS: list[tuple[Any, str]] = [
    (session_end, "erase"),
    (users_erasure, "erase"),
    (idempotency_erasure, "erase"),
    (content_erasure, "erase"),
    (reactions_erasure, "erase"),
    (reactions_erasure, "hide"),
    (reactions_erasure, "_take_back"),
    (commands, "delete"),
    (checkins_erasure, "erase"),
    (feed_erasure, "erase"),
    (erasures, "end_pass"),
]


def erase_twice(plaza: World, user_id: int) -> None:
    erase_now(user_id)
    for _ in range(2):
        let_pass_be_due(user_id)
        erase.run_passes()
        plaza.queues.drain()


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("module", "name"), STEPS, ids=lambda part: str(part).rpartition(".")[2])
def test_a_process_that_ends_between_two_steps_is_continued_by_the_next(
    plaza: World,
    account: Account,
    audit: Audit,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    name: str,
    after: bool,
) -> None:
    step = getattr(module, name)

    def killed(*args: Any, **options: Any) -> None:
        if after:
            step(*args, **options)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(module, name, killed)
        with pytest.raises(Killed):
            erase_twice(plaza, account.id)
    if not erasures.read_latest(1):
        erase_now(account.id)  # the user repeats a request without an answer
    account.use_other_device()
    run_until_erased(plaza, account.id)
    require_erased(plaza, account, audit)


def test_a_pass_that_is_cut_off_is_due_again(account: Account, plaza: World, audit: Audit) -> None:
    erase_now(account.id)
    [erasure] = erasures.find_due(10)
    assert erase._run_pass(erasure, Deadline.in_s(0)) is False
    assert [item.user_id for item in erasures.find_due(10)] == [account.id]
    run_until_erased(plaza, account.id)
    require_erased(plaza, account, audit)


@pytest.mark.parametrize("store", ["redis", "queues"])
def test_an_erasure_that_meets_an_outage_ends_after_it(
    plaza: World, account: Account, audit: Audit, redis_away: Away, store: str
) -> None:
    if store == "redis":
        with redis_away():
            erase_now(account.id)
    else:
        plaza.queues.away = True
        erase_now(account.id)
        erase.run_passes()
        plaza.queues.away = False
        handler("schedule/sweep_outbox")({}, None)
        plaza.queues.drain()
    run_until_erased(plaza, account.id)
    require_erased(plaza, account, audit)


def test_an_erasure_is_erased_after_two_minutes_and_closed_after_fifteen_days(
    account: Account, plaza: World
) -> None:
    assert erase_now(account.id).state == "erasing"
    erase.run_passes()
    plaza.queues.drain()
    mysql.write("UPDATE erasure SET next_pass_at = requested_at")
    erase.run_passes()
    [early] = erasures.read_latest(1)
    assert early.state == "erasing", "requests of other devices may be on their way"
    assert erasures.measure()[0] == 1
    run_until_erased(plaza, account.id)
    [erased] = erasures.read_latest(1)
    assert (erased.state, erasures.measure()[0]) == ("erased", 0)
    let_pass_be_due(account.id, KEPT_OPEN_S + 1)
    erase.run_passes()
    [closed] = erasures.read_latest(1)
    assert closed.state == "closed"
    assert erasures.find_due(10) == []


def test_a_failed_erasure_does_not_stop_the_others(
    plaza: World, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    erase_now(1)
    erase_now(account.id)
    delete: Callable[[int, Deadline], int] = users_erasure.erase

    def fail(user_id: int, deadline: Deadline) -> int:
        if user_id == 1:
            raise ValueError("broken row")
        return delete(user_id, deadline)

    monkeypatch.setattr(users_erasure, "erase", fail)
    with pytest.raises(ValueError, match="broken"):
        erase.run_passes()
    due = [item.user_id for item in erasures.find_due(10)]
    assert due == [1]


def test_a_context_that_fails_keeps_no_other_one_from_erasing(
    account: Account, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> int:
        raise ValueError("a bug")

    erase_now(account.id)
    plaza.queues.drain()
    mysql.write("INSERT INTO user (id, nickname) VALUES (%s, 'back')", (account.id,))
    with monkeypatch.context() as patch:
        patch.setattr(content_erasure, "erase", fail)
        let_pass_be_due(account.id)
        with pytest.raises(ValueError, match="a bug"):
            erase.run_passes()
    plaza.queues.drain()
    assert mysql.fetch_all("SELECT 1 FROM user WHERE id = %s", (account.id,)) == []
    assert mysql.fetch_all("SELECT 1 FROM content WHERE author_id = %s", (account.id,)) != []
    [erasure] = erasures.read_latest(1)
    assert erasure.erased_at is None
    run_until_erased(plaza, account.id)


def test_reactions_to_a_type_that_was_left_out_stop_no_erasure(plaza: World) -> None:
    add_users(7)
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " VALUES ('song', 77, 'like', 7, 1, 1795169730000000)"
    )
    erase_now(7)
    run_until_erased(plaza, 7)
    let_pass_be_due(7, KEPT_OPEN_S + 1)
    erase.run_passes()
    [closed] = erasures.read_latest(1)
    assert closed.state == "closed"
    let_pass_be_due(7, KEPT_OPEN_S)
    erase.run_passes()
    [unchanged] = erasures.read_latest(1)
    assert unchanged.closed_at == closed.closed_at, "it is not opened again each day"


@pytest.mark.parametrize("is_imported", [False, True], ids=["phone", "imported identity"])
def test_a_login_that_is_added_during_a_deletion_is_of_no_missing_user(
    plaza: World, mysql_url: str, monkeypatch: pytest.MonkeyPatch, is_imported: bool
) -> None:
    """Given two connections: statements of one that wait for the other end after a second."""
    add_users(70)
    with closing(connect_mysql(mysql_url)) as other, other.cursor() as cursor:

        def add_login() -> None:
            cursor.execute("SET SESSION innodb_lock_wait_timeout = 1")
            other.begin()
            with suppress(OperationalError):
                if is_imported:
                    user = mysql_imports.ImportedUser(
                        70, "Ada", 1, Identity("https://id.example", "a")
                    )
                    mysql_imports.insert(cursor, [user])
                elif cursor.execute("SELECT id FROM user WHERE id = 70 FOR UPDATE"):
                    cursor.execute(PHONES.insert, ("+8613800138000", 70))
            other.commit()

        run_after_statement(monkeypatch, add_login, 2)  # the one of the user
        users_erasure.erase(70, Deadline.in_s(60))
    for table in ("user_phone", "user_identity"):
        assert mysql.fetch_all(f"SELECT user_id FROM {table}") == []
