"""The commands of operators: each does what it says, once, and only for arguments that it knows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.connections import Connection
from pymysql.err import MySQLError

from local.stack.processes import wait_until
from plaza.commerce.checkins import daily_checkin
from plaza.core.reactions import LIKE, Target, operator_commands, react, sorted_lists
from plaza.core.reactions.redis_rankings import mark_ranking_complete, read_ranking
from plaza.core.switches import change_switches, redis_store
from plaza.core.switches.model import NO_CHANGE, SWITCHES
from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.settings import settings
from plaza.operate.operator_commands import redis_flush
from plaza.operate.operator_commands.commands import list_commands
from plaza.operate.operator_commands.mysql_server import MAX_STATEMENT_CHARS, hide_literals
from plaza.people.auth import new_session, session_lookup
from plaza.people.auth.operator_commands import SMOKE_SESSION_S
from plaza.people.auth.request_erasure import read_latest
from plaza.people.users import UserMissing
from tests.integration.conftest import Away
from tests.support import sales
from tests.support.functions import handler
from tests.support.keyspace import find_keys
from tests.support.logs import read_log
from tests.support.plaza import World, forget
from tests.support.stores import add_users, insert_rows

CALLER = "arn:aws:iam::123456789012:user/ada"
PHONE = "+8613800138000"
POST = Target("post", 11)


def run(command: str, **arguments: object) -> dict[str, Any]:
    """Run a command as the command does: all arguments are texts."""
    texts = {name: str(value) for name, value in arguments.items()}
    event = {"command": command, "arguments": texts, "caller": CALLER}
    sent = json.dumps(handler("ops/operate")(event, None), default=str)  # as Lambda does
    result: dict[str, Any] = json.loads(sent)
    return result


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"command": "drop-everything", "caller": CALLER}, "no such command"),
        ({"command": "counts"}, "caller: Field required"),
        ({"command": "counts", "caller": PHONE + "\n"}, "caller: String should match"),
        ({"command": "counts", "caller": CALLER, "sql": "DROP"}, "sql: Extra inputs"),
        ({"command": "set-role", "caller": CALLER, "arguments": {"user_id": "7"}}, "role: Missing"),
    ],
)
def test_an_event_that_is_no_command_is_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        handler("ops/operate")(event, None)


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("set-role", {"user_id": PHONE, "role": "admin"}),
        ("set-role", {"user_id": 7, "role": PHONE}),
        ("set-role", {"user_id": 7, "role": "admin", "phone": PHONE}),
        ("set-role", {"user_id": -1, "role": "admin"}),
        ("erase-now", {"user_id": 2**63}),
        ("end-transaction", {"thread_id": "1 OR 1"}),
        ("purge-dead-letter", {"queue": "reactions", "message_id": PHONE}),
        ("purge-dead-letter", {"queue": PHONE, "message_id": "1"}),
        ("sort-reactions", {"after": PHONE}),
        ("sort-reactions", {"after": "phone:1:1"}),
        ("sweep", {"everything": PHONE}),
        ("flush-redis", {"environment": PHONE}),
        ("set-switches", {"user_id": 7, "reason": "a test", "document": PHONE}),
        ("set-switches", {"user_id": 7, "reason": "a test", "level": PHONE}),
    ],
)
def test_other_arguments_are_refused_without_their_values(
    plaza: World, capsys: pytest.CaptureFixture[str], command: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refused:
        run(command, **arguments)
    assert PHONE not in str(refused.value) or command == "flush-redis"
    written = capsys.readouterr().out
    assert PHONE not in written or command == "flush-redis"


def test_each_run_has_two_lines_with_the_caller(
    plaza: World, capsys: pytest.CaptureFixture[str]
) -> None:
    add_users(7)
    run("set-role", user_id=7, role="admin")
    with pytest.raises(UserMissing):
        run("set-role", user_id=8, role="admin")
    handler("ops/operate")({"command": "counts", "caller": "local:ada"}, None)
    recorded = [line for line in read_log(capsys) if line.get("event", "").startswith("command_")]
    assert [(line["event"], line["command"], line["caller"]) for line in recorded] == [
        ("command_began", "set-role", CALLER),
        ("command_ended", "set-role", CALLER),
        ("command_began", "set-role", CALLER),
        ("command_failed", "set-role", CALLER),
        ("command_began", "counts", "local:ada"),
        ("command_ended", "counts", "local:ada"),
    ]
    assert recorded[0]["arguments"] == {"user_id": 7, "role": "admin"}


def test_each_command_says_what_it_does() -> None:
    assert all((command.run.__doc__ or "").endswith(".") for command in list_commands().values())


# ---------------------------------------------------------------- users and sessions


def test_a_role_is_set_and_taken(plaza: World) -> None:
    add_users(7)
    assert run("set-role", user_id=7, role="admin")["before"] == "user"
    token = new_session.open_session(7)
    session = session_lookup.find_session(token)
    assert session is not None
    assert session.role == "admin"
    assert run("set-role", user_id=7, role="user")["before"] == "admin"


def test_the_admin_of_a_smoke_test_has_a_session_for_some_minutes(plaza: World) -> None:
    opened = run("open-smoke-session")
    session = session_lookup.find_session(opened["token"])
    assert session is not None
    assert (session.user_id, session.role) == (opened["user_id"], "admin")
    assert session.ends_at_s - session.checked_at_s <= SMOKE_SESSION_S
    assert session.expires_at_s <= session.ends_at_s
    assert mysql.fetch_all("SELECT phone FROM user_phone") == []


def test_all_sessions_end(plaza: World) -> None:
    add_users(7, 8)
    tokens = [new_session.open_session(user_id) for user_id in (7, 8)]
    assert run("end-sessions") == {"ended": 2, "finished": True}
    assert [session_lookup.find_session(token) for token in tokens] == [None, None]


def test_an_erasure_begins_again_at_once(plaza: World) -> None:
    add_users(7)
    run("erase-now", user_id=7)
    mysql.write("UPDATE erasure SET closed_at = UTC_TIMESTAMP(6) WHERE user_id = 7")
    assert run("erase-now", user_id=7) == {"user_id": 7, "state": "erasing"}
    assert [erasure.closed_at for erasure in read_latest(5)] == [None]


# ---------------------------------------------------------------- MySQL


def connect() -> Connection[Any]:
    return mysql.connect_dedicated(database=settings().mysql.database, autocommit=True)


def id_of(connection: Connection[Any]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [(thread_id,)] = cursor.fetchall()
    return int(thread_id)


@pytest.fixture
def hanging(plaza: World) -> Iterator[Connection[Any]]:
    """The connection of a process that hangs in a transaction, with a row locked."""
    add_users(7)
    connection = connect()
    connection.begin()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE user SET nickname = 'later' WHERE id = 7")
        yield connection
    connection.close()


def test_a_hanging_transaction_is_found_and_ended(hanging: Connection[Any]) -> None:
    thread_id = id_of(hanging)
    [listed] = run("list-transactions")["transactions"]
    assert (listed["thread_id"], listed["rows_modified"]) == (thread_id, 1)
    assert run("end-transaction", thread_id=thread_id)["ended"]
    # InnoDB answers from a cache that it renews when it was not read for 0.1 s.
    assert wait_until(lambda: not run("list-transactions")["transactions"], 10, step_s=0.3)
    with pytest.raises(Refused, match="no open transaction"):
        run("end-transaction", thread_id=thread_id)
    assert mysql.fetch_all("SELECT nickname FROM user WHERE id = 7") != [("later",)]


def test_a_slow_statement_is_explained_and_ended(plaza: World) -> None:
    add_users(7, 8)
    slow, ended = connect(), []
    slow_id = id_of(slow)

    def wait() -> None:
        try:
            with slow.cursor() as cursor:
                cursor.execute("SELECT SLEEP(60) FROM user WHERE nickname <> 'Ada'")
        except MySQLError as error:
            ended.append(error)

    with pytest.raises(Refused, match="no statement"):
        run("explain", thread_id=slow_id)
    thread = threading.Thread(target=wait)
    thread.start()
    assert wait_until(lambda: "user" in tables_of_plan(slow_id), 10)
    texts = [entry["statement"] for entry in run("list-transactions")["transactions"]]
    assert texts == ["SELECT SLEEP(?) FROM user WHERE nickname <> ?"]
    run("end-transaction", thread_id=slow_id)
    thread.join(timeout=10)
    assert len(ended) == 1


def tables_of_plan(thread_id: int) -> list[str]:
    try:
        return [step["table"] for step in run("explain", thread_id=thread_id)["plan"]]
    except Refused:
        return []


def test_counts_show_tables_and_readers_of_the_log(plaza: World) -> None:
    counted = run("counts")
    assert set(counted["tables"]["reaction"]) == {"rows", "bytes"}
    assert isinstance(counted["watermarks"], dict)


def test_the_epoch_is_raised_and_a_missing_row_is_replaced(plaza: World) -> None:
    before = mysql.fetch_all("SELECT epoch FROM log_barrier")[0][0]
    try:
        assert run("raise-epoch") == {"epoch": before + 1}
        mysql.write("DELETE FROM log_barrier")
        mysql.write(
            "INSERT INTO reaction_log (target_type, target_id, kind, actor_id, version, state,"
            " change_by, total, db_version, create_date)"
            " VALUES ('post', 1, 'like', 1, 1, 1, 1, 1, %s, UTC_DATE())",
            (7 * 2**40 + 5,),
        )
        assert run("raise-epoch") == {"epoch": 8}
    finally:
        mysql.write("DELETE FROM log_barrier")
        mysql.write("INSERT INTO log_barrier (id, epoch) VALUES (1, 0)")


def test_the_position_in_the_binlog_is_shown_and_cleared(plaza: World) -> None:
    mysql.write("INSERT INTO binlog_offset (name, log_file, log_pos) VALUES ('shops', 'b.1', 4)")
    shown = run("show-binlog")
    assert shown["offsets"] == [{"name": "shops", "log_file": "b.1", "log_pos": 4}]
    assert shown["logs"][0]["log_file"]
    assert run("clear-binlog-offset") == {"cleared": 1}
    assert run("show-binlog")["offsets"] == []


@pytest.mark.parametrize(
    ("statement", "hidden"),
    [
        (f"SELECT id FROM user WHERE phone = '{PHONE}'", "SELECT id FROM user WHERE phone = ?"),
        ("SELECT 'it\\'s', \"a\", 0xAB12, 12.5, t1.c2", "SELECT ?, ?, ?, ?.?, t1.c2"),
        ("UPDATE a SET b = 'cut in the mid", "UPDATE a SET b = ?"),
        ("SELECT\n  a " + "b" * 1000, ("SELECT a " + "b" * 1000)[:MAX_STATEMENT_CHARS]),
    ],
)
def test_a_statement_is_shown_without_its_literals(statement: str, hidden: str) -> None:
    assert hide_literals(statement) == hidden


# ---------------------------------------------------------------- Redis


def test_redis_is_flushed_of_all_keys_of_plaza_when_no_outbox_has_entries(plaza: World) -> None:
    plaza.add(POST)
    add_users(7)
    react.react(LIKE, POST, 7, True)
    with pytest.raises(Refused, match="not the name"):
        run("flush-redis", environment="prod")
    with pytest.raises(Refused, match="1 outboxes have entries"):
        run("flush-redis", environment="local")
    plaza.queues.drain()
    redis.execute("SET", "of-another-program", "stays")
    redis.execute("SET", "auth{7}:session:ab", "of a session")
    flushed = run("flush-redis", environment="local")
    assert flushed["finished"]
    assert flushed["deleted"] >= 2
    assert find_keys("*") == ["of-another-program"]
    redis.execute("UNLINK", "of-another-program")


def test_a_flush_is_bounded_and_continues(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1_200):
        redis.execute("SET", f"{{{number % 128}}}:x:{number}", number)
    deadlines = iter([False, True])

    class Soon:
        @property
        def has_passed(self) -> bool:
            return next(deadlines)

    with monkeypatch.context() as patch:
        patch.setattr(Deadline, "in_s", lambda _: Soon())
        first = redis_flush.flush()
    assert not first.finished
    second = redis_flush.flush()
    assert second.finished
    assert first.deleted + second.deleted >= 1_200
    assert first.deleted > 0


def test_entries_of_outboxes_are_sent_again_at_once(plaza: World) -> None:
    plaza.add(POST)
    add_users(7)
    react.react(LIKE, POST, 7, True)
    daily_checkin.check_in(7)
    plaza.queues.messages.clear()  # as lost between the API and SQS
    swept = run("sweep", everything="true")
    assert (swept["reactions"] >= 1, swept["checkins"]) == (True, 1)
    plaza.queues.drain()
    assert run("sweep", everything="true") == {"reactions": 0, "checkins": 0}
    assert mysql.fetch_all("SELECT COUNT(*) FROM reaction") == [(1,)]
    assert mysql.fetch_all("SELECT COUNT(*) FROM checkin") == [(1,)]


def test_lists_are_sorted_until_none_is_left(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sorted_lists, "MAX_UNSORTED", 1)
    insert_rows([(POST, actor, 1, 1_000 + actor) for actor in (1, 2, 3)])
    with monkeypatch.context() as patch:
        patch.setattr(operator_commands, "_MAX_SORT_S", 0.0)
        left = run("sort-reactions")
        assert left["sorted"] == 0
        assert run("sort-reactions", after=left["after"])["after"] == left["after"]
    assert run("sort-reactions", after=left["after"])["after"] is None
    assert mysql.fetch_all("SELECT COUNT(*) FROM sorted_reaction") == [(3,)]
    assert run("sort-reactions") == {"sorted": 0, "after": None}


def test_switches_are_set_again_whatever_version_redis_has(plaza: World) -> None:
    """As after a restore of MySQL: Redis has a newer version than MySQL."""
    change_switches.set_level(0, "essential", "a test", operator_id=1)
    shown = run("show-switches")
    mysql.write("DELETE FROM switch_change")
    redis.execute("HSET", redis_store.KEY, "version", 90)
    assert run("show-switches")["mysql"] == SWITCHES.encode(NO_CHANGE.switches)
    assert run("set-switches", level="read_only", reason="MySQL was restored.", user_id=4) == {
        "version": 1
    }
    copy = redis_store.read()
    assert copy is not None
    assert copy.switches.read_only
    run("set-switches", document=shown["redis"], reason="As before.", user_id=4)
    again = run("show-switches")
    assert (again["redis"], again["mysql"], again["version"]) == (
        shown["redis"],
        shown["redis"],
        2,
    )


def test_a_sale_in_redis_is_shown_and_dropped(plaza: World) -> None:
    assert run("show-sale", voucher_id=404) == {}
    voucher = sales.offer(stock=3)
    shown = run("show-sale", voucher_id=voucher.id)
    assert (shown["state"]["initial_stock"], shown["waitlist"]) == ("3", 0)
    assert run("close-sale", voucher_id=voucher.id)["existed"]
    assert run("show-sale", voucher_id=voucher.id) == {}
    assert run("recover-orders", everything="true") == {"recovered": 0}


def test_rankings_are_dropped(plaza: World) -> None:
    mark_ranking_complete([], 1)
    assert read_ranking("all", None, 10) == []
    assert run("drop-rankings")["dropped"] >= 1
    assert read_ranking("all", None, 10) is None


# ---------------------------------------------------------------- outages


def test_commands_of_redis_work_without_mysql(plaza: World, mysql_away: Away) -> None:
    change_switches.set_level(0, "relieved", "a test", operator_id=1)
    with mysql_away():
        assert run("show-switches")["mysql"] is None
        assert run("show-sale", voucher_id=1) == {}
        assert run("flush-redis", environment="local")["finished"]
        with pytest.raises(MysqlDown):
            run("list-transactions")


def test_commands_of_mysql_work_without_redis(plaza: World, redis_away: Away) -> None:
    with redis_away():
        assert run("list-transactions") == {"transactions": []}
        assert run("clear-binlog-offset") == {"cleared": 0}
        assert run("show-switches")["redis"] is None
        forget()  # a new process
        with pytest.raises(RedisDown):
            redis_flush.flush()
