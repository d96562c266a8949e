"""Shops, shop types and members of shops. Sales makes and deletes shops, owners replace theirs."""

from __future__ import annotations

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza.commerce.flash_sales.withdraw_vouchers import withdraw_vouchers
from plaza.commerce.shops import (
    Area,
    NearCursor,
    Place,
    access,
    commands,
    lists,
    members,
    nearby,
    queries,
    shop_types,
)
from plaza.commerce.shops.members import Appointer
from plaza.commerce.shops.model import LastOwner, TooManyMembers, TypeInUse
from plaza.commerce.shops.schemas import (
    MemberRequest,
    MemberResponse,
    NamePrefix,
    NearbyShopResponse,
    OwnShopResponse,
    Radius,
    ShopDetails,
    ShopRequest,
    ShopResponse,
    ShopTypeRequest,
    ShopTypeResponse,
    TypeId,
    X,
    Y,
)
from plaza.infra.http.cursors import pack_cursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id, read_tags
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import (
    BEARER,
    MEMBER,
    OPTIONAL,
    OWNER,
    SALES,
    WRITES,
    Headers,
    Responses,
)
from plaza.infra.http.schemas import Cursor, IfMatch, Limit, Page
from plaza.infra.http.signed_cursors import pack_signed_cursor, unpack_signed_cursor
from plaza.infra.runtime.errors import ChangedMeanwhile, Gone, NotFound
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify

app = PlazaResolver(identify, tag="shops")


@app.get("/shop-types", security=OPTIONAL, responses=Responses("All shop types."))
def list_shop_types() -> Page[ShopTypeResponse]:
    """List shop types.

    Returns all shop types, ordered by `sort`.
    """
    find_caller(app)
    return Page(
        items=[ShopTypeResponse.of(shop_type) for shop_type in queries.read_types()], next=None
    )


@app.get(
    "/shop-types/<type_id>", security=OPTIONAL, responses=Responses("The shop type.", NotFound)
)
def get_shop_type(type_id: Id) -> ShopTypeResponse:
    """Get a shop type.

    Returns one shop type.
    """
    find_caller(app)
    return ShopTypeResponse.of(queries.read_type(read_id(type_id, "shop type")))


@app.post(
    "/shop-types",
    security=SALES,
    middlewares=WRITES,
    responses=Responses({201: "The new shop type."}),
)
def create_shop_type(request: ShopTypeRequest) -> tuple[ShopTypeResponse, int]:
    """Create a shop type.

    Each request creates one. For sales.
    """
    return ShopTypeResponse.of(shop_types.create_type(request.to_draft())), 201


@app.put(
    "/shop-types/<type_id>",
    security=SALES,
    middlewares=WRITES,
    responses=Responses("The shop type.", NotFound),
)
def replace_shop_type(type_id: Id, request: ShopTypeRequest) -> ShopTypeResponse:
    """Replace a shop type.

    Replaces all fields. Idempotent. For sales.
    """
    return ShopTypeResponse.of(
        shop_types.replace_type(read_id(type_id, "shop type"), request.to_draft())
    )


@app.delete(
    "/shop-types/<type_id>",
    security=SALES,
    middlewares=WRITES,
    responses=Responses({204: "Deleted."}, NotFound, TypeInUse),
)
def delete_shop_type(type_id: Id) -> tuple[None, int]:
    """Delete a shop type.

    A type that shops have is not deleted. For sales.
    """
    shop_types.delete_type(read_id(type_id, "shop type"))
    return None, 204


