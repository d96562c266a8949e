"""Sign up: create the user of a phone."""

from __future__ import annotations

from contextlib import suppress

from plaza.infra.derived.ids import new_id
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import switch_state
from plaza.infra.runtime.observability import record
from plaza.switches import Switch
from plaza.targets import markers
from plaza.users import mysql_phones
from plaza.users.model import User
from plaza.users.nicknames import make_nickname


def sign_up(phone: str) -> User:
    """Return the user of ``phone`` (E.164), created with a random nickname if there is none.

    Concurrent calls create one user. Raises MysqlDown; for a new user RedisDown, and SwitchedOff
    while new accounts are switched off.
    """
    user = mysql_phones.find(phone)
    if user is not None:
        return user
    switch_state.require(Switch.SIGN_UPS)
    user_id = new_id()
    user = mysql_phones.find_or_insert(phone, user_id, make_nickname())
    if user.id == user_id:
        record("user_created", {"users_created": 1}, user_id=user_id)
        with suppress(RedisDown):  # a marker that the user is missing expires soon
            markers.mark_created("user", user_id)
    return user
