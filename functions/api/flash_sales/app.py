"""Flash sales: vouchers that admins offer, orders and what became of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.event_handler import Response

from plaza import flash_sales
from plaza.flash_sales import (
    PENDING,
    VoucherAvailability,
    backlog,
    create_voucher,
    place_order,
    queries,
)
from plaza.flash_sales.schemas import OrderResponse, VoucherRequest, VoucherResponse
from plaza.idempotency import IdempotentRequest
from plaza.infra.http import (
    BEARER,
    JSON,
    Cursor,
    Id,
    IdempotencyKey,
    Limit,
    Page,
    create_api,
    describe_problems,
    describe_response,
    find_caller,
    pack_cursor,
    read_id,
    require_caller,
    require_caller_with_role,
    serve,
    unpack_cursor,
)

app = create_api()

_OWN: dict[str, Any] = {"tags": ["flash sales"], "security": [BEARER]}
_OFFER = _OWN | {
    "responses": describe_response(
        201, VoucherResponse, "made, by this request or by one before with this key"
    )
    | describe_problems(400, 401, 403, 404, 409, 410)
}
_LIST: dict[str, Any] = {
    "tags": ["flash sales"],
    "security": [{}, BEARER],
    "responses": describe_response(200, Page[VoucherResponse], "a page")
    | describe_problems(400, 401, 404, 410),
}
_ORDER = _OWN | {
    "responses": describe_response(
        202, OrderResponse, "reserved and stored twice: ask what became of it after Retry-After"
    )
    | describe_response(200, OrderResponse, "the order that you have already")
    | describe_problems(401, 404, 409, 410, 429)
}
_READ = _OWN | {
    "responses": describe_response(200, OrderResponse, "as it is now") | describe_problems(401, 404)
}
_LIST_OWN = _OWN | {
    "responses": describe_response(200, Page[OrderResponse], "a page") | describe_problems(400, 401)
}


@app.post("/vouchers", **_OFFER)
def offer_voucher(
    request: VoucherRequest, key: IdempotencyKey = None
) -> tuple[VoucherResponse, int]:
    """Create a voucher. For admins."""
    admin_id = require_caller_with_role(app, "admin")
    terms = request.terms(read_id(request.shop_id, "shop"))
    attempt = IdempotentRequest.of(key, {"voucher": asdict(terms)}) if key else None
    voucher = create_voucher.create_voucher(terms, admin_id, attempt)
    return VoucherResponse.of(VoucherAvailability(voucher, voucher.stock, exact=True)), 201


@app.get("/shops/<shop_id>/vouchers", **_LIST)
def list_vouchers(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[VoucherResponse]:
    """What a shop offers and how much of it is left, newest first."""
    find_caller(app)  # a token that isn't good is refused here as everywhere
    page, last = queries.list_vouchers(read_id(shop_id, "shop"), _parse_cursor(cursor), limit)
    return Page(items=[VoucherResponse.of(offer) for offer in page], next=_pack_next(last))


@app.post("/vouchers/<voucher_id>/orders", **_ORDER)
def order_voucher(voucher_id: Id) -> Response[OrderResponse]:
    """Order one. Everybody gets one at most; who has one gets it again as the answer.

    A 503 leaves open whether you have an order: repeat the request, it answers with the same one.
    """
    buyer_id = require_caller(app)
    order, made = place_order.place_order(read_id(voucher_id, "voucher"), buyer_id)
    return _respond(order, 202 if made else 200)


@app.get("/orders/<order_id>", **_READ)
def read_order(order_id: Id) -> Response[OrderResponse]:
    """What became of an order of one's own. 503 when it may exist and can't be found yet."""
    buyer_id = require_caller(app)
    return _respond(queries.read_order(read_id(order_id, "order"), buyer_id), 200)


@app.get("/users/me/orders", **_LIST_OWN)
def list_my_orders(limit: Limit = 20, cursor: Cursor = None) -> Page[OrderResponse]:
    """My orders, newest first. Private."""
    page, last = queries.list_orders(require_caller(app), _parse_cursor(cursor), limit)
    return Page(items=[OrderResponse.of(order) for order in page], next=_pack_next(last))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about flash sales."""
    return serve(app, event, context)


def _respond(order: flash_sales.Order, status: int) -> Response[OrderResponse]:
    pending = order.status == PENDING
    headers = {"retry-after": str(backlog.poll_after_s())} if pending else {}
    return Response(status, JSON, OrderResponse.of(order), headers=headers)


def _parse_cursor(cursor: str | None) -> int | None:
    return unpack_cursor(cursor, (int,))[0] if cursor else None


def _pack_next(last: int | None) -> str | None:
    return pack_cursor(last) if last is not None else None
