"""Members of shops: an admin appoints the first owner, owners appoint and remove the others.

The shop is locked: if two owners remove each other, one stays. An admin may do all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from plaza.commerce.shops import commands, mysql_members, queries
from plaza.commerce.shops.model import (
    MAX_MEMBERS,
    OWNER,
    LastOwner,
    Member,
    MemberMissing,
    NotMember,
    Role,
    Shop,
    TooManyMembers,
)
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.observability import record


class Appointer(NamedTuple):
    """The caller who appoints or removes a member."""

    user_id: int
    is_admin: bool


def require_role(shop_id: int, user_id: int, *roles: Role) -> None:
    """Raise NotMember unless a user has one of ``roles`` in a shop. One statement. Raises
    MysqlDown."""
    if mysql_members.read_role(shop_id, user_id) not in roles:
        raise NotMember(f"This request requires the role {roles[0]} in shop {shop_id}.")


def list_members(shop_id: int) -> list[Member]:
    """Return the members of a shop, owners first. Raises MysqlDown."""
    return mysql_members.read_all(shop_id)


def list_shops(
    user_id: int, after_id: int, limit: int
) -> tuple[list[tuple[Shop, Role]], int | None]:
    """Return (a page of the shops that a user acts for; the last id, None on the last page). Two
    statements at most. Raises MysqlDown."""
    roles = mysql_members.read_of_user(user_id, after_id, limit + 1)
    page = dict(roles[:limit])
    shops = queries.read_many(list(page))
    listed = [(shops[shop_id], role) for shop_id, role in page.items() if shop_id in shops]
    return listed, roles[limit - 1][0] if len(roles) > limit else None


def appoint(shop_id: int, user_id: int, role: Role, appointer: Appointer) -> Member:
    """Make a user a member, or change the role of one; return the member. Safe to repeat.

    One transaction of six statements. Raises ShopMissing, ShopDeleted, NotMember, MemberMissing,
    LastOwner, TooManyMembers, MysqlDown.
    """

    def work(cursor: Cursor) -> Member:
        commands.require_live_shop(cursor, shop_id)
        roles = mysql_members.lock(cursor, shop_id)
        _require_owner(shop_id, roles, appointer)
        if not mysql_members.has_user(cursor, user_id):
            raise MemberMissing(f"User {user_id} does not exist.")
        if user_id not in roles and len(roles) >= MAX_MEMBERS:
            raise TooManyMembers(f"A shop has at most {MAX_MEMBERS} members.")
        if role != OWNER:
            _require_another_owner(roles, user_id, appointer)
        return mysql_members.store(cursor, shop_id, user_id, role, appointer.user_id)

    member = mysql.run_in_transaction(work)
    record("member_appointed", shop_id=shop_id, user_id=user_id, role=role)
    return member


def remove(shop_id: int, user_id: int, appointer: Appointer) -> None:
    """Remove a member, or leave the shop. Safe to repeat. Also from a deleted shop. One transaction
    of three statements. Raises ShopMissing, NotMember, LastOwner, MysqlDown."""

    def work(cursor: Cursor) -> None:
        commands.lock_shop(cursor, shop_id)
        roles = mysql_members.lock(cursor, shop_id)
        if user_id != appointer.user_id:
            _require_owner(shop_id, roles, appointer)
        _require_another_owner(roles, user_id, appointer)
        mysql_members.delete(cursor, shop_id, user_id)

    mysql.run_in_transaction(work)
    record("member_removed", shop_id=shop_id, user_id=user_id)


def _require_owner(shop_id: int, roles: Mapping[int, Role], appointer: Appointer) -> None:
    if not appointer.is_admin and roles.get(appointer.user_id) != OWNER:
        raise NotMember(f"This request requires the role {OWNER} in shop {shop_id}.")


def _require_another_owner(roles: Mapping[int, Role], user_id: int, appointer: Appointer) -> None:
    others = [member for member, role in roles.items() if role == OWNER and member != user_id]
    if roles.get(user_id) == OWNER and not others and not appointer.is_admin:
        raise LastOwner
