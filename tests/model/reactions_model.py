"""The model of reactions: clients, consumers, sweeps, builds and faults on a few small targets."""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import redis as redis_py
from greenlet import getcurrent, greenlet

from local.audit.stores import unpack_meta
from plaza.core import counters
from plaza.core.counters import UserCounter, mysql_store, redis_store
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Kind,
    Target,
    at,
    failover_recovery,
    hydration,
    mysql_rows,
    mysql_snapshots,
    persist,
    queries,
    react,
    rebuild,
    redis_bloom,
    redis_commits,
    redis_failover_progress,
    redis_gate,
    redis_hydration,
    redis_inspection,
    redis_keys,
    redis_outbox,
    redis_queries,
    sweep,
)
from plaza.core.reactions.model import ReactionEvent, ReactionKey, TooManyChanges
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REACTIONS, REBUILDS
from plaza.core.switches import Switches
from plaza.core.switches import refresh as switches_refresh
from plaza.infra.derived import projections
from plaza.infra.mysql import mysql
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import cluster, connections, masters, redis, terms
from plaza.infra.redis.commands import bind
from plaza.infra.redis.errors import RedisDown
from plaza.infra.redis.scripts import Script
from plaza.infra.runtime import settings, switch_state
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.switch_state import BaseSwitches
from plaza.notifications.notifications import list_groups, mark_read
from plaza.notifications.notifications import mysql_lists as unread_mysql
from plaza.notifications.notifications import queries as unread_queries
from plaza.notifications.notifications import redis_store as unread_redis
from plaza.people import follows
from plaza.people.follows import FollowLimit, follow_user
from tests.model.masters import TERM_AGE_S, Masters, hook_masters
from tests.model.order import Screens, find_read_totals
from tests.model.replica import check_replica
from tests.model.scheduler import Scheduler
from tests.support.keyspace import find_keys
from tests.support.plaza import FakeQueues, World, forget, lift_budgets, read_event
from tests.support.servers import IS_CLUSTER
from tests.support.stores import add_users
from tests.support.unread import check_unread

CAP, MAX_AHEAD, MAX_FOLLOWED = 3, 3, 1
# On the model's clock. A cluster has the real clock: longer, so that a busy machine is not late.
GATE_TIMEOUT_S, HYDRATE_WAIT_S, GAP_US = 0.5 if IS_CLUSTER else 0.03, 0.05, 100_000
PROVISIONAL_ORDER_S = 0.002
LEASES_MS = (30, 500)  # of real time; a run has one of them
RESEND_AFTER_US = 300_000
HOUR_US = 3_600_000_000
PAGE_OF_READERS = 3
STALLED_SHARE = 0.3  # of the processes, after a read that may become old
CHECKED_SHARE = 0.1  # of the steps: a target is compared with the log
PAGE = 3  # actors in a page of a build
MAX_LATE_STEPS = 1_500
ACTORS = range(1, 13)
TWO_DEVICES = (1, 2, 3, 4, 5)
AUTHORS = (1, 2)
FOLLOWED = (1, 2)
REQUESTS = 5  # of one device
MAX_STEPS = 6_000
MAX_QUIET_ROUNDS = 100_000 if IS_CLUSTER else 200  # of sweeps
MAX_QUIET_STEPS = 400_000 if IS_CLUSTER else 20_000  # on a cluster leases end in real time

STORES = (
    redis_commits,
    redis_failover_progress,
    redis_store,
    projections,
    redis_bloom,
    redis_gate,
    redis_inspection,
    redis_hydration,
    redis_outbox,
    redis_queries,
)

# What a backup has and a restore replaces. The log is before its projections.
RESTORED = (
    "reaction",
    "reaction_log",
    "counter",
    "user_counter",
    "unread_counter",
    "notification_group",
)
# Errors of a consumer after which SQS delivers its messages again; the second one, when a restore
# takes the counter that it has just created.
DELIVERED_AGAIN = (Unavailable, mysql_store.MissingCounters)

Pair = tuple[Kind, Target, int]


@dataclass(frozen=True)
class Trouble:
    """The faults of a run, as probabilities per step."""

    kill: float = 0.0
    queue_away: float = 0.0
    queue_late: float = 0.0  # of a message, which SQS stores after its sender gave up
    lost_reply: float = 0.0  # of a call of Redis, which is then repeated
    late: float = 0.0  # of a call of the gate, which is executed after its caller's timeout
    redis_away: float = 0.0
    flush: float = 0.0
    rollback: float = 0.0
    drop: float = 0.0
    promote: float = 0.0  # the other node becomes master; not on a cluster
    ahead: float = 0.0  # TIME of Redis jumps an hour ahead, and soon back; not on a cluster
    back: float = 0.0  # TIME of Redis jumps an hour back, or ahead again; not on a cluster
    restore: float = 0.0  # a backup of MySQL, its restore, and the end of the runbook in turn

    @property
    def loses_data(self) -> bool:
        return self.flush > 0 or self.rollback > 0 or self.promote > 0 or self.restore > 0

    @property
    def is_lossy(self) -> bool:
        """Return whether requests may be decided later, or decisions be lost with Redis."""
        return self.loses_data or self.redis_away > 0 or self.late > 0 or self.ahead > 0


TROUBLES = {
    "none": Trouble(),
    "drops": Trouble(drop=0.01),
    "kills": Trouble(kill=0.003, drop=0.002),
    "queue": Trouble(queue_away=0.1, drop=0.002),
    "replies": Trouble(lost_reply=0.08, drop=0.002),
    "away": Trouble(redis_away=0.004, drop=0.004),
    "late": Trouble(late=0.05),
    "late queue": Trouble(redis_away=0.01, queue_late=0.3),
    "flush": Trouble(flush=0.002, kill=0.002),
    "rollback": Trouble(rollback=0.004, kill=0.002),
    "clock ahead": Trouble(ahead=0.002, redis_away=0.004, kill=0.002),
    "clock back": Trouble(back=0.003, kill=0.003, drop=0.002),
    "restore": Trouble(restore=0.003, kill=0.002, drop=0.002),
    "masters": Trouble(promote=0.001, kill=0.001, drop=0.001),
    "all": Trouble(0.002, 0.05, 0.05, 0.05, 0.03, 0.002, 0.001, 0.002, 0.002),
}


@dataclass
class Request:
    """A request of one device: its first and last step, and its result."""

    want: bool
    began: int
    ended: int | None = None
    result: str = "none"  # changed, unchanged, provisional, failed; none: killed


