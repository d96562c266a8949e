"""Shops: their types, one of them, what is near. Admins add, change and delete both."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza.flash_sales.withdraw_vouchers import withdraw_vouchers
from plaza.infra.http import (
    BEARER,
    Cursor,
    Id,
    Limit,
    Page,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    read_id,
    require_caller_with_role,
    serve,
)
from plaza.infra.signed_cursors import pack_signed_cursor, unpack_signed_cursor
from plaza.shops import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    MAX_RADIUS_M,
    Area,
    NearPosition,
    Place,
    commands,
    nearby,
    queries,
    shop_types,
)
from plaza.shops.schemas import (
    NearShopResponse,
    ShopRequest,
    ShopResponse,
    ShopTypeRequest,
    ShopTypeResponse,
)

X = Annotated[float, Query(ge=-MAX_LONGITUDE, le=MAX_LONGITUDE, description="longitude, degrees")]
Y = Annotated[float, Query(ge=-MAX_LATITUDE, le=MAX_LATITUDE, description="latitude, degrees")]
Radius = Annotated[int, Query(ge=1, le=MAX_RADIUS_M, description="metres")]
TypeId = Annotated[
    str | None, Query(alias="type", pattern=r"^[1-9][0-9]{0,18}$", description="of this type only")
]

app = create_api()

_TAGS: dict[str, Any] = {"tags": ["shops"]}
_ANY = _TAGS | {"security": [{}, BEARER]}
_OWN = _TAGS | {"security": [BEARER]}
_TYPES = _ANY | {
    "responses": describe_response(200, Page[ShopTypeResponse], "all of them")
    | describe_problems(401)
}
_CREATE_TYPE = _OWN | {
    "responses": describe_response(201, ShopTypeResponse, "made") | describe_problems(400, 401, 403)
}
_REPLACE_TYPE = _OWN | {
    "responses": describe_response(200, ShopTypeResponse, "changed")
    | describe_problems(400, 401, 403, 404)
}
_DELETE_TYPE = _OWN | {
    "responses": {204: {"description": "deleted"}} | describe_problems(401, 403, 404, 409)
}
_READ = _ANY | {
    "responses": describe_response(200, ShopResponse, "the shop") | describe_problems(401, 404, 410)
}
_NEAR = _ANY | {
    "responses": describe_response(
        200, Page[NearShopResponse], "a page, nearest first; it may be shorter"
    )
    | describe_problems(400, 401, 404)
}
_CREATE = _OWN | {
    "responses": describe_response(201, ShopResponse, "made") | describe_problems(400, 401, 403)
}
_REPLACE = _OWN | {
    "responses": describe_response(200, ShopResponse, "changed")
    | describe_problems(400, 401, 403, 404, 410)
}
_DELETE = _OWN | {
    "responses": {204: {"description": "deleted"}} | describe_problems(401, 403, 404, 410)
}


@app.get("/shop-types", **_TYPES)
def list_types() -> Page[ShopTypeResponse]:
    """The types of shops, in the order in which they are shown."""
    find_caller(app)
    return Page(items=[ShopTypeResponse.of(one) for one in queries.read_types()], next=None)


@app.post("/shop-types", **_CREATE_TYPE)
def create_type(request: ShopTypeRequest) -> tuple[ShopTypeResponse, int]:
    """Add a type of shops. For admins."""
    require_caller_with_role(app, "admin")
    return ShopTypeResponse.of(shop_types.create_type(request.to_draft())), 201


@app.put("/shop-types/<type_id>", **_REPLACE_TYPE)
def replace_type(type_id: Id, request: ShopTypeRequest) -> ShopTypeResponse:
    """Replace a type of shops. For admins."""
    require_caller_with_role(app, "admin")
    return ShopTypeResponse.of(
        shop_types.replace_type(read_id(type_id, "shop type"), request.to_draft())
    )


@app.delete("/shop-types/<type_id>", **_DELETE_TYPE)
def delete_type(type_id: Id) -> Response[None]:
    """Delete a type that no shop has. For admins."""
    require_caller_with_role(app, "admin")
    shop_types.delete_type(read_id(type_id, "shop type"))
    return Response(204)


@app.get("/shops/<shop_id>", **_READ)
def read_shop(shop_id: Id) -> ShopResponse:
    """A shop."""
    find_caller(app)
    return ShopResponse.of(queries.read(read_id(shop_id, "shop")))


@app.get("/shops", **_NEAR)
def find_near(
    x: X,
    y: Y,
    radius: Radius = 5_000,
    type_id: TypeId = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[NearShopResponse]:
    """The shops around a place, nearest first; the 1,000 nearest, if there are more.

    A cursor is good for the place, radius and type that it was given for."""
    find_caller(app)
    area = Area(Place(x, y), radius, None if type_id is None else int(type_id))
    page = nearby.find_near(area, _parse_cursor(cursor, area), limit)
    return Page(
        items=[NearShopResponse.at(near) for near in page.shops],
        next=pack_signed_cursor(area.to_text(), *page.last) if page.last else None,
    )


@app.post("/shops", **_CREATE)
def create_shop(request: ShopRequest) -> tuple[ShopResponse, int]:
    """Add a shop. For admins."""
    require_caller_with_role(app, "admin")
    return ShopResponse.of(commands.create(request.to_draft())), 201


@app.put("/shops/<shop_id>", **_REPLACE)
def replace_shop(shop_id: Id, request: ShopRequest) -> ShopResponse:
    """Say everything about a shop anew. For admins."""
    require_caller_with_role(app, "admin")
    return ShopResponse.of(commands.replace(read_id(shop_id, "shop"), request.to_draft()))


@app.delete("/shops/<shop_id>", **_DELETE)
def delete_shop(shop_id: Id) -> Response[None]:
    """Delete a shop. For admins."""
    require_caller_with_role(app, "admin")
    deleted_id = read_id(shop_id, "shop")
    commands.delete(deleted_id)
    withdraw_vouchers(deleted_id)
    return Response(204)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about shops."""
    return serve(app, event, context)


def _parse_cursor(cursor: str | None, area: Area) -> NearPosition | None:
    if cursor is None:
        return None
    return NearPosition(*unpack_signed_cursor(cursor, area.to_text(), (int, int, int)))
