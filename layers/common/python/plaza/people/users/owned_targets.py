"""Targets of the app, whose owners servers name by an id of Plaza, or by ``<issuer>|<subject>``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from plaza.core.switches import Switch
from plaza.core.targets import external_targets
from plaza.core.targets.external_targets import Created, ExternalTarget
from plaza.infra.derived.ids import new_id
from plaza.infra.http.requests import MAX_ID, is_id
from plaza.infra.runtime import clock, switch_state
from plaza.people.users import mysql_logins, mysql_users
from plaza.people.users.identities import Identity, parse_identity
from plaza.people.users.import_users import import_users
from plaza.people.users.mysql_imports import ImportedUser
from plaza.people.users.nicknames import make_nickname


class OwnedTarget(NamedTuple):
    """A target of the app as a server declares it; ``owner``: None without one."""

    type: str
    external_id: str
    owner: str | None
    url: str | None


def create_all(declared: Sequence[OwnedTarget]) -> list[Created]:
    """Create the ``declared`` targets whose owners exist, or can; return what became of each. Safe
    to repeat.

    Costs what ``external_targets.create_all`` does, and two statements for the owners; for new
    users a transaction of five, a round trip and another statement. Raises ValueError for an owner
    of neither form; MysqlDown, RedisDown; for new users SwitchedOff.
    """
    owners = _find_or_create_all({of.owner for of in declared if of.owner is not None})
    has_owner = [of.owner is None or of.owner in owners for of in declared]
    created = iter(
        external_targets.create_all(
            [
                ExternalTarget(of.type, of.external_id, owners.get(of.owner or ""), of.url)
                for of, is_known in zip(declared, has_owner, strict=True)
                if is_known
            ]
        )
    )
    return [next(created) if is_known else Created.UNKNOWN_OWNER for is_known in has_owner]


def _find_or_create_all(names: Collection[str]) -> dict[str, int]:
    """Return name -> id of the users with these names. Identities without a user get one; an id of
    no user has no entry. The identity of a closed account is its user's, and stays closed."""
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
