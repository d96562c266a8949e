"""Stories: schedules that random runs rarely meet, each written to break without one rule.

A story has moments: it is played with a process that is stopped after 0, 1, 2, ... of its steps,
until it ends before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import count

import pytest
from greenlet import GreenletExit, greenlet

from plaza.core import counters
from plaza.core.counters import redis_store
from plaza.core.reactions import (
    FOLLOW,
    LIKE,
    Target,
    failover_recovery,
    hydration,
    mysql_rows,
    persist,
    queries,
    react,
    rebuild,
    redis_hydration,
    redis_keys,
    sweep,
)
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS, REBUILDS
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.people.follows import FollowLimit, follow_user
from tests.model.masters import TERM_AGE_S, Masters
from tests.model.reactions_model import (
    ACTORS,
    AUTHORS,
    CAP,
    HOUR_US,
    MAX_FOLLOWED,
    PAGE_OF_READERS,
    RESEND_AFTER_US,
    Run,
    Trouble,
    begin_empty,
    hook,
    read_list,
    set_up,
)
from tests.support.plaza import World, read_event

LEASE_MS = 60_000  # of real time: no lease ends within a story
_OTHER_POST = 1_000
_KILLED_AFTER = range(1, 16, 2)  # steps of a sweeper, or more than it has
# Of a sweeper at the deposed master: its runs before the last one, whether another one runs at the
# other master, and whether the last run is killed; else it gets another connection.
_DEPOSED_SWEEPERS = (
    (0, False, True),
    (1, False, True),
    (3, False, True),
    (1, True, True),
    (1, False, False),
    (3, True, False),
)
Story = Callable[[Run, int], bool]  # returns whether the moment came before the end


def run_story(
    name: str,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None] | None = None,
    step: int = 1,
) -> None:
    """Play a story with each ``step``-th of its moments. Raises AssertionError with the moment."""
    trouble, story = STORIES[name]
    for moment in count(step=step):
        with monkeypatch.context() as patch:
            set_up(world, patch, 0)
            patch.setattr(redis_hydration, "HYDRATION_LEASE_TTL_MS", LEASE_MS)
            if mutate:
                mutate(patch)
            run = begin_empty(trouble, world, [(LIKE, Target("post", moment + 1))])
            with patch.context() as hooks:
                hook(run, hooks)
                try:
                    is_played = story(run, moment)
                    run.screens.check()
                except AssertionError as error:
                    raise AssertionError(f"{name} {moment}: {error}") from error
                finally:
                    mysql.write("UPDATE log_barrier SET epoch = 0")
        if not is_played:
            return


def _masters_of(run: Run) -> Masters:
    assert run.masters
    return run.masters


def _react(run: Run, actor: int) -> None:
    """Let an actor like the target; the message waits on the queue."""
    [(kind, target)] = run.targets
    assert react.react(kind, target, actor, True).exact


def _publish_provisional(run: Run, actor: int) -> None:
    """Publish a like that was answered 202."""
    [(kind, target)] = run.targets
    react.publish(ReactionEvent(ReactionKey(*target, kind.name, actor), True, None))


def _save_all(run: Run) -> None:
    persist.save([read_event(body) for body in run.queues.take(REACTIONS)])


def _spawn_consumer(run: Run) -> greenlet:
    events = [read_event(body) for body in run.queues.take(REACTIONS)]
    return run.scheduler.spawn(lambda: persist.save(events))


def _finish(process: greenlet) -> None:
    while not process.dead:
        process.switch()


def _step(process: greenlet, steps: int) -> bool:
    """Run a process for some steps; return whether it is alive."""
    for _ in range(steps):
        if process.dead:
            return False
        process.switch()
    return not process.dead


def _step_until_saved(run: Run, process: greenlet, total: int) -> None:
    """Run a consumer until its transaction is committed; it has not applied the commit."""
    while _count_rows(run) < total:
        process.switch()


def _count_rows(run: Run) -> int:
    [(_, target)] = run.targets
    sql = "SELECT COUNT(*) FROM reaction WHERE target_id = %s AND state = 1"
    return int(mysql.fetch_all(sql, (target.id,))[0][0])


def _settle(run: Run) -> None:
    """Run the sweeper until all that it can notice is applied."""
    for _ in range(3):
        failover_recovery.acknowledge_after_failover()
        run.queues.drain()
        run.scheduler.clock.advance(2_000_000)
        run.world.let_sweeps_be_due()
        sweep.sweep_outbox(resend_after_us=0)
        run.queues.drain()


def _check_answer(run: Run, on: set[int]) -> None:
    """Check that an exact answer for each actor is right."""
    for actor in (1, 2, 3):
        [count_], exact = queries.read_counts(run.targets, actor)
        answer = count_.total, count_.viewer_state
        assert not exact or answer == (len(on), actor in on), f"{answer} for {actor}, on: {on}"


def _term_returns(run: Run, moment: int) -> bool:
    """A reaction that was stored, but not replicated, before a failover there and back."""
    masters = _masters_of(run)
    _react(run, 1)
    _save_all(run)
    failover_recovery.acknowledge_after_failover()
    masters.replicate()
    _react(run, 2)
    _save_all(run)
    for _ in range(2):
        masters.promote(cut_off=False, keep_connections=False)
    _settle(run)
    _check_answer(run, {1, 2})
    return False


def _old_connection(run: Run, moment: int) -> bool:
    """A reader that is still connected to a replica, which lags behind its master, reads twice."""
    masters = _masters_of(run)
    _react(run, 1)
    _save_all(run)
    masters.replicate()
    reader = run.scheduler.spawn(lambda: _check_answer(run, {1, 2}))
    masters.connections[reader] = masters.connect()
    masters.promote(cut_off=False, keep_connections=True)
    failover_recovery.acknowledge_after_failover()
    _react(run, 2)
    _save_all(run)
    run.scheduler.clock.advance(2 * int(TERM_AGE_S * 1e6))
    _finish(reader)
    _react(run, 3)
    _save_all(run)
    reads_again = run.scheduler.spawn(lambda: _check_answer(run, {1, 2, 3}))
    masters.connections[reads_again] = masters.connections[reader]
    _finish(reads_again)
    return False


def _begin_replicated(run: Run) -> Masters:
    """Store a reaction, and let two sweeps and the replica know of it; return the masters."""
    masters = _masters_of(run)
    _react(run, 1)
    _save_all(run)
    for _ in range(2):
        failover_recovery.acknowledge_after_failover()
    masters.replicate()
    return masters


def _cut_off_a_consumer(run: Run) -> tuple[Masters, greenlet]:
    """Promote the replica, and leave a consumer of a new reaction on the old side of a partition;
    return the masters and the consumer."""
    masters = _begin_replicated(run)
    _react(run, 2)
    masters.promote(cut_off=True, keep_connections=True)
    consumer = _spawn_consumer(run)
    masters.connect_to_other(consumer)
    queries.read_counts(run.targets, 1)  # hydrates the target
    return masters, consumer


def _two_masters(run: Run, moment: int) -> bool:
    """A consumer on the old side of a partition saves while the sweeper notices the new master."""
    masters, consumer = _cut_off_a_consumer(run)
    sweeper = run.scheduler.spawn(failover_recovery.acknowledge_after_failover)
    is_played = _step(sweeper, moment)
    _finish(consumer)
    _finish(sweeper)
    masters.rejoin()
    _settle(run)
    _check_answer(run, {1, 2})
    return is_played


def _deposed_consumer(run: Run, moment: int) -> bool:
    """A consumer on the old side of a partition saves after the sweeper noticed the new master, and
    then one of the new master saves a reaction to another target."""
    masters, consumer = _cut_off_a_consumer(run)
    failover_recovery.acknowledge_after_failover()
    _finish(consumer)
    other = Target("post", run.targets[0][1].id + _OTHER_POST)
    run.world.add(other, author_id=AUTHORS[0])
    assert react.react(LIKE, other, 3, True).exact
    _save_all(run)
    masters.rejoin()
    _settle(run)
    _check_answer(run, {1, 2})
    return False


def _old_sweeper(run: Run, moment: int) -> bool:
    """A sweeper that is connected to a master from two terms ago is killed after every other of
    its steps, after the sweeper of the present master noticed this one."""
    masters = _begin_replicated(run)
    masters.promote(cut_off=True, keep_connections=True)
    old = run.scheduler.spawn(failover_recovery.acknowledge_after_failover)
    masters.connect_to_other(old)
    steps_before, index = divmod(moment, len(_KILLED_AFTER))
    is_played = _step(old, steps_before)
    masters.rejoin()
    masters.promote(cut_off=False, keep_connections=True)
    failover_recovery.acknowledge_after_failover()
    _step(old, _KILLED_AFTER[index])
    old.throw(GreenletExit)
    _settle(run)
    _react(run, 2)
    _save_all(run)
    _settle(run)
    _check_answer(run, {1, 2})
    return is_played


def _play_cut_off(masters: Masters, process: greenlet) -> None:
    """Run a process to its end on the old side of a partition."""
    masters.connect_to_other(process)
    _finish(process)


def _like_cut_off(run: Run, masters: Masters, actor: int) -> None:
    """Let the deposed master decide a like, and a consumer that is connected to it save it."""
    _play_cut_off(masters, run.scheduler.spawn(lambda: _react(run, actor)))
    _play_cut_off(masters, _spawn_consumer(run))


def _deposed_sweeper(run: Run, moment: int) -> bool:
    """A sweeper runs at the deposed master after a like that only this master has, alone or beside
    one at the other master. Its last run is killed, or gets another connection, after any step."""
    check = failover_recovery.acknowledge_after_failover
    masters = _begin_replicated(run)
    masters.promote(cut_off=True, keep_connections=True)
    queries.read_counts(run.targets, 1)  # hydrates the target
    steps, index = divmod(moment, len(_DEPOSED_SWEEPERS))
    runs_before, is_beside_another, is_killed = _DEPOSED_SWEEPERS[index]
    if is_beside_another:
        check()
        _play_cut_off(masters, run.scheduler.spawn(check))  # takes the guard back
    _like_cut_off(run, masters, 2)
    for _ in range(runs_before):
        _play_cut_off(masters, run.scheduler.spawn(check))
    last = run.scheduler.spawn(check)
    masters.connect_to_other(last)
    is_played = _step(last, steps)
    if is_killed:
        last.throw(GreenletExit)
    else:
        masters.connections.pop(last)
        _finish(last)
    masters.rejoin()
    _settle(run)
    _check_answer(run, {1, 2})
    return is_played or index < len(_DEPOSED_SWEEPERS) - 1


def _slow_sweeper(run: Run, moment: int) -> bool:
    """A sweeper at the new master pauses after any step, while one at the deposed master takes the
    guard back and is killed, and a like is saved that only the deposed master has."""
    masters = _begin_replicated(run)
    masters.promote(cut_off=True, keep_connections=True)
    queries.read_counts(run.targets, 1)  # hydrates the target
    steps, index = divmod(moment, len(_KILLED_AFTER))
    slow = run.scheduler.spawn(failover_recovery.acknowledge_after_failover)
    is_played = _step(slow, steps)
    old = run.scheduler.spawn(failover_recovery.acknowledge_after_failover)
    masters.connect_to_other(old)
    _step(old, _KILLED_AFTER[index])
    old.throw(GreenletExit)
    _like_cut_off(run, masters, 2)
    _finish(slow)
    for _ in range(2):
        failover_recovery.acknowledge_after_failover()
    masters.rejoin()
    _settle(run)
    _check_answer(run, {1, 2})
    return is_played or index < len(_KILLED_AFTER) - 1


def _repeated_follow(run: Run, moment: int) -> bool:
    """An actor repeats the only follow that the limit allows, and meanwhile replaces it by another
    one."""
    actor, first, second = ACTORS[:3]
    follow_user.follow(first, actor)
    run.queues.drain()
    repeats = run.scheduler.spawn(lambda: _try_to_follow(first, actor))
    is_played = _step(repeats, moment)
    follow_user.unfollow(first, actor)
    run.queues.drain()
    follow_user.follow(second, actor)
    run.queues.drain()
    _finish(repeats)
    _settle(run)
    followed = _read_followed(actor)
    assert followed == [second], f"{actor} follows {followed}"
    return is_played


def _provisional_unfollow(run: Run, moment: int) -> bool:
    """An unfollow was answered 202, and then the actor repeats the only follow that the limit
    allows."""
    actor, first = ACTORS[:2]
    follow_user.follow(first, actor)
    run.queues.drain()
    react.publish(ReactionEvent(ReactionKey("user", first, FOLLOW.name, actor), False, None))
    run.scheduler.clock.advance(2_000)
    follow_user.follow(first, actor)
    run.queues.drain()
    _settle(run)
    followed = _read_followed(actor)
    assert followed == [first], f"{actor} follows {followed}"
    return False


def _read_followed(actor: int) -> list[int]:
    followed = mysql_rows.read_reacted(FOLLOW, actor, None, len(ACTORS))
    return [followee.target.id for followee in followed]


def _slow_follow(run: Run, moment: int) -> bool:
    """An actor follows a user twice, by two devices, and unfollows, while the second follow is
    between its hold and the gate. Then the actor follows another user."""
    actor, first, second = ACTORS[:3]
    follow_user.follow(first, actor)
    run.scheduler.clock.advance(2_000)
    slow = run.scheduler.spawn(lambda: _try_to_follow(first, actor))
    is_played = _step(slow, moment)
    run.queues.drain()
    run.scheduler.clock.advance(2_000)
    follow_user.unfollow(first, actor)
    run.queues.drain()
    _finish(slow)
    _try_to_follow(second, actor)
    run.queues.drain()
    _settle(run)
    followed = _read_followed(actor)
    assert len(followed) == MAX_FOLLOWED, f"{actor} follows {followed}"
    return is_played


def _try_to_follow(user_id: int, actor_id: int) -> None:
    with suppress(FollowLimit):
        follow_user.follow(user_id, actor_id)


def _snapshot(run: Run, moment: int) -> bool:
    """A consumer commits, and has not applied its commit, while another process hydrates."""
    _react(run, 3)
    _save_all(run)
    _react(run, 1)
    run.drop_target(*run.targets[0])
    reader = run.scheduler.spawn(lambda: hydration.hydrate(run.targets))
    is_played = _step(reader, moment)
    consumer = _spawn_consumer(run)
    _step_until_saved(run, consumer, 2)
    _finish(reader)
    _check_answer(run, {1, 3})
    _finish(consumer)
    _check_answer(run, {1, 3})
    return is_played


def _slow_load(run: Run, moment: int) -> bool:
    """A process is about to take the lease, while another one loads the target. Redis loses its
    data, with a like that has one copy; then the first process goes on."""
    slow = run.scheduler.spawn(lambda: hydration.hydrate(run.targets))
    is_before = _step(slow, moment)
    [(kind, target)] = run.targets
    if redis.execute("EXISTS", redis_keys.keys_of(kind.name, target).lease):
        _finish(slow)
        return False
    hydration.hydrate(run.targets)
    _react(run, 1)
    run.queues.messages.clear()
    _check_answer(run, {1})
    run.flush()
    _finish(slow)
    _check_answer(run, set())
    return is_before


def _restore(run: Run, moment: int) -> bool:
    """A consumer that saved before a restore applies its commit after it."""
    _react(run, 3)
    _save_all(run)
    run.restore()
    _react(run, 1)
    consumer = _spawn_consumer(run)
    _step_until_saved(run, consumer, 2)
    run.restore()
    run.drop_target(*run.targets[0])
    hydration.hydrate(run.targets)  # of the new epoch
    is_played = _step(consumer, moment)
    _check_answer(run, {1, 3})
    _finish(consumer)
    _check_answer(run, {1, 3})
    run.restore()
    _check_answer(run, {1, 3})
    return is_played


def _lost_commit(run: Run, moment: int) -> bool:
    """The commit of a 202 is lost, the next one waits, and the clock of Redis goes back. A sweep or
    one more commit notices the loss."""
    hydration.hydrate(run.targets)
    _publish_provisional(run, 1)
    consumer = _spawn_consumer(run)
    _step_until_saved(run, consumer, 1)
    consumer.throw(GreenletExit)
    _publish_provisional(run, 2)
    _save_all(run)
    run.jump()
    run.scheduler.clock.advance(2_000_000)
    if moment == 0:
        sweep.sweep_outbox(resend_after_us=RESEND_AFTER_US)
        _check_answer(run, {1, 2})
        return True
    _publish_provisional(run, 3)
    _save_all(run)
    _check_answer(run, {1, 2, 3})
    return False


def _entry_of_the_future(run: Run, moment: int) -> bool:
    """A process dies before it sends a reaction, and the clock of Redis goes back."""
    _react(run, 1)
    run.queues.messages.clear()
    run.jump()
    _check_swept(run, {1})
    return False


def _row_of_the_future(run: Run, moment: int) -> bool:
    """A process dies before it sends a reaction to a target that has a row of the next hour."""
    [(kind, target)] = run.targets
    version_us = run.scheduler.clock.now_us + HOUR_US
    persist.save([ReactionEvent(ReactionKey(*target, kind.name, 2), True, version_us)])
    _react(run, 1)
    run.queues.messages.clear()
    _check_swept(run, {1, 2})
    return False


def _check_swept(run: Run, on: set[int]) -> None:
    """Check that a sweep after ``resend_after_s`` sends what MySQL lacks."""
    run.scheduler.clock.advance(2_000_000)
    sweep.sweep_outbox(resend_after_us=RESEND_AFTER_US)
    run.queues.drain()
    assert _count_rows(run) == len(on), f"{_count_rows(run)} rows after a sweep, on: {on}"
    _check_answer(run, on)


def _save_like(run: Run, actor: int) -> None:
    """Store a like of the gate, and apply it."""
    [(kind, target)] = run.targets
    version_us = run.scheduler.clock.now_us
    persist.save([ReactionEvent(ReactionKey(*target, kind.name, actor), True, version_us)])
    run.scheduler.clock.advance(1_000)


def _late_row(run: Run, moment: int) -> bool:
    """A like that is stored late belongs to the first page, which a reader has read or caches."""
    late_us = run.scheduler.clock.now_us
    run.scheduler.clock.advance(1_000)
    for actor in range(2, 2 + CAP + PAGE_OF_READERS):
        _save_like(run, actor)
    hydration.hydrate(run.targets)
    [(kind, target)] = run.targets
    reader = run.scheduler.spawn(lambda: read_list(kind, target, latest=False))
    is_played = _step(reader, moment)
    persist.save([ReactionEvent(ReactionKey(*target, kind.name, 1), True, late_us)])
    _finish(reader)
    listed = read_list(kind, target, latest=False)
    assert listed[:2] == [1, 2], f"list {listed}"
    return is_played


def _build(run: Run, moment: int) -> bool:
    """An actor reacts, and is evicted, while a filter is built that has passed this actor's id."""
    earlier = list(range(4, 6 + CAP))
    for actor in earlier:
        _save_like(run, actor)
    run.flush()
    hydration.hydrate(run.targets)
    hydration.request_rebuild(*run.targets[0])
    steps = [REBUILDS.decode(str(body)) for body in run.queues.take(REBUILDS)]
    builder = run.scheduler.spawn(lambda: rebuild.rebuild(steps))
    is_played = _step(builder, moment)
    later = [1, *range(earlier[-1] + 1, earlier[-1] + 1 + CAP)]
    for actor in later:
        _save_like(run, actor)
    _finish(builder)
    _check_answer(run, {*earlier, *later})
    return is_played