@dataclass
class Run:
    """One run: many actors on a few targets."""

    seed: int
    trouble: Trouble
    world: World
    scheduler: Scheduler
    targets: list[tuple[Kind, Target]]
    requests: dict[Pair, list[Request]] = field(default_factory=lambda: defaultdict(list))
    decided: dict[Pair, bool] = field(default_factory=lambda: defaultdict(bool))
    nonces: dict[Pair, str] = field(default_factory=dict)  # of the request that decided last
    decisions: list[tuple[Pair, bool]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    stats: Counter[str] = field(default_factory=Counter)
    late: list[tuple[int, tuple[Any, ...]]] = field(default_factory=list)
    late_bodies: list[tuple[int, str, str]] = field(default_factory=list)  # step, queue, body
    saved: dict[bytes, tuple[bytes | None, int]] | None = None
    comments: int = 0
    comments_begun: int = 0
    losses: int = 0
    time_offset_us: int = 0  # of Redis' TIME
    backup: dict[str, list[Any]] | None = None
    restored: int | None = None  # the step of the last restore
    is_restoring: bool = False
    devices: list[greenlet] = field(default_factory=list)
    masters: Masters | None = None
    screens: Screens = field(default_factory=Screens)
    is_calm: bool = False
    is_unchecked: bool = False

    @property
    def queues(self) -> FakeQueues:
        return self.world.queues

    @property
    def rng(self) -> random.Random:
        return self.scheduler.rng

    @property
    def is_decided_by_gate(self) -> bool:
        """Return whether the gate's newest decision is the actor's state at every moment."""
        return not self.trouble.is_lossy

    def note(self, text: str) -> None:
        self.log.append(f"{self.scheduler.steps} {text}")

    @property
    def redis_now_us(self) -> int:
        """The time of Redis."""
        return self.scheduler.clock.now_us + self.time_offset_us

    # -- processes

    def device(self, actor: int) -> None:
        """Spawn a device of an actor, which sends requests one after the other."""

        def work() -> None:
            for _ in range(REQUESTS):
                for _ in range(self.rng.randrange(12)):
                    self.scheduler.pause()
                self._request(actor)

        self.devices.append(self.scheduler.spawn(work))

    def _request(self, actor: int) -> None:
        kind, target = self.rng.choice(self.targets)
        if kind is FOLLOW and target.id == actor:
            return
        want = self.rng.random() < 0.6
        requests = self.requests[kind, target, actor]
        request = Request(want, self.scheduler.steps)
        requests.append(request)
        began_s = time.monotonic()
        try:
            if kind is FOLLOW and want:
                outcome = follows.follow(target.id, actor)
            else:
                outcome = react.react(kind, target, actor, want)
        except (Unavailable, FollowLimit, TooManyChanges) as error:
            request.result = "failed"
            self.stats[type(error).__name__] += 1
        else:
            self.screens.see_answer((kind, target), outcome.total, outcome.at)
            request.result = (
                "provisional"
                if not outcome.exact
                else "changed"
                if outcome.changed
                else "unchanged"
            )
            if request.result == "provisional":
                self.scheduler.sleep(0.0011)  # the clock of a queue has milliseconds
        request.ended = self.scheduler.steps
        self.stats[request.result] += 1
        self.note(f"{actor} {'+' if want else '-'} {kind.name} {target}: {request.result}")
        # A slower one may have been saved after ``resend_after_s``, and forgotten, before it was
        # repeated.
        if time.monotonic() - began_s < RESEND_AFTER_US / 1e6:
            self._check_result(actor, requests)

    def _check_result(self, actor: int, requests: Sequence[Request]) -> None:
        """Check that an exact result after an exact one is right about the change."""
        if actor in TWO_DEVICES or self.trouble.loses_data:
            return
        request = requests[-1]
        before = requests[-2] if len(requests) > 1 else Request(False, 0, 0, "changed")
        if request.result in ("changed", "unchanged") and before.result in ("changed", "unchanged"):
            changed = request.want != before.want
            assert (request.result == "changed") == changed, f"{actor}: {before} then {request}"

    def comment(self) -> None:
        """Add a comment: it changes a counter of a post, but no version of reactions."""
        posts = [target for _, target in self.targets if target.type == "post"]
        if not posts:
            return
        target = posts[0]

        def work() -> None:
            deltas = {(*target, counters.COMMENT): counters.CounterDelta(1)}
            restored = self.restored
            mysql.run_in_transaction(lambda cursor: counters.add_to_targets(cursor, deltas))
            if self.restored == restored:
                self.comments += 1

        self.comments_begun += 1
        self.scheduler.spawn(work)

    def consume(self) -> None:
        """Save a random batch; delete it from the queue afterwards, with a probability of 0.9."""
        bodies = self.queues.messages[REACTIONS]
        batch = self.rng.sample(bodies, self.rng.randint(1, min(len(bodies), 8)))
        if self.rng.random() < 0.2:
            batch += self.rng.sample(batch, 1)
        again = not self.is_calm and self.rng.random() < 0.1

        def work() -> None:
            with suppress(*DELIVERED_AGAIN):
                persist.save([read_event(body) for body in batch])
                if not again:
                    self._delete(bodies, batch)

        self._spawn_anywhere(work)

    def _spawn_anywhere(self, work: Callable[[], None]) -> None:
        """Spawn a process, which may be on the old side of a partition."""
        process = self.scheduler.spawn(work)
        if self.masters and not self.is_calm and self.rng.random() < 0.3:
            self.masters.connect_to_other(process)

    @staticmethod
    def _delete(queued: list[str], batch: Sequence[str]) -> None:
        for body in batch:
            queued[:] = [other for other in queued if other is not body]

    def acknowledge_again(self) -> None:
        bodies = self.queues.messages[ACKNOWLEDGEMENTS]
        body = self.rng.choice(bodies)

        def work() -> None:
            with suppress(*DELIVERED_AGAIN):
                persist.acknowledge_again([ACKNOWLEDGEMENTS.decode(str(body))])
                self._delete(bodies, [body])

        self._spawn_anywhere(work)

    def rebuild(self) -> None:
        kind, target = self.rng.choice(self.targets)
        bodies = self.queues.messages[REBUILDS]
        body = bodies[-1] if bodies else None

        def work() -> None:
            with suppress(Unavailable):
                if body is None:
                    hydration.request_rebuild(kind, target)
                    return
                rebuild.rebuild([REBUILDS.decode(str(body))])
                self.stats["built"] += 1
                self._delete(bodies, [body])

        self.scheduler.spawn(work)

    def sweep(self) -> None:
        self.world.let_sweeps_be_due()

        def work() -> None:
            with suppress(Unavailable):
                # ``resend_after_us`` is longer than a request: its entry is not sent before its
                # reply.
                sweep.sweep_outbox(resend_after_us=RESEND_AFTER_US)
                if self.masters:
                    failover_recovery.acknowledge_after_failover()

        self._spawn_anywhere(work)

    def read(self) -> None:
        (kind, target), actor = self.rng.choice(self.targets), self.rng.choice(ACTORS)

        def work() -> None:
            limit = self.rng.choice((PAGE_OF_READERS, 20))
            with suppress(Unavailable):
                self._check_count(kind, target, actor)
                listed, _ = queries.list_reactors(
                    kind, target, None, self.rng.random() < 0.5, limit
                )
                actors = [reactor.actor_id for reactor in listed]
                assert len(set(actors)) == len(actors), f"a list has an actor twice: {listed}"
                queries.list_reacted(LIKE, actor, None, 5)
                counters.read_users([actor, *FOLLOWED])
                unread_queries.read_unread(self.rng.choice(AUTHORS))

        self.scheduler.spawn(work)

    def mark(self) -> None:
        """Display the list of notifications, and mark it as read some steps later."""
        author = self.rng.choice(AUTHORS)

        def work() -> None:
            with suppress(Unavailable):
                page = list_groups.list_groups(author, None, 20, is_displayed=True)
                for _ in range(self.rng.randrange(60)):
                    self.scheduler.pause()
                before = {g.key: g.fresh for g in page.groups}
                mark_read.mark_read(author, page.state.version)
                self.stats["marks"] += any(before.values())

        self.scheduler.spawn(work)

    def _check_count(self, kind: Kind, target: Target, actor: int) -> None:
        """Check that an exact count was right at some moment during the read."""
        on, first = self._count_on(kind, target), len(self.decisions)
        totals, states = {on}, {self.decided[kind, target, actor]}
        decided = dict(self.decided)
        [(total, state, token)], exact = queries.read_counts([(kind, target)], actor)
        self.screens.see_answer((kind, target), total, token)
        for pair, want in self.decisions[first:]:
            if pair[:2] == (kind, target):
                on += want - decided.get(pair, False)
                decided[pair] = want
                totals.add(on)
                states |= {want} if pair[2] == actor else set()
        if exact and self.is_decided_by_gate:
            name = f"{kind.name} {target}"
            assert total in totals, f"{name}: read {total}, it was {totals}"
            assert state in states, f"{name} of {actor}: read {state}, it was {states}"

    def _check_replica(self, kind: Kind, target: Target) -> None:
        """Compare a target with the log; one of another term must not be readable."""
        if check_replica(kind, target):
            self.stats["replicas"] += 1
            self.screens.see_state((kind, target), self.losses)
            return
        with suppress(RedisDown):
            cached = redis_queries.read_all([(kind, target)], None)
            assert cached == [None], f"{kind.name} {target}: {cached} of another term"

    def _count_on(self, kind: Kind, target: Target) -> int:
        return sum(on for (k, t, _), on in self.decided.items() if (k, t) == (kind, target))

    # -- faults

    def flush(self) -> None:
        self.note("FLUSHALL")
        redis.execute("FLUSHALL")
        self.losses += 1
        self.stats["flushed"] += 1

    def roll_back(self) -> None:
        """Restart Redis with older data: the first call stores the data, the second restarts."""
        if self.saved is None:
            with _raw() as client:
                self.saved = {
                    key: (client.dump(key), max(0, client.pttl(key))) for key in client.keys("*")
                }
            return
        self.note("ROLLBACK")
        redis.execute("FLUSHALL")
        with _raw() as client:
            for key, (value, ttl_ms) in self.saved.items():
                if value is not None:  # expired between KEYS and DUMP
                    client.restore(key, ttl_ms, value)
        self.saved = None
        self.losses += 1
        self.screens.newest.clear()  # a request under way names the term before, and reads this
        self.stats["rolled back"] += 1
        with _raw() as client:
            client.execute_command("DEBUG", "CHANGE-REPL-ID")
            term = str(client.info("replication")["master_replid"])
        for name, node in terms.known_nodes.items():
            terms.known_nodes[name] = node._replace(term=term)

    def jump(self) -> None:
        """Move the clock of Redis by an hour, or back to the processes' clock."""
        hour_us = HOUR_US if self.trouble.ahead else -HOUR_US
        self.time_offset_us = 0 if self.time_offset_us else hour_us
        self.note(f"TIME {self.time_offset_us // 1_000_000} s")
        self.stats["jumps"] += 1

    def restore(self) -> None:
        """Restore MySQL as docs/runbooks/mysql-restored.md does. The first call makes a backup, the
        second restores it, the third sends what may be in Redis alone and empties Redis."""
        if self.backup is None:
            self.backup = {table: mysql.fetch_all(f"SELECT * FROM {table}") for table in RESTORED}
        elif not self.is_restoring:
            self.note("RESTORE")
            for table, rows in self.backup.items():
                mysql.write(f"DELETE FROM {table}")
                for row in rows:
                    marks = ",".join(["%s"] * len(row))
                    mysql.write(f"INSERT INTO {table} VALUES ({marks})", row)
            mysql.write("UPDATE log_barrier SET epoch = epoch + 1")
            self.comments = _count_comments()
            self.is_restoring, self.restored = True, self.scheduler.steps
            self.losses += 1
            self.stats["restored"] += 1
        else:
            self.note("FLUSHALL after a restore")
            while sweep.sweep_outbox(everything=True) or any(self.queues.messages.values()):
                self.queues.drain()
                self.scheduler.clock.advance(2 * GAP_US)
            redis.execute("FLUSHALL")
            self.is_restoring, self.backup = False, None

    def drop(self) -> None:
        self.note("DROP")
        kind, target = self.rng.choice(self.targets)
        if self.rng.random() < 0.5:
            redis.execute("DEL", redis_keys.keys_of(kind.name, target).bloom)
        else:
            self.drop_target(kind, target)
        redis.execute("DEL", redis_store.user_key(self.rng.choice(ACTORS)))

    @staticmethod
    def drop_target(kind: Kind, target: Target) -> None:
        """Drop a target, as when a commit was lost."""
        redis_hydration.evict_all([(kind, target, None)])

    def _change_masters(self, masters: Masters) -> None:
        """Promote the other node, end a partition, or let a replica catch up."""
        rng = self.rng
        if masters.other.is_master and rng.random() < 0.5:
            self.note("REJOIN")
            masters.rejoin()
            return
        masters.rejoin()
        if is_planned := rng.random() < 0.5:
            masters.replicate()
        is_cut_off = not is_planned and rng.random() < 0.6
        keeps = rng.random() < 0.5
        self.note(f"PROMOTE planned {is_planned}, cut off {is_cut_off}, connections stay {keeps}")
        masters.promote(cut_off=is_cut_off, keep_connections=keeps)
        self.losses += 1
        self.stats["promotions"] += 1

    def fail_back(self, masters: Masters) -> None:
        """After the last commit, promote once or twice more; two runs of the sweeper follow. What
        a process with an old connection reads later is right or not exact."""
        for _ in range(self.rng.randint(0, 2)):
            masters.replicate()
            masters.promote(cut_off=False, keep_connections=True)
        if self.rng.random() < 0.7:
            self._save_on_the_old_side(masters)
        for _ in range(2):
            failover_recovery.acknowledge_after_failover()
            self.queues.drain()
        self.calm_down()
        self.scheduler.clock.advance(int(TERM_AGE_S * 1e6))
        for connection in masters.old:
            for actor in self.rng.sample(ACTORS, 2):
                process = self.scheduler.spawn(lambda actor=actor: self._read_late(actor))  # type: ignore[misc]
                masters.connections[process] = connection
        self.scheduler.finish()

    def _save_on_the_old_side(self, masters: Masters) -> None:
        """Let a consumer save a last event on the old side of a partition, while the sweeper and a
        reader are connected to the other master."""
        kind, target = self.rng.choice(self.targets)
        actor = self.rng.choice([a for a in ACTORS if kind is not FOLLOW or a != target.id])
        want = not _rows(kind, target).get(actor, (False, 0))[0]
        now = self.scheduler.steps
        self.requests[kind, target, actor].append(Request(want, now, now, "provisional"))
        self.scheduler.sleep(0.0011)
        react.publish(ReactionEvent(ReactionKey(*target, kind.name, actor), want, None))
        bodies = self.queues.take(REACTIONS)
        masters.replicate()
        masters.promote(cut_off=True, keep_connections=True)

        def save() -> None:
            persist.save([read_event(body) for body in bodies])

        def read() -> None:
            with suppress(Unavailable):
                queries.read_counts([(kind, target)], actor)

        self.scheduler.spawn(failover_recovery.acknowledge_after_failover)
        self.scheduler.spawn(read)
        if self.rng.random() < 0.5:
            self.scheduler.finish()
        masters.connect_to_other(self.scheduler.spawn(save))
        self.scheduler.finish()
        masters.rejoin()

    def _read_late(self, actor: int) -> None:
        try:
            counts, exact = queries.read_counts(self.targets, actor)
        except Unavailable:
            return
        if exact:
            for (kind, target), (total, state, _) in zip(self.targets, counts, strict=True):
                on = {a for a, (is_on, _) in _rows(kind, target).items() if is_on}
                assert (total, state) == (len(on), actor in on), (
                    f"{kind.name} {target}: {total}, {state} by an old connection, rows {on}"
                )

    # -- one step

    def advance(self) -> None:
        """Play one step of a random process or fault."""
        rng, trouble, alive = self.rng, self.trouble, self.scheduler.alive
        if rng.random() < trouble.flush:
            self.flush()
        if rng.random() < trouble.rollback and not IS_CLUSTER:
            self.roll_back()
        if rng.random() < trouble.drop:
            self.drop()
        hour_ends = 0.05 if self.time_offset_us > 0 else 0.0
        if (jump := trouble.ahead or trouble.back) and rng.random() < max(jump, hour_ends):
            self.jump()
        if trouble.restore and rng.random() < trouble.restore:
            self.queues.away = False
            self.restore()
        if self.masters and rng.random() < trouble.promote:
            self._change_masters(self.masters)
        elif self.masters and rng.random() < 0.005:
            self.masters.replicate()
        if rng.random() < (0.01 if self.scheduler.redis_away else trouble.redis_away):
            self.scheduler.redis_away = not self.scheduler.redis_away
        self.queues.away = rng.random() < trouble.queue_away
        if self.late and self.late[0][0] <= self.scheduler.steps:
            self.execute_late()
        self.accept_late_bodies(self.scheduler.steps)
        if alive and rng.random() < trouble.kill:
            self.note("KILL")
            self.scheduler.kill()
        elif len(alive) < len(ACTORS) + 8 and rng.random() < 0.08:
            self._choose_process()()
        elif alive:
            self.scheduler.step()

    def _choose_process(self) -> Callable[[], None]:
        processes = [self.read, self.sweep, self.rebuild, self.comment, self.mark]
        if self.queues.messages[REACTIONS]:
            processes += [self.consume] * 6
        if self.queues.messages[ACKNOWLEDGEMENTS]:
            processes += [self.acknowledge_again] * 2
        return self.rng.choice(processes)

    def execute_late(self) -> None:
        _, command = self.late.pop(0)
        [answer] = redis._send([command])
        self.stats[f"late {answer[0]}"] += 1
        self.watch(command, answer)

    def accept_late_bodies(self, until_step: int) -> None:
        """Store messages that are due in their queues."""
        if self.queues.away:
            return
        due = [late for late in self.late_bodies if late[0] <= until_step]
        for late in due:
            self.late_bodies.remove(late)
            self.queues.send(*late[1:])
            self.stats["late messages"] += 1

    def calm_down(self) -> None:
        """Stop the faults; run processes and consumers until nothing is left to do."""
        self.is_calm = True
        self.queues.away = self.scheduler.redis_away = False
        if self.masters:
            self.masters.rejoin()
        self.time_offset_us = min(self.time_offset_us, 0)
        if self.is_restoring:
            self.restore()
        while self.late:
            self.execute_late()
        self.accept_late_bodies(max((late[0] for late in self.late_bodies), default=0))
        rounds = 0
        for step in range(MAX_QUIET_STEPS):
            if step % 1000 == 0:  # leases of killed processes expire; others read again
                for kind, target in self.targets:
                    redis.execute("DEL", redis_keys.keys_of(kind.name, target).lease)
            bodies, alive = self.queues.messages[REACTIONS], self.scheduler.alive
            if bodies and len(alive) < 8 and self.rng.random() < 0.3:
                self.consume()
            elif alive:
                self.scheduler.step()
            elif any(self.queues.messages.values()):
                if self.masters:  # a sweeper with an old connection may have stored its term
                    failover_recovery.acknowledge_after_failover()
                self.queues.drain()
            else:
                self.world.let_sweeps_be_due()
                sweep.sweep_outbox(resend_after_us=0)
                if self.masters:
                    failover_recovery.acknowledge_after_failover()
                if not any(self.queues.messages.values()) and self.is_quiet():
                    for kind, target in self.targets:  # leases of killed processes expire
                        redis.execute("DEL", redis_keys.keys_of(kind.name, target).lease)
                    return
                if (rounds := rounds + 1) > MAX_QUIET_ROUNDS:
                    break
                self.scheduler.sleep(GAP_US / 1e6)
                time.sleep(0.01)
        states = {}
        for kind, target in self.targets:
            keys = redis_keys.keys_of(kind.name, target)
            states[f"{kind.name} {target}"] = (
                connections.client().hgetall(keys.meta),
                connections.client().hgetall(keys.outbox),
                connections.client().hkeys(keys.ahead),
                redis.execute("ZSCORE", keys.outboxes, keys.member),
                mysql_snapshots.read_counters([(kind, target)]),
            )
        backlogs = {name: len(bodies) for name, bodies in self.queues.messages.items() if bodies}
        raise AssertionError(
            f"not quiet after {step} steps, {rounds} rounds: {states}, {terms.known_nodes},"
            f" queues {backlogs},"
            f" {[_stack_of(process) for process in self.scheduler.alive]}"
        )

    def is_quiet(self) -> bool:
        """Return whether all commits are applied and all outboxes are empty."""
        if find_keys("*:outbox") or find_keys("{*}:outboxes"):
            return False
        for kind, target in self.targets:
            ahead = redis_keys.keys_of(kind.name, target).ahead
            if self.meta(kind, target) and redis.execute("EXISTS", ahead):
                return False
            [(_, committed)] = mysql_snapshots.read_counters([(kind, target)])
            applied = self.meta(kind, target).get("db_version")
            if applied is not None and int(applied) != committed:
                raise AssertionError(f"{kind.name} {target} stays at {applied}, not {committed}")
        return True

    # -- observation of the gate

    def meta(self, kind: Kind, target: Target) -> dict[str, str]:
        """Return the meta of a target that is loaded in this run of the node, else {}."""
        keys = redis_keys.keys_of(kind.name, target)
        entries: dict[str, str] = connections.client().hgetall(keys.meta)
        is_loaded = entries.get("term") == masters.find_node(keys.meta).term
        return unpack_meta(entries) if is_loaded else {}

    def watch(self, command: Sequence[Any], answer: Any) -> None:
        """Record a decision of the gate."""
        if command[0] != "EVALSHA":
            return
        self.is_unchecked = True
        if command[1] == redis_gate.GATE.sha and answer[0] in ("CHANGED", "UNCHANGED"):
            actor, want, nonce, deadline_us = command[11:15]
            now_us, member = self.redis_now_us, str(command[17])
            assert IS_CLUSTER or now_us <= deadline_us, f"{actor}: decided after the deadline"
            for kind, target in self.targets:
                if member == redis_keys.keys_of(kind.name, target).member:
                    self._decide((kind, target, actor), want == 1, nonce, answer)

    def see_totals(self, command: Sequence[Any], reply: Any) -> None:
        """Record the totals in a reply of Redis, when it replies."""
        if command[0] != "EVALSHA" or not isinstance(reply, list):
            return
        is_of_master = not self.masters or self.masters.replies_as_master(command)
        totals = []
        if command[1] == redis_queries.READ.sha:
            totals = find_read_totals(command, reply, self.targets)
        elif command[1] == redis_gate.GATE.sha and reply[0] in ("CHANGED", "UNCHANGED"):
            totals = [
                ((kind, target), reply[2], at.parse_order(*reply[4:]))
                for kind, target in self.targets
                if redis_keys.keys_of(kind.name, target).meta == command[3]
            ]
        for pair, total, token in totals:
            self.screens.see_reply(pair, total, token, is_of_master=is_of_master)

    def _decide(self, pair: Pair, want: bool, nonce: str, answer: Sequence[Any]) -> None:
        """Record a decision, and check that its code is right about the change."""
        was, last_nonce = self.decided[pair], self.nonces.get(pair)
        # A repeat of the newest request gets the first reply while its entry exists.
        if self.is_decided_by_gate and nonce != last_nonce:
            changed = answer[0] == "CHANGED"
            assert changed == (was != want), (
                f"{pair[0].name} {pair[1]} of {pair[2]}: {answer[0]} to {want}, it was {was}"
            )
        self.decided[pair], self.nonces[pair] = want, nonce
        self.decisions.append((pair, want))

    def check_now(self) -> None:
        """After a step with a script, check the totals and the state of one actor.

        After some of these steps, also compare a target with the log.
        """
        self.screens.check()
        if not self.is_unchecked:
            return
        if not self.is_restoring and self.rng.random() < CHECKED_SHARE:
            self._check_replica(*self.rng.choice(self.targets))
        if self.trouble.is_lossy:
            self.is_unchecked = False
            return
        actor = self.rng.choice(ACTORS)
        for (kind, target), cached in zip(
            self.targets, redis_queries.read_all(self.targets, actor), strict=True
        ):
            if cached is not None:
                name, on = f"{kind.name} {target}", self._count_on(kind, target)
                assert cached.total == on, f"{name}: total {cached.total}, {on} were decided on"
                decided = self.decided[kind, target, actor]
                assert cached.viewer_state in (decided, None), (
                    f"{name} of {actor}: {cached.viewer_state}, decided {decided}"
                )
        self.is_unchecked = False


def _stack_of(process: greenlet) -> str:
    frames = traceback.extract_stack(process.gr_frame) if process.gr_frame else []
    return " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(frames))


def _raw() -> Any:
    """Return a client whose values are bytes."""
    return redis_py.Redis.from_url(settings.settings().redis_url)


# ---------------------------------------------------------------- setup and hooks


def begin(seed: int, trouble: Trouble, world: World, run_class: type[Run] = Run) -> Run:
    """Return a new run with its devices, none of which has started."""
    posts = [Target("post", seed * 10 + n) for n in (1, 2)]
    for post, author in zip(posts, AUTHORS, strict=True):
        world.add(post, author_id=author)
    rng = random.Random(seed)
    targets = [(LIKE, posts[0]), (COLLECT, posts[0]), (LIKE, posts[1])]
    targets += [(FOLLOW, Target("user", user_id)) for user_id in FOLLOWED]
    # One or two targets: more actors on each find more faults.
    two_kinds = rng.random() < 0.2
    chosen = targets[:2] if two_kinds else rng.sample(targets, rng.randint(1, 2))
    chosen.sort(key=str)
    run = run_class(seed, trouble, world, Scheduler(rng, stall=0.02), chosen)
    if rng.random() < 0.5:
        _save_earlier(run)
    for actor in [*ACTORS, *TWO_DEVICES]:
        run.device(actor)
    return run


def begin_empty(trouble: Trouble, world: World, targets: Sequence[tuple[Kind, Target]]) -> Run:
    """Return a new run on posts, without devices."""
    for _, target in targets:
        world.add(target, author_id=AUTHORS[0])
    return Run(0, trouble, world, Scheduler(random.Random(0)), list(targets), is_calm=True)


def _save_earlier(run: Run) -> None:
    """Save more actors than ``recent`` keeps, and flush Redis: targets are loaded incomplete."""
    events: list[ReactionEvent] = []
    followed: Counter[int] = Counter()
    for kind, target in run.targets:
        for actor in run.rng.sample(ACTORS, run.rng.randint(CAP + 1, 2 * CAP + 1)):
            pair = kind, target, actor
            if kind is FOLLOW:
                if target.id == actor or followed[actor] == MAX_FOLLOWED:
                    continue
                followed[actor] += 1
            version_us = run.scheduler.clock.now_us - 1_000 + len(events)
            events.append(ReactionEvent(ReactionKey(*target, kind.name, actor), True, version_us))
            run.decided[pair] = True
            run.requests[pair].append(Request(True, 0, 0, "changed"))
    persist.save(events)
    redis.execute("FLUSHALL")
    run.queues.messages.clear()


def hook(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make processes pause, and calls of Redis lose their replies or arrive late."""
    run.scheduler.hook(monkeypatch)
    run.scheduler.hook_clock(monkeypatch)
    run.scheduler.hook_snapshots(monkeypatch)
    send_pipeline = redis._send

    def send_at(commands: Sequence[Any]) -> list[Any]:
        """Store the model's time in the key that scripts read, see ``set_up``, then send."""
        if not run.trouble.ahead:
            _forget_clocks()
        run.is_unchecked = True
        now = ("SET", "model:now", run.redis_now_us)
        _, *replies = send_pipeline([now, *commands])
        for command, reply in zip(commands, replies, strict=True):
            run.see_totals(command, reply)
        if run.masters:
            run.masters.check_refused(replies)
        return replies

    def execute_at(command: Sequence[Any]) -> Any:
        [answer] = send_at([command])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def find_due(before_us: int, limit: int) -> list[tuple[Kind, Target]]:
        """Read the index for the run's targets only, not for all shards."""
        commands = []
        for kind, target in run.targets:
            keys = redis_keys.keys_of(kind.name, target)
            commands.append(("ZSCORE", keys.outboxes, keys.member))
        scores = redis.pipeline(commands)
        return [
            expected
            for expected, score in zip(run.targets, scores, strict=True)
            if score is not None and float(score) <= before_us
        ][:limit]

    def send_late(queue: str, body: str, delay_s: int = 0) -> None:
        """Send a message; or give up, and let the queue store it later."""
        if not run.is_calm and run.rng.random() < run.trouble.queue_late:
            due = run.scheduler.steps + run.rng.randrange(MAX_LATE_STEPS)
            run.late_bodies.append((due, queue, body))
            raise QueueDown("timeout in the model")
        run.queues.send(queue, body, delay_s)

    if run.trouble.queue_late:
        monkeypatch.setattr(sqs, "send", send_late)
    monkeypatch.setattr(redis_outbox, "find_due", find_due)
    hydrate_all, evict_all = redis_hydration.hydrate_all, redis_hydration.evict_all
    read_state = mysql_rows.read_state

    def stall(max_steps: int) -> None:
        """Pause some processes for so long that other reactions are saved and applied."""
        if run.rng.random() < STALLED_SHARE:
            for _ in range(run.rng.randrange(max_steps)):
                if not run.is_calm:
                    run.scheduler.pause()

    def hydrate_late(result: Any) -> list[str]:
        """Pause between the snapshot and the hydration."""
        stall(200)
        return hydrate_all(result)

    def read_state_late(kind: Kind, target: Target, actor_id: int) -> tuple[bool, int]:
        """Pause between the read of a row and the gate."""
        state = read_state(kind, target, actor_id)
        stall(100)
        return state

    def count_drops(targets: Any) -> list[str]:
        codes = evict_all(list(targets))
        run.stats["dropped"] += codes.count("EVICTED")
        return codes

    monkeypatch.setattr(redis_hydration, "hydrate_all", hydrate_late)
    monkeypatch.setattr(mysql_rows, "read_state", read_state_late)
    monkeypatch.setattr(redis_hydration, "evict_all", count_drops)

    learn_node = terms.read_node_info

    def learn_clock_of_model(connection: Any) -> None:
        learn_node(connection)
        _forget_clocks()

    if not IS_CLUSTER:
        monkeypatch.setattr(redis, "_send", send_at)
        monkeypatch.setattr(terms, "read_node_info", learn_clock_of_model)
        connections.forget_client()
    if run.trouble.promote and not IS_CLUSTER:
        run.masters = Masters(run.scheduler)
        hook_masters(run.masters, monkeypatch)
    execute, send = redis._execute, cluster.send

    def execute_command(command: Any) -> Any:
        args = bind(command, "")
        if args[0] == "EVALSHA":
            return call(args, lambda: execute_at(args))
        return execute_at(args) if args[0] == "EVAL" or run.masters else execute(args)

    def call(args: Sequence[Any], send_once: Callable[[], Any]) -> Any:
        is_script = args[0] == "EVALSHA" and getcurrent() is not run.scheduler.main
        is_gate = is_script and args[1] == redis_gate.GATE.sha
        if is_gate and not run.is_calm and run.rng.random() < run.trouble.late:
            due = run.scheduler.steps + run.rng.randrange(MAX_LATE_STEPS)
            run.late.append((due, tuple(args)))
            run.late.sort()
            raise RedisDown("timeout in the model")
        answer = send_once()
        run.watch(args, answer)
        if is_script and not run.is_calm and run.rng.random() < run.trouble.lost_reply:
            run.stats["lost replies"] += 1
            for _ in range(run.rng.randrange(6)):
                run.scheduler.pause()
            answer = send_once()
            run.watch(args, answer)
        return answer

    def send_all(client: Any, commands: Sequence[Any], roles: Any) -> Any:
        answers = send(client, commands, roles)
        for command, answer in zip(commands, answers, strict=True):
            if command[0] in ("EVALSHA", "EVAL") and not isinstance(answer, Exception):
                bound = bind(command, cluster.name_node(client, command))
                run.watch(bound, answer)
                run.see_totals(bound, answer)
        return answers

    if IS_CLUSTER:
        monkeypatch.setattr(cluster, "send", send_all)
    else:
        monkeypatch.setattr(redis, "_execute", execute_command)


def _forget_clocks() -> None:
    """Set the clock offset of all nodes to 0: a model has one clock."""
    for name, node in terms.known_nodes.items():
        if node.clock_offset_us:
            terms.known_nodes[name] = node._replace(clock_offset_us=0)


# ---------------------------------------------------------------- checks when all is applied


def check_quiet(run: Run) -> None:
    """Check that Redis, counters, rows and log agree, and with each actor's last result."""
    for kind, target in run.targets:
        rows = _rows(kind, target)
        on = {actor for actor, (state, _) in rows.items() if state}
        [(counter, db_version)] = mysql_snapshots.read_counters([(kind, target)])
        name = f"{kind.name} {target}"
        assert counter == len(on), f"{name}: counter {counter}, rows {len(on)}"
        [(logged, commits)] = mysql.fetch_all(
            "SELECT COALESCE(SUM(change_by), 0), COUNT(DISTINCT db_version) FROM reaction_log"
            " WHERE target_type = %s AND target_id = %s AND kind = %s",
            (*target, kind.name),
        )
        assert logged == len(on), f"{name}: log {logged}, rows {len(on)}"
        assert commits <= db_version, f"{name}: {commits} commits in the log, version {db_version}"
        newest = mysql.fetch_all(
            "SELECT db_version, total FROM reaction_log"
            " WHERE target_type = %s AND target_id = %s AND kind = %s"
            " ORDER BY db_version DESC LIMIT 1",
            (*target, kind.name),
        )
        if newest and (newest[0][0] == db_version or not run.restored):
            assert newest == [(db_version, len(on))], f"{name}: log {newest}, rows {len(on)}"
        _check_redis(run, kind, target, rows, on, db_version)
        for actor in ACTORS:
            allowed = _allowed(run.requests.get((kind, target, actor), []), run.restored)
            assert (actor in on) in allowed, (
                f"{name} of {actor}: row {rows.get(actor)}, requests"
                f" {run.requests[kind, target, actor]}"
            )
        in_order = sorted(on, key=lambda actor: (rows[actor][1], actor))
        for latest in (False, True):
            listed = read_list(kind, target, latest)
            assert listed == (in_order[::-1] if latest else in_order), f"{name}: list {listed}"
        for actor in ACTORS:
            [count], exact = queries.read_counts([(kind, target)], actor)
            assert (*count[:2], exact) == (len(on), actor in on, True), f"{name}: read by {actor}"
            run.screens.check_settled((kind, target), count, len(on))
    _check_user_lists()
    _check_users(run)
    _check_unread(run)
    comments = _count_comments()
    assert run.comments <= comments <= run.comments_begun, "each comment is counted once"


def _count_comments() -> int:
    rows = mysql.fetch_all("SELECT COALESCE(SUM(total), 0) FROM counter WHERE kind = 'comment'")
    return int(rows[0][0])


def _check_redis(
    run: Run,
    kind: Kind,
    target: Target,
    rows: Mapping[int, tuple[bool, int]],
    on: set[int],
    db_version: int,
) -> None:
    meta, name = run.meta(kind, target), f"{kind.name} {target} in Redis"
    if not meta:
        return
    keys = redis_keys.keys_of(kind.name, target)
    assert (int(meta["db_version"]), int(meta["base"])) == (db_version, len(on)), f"{name}: {meta}"
    assert (meta["delta"], meta["outbox_count"]) == ("0", "0"), f"{name}: {meta}"
    assert redis.execute("PTTL", keys.meta) > 0, f"{name}: no TTL"
    floor = int(meta["floor"])
    pairs = redis.execute("ZRANGE", keys.recent, 0, -1, "WITHSCORES")
    recent = {int(a): int(float(v)) for a, v in zip(pairs[::2], pairs[1::2], strict=True)}
    above = {actor: rows[actor][1] for actor in on if rows[actor][1] > floor}
    assert {a: v for a, v in recent.items() if v > floor} == above, f"{name}: recent {recent}"
    assert set(recent) <= on, f"{name}: recent {recent}, on {on}"
    for actor in ACTORS:
        [cached] = redis_queries.read_all([(kind, target)], actor)
        if cached is not None and cached.viewer_state is not None:
            assert cached.viewer_state == (actor in on), (
                f"{name}: {actor} is {cached.viewer_state}, row {rows.get(actor)}"
            )


def _allowed(requests: Sequence[Request], restored: int | None) -> set[bool]:
    """Return the states that an actor's row may have after these requests.

    The last successful request decides. A request that failed, was killed, overlaps another or
    began before the step ``restored`` may or may not have been executed.
    """
    allowed = {False}
    for request in sorted(requests, key=lambda request: request.began):
        overlaps = any(
            other is not request
            and other.began <= (request.ended if request.ended is not None else 10**9)
            and request.began <= (other.ended if other.ended is not None else 10**9)
            for other in requests
        )
        is_successful = request.result in ("changed", "unchanged", "provisional")
        is_successful &= restored is None or request.began > restored
        allowed = {request.want} | (set() if is_successful and not overlaps else allowed)
    return allowed


def _rows(kind: Kind, target: Target) -> dict[int, tuple[bool, int]]:
    rows = mysql.fetch_all(
        "SELECT actor_id, state, version FROM reaction"
        " WHERE target_type = %s AND target_id = %s AND kind = %s",
        (*target, kind.name),
    )
    return {actor: (state == 1, version) for actor, state, version in rows}


def read_list(kind: Kind, target: Target, latest: bool) -> list[int]:
    """Return the actors of all pages of a list."""
    listed: list[int] = []
    after = None
    while True:
        page, after = queries.list_reactors(kind, target, after, latest, PAGE_OF_READERS)
        listed += [reactor.actor_id for reactor in page]
        if after is None:
            return listed


def _check_user_lists() -> None:
    for kind in (LIKE, FOLLOW):
        for actor in ACTORS:
            listed, _ = queries.list_reacted(kind, actor, None, 100)
            saved = mysql_rows.read_reacted(kind, actor, None, 100)
            assert listed == saved, f"{kind.name}s of {actor}: {listed}, rows {saved}"


def _check_unread(run: Run) -> None:
    """Check that each unread counter says what its rows say, that all that is on has notified, and
    that Redis has the unread counters of MySQL."""
    check_unread()
    if run.restored is None:
        silent = mysql.fetch_all(
            "SELECT r.target_id, r.kind, r.actor_id FROM reaction r LEFT JOIN content c"
            " ON c.content_type = r.target_type AND c.content_id = r.target_id"
            " WHERE r.state = 1 AND r.kind <> 'collect' AND r.notified_sequence = 0"
            " AND r.actor_id <> COALESCE(c.author_id, r.target_id)"
            " AND (c.content_id IS NOT NULL OR r.target_type = 'user')"
        )
        assert not silent, f"on, and never notified: {silent}"
    if not run.trouble.rollback and not run.masters and run.restored is None:
        stored = unread_mysql.read_states(ACTORS)
        for user_id, state in unread_redis.read_all(ACTORS).items():
            assert state == stored[user_id], (
                f"unread counter of {user_id}: {state}, not {stored[user_id]}"
            )


def _check_users(run: Run) -> None:
    """Check that counters of users equal the rows that they count, in MySQL and in Redis."""
    saved = mysql_store.read_users(ACTORS)
    in_redis = redis_store.read_users(ACTORS)
    for user_id, counted in saved.items():
        rows = mysql.fetch_all(
            "SELECT COALESCE(SUM(target_type = 'user' AND target_id = %s), 0),"
            " COALESCE(SUM(kind = 'follow' AND actor_id = %s), 0),"
            " COALESCE(SUM(kind = 'like' AND author_id = %s), 0),"
            " COALESCE(SUM(kind = 'collect' AND author_id = %s), 0)"
            " FROM (SELECT r.*, c.author_id FROM reaction r LEFT JOIN content c"
            " ON c.content_type = r.target_type AND c.content_id = r.target_id"
            " WHERE r.state = 1) AS reacted",
            [user_id] * 4,
        )
        followers, follows_total, likes, collects = map(int, rows[0])
        expected = UserCounter(followers, follows_total, 0, likes, collects, counted.version)
        assert counted == expected, f"the counters of user {user_id}"
        if not run.trouble.rollback and not run.masters and run.restored is None:
            projected = in_redis.get(user_id, counted)
            assert projected == counted, f"user {user_id} in Redis: {projected}, not {counted}"
        if not run.trouble.is_lossy:
            assert follows_total <= MAX_FOLLOWED, f"user {user_id} follows too many"
    if not run.trouble.is_lossy and run.trouble.kill == 0:
        assert find_keys("*:holds") == [], "counted follows have no holds"


# ---------------------------------------------------------------- a run


# Replaces TIME. This key is the model's own, so scripts do not get it by KEYS.
MODEL_TIME = (
    "(function() local now = redis.call('GET', 'model:now')"
    " return {math.floor(now / 1000000), now % 1000000} end)()"
)


def run_seed(
    seed: int,
    trouble: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None] | None = None,
) -> Counter[str]:
    """Play one seed; return counts of what happened. Raises AssertionError with the seed."""
    with monkeypatch.context() as patch:
        set_up(world, patch, seed)
        if mutate:
            mutate(patch)
        if trouble != "none":  # without faults no commit is lost, however late it is
            patch.setattr(redis_commits, "MAX_AHEAD", MAX_AHEAD)
            shorten_gaps(patch)
        run = begin(seed, TROUBLES[trouble], world)
        try:
            with patch.context() as hooks:
                hook(run, hooks)
                for _ in range(MAX_STEPS):
                    run.advance()
                    run.check_now()
                    if all(device.dead for device in run.devices):
                        break
                run.calm_down()
                if run.masters:
                    run.fail_back(run.masters)
                check_quiet(run)
            if trouble == "none" and not IS_CLUSTER:  # on a cluster a step may exceed the gap
                assert not run.stats["dropped"], "a target was dropped without a lost commit"
        except AssertionError as error:
            raise AssertionError(
                f"PLAZA_MODEL_SEED={seed - 1} -k {trouble}: {error}\n" + "\n".join(run.log[-60:])
            ) from error
        finally:
            run.scheduler.redis_away = False
            if run.restored is not None:
                mysql.write("UPDATE log_barrier SET epoch = 0")
        return run.stats


def set_up(world: World, patch: pytest.MonkeyPatch, seed: int) -> None:
    """Empty the stores; make targets small and waits short."""
    patch.setenv("PLAZA_RECENT_CAP", str(CAP))
    patch.setattr(follow_user, "FOLLOW_LIMIT", MAX_FOLLOWED)
    patch.setattr(redis_store, "MAX_CLOCK_SKEW_US", 0)  # the model has one clock
    # No jump of the clock, by an hour, ends a hold.
    patch.setattr(redis_store, "HOLD_TTL_MS", 2 * HOUR_US // 1_000)
    patch.setattr(hydration, "HYDRATE_WAIT_S", HYDRATE_WAIT_S)
    patch.setattr(react, "PROVISIONAL_ORDER_S", PROVISIONAL_ORDER_S)
    patch.setattr(switches_refresh, "read", Switches)
    patch.setattr(rebuild, "PAGE", PAGE)
    patch.setattr(queries, "EARLIEST_LENGTH", PAGE_OF_READERS + 1)
    patch.setattr(failover_recovery, "MIN_INTERVAL_S", 0)
    lift_budgets(patch)
    patch.setattr(redis_hydration, "HYDRATION_LEASE_TTL_MS", LEASES_MS[seed % len(LEASES_MS)])
    forget()
    if not IS_CLUSTER:
        for name in (
            "GATE", "APPLY", "HYDRATE", "SWEEP", "READ", "BEGIN_BLOOM", "FILL_BLOOM", "HOLD",
        ):  # fmt: skip
            script = rewrite(patch, name, "redis.call('TIME')", MODEL_TIME)
            redis.execute("SCRIPT", "LOAD", script.source)  # the run watches EVALSHA only
    of_gate = replace(settings.settings(), redis_timeout_s=GATE_TIMEOUT_S)
    patch.setattr(redis_gate, "settings", lambda: of_gate)
    for table in (
        "reaction", "reaction_log", "content", "counter", "user_counter", "spilled_message",
        "redis_epoch", "redis_term", "watermark", "unread_counter", "notification_group",
    ):  # fmt: skip
        mysql.write(f"DELETE FROM {table}")
    redis.execute("FLUSHALL")
    switch_state.follow(BaseSwitches())
    add_users(*ACTORS)
    world.queues.messages.clear()


def shorten_gaps(patch: pytest.MonkeyPatch) -> None:
    """Make scripts wait for a missing commit for GAP_US instead of 1 s."""
    rewrite(patch, "APPLY", "GAP_US = 1000000", f"GAP_US = {GAP_US}")
    rewrite(patch, "SWEEP", "MIN_WAIT_US = 1000000", f"MIN_WAIT_US = {GAP_US}")


def rewrite(patch: pytest.MonkeyPatch, name: str, old: str, new: str) -> Script:
    """Replace ``old``; return the new script. Raises LookupError when it has no ``old``."""
    [module] = [store for store in STORES if name in vars(store)]
    script: Script = getattr(module, name)
    if old not in script.source:
        raise LookupError(f"{name} has no {old!r}")
    source = script.source.replace(old, new)
    rewritten = Script(script.name, lambda: source)
    patch.setattr(module, name, rewritten)
    return rewritten
