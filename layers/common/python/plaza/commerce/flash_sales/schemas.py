"""Schemas of the API: vouchers and orders."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from plaza.commerce.flash_sales import model
from plaza.commerce.flash_sales.model import (
    MAX_STOCK,
    OrderView,
    RedeemedOrder,
    SaleState,
    Terms,
    VoucherAvailability,
    VoucherSummary,
)
from plaza.commerce.flash_sales.sale_report import SaleReport
from plaza.commerce.flash_sales.sale_status import SaleStatus
from plaza.infra.derived import ids
from plaza.infra.http.schemas import (
    ACCEPT_INTEGRAL_FLOAT,
    Currency,
    IdText,
    RequestModel,
    ResponseModel,
    Time,
    Title,
)
from plaza.infra.http.texts import FieldError
from plaza.infra.mysql.sql import from_us, to_us
from plaza.infra.runtime.settings import settings

State = Annotated[
    SaleState, Query(description="State of the sales. `coming`: not open yet; `ended`: closed.")
]

_RFC_3339 = (
    r"^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]"
    r"(\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})$"
)


_TIME_DETAIL = "must be a time of RFC 3339 with an offset, from 2000 to 2999"


def _check_text(value: object) -> object:
    """Returns ``value``. Raises FieldError for numbers, which pydantic would read as seconds."""
    if not isinstance(value, str) or not re.fullmatch(_RFC_3339, value):
        raise FieldError("wrong-form", _TIME_DETAIL)
    return value


def _check_year(value: datetime) -> datetime:
    """Returns ``value``. Raises FieldError for a time whose year in UTC, which responses have, is
    another one: what was read could not be sent again."""
    if not 2000 <= value.astimezone(UTC).year <= 2999:
        raise FieldError("wrong-form", _TIME_DETAIL)
    return value


RequestedTime = Annotated[
    AwareDatetime,
    Field(
        strict=False,
        description="Time of RFC 3339 with its offset, from 2000 to 2999.",
        json_schema_extra={"pattern": _RFC_3339},
    ),
    BeforeValidator(_check_text),
    AfterValidator(_check_year),
]

_KIND = "`flash`: a sale with a start and an end. `ordinary`: one that may have neither."
_OPENS = "Start of the sale; null for an ordinary voucher that is open at once."
_CLOSES = "End of the sale; null for an ordinary voucher without one."
_EXPIRES = "Until when an order can be used; null: without an end."
_TIME = "Time of RFC 3339 with its offset, from 2000 to 2999."

_Price = Annotated[
    int,
    Field(ge=0, le=10_000_000_000, description="Price of one unit in cents."),
    ACCEPT_INTEGRAL_FLOAT,
]

_VOUCHER_EXAMPLE: dict[str, Any] = {
    "shop_id": "9000001",
    "kind": "flash",
    "title": "50% off all cakes",
    "price_cents": 1_500,
    "stock": 500,
    "opens_at": "2030-11-29T12:00:00Z",
    "closes_at": "2030-11-29T14:00:00Z",
    "expires_at": "2031-03-31T00:00:00Z",
}
_FLASH_NEEDS_TIMES: dict[str, Any] = {
    "if": {"properties": {"kind": {"const": "flash"}}},  # also without one: it is the default
    "then": {
        "required": ["opens_at"],
        "properties": {"opens_at": {"type": "string"}},
        "anyOf": [
            {"required": [end], "properties": {end: {"type": "string"}}}
            for end in ("closes_at", "expires_at")
        ],
    },
}
_STORED: dict[str, Any] = {"id": "9400001", "currency": "EUR", "exact": True}


class VoucherRequest(RequestModel):
    """A voucher to create."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_VOUCHER_EXAMPLE], **_FLASH_NEEDS_TIMES}
    )

    shop_id: IdText
    kind: Annotated[Literal["flash", "ordinary"], Field(description=_KIND)] = "flash"
    title: Title
    price_cents: _Price
    stock: Annotated[
        int, Field(ge=1, le=MAX_STOCK, description="Number of units."), ACCEPT_INTEGRAL_FLOAT
    ]
    opens_at: Annotated[
        RequestedTime | None, Field(description=f"{_OPENS} A flash voucher needs it. {_TIME}")
    ] = None
    closes_at: Annotated[
        RequestedTime | None,
        Field(
            description=(
                f"{_CLOSES} After `opens_at` and in the future; `expires_at` by default. A flash "
                f"voucher needs it. {_TIME}"
            )
        ),
    ] = None
    expires_at: Annotated[
        RequestedTime | None, Field(description=f"{_EXPIRES} Not before `closes_at`. {_TIME}")
    ] = None

    def terms(self, shop_id: int) -> Terms:
        """Returns the terms of the voucher, in ``shop_id``."""
        expires_us = _us(self.expires_at)
        return Terms(
            shop_id=shop_id,
            title=self.title,
            price_cents=self.price_cents,
            stock=self.stock,
            opens_us=_us(self.opens_at) or model.ALWAYS_OPEN_US,
            closes_us=_us(self.closes_at) or expires_us or model.NEVER_CLOSES_US,
            kind=self.kind,
            expires_us=expires_us,
        )