def _slow_read(run: Run, moment: int) -> bool:
    """A process reads the totals of a user in MySQL. A commit changes them, Redis loses them, and
    then the process stores what it has read."""
    key = redis_store.user_key(AUTHORS[0])
    reader = run.scheduler.spawn(lambda: counters.read_users(AUTHORS[:1]))
    is_played = _step(reader, moment)
    _save_like(run, 1)
    redis.execute("DEL", key)
    _finish(reader)
    totals = counters.read_users(AUTHORS[:1])[AUTHORS[0]]
    assert totals.likes_received_total == 1, f"{totals}"
    return is_played


STORIES: Mapping[str, tuple[Trouble, Story]] = {
    "a term returns": (Trouble(promote=1), _term_returns),
    "an old connection": (Trouble(promote=1), _old_connection),
    "two masters": (Trouble(promote=1), _two_masters),
    "a deposed consumer": (Trouble(promote=1), _deposed_consumer),
    "an old sweeper": (Trouble(promote=1), _old_sweeper),
    "a deposed sweeper": (Trouble(promote=1), _deposed_sweeper),
    "a slow sweeper": (Trouble(promote=1), _slow_sweeper),
    "a repeated follow": (Trouble(), _repeated_follow),
    "a slow follow": (Trouble(), _slow_follow),
    "a provisional unfollow": (Trouble(), _provisional_unfollow),
    "a snapshot": (Trouble(), _snapshot),
    "a slow load": (Trouble(flush=1), _slow_load),
    "a lost commit": (Trouble(back=1), _lost_commit),
    "an entry of the future": (Trouble(back=1), _entry_of_the_future),
    "a row of the future": (Trouble(), _row_of_the_future),
    "a restore": (Trouble(restore=1), _restore),
    "a late row": (Trouble(), _late_row),
    "a build": (Trouble(flush=1), _build),
    "a slow read": (Trouble(drop=1), _slow_read),
}