@app.get(
    "/shop-types/<type_id>/shops",
    security=OPTIONAL,
    responses=Responses("A page of shops.", NotFound),
)
def list_shops_of_type(type_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[ShopResponse]:
    """List the shops of a type.

    Newest first. A change may be missing for 3 seconds.
    """
    find_caller(app)
    before_id = unpack_cursor(cursor, (int,))[0] if cursor else None
    page, last = lists.list_of_type(read_id(type_id, "shop type"), before_id, limit)
    return Page(
        items=[ShopResponse.of(shop) for shop in page], next=pack_cursor(last) if last else None
    )


@app.get(
    "/shops/search", security=OPTIONAL, responses=Responses("The shops. `next` is null.", NotFound)
)
def search_shops(name: NamePrefix, type_id: TypeId = None, limit: Limit = 20) -> Page[ShopResponse]:
    """Search shops by name.

    Returns the first `limit` shops, by name, whose names begin with `name`. A change may be missing
    for 3 seconds.
    """
    find_caller(app)
    shops = lists.search(name, None if type_id is None else int(type_id), limit)
    return Page(items=[ShopResponse.of(shop) for shop in shops], next=None)


@app.get("/shops/<shop_id>", security=OPTIONAL, responses=Responses("The shop.", NotFound, Gone))
def get_shop(shop_id: Id) -> tuple[ShopDetails, int, Headers]:
    """Get a shop.

    Returns one shop with its address and coordinates, the number of its reviews and their average
    score. Both may lack the last 2 seconds, after a failure the last minute. With a session the
    `ETag` is one for the `If-Match` of a change.
    """
    is_anonymous = find_caller(app) is None
    shop, totals = queries.read_reviewed(read_id(shop_id, "shop"), is_anonymous=is_anonymous)
    return ShopDetails.of_reviewed(shop, totals), 200, {"etag": commands.tag_of(shop)}


@app.get(
    "/shops",
    security=OPTIONAL,
    responses=Responses("A page of shops. It may be shorter than `limit`.", NotFound),
)
def list_nearby_shops(
    x: X,
    y: Y,
    radius: Radius = 5_000,
    type_id: TypeId = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[NearbyShopResponse]:
    """List the shops near a place.

    Returns up to 1,000 shops within the radius, nearest first. The place is rounded to four
    decimals, about 11 m. A cursor is valid only with the
    place, radius and type of the request that returned it.
    """
    find_caller(app)
    area = Area(Place(x, y), radius, None if type_id is None else int(type_id))
    page = nearby.find_near(area, _parse_cursor(cursor, area), limit, app.charge)
    return Page(
        items=[NearbyShopResponse.at(near) for near in page.shops],
        next=pack_signed_cursor(area.to_text(), *page.last) if page.last else None,
    )


@app.post("/shops", security=SALES, middlewares=WRITES, responses=Responses({201: "The new shop."}))
def create_shop(request: ShopRequest) -> tuple[ShopResponse, int]:
    """Create a shop.

    Each request creates one. For sales.
    """
    return ShopResponse.of(commands.create(request.to_draft())), 201


@app.put(
    "/shops/<shop_id>",
    security=OWNER,
    middlewares=WRITES,
    responses=Responses("The shop.", NotFound, Gone, ChangedMeanwhile),
)
def replace_shop(
    shop_id: Id, request: ShopRequest, if_match: IfMatch = None
) -> tuple[ShopResponse, int, Headers]:
    """Replace a shop.

    Replaces all fields. Idempotent. For owners of the shop, sales and admins.
    """
    replaced_id = read_id(shop_id, "shop")
    access.require_owner(app, replaced_id)
    shop = commands.replace(replaced_id, request.to_draft(), read_tags(if_match))
    return ShopResponse.of(shop), 200, {"etag": commands.tag_of(shop)}


@app.delete(
    "/shops/<shop_id>",
    security=SALES,
    middlewares=WRITES,
    responses=Responses({204: "Deleted."}, NotFound, Gone),
)
def delete_shop(shop_id: Id) -> tuple[None, int]:
    """Delete a shop.

    Its vouchers can no longer be ordered. A repeat is a 410. For sales.
    """
    deleted_id = read_id(shop_id, "shop")
    commands.delete(deleted_id)
    withdraw_vouchers(deleted_id)
    return None, 204


@app.get("/users/me/shops", security=BEARER, responses=Responses("A page of shops."))
def list_my_shops(limit: Limit = 20, cursor: Cursor = None) -> Page[OwnShopResponse]:
    """List the shops that the caller acts for.

    Oldest shop first, each with the caller's role.
    """
    after_id = unpack_cursor(cursor, (int,))[0] if cursor else 0
    page, last = members.list_shops(require_caller(app), after_id, limit)
    items = [OwnShopResponse.of_member(shop, role) for shop, role in page]
    return Page(items=items, next=pack_cursor(last) if last else None)


@app.get(
    "/shops/<shop_id>/members",
    security=OWNER,
    responses=Responses("All members. `next` is null.", NotFound),
)
def list_members(shop_id: Id) -> Page[MemberResponse]:
    """List the members of a shop.

    Owners first. For owners of the shop, sales and admins.
    """
    of = read_id(shop_id, "shop")
    access.require_owner(app, of)
    return Page(items=[MemberResponse.of(m) for m in members.list_members(of)], next=None)


@app.put(
    "/shops/<shop_id>/members/<user_id>",
    security=OWNER,
    middlewares=WRITES,
    responses=Responses("The member.", NotFound, LastOwner, TooManyMembers, Gone),
)
def appoint_member(shop_id: Id, user_id: Id, request: MemberRequest) -> MemberResponse:
    """Appoint a member of a shop.

    Or changes the role of one. The last owner keeps the role until there is another one, unless
    the role sales changes it. Idempotent. For owners of the shop, sales and admins.
    """
    member = members.appoint(
        read_id(shop_id, "shop"), read_id(user_id, "user"), request.role, _appointer()
    )
    return MemberResponse.of(member)


@app.delete(
    "/shops/<shop_id>/members/<user_id>",
    security=MEMBER,
    middlewares=WRITES,
    responses=Responses({204: "The user does not act for the shop."}, NotFound, LastOwner),
)
def remove_member(shop_id: Id, user_id: Id) -> tuple[None, int]:
    """Remove a member of a shop.

    Owners remove others, and each member can leave; the last owner cannot. Idempotent. For members
    of the shop, sales and admins.
    """
    members.remove(read_id(shop_id, "shop"), read_id(user_id, "user"), _appointer())
    return None, 204


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about shops."""
    return app.resolve(event, context)


def _appointer() -> Appointer:
    return Appointer(require_caller(app), access.owns_each_shop(app))


def _parse_cursor(cursor: str | None, area: Area) -> NearCursor | None:
    if cursor is None:
        return None
    return NearCursor(*unpack_signed_cursor(cursor, area.to_text(), (int, int, int)))
