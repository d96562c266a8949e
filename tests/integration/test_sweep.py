"""sweep.lua and the sweeper: what waited too long is published again, bounded and ever rarer."""

from __future__ import annotations

import json

import pytest

from plaza import reactions
from plaza.infra import redis
from plaza.infra.queues import QueueDown
from plaza.reactions import LIKE, ReactionEvent, Target, redis_reactions, sweeping
from tests.integration.looking import (
    POST,
    due,
    gate,
    keys,
    meta,
    outbox,
    put,
    rows,
    settle,
)
from tests.keyspace import redis_us
from tests.plaza import World

MINUTE_US = 60_000_000
HOUR_US = 3_600_000_000


def sweep(grace_us: int = 0, count: int = 500, longest_us: int = HOUR_US) -> list[ReactionEvent]:
    return redis_reactions.sweep_all([(LIKE, POST)], grace_us, count, longest_us)


def make_older(by_us: int) -> None:
    """Let what is pending have waited longer by ``by_us``."""
    for actor, (state, ver, total) in outbox().items():
        redis.execute("HSET", keys().outbox, actor, f"{state}:{ver - by_us}:{total}")


# ---------------------------------------------------------------- one target


def test_what_has_waited_is_found_as_it_was_accepted(plaza: World) -> None:
    put()
    ver = gate(7).ver_us
    [fact] = sweep()
    assert (fact.key.actor_id, fact.on, fact.ver_us, fact.total) == (7, True, ver, 1)
    assert fact.key.target == POST
    assert outbox() == {7: (1, ver, 1)}, "it stays until it is saved"


def test_what_is_within_its_grace_is_left_to_its_consumer(plaza: World) -> None:
    put()
    gate(7)
    assert sweep(grace_us=MINUTE_US) == []
    make_older(2 * MINUTE_US)
    gate(8)
    assert [fact.key.actor_id for fact in sweep(grace_us=MINUTE_US)] == [7]


def test_a_target_is_left_alone_longer_after_each_sweep(plaza: World) -> None:
    put()
    gate(7)
    make_older(2 * MINUTE_US)
    waits = []
    for _ in range(8):
        assert sweep(grace_us=MINUTE_US)
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
        assert sweep(grace_us=MINUTE_US) == []
    due_us = due()
    assert due_us is not None
    assert (due_us + MINUTE_US - redis_us()) / MINUTE_US == pytest.approx(1, abs=0.3)


def test_when_a_target_goes_quiet_its_sweeps_are_forgotten(plaza: World) -> None:
    put()
    ver = gate(7).ver_us
    sweep()
    assert settle(1, 1, [(7, ver, True)]).code == "QUIET"
    assert not {"sweeps", "sweep_cursor"} & set(meta())
    assert due() is None


def test_a_target_that_is_dirty_with_nothing_pending_is_cleaned(plaza: World) -> None:
    put()
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    assert sweep() == []
    assert due() is None


def test_a_big_outbox_is_gone_through_piece_by_piece(plaza: World) -> None:
    put()
    for actor in range(1, 1_501):
        gate(actor)
    found: set[int] = set()
    pieces = 0
    while "sweeps" not in meta() or meta()["sweeps"] == 0:
        piece = sweep(count=100)
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


# ---------------------------------------------------------------- the sweeper


def test_dirty_targets_are_found_in_all_shards_and_no_more_than_asked_for(plaza: World) -> None:
    targets = [Target("post", n) for n in range(1, 41)]
    for target in targets:
        put(target=target)
        gate(7, target=target)
    found = redis_reactions.find_due(redis_us(), 100)
    assert sorted(target for _, target in found) == targets
    assert redis_reactions.find_due(redis_us() - MINUTE_US, 100) == []
    shards = {keys(target).outboxes for target in targets}
    assert len(redis_reactions.find_due(redis_us(), 1)) == len(shards)


def test_what_the_queue_never_got_is_saved_in_the_end(plaza: World) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    for actor in (1, 2, 3):
        assert reactions.react(LIKE, POST, actor, True).changed
    assert plaza.queues.messages == {}
    plaza.queues.away = False
    plaza.let_sweeps_be_due()
    assert reactions.sweep_outbox(grace_us=0) == 3
    plaza.queues.drain()
    assert {actor for actor, (on, _) in rows().items() if on} == {1, 2, 3}
    assert outbox() == {}
    assert reactions.sweep_outbox(grace_us=0) == 0


def test_a_sweep_ends_although_targets_stay_dirty(plaza: World) -> None:
    """Each is due again only after a while, so one run does not go round and round."""
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert reactions.sweep_outbox(grace_us=0) == 250
    assert len(plaza.queues.take("reactions")) == 250


def test_a_run_sends_a_bounded_number(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "MOST_FACTS", 100)
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert 100 <= reactions.sweep_outbox(grace_us=0) < 250


def test_the_sweeper_holds_back_while_the_queue_is_behind(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    plaza.queues.messages["reactions"] = ["{}"] * 10_001
    assert reactions.sweep_outbox(grace_us=0) == 0
    assert "sweep_held_back" in capsys.readouterr().out
    plaza.queues.messages["reactions"] = []
    assert reactions.sweep_outbox(grace_us=0) == 1


def test_the_sweeper_says_how_old_the_outbox_is(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    make_older(10 * MINUTE_US)
    plaza.let_sweeps_be_due()
    reactions.sweep_outbox(grace_us=0)
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (line["event"], line["republished"]) == ("outbox_swept", 1)
    assert line["outbox_age_s"] == pytest.approx(600, abs=30)


def test_the_sweeper_fails_loudly_while_the_queue_is_away(plaza: World) -> None:
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        reactions.sweep_outbox()
