"""Review totals of shops: how many reviews each has, and the sum of their scores.

Owns the table shop_counter. Reviews change it in their transactions. Other contexts use ``totals``
and ``ShopCounter``; shops read ``totals`` by its manifest.
"""

from plaza.social.shop_scores.model import ShopCounter

__all__ = ["ShopCounter", "totals"]
