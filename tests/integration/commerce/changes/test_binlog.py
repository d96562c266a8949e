"""The binlog: changes that bypass the API are projected at least once and never lost."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.paths import LAYER
from local.stack.processes import wait_until
from local.stack.servers import Server, connect_mysql, run_server
from plaza.commerce.changes import follow_binlog
from plaza.commerce.changes import mysql_store as binlog_offsets
from plaza.commerce.shops import mysql_shops, queries, queues, redis_store
from plaza.commerce.shops.model import SHOP, ShopJobStep, ShopRefresh
from plaza.infra.derived import cache
from plaza.infra.mysql import binlog, mysql
from plaza.infra.mysql.binlog import BinlogOffset, BinlogOffsetLost, BinlogUnusable, ChangeBatch
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from tests.integration.conftest import Away
from tests.support.failures import Killed, failing
from tests.support.logs import read_log
from tests.support.plaza import World, forget
from tests.support.servers import copy_mysql
from tests.support.shop_api import (
    BERLIN,
    FOOD,
    NOODLES,
    SPA,
    add_types,
    ask,
    build_places,
    create,
    insert,
    write,
)

NEAR = f"/shops?x={BERLIN[0]}&y={BERLIN[1]}"


@pytest.fixture
def followed(plaza: World) -> World:
    """Types, places, and a saved offset at the end of the binlog."""
    add_types()
    build_places()
    follow_binlog.follow_changes()
    plaza.queues.drain()
    return plaza


def operator(sql: str, *args: object) -> None:
    """Execute a statement that bypasses the API."""
    mysql.write(sql, args)


def name_of(shop_id: int) -> str:
    return str(ask("GET", f"/shops/{shop_id}").body["name"])


# ---------------------------------------------------------------- projections


def test_a_row_that_an_operator_updates_is_projected(followed: World) -> None:
    shop_id = create()
    assert name_of(shop_id) == NOODLES["name"]
    operator("UPDATE shop SET name = 'Soup', type_id = %s WHERE id = %s", SPA, shop_id)
    assert name_of(shop_id) == NOODLES["name"]
    assert follow_binlog.follow_changes().rows >= 2
    assert name_of(shop_id) == "Soup"
    assert ask("GET", f"{NEAR}&type={FOOD}").body["items"] == []
    assert [s["name"] for s in ask("GET", f"{NEAR}&type={SPA}").body["items"]] == ["Soup"]


def test_a_row_that_an_operator_inserts_is_projected(followed: World) -> None:
    ask("GET", "/shops/5")
    followed.queues.drain()
    assert ask("GET", "/shops/5").status == 404, "the filter lacks the id"
    insert([(5, FOOD, *BERLIN)])
    follow_binlog.follow_changes()
    assert name_of(5) == "shop 5"
    assert [s["id"] for s in ask("GET", f"{NEAR}&type={FOOD}").body["items"]] == ["5"]


def test_a_row_that_an_operator_deletes_is_removed(followed: World) -> None:
    shop_id = create()
    name_of(shop_id)
    operator("DELETE FROM shop WHERE id = %s", shop_id)
    follow_binlog.follow_changes()
    assert ask("GET", f"/shops/{shop_id}").status == 404
    assert ask("GET", NEAR).body["items"] == []


def test_types_that_an_operator_changes_are_projected(followed: World) -> None:
    assert [items["name"] for items in ask("GET", "/shop-types").body["items"]] == ["Spa", "Food"]
    operator("UPDATE shop_type SET name = 'Bath' WHERE id = %s", SPA)
    operator("INSERT INTO shop_type (id, name, sort) VALUES (3, 'Bar', 3)")
    follow_binlog.follow_changes()
    names = [items["name"] for items in ask("GET", "/shop-types").body["items"]]
    assert names == ["Bath", "Food", "Bar"]


def test_a_reader_with_an_older_row_does_not_restore_the_old_page(
    followed: World,
) -> None:
    shop_id = create()
    old = mysql_shops.read([shop_id])[shop_id]
    operator("UPDATE shop SET name = 'Soup' WHERE id = %s", shop_id)
    follow_binlog.follow_changes()
    late = {redis_store.page_key(shop_id): queries.entry_of(old)}
    assert cache.store_all(cache.STALE_WHILE_REBUILDING, late, SHOP, create=True) == [False]
    assert name_of(shop_id) == "Soup"


def test_a_second_refresh_is_queued(followed: World) -> None:
    shop_id = create()
    followed.queues.drain()
    operator("UPDATE shop SET name = 'Soup' WHERE id = %s", shop_id)
    follow_binlog.follow_changes()
    [body] = followed.queues.messages["shops"]
    assert queues.SHOPS.decode(str(body)) == ShopRefresh([shop_id])


def test_a_change_through_the_api_keeps_its_version(followed: World) -> None:
    shop_id = create()
    write("PUT", f"/shops/{shop_id}", NOODLES | {"name": "Soup"})
    for _ in range(3):
        follow_binlog.follow_changes()
    assert mysql.fetch_all("SELECT version FROM shop") == [(2,)]
    operator("UPDATE shop SET name = 'Stew'")
    for _ in range(3):
        follow_binlog.follow_changes()
    assert mysql.fetch_all("SELECT version FROM shop") == [(3,)], "raised once, for the operator"


def test_rollbacks_and_other_tables_are_not_projected(followed: World) -> None:
    insert([(5, FOOD, *BERLIN)])
    follow_binlog.follow_changes()
    connection = mysql.connect_dedicated(database="plaza")
    connection.begin()
    connection.cursor().execute("UPDATE shop SET name = 'never' WHERE id = 5")
    connection.rollback()
    connection.close()
    operator("INSERT INTO user (id, nickname) VALUES (7, 'Ada')")
    operator("CREATE TABLE IF NOT EXISTS unwatched (id BIGINT PRIMARY KEY)")
    operator("DROP TABLE unwatched")
    assert follow_binlog.follow_changes()[:2] == (0, False)


def test_a_transaction_of_many_rows_is_projected_completely(followed: World) -> None:
    insert([(i, FOOD, *BERLIN) for i in range(1, 1_501)])
    assert name_of(1) == "shop 1"
    operator("UPDATE shop SET name = CONCAT('new ', id)")
    operator("UPDATE shop SET type_id = %s WHERE id <= 3", SPA)
    assert follow_binlog.follow_changes().rows == 1_500 + 1_500 + 3
    assert [name_of(i) for i in (1, 700, 1_500)] == ["new 1", "new 700", "new 1500"]
    assert follow_binlog.follow_changes().rows > 0, "the raised versions"
    assert follow_binlog.follow_changes()[:2] == (0, False)


def test_a_truncated_table_requests_a_full_refresh(followed: World) -> None:
    shop_id = create()
    name_of(shop_id)
    operator("TRUNCATE TABLE shop")
    follow_binlog.follow_changes()
    queued = [queues.SHOPS.decode(str(body)) for body in followed.queues.messages["shops"]]
    assert ShopJobStep("everything") in queued


def test_a_transaction_above_the_row_limit_requests_a_full_refresh(
    followed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binlog, "MAX_TRANSACTION_ROWS", 10)
    insert([(i, FOOD, *BERLIN) for i in range(1, 1_001)])
    follow_binlog.follow_changes()
    queued = [queues.SHOPS.decode(str(body)) for body in followed.queues.messages["shops"]]
    assert ShopJobStep("everything") in queued


# ---------------------------------------------------------------- at least once


def test_a_run_continues_at_the_saved_offset(followed: World) -> None:
    insert([(5, FOOD, *BERLIN)])
    assert follow_binlog.follow_changes().rows == 1
    assert follow_binlog.follow_changes().rows == 0
    operator("UPDATE shop SET version = version + 1")
    assert follow_binlog.follow_changes().rows == 1


def test_a_run_killed_before_its_offset_is_saved_projects_again(
    followed: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    die = failing(Killed)

    shop_id = create()
    name_of(shop_id)
    operator("UPDATE shop SET name = 'Soup'")
    with monkeypatch.context() as patch:
        patch.setattr("plaza.commerce.changes.follow_binlog.refresh.project_changes", die)
        with pytest.raises(Killed):
            follow_binlog.follow_changes()
    assert name_of(shop_id) == NOODLES["name"]
    with monkeypatch.context() as patch:
        patch.setattr(binlog_offsets, "save", die)
        with pytest.raises(Killed):
            follow_binlog.follow_changes()
    assert name_of(shop_id) == "Soup"
    assert follow_binlog.follow_changes().rows >= 2
    assert name_of(shop_id) == "Soup"


def test_the_offset_stays_while_redis_is_unavailable(followed: World, redis_away: Away) -> None:
    insert([(5, FOOD, *BERLIN)])
    follow_binlog.follow_changes()
    before = binlog_offsets.read("shops")
    operator("UPDATE shop SET name = 'Soup'")
    with redis_away(), pytest.raises(RedisDown):
        follow_binlog.follow_changes()
    assert binlog_offsets.read("shops") == before
    follow_binlog.follow_changes()
    assert name_of(5) == "Soup"


def test_a_process_continues_after_others_were_killed(
    followed: World, redis_url: str, mysql_url: str
) -> None:
    """Given three processes that are killed by SIGKILL before they save the offset."""
    insert([(i, FOOD, *BERLIN) for i in range(1, 101)])
    assert name_of(7) == "shop 7"
    for life in range(3):
        operator("UPDATE shop SET name = CONCAT('life ', %s, ' of ', id)", life)
        code = (
            "import os, signal\n"
            "from plaza.infra.queues import sqs\n"
            "sqs.send = lambda *_, **__: None\n"
            "from plaza.commerce.changes import follow_binlog\n"
            "from plaza.commerce.changes import mysql_store as binlog_offsets\n"
            "binlog_offsets.save = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
            "follow_binlog.follow_changes()\n"
        )
        env = {**os.environ, "PYTHONPATH": str(LAYER)}
        completed = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True)
        assert completed.returncode == -9, completed.stderr
        assert name_of(7) == f"life {life} of 7"
    redis.execute("FLUSHALL")
    assert follow_binlog.follow_changes().rows >= 300


# ---------------------------------------------------------------- rotated and purged logs


def test_a_rotated_log_is_followed(followed: World) -> None:
    insert([(5, FOOD, *BERLIN)])
    before = binlog_offsets.read("shops")
    for number in range(3):
        operator("UPDATE shop SET name = %s", f"name {number}")
        operator("FLUSH BINARY LOGS")
    assert follow_binlog.follow_changes()[:2] == (4, False)
    assert name_of(5) == "name 2"
    after = binlog_offsets.read("shops")
    assert before
    assert after
    assert after.log_file > before.log_file
    operator("UPDATE shop SET name = 'last'")
    assert follow_binlog.follow_changes().lost is False
    assert name_of(5) == "last"


def test_the_log_is_followed_after_a_restart_of_mysql(followed: World, mysql_away: Away) -> None:
    insert([(5, FOOD, *BERLIN)])
    name_of(5)
    operator("UPDATE shop SET name = 'before'")
    with mysql_away(), pytest.raises(MysqlDown):
        follow_binlog.follow_changes()
    operator("UPDATE shop SET name = 'after'")
    assert follow_binlog.follow_changes()[:2] == (3, False)
    assert name_of(5) == "after"


def test_a_purged_log_causes_a_full_refresh(
    followed: World, capsys: pytest.CaptureFixture[str]
) -> None:
    insert([(i, FOOD, *BERLIN) for i in range(1, 31)])
    follow_binlog.follow_changes()
    old = {i: mysql_shops.read([i])[i] for i in (1, 30)}
    assert name_of(30) == "shop 30"
    operator("UPDATE shop SET name = CONCAT('new ', id)")
    operator("UPDATE shop_type SET name = 'Bath' WHERE id = %s", SPA)
    ask("GET", "/shop-types")
    operator("FLUSH BINARY LOGS")
    purge()
    assert follow_binlog.follow_changes()[:2] == (0, True)
    assert "binlogs_lost" in capsys.readouterr().out
    assert name_of(30) == "shop 30"
    followed.queues.drain()
    assert [name_of(i) for i in (1, 30)] == ["new 1", "new 30"]
    assert "Bath" in [items["name"] for items in ask("GET", "/shop-types").body["items"]]
    assert mysql_shops.read([30])[30].version > old[30].version
    operator("UPDATE shop SET name = 'on'")
    assert follow_binlog.follow_changes().lost is False
    assert name_of(1) == "on"


def purge() -> None:
    """Purge all logs but the current one; MySQL may need a closed log for a moment."""
    end = binlog.read_end().log_file

    def only_the_end() -> bool:
        mysql.write("PURGE BINARY LOGS TO %s", (end,))
        return [row[0] for row in mysql.fetch_all("SHOW BINARY LOGS")] == [end]

    assert wait_until(only_the_end, timeout_s=30), "the logs were not purged"


@pytest.mark.parametrize(
    "offset", [BinlogOffset("binlog.999999", 4), BinlogOffset("other.000001", 4)]
)
def test_a_offset_of_another_server_is_lost(followed: World, offset: BinlogOffset) -> None:
    binlog_offsets.save("shops", offset)
    assert follow_binlog.follow_changes().lost is True
    assert follow_binlog.follow_changes().lost is False


def test_a_offset_after_the_end_is_lost(followed: World) -> None:
    """Given a crash of MySQL that lost the end of the log."""
    end = binlog.read_end()
    binlog_offsets.save("shops", BinlogOffset(end.log_file, end.log_pos + 100_000))
    assert follow_binlog.follow_changes().lost is True


def test_the_first_run_requests_a_full_refresh(plaza: World) -> None:
    assert follow_binlog.follow_changes()[:2] == (0, True)
    assert len(plaza.queues.messages["shops"]) == 2
    assert follow_binlog.follow_changes()[:2] == (0, False)


# ---------------------------------------------------------------- bounds


def test_a_run_stops_between_two_transactions_when_its_time_is_over(followed: World) -> None:
    insert([(5, FOOD, *BERLIN)])
    for number in range(5):
        operator("UPDATE shop SET name = %s", f"name {number}")
    # With no time each run processes one transaction; saving the offset is one too.
    rows = [follow_binlog.follow_changes(max_s=-1).rows for _ in range(15)]
    assert max(rows) == 1
    assert sum(rows) >= 6
    assert name_of(5) == "name 4"


@pytest.mark.parametrize(
    ("name", "bad", "good"),
    [("binlog_format", "STATEMENT", "ROW"), ("binlog_row_image", "MINIMAL", "FULL")],
)
def test_a_log_without_full_rows_is_refused(
    followed: World, mysql_url: str, name: str, bad: str, good: str
) -> None:
    def set_variable(value: str) -> None:
        with connect_mysql(mysql_url) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET GLOBAL {name} = {value}")

    set_variable(bad)
    try:
        with pytest.raises(BinlogUnusable, match=name):
            follow_binlog.follow_changes()
    finally:
        set_variable(good)


def test_batches_end_between_transactions(followed: World) -> None:
    since = binlog.read_end()
    insert([(i, FOOD, *BERLIN) for i in range(1, 401)])
    operator("UPDATE shop SET name = 'a' WHERE id <= 400")
    operator("UPDATE shop SET name = 'b' WHERE id <= 10")
    batches = list(binlog.read_changes(["shop"], since, Deadline.in_s(math.inf)))
    assert [len(batch.rows) for batch in batches] == [800, 10]
    assert batches[-1].end == binlog.read_end()
    rest: list[ChangeBatch] = list(
        binlog.read_changes(["shop"], batches[0].end, Deadline.in_s(math.inf))
    )
    assert [len(batch.rows) for batch in rest] == [10]
    row = rest[0].rows[0]
    assert row.before
    assert row.after
    assert (row.before["name"], row.after["name"], row.after["id"]) == ("a", "b", 1)


def test_ids_of_tables_that_a_killed_server_gives_again_are_not_mixed_up(
    mysql_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plaza: World
) -> None:
    """A server that was killed ends its log file without an event."""
    copied = copy_mysql(mysql_server, tmp_path / "copied" / "mysql")
    with run_server(copied):
        monkeypatch.setenv("PLAZA_MYSQL_URL", copied.url)
        forget()
        others = [f"other_{n}" for n in range(40)]
        for name in others:
            operator(f"CREATE TABLE {name} (id INT PRIMARY KEY)")
        copied.kill()
        copied.start()
        forget()
        insert([(5, FOOD, *BERLIN)])
        since = BinlogOffset(binlog.read_end().log_file, 4)
        copied.kill()
        copied.start()
        forget()
        for name in others:
            operator(f"INSERT INTO {name} VALUES (7)")
        batches = list(binlog.read_changes(["shop"], since, Deadline.in_s(math.inf)))
        assert [row.after and row.after["id"] for b in batches for row in b.rows] == [5]
    forget()


def test_a_lost_offset_raises_its_own_error(followed: World) -> None:
    with pytest.raises(BinlogOffsetLost, match=r"binlog\.999999:4"):
        list(
            binlog.read_changes(["shop"], BinlogOffset("binlog.999999", 4), Deadline.in_s(math.inf))
        )


def test_other_contexts_do_not_import_the_binlog_library() -> None:
    code = (
        "import sys, plaza.commerce.shops, plaza.social.content;"
        " print('pymysqlreplication' in sys.modules)"
    )
    env = {"PYTHONPATH": str(LAYER)}
    completed = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True
    )
    assert completed.stdout.strip() == "False", completed.stderr


def test_the_lag_is_reported_when_the_time_of_a_run_is_over(
    followed: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lags() -> list[float]:
        return [line["binlog_lag_s"] for line in read_log(capsys, "binlog_followed")]

    for n in range(3):
        insert([(n + 1, FOOD, *BERLIN)])
    now_us = clock.now_us
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now_us", lambda: now_us() + 100_000_000)
        follow_binlog.follow_changes(max_s=0)  # processes one transaction
    [lag_s] = lags()
    assert 98 < lag_s < 130
    follow_binlog.follow_changes()
    assert lags() == [0.0], "at the end of the log"
