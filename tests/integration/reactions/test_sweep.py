"""sweep.lua and the sweeper: overdue entries are sent again, in limited numbers, with backoff."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from plaza.infra import mysql, redis, spill, sqs
from plaza.infra.queues import QueueDown
from plaza.infra.redis import RedisDown
from plaza.infra.sqs import Depth, Outgoing
from plaza.reactions import LIKE, Target, queues, react, redis_outbox, sweep
from plaza.reactions.model import ReactionEvent
from plaza.reactions.redis_outbox import SweptTarget
from tests.integration.conftest import Away
from tests.integration.reactions.test_gate import gate_call
from tests.support.keyspace import redis_us
from tests.support.plaza import World
from tests.support.stores import (
    POST,
    apply,
    due,
    gate,
    insert_rows,
    keys,
    meta,
    outbox,
    put,
    recent,
    rows,
    total,
)

MINUTE_US = 60_000_000
HOUR_US = 3_600_000_000


def sweep_once(grace_us: int = 0, count: int = 500, max_wait_us: int = HOUR_US) -> SweptTarget:
    return redis_outbox.sweep_all([(LIKE, POST)], grace_us, count, max_wait_us)[0]


def sweep_post(grace_us: int = 0, count: int = 500) -> list[ReactionEvent]:
    return sweep_once(grace_us, count).events


def count_spilled() -> int:
    return int(mysql.fetch_all("SELECT COUNT(*) FROM spilled_message")[0][0])


def make_older(by_us: int) -> None:
    """Make the entries of the outbox older by ``by_us``."""
    for actor, (want, version, base) in outbox().items():
        redis.execute("HSET", keys().outbox, actor, f"{want}:{version - by_us}:{base}:cabc")


# ---------------------------------------------------------------- one target


def test_a_sweep_finds_an_overdue_entry_as_accepted(plaza: World) -> None:
    put()
    version = gate(7).version_us
    [event] = sweep_post()
    assert (event.key.actor_id, event.on, event.version_us) == (7, True, version)
    assert event.key.target == POST
    assert outbox() == {7: (1, version, 0)}, "kept until it is saved"


def test_a_sweep_skips_entries_within_the_grace(plaza: World) -> None:
    put()
    gate(7)
    assert sweep_post(grace_us=MINUTE_US) == []
    make_older(2 * MINUTE_US)
    gate(8)
    assert [event.key.actor_id for event in sweep_post(grace_us=MINUTE_US)] == [7]


def test_each_sweep_doubles_the_wait_until_the_next(plaza: World) -> None:
    put()
    gate(7)
    make_older(2 * MINUTE_US)
    waits = []
    for _ in range(8):
        assert sweep_post(grace_us=MINUTE_US)
        due_us = due()
        assert due_us is not None
        # A target is due when the grace has passed since its score.
        waits.append(round((due_us + MINUTE_US - redis_us()) / MINUTE_US, 1))
    assert waits == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60], abs=0.3)
    assert meta()["sweeps"] == 8


def test_a_sweep_without_entries_does_not_delay_the_next(plaza: World) -> None:
    put()
    gate(7)
    for _ in range(3):
        assert sweep_post(grace_us=MINUTE_US) == []
    due_us = due()
    assert due_us is not None
    assert (due_us + MINUTE_US - redis_us()) / MINUTE_US == pytest.approx(1, abs=0.3)


def test_an_empty_outbox_resets_the_sweeps(plaza: World) -> None:
    put()
    version = gate(7).version_us
    sweep_post()
    assert apply(1, 1, [(7, version, True)]).outbox_count == 0
    assert not {"sweeps", "sweep_cursor"} & set(meta())
    assert due() is None


def test_a_sweep_removes_an_empty_outbox_from_the_index(plaza: World) -> None:
    put()
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    assert sweep_post() == []
    assert due() is None


def test_a_large_outbox_is_swept_in_parts(plaza: World) -> None:
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, 1_501)])
    found: set[int] = set()
    parts = 0
    while "sweeps" not in meta() or meta()["sweeps"] == 0:
        part = sweep_post(count=100)
        assert len(part) < 400, "about ``count``"
        found |= {event.key.actor_id for event in part}
        parts += 1
        assert parts < 50
        if meta()["sweep_cursor"] != 0:
            due_us = due()
            assert due_us is not None
            assert due_us <= redis_us(), "the next part is due at once"
    assert found == set(range(1, 1_501))
    assert parts >= 5


def test_a_sweep_reports_a_gap_after_one_second(plaza: World) -> None:
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    assert sweep_once().code == "SWEPT", "the commit may arrive"
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    assert sweep_once()[:4] == (LIKE, POST, "GAP", 1)
    assert due() is not None, "with an empty outbox"


def test_a_sweep_of_a_cold_target_finds_its_entries(plaza: World) -> None:
    redis.execute("HSET", keys().outbox, 7, "1:10:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    swept = sweep_once()
    assert (swept.code, [event.version_us for event in swept.events]) == ("COLD", [10])


# ---------------------------------------------------------------- the sweeper


def test_due_targets_are_found_up_to_a_limit_for_each_shard(plaza: World) -> None:
    targets = [Target("post", n) for n in range(1, 41)]
    for target in targets:
        put(target=target)
        gate(7, target=target)
    found = redis_outbox.find_due(redis_us(), 100)
    assert sorted(target for _, target in found) == targets
    assert redis_outbox.find_due(redis_us() - MINUTE_US, 100) == []
    shards = {keys(target).outboxes for target in targets}
    assert len(redis_outbox.find_due(redis_us(), 1)) == len(shards)


def test_the_sweeper_sends_likes_that_the_queue_never_had(plaza: World) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    for actor in (1, 2, 3):
        assert react.react(LIKE, POST, actor, True).changed
    assert plaza.queues.messages == {}
    mysql.write("DELETE FROM spilled_message")
    plaza.queues.away = False
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 3
    plaza.queues.drain()
    assert {actor for actor, (on, _) in rows().items() if on} == {1, 2, 3}
    assert outbox() == {}
    assert sweep.sweep_outbox(grace_us=0) == 0


def test_the_sweeper_hydrates_a_cold_target_with_an_outbox(plaza: World) -> None:
    """Given a target that was evicted and has no readers."""
    insert_rows([(POST, 1, 1, 10), (POST, 7, 1, 20)])
    redis.execute("HSET", keys().outbox, 7, "1:20:0:cabc", 8, "1:30:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    assert sweep.sweep_outbox(grace_us=0) == 2
    assert (set(outbox()), recent(), total()) == ({8}, [1, 7], 3), "7 was saved already"
    plaza.queues.drain()
    assert (outbox(), recent(), total(), due()) == ({}, [1, 7, 8], 3, None)


def test_the_sweeper_hydrates_a_target_with_a_gap(plaza: World) -> None:
    """Given a killed consumer of commit 2, an applied commit 3 and no further commits."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 0
    assert (recent(), total(), meta()["db_version"], due()) == ([1, 2, 3], 3, 3, None)


