"""What is recommended, as it stands on the queue and in lists. No I/O."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from plaza.infra.queues import BadRecord

RECOMMENDATIONS = "recommendations"  # the queue of lists that are to be made again
LENGTH = 100
MOST_SHOPS = 10  # of one message
_MOST_ID = 2**63 - 1


class Recommended(NamedTuple):
    """The best reviews of a shop, and the newest fact it was stale by (None: it wasn't)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class Rebuild(NamedTuple):
    """Shops whose lists are to be made again."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return json.dumps({"shop_ids": list(self.shop_ids)}, separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> Rebuild:
        """What ``to_json`` wrote. Raises BadRecord."""
        try:
            shop_ids = json.loads(body)["shop_ids"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRecord(f"no shops: {type(error).__name__} {error}") from None
        if type(shop_ids) is not list or not 0 < len(shop_ids) <= MOST_SHOPS:
            raise BadRecord("no shops, or too many")
        if not all(type(shop_id) is int and 0 < shop_id <= _MOST_ID for shop_id in shop_ids):
            raise BadRecord(f"a shop is {str(shop_ids)[:100]!r}")
        return cls(shop_ids)
