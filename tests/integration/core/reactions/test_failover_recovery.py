"""After a failover of Redis, events that were logged before it are acknowledged again.

The terms are simulated, by names that processes read; test_term.py has terms of real servers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest

from plaza.core.reaction_log import mysql_log
from plaza.core.reactions import (
    LIKE,
    Target,
    failover_recovery,
    mysql_failover_progress,
    queues,
    react,
    redis_failover_progress,
    term_guard,
)
from plaza.infra.mysql import mysql
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import masters, redis
from plaza.infra.redis.masters import Master
from tests.support.failures import Killed, failing
from tests.support.plaza import World

POST = Target("post", 1)
FailOver = Callable[[], None]


@pytest.fixture
def fail_over(plaza: World, monkeypatch: pytest.MonkeyPatch) -> FailOver:
    """Simulate a Redis in its first term; each call of the fixture is a failover."""
    plaza.add(POST)
    term = 1

    def end_term() -> None:
        nonlocal term
        term += 1

    def read_masters(max_age_s: float = 1) -> dict[str, Master]:
        return dict.fromkeys(masters._TAGS, Master(0, f"term{term}", f"term{term - 1}"))

    monkeypatch.setattr(masters, "read_masters", read_masters)
    monkeypatch.setattr(redis_failover_progress, "_read_term", lambda _: (f"term{term}",))
    return end_term


@contextmanager
def at_the_deposed_master(fail_over: FailOver) -> Iterator[None]:
    """Play the block at a master that is cut off: the next one, which takes over after the block,
    has the data of before."""
    keys = redis_failover_progress._keys()
    before = redis.pipeline([("HGETALL", key) for key in keys])
    yield
    fail_over()
    redis.pipeline([("UNLINK", key) for key in keys])
    heads = zip(keys, before, strict=True)
    redis.pipeline([("HSET", key, *chain(*head.items())) for key, head in heads if head])


def like(plaza: World, *actors: int) -> None:
    for actor in actors:
        react.react(LIKE, POST, actor, True)
    plaza.queues.drain()


def acknowledged_again(plaza: World) -> list[int]:
    """Return the actors of the queued acknowledgements, in order."""
    bodies = plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    return [key[3] for body in bodies for key in json.loads(body)["keys"]]


def low_watermark() -> int | None:
    return mysql_log.read_low_watermark()


def head() -> int:
    return int(mysql.fetch_all("SELECT MAX(seq) FROM reaction_log")[0][0])


def test_events_saved_since_the_check_before_the_last_are_acknowledged_again(
    plaza: World, fail_over: FailOver
) -> None:
    for actor in range(1, 5):
        like(plaza, actor)
        assert failover_recovery.acknowledge_after_failover() == 0
    like(plaza, 5)
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [4, 5], (
        "the last check was after 4, the one before it after 3"
    )
    assert failover_recovery.acknowledge_after_failover() == 0, "queued once"


def test_checks_that_come_sooner_leave_the_heads(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EventBridge delivers an event twice, and operators run the sweeper: what was lost in the
    seconds before a failover would be older than the check before the last."""
    monkeypatch.setattr(failover_recovery, "MIN_INTERVAL_S", 45)
    check = failover_recovery.acknowledge_after_failover
    assert check() == 0
    like(plaza, 1)
    assert [check() for _ in range(3)] == [0, 0, 0]
    fail_over()
    assert [check(), acknowledged_again(plaza), check()] == [1, [1], 0]
    like(plaza, 2)
    fail_over()
    assert [check(), acknowledged_again(plaza), check()] == [2, [1, 2], 0]
    for _ in range(2):
        mysql.write("UPDATE redis_epoch SET checked_at = checked_at - INTERVAL 45 SECOND")
        assert check() == 0
    fail_over()
    assert check() == 0, "a minute after the second failover"


def test_heads_are_kept_after_the_clock_of_mysql_was_set_back(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failover_recovery, "MIN_INTERVAL_S", 45)
    like(plaza, 1)
    failover_recovery.acknowledge_after_failover()
    like(plaza, 2)
    mysql.write("UPDATE redis_epoch SET checked_at = checked_at + INTERVAL 1 DAY")
    failover_recovery.acknowledge_after_failover()
    assert mysql_failover_progress.read_progress()[0].last == head()


