"""Reactions while the queue, Redis or MySQL is unavailable, and after Redis lost its data."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.stack.servers import Server
from plaza.core.reactions import LIKE, Target, persist, queries, react, redis_gate, sweep
from plaza.core.reactions.model import (
    Count,
    OutboxFull,
    ReactionUndecided,
    TargetDeleted,
    TargetMissing,
)
from plaza.core.reactions.queues import ACKNOWLEDGEMENTS, REACTIONS
from plaza.core.targets import Existence, lookup
from plaza.infra.jobs import health
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.queues import sqs
from plaza.infra.queues.queue import QueueDown
from plaza.infra.redis import connections, masters, redis, terms
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import clear_caches
from tests.integration.conftest import Away
from tests.support.keyspace import redis_us
from tests.support.logs import read_log
from tests.support.plaza import Sent, World, forget, read_event
from tests.support.stores import (
    POST,
    counter,
    gate,
    hydrate,
    insert_rows,
    keys,
    marker_key,
    meta,
    outbox,
    put,
    read_counts,
    rows,
    shift_time,
    total,
)

SetUp = Callable[..., None]


# ---------------------------------------------------------------- the queue


def test_a_like_is_spilled_while_the_queue_is_unavailable(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    plaza.add(POST)
    plaza.queues.away = True
    outcome = react.react(LIKE, POST, 7, True)
    assert (outcome.total, outcome.changed, outcome.exact) == (1, True, True)
    assert "message_unsent" in capsys.readouterr().out
    assert set(outbox()) == {7}
    [(queue, body)] = mysql.fetch_all("SELECT queue, body FROM spilled_message")
    event = REACTIONS.decode(str(body))
    assert (queue, event.key.actor_id, event.version_us) == ("reactions", 7, outbox()[7][1])


def test_a_like_without_queue_and_mysql_is_provisional_and_saved_by_the_sweeper(
    plaza: World, mysql_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only copy is in Redis, which does not suffice for a 200."""
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    plaza.queues.drain()
    with mysql_away():
        plaza.queues.away = True
        outcome = react.react(LIKE, POST, 7, True)
        assert (outcome.on, outcome.total, outcome.changed) == (True, None, None)
        assert not outcome.exact
        assert not react.react(LIKE, POST, 1, True).exact, "an assertion is provisional, too"
    assert "spill_failed" in capsys.readouterr().out
    assert set(outbox()) == {1, 7}
    plaza.queues.away = False
    plaza.let_sweeps_be_due()
    assert sweep.sweep_outbox(resend_after_us=0) == 2
    plaza.queues.drain()
    assert (outbox(), counter(), total()) == ({}, 2, 2)


def test_a_like_succeeds_although_a_rebuild_cannot_be_queued(plaza: World) -> None:
    plaza.add(POST)
    insert_rows([(POST, 1, 1, 10)])
    put(total=1, n=1, complete=False)
    plaza.queues.away = True
    assert react.react(LIKE, POST, 7, True).changed


# ---------------------------------------------------------------- Redis


def test_a_like_is_provisional_while_redis_is_unavailable(plaza: World, redis_away: Away) -> None:
    plaza.add(POST)
    insert_rows([(POST, 1, 1, 10)])
    with redis_away():
        for _ in range(2):  # the client repeats it
            outcome = react.react(LIKE, POST, 7, True)
            assert (outcome.on, outcome.total, outcome.changed) == (True, None, None)
            assert not outcome.exact
        react.react(LIKE, POST, 1, False)
        events = [read_event(b) for b in plaza.queues.messages["reactions"]]
        assert [f.version_us for f in events] == [None] * 3
        assert rows() == {1: (True, 10)}

        # The consumer saves them and queues its commit.
        persist.save(events)
        plaza.queues.messages["reactions"].clear()
        assert {actor for actor, (on, _) in rows().items() if on} == {7}
        [message] = plaza.queues.messages["acknowledgements"]
        [commit] = ACKNOWLEDGEMENTS.decode(str(message)).commits
        assert {actor for actor, _, _ in commit.rows} == {1, 7}
        assert (commit.db_version, commit.total, commit.is_new) == (2, 1, True)

        counts, exact = read_counts([(LIKE, POST)], 7)
        assert (counts, exact) == ([Count(1, True)], False)
        page, _ = queries.list_reactors(LIKE, POST, None, False, 10)
        assert [r.actor_id for r in page] == [7]
        assert health.check("reactions")["redis"] == "down"

    hydrate()  # a reader hydrates the target before the commit is applied
    plaza.queues.drain()
    assert read_counts([(LIKE, POST)], 7) == ([Count(1, True)], True)
    assert react.react(LIKE, POST, 7, True).changed is False
    assert react.react(LIKE, POST, 1, True).total == 2
    plaza.queues.drain()
    assert counter() == total() == 2


