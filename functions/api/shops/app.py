"""Shops and shop types. Admins create, replace and delete them."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.utilities.typing import LambdaContext
from pydantic import AfterValidator

from plaza.auth.caller_identity import identify
from plaza.flash_sales.withdraw_vouchers import withdraw_vouchers
from plaza.infra.http.cursors import pack_signed_cursor, unpack_signed_cursor
from plaza.infra.http.resolver import (
    ADMIN,
    OPTIONAL,
    Id,
    PlazaResolver,
    StoppedBy,
    find_caller,
    pack_cursor,
    read_id,
    unpack_cursor,
)
from plaza.infra.http.schemas import (
    Cursor,
    IdText,
    Limit,
    Page,
    describe_problems,
    describe_response,
)
from plaza.infra.http.texts import VISIBLE, check_line
from plaza.infra.runtime.observability import CORRELATION_ID, logger, metrics
from plaza.infra.runtime.switch_state import Switch
from plaza.shops import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    MAX_RADIUS_M,
    Area,
    NearPosition,
    Place,
    commands,
    lists,
    nearby,
    queries,
    shop_types,
)
from plaza.shops.model import TypeInUse
from plaza.shops.schemas import (
    NearbyShopResponse,
    ShopRequest,
    ShopResponse,
    ShopTypeRequest,
    ShopTypeResponse,
)

X = Annotated[
    float, Query(ge=-MAX_LONGITUDE, le=MAX_LONGITUDE, description="Longitude in degrees.")
]
Y = Annotated[float, Query(ge=-MAX_LATITUDE, le=MAX_LATITUDE, description="Latitude in degrees.")]
Radius = Annotated[int, Query(ge=1, le=MAX_RADIUS_M, description="Radius in metres.")]
TypeId = Annotated[
    IdText | None, Query(alias="type", description="Id of a shop type: only its shops.")
]
NamePrefix = Annotated[
    str,
    Query(
        min_length=1,
        max_length=200,
        description="Beginning of the name, of any case, without control characters.",
        json_schema_extra={"pattern": VISIBLE},
    ),
    AfterValidator(check_line),
]

app = PlazaResolver(identify)

_TAGS: dict[str, Any] = {"tags": ["shops"]}
_ANY = _TAGS | {"security": OPTIONAL}
_WRITE = _TAGS | {"security": ADMIN, "middlewares": [StoppedBy(Switch.WRITES)]}
_TYPES = _ANY | {
    "responses": describe_response(200, Page[ShopTypeResponse], "All shop types.")
    | describe_problems(401)
}
_GET_TYPE = _ANY | {
    "responses": describe_response(200, ShopTypeResponse, "The shop type.")
    | describe_problems(401, 404)
}
_CREATE_TYPE = _WRITE | {
    "responses": describe_response(201, ShopTypeResponse, "The new shop type.")
    | describe_problems(400, 401, 403)
}
_REPLACE_TYPE = _WRITE | {
    "responses": describe_response(200, ShopTypeResponse, "The shop type.")
    | describe_problems(400, 401, 403, 404)
}
_DELETE_TYPE = _WRITE | {
    "responses": {204: {"description": "Deleted."}} | describe_problems(401, 403, 404, TypeInUse)
}
_READ = _ANY | {
    "responses": describe_response(200, ShopResponse, "The shop.")
    | describe_problems(401, 404, 410)
}
_NEAR = _ANY | {
    "responses": describe_response(
        200, Page[NearbyShopResponse], "A page of shops. It may be shorter than `limit`."
    )
    | describe_problems(400, 401, 404)
}
_LIST_OF_TYPE = _ANY | {
    "responses": describe_response(200, Page[ShopResponse], "A page of shops.")
    | describe_problems(400, 401, 404)
}
_SEARCH = _ANY | {
    "responses": describe_response(200, Page[ShopResponse], "The shops. `next` is null.")
    | describe_problems(400, 401, 404)
}
_CREATE = _WRITE | {
    "responses": describe_response(201, ShopResponse, "The new shop.")
    | describe_problems(400, 401, 403)
}
_REPLACE = _WRITE | {
    "responses": describe_response(200, ShopResponse, "The shop.")
    | describe_problems(400, 401, 403, 404, 410)
}
_DELETE = _WRITE | {
    "responses": {204: {"description": "Deleted."}} | describe_problems(401, 403, 404, 410)
}


@app.get("/shop-types", **_TYPES)
def list_shop_types() -> Page[ShopTypeResponse]:
    """List shop types.

    Returns all shop types, ordered by `sort`.
    """
    find_caller(app)
    return Page(
        items=[ShopTypeResponse.of(shop_type) for shop_type in queries.read_types()], next=None
    )


@app.get("/shop-types/<type_id>", **_GET_TYPE)
def get_shop_type(type_id: Id) -> ShopTypeResponse:
    """Get a shop type.

    Returns one shop type.
    """
    find_caller(app)
    return ShopTypeResponse.of(queries.read_type(read_id(type_id, "shop type")))


@app.post("/shop-types", **_CREATE_TYPE)
def create_shop_type(request: ShopTypeRequest) -> tuple[ShopTypeResponse, int]:
    """Create a shop type.

    Each request creates one. For admins.
    """
    return ShopTypeResponse.of(shop_types.create_type(request.to_draft())), 201


@app.put("/shop-types/<type_id>", **_REPLACE_TYPE)
def replace_shop_type(type_id: Id, request: ShopTypeRequest) -> ShopTypeResponse:
    """Replace a shop type.

    Replaces all fields. Idempotent. For admins.
    """
    return ShopTypeResponse.of(
        shop_types.replace_type(read_id(type_id, "shop type"), request.to_draft())
    )


@app.delete("/shop-types/<type_id>", **_DELETE_TYPE)
def delete_shop_type(type_id: Id) -> Response[None]:
    """Delete a shop type.

    A type that shops have is not deleted. For admins.
    """
    shop_types.delete_type(read_id(type_id, "shop type"))
    return Response(204)


@app.get("/shop-types/<type_id>/shops", **_LIST_OF_TYPE)
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


@app.get("/shops/search", **_SEARCH)
def search_shops(name: NamePrefix, type_id: TypeId = None, limit: Limit = 20) -> Page[ShopResponse]:
    """Search shops by name.

    Returns the first `limit` shops, by name, whose names begin with `name`. A change may be missing
    for 3 seconds.
    """
    find_caller(app)
    shops = lists.search(name, None if type_id is None else int(type_id), limit)
    return Page(items=[ShopResponse.of(shop) for shop in shops], next=None)


@app.get("/shops/<shop_id>", **_READ)
def get_shop(shop_id: Id) -> ShopResponse:
    """Get a shop.

    Returns one shop with its address and coordinates.
    """
    is_anonymous = find_caller(app) is None
    return ShopResponse.of(queries.read(read_id(shop_id, "shop"), is_anonymous=is_anonymous))


@app.get("/shops", **_NEAR)
def list_nearby_shops(
    x: X,
    y: Y,
    radius: Radius = 5_000,
    type_id: TypeId = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[NearbyShopResponse]:
    """List the shops near a place.

    Returns up to 1,000 shops within the radius, nearest first. A cursor is valid only with the
    place, radius and type of the request that returned it.
    """
    find_caller(app)
    area = Area(Place(x, y), radius, None if type_id is None else int(type_id))
    page = nearby.find_near(area, _parse_cursor(cursor, area), limit)
    return Page(
        items=[NearbyShopResponse.at(near) for near in page.shops],
        next=pack_signed_cursor(area.to_text(), *page.last) if page.last else None,
    )


@app.post("/shops", **_CREATE)
def create_shop(request: ShopRequest) -> tuple[ShopResponse, int]:
    """Create a shop.

    Each request creates one. For admins.
    """
    return ShopResponse.of(commands.create(request.to_draft())), 201


@app.put("/shops/<shop_id>", **_REPLACE)
def replace_shop(shop_id: Id, request: ShopRequest) -> ShopResponse:
    """Replace a shop.

    Replaces all fields. Idempotent. For admins.
    """
    return ShopResponse.of(commands.replace(read_id(shop_id, "shop"), request.to_draft()))


@app.delete("/shops/<shop_id>", **_DELETE)
def delete_shop(shop_id: Id) -> Response[None]:
    """Delete a shop.

    Its vouchers can no longer be ordered. A repeat is a 410. For admins.
    """
    deleted_id = read_id(shop_id, "shop")
    commands.delete(deleted_id)
    withdraw_vouchers(deleted_id)
    return Response(204)


@logger.inject_lambda_context(correlation_id_path=CORRELATION_ID)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about shops."""
    return app.resolve(event, context)


def _parse_cursor(cursor: str | None, area: Area) -> NearPosition | None:
    if cursor is None:
        return None
    return NearPosition(*unpack_signed_cursor(cursor, area.to_text(), (int, int, int)))
