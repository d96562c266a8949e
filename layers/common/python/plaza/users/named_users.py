"""Users as servers name them: by an id of Plaza, or by ``<issuer>|<subject>``."""

from __future__ import annotations

from collections.abc import Collection

from plaza.infra.derived.ids import new_id
from plaza.infra.http.requests import MAX_ID, is_id
from plaza.infra.runtime import clock, switch_state
from plaza.switches import Switch
from plaza.users import mysql_logins, mysql_users
from plaza.users.identities import Identity, parse_identity
from plaza.users.import_users import import_users
from plaza.users.mysql_imports import ImportedUser
from plaza.users.nicknames import make_nickname


def find_or_create_all(names: Collection[str]) -> dict[str, int]:
    """Return name -> id of the users with these names. Identities without a user get one; an id of
    no user has no entry. The identity of a closed account is its user's, and stays closed.

    Two statements; for new users a transaction of five, a round trip and another statement. Raises
    ValueError for a name of neither form; MysqlDown; for new users RedisDown, SwitchedOff.
    """
    ids = {name: int(name) for name in names if is_id(name)}
    identities = {name: parse_identity(name) for name in names if name not in ids}
    existing = mysql_users.read_cards([i for i in ids.values() if i <= MAX_ID]) if ids else {}
    users = {name: user_id for name, user_id in ids.items() if user_id in existing}
    of_identity = mysql_logins.find_identities({*identities.values()})
    if missing := {*identities.values()} - of_identity.keys():
        switch_state.require(Switch.SIGN_UPS)
        now_us = clock.now_us()
        import_users([_make_user(identity, now_us) for identity in sorted(missing)])
        of_identity |= mysql_logins.find_identities(missing)  # maybe of another caller's user
    return users | {name: of_identity[identity] for name, identity in identities.items()}


def _make_user(identity: Identity, now_us: int) -> ImportedUser:
    return ImportedUser(new_id(), make_nickname(), now_us, identity)