class VoucherUpdateRequest(RequestModel):
    """The fields of a voucher to change: at least one."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "examples": [{"title": "50% off all cakes and pies"}],
        }
    )

    # A field that is not sent is not in ``changes``; its default is never used.
    title: Title = Field(default_factory=str)
    price_cents: _Price = Field(default_factory=int)
    expires_at: Annotated[
        RequestedTime,
        Field(description=f"Not earlier than it was, and only until it has passed. {_TIME}"),
    ] = Field(default_factory=lambda: datetime.max.replace(tzinfo=UTC))

    @model_validator(mode="after")
    def _require_a_field(self) -> VoucherUpdateRequest:
        if not self.model_fields_set:
            raise FieldError("missing", "send title, price_cents or expires_at")
        return self

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that were sent, by attribute of ``Terms``."""
        sent = self.model_dump(exclude_unset=True)
        expires_at = sent.pop("expires_at", None)
        return sent | ({"expires_us": _us(expires_at)} if expires_at else {})


def _us(at: datetime | None) -> int | None:
    return None if at is None else to_us(at.astimezone(UTC))


def _at(at_us: int | None) -> datetime | None:
    is_time = at_us not in (None, model.ALWAYS_OPEN_US, model.NEVER_CLOSES_US)
    return from_us(at_us) if is_time and at_us is not None else None


_ORDER_EXAMPLE: dict[str, Any] = {"order_id": "121007125353431041", "voucher_id": "9400001"}


