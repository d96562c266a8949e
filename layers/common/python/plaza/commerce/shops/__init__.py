"""Shops, their types, their members, and the search for shops nearby. All callers read shops;
admins write them, and owners their own.

Other contexts use ``queries``, ``refresh`` after changes that bypassed the API, and ``inspection``
to compare Redis with MySQL.
"""

from plaza.commerce.shops.model import (
    MAX_LATITUDE,
    MAX_LONGITUDE,
    MAX_RADIUS_M,
    Area,
    NearCursor,
    NearPage,
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
    "NearCursor",
    "NearPage",
    "NearShop",
    "Place",
    "Shop",
    "ShopChange",
    "ShopDraft",
    "ShopType",
    "ShopTypeDraft",
    "inspection",
    "queries",
    "refresh",
]
