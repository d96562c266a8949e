"""Shops: their pages, their types, what is near. Written by admins, read by everybody.

Other contexts use ``queries``, and ``refresh`` for rows that were changed past the API.
"""

from plaza.shops.model import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    MAX_RADIUS_M,
    Area,
    NearPage,
    NearPosition,
    NearShop,
    Place,
    Shop,
    ShopChange,
    ShopDraft,
    ShopType,
    ShopTypeDraft,
)

__all__ = [
    "MAX_LATITUDE",
    "MAX_LONGITUDE",
    "MAX_RADIUS_M",
    "Area",
    "NearPage",
    "NearPosition",
    "NearShop",
    "Place",
    "Shop",
    "ShopChange",
    "ShopDraft",
    "ShopType",
    "ShopTypeDraft",
    "queries",
    "refresh",
]
