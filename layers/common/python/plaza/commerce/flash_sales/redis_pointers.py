"""Pointers in Redis: from which vouchers a buyer's newest orders are."""

from __future__ import annotations

from plaza.commerce.flash_sales.model import Order
from plaza.commerce.flash_sales.redis_keys import pointers_key
from plaza.infra.redis import redis

POINTERS_KEPT = 200
POINTERS_TTL_S = 7 * 86_400


def write_pointer(buyer_id: int, order_id: int, voucher_id: int) -> None:
    """Store from which voucher an order is. One round trip. Raises RedisDown."""
    key = pointers_key(buyer_id)
    redis.pipeline(
        [
            ("ZADD", key, order_id >> 32, f"{order_id}:{voucher_id}"),
            ("ZREMRANGEBYRANK", key, 0, -POINTERS_KEPT - 1),
            ("EXPIRE", key, POINTERS_TTL_S),
        ]
    )


def has_pointer(order: Order, buyer_id: int) -> bool:
    """Return whether an order has a pointer, and so its second copy. Raises RedisDown."""
    member = f"{order.id}:{order.voucher_id}"
    return redis.execute("ZSCORE", pointers_key(buyer_id), member) is not None


def read_pointer(buyer_id: int, order_id: int) -> int | None:
    """Return the voucher id of a buyer's order, None without a pointer. Raises RedisDown."""
    second = order_id >> 32
    for member in redis.execute("ZRANGEBYSCORE", pointers_key(buyer_id), second, second):
        pointed_id, _, voucher_id = member.partition(":")
        if int(pointed_id) == order_id:
            return int(voucher_id)
    return None


def read_pointers(buyer_id: int) -> dict[int, int]:
    """Return order -> voucher of a buyer's newest 200 orders. Raises RedisDown."""
    members = redis.execute("ZRANGE", pointers_key(buyer_id), 0, -1)
    return {int(order): int(voucher) for order, voucher in (m.split(":") for m in members)}
