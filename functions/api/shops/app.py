"""Shops: their types, one of them, what is near. Admins add, change and delete both."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query

from plaza.flash_sales.withdrawing import withdraw_offers
from plaza.infra.http import (
    BEARER,
    Cursor,
    Id,
    Limit,
    Page,
    answers,
    api,
    caller_if_any,
    caller_with_role,
    problems,
    read_id,
    serve,
)
from plaza.infra.signed_cursors import pack_signed_cursor, unpack_signed_cursor
from plaza.shops import (
    MOST_LATITUDE,
    MOST_LONGITUDE,
    MOST_RADIUS_M,
    Area,
    Place,
    Position,
    reading,
    shop_types,
    writing,
)
from plaza.shops import near as shops_near
from plaza.shops.contract import (
    NearShopAnswer,
    ShopAnswer,
    ShopQuestion,
    ShopTypeAnswer,
    ShopTypeQuestion,
)

X = Annotated[float, Query(ge=-MOST_LONGITUDE, le=MOST_LONGITUDE, description="longitude, degrees")]
Y = Annotated[float, Query(ge=-MOST_LATITUDE, le=MOST_LATITUDE, description="latitude, degrees")]
Radius = Annotated[int, Query(ge=1, le=MOST_RADIUS_M, description="metres")]
TypeId = Annotated[
    str | None, Query(alias="type", pattern=r"^[1-9][0-9]{0,18}$", description="of this type only")
]

app = api()

_TAGS: dict[str, Any] = {"tags": ["shops"]}
_ANY = _TAGS | {"security": [{}, BEARER]}
_OWN = _TAGS | {"security": [BEARER]}
_TYPES = _ANY | {"responses": answers(200, Page[ShopTypeAnswer], "all of them") | problems(401)}
_CREATE_TYPE = _OWN | {"responses": answers(201, ShopTypeAnswer, "made") | problems(400, 401, 403)}
_REPLACE_TYPE = _OWN | {
    "responses": answers(200, ShopTypeAnswer, "changed") | problems(400, 401, 403, 404)
}
_DELETE_TYPE = _OWN | {
    "responses": {204: {"description": "deleted"}} | problems(401, 403, 404, 409)
}
_READ = _ANY | {"responses": answers(200, ShopAnswer, "the shop") | problems(401, 404, 410)}
_NEAR = _ANY | {
    "responses": answers(200, Page[NearShopAnswer], "a page, nearest first; it may be shorter")
    | problems(400, 401, 404)
}
_CREATE = _OWN | {"responses": answers(201, ShopAnswer, "made") | problems(400, 401, 403)}
_REPLACE = _OWN | {
    "responses": answers(200, ShopAnswer, "changed") | problems(400, 401, 403, 404, 410)
}
_DELETE = _OWN | {"responses": {204: {"description": "deleted"}} | problems(401, 403, 404, 410)}


@app.get("/shop-types", **_TYPES)
def list_types() -> Page[ShopTypeAnswer]:
    """The types of shops, in the order in which they are shown."""
    caller_if_any(app)
    return Page(items=[ShopTypeAnswer.of(one) for one in reading.read_types()], next=None)


@app.post("/shop-types", **_CREATE_TYPE)
def create_type(question: ShopTypeQuestion) -> tuple[ShopTypeAnswer, int]:
    """Add a type of shops. For admins."""
    caller_with_role(app, "admin")
    return ShopTypeAnswer.of(shop_types.create_type(question.draft())), 201


@app.put("/shop-types/<type_id>", **_REPLACE_TYPE)
def replace_type(type_id: Id, question: ShopTypeQuestion) -> ShopTypeAnswer:
    """Replace a type of shops. For admins."""
    caller_with_role(app, "admin")
    return ShopTypeAnswer.of(
        shop_types.replace_type(read_id(type_id, "shop type"), question.draft())
    )


@app.delete("/shop-types/<type_id>", **_DELETE_TYPE)
def delete_type(type_id: Id) -> Response[None]:
    """Delete a type that no shop has. For admins."""
    caller_with_role(app, "admin")
    shop_types.delete_type(read_id(type_id, "shop type"))
    return Response(204)


@app.get("/shops/<shop_id>", **_READ)
def read_shop(shop_id: Id) -> ShopAnswer:
    """A shop."""
    caller_if_any(app)
    return ShopAnswer.of(reading.read(read_id(shop_id, "shop")))


@app.get("/shops", **_NEAR)
def find_near(
    x: X,
    y: Y,
    radius: Radius = 5_000,
    type_id: TypeId = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Page[NearShopAnswer]:
    """The shops around a place, nearest first; the 1,000 nearest, if there are more.

    A cursor is good for the place, radius and type that it was given for."""
    caller_if_any(app)
    area = Area(Place(x, y), radius, None if type_id is None else int(type_id))
    page = shops_near.find_near(area, _after(cursor, area), limit)
    return Page(
        items=[NearShopAnswer.at(near) for near in page.shops],
        next=pack_signed_cursor(area.to_text(), *page.last) if page.last else None,
    )


@app.post("/shops", **_CREATE)
def create_shop(question: ShopQuestion) -> tuple[ShopAnswer, int]:
    """Add a shop. For admins."""
    caller_with_role(app, "admin")
    return ShopAnswer.of(writing.create(question.draft())), 201


@app.put("/shops/<shop_id>", **_REPLACE)
def replace_shop(shop_id: Id, question: ShopQuestion) -> ShopAnswer:
    """Say everything about a shop anew. For admins."""
    caller_with_role(app, "admin")
    return ShopAnswer.of(writing.replace(read_id(shop_id, "shop"), question.draft()))


@app.delete("/shops/<shop_id>", **_DELETE)
def delete_shop(shop_id: Id) -> Response[None]:
    """Delete a shop. For admins."""
    caller_with_role(app, "admin")
    deleted_id = read_id(shop_id, "shop")
    writing.delete(deleted_id)
    withdraw_offers(deleted_id)
    return Response(204)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about shops."""
    return serve(app, event, context)


def _after(cursor: str | None, area: Area) -> Position | None:
    if cursor is None:
        return None
    return Position(*unpack_signed_cursor(cursor, area.to_text(), (int, int, int)))
