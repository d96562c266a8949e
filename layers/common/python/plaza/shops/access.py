"""Check that the caller of a request may act for a shop.

A route with the security ``OWNER`` or ``MEMBER`` begins with one of these functions: what it
changes, and so which shop, is only known to the route. Admins may do all.
"""

from __future__ import annotations

from plaza.infra.http.resolver import PlazaResolver, require_caller
from plaza.shops import members
from plaza.shops.model import OWNER, STAFF, Role


def require_owner(app: PlazaResolver, shop_id: int) -> int:
    """Return the user id of the caller, an owner of the shop or an admin. One statement, none for
    an admin. Raises Unauthenticated, NotMember, MysqlDown."""
    return _require(app, shop_id, OWNER)


def require_member(app: PlazaResolver, shop_id: int) -> int:
    """Return the user id of the caller, a member of the shop or an admin; as ``require_owner``."""
    return _require(app, shop_id, STAFF, OWNER)


def is_admin(app: PlazaResolver) -> bool:
    """Return whether the caller is an admin."""
    return app.caller.role == "admin"


def _require(app: PlazaResolver, shop_id: int, *roles: Role) -> int:
    caller_id = require_caller(app)
    if not is_admin(app):
        members.require_role(shop_id, caller_id, *roles)
    return caller_id