class VoucherResponse(ResponseModel):
    """A voucher."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _VOUCHER_EXAMPLE | _STORED | {"left": 137},
                _VOUCHER_EXAMPLE | _STORED | {"left": 500},
            ]
        }
    )

    id: str
    shop_id: str
    kind: Annotated[Literal["flash", "ordinary"], Field(description=_KIND)]
    title: str
    price_cents: Annotated[int, Field(description="Price of one unit in cents.")]
    currency: Currency
    stock: Annotated[int, Field(description="Number of units.")]
    left: Annotated[int, Field(description="Units that can still be ordered.")]
    opens_at: Annotated[Time | None, Field(description=_OPENS)]
    closes_at: Annotated[Time | None, Field(description=_CLOSES)]
    expires_at: Annotated[Time | None, Field(description=_EXPIRES)]
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
        return cls.model_validate(
            {
                "id": str(voucher.id),
                "shop_id": str(terms.shop_id),
                "kind": terms.kind,
                "title": terms.title,
                "price_cents": terms.price_cents,
                "currency": settings().currency,
                "stock": terms.stock,
                "left": left,
                "opens_at": _at(terms.opens_us),
                "closes_at": _at(terms.closes_us),
                "expires_at": _at(terms.expires_us),
                "exact": exact,
            }
        )


class OrderResponse(ResponseModel):
    """An order of one unit of a voucher."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _ORDER_EXAMPLE | {"status": "success", "reason": None},
                _ORDER_EXAMPLE | {"status": "pending", "reason": None},
                _ORDER_EXAMPLE | {"status": "cancelled", "reason": None},
            ]
        }
    )

    order_id: str
    voucher_id: str
    status: Annotated[
        Literal["pending", "success", "failed", "used", "cancelled", "expired"],
        Field(
            description=(
                "`pending` is not decided: read the order again after `Retry-After`. A `success` "
                "becomes `used` by its code, `cancelled` by its buyer, or `expired` with the "
                "voucher; `failed`, `used`, `cancelled` and `expired` are final."
            )
        ),
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


class OrderedShop(ResponseModel):
    """The shop that an order can be used in."""

    id: str
    name: Annotated[str, Field(description="Its name, up to a minute old.")]


class OrderedVoucher(ResponseModel):
    """The voucher of an order."""

    title: str
    price_cents: Annotated[int, Field(description="Price of one unit in cents.")]
    currency: Currency
    expires_at: Annotated[Time | None, Field(description=_EXPIRES)]
    shop: OrderedShop

    @classmethod
    def of(cls, voucher: VoucherSummary) -> OrderedVoucher:
        """Returns ``voucher`` as the API sends it."""
        return cls(
            title=voucher.title,
            price_cents=voucher.price_cents,
            currency=settings().currency,
            expires_at=_at(voucher.expires_us),
            shop=OrderedShop(id=str(voucher.shop_id), name=voucher.shop_name),
        )


class OrderDetails(OrderResponse):
    """An order with its times, its voucher and its shop."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _ORDER_EXAMPLE
                | {
                    "status": "used",
                    "reason": None,
                    "created_at": "2030-11-29T12:00:04Z",
                    "decided_at": "2030-11-29T12:00:05.120000Z",
                    "used_at": "2030-12-03T18:04:09Z",
                    "voucher": {
                        "title": "50% off all cakes",
                        "price_cents": 1_500,
                        "currency": "EUR",
                        "expires_at": "2031-03-31T00:00:00Z",
                        "shop": {"id": "9000001", "name": "Corner Coffee"},
                    },
                }
            ]
        }
    )

    created_at: Annotated[Time, Field(description="When it was placed, to the second.")]
    decided_at: Annotated[
        Time | None,
        Field(description="When it succeeded or failed. Null: pending, or it cannot be read now."),
    ]
    used_at: Annotated[Time | None, Field(description="When the shop redeemed its code.")]
    voucher: Annotated[
        OrderedVoucher | None, Field(description="Null while it cannot be read: read it again.")
    ]

    @classmethod
    def of_view(cls, view: OrderView) -> OrderDetails:
        """Returns ``view`` as the API sends it."""
        return cls.model_validate(
            OrderResponse.of(view.order).model_dump()
            | {
                "created_at": from_us(ids.created_at_s(view.order.id) * 1_000_000),
                "decided_at": _at(view.decided_us),
                "used_at": _at(view.used_us),
                "voucher": view.voucher and OrderedVoucher.of(view.voucher),
            }
        )


class WaitlistResponse(ResponseModel):
    """The caller's position in the waitlist of a voucher."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "voucher_id": "9400001",
                    "status": "waiting",
                    "position": 12,
                    "accept_by": None,
                },
                {
                    "voucher_id": "9400001",
                    "status": "offered",
                    "position": None,
                    "accept_by": "2030-11-29T12:31:04.120000Z",
                },
            ]
        }
    )

    voucher_id: str
    status: Annotated[
        Literal["waiting", "offered"],
        Field(description="`offered`: a unit is set aside for the caller until `accept_by`."),
    ]
    position: Annotated[int | None, Field(description="1 for the next one; null with an offer.")]
    accept_by: Annotated[
        Time | None,
        Field(description="Order the voucher until then; null while waiting."),
    ]

    @classmethod
    def of(cls, voucher_id: str, waiting: model.WaitlistPosition) -> WaitlistResponse:
        """Returns ``waiting`` as the API sends it."""
        until_us = waiting.accept_by_us
        return cls(
            voucher_id=voucher_id,
            status="waiting" if until_us is None else "offered",
            position=waiting.position,
            accept_by=None if until_us is None else from_us(until_us),
        )


