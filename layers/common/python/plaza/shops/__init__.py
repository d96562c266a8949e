"""Shops, their types and the search for shops nearby. Admins write them, all callers read them.

Other contexts use ``queries``, and ``refresh`` after changes that bypassed the API.
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
