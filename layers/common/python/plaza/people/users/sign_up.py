"""Sign up: create the user of a phone or of an identity, or give a user a phone."""

from __future__ import annotations

from contextlib import suppress
from typing import Literal

from plaza.core.switches import Switch
from plaza.core.targets import markers
from plaza.infra.derived.ids import new_id
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.observability import record
from plaza.people.users import closed_users, mysql_logins, mysql_users
from plaza.people.users.identities import check_identity
from plaza.people.users.model import PhoneTaken, User, UserMissing
from plaza.people.users.nicknames import make_nickname


def sign_up(phone: str) -> User:
    """Return the user of ``phone`` (E.164): of a closed account, which opens again if no other user
    has it, and created with a random nickname if there is none.

    Concurrent calls create one user. Raises MysqlDown; for a new user RedisDown, and SwitchedOff
    while new accounts are switched off.
    """
    return _find_or_create("phone", phone)


def sign_up_identity(issuer: str, subject: str) -> User:
    """Return the user of a subject at an issuer, as ``sign_up``."""
    return _find_or_create("identity", *check_identity(issuer, subject))


def find_identity(issuer: str, subject: str) -> User | None:
    """Return the user of a subject at an issuer, or None. One statement. Raises MysqlDown."""
    return mysql_logins.find(mysql_logins.IDENTITIES, check_identity(issuer, subject))


def exists(user_id: int) -> bool:
    """Return whether a user exists, as MySQL has it now. One statement. Raises MysqlDown."""
    return bool(mysql_users.read_cards([user_id]))


def link_phone(user_id: int, phone: str) -> None:
    """Give a user without a phone ``phone``. Safe to repeat. One transaction. Raises PhoneTaken if
    it is another user's or the user has another one; UserMissing, MysqlDown."""
    owner_id, own_phone = mysql_logins.link(user_id, phone)
    if owner_id is None:
        raise UserMissing(f"There is no user {user_id}.")
    if owner_id != user_id:
        raise PhoneTaken("The phone number belongs to another user.")
    if own_phone != phone:
        raise PhoneTaken("The user has another phone number.")


def release_phone(user_id: int, *, operator_id: str | None = None) -> bool:
    """Take the phone of a user away, by the user or an operator; return whether there was one. The
    next sign-in with it creates another user; sessions stay. Safe to repeat. One statement. Raises
    MysqlDown."""
    was_linked = mysql_logins.delete_phone(user_id)
    if was_linked:
        record("phone_released", user_id=user_id, operator_id=operator_id)
    return was_linked


def _find_or_create(by: Literal["phone", "identity"], *login: str) -> User:
    logins = mysql_logins.PHONES if by == "phone" else mysql_logins.IDENTITIES
    user = mysql_logins.find(logins, login) or closed_users.reopen(by, *login)
    if user is not None:
        return user
    switch_state.require(Switch.SIGN_UPS)
    user_id = new_id()
    user = mysql_logins.find_or_insert(logins, login, user_id, make_nickname())
    if user.id == user_id:
        record("user_created", {"users_created": 1}, user_id=user_id)
        with suppress(RedisDown):  # a marker that the user is missing expires soon
            markers.mark_created("user", user_id)
    return user
