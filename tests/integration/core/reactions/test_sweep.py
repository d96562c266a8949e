"""sweep.lua and the sweeper: due entries are sent again, in limited numbers, with backoff."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from plaza.core.reactions import LIKE, Target, queues, react, redis_commits, redis_outbox, sweep
from plaza.core.reactions.gauges import read_outboxes
from plaza.core.reactions.model import ReactionEvent
from plaza.core.reactions.redis_outbox import SweptTarget
from plaza.infra.derived import outbox as outbox_index
from plaza.infra.mysql import mysql
from plaza.infra.queues import spill, sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.queues.sqs import Depth, Outgoing
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from tests.integration.conftest import Away
from tests.integration.core.reactions.test_gate import gate_call
from tests.support.failures import failing
from tests.support.keyspace import redis_us
from tests.support.logs import read_log
from tests.support.plaza import World, read_event
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
    shift_time,
    total,
)

MINUTE_US = 60_000_000
HOUR_US = 3_600_000_000


def sweep_once(
    resend_after_us: int = 0, count: int = 500, max_wait_us: int = HOUR_US
) -> SweptTarget:
    return redis_outbox.sweep_all([(LIKE, POST)], resend_after_us, count, max_wait_us)[0]


def sweep_post(resend_after_us: int = 0, count: int = 500) -> list[ReactionEvent]:
    return list(sweep_once(resend_after_us, count).entries)


def count_spilled() -> int:
    return int(mysql.fetch_all("SELECT COUNT(*) FROM spilled_message")[0][0])


def make_older(by_us: int) -> None:
    """Make the entries of the outbox older by ``by_us``."""
    for actor, (want, version, base) in outbox().items():
        redis.execute("HSET", keys().outbox, actor, f"{want}:{version - by_us}:{base}:cabc")


def let_time_pass(us: int) -> None:
    """Move all times of the target's outbox and of its sweeps into the past."""
    make_older(us)
    accepted_us = due()
    if accepted_us is not None:
        redis.execute("ZADD", keys().outboxes, accepted_us - us, keys().member)
    if progress := redis.execute("GET", keys().sweep):
        swept, began, cursor, oldest = progress.split(":")
        times = (max(0, int(swept) - us), int(began) - us, cursor, int(oldest) - us)
        redis.execute("SET", keys().sweep, ":".join(map(str, times)), "KEEPTTL")


