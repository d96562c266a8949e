"""Servers that reply but cannot do their work count as down: failing over, full, busy."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis as redis_py
from pymysql.cursors import Cursor

from local.stack.servers import Server, prepare_redis, run_server
from plaza.core.reactions import LIKE, queries, react
from plaza.core.reactions.model import Count, ReactionUndecided
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import connections, redis, terms
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from tests.support.keyspace import find_keys
from tests.support.plaza import World, forget
from tests.support.stores import POST, meta, outbox, read_counts, recent

SetUp = Callable[..., None]
Commands = list[tuple[str, ...]]


@pytest.fixture
def other_redis(plaza: World, set_up: SetUp, tmp_path: Any) -> Iterator[Server]:
    """A Redis of this test only, which may leave it in any state."""
    with run_server(prepare_redis(tmp_path / "redis")) as server:
        set_up(redis_url=server.url, redis_cluster=0)
        yield server
        server.kill()  # a busy one does not end at SIGTERM


def send_command(server: Server, *command: str) -> Any:
    with redis_py.Redis.from_url(server.url, decode_responses=True) as client:
        return client.execute_command(*command)


def fill_up(server: Server) -> None:
    send_command(server, "CONFIG", "SET", "maxmemory", "1")


def lose_replicas(server: Server) -> None:
    send_command(server, "CONFIG", "SET", "min-replicas-to-write", "1")


def fail_to_save(server: Server) -> None:
    (server.directory / "dump.rdb").mkdir()  # a file cannot replace a directory
    send_command(server, "CONFIG", "SET", "save", "3600 1")
    send_command(server, "BGSAVE")
    deadline_s = time.monotonic() + 10
    while "rdb_last_bgsave_status:err" not in str(send_command(server, "INFO")).replace(
        "': '", ":"
    ):
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def become_a_replica(server: Server) -> None:
    send_command(server, "REPLICAOF", "127.0.0.1", "1")


def be_busy(server: Server) -> None:
    send_command(server, "CONFIG", "SET", "busy-reply-threshold", "1")
    with (
        contextlib.suppress(redis_py.TimeoutError),
        redis_py.Redis.from_url(server.url, socket_timeout=0.2) as client,
    ):
        client.eval("while true do end", 0)


@pytest.mark.parametrize("fail", [fill_up, lose_replicas, fail_to_save, become_a_replica, be_busy])
def test_a_redis_that_refuses_writes_is_down_and_a_like_is_provisional(
    plaza: World, other_redis: Server, fail: Callable[[Server], None]
) -> None:
    plaza.add(POST)
    assert react.react(LIKE, POST, 7, True).exact
    fail(other_redis)
    assert not react.react(LIKE, POST, 8, True).exact
    with pytest.raises(RedisDown):
        redis.pipeline([("SET", "a", "1"), ("SET", "b", "1")])
    with pytest.raises(RedisDown):
        redis.execute("SET", "a", "1")


def test_a_demoted_master_is_disconnected(plaza: World, other_redis: Server) -> None:
    before = redis.execute("CLIENT", "ID")
    become_a_replica(other_redis)
    for command in (("SET", "a", "1"), ("GET", "a")):
        with pytest.raises(RedisDown):
            redis.execute(*command)
    send_command(other_redis, "REPLICAOF", "NO", "ONE")
    assert redis.execute("CLIENT", "ID") != before


def test_a_connection_to_a_demoted_master_ends_although_it_only_reads(
    plaza: World, other_redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its term is read again once a second, along with a command."""
    assert redis.execute("GET", "a") is None
    become_a_replica(other_redis)
    assert redis.execute("GET", "a") is None, "read less than 1 s ago"
    now_s = clock.monotonic_s()
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s + 1)
    with pytest.raises(RedisDown):
        redis.execute("GET", "a")


