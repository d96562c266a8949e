"""sweep.lua and the sweeper: what waited too long is published again, bounded and ever rarer."""

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


def sweep_once(grace_us: int = 0, count: int = 500, longest_us: int = HOUR_US) -> SweptTarget:
    return redis_outbox.sweep_all([(LIKE, POST)], grace_us, count, longest_us)[0]


def sweep_post(grace_us: int = 0, count: int = 500) -> list[ReactionEvent]:
    return sweep_once(grace_us, count).events


def spilled() -> int:
    return int(mysql.fetch_all("SELECT COUNT(*) FROM spilled_message")[0][0])


def make_older(by_us: int) -> None:
    """Let what is in the outbox have waited longer by ``by_us``."""
    for actor, (want, version, base) in outbox().items():
        redis.execute("HSET", keys().outbox, actor, f"{want}:{version - by_us}:{base}:cabc")


# ---------------------------------------------------------------- one target


def test_what_has_waited_is_found_as_it_was_accepted(plaza: World) -> None:
    put()
    version = gate(7).version_us
    [fact] = sweep_post()
    assert (fact.key.actor_id, fact.on, fact.version_us) == (7, True, version)
    assert fact.key.target == POST
    assert outbox() == {7: (1, version, 0)}, "it stays until it is saved"


def test_what_is_within_its_grace_is_left_to_its_consumer(plaza: World) -> None:
    put()
    gate(7)
    assert sweep_post(grace_us=MINUTE_US) == []
    make_older(2 * MINUTE_US)
    gate(8)
    assert [fact.key.actor_id for fact in sweep_post(grace_us=MINUTE_US)] == [7]


def test_a_target_is_left_alone_longer_after_each_sweep(plaza: World) -> None:
    put()
    gate(7)
    make_older(2 * MINUTE_US)
    waits = []
    for _ in range(8):
        assert sweep_post(grace_us=MINUTE_US)
        due_us = due()
        assert due_us is not None
        # It is due when grace has passed since the score.
        waits.append(round((due_us + MINUTE_US - redis_us()) / MINUTE_US, 1))
    assert waits == pytest.approx([2, 4, 8, 16, 32, 60, 60, 60], abs=0.3)
    assert meta()["sweeps"] == 8


def test_a_sweep_that_found_nothing_does_not_make_the_next_one_later(plaza: World) -> None:
    put()
    gate(7)
    for _ in range(3):
        assert sweep_post(grace_us=MINUTE_US) == []
    due_us = due()
    assert due_us is not None
    assert (due_us + MINUTE_US - redis_us()) / MINUTE_US == pytest.approx(1, abs=0.3)


def test_when_a_target_goes_quiet_its_sweeps_are_forgotten(plaza: World) -> None:
    put()
    version = gate(7).version_us
    sweep_post()
    assert apply(1, 1, [(7, version, True)]).outbox_count == 0
    assert not {"sweeps", "sweep_cursor"} & set(meta())
    assert due() is None


def test_a_target_in_the_index_with_an_empty_outbox_is_removed_from_it(plaza: World) -> None:
    put()
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    assert sweep_post() == []
    assert due() is None


def test_a_big_outbox_is_gone_through_piece_by_piece(plaza: World) -> None:
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, 1_501)])
    found: set[int] = set()
    pieces = 0
    while "sweeps" not in meta() or meta()["sweeps"] == 0:
        piece = sweep_post(count=100)
        assert len(piece) < 400, "about as many as asked for"
        found |= {fact.key.actor_id for fact in piece}
        pieces += 1
        assert pieces < 50
        if meta()["sweep_cursor"] != 0:
            due_us = due()
            assert due_us is not None
            assert due_us <= redis_us(), "the rest of it is due at once"
    assert found == set(range(1, 1_501))
    assert pieces >= 5


def test_a_target_that_misses_a_commit_is_a_gap_after_a_second(plaza: World) -> None:
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    assert sweep_once().code == "SWEPT", "it may be on its way"
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    assert sweep_once()[:4] == (LIKE, POST, "GAP", 1)
    assert due() is not None, "also with an empty outbox"


