"""What reviews need to know of orders; it loads nothing of Redis."""

from __future__ import annotations

from plaza.commerce.flash_sales.mysql_orders import is_used

__all__ = ["is_used"]
