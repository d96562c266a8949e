"""Shops: their pages, their types, what is near. Written by admins, read by everybody."""

from plaza.shops.near import NearPage, NearShop, find_near
from plaza.shops.queues import SHOPS
from plaza.shops.reading import forget_types, read, read_many, read_types
from plaza.shops.refreshing import adopt, refresh_everything, work_through
from plaza.shops.shop_types import create_type, delete_type, replace_type
from plaza.shops.shops import (
    MOST_LATITUDE,
    MOST_LONGITUDE,
    MOST_RADIUS_M,
    Area,
    Changed,
    Place,
    Position,
    Refresh,
    Shop,
    ShopDraft,
    ShopType,
    ShopTypeDraft,
    Step,
)
from plaza.shops.writing import create, delete, replace

__all__ = [
    "MOST_LATITUDE",
    "MOST_LONGITUDE",
    "MOST_RADIUS_M",
    "SHOPS",
    "Area",
    "Changed",
    "NearPage",
    "NearShop",
    "Place",
    "Position",
    "Refresh",
    "Shop",
    "ShopDraft",
    "ShopType",
    "ShopTypeDraft",
    "Step",
    "adopt",
    "create",
    "create_type",
    "delete",
    "delete_type",
    "find_near",
    "forget_types",
    "read",
    "read_many",
    "read_types",
    "refresh_everything",
    "replace",
    "replace_type",
    "work_through",
]
