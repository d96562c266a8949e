"""Schemas of the API: shops and shop types."""

from __future__ import annotations

from typing import Annotated, Any

from aws_lambda_powertools.event_handler.openapi.params import Query
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field

from plaza.commerce.shops.model import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    MAX_RADIUS_M,
    Member,
    NearShop,
    Role,
    Shop,
    ShopDraft,
    ShopType,
    ShopTypeDraft,
)
from plaza.infra.http.schemas import (
    ACCEPT_INTEGRAL_FLOAT,
    Currency,
    IdText,
    RequestModel,
    ResponseModel,
    Time,
)
from plaza.infra.http.texts import HTTPS_URL, LINE_RULE, VISIBLE, check_line, trim
from plaza.infra.mysql.sql import from_us
from plaza.infra.runtime.settings import settings

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

_Line = Annotated[
    str,
    Field(min_length=1, description=LINE_RULE, json_schema_extra={"pattern": VISIBLE}),
    BeforeValidator(trim),
    AfterValidator(check_line),
]
_Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="An https URL.")]
_X = Annotated[
    float, Field(ge=-MAX_LONGITUDE, le=MAX_LONGITUDE, description="Longitude in degrees.")
]
_Y = Annotated[float, Field(ge=-MAX_LATITUDE, le=MAX_LATITUDE, description="Latitude in degrees.")]
_Cents = Annotated[int, Field(ge=0, le=100_000_000), ACCEPT_INTEGRAL_FLOAT]

_SHOP_EXAMPLE: dict[str, Any] = {
    "name": "Corner Coffee",
    "type_id": "3",
    "area": "Mitte",
    "address": "1 Main Street",
    "place": {"x": 13.3889, "y": 52.5170},
    "images": ["https://images.example/shop.jpg"],
    "avg_price_cents": 850,
    "open_hours": "Mon-Fri 8-18",
}
_STORED_SHOP_EXAMPLE = _SHOP_EXAMPLE | {
    "id": "9000001",
    "currency": "EUR",
    "created_at": "2026-11-01T09:00:00.000000Z",
    "updated_at": "2026-11-20T09:30:00.000000Z",
}


class PlaceRequest(RequestModel):
    """The coordinates of a shop."""

    x: _X
    y: _Y


class PlaceResponse(ResponseModel):
    """The coordinates of a shop."""

    x: Annotated[float, Field(description="Longitude in degrees.")]
    y: Annotated[float, Field(description="Latitude in degrees.")]


class ShopRequest(RequestModel):
    """All fields of a shop. A field that is not sent is null or empty."""

    model_config = ConfigDict(json_schema_extra={"examples": [_SHOP_EXAMPLE]})

    name: Annotated[_Line, Field(max_length=200)]
    type_id: Annotated[IdText | None, Field(description="Id of the shop type.")] = None
    area: Annotated[_Line, Field(max_length=64)] | None = None
    address: Annotated[_Line, Field(max_length=255)] | None = None
    place: Annotated[
        PlaceRequest | None,
        Field(description="Coordinates. A shop without them is in no list of nearby shops."),
    ] = None
    images: Annotated[list[_Image], Field(max_length=9, description="URLs of up to 9 images.")] = (
        Field(default_factory=list)
    )
    avg_price_cents: Annotated[
        _Cents | None, Field(description="Average price for one person in cents.")
    ] = None
    open_hours: Annotated[_Line, Field(max_length=200)] | None = None

    def to_draft(self) -> ShopDraft:
        """Returns the draft of the shop."""
        return ShopDraft(
            name=self.name,
            type_id=None if self.type_id is None else int(self.type_id),
            area=self.area,
            address=self.address,
            x=self.place.x if self.place else None,
            y=self.place.y if self.place else None,
            images=tuple(self.images),
            avg_price_cents=self.avg_price_cents,
            open_hours=self.open_hours,
        )


class ShopTypeRequest(RequestModel):
    """All fields of a shop type."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "Café", "icon": "https://images.example/cafe.png", "sort": 10}]
        }
    )

    name: Annotated[_Line, Field(max_length=64)]
    icon: Annotated[_Image | None, Field(description="URL of the icon.")] = None
    sort: Annotated[
        int,
        Field(
            ge=-1_000_000, le=1_000_000, description="Place in the list: the lowest comes first."
        ),
        ACCEPT_INTEGRAL_FLOAT,
    ] = 0

    def to_draft(self) -> ShopTypeDraft:
        """Returns the draft of the shop type."""
        return ShopTypeDraft(self.name, self.icon, self.sort)


class ShopTypeResponse(ResponseModel):
    """A type of shops, such as cafés."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"id": "3", "name": "Café", "icon": "https://images.example/cafe.png"}]
        }
    )

    id: str
    name: str
    icon: Annotated[str | None, Field(description="URL of the icon; null for none.")]

    @classmethod
    def of(cls, shop_type: ShopType) -> ShopTypeResponse:
        """Returns the shop type as the API sends it."""
        return cls(id=str(shop_type.id), name=shop_type.name, icon=shop_type.icon)


