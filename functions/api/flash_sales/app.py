"""Flash sales: vouchers that admins offer, orders and what became of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools.event_handler import Response

from plaza import flash_sales
from plaza.flash_sales import PENDING, Offer, offering, ordering, reading, waiting
from plaza.flash_sales.contract import Order, Voucher, VoucherQuestion
from plaza.idempotency import Attempt
from plaza.infra.http import (
    BEARER,
    JSON,
    Cursor,
    Id,
    IdempotencyKey,
    Limit,
    Page,
    answers,
    api,
    caller,
    caller_if_any,
    caller_with_role,
    pack_cursor,
    problems,
    read_id,
    serve,
    unpack_cursor,
)

app = api()

_OWN: dict[str, Any] = {"tags": ["flash sales"], "security": [BEARER]}
_OFFER = _OWN | {
    "responses": answers(201, Voucher, "made, by this request or by one before with this key")
    | problems(400, 401, 403, 404, 409, 410)
}
_LIST: dict[str, Any] = {
    "tags": ["flash sales"],
    "security": [{}, BEARER],
    "responses": answers(200, Page[Voucher], "a page") | problems(400, 401, 404, 410),
}
_ORDER = _OWN | {
    "responses": answers(
        202, Order, "reserved and stored twice: ask what became of it after Retry-After"
    )
    | answers(200, Order, "the order that you have already")
    | problems(401, 404, 409, 410, 429)
}
_READ = _OWN | {"responses": answers(200, Order, "as it is now") | problems(401, 404)}
_LIST_OWN = _OWN | {"responses": answers(200, Page[Order], "a page") | problems(400, 401)}


@app.post("/vouchers", **_OFFER)
def offer_voucher(question: VoucherQuestion, key: IdempotencyKey = None) -> tuple[Voucher, int]:
    """Offer a voucher. For admins."""
    admin_id = caller_with_role(app, "admin")
    terms = question.terms(read_id(question.shop_id, "shop"))
    attempt = Attempt.of(key, {"voucher": asdict(terms)}) if key else None
    voucher = offering.offer(terms, admin_id, attempt)
    return Voucher.of(Offer(voucher, voucher.stock, exact=True)), 201


@app.get("/shops/<shop_id>/vouchers", **_LIST)
def list_vouchers(shop_id: Id, limit: Limit = 20, cursor: Cursor = None) -> Page[Voucher]:
    """What a shop offers and how much of it is left, newest first."""
    caller_if_any(app)  # a token that isn't good is refused here as everywhere
    page, last = reading.list_vouchers(read_id(shop_id, "shop"), _before(cursor), limit)
    return Page(items=[Voucher.of(offer) for offer in page], next=_next(last))


@app.post("/vouchers/<voucher_id>/orders", **_ORDER)
def order_voucher(voucher_id: Id) -> Response[Order]:
    """Order one. Everybody gets one at most; who has one gets it again as the answer.

    A 503 leaves open whether you have an order: repeat the request, it answers with the same one.
    """
    buyer_id = caller(app)
    order, made = ordering.order(read_id(voucher_id, "voucher"), buyer_id)
    return _answer(order, 202 if made else 200)


@app.get("/orders/<order_id>", **_READ)
def read_order(order_id: Id) -> Response[Order]:
    """What became of an order of one's own. 503 when it may exist and can't be found yet."""
    buyer_id = caller(app)
    return _answer(reading.read_order(read_id(order_id, "order"), buyer_id), 200)


@app.get("/users/me/orders", **_LIST_OWN)
def list_my_orders(limit: Limit = 20, cursor: Cursor = None) -> Page[Order]:
    """My orders, newest first. Private."""
    page, last = reading.list_orders(caller(app), _before(cursor), limit)
    return Page(items=[Order.of(order) for order in page], next=_next(last))


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Answer one request about flash sales."""
    return serve(app, event, context)


def _answer(order: flash_sales.Order, status: int) -> Response[Order]:
    pending = order.status == PENDING
    headers = {"retry-after": str(waiting.poll_after_s())} if pending else {}
    return Response(status, JSON, Order.of(order), headers=headers)


def _before(cursor: str | None) -> int | None:
    return unpack_cursor(cursor, (int,))[0] if cursor else None


def _next(last: int | None) -> str | None:
    return pack_cursor(last) if last is not None else None
