"""The model of vouchers: with random faults never oversold, never undersold, no order lost, and no
order both used and cancelled. A position in a waitlist that was answered is not lost, and units are
offered in order.

A call with a lost reply was executed, or is executed later. The Redis client repeats it, or raises
RedisDown.

A run is one seed: PLAZA_MODEL_RUNS runs, starting after PLAZA_MODEL_SEED. A failure
shows its seed and can be repeated with it. The invariant is checked after every step.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis as redis_py
from greenlet import getcurrent

from plaza.commerce.flash_sales import (
    CANCELLED,
    FAILED,
    PENDING,
    SUCCESS,
    USED,
    Order,
    Voucher,
    backlog,
    cancel_order,
    codes,
    finalize_vouchers,
    load_sale,
    model,
    mysql_orders,
    mysql_vouchers,
    persist,
    place_order,
    queries,
    recover_orders,
    redis_keys,
    redis_load,
    redis_orders,
    redis_sales,
    voucher_lookup,
    waitlist,
)
from plaza.commerce.flash_sales.model import (
    NotCancellable,
    NotWaiting,
    OrderMissing,
    SaleGeneration,
    SoldOut,
)
from plaza.commerce.flash_sales.queues import ORDERS, ORDERS_DLQ
from plaza.commerce.flash_sales.settings import sale_settings
from plaza.infra.derived import ids
from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, redis, resends, terms
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.token_bucket import TokenBucket
from plaza.infra.runtime import settings
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.dependencies import RetryRule
from plaza.infra.runtime.errors import PlazaError, Unavailable
from plaza.infra.runtime.process import clear_caches
from tests.model.scheduler import Scheduler
from tests.support import sales
from tests.support.depth import read_count
from tests.support.keyspace import find_keys
from tests.support.plaza import FakeQueues, World, forget
from tests.support.servers import IS_CLUSTER

RUNS = read_count("PLAZA_MODEL_RUNS", 9, 90)
FIRST = int(os.environ.get("PLAZA_MODEL_SEED", "0"))
STEPS = 400
BUYERS = range(1, 9)
MAX_ALIVE = 8
TABLES = ("voucher", "voucher_order", "cancelled_order", "waitlist_entry", "order_outbox")


@dataclass
class Trouble:
    """The faults of a run, as probabilities per step, and its limits."""

    kill: float = 0.03
    lost_push: float = 0.15
    duplicate: float = 0.3
    dead_letters: float = 0.3
    flush: float = 0.0
    rollback: float = 0.0  # of Redis to an earlier copy, as in an unreplicated failover
    redis_away: float = 0.0
    lost_reply: float = 0.0  # per call
    max_pending: int = 1_000
    max_drain_us: int = 0
    saves: int = 4  # share of consumers; with few of them many orders are pending at a flush


TROUBLES = {
    "none": Trouble(kill=0, lost_push=0, duplicate=0, dead_letters=0),
    "queue": Trouble(kill=0),
    "kills": Trouble(),
    "away": Trouble(redis_away=0.02),
    "flush": Trouble(flush=0.03, saves=1, dead_letters=0.1),
    "drain": Trouble(flush=0.015, saves=2, max_drain_us=3_600_000_000),
    "rollback": Trouble(rollback=0.02, saves=2, dead_letters=0.1),
    "replies": Trouble(
        kill=0, lost_push=0.05, duplicate=0.1, lost_reply=0.15, saves=2, max_pending=2
    ),
    "all": Trouble(flush=0.015, redis_away=0.02, lost_reply=0.05, saves=1),
}


@dataclass(eq=False)
class Position:
    """A position in a waitlist that was answered."""

    seq: int


@dataclass
class Run:
    """One run: many buyers on two sales.

    ``replies``: order id -> (the last reply, the buyer, the losses of Redis before the request).
    ``sent``: order id -> identity of all events that were ever on the queue. ``codes``: order id
    -> a code that was issued. ``used``: order ids whose redemption was answered. ``positions``:
    (voucher, buyer) -> the seq of a position that was answered, until it is offered a unit or its
    buyer sends a request that may end it. ``waiting`` and ``offered`` of each voucher are as of
    the step before. ``saved``: the copy of Redis of the next rollback.
    """

    trouble: Trouble
    world: World
    scheduler: Scheduler
    vouchers: list[Voucher]
    replies: dict[int, tuple[Order, int, int]] = field(default_factory=dict)
    sent: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    codes: dict[int, str] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)
    calm: bool = False
    losses: int = 0
    positions: dict[tuple[int, int], Position] = field(default_factory=dict)
    requests: Counter[tuple[int, int]] = field(default_factory=Counter)
    waiting: dict[int, dict[int, int]] = field(default_factory=dict)
    offered: dict[int, set[int]] = field(default_factory=dict)
    saved: dict[bytes, tuple[bytes, int]] | None = None
    caches: list[dict[int, SaleGeneration]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    @property
    def queues(self) -> FakeQueues:
        return self.world.queues

    @property
    def rng(self) -> random.Random:
        return self.scheduler.rng

    def note(self, text: str) -> None:
        self.log.append(text)

    # -- requests

    def order(self) -> None:
        voucher, buyer = self.rng.choice(self.vouchers), self.rng.choice(BUYERS)

        def request() -> None:
            losses, position = self.losses, self.positions.get((voucher.id, buyer))
            with suppress(PlazaError), self.changing_position(voucher.id, buyer):
                try:
                    order, made = place_order.place_order(voucher.id, buyer)
                except SoldOut:
                    if position is not None and self.requests[voucher.id, buyer] == 1:
                        self.positions[voucher.id, buyer] = position
                    raise
                self.note(f"{buyer} {'made' if made else 'has'} {order}")
                self.record_reply(order, buyer, losses)

        self.scheduler.spawn(request)

    def read(self) -> None:
        if not self.replies:
            return
        order_id = self.rng.choice(list(self.replies))
        _, buyer, losses = self.replies[order_id]

        def work() -> None:
            with suppress(Unavailable):
                try:
                    self.record_reply(queries.read_order(order_id, buyer), buyer, losses)
                    listed, _ = sales.list_orders(buyer, None, 100)
                    assert order_id in [o.id for o in listed] or losses < self.losses
                except OrderMissing:
                    raise AssertionError(f"order {order_id} was accepted and is missing") from None

        self.scheduler.spawn(work)

    def record_reply(self, result: Order, buyer: int, losses: int) -> None:
        """Record the reply to a request that began after ``losses`` losses of Redis."""
        before, _, losses = self.replies.get(result.id, (result, buyer, losses))
        if before.status != PENDING and result != before:
            # A late reply may show an earlier state; a success may be used or cancelled.
            if result.status not in (PENDING, SUCCESS):
                assert before.status == SUCCESS, f"{before} became {result}"
            else:
                assert before.status in (SUCCESS, USED, CANCELLED) or result.status == PENDING
                result = before
        self.replies[result.id] = result, buyer, losses

    def cancel(self) -> None:
        """Cancel an order that a buyer knows."""
        if not self.replies:
            return
        order_id = self.rng.choice(list(self.replies))
        _, buyer, losses = self.replies[order_id]

        def work() -> None:
            with suppress(Unavailable, NotCancellable):
                try:
                    order = cancel_order.cancel_order(order_id, buyer)
                except OrderMissing:
                    raise AssertionError(f"order {order_id} was accepted and is missing") from None
                assert order.status == CANCELLED
                self.note(f"{buyer} cancelled {order}")
                self.record_reply(order, buyer, losses)

        self.scheduler.spawn(work)

    def wait(self) -> None:
        """Join or leave the waitlist of a sale; offers last an hour or no time."""
        voucher, buyer = self.rng.choice(self.vouchers), self.rng.choice(BUYERS)
        change = waitlist.leave_waitlist if self.rng.random() < 0.2 else waitlist.join_waitlist
        model.OFFER_US = self.rng.choice([0, 3_600_000_000])

        def work() -> None:
            with suppress(PlazaError):
                with self.changing_position(voucher.id, buyer):
                    self.note(f"{buyer} {change.__name__} {change(voucher.id, buyer)}")
                if change is waitlist.join_waitlist and not self.requests[voucher.id, buyer]:
                    self.record_position(voucher.id, buyer)

        self.scheduler.spawn(work)

    @contextmanager
    def changing_position(self, voucher_id: int, buyer: int) -> Iterator[None]:
        """Forget the position of a buyer whose request may end it."""
        self.positions.pop((voucher_id, buyer), None)
        self.requests[voucher_id, buyer] += 1
        try:
            yield
        finally:
            self.requests[voucher_id, buyer] -= 1

    def record_position(self, voucher_id: int, buyer: int) -> None:
        """Record the position that a buyer was answered, unless it was offered a unit."""
        sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
        seqs = self.read_seqs(voucher_id)
        if buyer in seqs and sale and buyer not in self.read_offered(sale):
            self.positions[voucher_id, buyer] = Position(seqs[buyer])

    def read_position(self) -> None:
        """Read a position that was answered."""
        if not self.positions:
            return
        (voucher_id, buyer), position = self.rng.choice(list(self.positions.items()))

        def work() -> None:
            with suppress(Unavailable):
                try:
                    waitlist.read_position(voucher_id, buyer)
                except NotWaiting:
                    is_answered = self.positions.get((voucher_id, buyer)) is position
                    assert not (is_answered and self.is_waiting(voucher_id, buyer)), (
                        f"{buyer} waits and has no position"
                    )

        self.scheduler.spawn(work)

    def is_waiting(self, voucher_id: int, buyer: int) -> bool:
        """Return whether the buyer still waits in MySQL, and has no order in Redis."""
        sale = redis_sales.find_sales([voucher_id]).get(voucher_id)
        seq = self.read_seqs(voucher_id).get(buyer)
        if sale is None or seq != self.positions[voucher_id, buyer].seq:
            return False
        return redis_orders.find_order_of_buyer(sale, buyer) == (None, False)

    @staticmethod
    def read_seqs(voucher_id: int) -> dict[int, int]:
        """Return buyer -> seq of the waitlist in MySQL."""
        rows = mysql.fetch_all(
            "SELECT buyer_id, seq FROM waitlist_entry WHERE voucher_id = %s", (voucher_id,)
        )
        return dict(rows)

    @staticmethod
    def read_offered(sale: SaleGeneration) -> set[int]:
        """Return the buyers with an offer."""
        return set(map(int, connections.client().zrange(redis_keys.offers_key(sale), 0, -1)))

    def check_offers(self) -> None:
        """Check that no unit was offered to a buyer while one with an earlier position waits."""
        if self.trouble.lost_reply:  # a late command removes a position of which it knows nothing
            return
        for voucher in self.vouchers:
            sale = redis_sales.find_sales([voucher.id]).get(voucher.id)
            if sale is None:
                continue
            offered, before = self.read_offered(sale), self.waiting.get(voucher.id, {})
            for buyer in offered:
                self.positions.pop((voucher.id, buyer), None)
            new = offered - self.offered.get(voucher.id, offered)
            if new and any(v == voucher.id for v, _ in self.positions):
                seqs = self.read_seqs(voucher.id)
                last = max(before.get(buyer, seqs.get(buyer, 0)) for buyer in new)
                for (of_voucher, buyer), position in list(self.positions.items()):
                    if of_voucher == voucher.id and before.get(buyer, position.seq) < last:
                        assert not self.is_waiting(voucher.id, buyer), (
                            f"{new} are offered units, and {buyer} waits longer"
                        )
            self.offered[voucher.id] = offered
            result = connections.client().zrange(
                redis_keys.waitlist_key(sale), 0, -1, withscores=True
            )
            self.waiting[voucher.id] = {int(buyer): int(seq) for buyer, seq in result}

    def use(self) -> None:
        """Issue a code of an order that a buyer knows, and redeem it; or redeem a known code."""
        if not self.replies:
            return
        order_id = self.rng.choice(list(self.replies))
        order, buyer, losses = self.replies[order_id]
        issue = order_id not in self.codes or self.rng.random() < 0.3

        def work() -> None:
            with suppress(PlazaError):
                if issue:
                    self.codes[order_id] = codes.issue_code(order_id, buyer)
                used = codes.redeem_code(order.voucher_id, self.codes[order_id], sales.ADMIN)
                assert used.order_id == order_id
                assert order_id not in self.used, f"order {order_id} was used twice"
                self.used.add(order_id)
                self.note(f"used {order_id}")
                self.record_reply(order._replace(status=USED), buyer, losses)

        self.scheduler.spawn(work)

    # -- consumers and schedules

    def save(self) -> None:
        """Save a random batch; delete it from the queue afterwards, unless it is repeated."""
        bodies = self.queues.messages[ORDERS]
        batch = self.rng.sample(bodies, self.rng.randint(1, min(len(bodies), 8)))
        if self.rng.random() < self.trouble.duplicate:
            batch += self.rng.sample(batch, 1)

        def work() -> None:
            with suppress(Unavailable):
                persist.persist_orders(sales.parse_events(batch))
                self.note(f"saved {batch}")
                if self.rng.random() >= self.trouble.duplicate:
                    self.remove(ORDERS.name, batch)

        self.scheduler.spawn(work)

    def dead_letter(self) -> None:
        """Move a message to the DLQ, or copy it there."""
        bodies = self.queues.messages[ORDERS]
        body = self.rng.choice(bodies)
        self.queues.messages[ORDERS_DLQ].append(body)
        if self.rng.random() < 0.5:
            bodies.remove(body)

    def decide_dead_letter(self) -> None:
        body = self.rng.choice(self.queues.messages[ORDERS_DLQ])

        def work() -> None:
            with suppress(Unavailable):
                persist.decide_dead_letters(sales.parse_events([body]))
                self.note(f"dead-lettered {body}")
                if self.rng.random() >= self.trouble.duplicate:
                    self.remove(ORDERS_DLQ.name, [body])

        self.scheduler.spawn(work)

    def recover(self) -> None:
        decide_after_s = 0.0 if self.rng.random() < self.trouble.dead_letters else 3600.0

        def work() -> None:
            with suppress(Unavailable):
                recover_orders.recover_orders(0, decide_after_s)
                self.note(f"recovered, too old after {decide_after_s} s")

        self.scheduler.spawn(work)

    def remove(self, queue: str, bodies: list[str]) -> None:
        for body in set(bodies):
            with suppress(ValueError):
                self.queues.messages[queue].remove(body)

    # -- faults

    def flush(self) -> None:
        self.note("FLUSHALL")
        self.losses += 1
        connections.client().execute_command("FLUSHALL")
        self.offered.clear()
        self.waiting.clear()

    def roll_back(self) -> None:
        """Copy the data of Redis, or restore the copy as the data of a promoted replica.

        Serials of ids are kept: a failover takes longer than a second.
        """
        with redis_py.Redis.from_url(settings.settings().redis_url) as client:
            if self.saved is None:
                keys = [key for key in client.keys("*") if b"ids:serials" not in key]
                self.saved = {key: (client.dump(key), max(0, client.pttl(key))) for key in keys}
                return
            self.note("ROLLBACK")
            self.losses += 1
            client.delete(*(key for key in client.keys("*") if b"ids:serials" not in key))
            for key, (value, ttl_ms) in self.saved.items():
                client.restore(key, ttl_ms, value)
            client.execute_command("DEBUG", "CHANGE-REPL-ID")
            term = str(client.info("replication")["master_replid"])
        for name, node in terms.known_nodes.items():
            terms.known_nodes[name] = node._replace(term=term)
        for voucher_id in redis_sales.find_sales([voucher.id for voucher in self.vouchers]):
            connections.client().hset(redis_keys.state_key(voucher_id), "rolled_back", 1)
        self.saved = None
        self.offered.clear()
        self.waiting.clear()

    def loses_reply(self) -> bool:
        """Return whether the reply to the current call is lost."""
        if self.calm or getcurrent() is self.scheduler.main:
            return False
        return self.rng.random() < self.trouble.lost_reply

    def lose_replies_of_redis(self, call: Callable[[Callable[[], Any]], Any]) -> Any:
        """Return ``call`` with some replies lost, and some commands executed late."""

        def call_late(work: Callable[[], Any], losses: int) -> None:
            if losses == self.losses:  # else the server has restarted
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
                raise RedisDown("lost reply in the model")
            resends.note_resend()
            return call(work)

        return lossy

    def lose_replies_of_mysql(self, call: Callable[..., Any]) -> Any:
        """Return ``call`` with some replies lost."""

        def lossy(work: Callable[[], Any], *again: RetryRule) -> Any:
            result = call(work, *again)
            if self.loses_reply():
                raise MysqlDown("lost reply in the model")
            return result

        return lossy

    def let_time_pass(self) -> None:
        """Expire leases and caches, as for a new process; or restore the cache of an idle one."""
        self.caches.append(place_order._sales.get_all(voucher.id for voucher in self.vouchers))
        clear_caches()
        if self.rng.random() < 0.5:
            place_order._sales.put_all(self.rng.choice(self.caches))
        for key in find_keys("*:lease"):
            connections.client().execute_command("DEL", key)

    def advance(self) -> None:
        """Play one step of a random process or fault."""
        rng, trouble, alive = self.rng, self.trouble, self.scheduler.alive
        if rng.random() < trouble.flush:
            self.flush()
        if rng.random() < trouble.rollback and not IS_CLUSTER:
            self.roll_back()
        if rng.random() < trouble.redis_away:
            self.scheduler.redis_away = not self.scheduler.redis_away
        if rng.random() < 0.1:
            self.let_time_pass()
        self.queues.away = rng.random() < trouble.lost_push
        if alive and rng.random() < trouble.kill:
            self.note("KILL")
            self.scheduler.kill()
        elif len(alive) < MAX_ALIVE and rng.random() < 0.35:
            processes = [self.order] * 10 + [self.read] * 2 + [self.recover]
            processes += [self.cancel] * 3 + [self.use] + [self.wait] * 4 + [self.read_position]
            if self.queues.messages[ORDERS]:
                processes += [self.save] * trouble.saves
                processes += [self.dead_letter] if rng.random() < trouble.dead_letters else []
            if self.queues.messages[ORDERS_DLQ]:
                processes += [self.decide_dead_letter] * 2
            rng.choice(processes)()
        elif alive:
            self.scheduler.step()
        self.check_invariant()

    def check_invariant(self) -> None:
        """Check what must hold at every instant."""
        wrong = sales.find_violations(*(voucher.id for voucher in self.vouchers))
        assert not wrong, wrong
        self.check_offers()

    def check_waitlist(self, voucher_id: int) -> None:
        """Recover the waitlist; check that each unit in stock is offered; then let all leave."""
        voucher = mysql_vouchers.read(voucher_id)
        assert voucher is not None
        waitlist.recover_waitlists([voucher], Deadline.in_s(9))
        counts = sales.read_counts(voucher_id)
        assert counts is not None
        assert counts.stock <= 0 or counts.waiting == 0, "a unit is neither offered nor for sale"
        for buyer in BUYERS:
            waitlist.leave_waitlist(voucher_id, buyer)
            self.check_invariant()
        counts = sales.read_counts(voucher_id)
        assert counts is not None
        assert (counts.offered, counts.waiting) == (0, 0)

    def calm_down(self) -> None:
        """Stop the faults; run processes and consumers until nothing is left to do."""
        self.queues.away = self.scheduler.redis_away = False
        self.calm = True
        while self.scheduler.alive:
            self.scheduler.step()
            self.check_invariant()
        for _ in range(20):
            self.let_time_pass()
            left = self.queues.take(ORDERS)
            self.rng.shuffle(left)
            for start in range(0, len(left), 2):
                persist.persist_orders(sales.parse_events(left[start : start + 2]))
                self.check_invariant()
            self.queues.drain()
            for voucher in self.vouchers:
                load_sale.load_sale(voucher.id)
                self.check_waitlist(voucher.id)
            self.check_invariant()
            if recover_orders.recover_orders(0, 3600) == 0 and not any(
                self.queues.messages.values()
            ):
                return
        raise AssertionError("not quiet after 20 rounds")


def play(seed: int, run: Run, patch: pytest.MonkeyPatch) -> None:
    """Play a run until nothing is left to do."""
    patch.setattr(connections.REDIS, "call", run.lose_replies_of_redis(connections.REDIS.call))
    patch.setattr(mysql.MYSQL, "call", run.lose_replies_of_mysql(mysql.MYSQL.call))
    patch.setenv("PLAZA_MAX_PENDING_ORDERS", str(run.trouble.max_pending))
    sale_settings.cache_clear()
    run.scheduler.hook(patch)
    rng = random.Random(seed)

    def begin_anywhere(jobs: Mapping[str, Callable[[], None]], run: int) -> dict[str, None]:
        return run_jobs(jobs, rng.randrange(len(jobs)))  # the seed decides it, not the minute

    patch.setattr(recover_orders, "run_jobs", begin_anywhere)
    patch.setattr(backlog._backlog, "_ttl_s", 0.0)
    patch.setattr(model, "OFFER_US", 0)
    patch.setattr(redis_load, "MAX_DRAIN_US", run.trouble.max_drain_us)
    send = sqs.send

    def watched(queue: str, body: str, delay_s: int = 0) -> None:
        run.scheduler.pause()
        send(queue, body, delay_s)
        event = ORDERS.decode(str(body))
        assert run.sent.setdefault(event.order_id, event.identity) == event.identity, (
            "two orders with one id"
        )
        run.scheduler.pause()
        if run.loses_reply():
            raise QueueDown("lost reply in the model")

    patch.setattr(sqs, "send", watched)
    for _ in range(STEPS):
        run.advance()
    run.calm_down()


def check(run: Run) -> None:
    """Check that Redis, MySQL, replies and events agree, and that the rest can be sold."""
    sale_settings.cache_clear()
    for voucher in run.vouchers:
        rows = sales.rows(voucher.id)
        won = [row for row in rows.values() if row.is_success]
        assert len(won) <= voucher.terms.stock, "oversold"
        cancelled = {row.order_id for row in rows.values() if row.is_cancelled}
        assert sales.cancelled(voucher.id) == cancelled
        assert len({row.buyer_id for row in won}) == len(won), "one order for each buyer"
        assert sales.stock(voucher.id) == voucher.terms.stock - len(won), "stock = orders"
        assert sales.counts(voucher.id) == (sales.stock(voucher.id), 0, len(won)), "Redis = MySQL"
        for row in rows.values():
            assert queries.read_order(row.order_id, row.buyer_id) == row.order
    decided = {
        order_id: row
        for voucher in run.vouchers
        for order_id, row in sales.rows(voucher.id).items()
    }
    reasons = {row.reason for row in decided.values()}
    assert run.losses or reasons <= {None, CANCELLED}, (
        "an accepted order failed without a loss of Redis"
    )
    assert mysql_orders.read_spilled(None, 1) == []
    for order_id, (last, buyer, _) in run.replies.items():
        assert order_id in decided, f"order {order_id} was accepted and is lost"
        assert decided[order_id].buyer_id == buyer
        if last.status in (FAILED, USED, CANCELLED):
            assert decided[order_id].order == last
        elif last.status == SUCCESS:
            assert decided[order_id].is_success or decided[order_id].is_cancelled
    assert run.used <= {row.order_id for row in decided.values() if row.used_us is not None}
    for order_id, identity in run.sent.items():
        assert order_id in decided, f"order {order_id} was on the queue and is lost"
        assert decided[order_id].identity == identity

    # Other buyers can order the rest: nothing is undersold.
    clear_caches()
    for voucher in run.vouchers:
        left, holders = sales.stock(voucher.id), set(sales.holders(voucher.id))
        for buyer in [b for b in range(1, 30) if b not in holders][:left]:
            assert place_order.place_order(voucher.id, buyer)[1]
    run.queues.drain()
    for voucher in run.vouchers:
        assert len(sales.holders(voucher.id)) == voucher.terms.stock
        sales.check(voucher.id)
        closed_us = sales.now_us() - 120_000_000
        redis.execute("HSET", redis_keys.state_key(voucher.id), "closes_us", closed_us)
    mysql.write("UPDATE voucher SET opens_at = FROM_UNIXTIME(1), closes_at = FROM_UNIXTIME(9)")
    clear_caches()
    assert finalize_vouchers.finalize_vouchers() == len(run.vouchers)


@pytest.mark.sampled
@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_unit_and_no_order_is_lost_with_random_faults(
    trouble: str, plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(max(1, RUNS // len(TROUBLES))):
        seed = FIRST + n + 1
        for table in TABLES:
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