class SaleStatusResponse(ResponseModel):
    """The status of a sale."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "voucher_id": "9400001",
                    "phase": "upcoming",
                    "opens_at": "2030-11-29T12:00:00Z",
                    "closes_at": "2030-11-29T14:00:00Z",
                    "now": "2030-11-29T11:59:48.250000Z",
                    "left": 500,
                    "waiting": 0,
                    "exact": True,
                }
            ]
        }
    )

    voucher_id: str
    phase: Annotated[
        Literal["upcoming", "open", "sold-out", "closed", "withdrawn"],
        Field(description="`sold-out`: units that return go to the waitlist."),
    ]
    opens_at: Annotated[Time | None, Field(description=_OPENS)]
    closes_at: Annotated[Time | None, Field(description=_CLOSES)]
    now: Annotated[
        Time,
        Field(description="The time of the server: count down from `opens_at` minus `now`."),
    ]
    left: Annotated[int, Field(description="Units that can still be ordered.")]
    waiting: Annotated[int, Field(description="Buyers in the waitlist.")]
    exact: Annotated[bool, Field(description="False while the sale is not loaded into Redis.")]

    @classmethod
    def of(cls, voucher_id: str, status: SaleStatus) -> SaleStatusResponse:
        """Returns ``status`` as the API sends it."""
        return cls(
            voucher_id=voucher_id,
            phase=status.phase,
            opens_at=_at(status.opens_us),
            closes_at=_at(status.closes_us),
            now=from_us(status.now_us),
            left=status.left,
            waiting=status.waiting,
            exact=status.exact,
        )


_SALE_EXAMPLE: dict[str, Any] = {
    "voucher_id": "9400001",
    "shop_id": "9000001",
    "title": "50% off all cakes",
    "kind": "flash",
    "opens_at": "2026-11-22T12:00:00Z",
    "closes_at": "2026-11-22T14:00:00Z",
    "withdrawn": False,
    "loaded": True,
    "stock": 500,
    "left": 120,
    "pending": 14,
    "sold": 361,
    "stored": 359,
    "failed": 2,
    "cancelled": 7,
    "offered": 5,
    "waiting": 31,
}


class SaleResponse(ResponseModel):
    """A sale. If it is loaded, `stock` is `left` + `pending` + `sold` + `offered`."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SALE_EXAMPLE]})

    voucher_id: str
    shop_id: str
    title: str
    kind: Annotated[Literal["flash", "ordinary"], Field(description=_KIND)]
    opens_at: Annotated[Time | None, Field(description=_OPENS)]
    closes_at: Annotated[Time | None, Field(description=_CLOSES)]
    withdrawn: Annotated[bool, Field(description="Whether it cannot be ordered any more.")]
    loaded: Annotated[
        bool,
        Field(description="Whether Redis has the sale. If not, the units are as MySQL has them."),
    ]
    stock: Annotated[int, Field(description="Number of units.")]
    left: Annotated[int, Field(description="Units that can still be ordered.")]
    pending: Annotated[int, Field(description="Units of orders that MySQL has not decided yet.")]
    sold: Annotated[int, Field(description="Units of successful orders.")]
    stored: Annotated[int, Field(description="Successful orders in MySQL; `sold` follows it.")]
    failed: Annotated[int, Field(description="Failed orders; their units returned to the sale.")]
    cancelled: Annotated[
        int, Field(description="Cancelled orders; their units returned to the sale.")
    ]
    offered: Annotated[int, Field(description="Returned units set aside for waiting buyers.")]
    waiting: Annotated[int, Field(description="Buyers in the waitlist.")]

    @classmethod
    def of(cls, report: SaleReport) -> SaleResponse:
        """Returns ``report`` as the API sends it."""
        voucher, counts, failed, waiting = report
        terms = voucher.terms
        stored = terms.stock - voucher.stock
        return cls.model_validate(
            {
                "voucher_id": str(voucher.id),
                "shop_id": str(terms.shop_id),
                "title": terms.title,
                "kind": terms.kind,
                "opens_at": _at(terms.opens_us),
                "closes_at": _at(terms.closes_us),
                "withdrawn": voucher.withdrawn,
                "loaded": counts is not None,
                "stock": terms.stock,
                "left": counts.stock if counts else voucher.stock,
                "pending": counts.pending if counts else 0,
                "sold": counts.sold if counts else stored,
                "stored": stored,
                "failed": failed,
                "cancelled": voucher.cancelled,
                "offered": counts.offered if counts else 0,
                "waiting": waiting,
            }
        )


class RedemptionCodeResponse(ResponseModel):
    """The code of an order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"order_id": "121007125353431041", "code": "7K3M-Q0ZD-X4TN-96VB"}]
        }
    )

    order_id: str
    code: Annotated[
        str,
        Field(description="Shown only in this response; the server stores a digest of it."),
    ]


class RedemptionRequest(RequestModel):
    """The code of the order to use."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"code": "7K3M-Q0ZD-X4TN-96VB"}]})

    code: Annotated[
        str,
        Field(
            min_length=16,
            max_length=32,
            description="In upper or lower case, with or without hyphens.",
            pattern=r"^[0-9A-Za-z -]+$",
        ),
    ]


class RedemptionResponse(ResponseModel):
    """The use of an order."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_ORDER_EXAMPLE | {"used_at": "2030-12-03T18:04:09Z"}]}
    )

    order_id: str
    voucher_id: str
    used_at: Annotated[Time, Field(description="When the order was used.")]


class RedeemedOrderResponse(ResponseModel):
    """An order that was used in the shop."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _ORDER_EXAMPLE
                | {
                    "title": "50% off all cakes",
                    "used_at": "2030-12-03T18:04:09Z",
                    "used_by": "42",
                }
            ]
        }
    )

    order_id: str
    voucher_id: str
    title: Annotated[
        str | None,
        Field(description="Of the voucher; null while it cannot be read: read it again."),
    ]
    used_at: Annotated[Time, Field(description="When its code was redeemed.")]
    used_by: Annotated[str, Field(description="Id of the user who redeemed its code.")]

    @classmethod
    def of(cls, order: RedeemedOrder, voucher: VoucherSummary | None) -> RedeemedOrderResponse:
        """Returns ``order`` as the API sends it."""
        return cls(
            order_id=str(order.order_id),
            voucher_id=str(order.voucher_id),
            title=voucher and voucher.title,
            used_at=from_us(order.used_us),
            used_by=str(order.used_by),
        )
