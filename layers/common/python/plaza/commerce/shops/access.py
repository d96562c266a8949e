"""Check that the caller of a request may act for a shop.

A route with the security ``OWNER`` or ``MEMBER`` begins with one of these functions: what it
changes, and so which shop, is only known to the route. Admins, and users with the role sales, act
as an owner of each shop.
"""

from __future__ import annotations

from plaza.commerce.shops import members
from plaza.commerce.shops.model import OWNER, STAFF, Role
from plaza.infra.http.resolver import PlazaResolver, require_caller


def require_owner(app: PlazaResolver, shop_id: int) -> int:
    """Return the user id of the caller, an owner of the shop, or one of each shop. One
    statement, none for the latter. Raises Unauthenticated, NotMember, MysqlDown."""
    return _require(app, shop_id, OWNER)


def require_member(app: PlazaResolver, shop_id: int) -> int:
    """Return the user id of the caller, a member of the shop, or an owner of each shop; as
    ``require_owner``."""
    return _require(app, shop_id, STAFF, OWNER)


def owns_each_shop(app: PlazaResolver) -> bool:
    """Return whether the caller has a role that acts as an owner of each shop."""
    return app.caller.role in ("sales", "admin")


def _require(app: PlazaResolver, shop_id: int, *roles: Role) -> int:
    caller_id = require_caller(app)
    if not owns_each_shop(app):
        members.require_role(shop_id, caller_id, *roles)
    return caller_id