def sweep_every_minute(minutes: int) -> list[int]:
    """Sweep with ``resend_after_s`` of 30 s; return the minutes at which something was sent."""
    results = []
    for minute in range(1, minutes + 1):
        let_time_pass(MINUTE_US)
        if sweep.sweep_outbox(resend_after_us=MINUTE_US // 2):
            results.append(minute)
    return results


def read_ages(capsys: pytest.CaptureFixture[str]) -> list[float]:
    """Return outbox_age_s of the sweeps since the last call."""
    return [line["outbox_age_s"] for line in read_log(capsys, "outbox_swept")]


# ---------------------------------------------------------------- one target


def test_a_sweep_finds_an_overdue_entry_as_accepted(plaza: World) -> None:
    put()
    version = gate(7).version_us
    [event] = sweep_post()
    assert (event.key.actor_id, event.on, event.version_us) == (7, True, version)
    assert event.key.target == POST
    assert outbox() == {7: (1, version, 0)}, "kept until it is saved"


def test_a_sweep_skips_entries_within_resend_after(plaza: World) -> None:
    put()
    gate(7)
    assert sweep_post(resend_after_us=MINUTE_US) == []
    make_older(2 * MINUTE_US)
    gate(8)
    assert [event.key.actor_id for event in sweep_post(resend_after_us=MINUTE_US)] == [7]


def test_an_entry_is_due_after_resend_after_and_whenever_its_age_has_doubled(plaza: World) -> None:
    put()
    gate(7)
    assert sweep_every_minute(190) == [1, 2, 4, 8, 16, 32, 60, 120, 180]


def test_a_new_entry_is_due_after_resend_after_although_the_others_wait_for_long(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given an outage of MySQL for 40 minutes, and a process that ends before it sends."""
    put()
    gate(7)
    sweep_every_minute(40)
    plaza.queues.take("reactions")
    gate(8)
    capsys.readouterr()
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 0
    let_time_pass(MINUTE_US)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1
    [body] = plaza.queues.take("reactions")
    assert read_event(body).key.actor_id == 8
    assert read_ages(capsys) == pytest.approx([2_400, 2_460], abs=5)


def test_the_index_has_the_oldest_entry_of_an_outbox_that_is_never_empty(plaza: World) -> None:
    put()
    version = gate(7).version_us
    let_time_pass(10 * MINUTE_US)
    newer = gate(8).version_us
    apply(1, 1, [(7, version, True)])
    assert due() == pytest.approx(newer - 10 * MINUTE_US, abs=5_000_000)
    sweep.sweep_outbox(resend_after_us=MINUTE_US)
    assert due() == newer
    assert read_outboxes() == {"outboxes": 1, "outbox_age_s": pytest.approx(0, abs=5)}


def test_entries_of_a_sweep_that_was_killed_stay_due(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    gate(7)
    let_time_pass(2 * MINUTE_US)
    for error in (SystemExit(), QueueDown("away")):
        with monkeypatch.context() as patch:
            patch.setattr(sqs, "send_all", raiser(error))
            with pytest.raises(type(error)):
                sweep.sweep_outbox(resend_after_us=MINUTE_US)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 0


def raiser(error: BaseException) -> Callable[..., int]:
    return failing(error)


def test_entries_that_the_queue_did_not_accept_stay_due(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a send that is cut off by its deadline after one of 30 targets."""
    targets = [Target("post", n) for n in range(1, 31)]
    for target in targets:
        put(target=target)
        gate(7, target=target)
    send_all = sqs.send_all
    monkeypatch.setattr(outbox_index, "_ENTRIES_PER_SEND", 10)
    with monkeypatch.context() as patch:
        patch.setattr(sqs, "send_all", lambda queue, result, _: send_all(queue, result[:1]))
        assert sweep.sweep_outbox(resend_after_us=1) == 3
    assert sweep.sweep_outbox(resend_after_us=1) == 30
    assert sweep.sweep_outbox(resend_after_us=1) == 0


def test_two_sweeps_at_once_do_not_delay_an_entry(plaza: World) -> None:
    put()
    gate(7)
    let_time_pass(MINUTE_US)
    pages = [sweep_once(MINUTE_US // 2) for _ in range(2)]
    assert [len(page.entries) for page in pages] == [1, 1]
    for page in pages:
        outbox_index.confirm_all([page.progress])
    assert sweep_every_minute(8) == [1, 3, 7], "at the ages of 2, 4 and 8 minutes"


def test_the_slower_of_two_sweeps_does_not_set_the_progress_back(plaza: World) -> None:
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, 1_501)])
    slower = sweep_once(count=100)
    outbox_index.confirm_all([sweep_once(count=100).progress])
    outbox_index.confirm_all([sweep_once(count=100).progress])
    before = redis.execute("GET", keys().sweep)
    outbox_index.confirm_all([slower.progress])
    assert redis.execute("GET", keys().sweep) == before


def test_the_progress_expires(plaza: World) -> None:
    put()
    gate(7)
    sweep.sweep_outbox(resend_after_us=0)
    assert HOUR_US / 1e6 < redis.execute("TTL", keys().sweep) <= 2 * HOUR_US / 1e6


def test_an_empty_outbox_has_no_progress(plaza: World) -> None:
    put()
    version = gate(7).version_us
    sweep.sweep_outbox(resend_after_us=0)
    assert apply(1, 1, [(7, version, True)]).outbox_count == 0
    assert due() is None
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    sweep.sweep_outbox(resend_after_us=0)
    assert redis.execute("EXISTS", keys().sweep, keys().outboxes) == 0


def test_an_outbox_that_became_empty_during_a_sweep_is_not_indexed(plaza: World) -> None:
    put()
    version = gate(7).version_us
    page = sweep_once()
    apply(1, 1, [(7, version, True)])
    outbox_index.confirm_all([page.progress])
    assert due() is None


def test_a_sweep_removes_an_empty_outbox_from_the_index(plaza: World) -> None:
    put()
    redis.execute("ZADD", keys().outboxes, 5, keys().member)
    assert sweep_post() == []
    assert due() is None


def test_a_large_outbox_is_swept_in_parts(plaza: World) -> None:
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, 1_501)])
    let_time_pass(MINUTE_US)
    actor_ids: set[int] = set()
    parts, has_more = 0, True
    while has_more:
        page = sweep_once(MINUTE_US // 2, count=100)
        assert len(page.entries) < 400, "about ``count``"
        actor_ids |= {event.key.actor_id for event in page.entries}
        outbox_index.confirm_all([page.progress])
        parts, has_more = parts + 1, page.has_more
        assert parts < 50
    assert actor_ids == set(range(1, 1_501))
    assert parts >= 5
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US // 2) == 0, "all were sent"


def test_a_run_continues_the_scan_of_the_last_one(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "EVENTS_PER_TARGET", 100)
    monkeypatch.setattr(sweep, "MAX_EVENTS", 1)  # one page
    put()
    redis.run_all([gate_call(actor, True) for actor in range(1, 1_501)])
    let_time_pass(MINUTE_US)
    runs = 0
    while sweep.sweep_outbox(resend_after_us=MINUTE_US // 2):
        runs += 1
        assert runs < 50
    sent = [read_event(body) for body in plaza.queues.take("reactions")]
    assert {event.key.actor_id for event in sent} == set(range(1, 1_501))
    assert len(sent) < 2_000, "a page is sent once"


def test_a_sweep_reports_a_gap_after_one_second(plaza: World) -> None:
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    assert sweep_once().code == "SWEPT", "the commit may arrive"
    redis.execute("HSET", keys().meta, "blocked", redis_us() - 2_000_000)
    page = sweep_once()
    assert (page.member, page.code, page.db_version) == ((LIKE, POST), "GAP", 1)
    assert not page.has_more, "with an empty outbox"
    before = due()
    outbox_index.confirm_all([page.progress])
    assert due() == before is not None


# ---------------------------------------------------------------- clocks


def test_a_commit_that_is_missing_since_a_time_ahead_of_the_clock_is_lost(plaza: World) -> None:
    """Given a clock that went back by an hour while the target was blocked."""
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "blocked", redis_us() + HOUR_US)
    assert sweep_once().code == "GAP"
    assert apply(4, 4, [(4, 40, True)]).code == "GAP"


def test_a_lost_commit_is_noticed_although_the_clock_goes_back(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    with monkeypatch.context() as patch:
        shift_time(patch, redis_commits, "APPLY", HOUR_US)
        apply(3, 3, [(3, 30, True)])
    sweep.sweep_outbox(resend_after_us=MINUTE_US)
    assert (recent(), total(), meta()["db_version"]) == ([1, 2, 3], 3, 3)


def test_an_entry_whose_version_is_ahead_is_swept_after_resend_after(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a target with a row an hour ahead of the clock."""
    put(total=1, n=1, newest=[(1, redis_us() + HOUR_US)])
    assert gate(7).version_us > redis_us() + HOUR_US - MINUTE_US
    assert due() == pytest.approx(redis_us(), abs=5_000_000)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 0
    redis.execute("ZINCRBY", keys().outboxes, -2 * MINUTE_US, keys().member)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1
    assert read_ages(capsys) == pytest.approx([0, 120], abs=5)


@pytest.mark.parametrize("ahead_us", [MINUTE_US, HOUR_US])
def test_an_outbox_whose_time_in_the_index_is_ahead_is_swept(plaza: World, ahead_us: int) -> None:
    """Given a clock that went back, or an index that version 0.2.0 wrote."""
    put()
    version = gate(7).version_us
    make_older(2 * MINUTE_US)
    redis.execute("ZADD", keys().outboxes, redis_us() + ahead_us, keys().member)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1
    assert due() == version - 2 * MINUTE_US


def test_an_entry_is_due_although_the_last_sweep_is_ahead_of_the_clock(plaza: World) -> None:
    put()
    gate(7)
    let_time_pass(-HOUR_US)
    sweep.sweep_outbox(resend_after_us=0)
    let_time_pass(HOUR_US + 2 * MINUTE_US)
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 0
    at_us = redis_us() + HOUR_US
    redis.execute("SET", keys().sweep, f"{at_us}:{at_us}:0:{at_us}")
    assert sweep.sweep_outbox(resend_after_us=MINUTE_US) == 1


def test_a_sweep_of_a_cold_target_finds_its_entries(plaza: World) -> None:
    redis.execute("HSET", keys().outbox, 7, "1:10:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    swept = sweep_once()
    assert (swept.code, [event.version_us for event in swept.entries]) == ("COLD", [10])


# ---------------------------------------------------------------- the sweeper


def test_targets_are_found_up_to_a_limit_for_each_shard(plaza: World) -> None:
    targets = [Target("post", n) for n in range(1, 41)]
    for target in targets:
        put(target=target)
        gate(7, target=target)
    result = redis_outbox.find_due(redis_us(), 100)
    assert sorted(target for _, target in result) == targets
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
    assert sweep.sweep_outbox(resend_after_us=0) == 3
    assert sweep.sweep_outbox(resend_after_us=0) == 3, (
        "without ``resend_after_us`` all entries are due"
    )
    plaza.queues.drain()
    assert {actor for actor, (on, _) in rows().items() if on} == {1, 2, 3}
    assert outbox() == {}
    assert sweep.sweep_outbox(resend_after_us=0) == 0


def test_the_sweeper_hydrates_a_cold_target_with_an_outbox(plaza: World) -> None:
    """Given a target that was evicted and has no readers."""
    insert_rows([(POST, 1, 1, 10), (POST, 7, 1, 20)])
    redis.execute("HSET", keys().outbox, 7, "1:20:0:cabc", 8, "1:30:0:cabc")
    redis.execute("ZADD", keys().outboxes, 10, keys().member)
    assert sweep.sweep_outbox(resend_after_us=0) == 2
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
    assert sweep.sweep_outbox(resend_after_us=0) == 0
    assert (recent(), total(), meta()["db_version"], due()) == ([1, 2, 3], 3, 3, None)


def test_the_sweeper_hydrates_a_target_that_had_a_gap_before_a_failover(plaza: World) -> None:
    """Given a replica with buffered commits of another term, an empty outbox and no readers."""
    insert_rows([(POST, 1, 1, 10), (POST, 2, 1, 20), (POST, 3, 1, 30)])
    put(total=1, n=1, newest=[(1, 10)])
    apply(3, 3, [(3, 30, True)])
    redis.execute("HSET", keys().meta, "term", "before the failover")
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(resend_after_us=0) == 0
    assert (recent(), total(), meta()["db_version"]) == ([1, 2, 3], 3, 3)
    assert (redis.execute("EXISTS", keys().ahead), redis.execute("PTTL", keys().meta) > 0) == (0, 1)
    plaza.let_sweeps_be_due()
    sweep.sweep_outbox(resend_after_us=0)
    assert due() is None


def test_the_sweeper_sends_spilled_events(plaza: World) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    assert react.react(LIKE, POST, 7, True).exact
    redis.execute("FLUSHALL")  # the copy in Redis is lost
    with pytest.raises(QueueDown):
        sweep.sweep_outbox(resend_after_us=0)
    assert count_spilled() == 1
    plaza.queues.away = False
    assert sweep.sweep_outbox(resend_after_us=0) == 1
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
    assert sweep.sweep_outbox(resend_after_us=0) == 1
    assert (count_spilled(), plaza.queues.take(queues.REACTIONS)) == (0, ["{}"])


def test_spilled_messages_are_sent_while_redis_is_unavailable(
    plaza: World, redis_away: Away
) -> None:
    spill.spill(queues.REACTIONS.name, "{}")
    with redis_away(), pytest.raises(RedisDown):
        sweep.sweep_outbox(resend_after_us=0)
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
        assert sweep.sweep_outbox(resend_after_us=0) == 1
    assert "spill_resend_postponed" in capsys.readouterr().out


def test_a_sweep_ends_although_outboxes_keep_their_entries(plaza: World) -> None:
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(resend_after_us=0) == 250
    assert len(plaza.queues.take("reactions")) == 250


def test_a_run_sends_a_limited_number_of_events(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "MAX_EVENTS", 100)
    for n in range(1, 251):
        put(target=Target("post", n))
        gate(7, target=Target("post", n))
    plaza.let_sweeps_be_due()
    assert 100 <= sweep.sweep_outbox(resend_after_us=0) < 250


def test_the_sweeper_pauses_while_the_queue_has_a_backlog(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    put()
    gate(7)
    plaza.let_sweeps_be_due()
    plaza.queues.messages["reactions"] = ["{}"] * 10_001
    assert sweep.sweep_outbox(resend_after_us=0) == 0
    assert "sweep_paused" in capsys.readouterr().out
    plaza.queues.messages["reactions"] = []
    assert sweep.sweep_outbox(resend_after_us=0) == 1


def test_a_sweep_of_everything_ignores_the_backlog_and_earlier_sweeps(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    put()
    gate(7)
    sweep.sweep_outbox(resend_after_us=0)
    plaza.queues.take(queues.REACTIONS)
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
    sweep.sweep_outbox(resend_after_us=0)
    line = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (line["event"], line["republished"]) == ("outbox_swept", 1)
    assert line["outbox_age_s"] == pytest.approx(600, abs=30)
    assert sweep.sweep_outbox(resend_after_us=HOUR_US) == 0
    assert read_ages(capsys) == pytest.approx([600], abs=30), "also when nothing is due"
    assert read_outboxes()["outbox_age_s"] == pytest.approx(600, abs=30)


def test_the_sweeper_raises_queue_down_while_the_queue_is_unavailable(plaza: World) -> None:
    plaza.queues.away = True
    with pytest.raises(QueueDown):
        sweep.sweep_outbox()


def test_the_age_of_the_oldest_entry_is_measured(plaza: World) -> None:
    """Given an outbox with an entry of 100 s and one of 10 s, and a younger outbox."""
    now_us = redis_us()
    for target, actor, age_s in ((POST, 7, 100), (POST, 8, 10), (Target("post", 12), 9, 10)):
        k = keys(target)
        redis.execute("HSET", k.outbox, actor, f"1:{now_us - age_s * 10**6}:0:cabc")
        redis.execute("ZADD", k.outboxes, "NX", now_us - age_s * 10**6, k.member)
    measured = read_outboxes()
    assert measured["outboxes"] == 2
    assert measured["outbox_age_s"] == pytest.approx(100, abs=30)