@pytest.mark.parametrize("order", ["as sent", "reversed"])
@pytest.mark.parametrize("on", [True, False])
def test_an_unchanged_reply_survives_an_earlier_provisional_reaction(
    plaza: World, redis_away: Away, on: bool, order: str
) -> None:
    """Given a 202, then a 200 "unchanged" to the opposite, then the consumer of both."""
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    react.react(LIKE, POST, 7, on)
    plaza.queues.drain()
    with redis_away():
        assert not react.react(LIKE, POST, 7, not on).exact
    outcome = react.react(LIKE, POST, 7, on)
    assert (outcome.changed, outcome.exact) == (False, True)
    bodies = plaza.queues.take("reactions")
    assert len(bodies) == 2
    for body in bodies if order == "as sent" else bodies[::-1]:
        persist.save([read_event(body)])
        assert read_counts([(LIKE, POST)], 7) == ([Count(int(on), on)], True)
    assert rows()[7][0] is on
    assert (outbox(), counter(), total()) == ({}, int(on), int(on))


def test_a_provisional_like_that_sqs_stores_after_its_503_is_older_than_a_later_answer(
    plaza: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a like whose send timed out, then an unlike that was answered 200."""
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    monkeypatch.setattr(react, "PROVISIONAL_ORDER_S", 0.05)
    accepted: list[str] = []

    def time_out(_: str, body: str, __: int = 0) -> None:
        accepted.append(body)
        raise QueueDown("the reply timed out")

    began_s = clock.monotonic_s()
    with redis_away(), monkeypatch.context() as patch:
        patch.setattr(sqs, "send", time_out)
        with pytest.raises(QueueDown):
            react.react(LIKE, POST, 7, True)
    assert clock.monotonic_s() - began_s >= 0.1
    assert react.react(LIKE, POST, 7, False).changed
    plaza.queues.drain()
    [late] = accepted
    persist.save([read_event(Sent(late, clock.now_ms() + 50))])
    assert (rows()[7][0], counter(), total()) == (False, 0, 0)
    assert read_counts([(LIKE, POST)], 7) == ([Count(0, False)], True)


def test_the_later_of_two_provisional_reactions_wins_by_the_clock_of_the_queue(
    plaza: World, redis_away: Away
) -> None:
    plaza.add(POST)
    with redis_away():
        react.react(LIKE, POST, 7, True)
        react.react(LIKE, POST, 7, False)
    early, late = plaza.queues.take("reactions")
    assert isinstance(early, Sent)
    assert isinstance(late, Sent)
    assert early.sent_ms <= late.sent_ms
    persist.save([read_event(Sent(late, 2_000))])
    persist.save([read_event(Sent(early, 1_000))])
    assert rows() == {7: (False, 2_000_999)}
    assert read_counts([(LIKE, POST)], 7) == ([Count(0, False)], True)


def test_a_command_that_timed_out_is_refused_when_redis_continues(
    plaza: World, set_up: SetUp, redis_server: Server
) -> None:
    """A PUT that timed out at a paused Redis must not get a version above a later DELETE."""
    plaza.add(POST)
    set_up(redis_timeout_s=0.3)
    react.react(LIKE, POST, 7, False)
    plaza.queues.drain()
    before = meta()
    redis_server.pause()
    try:
        assert not react.react(LIKE, POST, 7, True).exact
    finally:
        redis_server.resume()
        forget()
    assert redis.execute("PING")
    assert (outbox(), total()) == ({}, 0), "refused after its deadline"
    assert meta()["version"] == before["version"]


def test_the_gate_raises_redis_down_when_every_command_is_late(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored clock offset is behind by more than the timeout; each reply corrects it."""
    put()
    name = masters._name_node_of(keys().meta)
    node = masters.find_node(keys().meta)
    behind = node._replace(clock_offset_us=node.clock_offset_us - 60_000_000)
    with monkeypatch.context() as patch:
        patch.setitem(terms.known_nodes, name, behind)
        assert gate(7).code == "CHANGED", "with the offset of the first reply"
        patch.setattr(masters, "observe_clock", lambda key, now_us: None)
        patch.setitem(terms.known_nodes, name, behind)
        with pytest.raises(RedisDown, match="after its deadline") as refusal:
            gate(8)
    assert refusal.value.may_have_run is False
    assert set(outbox()) == {7}


def test_requests_of_the_next_hour_win_although_a_clock_was_an_hour_ahead(
    plaza: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a like while the clock of Redis is ahead; then Redis is unavailable."""
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    with monkeypatch.context() as patch:
        shift_time(patch, redis_gate, "GATE", 3_600_000_000)
        assert react.react(LIKE, POST, 7, True).exact is False
        with pytest.raises(RedisDown, match=r"its clock is 3[56]\d\d\.\d s ahead"):
            gate(7)
    assert set(outbox()) == {1}, "no version is ahead"
    assert react.react(LIKE, POST, 8, True).exact, "the clock is right again"
    plaza.queues.drain()
    with redis_away():
        assert react.react(LIKE, POST, 7, False).exact is False
    plaza.queues.drain()
    assert {actor: on for actor, (on, _) in rows().items()} == {1: True, 7: False, 8: True}


@pytest.mark.parametrize("ahead_us", [-3_600_000_000, 900_000])
def test_a_clock_that_is_behind_or_ahead_by_less_than_a_second_decides(
    plaza: World, monkeypatch: pytest.MonkeyPatch, ahead_us: int
) -> None:
    plaza.add(POST)
    shift_time(monkeypatch, redis_gate, "GATE", ahead_us)
    assert react.react(LIKE, POST, 7, True).exact


def test_a_command_is_refused_after_its_deadline_although_the_clock_went_back(
    plaza: World,
) -> None:
    """Given an offset that was measured while the clock of Redis was an hour ahead."""
    node = masters.find_node(keys().meta)
    ahead = node._replace(clock_offset_us=node.clock_offset_us + 3_600_000_000)
    until_s = clock.monotonic_s() + 0.5
    lead_us = ahead.deadline_us(until_s) - node.deadline_us(until_s)
    assert lead_us == pytest.approx(terms.MAX_CLOCK_LEAD_US, abs=100_000)


def test_the_lead_of_versions_over_the_clock_is_measured(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given a row that is an hour ahead of the clock."""
    plaza.add(POST)
    put(total=1, n=1, newest=[(1, redis_us() + 3_600_000_000)])
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    [line] = read_log(capsys, "queue_clock_measured")
    assert line["version_lead_max_s"] == pytest.approx(3_600, abs=30)


def test_a_provisional_like_of_a_missing_or_deleted_target_is_refused(
    plaza: World, redis_away: Away
) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    with redis_away():
        with pytest.raises(TargetMissing):
            react.react(LIKE, Target("post", 404), 7, True)
        with pytest.raises(TargetDeleted):
            react.react(LIKE, POST, 7, True)
        plaza.queues.away = True
        plaza.add(Target("post", 12))
        with pytest.raises(QueueDown):
            react.react(LIKE, Target("post", 12), 7, True)
    assert not any(plaza.queues.messages.values())


def test_the_breaker_opens_while_redis_hangs(
    plaza: World, set_up: SetUp, redis_server: Server
) -> None:
    plaza.add(POST)
    set_up(redis_timeout_s=0.1)
    redis.execute("PING")
    redis_server.pause()
    try:
        for _ in range(connections.REDIS.breaker.fail_max):
            with pytest.raises(RedisDown):
                redis.execute("PING")
        assert connections.REDIS.breaker.current_state == "open"
        with pytest.raises(RedisDown, match="breaker is open"):
            redis.execute("PING")
        assert react.react(LIKE, POST, 7, True).exact is False
    finally:
        redis_server.resume()
        forget()
    assert react.react(LIKE, POST, 8, True).exact is True


def test_reads_of_mysql_take_from_the_fallback_budget(
    plaza: World, redis_away: Away, monkeypatch: pytest.MonkeyPatch
) -> None:
    from plaza.infra.redis.token_bucket import TokenBucket

    monkeypatch.setattr(queries, "_fallback_budget", TokenBucket(1, 3, clock=lambda: 0.0))
    with redis_away():
        for _ in range(3):
            assert read_counts([(LIKE, POST)], None) == ([Count(0, False)], False)
        with pytest.raises(RedisDown):
            read_counts([(LIKE, POST)], None)


def test_a_batch_without_redis_and_queue_is_delivered_again(plaza: World, redis_away: Away) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    batch = [REACTIONS.decode(str(b)) for b in plaza.queues.take("reactions")]
    with redis_away():
        plaza.queues.away = True
        with pytest.raises(QueueDown):
            persist.save(batch)
    plaza.queues.away = False
    persist.save(batch)
    assert (counter(), len(rows())) == (1, 1)


def test_an_empty_redis_is_hydrated_on_demand(plaza: World) -> None:
    plaza.add(POST)
    for actor in (1, 2, 3):
        react.react(LIKE, POST, actor, True)
    plaza.queues.drain()
    react.react(LIKE, POST, 4, True)  # queued, not saved
    redis.execute("FLUSHALL")
    assert read_counts([(LIKE, POST)], 1) == ([Count(3, True)], True)
    plaza.queues.drain()
    assert read_counts([(LIKE, POST)], 4) == ([Count(4, True)], True)
    assert react.react(LIKE, POST, 4, True).changed is False


# ---------------------------------------------------------------- MySQL


def test_redis_decides_without_mysql_where_it_has_the_state(plaza: World, mysql_away: Away) -> None:
    plaza.add(POST, Target("post", 12), Target("post", 13))
    insert_rows([(Target("post", 12), actor, 1, 10 + actor) for actor in range(1, 81)])
    react.react(LIKE, POST, 1, True)
    lookup.find("post", 12)
    lookup.find("post", 13)
    put(total=80, n=80, newest=[(80, 90)], complete=False, target=Target("post", 12))
    plaza.queues.drain()
    with mysql_away():
        assert react.react(LIKE, POST, 7, True).total == 2
        assert react.react(LIKE, POST, 1, False).total == 1
        assert read_counts([(LIKE, POST)], 7) == ([Count(1, True)], True)
        with pytest.raises(MysqlDown):  # the state of actor 5 is in MySQL only
            react.react(LIKE, Target("post", 12), 5, True)
        with pytest.raises(MysqlDown):  # cold
            react.react(LIKE, Target("post", 13), 5, True)
        with pytest.raises(MysqlDown):  # no marker of existence
            react.react(LIKE, Target("post", 14), 5, True)
        with pytest.raises(MysqlDown):
            persist.save([read_event(plaza.queues.messages["reactions"][0])])
        assert health.check("reactions")["mysql"] == "down"
    plaza.queues.drain()
    assert counter() == total() == 1
    assert react.react(LIKE, Target("post", 12), 5, True).changed is False


def test_a_process_connects_again_after_a_restart_of_mysql(
    plaza: World, mysql_server: Server
) -> None:
    """As after a failover: the connection is closed, the server is available."""
    assert mysql.fetch_all("SELECT 1") == [(1,)]
    mysql_server.stop()
    mysql_server.start()
    assert mysql.fetch_all("SELECT 1") == [(1,)]


def test_an_error_in_a_transaction_rolls_it_back(plaza: World) -> None:
    from pymysql.cursors import Cursor

    def work(cursor: Cursor) -> None:
        cursor.execute("INSERT INTO user_counter (user_id) VALUES (1)")
        raise RuntimeError("oh")

    with pytest.raises(RuntimeError):
        mysql.run_in_transaction(work)
    assert mysql.fetch_all("SELECT COUNT(*) FROM user_counter") == [(0,)]
    assert mysql.MYSQL.breaker.current_state == "closed", "not an outage"


# ---------------------------------------------------------------- refusals


def test_a_full_outbox_has_a_retry_after(plaza: World, set_up: SetUp) -> None:
    set_up(outbox_limit=1)
    plaza.add(POST)
    react.react(LIKE, POST, 1, True)
    with pytest.raises(OutboxFull) as refusal:
        react.react(LIKE, POST, 2, True)
    assert refusal.value.retry_after_s == 5
    plaza.queues.drain()
    assert react.react(LIKE, POST, 2, True).total == 2


def test_a_reaction_is_undecided_after_every_attempt_found_a_cold_target(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    plaza.add(POST)
    monkeypatch.setattr("plaza.core.reactions.react.hydrate", lambda expected: [])
    with pytest.raises(ReactionUndecided):
        react.react(LIKE, POST, 1, True)
    assert plaza.queues.messages == {}


# ---------------------------------------------------------------- existence


@pytest.mark.parametrize("attempts", [1, 2])
def test_a_missing_target_is_marked_for_30_seconds(plaza: World, attempts: int) -> None:
    for _ in range(attempts):
        with pytest.raises(TargetMissing):
            react.react(LIKE, Target("post", 404), 7, True)
    assert 0 < redis.execute("TTL", marker_key()) <= 30


def test_a_deleted_target_is_refused(plaza: World) -> None:
    plaza.add(POST)
    mysql.write("UPDATE content SET deleted_at = NOW(6)")
    with pytest.raises(TargetDeleted):
        react.react(LIKE, POST, 7, True)
    assert lookup.find(*POST) is Existence.DELETED


def test_a_look_up_does_not_replace_a_marker(plaza: World) -> None:
    plaza.add(POST)
    assert lookup.find_in_mysql(*POST) is Existence.LIVE
    redis.execute("SET", marker_key(), "deleted")
    assert lookup.find_in_mysql(*POST) is Existence.LIVE
    clear_caches()
    assert lookup.find(*POST) is Existence.DELETED


def test_existence_is_looked_up_in_the_cache_then_redis_then_mysql(
    plaza: World, mysql_away: Away
) -> None:
    plaza.add(POST, Target("post", 12))
    assert lookup.find(*POST) is Existence.LIVE
    with mysql_away():
        assert lookup.find(*POST) is Existence.LIVE, "from the cache"
        clear_caches()
        assert lookup.find(*POST) is Existence.LIVE, "from its marker"
        with pytest.raises(MysqlDown):
            lookup.find("post", 12)


# ---------------------------------------------------------------- scripts that Redis lost


def test_lost_scripts_are_sent_again(plaza: World) -> None:
    put()
    redis.execute("SCRIPT", "FLUSH")
    assert gate(1).code == "CHANGED"
    assert gate(2).code == "CHANGED"
    redis.execute("SCRIPT", "FLUSH")
    assert gate(3).total == 3


def test_lost_scripts_of_a_pipeline_are_sent_again(
    plaza: World,
) -> None:
    from plaza.core.reactions import redis_gate
    from tests.integration.core.reactions.test_gate import gate_call, read_call

    put()
    redis.execute("SCRIPT", "FLUSH")
    replies = redis.run_all(
        [gate_call(1, True), read_call(1), gate_call(2, True)], [("ECHO", "a"), ("ECHO", "b")]
    )
    assert [replies[0][0], replies[2][0]] == ["CHANGED", "CHANGED"]
    assert replies[3:] == ["a", "b"]
    assert total() == 2, "each ran once"
    redis.run_all([read_call(1)])
    redis.execute("SCRIPT", "FLUSH")
    redis.execute("SCRIPT", "LOAD", redis_gate.GATE.source)
    replies = redis.run_all([gate_call(3, True), read_call(3)])
    assert replies[0][2] == 3
    assert replies[1][0][:2] == [3, "1"]


def test_an_error_reply_of_redis_is_no_outage(plaza: World) -> None:
    from redis.exceptions import ResponseError

    for _ in range(10):
        with pytest.raises(ResponseError):
            redis.execute("HGET", "too", "few", "or", "many")
    assert connections.REDIS.breaker.current_state == "closed"
    assert redis.pipeline([]) == []


def test_a_log_line_about_an_outage_has_its_cause(
    plaza: World, redis_away: Away, capsys: pytest.CaptureFixture[str]
) -> None:
    plaza.add(POST)
    with redis_away():
        react.react(LIKE, POST, 7, True)
    [line] = read_log(capsys, "provisional_accepted")
    assert (line["provisional"], line["error"]) == (1, "RedisDown")
    assert "refused" in line["caused_by"]
