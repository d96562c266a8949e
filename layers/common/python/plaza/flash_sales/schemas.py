"""Requests and responses of the API of flash sales."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from plaza.flash_sales import model
from plaza.flash_sales.model import MAX_STOCK, Terms, VoucherAvailability
from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.infra.sql import from_us, to_us
from plaza.infra.texts import LINE, check_line

# 1971 to 9998: within the Unix epoch and MySQL's calendar for every offset.
_RFC_3339 = (
    r"^(197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
    r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _check_text(value: object) -> object:
    """Reject numbers and numeric text, which pydantic reads as seconds."""
    if not isinstance(value, str) or not re.fullmatch(_RFC_3339, value):
        raise ValueError(
            "must be a time of RFC 3339 from 1971 to 9998, such as 2026-01-31T20:00:00Z"
        )
    return value


Time = Annotated[
    AwareDatetime,
    Field(
        strict=False,
        description="A time of RFC 3339, with an offset.",
        json_schema_extra={"pattern": _RFC_3339},
    ),
    BeforeValidator(_check_text),
]
ShopId = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,18}$", description="A 63-bit id, as a string.")
]


class VoucherRequest(RequestModel):
    """A voucher to create. ``price_cents`` is the price of one unit."""

    shop_id: ShopId
    title: Annotated[
        str,
        Field(min_length=1, max_length=200, json_schema_extra={"pattern": LINE}),
        AfterValidator(check_line),
    ]
    price_cents: Annotated[int, Field(ge=0, le=10_000_000_000), ACCEPT_INTEGRAL_FLOAT]
    stock: Annotated[int, Field(ge=1, le=MAX_STOCK), ACCEPT_INTEGRAL_FLOAT]
    opens_at: Time
    closes_at: Time

    def terms(self, shop_id: int) -> Terms:
        return Terms(
            shop_id=shop_id,
            title=self.title,
            price_cents=self.price_cents,
            stock=self.stock,
            opens_us=to_us(self.opens_at.astimezone(UTC)),
            closes_us=to_us(self.closes_at.astimezone(UTC)),
        )


class VoucherResponse(ResponseModel):
    """A voucher. ``left`` is the number of units that can still be ordered; if ``exact`` is false,
    pending orders are not subtracted."""

    id: str
    shop_id: str
    title: str
    price_cents: int
    stock: int
    left: int
    opens_at: datetime
    closes_at: datetime
    exact: bool

    @classmethod
    def of(cls, availability: VoucherAvailability) -> VoucherResponse:
        voucher, left, exact = availability
        terms = voucher.terms
        return cls(
            id=str(voucher.id),
            shop_id=str(terms.shop_id),
            title=terms.title,
            price_cents=terms.price_cents,
            stock=terms.stock,
            left=left,
            opens_at=from_us(terms.opens_us),
            closes_at=from_us(terms.closes_us),
            exact=exact,
        )


class OrderResponse(ResponseModel):
    """An order. If it is pending, read it again after Retry-After seconds. ``reason`` is set if it
    failed: ``sold-out``, no unit is left; ``already-bought``, the buyer has one; ``withdrawn``, the
    shop was deleted; ``timed-out``, it could not be stored, and the buyer may order again."""

    order_id: str
    voucher_id: str
    status: Literal["pending", "success", "failed"]
    reason: Literal["sold-out", "already-bought", "timed-out", "withdrawn"] | None

    @classmethod
    def of(cls, order: model.Order) -> OrderResponse:
        return cls.model_validate(
            {
                "order_id": str(order.id),
                "voucher_id": str(order.voucher_id),
                "status": order.status,
                "reason": order.reason,
            }
        )
