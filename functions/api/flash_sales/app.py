"""Flash sales: vouchers and their orders."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from aws_lambda_powertools.event_handler.api_gateway import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.utilities.typing import LambdaContext

from plaza import flash_sales
from plaza.auth.caller_identity import identify
from plaza.flash_sales import (
    PENDING,
    VoucherAvailability,
    backlog,
    codes,
    queries,
    sale_report,
    sale_status,
    waitlist,
    withdraw_vouchers,
)
from plaza.flash_sales.cancel_order import cancel_order as return_unit
from plaza.flash_sales.create_voucher import create_voucher as store_voucher
from plaza.flash_sales.model import (
    NEVER_CLOSES_US,
    AlreadyOrdered,
    AlreadyUsed,
    NotCancellable,
    NotOpen,
    NotUsable,
    SaleState,
    SoldOut,
    UnitsLeft,
    WaitlistFull,
    WrongCode,
)
from plaza.flash_sales.place_order import place_order as reserve_unit
from plaza.flash_sales.schemas import (
    OrderResponse,
    RedemptionCodeResponse,
    RedemptionRequest,
    RedemptionResponse,
    SaleResponse,
    SaleStatusResponse,
    VoucherRequest,
    VoucherResponse,
    WaitlistResponse,
)
from plaza.idempotency import IdempotentRequest, KeyReused
from plaza.infra.http.resolver import (
    ADMIN,
    BEARER,
    JSON,
    OPTIONAL,
    Id,
    PlazaResolver,
    StoppedBy,
    find_caller,
    pack_cursor,
    read_id,
    require_caller,
    unpack_cursor,
)
from plaza.infra.http.schemas import (
    Cursor,
    IdempotencyKey,
    Limit,
    Page,
    describe_problems,
    describe_response,
)
from plaza.infra.mysql.sql import from_us
from plaza.infra.runtime.errors import BadInput
from plaza.infra.runtime.observability import CORRELATION_ID, logger, metrics
from plaza.infra.runtime.switch_state import Switch

app = PlazaResolver(identify)

_OWN: dict[str, Any] = {"tags": ["flash sales"], "security": BEARER}
_WRITE = _OWN | {"middlewares": [StoppedBy(Switch.WRITES)]}
_ADMIN = _WRITE | {"security": ADMIN}
_OFFER = _ADMIN | {
    "responses": describe_response(
        201,
        VoucherResponse,
        "Created by this request, or by an earlier one with the same key.",
        example=1,
    )
    | describe_problems(400, 401, 403, 404, KeyReused, 410)
}
_WITHDRAW = _ADMIN | {
    "responses": {204: {"description": "Withdrawn."}} | describe_problems(401, 403, 404, 410)
}
_GET: dict[str, Any] = {
    "tags": ["flash sales"],
    "security": OPTIONAL,
    "responses": describe_response(200, VoucherResponse, "The voucher.")
    | describe_problems(401, 404, 410),
}
_LIST: dict[str, Any] = {
    "tags": ["flash sales"],
    "security": OPTIONAL,
    "responses": describe_response(200, Page[VoucherResponse], "A page of vouchers.")
    | describe_problems(400, 401, 404, 410),
}
_STATUS: dict[str, Any] = {
    "tags": ["flash sales"],
    "security": OPTIONAL,
    "responses": describe_response(200, SaleStatusResponse, "The status, up to 1 s old.")
    | describe_problems(401, 404),
}
_ORDER = _OWN | {
    "middlewares": [StoppedBy(Switch.ORDERS)],
    "responses": describe_response(
        202,
        OrderResponse,
        "A unit is reserved. Read the order again after `Retry-After` seconds.",
        example=1,
    )
    | describe_response(200, OrderResponse, "The order that the caller already has.")
    | describe_problems(401, 404, SoldOut, NotOpen, 410),
}
_READ = _OWN | {
    "responses": describe_response(200, OrderResponse, "The order.") | describe_problems(401, 404)
}
_CANCEL = _WRITE | {
    "responses": describe_response(200, OrderResponse, "The order, which is cancelled.", example=2)
    | describe_problems(401, 404, NotCancellable)
}
_CODE = _WRITE | {
    "responses": describe_response(200, RedemptionCodeResponse, "The new code of the order.")
    | describe_problems(401, 404, NotUsable)
}
_REDEEM = _ADMIN | {
    "responses": describe_response(
        201, RedemptionResponse, "Used by this request, or by an earlier one with the same key."
    )
    | describe_problems(400, 401, 403, WrongCode, AlreadyUsed, NotUsable, KeyReused)
}
_JOIN = _WRITE | {
    "responses": describe_response(200, WaitlistResponse, "The caller's position.")
    | describe_problems(401, 404, UnitsLeft, AlreadyOrdered, WaitlistFull, NotOpen, 410)
}
_PLACE = _OWN | {
    "responses": describe_response(200, WaitlistResponse, "The caller's position.", example=1)
    | describe_problems(401, 404, NotOpen, 410)
}
_LEAVE = _WRITE | {
    "responses": {204: {"description": "The caller does not wait."}} | describe_problems(401, 404)
}
_LIST_OWN = _OWN | {
    "responses": describe_response(200, Page[OrderResponse], "A page of orders.")
    | describe_problems(400, 401)
}

_SALES: dict[str, Any] = {
    "tags": ["operations"],
    "security": ADMIN,
    "responses": describe_response(200, Page[SaleResponse], "A page of sales.")
    | describe_problems(400, 401, 403),
}
State = Annotated[
    SaleState, Query(description="State of the sales. `coming`: not open yet; `ended`: closed.")
]


@app.post("/vouchers", **_OFFER)
def create_voucher(
    request: VoucherRequest, key: IdempotencyKey = None
) -> tuple[VoucherResponse, int]:
    """Create a voucher.

    The voucher can be ordered from `opens_at` to `closes_at`. With an `Idempotency-Key` the
    request can be repeated; without one, each request creates a voucher. For admins.
    """
    admin_id = require_caller(app)
    terms = request.terms(read_id(request.shop_id, "shop"))
    attempt = IdempotentRequest.of(key, {"voucher": asdict(terms)}) if key else None
    voucher = store_voucher(terms, admin_id, attempt)
    return VoucherResponse.of(VoucherAvailability(voucher, voucher.stock, exact=True)), 201


@app.get("/vouchers/<voucher_id>", **_GET)
def get_voucher(voucher_id: Id) -> VoucherResponse:
    """Get a voucher.

    Returns its terms and the units that are left.
    """
    find_caller(app)  # refuses invalid tokens
    return VoucherResponse.of(queries.read_voucher(read_id(voucher_id, "voucher")))


@app.delete("/vouchers/<voucher_id>", **_WITHDRAW)
def withdraw_voucher(voucher_id: Id) -> Response[None]:
    """Withdraw a voucher.

    No further order succeeds: pending orders fail with the reason `withdrawn`, successful ones
    stay. A repeat is a 410. For admins.
    """
    withdraw_vouchers.withdraw_voucher(read_id(voucher_id, "voucher"), require_caller(app))
    return Response(204)


@app.get("/shops/<shop_id>/vouchers", **_LIST)
def list_vouchers(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[VoucherResponse]:
    """List the vouchers of a shop.

    Newest first, with the units that are left.
    """
    find_caller(app)  # refuses invalid tokens
    page, last = queries.list_vouchers(read_id(shop_id, "shop"), _parse_cursor(cursor), limit)
    return Page(items=[VoucherResponse.of(offer) for offer in page], next=_pack_next(last))


@app.get("/vouchers/<voucher_id>/status", **_STATUS)
def get_sale_status(voucher_id: Id) -> Response[SaleStatusResponse]:
    """Get the status of a sale.

    For a countdown and the units left. Without a token, the response can be cached for a second.
    """
    find_caller(app)  # refuses invalid tokens
    status = sale_status.read_status(read_id(voucher_id, "voucher"))
    headers = {"cache-control": "public, max-age=1"}
    return Response(200, JSON, SaleStatusResponse.of(voucher_id, status), headers=headers)


@app.post("/vouchers/<voucher_id>/orders", **_ORDER)
def place_order(voucher_id: Id) -> Response[OrderResponse]:
    """Order a voucher.

    Reserves one unit. A buyer has at most one order of a voucher: a repeat returns it. A 503
    leaves open whether there is an order: repeat the request, it returns the same order. Orders
    are also limited by the rate at which they can be stored; beyond it the response is a 429.
    """
    buyer_id = require_caller(app)
    order, made = reserve_unit(read_id(voucher_id, "voucher"), buyer_id)
    return _respond(order, 202 if made else 200)


@app.get("/orders/<order_id>", **_READ)
def get_order(order_id: Id) -> Response[OrderResponse]:
    """Get an order of the caller.

    A pending order has a `Retry-After` header. A 503 means that the order may exist but cannot be
    found yet. Final orders of more than a month are read from the archive, more slowly.
    """
    buyer_id = require_caller(app)
    return _respond(queries.read_order(read_id(order_id, "order"), buyer_id), 200)


@app.put("/vouchers/<voucher_id>/waitlist/me", **_JOIN)
def join_waitlist(voucher_id: Id) -> WaitlistResponse:
    """Wait for a unit of a voucher.

    For vouchers that are sold out. Units that return are offered in the order of joining; an offer
    lasts 15 minutes and is accepted by ordering the voucher. A repeat returns the same position.
    """
    position = waitlist.join_waitlist(read_id(voucher_id, "voucher"), require_caller(app))
    return WaitlistResponse.of(voucher_id, position)


@app.get("/vouchers/<voucher_id>/waitlist/me", **_PLACE)
def get_waitlist_place(voucher_id: Id) -> WaitlistResponse:
    """Get the caller's position in a waitlist.

    404 if the caller does not wait, has ordered, or let the offer end.
    """
    position = waitlist.read_position(read_id(voucher_id, "voucher"), require_caller(app))
    return WaitlistResponse.of(voucher_id, position)


@app.delete("/vouchers/<voucher_id>/waitlist/me", **_LEAVE)
def leave_waitlist(voucher_id: Id) -> Response[None]:
    """Leave the waitlist of a voucher.

    A unit that was offered to the caller goes to the next one.
    """
    waitlist.leave_waitlist(read_id(voucher_id, "voucher"), require_caller(app))
    return Response(204)


@app.delete("/orders/<order_id>", **_CANCEL)
def cancel_order(order_id: Id) -> OrderResponse:
    """Cancel an order of the caller.

    Its unit returns to the sale, and the caller may order again, five times a voucher. A pending
    order can be cancelled too. Repeats return the cancelled order.
    """
    buyer_id = require_caller(app)
    return OrderResponse.of(return_unit(read_id(order_id, "order"), buyer_id))


@app.put("/orders/<order_id>/code", **_CODE)
def issue_code(order_id: Id) -> RedemptionCodeResponse:
    """Issue the code of an order.

    The buyer shows it to the shop, which redeems it. Each request issues a new code and makes an
    earlier one invalid. For orders with the status `success`.
    """
    buyer_id = require_caller(app)
    code = codes.issue_code(read_id(order_id, "order"), buyer_id)
    return RedemptionCodeResponse(order_id=order_id, code=code)


@app.post("/vouchers/<voucher_id>/redemptions", **_REDEEM)
def redeem_code(
    voucher_id: Id, request: RedemptionRequest, key: IdempotencyKey = None
) -> tuple[RedemptionResponse, int]:
    """Redeem the code of an order.

    The order is used once, whatever is repeated. With an `Idempotency-Key` a repeat gets the same
    answer; without one, or with another key, it gets 409 `already-used`. Wrong codes are limited to
    10 a minute and 60 an hour. For admins.
    """
    admin_id = require_caller(app)
    of = read_id(voucher_id, "voucher")
    content = {"redemption": {"voucher": voucher_id, "code": request.code}}
    attempt = IdempotentRequest.of(key, content) if key else None
    used = codes.redeem_code(of, request.code, admin_id, attempt)
    response = RedemptionResponse(
        order_id=str(used.order_id), voucher_id=voucher_id, used_at=from_us(used.used_us)
    )
    return response, 201


@app.get("/users/me/orders", **_LIST_OWN)
def list_my_orders(limit: Limit = 20, cursor: Cursor = None) -> Page[OrderResponse]:
    """List the caller's orders.

    Newest first, without archived ones.
    """
    page, last = queries.list_orders(require_caller(app), _parse_cursor(cursor), limit)
    return Page(items=[OrderResponse.of(order) for order in page], next=_pack_next(last))


@app.get("/ops/vouchers", **_SALES)
def list_sales(
    state: State = "running", limit: Limit = 20, cursor: Cursor = None
) -> Page[SaleResponse]:
    """List sales by their state.

    Returns the units of each sale at this moment. Running sales are in the order in which they
    close, coming ones in that in which they open, ended ones latest first. For admins.
    """
    sales, last = sale_report.read_sales(state, _parse_sale_cursor(cursor), limit)
    return Page(
        items=[SaleResponse.of(sale) for sale in sales], next=pack_cursor(*last) if last else None
    )


@logger.inject_lambda_context(correlation_id_path=CORRELATION_ID)
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about flash sales."""
    return app.resolve(event, context)


def _respond(order: flash_sales.Order, status: int) -> Response[OrderResponse]:
    pending = order.status == PENDING
    headers = {"retry-after": str(backlog.poll_after_s())} if pending else {}
    return Response(status, JSON, OrderResponse.of(order), headers=headers)


def _parse_cursor(cursor: str | None) -> int | None:
    return unpack_cursor(cursor, (int,))[0] if cursor else None


def _parse_sale_cursor(cursor: str | None) -> tuple[int, int] | None:
    if cursor is None:
        return None
    at_us, voucher_id = unpack_cursor(cursor, (int, int))
    if not 0 <= at_us <= NEVER_CLOSES_US:
        raise BadInput("cursor", "was not returned by this API")
    return at_us, voucher_id


def _pack_next(last: int | None) -> str | None:
    return pack_cursor(last) if last is not None else None
