"""What follows a failover of Redis: the log of the time before is settled again, whatever happens
meanwhile. With epochs that the tests make up; tests/cluster has those of a real cluster."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from plaza.infra import mysql
from plaza.infra.queues import QueueDown
from plaza.reactions import LIKE, Target, failover_recovery, mysql_failover_progress, queues, react
from plaza.vote_log import mysql_log
from tests.support.plaza import World

POST = Target("post", 1)
Turn = Callable[[], None]


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def fail_over(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Turn:
    """Redis as a cluster in its first epoch; each call is a failover."""
    plaza.add(POST)
    epoch = 1

    def turn() -> None:
        nonlocal epoch
        epoch += 1

    monkeypatch.setattr(
        "plaza.reactions.failover_recovery.redis.read_topology_epoch", lambda: epoch
    )
    return turn


def like(plaza: World, *actors: int) -> None:
    for actor in actors:
        react.react(LIKE, POST, actor, True)
    plaza.queues.drain()


def acknowledged_again(plaza: World) -> list[int]:
    """Who is settled again, in the order in which it was asked for."""
    bodies = plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    return [key[3] for body in bodies for key in json.loads(body)["keys"]]


def low_watermark() -> int | None:
    return mysql_log.read_low_watermark()


def head() -> int:
    return int(mysql.fetch_all("SELECT MAX(seq) FROM reaction_log")[0][0])


def test_what_was_saved_since_the_look_before_the_last_is_settled_again(
    plaza: World, fail_over: Turn
) -> None:
    for actor in range(1, 5):
        like(plaza, actor)
        assert failover_recovery.acknowledge_after_failover() == 0
    like(plaza, 5)
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [4, 5], (
        "the last look was after 4, the one before it after 3"
    )
    assert failover_recovery.acknowledge_after_failover() == 0, "once is enough"


def test_the_first_look_asks_for_nothing(plaza: World, fail_over: Turn) -> None:
    like(plaza, 1, 2, 3)
    assert failover_recovery.acknowledge_after_failover() == 0
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 0, (
        "all of it was before the first look"
    )


@pytest.mark.parametrize("name", ["read_log_page", "record_check"])
def test_a_run_that_is_killed_is_made_good_by_the_next(
    plaza: World, fail_over: Turn, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1, 2)
    fail_over()

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(mysql_failover_progress, name, killed)
        with pytest.raises(Killed):
            failover_recovery.acknowledge_after_failover()
    plaza.queues.take(queues.ACKNOWLEDGEMENTS)
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [1, 2]


def test_a_look_is_kept_whole_or_not_at_all(
    plaza: World, fail_over: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Marks without their epoch would let the facts of a failover be passed over."""
    failover_recovery.acknowledge_after_failover()
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
    looks, at = mysql_failover_progress.read_progress()
    assert (looks.epoch, looks.before, looks.last, at) == (1, 0, 0, head())


def test_what_a_dead_queue_did_not_take_is_asked_for_by_the_next_run(
    plaza: World, fail_over: Turn
) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1, 2)
    fail_over()
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        failover_recovery.acknowledge_after_failover()
    plaza.queues.away = False
    assert failover_recovery.acknowledge_after_failover() == 2
    assert acknowledged_again(plaza) == [1, 2]


def test_two_failovers_between_two_looks_are_one(plaza: World, fail_over: Turn) -> None:
    failover_recovery.acknowledge_after_failover()
    like(plaza, 1)
    fail_over()
    fail_over()
    assert failover_recovery.acknowledge_after_failover() == 1
    assert failover_recovery.acknowledge_after_failover() == 0


def test_a_failover_while_a_long_log_is_gone_through_begins_it_anew(
    plaza: World, fail_over: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have taken what was settled again already."""
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


def test_what_may_have_to_be_settled_again_is_not_archived_away(
    plaza: World, fail_over: Turn
) -> None:
    """The marks are seqs of the log, and the epoch is none: it holds nothing up."""
    like(plaza, 1, 2)
    failover_recovery.acknowledge_after_failover()
    before = head()
    assert low_watermark() == before > 1
    like(plaza, 3)
    failover_recovery.acknowledge_after_failover()
    assert low_watermark() == before
    failover_recovery.acknowledge_after_failover()
    assert low_watermark() == head()