def test_a_target_that_is_not_loaded_is_swept_and_named(plaza: World) -> None:
    redis.execute("HSET", keys().outbox, 7, "1:10:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    swept = sweep_once()
    assert (swept.code, [event.version_us for event in swept.events]) == ("COLD", [10])


# ---------------------------------------------------------------- the sweeper


def test_due_targets_are_found_in_all_shards_and_no_more_than_asked_for(plaza: World) -> None:
    targets = [Target("post", n) for n in range(1, 41)]
    for target in targets:
        put(target=target)
        gate(7, target=target)
    found = redis_outbox.find_due(redis_us(), 100)
    assert sorted(target for _, target in found) == targets
    assert redis_outbox.find_due(redis_us() - MINUTE_US, 100) == []
    shards = {keys(target).outboxes for target in targets}
    assert len(redis_outbox.find_due(redis_us(), 1)) == len(shards)


def test_what_the_queue_never_got_is_saved_in_the_end(plaza: World) -> None:
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


def test_a_cold_target_with_an_outbox_is_loaded_by_the_sweeper(plaza: World) -> None:
    """Redis forgot it, and no reader comes by."""
    insert_rows([(POST, 1, 1, 10), (POST, 7, 1, 20)])
    redis.execute("HSET", keys().outbox, 7, "1:20:0:cabc", 8, "1:30:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    assert sweep.sweep_outbox(grace_us=0) == 2
    assert (set(outbox()), recent(), total()) == ({8}, [1, 7], 3), "7 was saved already"
    plaza.queues.drain()
    assert (outbox(), recent(), total(), due()) == ({}, [1, 7, 8], 3, None)


def test_a_target_that_misses_a_commit_is_loaded_again_by_the_sweeper(plaza: World) -> None:
    """The consumer of commit 2 died; that of commit 3 told Redis; nothing else happens."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 0
    assert (recent(), total(), meta()["db_version"], due()) == ([1, 2, 3], 3, 3, None)


def test_a_target_that_missed_a_commit_before_a_failover_is_hydrated_by_the_sweeper(
    plaza: World,
) -> None:
    """The replica has what was ahead, under another run; its outbox is empty; no reader comes."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "run_id", "before the failover")
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 0
    assert (recent(), total(), meta()["db_version"]) == ([1, 2, 3], 3, 3)
    assert (redis.execute("EXISTS", keys().ahead), redis.execute("PTTL", keys().meta) > 0) == (0, 1)
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(grace_us=0)
    assert due() is None


def test_what_the_queue_refused_is_sent_from_mysql_by_the_sweeper(plaza: World) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    assert react.react(LIKE, POST, 7, True).exact
    redis.execute("FLUSHALL")  # the copy in Redis is lost
    with pytest.raises(QueueDown):
        sweep.sweep_outbox(grace_us=0)
    assert spilled() == 1
    plaza.queues.away = False
    assert sweep.sweep_outbox(grace_us=0) == 1
    assert spilled() == 0
    plaza.queues.drain()
    assert {actor: on for actor, (on, _) in rows().items()} == {7: True}


def send_events(messages: Sequence[Outgoing]) -> int:
    return sqs.send_all(queues.REACTIONS.name, messages)


def test_while_the_queue_is_behind_spilled_messages_are_sent_and_nothing_else(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    spill.spill(queues.REACTIONS.name, "{}")
    monkeypatch.setattr(sqs, "measure", lambda queue: Depth(10_001, 0, 0))
    assert sweep.sweep_outbox(grace_us=0) == 1
    assert (spilled(), plaza.queues.take(queues.REACTIONS)) == (0, ["{}"])


def test_spilled_messages_are_sent_although_redis_is_away(plaza: World, redis_away: Away) -> None:
    spill.spill(queues.REACTIONS.name, "{}")
    with redis_away(), pytest.raises(RedisDown):
        sweep.sweep_outbox(grace_us=0)
    assert (spilled(), plaza.queues.take(queues.REACTIONS)) == (0, ["{}"])


def test_more_than_a_batch_of_spilled_messages_is_sent_in_order(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "_BATCH", 3)
    for n in range(8):
        spill.spill(queues.REACTIONS.name, str(n))
    spill.spill(queues.FOLLOWS.name, "of another queue")
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 8
    assert plaza.queues.take(queues.REACTIONS) == [str(n) for n in range(8)]
    assert spilled() == 1
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 0


def test_spilled_messages_that_the_queue_took_in_part_are_all_sent_again(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        spill.spill(queues.REACTIONS.name, str(n))
    monkeypatch.setattr(sqs, "send_all", lambda queue, bodies: len(bodies) - 1)
    assert spill.send_spilled(queues.REACTIONS.name, send_events) == 0
    assert spilled() == 3


def test_without_mysql_the_sweeper_sends_what_is_in_redis(
    plaza: World, mysql_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    with mysql_away():
        assert sweep.sweep_outbox(grace_us=0) == 1
    assert "spill_resend_postponed" in capsys.readouterr().out


def test_a_sweep_ends_although_targets_stay_dirty(plaza: World) -> None:
    """Each is due again only after a while, so one run does not go round and round."""
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(grace_us=0) == 250
    assert len(plaza.queues.take("reactions")) == 250


def test_a_run_sends_a_bounded_number(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "MAX_EVENTS", 100)
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert 100 <= sweep.sweep_outbox(grace_us=0) < 250


def test_the_sweeper_holds_back_while_the_queue_is_behind(
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


def test_the_sweeper_says_how_old_the_outbox_is(
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


def test_the_sweeper_fails_loudly_while_the_queue_is_away(plaza: World) -> None:
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        sweep.sweep_outbox()