def test_a_command_that_a_demoted_master_refused_is_repeated_on_the_new_one(
    plaza: World, other_redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first attempt uses the old connection, the second one a new one to the new master."""
    plaza.add(POST)
    assert react.react(LIKE, POST, 7, True).exact
    forget_client = connections.forget_client

    def promote() -> None:
        forget_client()
        send_command(other_redis, "REPLICAOF", "NO", "ONE")

    with monkeypatch.context() as patch:
        patch.setattr(connections, "forget_client", promote)
        become_a_replica(other_redis)
        outcome = react.react(LIKE, POST, 8, True)
        assert (outcome.total, outcome.changed) == (2, True)
        become_a_replica(other_redis)
        assert redis.pipeline([("SET", "a", "1"), ("GET", "a")]) == [True, "1"]


@pytest.mark.parametrize("failovers", [1, 2, 3])
def test_a_like_decided_by_a_promoted_replica_with_old_arguments_is_decided_again(
    failovers: int, plaza: World, other_redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a node that has cached the script, the client repeats a command packed for another."""
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    execute = redis._execute
    names = iter(range(failovers))

    def execute_on_promoted(command: Any) -> Any:
        reply = execute(command)
        if command[0] == "EVALSHA" and (name := next(names, None)) is not None:
            node = terms.known_nodes[""]._replace(term=f"promoted {name}")
            monkeypatch.setitem(terms.known_nodes, "", node)
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(redis, "_execute", execute_on_promoted)
        if failovers < 3:
            outcome = react.react(LIKE, POST, 8, True)
            assert (outcome.total, outcome.changed) == (2, True)
        else:
            with pytest.raises(ReactionUndecided):
                react.react(LIKE, POST, 8, True)
    assert react.react(LIKE, POST, 8, True).total == 2
    plaza.queues.drain()
    assert read_counts([(LIKE, POST)], 8) == ([Count(2, True)], True)


@pytest.mark.parametrize("first", ["reads", "likes"])
def test_older_data_of_a_restarted_redis_are_replaced(
    plaza: World, other_redis: Server, first: str
) -> None:
    """Given a single Redis that was restored to one like, when MySQL has two and no queue has an
    event."""
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    send_command(other_redis, "SAVE")  # with 7 in the outbox
    react.react(LIKE, POST, 8, True)
    plaza.queues.drain()
    term = meta()["term"]
    other_redis.kill()
    other_redis.start()
    if first == "likes":
        # A restarted node has not cached the script: the client sends EVAL with its term.
        assert react.react(LIKE, POST, 9, True).total == 3
        plaza.queues.drain()
    on = [7, 8, 9] if first == "likes" else [7, 8]
    for actor in on:
        assert read_counts([(LIKE, POST)], actor) == ([Count(len(on), True)], True)
    assert meta()["term"] != term
    assert (outbox(), recent()) == ({}, on)
    assert react.react(LIKE, POST, 8, False).total == len(on) - 1


def test_an_event_queued_before_a_restart_of_redis_is_saved_and_counted(
    plaza: World, other_redis: Server
) -> None:
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    send_command(other_redis, "SAVE")
    react.react(LIKE, POST, 8, True)  # in the queue, and lost from the outbox
    other_redis.kill()
    other_redis.start()
    forget()
    assert read_counts([(LIKE, POST)], 8) == ([Count(1, False)], True)
    plaza.queues.drain()
    assert read_counts([(LIKE, POST)], 8) == ([Count(2, True)], True)
    assert (recent(), outbox()) == ([7, 8], {})


def test_a_consumer_connected_before_a_restart_of_redis_applies_its_commits(
    plaza: World, other_redis: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first command after the restart is packed with the old term, and sent on a new
    connection."""
    plaza.add(POST)
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    before = terms.known_nodes[""]
    other_redis.kill()
    other_redis.start()
    react.react(LIKE, POST, 8, True)
    monkeypatch.setitem(terms.known_nodes, "", before)
    send_command(other_redis, "CLIENT", "KILL", "TYPE", "normal")
    plaza.queues.drain()
    assert terms.known_nodes[""].term != before.term
    assert (recent(), outbox()) == ([7, 8], {})


def test_a_list_restored_with_older_data_is_read_from_mysql_again(
    plaza: World, other_redis: Server
) -> None:
    plaza.add(POST)
    assert queries.list_reacted(LIKE, 7, None, 10) == ([], None)
    send_command(other_redis, "SAVE")  # with an empty list
    react.react(LIKE, POST, 7, True)
    plaza.queues.drain()
    other_redis.kill()
    other_redis.start()
    [liked], _ = queries.list_reacted(LIKE, 7, None, 10)
    assert liked.target == POST
    [key] = find_keys("*:like:user:7:newest")
    assert redis.execute("ZCARD", key) == 2, "it was built again for this term"


@pytest.mark.parametrize("code", [1290, 1836, 1792, 1927, 1317, 4031, 1021, 1114, 1040, 1053])
@pytest.mark.parametrize("how", ["write", "fetch_all", "run_in_transaction"])
def test_an_outage_error_of_mysql_is_down_and_closes_the_connection(
    plaza: World, code: int, how: str
) -> None:
    statement = f"SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'no'"
    run: dict[str, Callable[[], object]] = {
        "write": lambda: mysql.write(statement),
        "fetch_all": lambda: mysql.fetch_all(statement),
        "run_in_transaction": lambda: mysql.run_in_transaction(
            lambda cursor: cursor.execute(statement)
        ),
    }
    [(before,)] = mysql.fetch_all("SELECT CONNECTION_ID()")
    with pytest.raises(MysqlDown):
        run[how]()
    [(after,)] = mysql.fetch_all("SELECT CONNECTION_ID()")
    assert after != before


def test_a_statement_that_a_demoted_writer_refused_is_repeated_on_a_new_connection(
    plaza: World,
) -> None:
    """The first attempt uses the old connection, the second one a new one to the new writer."""
    attempts = []

    def refuse_once(cursor: Any, sql: str, args: object = ()) -> Any:
        attempts.append(sql)
        if len(attempts) == 1:
            sql = "SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1290"
        return execute(cursor, sql, args)

    mysql.fetch_all("SELECT 1")
    execute = Cursor.execute
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pymysql.cursors.Cursor.execute", refuse_once)
        assert mysql.write("DELETE FROM celebrity") == 0
    assert attempts.count("DELETE FROM celebrity") == 2
    forget()
