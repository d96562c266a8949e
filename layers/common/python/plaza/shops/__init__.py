"""Shops: their pages, their types, what is near. Written by admins, read by everybody.

Other contexts use ``reading``, and ``refreshing`` for rows that were changed past the API.
"""

from plaza.shops.shops import (
    MOST_LATITUDE,
    MOST_LONGITUDE,
    MOST_RADIUS_M,
    Area,
    Changed,
    NearPage,
    NearShop,
    Place,
    Position,
    Shop,
    ShopDraft,
    ShopType,
    ShopTypeDraft,
)

__all__ = [
    "MOST_LATITUDE",
    "MOST_LONGITUDE",
    "MOST_RADIUS_M",
    "Area",
    "Changed",
    "NearPage",
    "NearShop",
    "Place",
    "Position",
    "Shop",
    "ShopDraft",
    "ShopType",
    "ShopTypeDraft",
    "reading",
    "refreshing",
]
