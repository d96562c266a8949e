"""Closing an account: hidden at once, opened again by a sign-in for seven days, erased after
them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plaza.core.reactions import LIKE, react
from plaza.core.reactions import queries as reaction_queries
from plaza.core.reactions.model import TargetMissing
from plaza.core.targets.model import TargetHidden
from plaza.infra.mysql import mysql
from plaza.infra.runtime.errors import BadInput
from plaza.operate.accounts import erase, export
from plaza.people.auth import (
    new_session,
    request_erasure,
    server_caller,
    session_end,
    session_lookup,
)
from plaza.people.auth.request_erasure import close_account, erase_now
from plaza.people.follows import follow_user
from plaza.people.users import (
    closed_users,
    erasures,
    mysql_closed,
    profiles,
    sign_up,
)
from plaza.people.users import erasure as users_erasure
from plaza.people.users.erasures import RETURN_S, SETTLE_S
from plaza.people.users.model import UserMissing
from plaza.social.content import commands, queries
from plaza.social.content import mysql_store as texts
from plaza.social.content.model import Text
from tests.integration.conftest import Away
from tests.support.accounts import FRIEND, PHONE, STRANGER, Account
from tests.support.failures import Killed
from tests.support.plaza import World, forget
from tests.support.sign_in_client import send

IDENTITY = ("https://id.example.com", "ann")


@pytest.fixture
def account(plaza: World) -> Account:
    made = Account()
    plaza.queues.drain()
    return made


def let_time_pass(user_id: int, seconds: int) -> None:
    """Move what is stored about a closed account so far into the past."""
    for table, columns in {
        "erasure": ("requested_at", "next_pass_at", "account_closed_at"),
        "closed_user": ("closed_at",),
        "content": ("hidden_at",),
    }.items():
        moved = ", ".join(f"{column} = {column} - INTERVAL {seconds} SECOND" for column in columns)
        name = "author_id" if table == "content" else "user_id"
        mysql.write(f"UPDATE {table} SET {moved} WHERE {name} = %s", (user_id,))


def run_schedule(plaza: World, user_id: int) -> None:
    """Let the schedule run until it has settled a closed or reopened account."""
    for _ in range(2):
        erase.run_passes()
        plaza.queues.drain()
        forget()
        if not mysql_closed.find_unsettled(10):
            return
        let_time_pass(user_id, SETTLE_S)
    assert mysql_closed.find_unsettled(10) == []


def read_texts(account: Account) -> list[Text]:
    """Return all texts of the user that are not deleted, by type."""
    live = texts.read(texts.find_live_of_author(account.id, 100))
    return sorted((stored.text for stored in live.values()), key=lambda text: text.type)


def read_shown(account: Account, reader_id: int) -> int:
    return sum(text.is_visible_to(reader_id) for text in read_texts(account))


def test_a_closed_account_is_gone_at_once_for_others(account: Account) -> None:
    erasure = close_account(account.id)
    assert erasure.state == "account-closed"
    assert erasure.erases_at is not None
    assert (erasure.erases_at - erasure.requested_at).total_seconds() == RETURN_S
    assert session_lookup.find_session(account.token) is None
    with pytest.raises((UserMissing, TargetMissing)):
        profiles.read_profile(account.id, FRIEND)
    with pytest.raises(TargetMissing):
        follow_user.follow(account.id, FRIEND)
    assert not sign_up.exists(account.id)


def test_texts_of_a_closed_account_are_hidden_by_the_next_run(
    plaza: World, account: Account
) -> None:
    close_account(account.id)
    erase.run_passes()
    forget()
    assert [text.hidden for text in read_texts(account)] == [True, True, True]
    assert read_shown(account, FRIEND) == 0
    with pytest.raises(TargetHidden):
        queries.read_one(account.post, FRIEND)


def test_a_text_that_was_on_its_way_is_hidden_by_a_later_run(
    plaza: World, account: Account
) -> None:
    close_account(account.id)
    erase.run_passes()
    account.use_other_device()
    run_schedule(plaza, account.id)
    assert read_shown(account, FRIEND) == 0


@pytest.mark.parametrize("by", ["phone", "identity"])
def test_a_sign_in_opens_a_closed_account_as_it_was(
    plaza: World, account: Account, by: str
) -> None:
    before = replace(profiles.read_own_profile(account.id), followers_at=None)
    rows = export.read_page(account.id, None, 1_000)
    close_account(account.id)
    run_schedule(plaza, account.id)
    user = sign_up.sign_up(PHONE) if by == "phone" else sign_up.sign_up_identity(*IDENTITY)
    assert (user.id, user.nickname, user.is_reopened) == (account.id, "erasable", True)
    assert sign_up.sign_up(PHONE).is_reopened is False
    run_schedule(plaza, account.id)
    reopened = replace(profiles.read_own_profile(account.id), followers_at=None)
    assert reopened == before, "but for the order token of the followers"
    assert sign_up.find_identity(*IDENTITY) == sign_up.sign_up(PHONE)
    assert read_shown(account, FRIEND) == 3
    assert not erasures.exists(account.id)
    assert mysql.fetch_all("SELECT 1 FROM closed_user") == []
    gone = {"sessions"}
    kept = [row.section for row in rows[0] if row.section not in gone]
    after = [row.section for row in export.read_page(account.id, None, 1_000)[0]]
    assert after == kept
    follow_user.follow(account.id, STRANGER)
    assert react.react(LIKE, account.post, STRANGER, True).total == 2
    let_time_pass(account.id, 2 * RETURN_S)
    erase.run_passes()
    assert profiles.read_own_profile(account.id).card == before.card, "it is erased no more"


def test_a_text_that_a_moderator_hid_stays_hidden_when_the_account_opens(
    plaza: World, account: Account
) -> None:
    commands.hide(account.post, STRANGER)
    let_time_pass(account.id, 60)
    close_account(account.id)
    run_schedule(plaza, account.id)
    [comment, *_] = read_texts(account)
    commands.hide(comment.target, STRANGER)
    sign_up.sign_up(PHONE)
    run_schedule(plaza, account.id)
    shown = [text.type for text in read_texts(account) if not text.hidden]
    assert shown == ["review"]


def test_an_account_that_closes_again_before_its_texts_are_shown_shows_them_when_it_opens(
    plaza: World, account: Account
) -> None:
    close_account(account.id)
    run_schedule(plaza, account.id)
    sign_up.sign_up(PHONE)
    close_account(account.id)
    run_schedule(plaza, account.id)
    assert sign_up.sign_up(PHONE).id == account.id
    run_schedule(plaza, account.id)
    assert read_shown(account, FRIEND) == 3


def test_an_account_is_erased_after_seven_days(plaza: World, account: Account) -> None:
    close_account(account.id)
    run_schedule(plaza, account.id)
    let_time_pass(account.id, RETURN_S - SETTLE_S)
    assert erasures.find_due(10) == []
    assert erasures.measure() == (0, 0), "no alarm counts the days in which it may open"
    let_time_pass(account.id, 2 * SETTLE_S)
    for _ in range(2):
        erase.run_passes()
        plaza.queues.drain()
        let_time_pass(account.id, SETTLE_S)
    [erasure] = erasures.read_latest(1)
    assert erasure.state == "erased"
    assert read_texts(account) == []
    assert mysql.fetch_all("SELECT 1 FROM closed_user") == []
    assert sign_up.sign_up(PHONE).id != account.id


@pytest.mark.parametrize(
    ("left_s", "opens"), [(SETTLE_S + 5, True), (SETTLE_S - 5, False), (-5, False)]
)
def test_no_account_opens_within_two_minutes_of_its_erasure(
    account: Account, left_s: int, opens: bool
) -> None:
    close_account(account.id)
    let_time_pass(account.id, RETURN_S + SETTLE_S - left_s)
    assert (sign_up.sign_up(PHONE).id == account.id) is opens
    assert erasures.exists(account.id) is not opens


def test_an_erasure_at_once_ends_the_seven_days(account: Account) -> None:
    close_account(account.id)
    assert erase_now(account.id).state == "erasing"
    assert [erasure.user_id for erasure in erasures.find_due(10)] == [account.id]
    assert sign_up.sign_up(PHONE).id != account.id


def test_a_repeated_request_keeps_the_day_of_the_erasure(account: Account) -> None:
    first = close_account(account.id)
    let_time_pass(account.id, 3_600)
    again = close_account(account.id)
    assert (first.requested_at - again.requested_at).total_seconds() == 3_600
    assert erasures.find_due(10) == []


def test_a_phone_that_another_user_linked_meanwhile_stays_theirs(account: Account) -> None:
    close_account(account.id)
    sign_up.link_phone(STRANGER, PHONE)
    assert sign_up.sign_up(PHONE).id == STRANGER
    assert sign_up.sign_up_identity(*IDENTITY).id == account.id
    assert sign_up.sign_up(PHONE).id == STRANGER


def test_the_other_login_of_an_opened_account_finds_it(account: Account) -> None:
    close_account(account.id)
    assert {sign_up.sign_up(PHONE).id, sign_up.sign_up_identity(*IDENTITY).id} == {account.id}
    assert mysql.fetch_all("SELECT COUNT(*) FROM user_phone WHERE user_id = %s", (account.id,)) == [
        (1,)
    ]


STEPS: list[tuple[Any, str]] = [
    (users_erasure, "hide"),
    (session_end, "end_all_of_user"),
    (request_erasure, "hide_account"),
    (texts, "set_hidden"),
    (closed_users, "settle"),
]


@pytest.mark.parametrize(("module", "name"), STEPS, ids=lambda part: str(part).rpartition(".")[2])
def test_a_process_that_ends_while_it_closes_an_account_is_continued(
    plaza: World, account: Account, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    def killed(*args: Any, **options: Any) -> None:
        raise Killed

    def close_and_hide() -> None:
        close_account(account.id)
        let_time_pass(account.id, SETTLE_S)
        erase.run_passes()
        erase.run_passes()

    with monkeypatch.context() as patch:
        patch.setattr(module, name, killed)
        with pytest.raises(Killed):
            close_and_hide()
    run_schedule(plaza, account.id)
    assert read_shown(account, FRIEND) == 0
    assert session_lookup.find_session(account.token) is None


def test_an_account_closes_while_redis_is_away(
    plaza: World, account: Account, redis_away: Away
) -> None:
    with redis_away():
        assert close_account(account.id).state == "account-closed"
    run_schedule(plaza, account.id)
    assert read_shown(account, FRIEND) == 0
    with pytest.raises((UserMissing, TargetMissing)):
        profiles.read_profile(account.id, FRIEND)


def test_pushes_to_a_closed_account_end(plaza: World, account: Account) -> None:
    mysql.write(
        "INSERT INTO push_subscription (user_id, endpoint_hash, endpoint, public_key, auth_secret)"
        " VALUES (%s, REPEAT('h', 32), 'https://fcm.googleapis.com/x', 'B', 'A')",
        (account.id,),
    )
    close_account(account.id)
    erase.run_passes()
    assert mysql.fetch_all("SELECT 1 FROM push_subscription") == []


def test_likes_of_a_closed_account_stay_counted(plaza: World, account: Account) -> None:
    close_account(account.id)
    run_schedule(plaza, account.id)
    [likes] = reaction_queries.read_counts([(LIKE, account.of_friend)], FRIEND)[0]
    assert likes.total == 1


def test_a_server_that_acts_for_the_identity_opens_the_account(account: Account) -> None:
    """Given an app with identities of its own, whose users sign in at the app."""
    close_account(account.id)
    acts_for = "|".join(IDENTITY)
    assert server_caller._find_user(acts_for, may_create=False) is None
    with pytest.raises(BadInput):
        server_caller._find_user(str(account.id), may_create=True)
    assert server_caller._find_user(acts_for, may_create=True) == account.id


def test_a_closed_user_has_every_column_of_a_user(plaza: World) -> None:
    def columns(table: str) -> set[str]:
        rows = mysql.fetch_all(
            "SELECT column_name FROM information_schema.columns"
            " WHERE table_schema = DATABASE() AND table_name = %s",
            (table,),
        )
        return {name for (name,) in rows}

    own = {"user_id", "phone", "issuer", "subject", "closed_at", "reopened_at", "settled_at"}
    assert columns("user") - {"id"} == columns("closed_user") - own


def test_closing_the_account_needs_a_fresh_sign_in(account: Account) -> None:
    for age_s, status in ((600, 403), (0, 202)):
        token = new_session.open_session(account.id)
        mysql.write(
            "UPDATE session SET signed_in_at = UTC_TIMESTAMP(6) - INTERVAL %s SECOND", (age_s,)
        )
        assert send("GET", "/users/me", token=token, folder="api/users").status == 200
        reply = send("DELETE", "/users/me", token=token, folder="api/users")  # of a cached session
        assert reply.status == status
    assert reply.body["state"] == "account-closed"
