"""What clients send and get about flash sales."""

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

# From 1971 to 9998: with any offset after 1970 began, and before MySQL's calendar ends.
_RFC_3339 = (
    r"^(197[1-9]|19[89][0-9]|[2-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])"
    r"-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _check_text(value: object) -> object:
    """Not a number, nor text that stands for one: those would be taken for seconds."""
    if not isinstance(value, str) or not re.fullmatch(_RFC_3339, value):
        raise ValueError("is no time of RFC 3339 from 1971 to 9998")
    return value


Time = Annotated[
    AwareDatetime,
    Field(
        strict=False,
        description="RFC 3339, with its offset",
        json_schema_extra={"pattern": _RFC_3339},
    ),
    BeforeValidator(_check_text),
]
ShopId = Annotated[
    str, Field(pattern=r"^[1-9][0-9]{0,18}$", description="a 63-bit id, as a string")
]


class VoucherRequest(RequestModel):
    """What an admin offers. ``price_cents`` is what one costs."""

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
        """What is offered, in ``shop_id``."""
        return Terms(
            shop_id=shop_id,
            title=self.title,
            price_cents=self.price_cents,
            stock=self.stock,
            opens_us=to_us(self.opens_at.astimezone(UTC)),
            closes_us=to_us(self.closes_at.astimezone(UTC)),
        )


class VoucherResponse(ResponseModel):
    """A voucher. ``left`` is how many can still be ordered; when ``exact`` is false, orders that
    are pending aren't taken off."""

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
    def of(cls, offer: VoucherAvailability) -> VoucherResponse:
        """What to answer about ``offer``."""
        voucher, left, exact = offer
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
    """An order. Pending: ask again after Retry-After. ``reason`` says why it failed: all were sold
    (sold-out), you have one (already-bought), its shop was deleted (withdrawn), or it could not be
    saved (timed-out); nothing was taken from you then, and you may order again."""

    order_id: str
    voucher_id: str
    status: Literal["pending", "success", "failed"]
    reason: Literal["sold-out", "already-bought", "timed-out", "withdrawn"] | None

    @classmethod
    def of(cls, order: model.Order) -> OrderResponse:
        """What to answer about ``order``."""
        return cls.model_validate(
            {
                "order_id": str(order.id),
                "voucher_id": str(order.voucher_id),
                "status": order.status,
                "reason": order.reason,
            }
        )