@pytest.mark.parametrize("checks", [1, 2, 4])
def test_checks_at_a_deposed_master_leave_the_heads_of_its_successor(
    plaza: World, fail_over: FailOver, checks: int
) -> None:
    check = failover_recovery.acknowledge_after_failover
    like(plaza, 1)
    assert [check(), check()] == [0, 0]
    with at_the_deposed_master(fail_over):
        like(plaza, 2)
        assert [check() for _ in range(checks)] == [0] * checks
    assert [check(), acknowledged_again(plaza), check()] == [1, [2], 0]
    fail_over()
    assert [check(), acknowledged_again(plaza)] == [1, [2]], "the heads are of this data"
    assert [check() for _ in range(2)] == [0, 0]
    fail_over()
    assert check() == 0, "two checks after the recovery"


def test_the_lower_head_counts_when_mysql_was_restored(plaza: World, fail_over: FailOver) -> None:
    """Its log assigns again the seqs that heads in Redis are behind."""
    like(plaza, 1)
    failover_recovery.acknowledge_after_failover()
    redis_failover_progress.record_heads(masters.read_masters(), head() + 9, head() + 9)
    like(plaza, 2)
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 1
    assert failover_recovery.acknowledge_after_failover() == 0
    assert acknowledged_again(plaza) == [2]
    like(plaza, 3)
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [2, 3]


def test_heads_of_mysql_count_without_those_of_redis(plaza: World, fail_over: FailOver) -> None:
    """Given a Redis that was emptied since the check."""
    for actor in (1, 2, 3):
        like(plaza, actor)
        assert failover_recovery.acknowledge_after_failover() == 0
    redis.pipeline([("UNLINK", key) for key in redis_failover_progress._keys()])
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 1
    assert acknowledged_again(plaza) == [3]


def test_another_node_keeps_its_heads(plaza: World, fail_over: FailOver) -> None:
    """Given a connection that was replaced by one to another node since the check."""
    checked = masters.read_masters()
    redis_failover_progress.record_heads(checked, 1, 2)
    fail_over()
    redis_failover_progress.record_heads(checked, 3, 4)
    assert set(redis_failover_progress.read_heads()) == {(1, 2)}


def test_a_recovery_leaves_the_heads(plaza: World, fail_over: FailOver) -> None:
    """Another failover may lose what was just acknowledged again."""
    for actor in (1, 2, 3):
        like(plaza, actor)
        assert failover_recovery.acknowledge_after_failover() == 0
    for _ in range(2):
        fail_over()
        assert failover_recovery.acknowledge_after_failover() == 1
        assert acknowledged_again(plaza) == [3]


def test_the_log_is_read_after_the_terms_are_stored(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a consumer that saves at the master before, just before the terms are stored."""
    monkeypatch.setattr(failover_recovery, "_PAGE", 1)
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1)
    fail_over()
    store = term_guard.store_terms

    def save_first(of_shards: Mapping[str, Master]) -> None:
        like(plaza, 2)
        store(of_shards)

    monkeypatch.setattr(term_guard, "store_terms", save_first)
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [1, 2]


@pytest.mark.parametrize("name", ["end_recovery", "record_progress"])
def test_a_slow_run_ends_no_recovery_that_began_later(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Given a run that is about to store its result when a sweeper at the master before takes the
    guard back; a consumer there saves and acknowledges."""
    monkeypatch.setattr(failover_recovery, "_PAGE", 1)
    check = partial(
        failover_recovery.acknowledge_after_failover, 10 if name == "end_recovery" else 0
    )
    check()
    like(plaza, 1, 2)
    fail_over()
    result = getattr(mysql_failover_progress, name)

    def store_late(*args: int) -> None:
        term_guard.store_terms({"{0": Master(0, "term1", "")})
        like(plaza, 3)
        term_guard.store_terms({"{0": Master(0, "term2", "term1")})  # as a consumer does
        result(*args)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_failover_progress, name, store_late)
        check()
    plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    assert failover_recovery.acknowledge_after_failover() == 3
    assert acknowledged_again(plaza) == [1, 2, 3]


def test_a_slow_check_ends_no_recovery_that_began_later(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a check that is about to be stored when a sweeper at the next master has stored that
    one's term, and was killed."""
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1)
    record_check = mysql_failover_progress.record_check

    def record_late(*args: int) -> None:
        term_guard.store_terms({"{0": Master(0, "term2", "term1")})
        record_check(*args)

    with monkeypatch.context() as patch:
        patch.setattr(mysql_failover_progress, "record_check", record_late)
        assert failover_recovery.acknowledge_after_failover() == 0
    assert failover_recovery.acknowledge_after_failover() == 1


