"""The archive of orders in S3.

orders/month=<YYYY-MM>/<first order>-<last order>-<digest>.jsonl.gz  orders as JSON lines, by id

The month is that in which the orders were placed, which their ids have. A month has any number of
objects. After a run that ended early an order may be in several; its row in ``archived_order`` has
the digest of the one that was compared with MySQL before the order was deleted there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from plaza.commerce.flash_sales.model import ArchivedOrder
from plaza.infra.aws import archive, objects
from plaza.infra.aws.archive import DIGEST_CHARS, ArchiveCorrupt
from plaza.infra.derived import ids
from plaza.infra.runtime.codec import Undecodable, record_codec
from plaza.infra.runtime.process import LocalCache

PREFIX = "orders/"
_NAME = re.compile(rf"\d{{19}}-\d{{19}}-([0-9a-f]{{{DIGEST_CHARS}}})\.jsonl\.gz")


class ArchivedPage(NamedTuple):
    """Orders in one object, and the digest in its name."""

    digest: str
    orders: list[ArchivedOrder]


ARCHIVED_ORDER = record_codec("archived_orders", ArchivedOrder)
# Folder -> digest -> key.
_keys: LocalCache[str, dict[str, str]] = LocalCache(max_entries=24, ttl_s=60)


def month_of(order_id: int) -> str:
    """Return the month in which an order was placed: ``2026-08``."""
    return f"{datetime.fromtimestamp(ids.created_at_s(order_id), UTC):%Y-%m}"


def put(orders: Sequence[ArchivedOrder]) -> ArchivedPage:
    """Write orders of one month, in the order of their ids, as one object; return what S3 has of
    it, read back. Two calls. Raises ArchiveCorrupt, ObjectsDown."""
    folder = _folder(month_of(orders[0].order_id))
    prefix = f"{folder}{orders[0].order_id:019d}-{orders[-1].order_id:019d}"
    stored = archive.put_lines(prefix, map(ARCHIVED_ORDER.encode, orders))
    text = archive.read_text(stored.key, stored.sha256, stored.bytes)
    return ArchivedPage(stored.sha256[:DIGEST_CHARS], _decode(stored.key, text))


def find_all(order_ids: Iterable[int], digest: str) -> dict[int, ArchivedOrder]:
    """Return orders of one month from the object with a digest. Two calls; one if this process
    listed the month within a minute, three if the object is newer. Raises ArchiveCorrupt,
    ObjectsDown."""
    expected = set(order_ids)
    folder = _folder(month_of(min(expected)))
    key = _keys.get_or_load(folder, lambda: _list(folder)).get(digest)
    if key is None:  # the object may be newer than the list
        _keys.drop(folder)
        key = _keys.get_or_load(folder, lambda: _list(folder)).get(digest)
    if key is None:
        raise ArchiveCorrupt(f"{folder}: no object {digest}")
    stored = _decode(key, archive.read_text(key, digest))
    orders = {order.order_id: order for order in stored if order.order_id in expected}
    if missing := expected - orders.keys():
        raise ArchiveCorrupt(f"{key}: no order {min(missing)}")
    return orders


def _list(folder: str) -> dict[str, str]:
    names = [key.removeprefix(folder) for key in objects.list_keys(folder)]
    return {match[1]: folder + name for name in names if (match := _NAME.fullmatch(name))}


def _decode(key: str, text: str) -> list[ArchivedOrder]:
    try:
        return [ARCHIVED_ORDER.decode(line) for line in text.splitlines()]
    except Undecodable as error:
        raise ArchiveCorrupt(f"{key}: {error}") from None


def _folder(month: str) -> str:
    return f"{PREFIX}month={month}/"