def test_the_sweeper_hydrates_a_target_that_had_a_gap_before_a_failover(plaza: World) -> None:
    """Given a replica with buffered commits of another reign, an empty outbox and no readers."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "reign", "before the failover")
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 0
    assert (recent(), total(), meta()["db_version"]) == ([1, 2, 3], 3, 3)
    assert (redis.execute("EXISTS", keys().ahead), redis.execute("PTTL", keys().meta) > 0) == (0, 1)
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(grace_us=0)
    assert due() is None


def test_the_sweeper_sends_spilled_events(plaza: World) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    assert react.react(LIKE, POST, 7, True).exact
    redis.execute("FLUSHALL")  # the copy in Redis is lost
    with pytest.raises(QueueDown):
        sweep.sweep_outbox(grace_us=0)
    assert count_spilled() == 1
    plaza.queues.away = False
    assert sweep.sweep_outbox(grace_us=0) == 1
    assert count_spilled() == 0
    plaza.queues.drain()
    assert {actor: on for actor, (on, _) in rows().items()} == {7: True}


def send_events(messages: Sequence[Outgoing]) -> int:
    return sqs.send_all(queues.REACTIONS.name, messages)


def test_a_paused_sweep_sends_spilled_messages_only(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    spill.spill(queues.REACTIONS.name, "{}")
    monkeypatch.setattr(sqs, "measure", lambda queue: Depth(10_001, 0, 0))
    assert sweep.sweep_outbox(grace_us=0) == 1
    assert (count_spilled(), plaza.queues.take(queues.REACTIONS)) == (0, ["{}"])


def test_spilled_messages_are_sent_while_redis_is_unavailable(
    plaza: World, redis_away: Away
) -> None:
    spill.spill(queues.REACTIONS.name, "{}")
    with redis_away(), pytest.raises(RedisDown):
        sweep.sweep_outbox(grace_us=0)
    assert (count_spilled(), plaza.queues.take(queues.REACTIONS)) == (0, ["{}"])


def test_several_batches_of_spilled_messages_are_sent_in_order(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "_BATCH", 3)
    for n in range(8):
        spill.spill(queues.REACTIONS.name, str(n))
    spill.spill(queues.FOLLOWS.name, "of another queue")
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 8
    assert plaza.queues.take(queues.REACTIONS) == [str(n) for n in range(8)]
    assert count_spilled() == 1
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 0


def test_a_partly_accepted_batch_of_spilled_messages_is_kept(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        spill.spill(queues.REACTIONS.name, str(n))
    monkeypatch.setattr(sqs, "send_all", lambda queue, bodies: len(bodies) - 1)
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 0
    assert count_spilled() == 3


def test_the_sweeper_sends_outbox_entries_while_mysql_is_unavailable(
    plaza: World, mysql_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    with mysql_away():
        assert sweep.sweep_outbox(grace_us=0) == 1
    assert "spill_resend_postponed" in capsys.readouterr().out


def test_a_sweep_ends_although_outboxes_keep_their_entries(plaza: World) -> None:
    """A swept target is not due again within the run."""
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 250
    assert len(plaza.queues.take("reactions")) == 250


def test_a_run_sends_a_limited_number_of_events(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_EVENTS", 100)
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert 100 <= sweep.sweep_outbox(grace_us=0) < 250


def test_the_sweeper_pauses_while_the_queue_has_a_backlog(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    plaza.queues.messages["reactions"] = ["{}"] * 10_001
    assert sweep.sweep_outbox(grace_us=0) == 0
    assert "sweep_paused" in capsys.readouterr().out
    plaza.queues.messages["reactions"] = []
    assert sweep.sweep_outbox(grace_us=0) == 1


def test_a_sweep_of_everything_ignores_the_backlog_and_earlier_sweeps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    gate(7)
    for _ in range(12):
        sweep_once()
    monkeypatch.setattr(sqs, "measure", lambda queue: Depth(20_000, 0, 0))
    assert sweep.sweep_outbox() == 0
    assert sweep.sweep_outbox(everything=True) == 1
    assert len(plaza.queues.take(queues.REACTIONS)) == 1


def test_the_sweeper_records_the_age_of_the_oldest_entry(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    make_older(10 * MINUTE_US)
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(grace_us=0)
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (line["event"], line["republished"]) == ("outbox_swept", 1)
    assert line["outbox_age_s"] == pytest.approx(600, abs=30)


def test_the_sweeper_raises_queue_down_while_the_queue_is_unavailable(plaza: World) -> None:
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        sweep.sweep_outbox()
