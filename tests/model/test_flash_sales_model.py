"""Sales under every kind of trouble at once: never oversold, never undersold, no order lost.

A call whose reply is lost was executed; or it was not, and is later. The client library of Redis
sends it again, or its caller hears that the server is away.

Each run is one seed. PLAZA_MODEL_RUNS says how many (default 72), PLAZA_MODEL_SEED where to begin;
a failure names its seed, and that seed fails again. The invariant is checked after every step.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from greenlet import getcurrent

from plaza.flash_sales import (
    FAILED,
    SUCCESS,
    Order,
    OrderEvent,
    Voucher,
    backlog,
    finalize_vouchers,
    load_sale,
    mysql_orders,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_store,
    voucher_lookup,
)
from plaza.flash_sales.model import OrderMissing, SaleGeneration
from plaza.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.infra import ids, mysql, redis, resends, settings, sqs
from plaza.infra.dependencies import RetryRule
from plaza.infra.errors import PlazaError, Unavailable
from plaza.infra.mysql import MysqlDown
from plaza.infra.process import clear_caches
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.token_bucket import TokenBucket
from tests.model.scheduler import Scheduler
from tests.support import sales
from tests.support.keyspace import find_keys
from tests.support.plaza import FakeQueues, World, forget

RUNS = int(os.environ.get("PLAZA_MODEL_RUNS", "72"))
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))
STEPS = 400
BUYERS = range(1, 9)
MAX_ALIVE = 8


@dataclass
class Trouble:
    """Which troubles a run may meet, and how often, per step."""

    kill: float = 0.03
    lost_push: float = 0.15
    duplicate: float = 0.3
    give_up: float = 0.3
    flush: float = 0.0
    redis_away: float = 0.0
    lost_reply: float = 0.0  # per call
    max_pending: int = 1_000
    hold_us: int = 0
    saves: int = 4  # how much of the work is saving: little, and much is on its way when Redis goes


TROUBLES = {
    "crowd": Trouble(kill=0, lost_push=0, duplicate=0, give_up=0),
    "queue": Trouble(kill=0),
    "kills": Trouble(),
    "away": Trouble(redis_away=0.02),
    "flush": Trouble(flush=0.03, saves=1, give_up=0.1),
    "held": Trouble(flush=0.015, saves=2, hold_us=3_600_000_000),
    "replies": Trouble(
        kill=0, lost_push=0.05, duplicate=0.1, lost_reply=0.15, saves=2, max_pending=2
    ),
    "all": Trouble(flush=0.015, redis_away=0.02, lost_reply=0.05, saves=1),
}


@dataclass
class Run:
    """One run: a crowd on two sales. ``told``: order -> (what its buyer heard last, their id, the
    number of losses of Redis before they asked for it); ``sent``: what the queue ever had, as order
    -> identity."""

    trouble: Trouble
    world: World
    scheduler: Scheduler
    vouchers: list[Voucher]
    told: dict[int, tuple[Order, int, int]] = field(default_factory=dict)
    sent: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    calm: bool = False
    losses: int = 0
    memories: list[dict[int, SaleGeneration]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def queues(self) -> FakeQueues:
        return self.world.queues

    @property
    def rng(self) -> random.Random:
        return self.scheduler.rng

    def note(self, what: str) -> None:
        self.log.append(what)

    # -- what the crowd does

    def order(self) -> None:
        voucher, buyer = self.rng.choice(self.vouchers), self.rng.choice(BUYERS)

        def request() -> None:
            losses = self.losses
            with suppress(PlazaError):
                found, made = place_order.place_order(voucher.id, buyer)
                self.note(f"{buyer} {'made' if made else 'has'} {found}")
                self.hear(found, buyer, losses)

        self.scheduler.spawn(request)

    def read(self) -> None:
        if not self.told:
            return
        order_id = self.rng.choice(list(self.told))
        _, buyer, losses = self.told[order_id]

        def work() -> None:
            with suppress(Unavailable):
                try:
                    self.hear(queries.read_order(order_id, buyer), buyer, losses)
                    listed, _ = queries.list_orders(buyer, None, 100)
                    assert order_id in [o.id for o in listed] or losses < self.losses
                except OrderMissing:
                    raise AssertionError(f"{order_id} was promised and is not there") from None

        self.scheduler.spawn(work)

    def hear(self, found: Order, buyer: int, losses: int) -> None:
        """Redis had been lost ``losses`` times before they asked."""
        before, _, losses = self.told.get(found.id, (found, buyer, losses))
        if before.status in (SUCCESS, FAILED) and found != before:
            # What was on its way when it was decided may still be heard; a decision never changes.
            assert found.status not in (SUCCESS, FAILED), f"{before} became {found}"
            found = before
        self.told[found.id] = found, buyer, losses

    # -- what works for it

    def save(self) -> None:
        """A batch in any order, deleted from the queue only when it is done, and not even then."""
        waiting_now = self.queues.messages[ORDERS]
        batch = self.rng.sample(waiting_now, self.rng.randint(1, min(len(waiting_now), 8)))
        if self.rng.random() < self.trouble.duplicate:
            batch += self.rng.sample(batch, 1)

        def work() -> None:
            with suppress(Unavailable):
                persist.persist_orders(sales.parse_events(batch))
                self.note(f"saved {batch}")
                if self.rng.random() >= self.trouble.duplicate:
                    self.remove(ORDERS.name, batch)

        self.scheduler.spawn(work)

    def die(self) -> None:
        """A message was received too often; or it was not, and is in both queues."""
        waiting_now = self.queues.messages[ORDERS]
        body = self.rng.choice(waiting_now)
        self.queues.messages[ORDERS_DLQ].append(body)
        if self.rng.random() < 0.5:
            waiting_now.remove(body)

    def give_up(self) -> None:
        body = self.rng.choice(self.queues.messages[ORDERS_DLQ])

        def work() -> None:
            with suppress(Unavailable):
                persist.decide_dead_letters(sales.parse_events([body]))
                self.note(f"gave up {body}")
                if self.rng.random() >= self.trouble.duplicate:
                    self.remove(ORDERS_DLQ.name, [body])

        self.scheduler.spawn(work)

    def recover(self) -> None:
        decide_after_s = 0.0 if self.rng.random() < self.trouble.give_up else 3600.0

        def work() -> None:
            with suppress(Unavailable):
                recover_orders.recover_orders(0, decide_after_s)
                self.note(f"recovered, too old after {decide_after_s} s")

        self.scheduler.spawn(work)

    def remove(self, queue: str, bodies: list[str]) -> None:
        for body in set(bodies):
            with suppress(ValueError):
                self.queues.messages[queue].remove(body)

    # -- what happens to it

    def flush(self) -> None:
        self.note("FLUSHALL")
        self.losses += 1
        redis.client().execute_command("FLUSHALL")

    def loses_reply(self) -> bool:
        """Whether the reply of the call that a process makes now is lost."""
        if self.calm or getcurrent() is self.scheduler._main:
            return False
        return self.rng.random() < self.trouble.lost_reply

    def lose_replies_of_redis(self, call: Callable[[Callable[[], Any]], Any]) -> Any:
        """``call``, and now and then a reply is lost on the way back, or a command on the way."""

        def call_late(work: Callable[[], Any], losses: int) -> None:
            if losses == self.losses:  # else the server it waits for has begun anew
                with suppress(RedisDown):
                    call(work)

        def lossy(work: Callable[[], Any]) -> Any:
            if not self.loses_reply():
                return call(work)
            executed, repeated = self.rng.random() < 0.5, self.rng.random() < 0.7
            self.note(f"LOST, {'executed' if executed else 'late'}, repeated {repeated}")
            if executed:
                call(work)
                self.scheduler.pause()
            else:
                losses = self.losses
                self.scheduler.spawn(lambda: call_late(work, losses))
            if not repeated:
                raise RedisDown("The reply is lost (the model says so)")
            resends.note_resend()
            return call(work)

        return lossy

    def lose_replies_of_mysql(self, call: Callable[..., Any]) -> Any:
        """``call``, and now and then nobody hears that it was executed."""

        def lossy(work: Callable[[], Any], *again: RetryRule) -> Any:
            result = call(work, *again)
            if self.loses_reply():
                raise MysqlDown("The reply is lost (the model says so)")
            return result

        return lossy

    def let_time_pass(self) -> None:
        """Leases of the dead run out, refusals are forgotten, functions begin anew; or it is the
        turn of one that slept, and remembers a sale as it was then."""
        self.memories.append(place_order._sales.get_all(voucher.id for voucher in self.vouchers))
        clear_caches()
        if self.rng.random() < 0.5:
            place_order._sales.put_all(self.rng.choice(self.memories))
        for key in find_keys("*:lease"):
            redis.client().execute_command("DEL", key)

    def turn(self) -> None:
        """One step of anybody."""
        rng, trouble, alive = self.rng, self.trouble, self.scheduler.alive
        if rng.random() < trouble.flush:
            self.flush()
        if rng.random() < trouble.redis_away:
            self.scheduler.redis_away = not self.scheduler.redis_away
        if rng.random() < 0.1:
            self.let_time_pass()
        self.queues.away = rng.random() < trouble.lost_push
        if alive and rng.random() < trouble.kill:
            self.note("KILL")
            self.scheduler.kill()
        elif len(alive) < MAX_ALIVE and rng.random() < 0.35:
            doings = [self.order] * 10 + [self.read] * 2 + [self.recover]
            if self.queues.messages[ORDERS]:
                doings += [self.save] * trouble.saves
                doings += [self.die] if rng.random() < trouble.give_up else []
            if self.queues.messages[ORDERS_DLQ]:
                doings += [self.give_up] * 2
            rng.choice(doings)()
        elif alive:
            self.scheduler.step()
        self.look()

    def look(self) -> None:
        """What must hold at every instant."""
        wrong = sales.find_violations(*(voucher.id for voucher in self.vouchers))
        assert not wrong, wrong

    def calm_down(self) -> None:
        """Nothing goes wrong any more: everybody ends, and all that waits is done."""
        self.queues.away = self.scheduler.redis_away = False
        self.calm = True
        while self.scheduler.alive:
            self.scheduler.step()
            self.look()
        for _ in range(20):
            self.let_time_pass()
            left = self.queues.take(ORDERS)
            self.rng.shuffle(left)
            for start in range(0, len(left), 2):
                persist.persist_orders(sales.parse_events(left[start : start + 2]))
                self.look()
            self.queues.drain()
            for voucher in self.vouchers:
                load_sale.load_sale(voucher.id)
            self.look()
            if recover_orders.recover_orders(0, 3600) == 0 and not any(
                self.queues.messages.values()
            ):
                return
        raise AssertionError("it never went quiet")


def play(seed: int, run: Run, patch: pytest.MonkeyPatch) -> None:
    """A run up to the quiet after it."""
    patch.setattr(redis.REDIS, "call", run.lose_replies_of_redis(redis.REDIS.call))
    patch.setattr(mysql.MYSQL, "call", run.lose_replies_of_mysql(mysql.MYSQL.call))
    patch.setenv("PLAZA_MAX_PENDING_ORDERS", str(run.trouble.max_pending))
    settings.settings.cache_clear()
    run.scheduler.hook(patch)
    patch.setattr(backlog._backlog, "_ttl_s", 0.0)
    patch.setattr(redis_store, "MAX_DRAIN_US", run.trouble.hold_us)
    send = sqs.send

    def watched(queue: str, body: str, delay_s: int = 0) -> None:
        run.scheduler.pause()
        send(queue, body, delay_s)
        fact = OrderEvent.from_json(body)
        assert run.sent.setdefault(fact.order_id, fact.identity) == fact.identity, (
            "one id, two orders"
        )
        run.scheduler.pause()
        if run.loses_reply():
            raise QueueDown("The reply is lost (the model says so)")

    patch.setattr(sqs, "send", watched)
    for _ in range(STEPS):
        run.turn()
    run.calm_down()


def check(run: Run) -> None:
    """Everything that must hold when it is quiet."""
    settings.settings.cache_clear()
    for voucher in run.vouchers:
        rows = sales.rows(voucher.id)
        won = [row for row in rows.values() if row.is_success]
        assert len(won) <= voucher.terms.stock, "oversold"
        assert len({row.buyer_id for row in won}) == len(won), "one for each"
        assert sales.stock(voucher.id) == voucher.terms.stock - len(won), "MySQL agrees with itself"
        assert sales.counts(voucher.id) == (sales.stock(voucher.id), 0, len(won)), "Redis = MySQL"
        for row in rows.values():
            assert queries.read_order(row.order_id, row.buyer_id) == row.order
    decided = {
        order_id: row
        for voucher in run.vouchers
        for order_id, row in sales.rows(voucher.id).items()
    }
    reasons = {row.reason for row in decided.values()}
    assert run.losses or reasons <= {None}, "promised what there was not"
    assert mysql_orders.read_outbox(None, 1) == []
    for order_id, (last, buyer, _) in run.told.items():
        assert order_id in decided, f"{order_id} was promised and is lost"
        assert decided[order_id].buyer_id == buyer
        if last.status in (SUCCESS, FAILED):
            assert decided[order_id].order == last
    for order_id, identity in run.sent.items():
        assert order_id in decided, f"{order_id} was on the queue and is lost"
        assert decided[order_id].identity == identity

    # What is left can be bought, by everybody who has none: nothing is undersold.
    clear_caches()
    for voucher in run.vouchers:
        left, have = sales.stock(voucher.id), set(sales.holders(voucher.id))
        for buyer in [b for b in range(1, 30) if b not in have][:left]:
            assert place_order.place_order(voucher.id, buyer)[1]
    run.queues.drain()
    for voucher in run.vouchers:
        assert len(sales.holders(voucher.id)) == voucher.terms.stock
        sales.check(voucher.id)
        over = sales.now_us() - 120_000_000
        redis.execute("HSET", redis_store.state_key(voucher.id), "closes_us", over)
    mysql.write("UPDATE voucher SET opens_at = FROM_UNIXTIME(1), closes_at = FROM_UNIXTIME(9)")
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == len(run.vouchers)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_when_it_is_quiet_all_is_sold_or_left_and_everybody_knows(
    trouble: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(RUNS // len(TROUBLES)):
        seed = FIRST + n + 1
        for table in ("voucher", "voucher_order", "order_outbox"):
            mysql.write(f"DELETE FROM {table}")
        redis.execute("FLUSHALL")
        plaza.queues.messages.clear()
        plaza.queues.away = False
        forget()
        monkeypatch.setattr(
            voucher_lookup, "_lookup_budget", TokenBucket(rate_per_s=1e6, burst=10**6)
        )
        ids.new_id()
        vouchers = [sales.offer(stock=stock) for stock in (3, 6)]
        run = Run(TROUBLES[trouble], plaza, Scheduler(random.Random(seed)), vouchers)
        try:
            with monkeypatch.context() as patch:
                play(seed, run, patch)
            check(run)
        except AssertionError as error:
            raise AssertionError(
                f"PLAZA_MODEL_SEED={seed - 1} -k {trouble}: {error}\n" + "\n".join(run.log[-60:])
            ) from error
