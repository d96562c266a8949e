"""API models of shops and shop types."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from plaza.infra.http import ACCEPT_INTEGRAL_FLOAT, RequestModel, ResponseModel
from plaza.infra.sql import from_us
from plaza.infra.texts import HTTPS_URL, LINE, check_line
from plaza.shops.model import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    NearShop,
    Shop,
    ShopDraft,
    ShopType,
    ShopTypeDraft,
)

_Line = Annotated[
    str, Field(min_length=1, json_schema_extra={"pattern": LINE}), AfterValidator(check_line)
]
_Image = Annotated[str, Field(max_length=512, pattern=HTTPS_URL, description="An https URL.")]
_X = Annotated[float, Field(ge=-MAX_LONGITUDE, le=MAX_LONGITUDE, description="Longitude, degrees.")]
_Y = Annotated[float, Field(ge=-MAX_LATITUDE, le=MAX_LATITUDE, description="Latitude, degrees.")]
_Cents = Annotated[int, Field(ge=0, le=100_000_000), ACCEPT_INTEGRAL_FLOAT]


class PlaceRequest(RequestModel):
    """A place: longitude and latitude."""

    x: _X
    y: _Y


class PlaceResponse(ResponseModel):
    """A place: longitude and latitude, degrees."""

    x: float
    y: float


class ShopRequest(RequestModel):
    """A shop to store. Without a place no search finds it. ``avg_price_cents`` is per person."""

    name: Annotated[_Line, Field(max_length=200)]
    type_id: Annotated[str, Field(pattern=r"^[1-9][0-9]{0,18}$")] | None = None
    area: Annotated[_Line, Field(max_length=64)] | None = None
    address: Annotated[_Line, Field(max_length=255)] | None = None
    place: PlaceRequest | None = None
    images: list[_Image] = Field(default_factory=list, max_length=9)
    avg_price_cents: _Cents | None = None
    open_hours: Annotated[_Line, Field(max_length=200)] | None = None

    def to_draft(self) -> ShopDraft:
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
    """A shop type to store. Types are listed by ascending ``sort``."""

    name: Annotated[_Line, Field(max_length=64)]
    icon: _Image | None = None
    sort: Annotated[int, Field(ge=-1_000_000, le=1_000_000), ACCEPT_INTEGRAL_FLOAT] = 0

    def to_draft(self) -> ShopTypeDraft:
        return ShopTypeDraft(self.name, self.icon, self.sort)


class ShopTypeResponse(ResponseModel):
    """A shop type."""

    id: str
    name: str
    icon: str | None

    @classmethod
    def of(cls, shop_type: ShopType) -> ShopTypeResponse:
        return cls(id=str(shop_type.id), name=shop_type.name, icon=shop_type.icon)


class ShopResponse(ResponseModel):
    """A shop. A change that bypassed the API may take some minutes to appear."""

    id: str
    name: str
    type_id: str | None
    area: str | None
    address: str | None
    place: PlaceResponse | None
    images: list[str]
    avg_price_cents: int | None
    open_hours: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, shop: Shop) -> ShopResponse:
        return cls.model_validate(_fields_of(shop))


class NearShopResponse(ShopResponse):
    """A shop, and its distance in a straight line, metres."""

    distance_m: float

    @classmethod
    def at(cls, near: NearShop) -> NearShopResponse:
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
        "open_hours": shop.open_hours,
        "created_at": from_us(shop.created_us),
        "updated_at": from_us(shop.updated_us),
    }
