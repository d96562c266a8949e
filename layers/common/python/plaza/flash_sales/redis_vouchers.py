"""Where the state of a sale is in Redis, and the scripts that touch it.

Everything of a voucher has the hash tag of its shard. Under ``{<shard>}:voucher:<id>``:

    :state                     hash    epoch, the life this is; phase: loading, held, live, gone;
                                       initial = stock + pending + sold, at every instant;
                                       opens_us, closes_us; hold_us, until when it may be held;
                                       cursor, the buyer up to whom it is loaded;
                                       full_us: when the bucket that lets orders in is full again
    :lease                     string  somebody is bringing the state back
    :<epoch>:buyers:<bucket>   hash    buyer -> status:order, of those who have one
    :<epoch>:recovery          zset    order:buyer -> when it was reserved or last recovered,
                                       microseconds; exactly those that are pending

And per user, in their own shard, ``{<shard>}:user:<id>:orders``, a zset: order:voucher -> the
second in the order's id. It is written before anybody is told the id, and after the order has its
second copy, on the queue or in MySQL: what is in it gets decided whatever Redis loses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from plaza.flash_sales.flash_sales import (
    PENDING,
    SUCCESS,
    Life,
    NotReady,
    Order,
    OrderReserved,
    Row,
    Voucher,
)
from plaza.infra import redis
from plaza.infra.hot_keys import Argument
from plaza.infra.lua import load_script
from plaza.infra.redis import Call
from plaza.infra.repeats import count_repeats
from plaza.infra.settings import settings
from plaza.infra.shards import shard_of

LEASE_MS = 10_000
HOLD_US = 30_000_000
POINTERS_KEPT = 200
POINTERS_TTL_S = 7 * 86_400
SETTLED_TTL_S = 86_400
_MOST_TRIES = 5
_PER_TRIP = 1_000
MAX_ORDERS_PER_CALL = 250

_LUA = Path(__file__).with_name("lua")
LOAD = load_script(_LUA / "load.lua")
OPEN = load_script(_LUA / "open.lua")
RESERVE = load_script(_LUA / "reserve.lua")
CONFIRM = load_script(_LUA / "confirm.lua")
FAIL = load_script(_LUA / "fail.lua")
RECOVER = load_script(_LUA / "recover.lua")
WITHDRAW = load_script(_LUA / "withdraw.lua")
_ENDED = -2


class Told(NamedTuple):
    """What telling Redis came to: how many orders of an older life it took in, how many units
    went back."""

    adopted: int
    returned: int


class Reservation(NamedTuple):
    """What ``reserve`` came to, see reserve.lua; whether the id may be used for another order."""

    code: str
    detail: str
    id_unused: bool


class Seen(NamedTuple):
    """The counts of a voucher in Redis."""

    epoch: int
    live: bool
    initial: int
    stock: int
    pending: int
    sold: int


def state_key(voucher_id: int) -> str:
    """The state of a voucher."""
    return f"{_base(voucher_id)}:state"


def recovery_key(life: Life) -> str:
    """The pending orders of a life."""
    return f"{_base(life.voucher_id)}:{life.epoch}:recovery"


def buyers_key(life: Life, buyer_id: int) -> str:
    """The bucket of a buyer in a life."""
    return _bucket_key(life, crc32(b"%d" % buyer_id) % life.buckets)


def pointers_key(buyer_id: int) -> str:
    """The orders of a user, as far as Redis knows where they are."""
    return f"{{{shard_of(f'user:{buyer_id}')}}}:user:{buyer_id}:orders"


def find_lives(voucher_ids: Sequence[int]) -> dict[int, Life]:
    """The present lives of those of ``voucher_ids`` that are in Redis. Raises RedisDown."""
    found = redis.pipeline([("HMGET", state_key(v), "epoch", "initial") for v in voucher_ids])
    return {
        voucher_id: Life(voucher_id, int(epoch), int(initial))
        for voucher_id, (epoch, initial) in zip(voucher_ids, found, strict=True)
        if epoch is not None
    }


def take_lease(voucher_id: int) -> bool:
    """True for one who may bring the state back now. Raises RedisDown."""
    return redis.try_lock(f"{_base(voucher_id)}:lease", LEASE_MS / 1000) is not None


def drop_lease(voucher_id: int) -> None:
    """Let others try. Raises RedisDown."""
    redis.execute("DEL", f"{_base(voucher_id)}:lease")


def find_loading(voucher_id: int) -> tuple[Life, str, int] | None:
    """The present life, its phase and its cursor, as ``load`` has them. Raises RedisDown."""
    names = ("epoch", "initial", "phase", "cursor")
    epoch, initial, phase, cursor = redis.execute("HMGET", state_key(voucher_id), *names)
    if epoch is None:
        return None
    return Life(voucher_id, int(epoch), int(initial)), phase, int(cursor)


def load(life: Life, voucher: Voucher, hold_us: int) -> tuple[Life, str, int]:
    """Begin a life unless there is one; (the one there is, its phase, its cursor), see load.lua.

    Raises RedisDown.
    """
    terms = voucher.terms
    args = (life.epoch, life.initial, terms.opens_us, terms.closes_us, hold_us)
    epoch, phase, cursor = redis.run(LOAD, (state_key(life.voucher_id),), args)
    return life._replace(epoch=int(epoch)), phase, int(cursor)


def open_life(life: Life, cursor: int | None, drained: bool) -> str:
    """All is in up to the buyer ``cursor``, None: everybody. What it came to, see open.lua.

    Raises RedisDown.
    """
    args = (life.epoch, "" if cursor is None else cursor, int(drained))
    return str(redis.run(OPEN, (state_key(life.voucher_id),), args))


def reserve(life: Life, order_id: int, buyer_id: int) -> Reservation:
    """Take one unit for a buyer. One round trip. Raises RedisDown: it may be taken all the same.

    A command that was sent again may have been executed before, or be executed later: its id is
    used whatever the reply is.
    """
    rate, before = settings().orders_per_s, count_repeats()
    args = (life.epoch, order_id, buyer_id, rate, rate, settings().most_pending_orders)
    code, *rest = redis.run(RESERVE, _keys(life, buyer_id), args)
    detail = str(rest[0]) if rest else ""
    if code == "EXISTS" and detail == f"{PENDING}:{order_id}":
        code = "RESERVED"  # by the first copy, whose reply was lost
    return Reservation(code, detail, code != "RESERVED" and count_repeats() == before)


def withdraw(lives: Sequence[Life], gone: bool) -> int:
    """Let nobody reserve in lives whose shop is ``gone``, or load them anew when the shop is back.

    Returns how many phases that changed. One round trip. Raises RedisDown.
    """
    calls = [Call(WITHDRAW, (state_key(v.voucher_id),), (v.epoch, int(gone))) for v in lives]
    return sum(int(answer) == 1 for answer in redis.run_all(calls))


def tell(rows: Sequence[Row]) -> Told:
    """Tell Redis what MySQL decided. Two round trips, unless a life ends meanwhile.

    Vouchers that aren't in Redis need not know: whoever brings them back reads MySQL after.
    Raises RedisDown; NotReady when lives ended each time.
    """
    todo, adopted, returned = list(rows), 0, 0
    for _ in range(_MOST_TRIES):
        lives = find_lives(sorted({row.voucher_id for row in todo}))
        todo = [row for row in todo if row.voucher_id in lives]
        if not todo:
            return Told(adopted, returned)
        won, lost = _confirm_calls(todo, lives), [row for row in todo if not row.won]
        calls = won + [
            Call(
                FAIL,
                _keys(lives[row.voucher_id], row.buyer_id),
                (lives[row.voucher_id].epoch, row.order_id, row.buyer_id),
            )
            for row in lost
        ]
        answers = [int(answer) for answer in redis.run_all(calls)]
        adopted += sum(answer for answer in answers[: len(won)] if answer > 0)
        returned += sum(answer for answer in answers[len(won) :] if answer > 0)
        if _ENDED not in answers:
            return Told(adopted, returned)
    raise NotReady("The sale was brought back each time it was told something")


def adopt(life: Life, successes: Sequence[tuple[int, int]]) -> bool:
    """Bring (order, buyer) into a life that is being loaded; False when another has begun.

    Raises RedisDown.
    """
    rows = [Row(order, life.voucher_id, buyer, None) for order, buyer in successes]
    calls = _confirm_calls(rows, {life.voucher_id: life})
    for start in range(0, len(calls), _PER_TRIP):
        answers = [int(answer) for answer in redis.run_all(calls[start : start + _PER_TRIP])]
        if min(answers) < 0:
            return False
    return True


def recover(lives: Sequence[Life], grace_us: int, limit: int) -> list[OrderReserved]:
    """The orders that have been pending for longer than ``grace_us``. Raises RedisDown."""
    calls = [
        Call(RECOVER, (state_key(v.voucher_id), recovery_key(v)), (v.epoch, grace_us, limit))
        for v in lives
    ]
    return [
        OrderReserved(order_id, life.voucher_id, buyer_id, life.epoch)
        for life, members in zip(lives, redis.run_all(calls), strict=True)
        for order_id, buyer_id in (map(int, member.split(":")) for member in members)
    ]


def find_order_of(life: Life, buyer_id: int) -> Order | None:
    """The order that a buyer has in a life, by what this process knows of it. Raises RedisDown."""
    return read_entry(life, redis.execute("HGET", buyers_key(life, buyer_id), str(buyer_id)))


def read_entry(life: Life, entry: str | None) -> Order | None:
    """The order in ``status:order``."""
    if entry is None:
        return None
    status, _, order_id = entry.partition(":")
    return Order(int(order_id), life.voucher_id, status)


def find_orders(buyer_id: int, orders: Mapping[int, int]) -> dict[int, Order]:
    """Those of ``orders`` (order -> voucher) of a buyer that Redis has. Two round trips.

    Raises RedisDown.
    """
    lives = find_lives(sorted(set(orders.values())))
    wanted = [(order, lives[voucher]) for order, voucher in orders.items() if voucher in lives]
    commands: list[tuple[Argument, ...]] = []
    for order_id, life in wanted:
        commands.append(("HGET", buyers_key(life, buyer_id), str(buyer_id)))
        commands.append(("ZSCORE", recovery_key(life), f"{order_id}:{buyer_id}"))
    answers = redis.pipeline(commands)
    found = {}
    for (order_id, life), entry, pending in zip(wanted, answers[::2], answers[1::2], strict=True):
        if entry == f"{SUCCESS}:{order_id}":
            found[order_id] = Order(order_id, life.voucher_id, SUCCESS)
        elif pending is not None:
            found[order_id] = Order(order_id, life.voucher_id, PENDING)
    return found


def point(buyer_id: int, order_id: int, voucher_id: int) -> None:
    """Let the buyer find the voucher of their order. One round trip. Raises RedisDown."""
    key = pointers_key(buyer_id)
    redis.pipeline(
        [
            ("ZADD", key, order_id >> 32, f"{order_id}:{voucher_id}"),
            ("ZREMRANGEBYRANK", key, 0, -POINTERS_KEPT - 1),
            ("EXPIRE", key, POINTERS_TTL_S),
        ]
    )


def has_pointer(order: Order, buyer_id: int) -> bool:
    """Whether a buyer can find an order, so that it has its second copy. Raises RedisDown."""
    member = f"{order.id}:{order.voucher_id}"
    return redis.execute("ZSCORE", pointers_key(buyer_id), member) is not None


def read_pointer(buyer_id: int, order_id: int) -> int | None:
    """The voucher of an order of a buyer, None when Redis knows of none. Raises RedisDown."""
    second = order_id >> 32
    for member in redis.execute("ZRANGEBYSCORE", pointers_key(buyer_id), second, second):
        of_order, _, voucher_id = member.partition(":")
        if int(of_order) == order_id:
            return int(voucher_id)
    return None


def read_pointers(buyer_id: int) -> dict[int, int]:
    """The newest orders of a buyer: order -> voucher. Raises RedisDown."""
    members = redis.execute("ZRANGE", pointers_key(buyer_id), 0, -1)
    return {int(order): int(voucher) for order, voucher in (m.split(":") for m in members)}


def see(voucher_ids: Sequence[int]) -> dict[int, Seen]:
    """The counts of those of ``voucher_ids`` that are in Redis. Raises RedisDown."""
    names = ("epoch", "phase", "initial", "stock", "pending", "sold")
    found = redis.pipeline([("HMGET", state_key(v), *names) for v in voucher_ids])
    return {
        voucher_id: Seen(int(epoch), phase == "live", *map(int, counts))
        for voucher_id, (epoch, phase, *counts) in zip(voucher_ids, found, strict=True)
        if epoch is not None
    }


def expire(life: Life) -> None:
    """Let all of a life run out within a day. Raises RedisDown."""
    keys = [_bucket_key(life, bucket) for bucket in range(life.buckets)]
    keys += [recovery_key(life), state_key(life.voucher_id)]
    for start in range(0, len(keys), _PER_TRIP):
        part = keys[start : start + _PER_TRIP]
        redis.pipeline([("EXPIRE", key, SETTLED_TTL_S) for key in part])


def drop(life: Life) -> None:
    """Remove what a life that is over may have left. Raises RedisDown."""
    keys = [recovery_key(life), *(_bucket_key(life, bucket) for bucket in range(life.buckets))]
    for start in range(0, len(keys), _PER_TRIP):
        redis.pipeline([("UNLINK", key) for key in keys[start : start + _PER_TRIP]])


@lru_cache(maxsize=1024)
def _base(voucher_id: int) -> str:
    name = f"voucher:{voucher_id}"
    return f"{{{shard_of(name)}}}:{name}"


def _bucket_key(life: Life, bucket: int) -> str:
    return f"{_base(life.voucher_id)}:{life.epoch}:buyers:{bucket}"


def _keys(life: Life, buyer_id: int) -> tuple[str, str, str]:
    return state_key(life.voucher_id), buyers_key(life, buyer_id), recovery_key(life)


def _confirm_calls(rows: Sequence[Row], lives: Mapping[int, Life]) -> list[Call]:
    """The runs of ``confirm`` that the successes take: each is of one bucket."""
    found: dict[str, tuple[tuple[str, str, str], int, list[Argument]]] = {}
    for row in rows:
        if row.won:
            life = lives[row.voucher_id]
            keys = _keys(life, row.buyer_id)
            found.setdefault(keys[1], (keys, life.epoch, []))[2].extend(
                (row.order_id, row.buyer_id)
            )
    size = 2 * MAX_ORDERS_PER_CALL
    return [
        Call(CONFIRM, keys, (epoch, *orders[start : start + size]))
        for keys, epoch, orders in found.values()
        for start in range(0, len(orders), size)
    ]