class ShopResponse(ResponseModel):
    """A shop."""

    model_config = ConfigDict(json_schema_extra={"examples": [_STORED_SHOP_EXAMPLE]})

    id: str
    name: str
    type_id: Annotated[str | None, Field(description="Id of the shop type.")]
    area: str | None
    address: str | None
    place: PlaceResponse | None
    images: Annotated[list[str], Field(description="URLs of the images.")]
    avg_price_cents: Annotated[
        int | None, Field(description="Average price for one person in cents.")
    ]
    currency: Currency
    open_hours: str | None
    created_at: Annotated[Time, Field(description="When it was created.")]
    updated_at: Annotated[Time, Field(description="When it was changed last.")]

    @classmethod
    def of(cls, shop: Shop) -> ShopResponse:
        """Returns the shop as the API sends it."""
        return cls.model_validate(_fields_of(shop))


class ShopDetails(ShopResponse):
    """A shop, and what its reviews say: of all that are not deleted."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                _STORED_SHOP_EXAMPLE | {"reviews": 12, "score_total": 51, "average_score": 4.25}
            ]
        }
    )

    reviews: Annotated[
        int | None, Field(description="The exact number; null while it cannot be read.")
    ]
    score_total: Annotated[
        int | None, Field(description="The sum of their scores; null with `reviews`.")
    ]
    average_score: Annotated[
        float | None, Field(description="1 to 5, to two decimals; null without a review.")
    ]

    @classmethod
    def of_reviewed(cls, shop: Shop, totals: tuple[int, int] | None) -> ShopDetails:
        """Returns ``shop`` as the API sends it to a reader of its page."""
        reviews, score = totals or (None, None)
        average = round(score / reviews, 2) if reviews and score is not None else None
        of_reviews = {"reviews": reviews, "score_total": score, "average_score": average}
        return cls.model_validate(_fields_of(shop) | of_reviews)


class OwnShopResponse(ShopResponse):
    """A shop that the caller acts for."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_STORED_SHOP_EXAMPLE | {"role": "owner"}]}
    )

    role: Annotated[Role, Field(description="The caller's role in the shop.")]

    @classmethod
    def of_member(cls, shop: Shop, role: Role) -> OwnShopResponse:
        """Returns ``shop`` as the API sends it to a member."""
        return cls.model_validate(_fields_of(shop) | {"role": role})


class MemberRequest(RequestModel):
    """The role of a member."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"role": "staff"}]})

    role: Annotated[
        Role,
        Field(
            description=(
                "`owner`: edits the shop, offers vouchers and appoints members. `staff`: redeems "
                "codes, and sees sales and redemptions."
            )
        ),
    ]


class MemberResponse(ResponseModel):
    """A user who acts for a shop."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"user_id": "42", "role": "staff", "since": "2026-11-20T09:30:00Z"}]
        }
    )

    user_id: str
    role: Role
    since: Annotated[Time, Field(description="When the user became a member.")]

    @classmethod
    def of(cls, member: Member) -> MemberResponse:
        """Returns ``member`` as the API sends it."""
        return cls(user_id=str(member.user_id), role=member.role, since=from_us(member.since_us))


class NearbyShopResponse(ShopResponse):
    """A shop and its distance from the requested place."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [_STORED_SHOP_EXAMPLE | {"distance_m": 412.7}]}
    )

    distance_m: Annotated[float, Field(description="Straight distance in metres.")]

    @classmethod
    def at(cls, near: NearShop) -> NearbyShopResponse:
        """Returns the shop as the API sends it."""
        return cls.model_validate(_fields_of(near.shop) | {"distance_m": near.distance_m})


def _fields_of(shop: Shop) -> dict[str, object]:
    return {
        "id": str(shop.id),
        "name": shop.name,
        "type_id": None if shop.type_id is None else str(shop.type_id),
        "area": shop.area,
        "address": shop.address,
        "place": None if shop.x is None or shop.y is None else {"x": shop.x, "y": shop.y},
        "images": list(shop.images),
        "avg_price_cents": shop.avg_price_cents,
        "currency": settings().currency,
        "open_hours": shop.open_hours,
        "created_at": from_us(shop.created_us),
        "updated_at": from_us(shop.updated_us),
    }
