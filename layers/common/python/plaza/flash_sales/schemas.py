"""Schemas of the API: vouchers and orders."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field

from plaza.flash_sales import model
from plaza.flash_sales.model import MAX_STOCK, Terms, VoucherAvailability
from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, IdText, RequestModel, ResponseModel
from plaza.infra.sql import from_us, to_us
from plaza.infra.texts import LINE_RULE, VISIBLE, check_line

_RFC_3339 = (
    r"^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)


def _check_text(value: object) -> object:
    """Returns ``value``. Raises ValueError for numbers, which pydantic would read as seconds."""
    if not isinstance(value, str) or not re.fullmatch(_RFC_3339, value):
        raise ValueError("must be a time of RFC 3339 with an offset, from 2000 to 2999")
    return value


Time = Annotated[
    AwareDatetime,
    Field(
        strict=False,
        description="Time of RFC 3339 with its offset, from 2000 to 2999.",
        json_schema_extra={"pattern": _RFC_3339},
    ),
    BeforeValidator(_check_text),
]

_VOUCHER_EXAMPLE: dict[str, Any] = {
    "shop_id": "9000001",
    "title": "50% off all cakes",
    "price_cents": 1_500,
    "stock": 500,
    "opens_at": "2030-11-29T12:00:00Z",
    "closes_at": "2030-11-29T14:00:00Z",
}


class VoucherRequest(RequestModel):
    """A voucher to create."""

    model_config = ConfigDict(json_schema_extra={"examples": [_VOUCHER_EXAMPLE]})

    shop_id: IdText
    title: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description=LINE_RULE,
            json_schema_extra={"pattern": VISIBLE},
        ),
        AfterValidator(check_line),
    ]
    price_cents: Annotated[
        int,
        Field(ge=0, le=10_000_000_000, description="Price of one unit in cents."),
        ACCEPT_INTEGRAL_FLOAT,
    ]
    stock: Annotated[
        int, Field(ge=1, le=MAX_STOCK, description="Number of units."), ACCEPT_INTEGRAL_FLOAT
    ]
    opens_at: Time
    closes_at: Annotated[
        Time,
        Field(
            description=(
                "End of the sale, after `opens_at` and in the future. Time of RFC 3339 with its "
                "offset, from 2000 to 2999."
            )
        ),
    ]

    def terms(self, shop_id: int) -> Terms:
        """Returns the terms of the voucher, in ``shop_id``."""
        return Terms(
            shop_id=shop_id,
            title=self.title,
            price_cents=self.price_cents,
            stock=self.stock,
            opens_us=to_us(self.opens_at.astimezone(UTC)),
            closes_us=to_us(self.closes_at.astimezone(UTC)),
        )


_ORDER_EXAMPLE: dict[str, Any] = {"order_id": "256453214000087041", "voucher_id": "9400001"}


class VoucherResponse(ResponseModel):
    """A voucher."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _VOUCHER_EXAMPLE | {"id": "9400001", "left": 137, "exact": True},
                _VOUCHER_EXAMPLE | {"id": "9400001", "left": 500, "exact": True},
            ]
        }
    )

    id: str
    shop_id: str
    title: str
    price_cents: Annotated[int, Field(description="Price of one unit in cents.")]
    stock: Annotated[int, Field(description="Number of units.")]
    left: Annotated[int, Field(description="Units that can still be ordered.")]
    opens_at: Annotated[datetime, Field(description="Start of the sale.")]
    closes_at: Annotated[datetime, Field(description="End of the sale.")]
    exact: Annotated[
        bool,
        Field(
            description=(
                "False while Redis is unavailable: pending orders are not subtracted from `left`."
            )
        ),
    ]

    @classmethod
    def of(cls, offer: VoucherAvailability) -> VoucherResponse:
        """Returns ``offer`` as the API sends it."""
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
    """An order of one unit of a voucher."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _ORDER_EXAMPLE | {"status": "success", "reason": None},
                _ORDER_EXAMPLE | {"status": "pending", "reason": None},
            ]
        }
    )

    order_id: str
    voucher_id: str
    status: Annotated[
        Literal["pending", "success", "failed"],
        Field(description="`pending` is not decided: read the order again after `Retry-After`."),
    ]
    reason: Annotated[
        Literal["sold-out", "already-bought", "timed-out", "withdrawn"] | None,
        Field(
            description=(
                "Why the order failed; null otherwise. `sold-out`: no unit is left. "
                "`already-bought`: the buyer has an order of this voucher. `withdrawn`: the "
                "voucher was withdrawn, or its shop deleted. `timed-out`: it could not be stored; "
                "order again."
            )
        ),
    ]

    @classmethod
    def of(cls, order: model.Order) -> OrderResponse:
        """Returns ``order`` as the API sends it."""
        return cls.model_validate(
            {
                "order_id": str(order.id),
                "voucher_id": str(order.voucher_id),
                "status": order.status,
                "reason": order.reason,
            }
        )
