"""Flash sales: vouchers and their orders."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

import plaza.commerce.flash_sales.cancel_order
import plaza.commerce.flash_sales.change_voucher
import plaza.commerce.flash_sales.create_voucher
import plaza.commerce.flash_sales.place_order
from plaza.commerce import flash_sales
from plaza.commerce.flash_sales import (
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
from plaza.commerce.flash_sales.model import (
    NEVER_CLOSES_US,
    AlreadyOrdered,
    AlreadyUsed,
    NotCancellable,
    NotChangeable,
    NotOpen,
    NotUsable,
    SoldOut,
    UnitsLeft,
    WaitlistFull,
    WrongCode,
)
from plaza.commerce.flash_sales.schemas import (
    OrderDetails,
    OrderResponse,
    RedeemedOrderResponse,
    RedemptionCodeResponse,
    RedemptionRequest,
    RedemptionResponse,
    SaleResponse,
    SaleStatusResponse,
    State,
    VoucherRequest,
    VoucherResponse,
    VoucherUpdateRequest,
    WaitlistResponse,
)
from plaza.commerce.shops import access
from plaza.core.idempotency import IdempotentRequest, KeyReused
from plaza.core.switches import Switch
from plaza.infra.http.cursors import BadCursor, pack_cursor, unpack_cursor
from plaza.infra.http.requests import Id, read_id, read_tags
from plaza.infra.http.resolver import PlazaResolver, find_caller, require_caller
from plaza.infra.http.routes import (
    BEARER,
    MEMBER,
    OPTIONAL,
    OWNER,
    SALES_OR_OPERATOR,
    WRITES,
    Headers,
    Held,
    Responses,
    StoppedBy,
)
from plaza.infra.http.schemas import Cursor, IdempotencyKey, Ids, IfMatch, Limit, Page
from plaza.infra.mysql.sql import from_us
from plaza.infra.runtime.errors import ChangedMeanwhile, Gone, NotFound
from plaza.infra.runtime.observability import logger, metrics
from plaza.people.auth.caller_identity import identify

app = PlazaResolver(identify, tag="flash sales")

_CREATED = "Created by this request, or by an earlier one with the same key."


@app.post(
    "/vouchers",
    security=OWNER,
    middlewares=WRITES,
    responses=Responses({201: _CREATED}, NotFound, KeyReused, Gone, example=1),
)
def create_voucher(
    request: VoucherRequest, key: IdempotencyKey = None
) -> tuple[VoucherResponse, int]:
    """Create a voucher.

    The voucher can be ordered from `opens_at` to `closes_at`. With an `Idempotency-Key` the
    request can be repeated; without one, each request creates a voucher. For owners of the shop,
    sales and admins.
    """
    shop_id = read_id(request.shop_id, "shop")
    creator_id = access.require_owner(app, shop_id)
    terms = request.terms(shop_id)
    attempt = IdempotentRequest.of(key, {"voucher": asdict(terms)}) if key else None
    voucher = plaza.commerce.flash_sales.create_voucher.create_voucher(terms, creator_id, attempt)
    return VoucherResponse.of(VoucherAvailability(voucher, voucher.stock, exact=True)), 201


@app.get(
    "/vouchers", security=OPTIONAL, responses=Responses("The vouchers, in the order of `ids`.")
)
def list_vouchers_by_id(ids: Ids) -> Page[VoucherResponse]:
    """List vouchers by id.

    Leaves out ids of vouchers that do not exist or were withdrawn; ten of them count as another
    read. `next` is null.
    """
    find_caller(app)  # refuses invalid tokens
    asked = list(dict.fromkeys(map(int, ids)))
    offers = queries.read_vouchers(asked)
    app.charge_unknown(len(asked), len(offers))
    return Page(items=[VoucherResponse.of(offer) for offer in offers], next=None)


@app.get(
    "/vouchers/<voucher_id>", security=OPTIONAL, responses=Responses("The voucher.", NotFound, Gone)
)
def get_voucher(voucher_id: Id) -> tuple[VoucherResponse, int, Headers]:
    """Get a voucher.

    Returns its terms and the units that are left. With a session the `ETag` is one for the
    `If-Match` of a change.
    """
    find_caller(app)  # refuses invalid tokens
    return _tagged(queries.read_voucher(read_id(voucher_id, "voucher")))


@app.patch(
    "/vouchers/<voucher_id>",
    security=OWNER,
    middlewares=WRITES,
    responses=Responses(
        "The changed voucher.", NotFound, NotChangeable, Gone, ChangedMeanwhile, example=1
    ),
)
def update_voucher(
    voucher_id: Id, change: VoucherUpdateRequest, if_match: IfMatch = None
) -> tuple[VoucherResponse, int, Headers]:
    """Update a voucher.

    Changes the fields that are sent: `title`; `price_cents`, until the sale begins; `expires_at`,
    to a later time. Orders show the change within a minute. Idempotent. For owners of the
    shop, sales and admins.
    """
    changed_id = read_id(voucher_id, "voucher")
    access.require_owner(app, queries.read_shop_id(changed_id))
    return _tagged(
        plaza.commerce.flash_sales.change_voucher.change_voucher(
            changed_id, change.changes, read_tags(if_match)
        )
    )


@app.delete(
    "/vouchers/<voucher_id>",
    security=OWNER,
    middlewares=WRITES,
    responses=Responses({204: "Withdrawn."}, NotFound, Gone),
)
def withdraw_voucher(voucher_id: Id) -> tuple[None, int]:
    """Withdraw a voucher.

    No further order succeeds: pending orders fail with the reason `withdrawn`, successful ones
    stay. A repeat is a 410. For owners of the shop, sales and admins.
    """
    withdrawn_id = read_id(voucher_id, "voucher")
    caller_id = access.require_owner(app, queries.read_shop_id(withdrawn_id))
    withdraw_vouchers.withdraw_voucher(withdrawn_id, caller_id)
    return None, 204


@app.get(
    "/shops/<shop_id>/vouchers",
    security=OPTIONAL,
    responses=Responses("A page of vouchers.", NotFound, Gone),
)
def list_vouchers(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[VoucherResponse]:
    """List the vouchers of a shop.

    Newest first, with the units that are left.
    """
    find_caller(app)  # refuses invalid tokens
    page, last = queries.list_vouchers(read_id(shop_id, "shop"), _parse_cursor(cursor), limit)
    return Page(items=[VoucherResponse.of(offer) for offer in page], next=_pack_next(last))


@app.get(
    "/vouchers/<voucher_id>/status",
    security=OPTIONAL,
    responses=Responses("The status, up to 1 s old.", NotFound),
)
def get_sale_status(voucher_id: Id) -> tuple[SaleStatusResponse, int, Headers]:
    """Get the status of a sale.

    For a countdown and the units left. Without a token, the response can be cached for a second.
    """
    find_caller(app)  # refuses invalid tokens
    status = sale_status.read_status(read_id(voucher_id, "voucher"))
    headers = {"cache-control": "public, max-age=1"}
    return SaleStatusResponse.of(voucher_id, status), 200, headers


@app.post(
    "/vouchers/<voucher_id>/orders",
    security=BEARER,
    middlewares=[StoppedBy(Switch.ORDERS)],
    responses=Responses(
        {
            200: "The order that the caller already has.",
            202: "A unit is reserved. Read the order again after `Retry-After` seconds.",
        },
        NotFound,
        SoldOut,
        NotOpen,
        Gone,
    ),
)
def place_order(voucher_id: Id) -> tuple[OrderResponse, int, Headers]:
    """Order a voucher.

    Reserves one unit. A buyer has at most one order of a voucher: a repeat returns it. A 503
    leaves open whether there is an order: repeat the request, it returns the same order. Orders
    are also limited by the rate at which they can be stored; beyond it the response is a 429.
    """
    buyer_id = require_caller(app)
    order, made = plaza.commerce.flash_sales.place_order.place_order(
        read_id(voucher_id, "voucher"), buyer_id
    )
    return OrderResponse.of(order), 202 if made else 200, _poll_headers(order)


@app.get(
    "/orders/<order_id>",
    security=BEARER,
    middlewares=[Held(False)],
    responses=Responses("The order.", NotFound),
)
def get_order(order_id: Id) -> tuple[OrderDetails, int, Headers]:
    """Get an order of the caller.

    Returns its times, its voucher and its shop. A pending order has a `Retry-After` header. A 503
    means that the order may exist but cannot be found yet. Final orders of more than a month are
    read from the archive, more slowly.
    """
    view = queries.read_view(read_id(order_id, "order"), require_caller(app))
    return OrderDetails.of_view(view), 200, _poll_headers(view.order)


@app.put(
    "/vouchers/<voucher_id>/waitlist/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses(
        "The caller's position.", NotFound, UnitsLeft, AlreadyOrdered, WaitlistFull, NotOpen, Gone
    ),
)
def join_waitlist(voucher_id: Id) -> WaitlistResponse:
    """Wait for a unit of a voucher.

    For vouchers that are sold out. Units that return are offered in the order of joining; an offer
    lasts 15 minutes and is accepted by ordering the voucher. A repeat returns the same position.
    """
    position = waitlist.join_waitlist(read_id(voucher_id, "voucher"), require_caller(app))
    return WaitlistResponse.of(voucher_id, position)


@app.get(
    "/vouchers/<voucher_id>/waitlist/me",
    security=BEARER,
    responses=Responses("The caller's position.", NotFound, NotOpen, Gone, example=1),
)
def get_waitlist_place(voucher_id: Id) -> WaitlistResponse:
    """Get the caller's position in a waitlist.

    404 if the caller does not wait, has ordered, or let the offer end.
    """
    position = waitlist.read_position(read_id(voucher_id, "voucher"), require_caller(app))
    return WaitlistResponse.of(voucher_id, position)


@app.delete(
    "/vouchers/<voucher_id>/waitlist/me",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses({204: "The caller does not wait."}, NotFound),
)
def leave_waitlist(voucher_id: Id) -> tuple[None, int]:
    """Leave the waitlist of a voucher.

    A unit that was offered to the caller goes to the next one.
    """
    waitlist.leave_waitlist(read_id(voucher_id, "voucher"), require_caller(app))
    return None, 204


@app.delete(
    "/orders/<order_id>",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The order, which is cancelled.", NotFound, NotCancellable, example=2),
)
def cancel_order(order_id: Id) -> OrderResponse:
    """Cancel an order of the caller.

    Its unit returns to the sale, and the caller may order again, five times a voucher. A pending
    order can be cancelled too. Repeats return the cancelled order.
    """
    buyer_id = require_caller(app)
    return OrderResponse.of(
        plaza.commerce.flash_sales.cancel_order.cancel_order(read_id(order_id, "order"), buyer_id)
    )


@app.put(
    "/orders/<order_id>/code",
    security=BEARER,
    middlewares=WRITES,
    responses=Responses("The new code of the order.", NotFound, NotUsable),
)
def issue_code(order_id: Id) -> RedemptionCodeResponse:
    """Issue the code of an order.

    The buyer shows it to the shop, which redeems it. Each request issues a new code and makes an
    earlier one invalid. For orders with the status `success`.
    """
    buyer_id = require_caller(app)
    code = codes.issue_code(read_id(order_id, "order"), buyer_id)
    return RedemptionCodeResponse(order_id=order_id, code=code)


@app.post(
    "/vouchers/<voucher_id>/redemptions",
    security=MEMBER,
    middlewares=WRITES,
    responses=Responses(
        {201: "Used by this request, or by an earlier one with the same key."},
        WrongCode,
        AlreadyUsed,
        NotUsable,
        KeyReused,
    ),
)
def redeem_code(
    voucher_id: Id, request: RedemptionRequest, key: IdempotencyKey = None
) -> tuple[RedemptionResponse, int]:
    """Redeem the code of an order.

    The order is used once, whatever is repeated. With an `Idempotency-Key` a repeat gets the same
    answer; without one, or with another key, it gets 409 `already-used`. Wrong codes are limited to
    10 a minute and 60 an hour. For members of the shop, sales and admins.
    """
    of = read_id(voucher_id, "voucher")
    caller_id = access.require_member(app, queries.read_shop_id(of))
    content = {"redemption": {"voucher": voucher_id, "code": request.code}}
    attempt = IdempotentRequest.of(key, content) if key else None
    used = codes.redeem_code(of, request.code, caller_id, attempt)
    response = RedemptionResponse(
        order_id=str(used.order_id), voucher_id=voucher_id, used_at=from_us(used.used_us)
    )
    return response, 201


@app.get(
    "/shops/<shop_id>/redemptions",
    security=MEMBER,
    responses=Responses("A page of orders.", NotFound),
)
def list_redemptions(
    shop_id: Id, limit: Limit = 20, cursor: Cursor = None
) -> Page[RedeemedOrderResponse]:
    """List the redeemed orders of a shop.

    Newest first. For members of the shop, sales and admins.
    """
    of = read_id(shop_id, "shop")
    access.require_member(app, of)
    page, last = queries.list_redeemed(of, _parse_time_cursor(cursor), limit)
    items = [RedeemedOrderResponse.of(order, voucher) for order, voucher in page]
    return Page(items=items, next=pack_cursor(*last) if last else None)


@app.get(
    "/shops/<shop_id>/sales", security=MEMBER, responses=Responses("A page of sales.", NotFound)
)
def list_sales_of_shop(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[SaleResponse]:
    """List the sales of a shop.

    Newest voucher first, also of withdrawn vouchers, with the units at this moment. For members of
    the shop, sales and admins.
    """
    of = read_id(shop_id, "shop")
    access.require_member(app, of)
    sales, last = sale_report.read_sales_of_shop(of, _parse_cursor(cursor), limit)
    return Page(items=[SaleResponse.of(sale) for sale in sales], next=_pack_next(last))


@app.get("/users/me/orders", security=BEARER, responses=Responses("A page of orders."))
def list_my_orders(limit: Limit = 20, cursor: Cursor = None) -> Page[OrderDetails]:
    """List the caller's orders.

    Newest first, each with its voucher and its shop. Final orders of more than a month are read
    from the archive: a page that has some may be shorter than `limit`.
    """
    page, last = queries.list_orders(require_caller(app), _parse_cursor(cursor), limit)
    return Page(items=[OrderDetails.of_view(view) for view in page], next=_pack_next(last))


@app.get("/users/me/waitlists", security=BEARER, responses=Responses("A page of positions."))
def list_my_waitlists(limit: Limit = 20, cursor: Cursor = None) -> Page[WaitlistResponse]:
    """List the waitlists that the caller is on.

    Positions and offers, newest voucher first; without offers that have ended.
    """
    page, last = waitlist.list_positions(require_caller(app), _parse_cursor(cursor), limit)
    items = [WaitlistResponse.of(str(voucher_id), position) for voucher_id, position in page]
    return Page(items=items, next=_pack_next(last))


@app.get(
    "/ops/vouchers",
    security=SALES_OR_OPERATOR,
    tags=["operations"],
    responses=Responses("A page of sales."),
)
def list_sales(
    state: State = "running", limit: Limit = 20, cursor: Cursor = None
) -> Page[SaleResponse]:
    """List sales by their state.

    Returns the units of each sale at this moment. Running sales are in the order in which they
    close, coming ones in that in which they open, ended ones latest first. For sales and operators.
    """
    sales, last = sale_report.read_sales(state, _parse_time_cursor(cursor), limit)
    return Page(
        items=[SaleResponse.of(sale) for sale in sales], next=pack_cursor(*last) if last else None
    )


@logger.inject_lambda_context
@metrics.log_metrics(capture_cold_start_metric=True)
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request about flash sales."""
    return app.resolve(event, context)


def _tagged(offer: VoucherAvailability) -> tuple[VoucherResponse, int, Headers]:
    tag = plaza.commerce.flash_sales.change_voucher.tag_of(offer.voucher.terms)
    return VoucherResponse.of(offer), 200, {"etag": tag}


def _poll_headers(order: flash_sales.Order) -> Headers:
    pending = order.status == PENDING
    return {"retry-after": str(backlog.poll_after_s())} if pending else {}


def _parse_cursor(cursor: str | None) -> int | None:
    return unpack_cursor(cursor, (int,))[0] if cursor else None


def _parse_time_cursor(cursor: str | None) -> tuple[int, int] | None:
    if cursor is None:
        return None
    at_us, last_id = unpack_cursor(cursor, (int, int))
    if not 0 <= at_us <= NEVER_CLOSES_US:
        raise BadCursor
    return at_us, last_id


def _pack_next(last: int | None) -> str | None:
    return pack_cursor(last) if last is not None else None
