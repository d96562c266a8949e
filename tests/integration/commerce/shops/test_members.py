"""Members of shops: who may do what, in which shop."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from plaza.commerce.flash_sales import codes
from plaza.commerce.shops import erasure, members
from plaza.commerce.shops.members import Appointer
from plaza.commerce.shops.model import MAX_MEMBERS, NotMember
from plaza.infra.http import routes
from plaza.infra.mysql import mysql
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.process import clear_caches
from plaza.operate.accounts import export
from tests.integration.api.test_every_route import ROUTES
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.content_api import Reply, ask
from tests.support.plaza import World
from tests.support.shop_api import NOODLES
from tools.roles import read_matrix

OTHER_SHOP = 6
OWNER, STAFF, STRANGER, OTHER_OWNER, OTHER_STAFF, ADMIN, BUYER = 41, 42, 43, 51, 52, 1, 7
USERS = (OWNER, STAFF, STRANGER, OTHER_OWNER, OTHER_STAFF, ADMIN, BUYER)
BY_ADMIN = Appointer(ADMIN, is_admin=True)


@pytest.fixture
def shops(plaza: World) -> World:
    """Two shops with an owner and staff each; shop ``sales.SHOP`` has a voucher."""
    mysql.write("INSERT INTO shop (id, name) VALUES (5, 'Bistro'), (6, 'Bakery')")
    mysql.write("INSERT INTO shop_type (id, name) VALUES (1, 'Food')")
    values = ",".join(f"({user}, 'user {user}')" for user in USERS)
    mysql.write(f"INSERT INTO user (id, nickname) VALUES {values}")
    members.appoint(sales.SHOP, OWNER, "owner", BY_ADMIN)
    members.appoint(sales.SHOP, STAFF, "staff", BY_ADMIN)
    members.appoint(OTHER_SHOP, OTHER_OWNER, "owner", BY_ADMIN)
    members.appoint(OTHER_SHOP, OTHER_STAFF, "staff", BY_ADMIN)
    return plaza


def call(method: str, path: str, body: Any = None, *, user: int, **options: Any) -> Reply:
    """Send a request of a user to the function that has the route."""
    folder = "api/shops" if "/members" in path or method == "PUT" else "api/flash_sales"
    folder = "api/shops" if path.startswith("/users/me/shops") else folder
    role = "admin" if user == ADMIN else "user"
    return ask(method, path, body, user=user, role=role, folder=folder, **options)


# ---------------------------------------------------------------- every route, by every role


class Play(NamedTuple):
    """A request for a route about shop 5, and the lowest role that may send it."""

    route: str
    path: str
    body: Any
    lowest: str


def play_all(voucher_id: int, code: str) -> list[Play]:
    new = {
        "shop_id": "5",
        "title": "Lunch",
        "price_cents": 990,
        "stock": 5,
        "opens_at": "2090-01-01T12:00:00Z",
        "closes_at": "2090-01-02T12:00:00Z",
    }
    voucher = f"/vouchers/{voucher_id}"
    return [
        Play("PUT /shops/{shop_id}", "/shops/5", NOODLES, "owner"),
        Play("GET /shops/{shop_id}/members", "/shops/5/members", None, "owner"),
        Play(
            "PUT /shops/{shop_id}/members/{user_id}",
            f"/shops/5/members/{STRANGER}",
            {"role": "staff"},
            "owner",
        ),
        # Staff may leave, but not remove others: the path is of another user.
        Play(
            "DELETE /shops/{shop_id}/members/{user_id}",
            f"/shops/5/members/{STRANGER}",
            None,
            "owner",
        ),
        Play("GET /shops/{shop_id}/sales", "/shops/5/sales", None, "staff"),
        Play("GET /shops/{shop_id}/redemptions", "/shops/5/redemptions", None, "staff"),
        Play("POST /vouchers", "/vouchers", new, "owner"),
        Play("PATCH /vouchers/{voucher_id}", voucher, {"title": "Supper"}, "owner"),
        Play(
            "POST /vouchers/{voucher_id}/redemptions",
            f"{voucher}/redemptions",
            {"code": code},
            "staff",
        ),
        Play("DELETE /vouchers/{voucher_id}", voucher, None, "owner"),  # the last one
    ]


def offer_and_sell(plaza: World) -> tuple[int, str]:
    """Return a voucher of shop 5 and the code of an order."""
    voucher = sales.offer(stock=5)
    reply = call("POST", f"/vouchers/{voucher.id}/orders", user=BUYER)
    plaza.queues.drain()
    return voucher.id, codes.issue_code(int(reply.body["order_id"]), BUYER)


def read_shop_state() -> list[Any]:
    """Return all that the routes change."""
    return [
        mysql.fetch_all(f"SELECT {columns} FROM {table} ORDER BY 1, 2")
        for table, columns in (
            ("shop", "id, name, version"),
            ("shop_member", "shop_id, user_id, role"),
            ("voucher", "id, title, price_cents, expires_at, withdrawn_at"),
            ("voucher_order", "order_id, used_at, used_by"),
            ("redemption", "shop_id, order_id"),
        )
    ]


def test_the_plays_are_all_routes_that_check_a_shop() -> None:
    of_shops = [r for r in ROUTES if r.security in (routes.OWNER, routes.MEMBER)]
    assert {play.route for play in play_all(1, "")} == {route.name for route in of_shops}
    for access in read_matrix():
        if access.route in {route.name for route in of_shops}:
            assert {"owner", "admin"} <= access.roles
            assert not {"anonymous", "user"} & access.roles


@pytest.mark.parametrize("user", [STRANGER, OTHER_OWNER, OTHER_STAFF, BUYER])
def test_a_member_of_another_shop_is_refused_by_every_route_and_changes_nothing(
    shops: World, user: int
) -> None:
    voucher_id, code = offer_and_sell(shops)
    before = read_shop_state()
    for play in play_all(voucher_id, code):
        path = play.path.replace(f"members/{STRANGER}", f"members/{STAFF}")
        reply = call(play.route.split()[0], path, play.body, user=user)
        assert (reply.status, reply.slug) == (403, "forbidden"), play
    assert read_shop_state() == before


def test_staff_are_refused_by_the_routes_of_owners_and_change_nothing(shops: World) -> None:
    voucher_id, code = offer_and_sell(shops)
    before = read_shop_state()
    for play in play_all(voucher_id, code):
        if play.lowest == "owner":
            reply = call(play.route.split()[0], play.path, play.body, user=STAFF)
            assert (reply.status, reply.slug) == (403, "forbidden"), play
    assert read_shop_state() == before
    for play in play_all(voucher_id, code):
        if play.lowest == "staff":
            assert call(play.route.split()[0], play.path, play.body, user=STAFF).status < 300


@pytest.mark.parametrize("user", [OWNER, ADMIN])
def test_owners_and_admins_are_admitted_by_every_route(shops: World, user: int) -> None:
    voucher_id, code = offer_and_sell(shops)
    for play in play_all(voucher_id, code):
        reply = call(play.route.split()[0], play.path, play.body, user=user)
        assert reply.status < 300, (play, reply.body)


def test_without_a_session_every_route_is_refused(shops: World) -> None:
    for play in play_all(1, ""):
        folder = "api/shops" if "/shops/{shop_id}" in play.route else "api/flash_sales"
        if play.route.endswith(("sales", "redemptions")):
            folder = "api/flash_sales"
        method = play.route.split()[0]
        reply = ask(method, play.path, play.body, user=None, folder=folder)
        assert (reply.status, reply.slug) == (401, "unauthenticated"), play


def test_a_removed_member_can_do_nothing_from_then_on(shops: World) -> None:
    assert call("GET", "/shops/5/sales", user=STAFF).status == 200
    assert call("DELETE", f"/shops/5/members/{STAFF}", user=OWNER).status == 204
    assert call("GET", "/shops/5/sales", user=STAFF).status == 403


def test_while_mysql_is_unavailable_no_member_is_admitted(shops: World, mysql_away: Away) -> None:
    with mysql_away():
        assert call("GET", "/shops/5/sales", user=STAFF).status == 503


# ---------------------------------------------------------------- members


def listed(user: int = OWNER) -> list[tuple[str, str]]:
    reply = call("GET", "/shops/5/members", user=user)
    assert reply.status == 200
    return [(item["user_id"], item["role"]) for item in reply.body["items"]]


def test_an_owner_appoints_staff_and_owners_and_lists_them(shops: World) -> None:
    reply = call("PUT", f"/shops/5/members/{STRANGER}", {"role": "staff"}, user=OWNER)
    assert (reply.status, reply.body["role"]) == (200, "staff")
    again = call("PUT", f"/shops/5/members/{STRANGER}", {"role": "owner"}, user=OWNER)
    assert again.body == reply.body | {"role": "owner"}
    owners = [(str(OWNER), "owner"), (str(STRANGER), "owner")]
    assert listed() == [*owners, (str(STAFF), "staff")]
    assert call("DELETE", f"/shops/5/members/{OWNER}", user=STRANGER).status == 204
    assert listed(STRANGER) == [owners[1], (str(STAFF), "staff")]


def test_only_users_who_exist_are_appointed(shops: World) -> None:
    reply = call("PUT", "/shops/5/members/99", {"role": "staff"}, user=OWNER)
    assert (reply.status, reply.slug) == (404, "not-found")
    assert call("PUT", "/shops/99/members/7", {"role": "staff"}, user=ADMIN).status == 404
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6) WHERE id = 5")
    assert call("PUT", "/shops/5/members/7", {"role": "staff"}, user=ADMIN).status == 410


def test_the_last_owner_stays_unless_an_admin_decides(shops: World) -> None:
    for reply in (
        call("DELETE", f"/shops/5/members/{OWNER}", user=OWNER),
        call("PUT", f"/shops/5/members/{OWNER}", {"role": "staff"}, user=OWNER),
    ):
        assert (reply.status, reply.slug) == (409, "last-owner")
    assert call("DELETE", f"/shops/5/members/{OWNER}", user=ADMIN).status == 204
    assert listed(ADMIN) == [(str(STAFF), "staff")]


def test_staff_leave_a_shop_themselves_also_twice(shops: World) -> None:
    for _ in range(2):
        assert call("DELETE", f"/shops/5/members/{STAFF}", user=STAFF).status == 204
    assert listed() == [(str(OWNER), "owner")]


def test_a_shop_has_fifty_members(shops: World) -> None:
    new = range(1000, 1000 + MAX_MEMBERS - 1)
    mysql.write(f"INSERT INTO user (id, nickname) VALUES {','.join(f'({i}, 0)' for i in new)}")
    for user in new[:-1]:
        members.appoint(sales.SHOP, user, "staff", BY_ADMIN)
    reply = call("PUT", f"/shops/5/members/{new[-1]}", {"role": "staff"}, user=OWNER)
    assert (reply.status, reply.slug) == (409, "too-many-members")
    assert call("PUT", f"/shops/5/members/{new[0]}", {"role": "owner"}, user=OWNER).status == 200
    assert len(listed()) == MAX_MEMBERS


def test_of_two_owners_who_remove_each_other_one_stays(shops: World) -> None:
    members.appoint(sales.SHOP, STRANGER, "owner", BY_ADMIN)
    members.remove(sales.SHOP, OWNER, Appointer(STRANGER, is_admin=False))
    with pytest.raises(NotMember):
        members.remove(sales.SHOP, STRANGER, Appointer(OWNER, is_admin=False))
    assert [m.user_id for m in members.list_members(sales.SHOP) if m.role == "owner"] == [STRANGER]


def test_a_user_lists_the_shops_that_it_acts_for(shops: World) -> None:
    members.appoint(OTHER_SHOP, STAFF, "owner", BY_ADMIN)
    page = call("GET", "/users/me/shops", user=STAFF).body
    assert [(s["id"], s["name"], s["role"]) for s in page["items"]] == [
        ("5", "Bistro", "staff"),
        ("6", "Bakery", "owner"),
    ]
    first = call("GET", "/users/me/shops?limit=1", user=STAFF).body
    rest = call("GET", f"/users/me/shops?limit=1&cursor={first['next']}", user=STAFF).body
    assert [*first["items"], *rest["items"]] == page["items"]
    assert rest["next"] is None
    mysql.write("UPDATE shop SET deleted_at = UTC_TIMESTAMP(6) WHERE id = 5")
    assert [s["id"] for s in call("GET", "/users/me/shops", user=STAFF).body["items"]] == ["6"]
    assert call("GET", "/users/me/shops", user=BUYER).body == {"items": [], "next": None}


def test_an_erasure_and_an_export_know_memberships(shops: World) -> None:
    rows, _ = export.read_page(STAFF, None, 100)
    [row] = [row for row in rows if row.section == "shops"]
    assert (row.fields["shop_id"], row.fields["role"]) == ("5", "staff")
    assert erasure.erase(STAFF, Deadline.in_s(60)) == 1
    assert erasure.erase(STAFF, Deadline.in_s(60)) == 0
    assert listed() == [(str(OWNER), "owner")]


# ---------------------------------------------------------------- sales, redemptions, changes


def test_members_see_sales_and_redemptions_of_their_shop_only(shops: World) -> None:
    voucher_id, code = offer_and_sell(shops)
    redeemed = call("POST", f"/vouchers/{voucher_id}/redemptions", {"code": code}, user=STAFF)
    assert redeemed.status == 201
    [sale] = call("GET", "/shops/5/sales", user=STAFF).body["items"]
    assert (sale["voucher_id"], sale["sold"], sale["stored"]) == (str(voucher_id), 1, 1)
    page = call("GET", "/shops/5/redemptions", user=STAFF).body
    assert page == {
        "items": [redeemed.body | {"title": "Dinner", "used_by": str(STAFF)}],
        "next": None,
    }
    for route in ("sales", "redemptions"):
        assert call("GET", f"/shops/6/{route}", user=OTHER_STAFF).body["items"] == []
    mysql.write("DELETE FROM voucher_order")  # as the archive does
    assert call("GET", "/shops/5/redemptions", user=STAFF).body == page


def test_sales_and_redemptions_are_paged(shops: World) -> None:
    sold = [offer_and_sell(shops) for _ in range(3)]
    for voucher_id, code in sold:
        codes.redeem_code(voucher_id, code, STAFF)
    mysql.write("UPDATE redemption SET used_at = '2026-11-20 10:00:00'")  # at the same moment
    for route in ("sales", "redemptions"):
        ids: list[str] = []
        cursor = ""
        for _ in sold:
            page = call("GET", f"/shops/5/{route}?limit=1{cursor}", user=OWNER).body
            ids += [item["voucher_id"] for item in page["items"]]
            cursor = f"&cursor={page['next']}"
        assert page["next"] is None
        assert ids == [str(voucher_id) for voucher_id, _ in sold[::-1]]


def change(voucher_id: int, **fields: Any) -> Reply:
    return call("PATCH", f"/vouchers/{voucher_id}", fields, user=OWNER)


def test_an_owner_changes_title_and_later_expiry_and_lists_show_it(shops: World) -> None:
    terms = {"expires_at": "2090-01-01T00:00:00Z", "opens_at": "2026-01-01T00:00:00Z"}
    body = {"shop_id": "5", "title": "Lunch", "price_cents": 990, "stock": 5}
    voucher = call("POST", "/vouchers", body | terms | {"kind": "ordinary"}, user=OWNER).body
    call("GET", "/shops/5/vouchers", user=BUYER)  # cached
    reply = change(int(voucher["id"]), title="Supper", expires_at="2091-01-01T00:00:00Z")
    changed = voucher | {"title": "Supper", "expires_at": "2091-01-01T00:00:00.000000Z"}
    assert (reply.status, reply.body) == (200, changed)
    assert change(int(voucher["id"]), title="Supper").body == changed
    assert call("GET", "/shops/5/vouchers", user=BUYER).body["items"] == [changed]
    clear_caches()
    assert call("GET", f"/vouchers/{voucher['id']}", user=BUYER).body == changed
    assert change(int(voucher["id"]), expires_at="2090-06-01T00:00:00Z").slug == "not-changeable"
    assert call("PATCH", f"/vouchers/{voucher['id']}", {}, user=OWNER).status == 400


def test_the_price_is_fixed_once_the_sale_has_begun(shops: World) -> None:
    begun, coming = sales.offer(), sales.offer(opens_in_s=600)
    reply = change(begun.id, price_cents=1)
    assert (reply.status, reply.slug) == (409, "not-changeable")
    assert change(begun.id, price_cents=1990).status == 200, "unchanged"
    assert change(coming.id, price_cents=1).body["price_cents"] == 1


def test_an_expiry_that_has_passed_or_that_never_comes_stays(shops: World) -> None:
    endless = sales.offer()
    assert change(endless.id, expires_at="2091-01-01T00:00:00Z").slug == "not-changeable"
    mysql.write("UPDATE voucher SET expires_at = '2026-01-01'")
    assert change(endless.id, expires_at="2091-01-01T00:00:00Z").slug == "not-changeable"


def test_a_withdrawn_or_missing_voucher_is_not_changed(shops: World) -> None:
    voucher = sales.offer()
    assert call("DELETE", f"/vouchers/{voucher.id}", user=OWNER).status == 204
    assert change(voucher.id, title="Supper").status == 410
    assert change(99, title="Supper").status == 404