def test_a_slow_check_moves_no_heads_forward(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given two checks at once, of which the slower one reads MySQL when the other has ended."""
    like(plaza, 1)
    failover_recovery.acknowledge_after_failover()
    like(plaza, 2)
    read = mysql_failover_progress.read_progress

    def check_first() -> Any:
        monkeypatch.setattr(mysql_failover_progress, "read_progress", read)
        failover_recovery.acknowledge_after_failover()
        return read()

    monkeypatch.setattr(mysql_failover_progress, "read_progress", check_first)
    failover_recovery.acknowledge_after_failover()
    like(plaza, 3)
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [2, 3]


def test_the_first_check_acknowledges_nothing(plaza: World, fail_over: FailOver) -> None:
    like(plaza, 1, 2, 3)
    assert failover_recovery.acknowledge_after_failover() == 0
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 0, (
        "all events were before the first check"
    )


@pytest.mark.parametrize("name", ["read_log_page", "end_recovery"])
def test_the_next_run_repeats_a_killed_one(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1, 2)
    fail_over()

    with monkeypatch.context() as patch:
        patch.setattr(mysql_failover_progress, name, failing(Killed))
        with pytest.raises(Killed):
            failover_recovery.acknowledge_after_failover()
    plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [1, 2]


def test_a_check_is_stored_in_one_transaction(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Watermarks without their epoch would skip the events of a failover."""
    failover_recovery.acknowledge_after_failover()
    checked, _ = mysql_failover_progress.read_progress()
    like(plaza, 1)

    def run_in_transaction(work: Callable[[Any], None]) -> None:
        def killed(cursor: Any) -> None:
            work(cursor)
            raise Killed

        mysql.run_in_transaction(killed)

    with monkeypatch.context() as patch:
        patch.setattr(
            mysql_failover_progress,
            "mysql",
            SimpleNamespace(**vars(mysql) | {"run_in_transaction": run_in_transaction}),
        )
        with pytest.raises(Killed):
            failover_recovery.acknowledge_after_failover()
    progress, log_head = mysql_failover_progress.read_progress()
    assert (progress, log_head) == (checked, head())


def test_the_next_run_repeats_one_that_the_queue_refused(plaza: World, fail_over: FailOver) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1, 2)
    fail_over()
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        failover_recovery.acknowledge_after_failover()
    plaza.queues.away = False
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [1, 2]


def test_two_failovers_between_two_checks_are_one(plaza: World, fail_over: FailOver) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1)
    fail_over()
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 1
    assert failover_recovery.acknowledge_after_failover() == 0


def test_a_failover_during_a_recovery_restarts_it(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second failover may have lost the repeated acknowledgements."""
    monkeypatch.setattr(failover_recovery, "_PAGE", 2)
    failover_recovery.acknowledge_after_failover()
    like(plaza, *range(1, 6))
    fail_over()
    assert [failover_recovery.acknowledge_after_failover(max_s=0) for _ in range(2)] == [2, 2]
    assert acknowledged_again(plaza) == [1, 2, 3, 4]
    like(plaza, 6)
    fail_over()
    assert [failover_recovery.acknowledge_after_failover(max_s=0) for _ in range(4)] == [2, 2, 2, 0]
    assert acknowledged_again(plaza) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("is_recovering", [False, True], ids=["after a recovery", "during one"])
def test_the_next_run_follows_a_sweeper_with_an_old_connection_that_was_killed(
    plaza: World, fail_over: FailOver, monkeypatch: pytest.MonkeyPatch, is_recovering: bool
) -> None:
    """It stored its own term, which is not the predecessor of the present one: no consumer could
    apply a commit until the next failover."""
    monkeypatch.setattr(failover_recovery, "_PAGE", 2)
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1, 2, 3)
    fail_over()
    fail_over()
    recovered = failover_recovery.acknowledge_after_failover(max_s=0 if is_recovering else 10)
    assert recovered == (2 if is_recovering else 3)
    plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    term_guard.store_terms({"{0": Master(0, "term1", "")})
    assert failover_recovery.acknowledge_after_failover() == 3
    assert acknowledged_again(plaza) == [1, 2, 3]
    assert mysql.fetch_all("SELECT term FROM redis_term") == [("term3",)]
    assert failover_recovery.acknowledge_after_failover() == 0


def test_the_archive_keeps_events_that_a_recovery_may_need(
    plaza: World, fail_over: FailOver
) -> None:
    """The watermarks are seqs of the log; the epoch is not a watermark."""
    like(plaza, 1, 2)
    failover_recovery.acknowledge_after_failover()
    before = head()
    assert low_watermark() == before > 1
    like(plaza, 3)
    failover_recovery.acknowledge_after_failover()
    assert low_watermark() == before
    failover_recovery.acknowledge_after_failover()
    assert low_watermark() == head()
