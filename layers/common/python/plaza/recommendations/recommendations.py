"""What is recommended, as it stands on the queue and in lists. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from plaza.infra import messages
from plaza.infra.messages import ID, list_of, read

LENGTH = 100
MOST_SHOPS = 10  # of one message
_SHOP_IDS = list_of(ID, 1, MOST_SHOPS)


class Recommended(NamedTuple):
    """The best reviews of a shop, and the newest fact it was stale by (None: it wasn't)."""

    review_ids: Sequence[int]
    stale_seq: int | None


class Rebuild(NamedTuple):
    """Shops whose lists are to be made again."""

    shop_ids: Sequence[int]

    def to_json(self) -> str:
        """As it stands on the queue."""
        return messages.encode({"shop_ids": list(self.shop_ids)})

    @classmethod
    def from_json(cls, body: str) -> Rebuild:
        """What ``to_json`` wrote. Raises BadRecord."""
        return cls(read(messages.read_object(body), "shop_ids", _SHOP_IDS))
