"""Closed days of the reaction log are archived to S3 and dropped, and no event is ever lost."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from pymysql.cursors import Cursor
from pymysql.err import OperationalError

from local.stack.servers import Server, connect_mysql
from plaza.core import reaction_log
from plaza.core.reaction_log import maintenance, mysql_log, recount, s3_archive
from plaza.core.reaction_log import model as days
from plaza.core.reaction_log.maintenance import MaintenanceResult
from plaza.core.reaction_log.model import (
    ArchiveLine,
    Checksum,
    PartitionSums,
    checksum,
    last_key,
    read_lines,
)
from plaza.core.reactions import mysql_log as log_writes
from plaza.core.reactions import persist
from plaza.core.reactions.model import Commit, ReactionEvent, group_events, replay
from plaza.infra.aws import objects
from plaza.infra.aws.objects import ObjectsDown
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import MysqlDown
from plaza.infra.runtime.clock import Deadline
from tests.support.archives import (
    BUCKET,
    TODAY,
    Known,
    at,
    day,
    events_in_mysql,
    known,
    log_event,
    merge_partitions,
    random_history,
    roll_up,
    s3,
)
from tests.support.consumers import consumer, deadlocks, end, go
from tests.support.failures import Killed, failing
from tests.support.functions import event, handler
from tests.support.logs import read_log
from tests.support.plaza import World, forget
from tests.support.servers import MYSQLD

__all__ = ["s3"]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "EVENTS_PER_PART", 7)


def maintain(max_moved: int = 100_000) -> MaintenanceResult:
    return maintenance.maintain_log(max_moved, TODAY)


def partitions() -> list[str]:
    return [partition.name for partition in mysql_log.read_partitions()]


def archived() -> Known:
    """Return the events of all archives."""
    return {
        (*row[:4], row.version_us, row.state)
        for name in s3_archive.list_manifests()
        for part in s3_archive.read_manifest(name).parts
        for row in s3_archive.read_part(s3_archive.day_in(name), part)
    }


def objects_of(days_ago: int) -> list[str]:
    return list(objects.list_keys(f"reaction_log/date={day(days_ago).isoformat()}/"))


def days_in_mysql() -> list[int]:
    rows = mysql.fetch_all("SELECT DISTINCT create_date FROM reaction_log ORDER BY create_date")
    return [(TODAY - item).days for (item,) in rows]


# ---------------------------------------------------------------- partitions


def test_partitions_are_created_ahead(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(days, "DAYS_AHEAD", 14)
    assert partitions() == ["p_max"]
    assert maintain().created == 15
    assert partitions()[0] == "p20261121"
    assert partitions()[-2:] == ["p20261205", "p_max"]
    assert maintain().created == 0


def test_each_day_adds_one_partition(s3: Any) -> None:
    assert maintain().created == 3
    assert maintenance.maintain_log(10, day(-1)).created == 1
    assert maintenance.maintain_log(10, day(-3)).created == 2
    assert partitions()[-2:] == ["p20261126", "p_max"]


def test_rows_of_the_catch_all_partition_get_partitions_by_day(s3: Any, mysql_url: str) -> None:
    events = [log_event(ago, at(ago)) for ago in (0, 1, 3, 5, 70, 400)] + [log_event(9, at(-300))]
    persist.save(events)
    assert maintain().created == 3 + 60
    assert events_in_mysql(mysql_url) == known(events)
    # Days older than sixty are in the lowest partition; future events stay in the catch-all one.
    assert rows_in("p20260922") == 2
    assert [rows_in(f"p202611{21 - ago}") for ago in (0, 1, 3, 5)] == [1, 1, 1, 1]
    assert rows_in("p_max") == 1


def rows_in(partition: str) -> int:
    [(count,)] = mysql.fetch_all(f"SELECT COUNT(*) FROM reaction_log PARTITION ({partition})")
    return int(count)


def test_a_catch_all_partition_with_too_many_rows_is_not_split(s3: Any) -> None:
    persist.save([log_event(actor, at(0)) for actor in range(1, 12)])
    result = maintain(max_moved=10)
    assert (result.created, result.unsplit, partitions()) == (0, 1, ["p_max"])
    assert maintain(max_moved=11).created == 3


def test_a_run_gives_up_on_a_log_in_use_and_consumers_do_not_wait(s3: Any, mysql_url: str) -> None:
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("SELECT COUNT(*) FROM reaction_log")
        with pytest.raises(MysqlDown):
            maintain()
        persist.save([log_event(1, at(0))])  # consumers are not blocked
        other.rollback()
    assert maintain().created == 3
    [(_, timeout_s)] = mysql.fetch_all("SHOW SESSION VARIABLES LIKE 'lock_wait_timeout'")
    assert int(timeout_s) > 1, "the default is restored"


def append(cursor: Cursor, event: ReactionEvent) -> None:
    """Append an event to the log as the first commit of its target."""
    [change] = replay({}, group_events([event]))
    commit = Commit(change.kind, change.target, 1, change.delta, True, [])
    log_writes.append_log(cursor, log_writes.render_log([change], [commit]))
    mysql.flush(cursor)


def test_the_table_lock_blocks_writers_until_it_is_released(s3: Any, mysql_url: str) -> None:
    with connect_mysql(mysql_url) as other, other.cursor() as writer:
        writer.execute("SET SESSION lock_wait_timeout = 1")

        def try_to_append(cursor: Cursor) -> None:
            with pytest.raises(OperationalError, match="Lock wait timeout"):
                append(writer, log_event(1, at(10)))

        mysql_log.run_exclusively(try_to_append)
        append(writer, log_event(1, at(10)))
    assert days_in_mysql() == [10]


# ---------------------------------------------------------------- archives


def test_a_closed_day_is_archived_and_dropped(s3: Any, mysql_url: str) -> None:
    events = [log_event(actor, at(ago, actor)) for ago in (0, 8, 9, 12) for actor in range(1, 21)]
    persist.save(events)
    roll_up()
    result = maintain()
    assert (result.events, result.corrupt, result.behind) == (40, 0, 0)
    assert days_in_mysql() == [8, 0]
    assert archived() == known(events[40:])
    assert events_in_mysql(mysql_url) == known(events[:40])
    assert partitions()[0] == "p20261113"
    assert maintain().events == 0


def test_an_archive_is_gzipped_json_lines_with_a_manifest(s3: Any) -> None:
    persist.save([log_event(2, at(12, 2)), log_event(1, at(12, 1)), log_event(3, at(12, 3), False)])
    persist.save([log_event(9, at(0))])
    roll_up()
    maintain()
    manifest, part, progress = objects_of(12)
    assert progress.endswith("/progress.json")
    raw = s3.get_object(Bucket=BUCKET, Key=part)["Body"].read()
    lines = gzip.decompress(raw).decode().splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "target_type": "post",
            "target_id": 1,
            "kind": "like",
            "actor_id": actor,
            "state": state,
            "version": at(12, actor),
            "change": state,
            "commit": 1,
            "total": 2,
        }
        for actor, state in ((1, 1), (2, 1), (3, 0))
    ]
    fields = json.loads(s3.get_object(Bucket=BUCKET, Key=manifest)["Body"].read())
    assert (fields["day"], fields["events"], fields["bytes"]) == ("2026-11-09", 3, len(raw))
    assert (fields["min_version"], fields["max_version"]) == (at(12, 1), at(12, 3))
    assert fields["objects"][0]["name"] in part


def test_python_and_mysql_compute_the_same_checksums(s3: Any) -> None:
    events = random_history(random.Random(3), 200)
    persist.save(events)
    [rest] = mysql_log.read_partitions()
    sums, _ = mysql_log.sum_page(rest, log_writes.read_log_head(), None, 1_000)
    pages = {
        item: mysql_log.read_page(rest, item, log_writes.read_log_head(), None, 1_000)
        for item in sums
    }
    assert {item: checksum(rows) for item, rows in pages.items()} == sums
    assert sum(total.events for total in sums.values()) == len(known(events))
    text = "\n".join(line.text for lines in pages.values() for line in lines)
    assert {row[:6] for row in read_lines(text)} == known(events)


def test_pages_of_any_size_return_the_day_in_key_order(s3: Any) -> None:
    events = random_history(random.Random(5), 400, days=0)
    persist.save(events)
    [rest] = mysql_log.read_partitions()
    head = log_writes.read_log_head()
    whole = mysql_log.read_page(rest, TODAY, head, None, 10_000)
    keys = [last_key([line]) for line in whole]
    assert keys == sorted(keys)
    for size in (1, 3, 50):
        read: list[ArchiveLine] = []
        after = None
        while rows := mysql_log.read_page(rest, TODAY, head, after, size):
            read += rows
            after = last_key(rows)
        assert read == whole


@pytest.mark.parametrize("size", [1, 3, 50, 400, 10_000])
def test_sums_of_pages_of_any_size_are_those_of_the_whole(s3: Any, size: int) -> None:
    persist.save(random_history(random.Random(5), 400))
    [rest] = mysql_log.read_partitions()
    head = log_writes.read_log_head()
    whole, _ = mysql_log.sum_page(rest, head, None, 10_000)
    sums = PartitionSums()
    persist.save([log_event(99, at(0))])  # above the head
    while not sums.is_complete:
        sums = sums.add(*mysql_log.sum_page(rest, head, sums.after, size))
    assert sums.sums == whole


def test_a_page_of_sums_reads_only_its_own_rows(s3: Any) -> None:
    persist.save(random_history(random.Random(6), 900, days=0))
    [rest] = mysql_log.read_partitions()
    head = log_writes.read_log_head()
    whole = mysql_log.read_page(rest, TODAY, head, None, 10_000)
    for index in (0, 300, 700):
        before = rows_read()
        mysql_log.sum_page(rest, head, last_key(whole[: index + 1]), 50)
        assert rows_read() - before < 3 * 60, "the page, its sums, and the key of its last row"


def test_a_page_reads_only_its_own_rows(s3: Any) -> None:
    persist.save(random_history(random.Random(6), 900, days=0))
    [rest] = mysql_log.read_partitions()
    head = log_writes.read_log_head()
    whole = mysql_log.read_page(rest, TODAY, head, None, 10_000)
    for index in (0, 300, 700):
        before = rows_read()
        assert len(mysql_log.read_page(rest, TODAY, head, last_key(whole[: index + 1]), 50)) == 50
        assert rows_read() - before < 60


def rows_read() -> int:
    """Return the number of rows that this connection has read."""
    return sum(
        int(count)
        for name, count in mysql.fetch_all("SHOW SESSION STATUS")
        if name.startswith("Handler_read_") and not name.startswith("Handler_read_rnd")
    )


def test_equal_events_have_equal_archives(s3: Any) -> None:
    events = [log_event(actor, at(10, actor)) for actor in range(1, 31)]
    archives = []
    for seed in (1, 2):
        random.Random(seed).shuffle(events)
        for item in [*events, log_event(99, at(0))]:
            mysql.run_in_transaction(lambda cursor, item=item: append(cursor, item))  # type: ignore[misc]
        roll_up()
        maintain()
        assert days_in_mysql() == [0]
        archives.append({key: objects.get(key) for key in objects_of(10)})
        for key in objects_of(10):
            s3.delete_object(Bucket=BUCKET, Key=key)
        mysql.write("DELETE FROM reaction_log")
        merge_partitions()
    assert archives[0] == archives[1]
    assert len(archives[0]) == 5 + 2


def test_a_day_above_a_watermark_is_kept(s3: Any) -> None:
    persist.save([log_event(1, at(10)), log_event(2, at(0))])
    assert maintain().dropped == 0, "there is no watermark"
    mysql.write("REPLACE INTO watermark (name, seq) VALUES ('likes', 0), ('other', 0)")
    result = maintain()
    assert (days_in_mysql(), result.behind > 0) == ([10, 0], True)
    roll_up()
    maintain()
    assert days_in_mysql() == [10, 0], "the other watermark is below it"
    mysql.write("DELETE FROM watermark WHERE name = 'other'")
    maintain()
    assert days_in_mysql() == [0]


def test_the_partition_of_the_highest_seq_is_kept_so_that_no_seq_repeats(
    s3: Any, mysql_server: Server, plaza: World
) -> None:
    persist.save([log_event(1, at(12))])
    persist.save([log_event(1, at(10))])
    roll_up()
    result = maintain()
    assert (days_in_mysql(), result.behind) == ([10], 0), "it is closed, but has the highest seq"
    head = log_writes.read_log_head()
    mysql_server.stop()
    mysql_server.start()
    forget()
    persist.save([log_event(1, at(0))])
    assert log_writes.read_log_head() > head
    roll_up()
    maintain()
    assert days_in_mysql() == [0]


@pytest.mark.skipif(bool(MYSQLD), reason="InnoDB of MySQL 8 persists the highest seq")
def test_mariadb_repeats_seqs_after_the_highest_is_dropped(s3: Any) -> None:
    maintain()
    persist.save([log_event(1, at(0)), log_event(2, at(-2))])
    head = log_writes.read_log_head()
    mysql.write("ALTER TABLE reaction_log DROP PARTITION p20261123")
    mysql.write("ALTER TABLE reaction_log DROP PARTITION p20261121")
    persist.save([log_event(3, at(0))])
    assert log_writes.read_log_head() <= head


def test_the_schedule_maintains_the_log_and_an_operator_sets_max_moved(s3: Any) -> None:
    run, sample = handler("schedule/maintain_log"), event("maintain_log.schedule")
    persist.save([log_event(1, at(0)), log_event(2, at(0))])
    refused = run({"max_moved": 1}, None)
    assert (refused["unsplit"], refused["created"]) == (1, 0)
    result = run(sample, None)
    assert (result["unsplit"], result["created"] > 0) == (0, True)


# ---------------------------------------------------------------- late and repeated events


def test_a_late_event_of_a_dropped_day_is_archived(s3: Any, mysql_url: str) -> None:
    early = [log_event(actor, at(12, actor)) for actor in range(1, 10)]
    persist.save([*early, log_event(1, at(9))])
    persist.save([log_event(1, at(0))])
    roll_up()
    maintain()
    late = [log_event(50, at(12)), log_event(51, at(30))]
    persist.save([*late, early[0]])  # early[0] is a repeat
    assert days_in_mysql() == [30, 12, 0]
    persist.save([log_event(2, at(0))])
    roll_up()
    maintenance.maintain_log(1_000, day(-1))
    assert days_in_mysql() == [0], "they were in the lowest partition"
    assert archived() == known([*early, *late, log_event(1, at(9))])
    assert len([key for key in objects_of(12) if "manifest-" in key]) == 2
    with mysql_log.snapshot() as cursor:
        assert recount.count_events(cursor) == len(archived()) + 2


def test_an_event_that_arrives_while_its_day_is_archived_is_not_dropped(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str
) -> None:
    events = [log_event(actor, at(10, actor)) for actor in range(1, 30)] + [log_event(1, at(0))]
    persist.save(events)
    roll_up()
    put = s3_archive.put_manifest
    late = log_event(15, at(10, 999))

    def put_and_save(manifest: Any) -> None:
        put(manifest)
        if late is not events[-1]:
            events.append(late)
            persist.save([late])

    monkeypatch.setattr(s3_archive, "put_manifest", put_and_save)
    maintain()
    assert 10 in days_in_mysql()
    monkeypatch.undo()
    persist.save([log_event(2, at(0))])
    roll_up()
    maintain()
    assert days_in_mysql() == [0]
    assert archived() | events_in_mysql(mysql_url) >= known(events)


def test_an_event_that_arrives_right_before_the_drop_prevents_it(s3: Any) -> None:
    persist.save([log_event(1, at(10)), log_event(1, at(0))])
    maintain()
    lowest = mysql_log.read_partitions()[0]
    head = log_writes.read_log_head()
    persist.save([log_event(2, at(10))])
    assert mysql_log.drop_unless_grown(lowest, head) is False
    assert days_in_mysql() == [10, 0]


def test_a_run_waits_for_an_open_transaction_with_a_lower_seq(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str
) -> None:
    """Else it would commit after the checksum was read, with a seq below the head."""
    persist.save([log_event(1, at(10))])
    maintain()
    with (
        monkeypatch.context() as now,
        connect_mysql(mysql_url) as other,
        other.cursor() as cursor,
    ):
        now.setattr(log_writes, "LOCK_TIMEOUT_S", 0)
        other.begin()
        mysql.read_all(cursor, [log_writes.SHARE_LOG_LOCK])
        append(cursor, log_event(7, at(10)))
        persist.save([log_event(1, at(0))])
        roll_up()
        sums = mysql_log.sum_page

        def commit_then(*args: Any) -> Any:
            result = sums(*args)
            other.commit()
            return result

        now.setattr(mysql_log, "sum_page", commit_then)
        with pytest.raises(MysqlDown):
            maintain()
        other.commit()
    maintain()
    assert archived() == known([log_event(1, at(10)), log_event(7, at(10))])
    assert days_in_mysql() == [0]


# ---------------------------------------------------------------- kills, overlaps, no S3


STORAGE = (
    (s3_archive, "put_part"),
    (s3_archive, "put_progress"),
    (s3_archive, "put_manifest"),
    (s3_archive, "verify_part"),
    (s3_archive, "read_progress"),
    (s3_archive, "list_manifests"),
    (s3_archive, "read_manifest"),
    (mysql_log, "sum_page"),
    (mysql_log, "store_sums"),
    (mysql_log, "delete_sums"),
    (mysql_log, "delete_other_sums"),
    (mysql_log, "read_page"),
    (mysql_log, "drop_unless_grown"),
    (mysql_log, "split_catch_all"),
)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_call_of_storage_loses_nothing_and_the_next_run_resumes(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str, after: bool
) -> None:
    """Each run is killed one call later than the one before, until one completes."""
    events = [log_event(actor, at(ago, actor)) for ago in (0, 9, 10) for actor in range(1, 24)]
    persist.save([*events, log_event(1, at(0, 7))])
    roll_up()
    everything = events_in_mysql(mysql_url)
    kills, left = 0, [0]
    real = {(module, name): getattr(module, name) for module, name in STORAGE}

    def killing(call: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            if left[0] == 0 and not after:
                raise Killed
            result = call(*args, **named)
            left[0] -= 1
            if left[0] < 0 and after:
                raise Killed
            return result

        return called

    for (module, name), call in real.items():
        monkeypatch.setattr(module, name, killing(call))
    while True:
        left[0] = kills
        try:
            maintain()
            break
        except Killed:
            kills += 1
            assert events_in_mysql(mysql_url) | archived_now(real) == everything
    monkeypatch.undo()
    assert kills > 10
    assert days_in_mysql() == [0]
    assert archived() == known([item for item in events if item.effective_version_us < at(8)])


def archived_now(real: Any) -> Known:
    """Return ``archived`` by the original functions, which do not raise Killed."""
    return {
        (*row[:4], row.version_us, row.state)
        for name in real[s3_archive, "list_manifests"]()
        for part in real[s3_archive, "read_manifest"](name).parts
        for row in s3_archive.read_part(s3_archive.day_in(name), part)
    }


@pytest.mark.parametrize("away", ["put", "get", "list_keys"])
def test_without_s3_nothing_is_dropped(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str, away: str
) -> None:
    persist.save([log_event(1, at(10)), log_event(1, at(0))])
    roll_up()

    with monkeypatch.context() as now:
        now.setattr(objects, away, failing(ObjectsDown("S3 is unavailable (set by a test)")))
        with pytest.raises(ObjectsDown):
            maintain()
    assert days_in_mysql() == [10, 0]
    maintain()
    assert days_in_mysql() == [0]


def test_the_next_run_resumes_one_that_was_out_of_time(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 50)])
    persist.save([log_event(1, at(0))])
    roll_up()
    written: list[int] = []
    put = s3_archive.put_part

    def put_one(*args: Any) -> Any:
        monkeypatch.setattr(maintenance, "_check_time", failing(maintenance._OutOfTime))
        written.append(args[1])
        return put(*args)

    in_time = maintenance._check_time
    monkeypatch.setattr(s3_archive, "put_part", put_one)
    for runs in range(1, 8):
        monkeypatch.setattr(maintenance, "_check_time", in_time)
        assert maintain().dropped == 0
        assert written == list(range(runs)), "each resumes where the one before stopped"
    monkeypatch.setattr(s3_archive, "put_part", put)
    monkeypatch.setattr(maintenance, "_check_time", in_time)
    maintain()
    assert days_in_mysql() == [0]
    assert len(archived()) == 49


def test_sums_and_parts_that_were_read_back_are_continued(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run has the time for one step more of its own."""
    monkeypatch.setattr(maintenance, "EVENTS_PER_SUM", 10)
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 50)])
    persist.save([log_event(1, at(0))])
    roll_up()
    mysql_log.split_catch_all(TODAY, 1_000)
    other = mysql_log.read_partitions()[1]  # closed, and empty
    taken: dict[str, int] = {}
    left = [0]

    def counted(module: Any, name: str) -> None:
        real = getattr(module, name)

        def called(*args: Any) -> Any:
            if args[0] != other:
                taken[name] = taken.get(name, 0) + 1
            return real(*args)

        monkeypatch.setattr(module, name, called)

    def check_time(deadline: Deadline) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise maintenance._OutOfTime

    counted(mysql_log, "sum_page")
    counted(s3_archive, "put_part")
    counted(s3_archive, "verify_part")
    monkeypatch.setattr(maintenance, "_check_time", check_time)
    for _ in range(60):
        left[0] = 2
        if maintain().dropped:
            break
    assert days_in_mysql() == [0]
    assert taken == {"sum_page": 5, "put_part": 7, "verify_part": 7}, "none is done twice"
    assert len(archived()) == 49
    assert mysql.fetch_all("SELECT * FROM reaction_log_sum") == []


def test_a_late_event_between_runs_lets_sums_begin_anew(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str
) -> None:
    events = [log_event(actor, at(10, actor)) for actor in range(1, 30)]
    persist.save(events)
    persist.save([log_event(1, at(0))])
    roll_up()
    checks = [True]

    def check_once(deadline: Deadline) -> None:
        if not checks:
            raise maintenance._OutOfTime
        checks.pop()

    with monkeypatch.context() as now:
        now.setattr(maintenance, "EVENTS_PER_SUM", 10)
        now.setattr(maintenance, "_check_time", check_once)
        maintain()
    assert mysql.fetch_all("SELECT COUNT(*) FROM reaction_log_sum") == [(1,)], "one page"
    late = log_event(5, at(10, 500_000))
    persist.save([late])
    persist.save([log_event(2, at(0))])
    roll_up()
    assert maintain().dropped == 0
    assert maintain().dropped > 0
    assert archived() == known([*events, late])


def test_sums_that_a_killed_run_left_after_a_drop_are_deleted_by_the_next_run(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 9)])
    persist.save([log_event(1, at(0))])
    roll_up()
    with monkeypatch.context() as now:
        now.setattr(mysql_log, "delete_sums", failing(Killed))
        with pytest.raises(Killed):
            maintain()
    sums = "SELECT COUNT(*) FROM reaction_log_sum"
    assert mysql.fetch_all(sums) == [(1,)]
    maintain()
    assert (days_in_mysql(), mysql.fetch_all(sums)) == ([0], [(0,)])


def test_sums_of_a_partition_that_is_gone_do_not_hold_up_one_of_its_name(s3: Any) -> None:
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 30)])
    persist.save([log_event(1, at(0))])
    roll_up()
    assert mysql_log.split_catch_all(TODAY, 1_000)
    [lowest, *_] = mysql_log.read_partitions()
    stale = PartitionSums({day(10): Checksum(3, 3)}, None, True, {})
    mysql_log.store_sums(lowest, 1, stale)
    for _ in range(3):
        maintain()
    assert days_in_mysql() == [0]
    assert len(archived()) == 29


@pytest.mark.parametrize("call", range(24))
def test_a_whole_run_during_another_loses_nothing(
    s3: Any, monkeypatch: pytest.MonkeyPatch, mysql_url: str, call: int
) -> None:
    """Between two calls of storage, late events are saved and a whole other run is executed."""
    events = [log_event(actor, at(ago, actor)) for ago in (0, 9, 10) for actor in range(1, 10)]
    persist.save([*events, log_event(1, at(0, 77))])
    roll_up()
    calls = [0]

    def interrupted(real: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            calls[0] += 1
            if calls[0] == call + 1:
                late = [log_event(40, at(10)), log_event(41, at(0))]
                persist.save(late)
                events.extend(late)
                roll_up()
                maintenance_results.append(maintain())
            return real(*args)

        return called

    maintenance_results: list[MaintenanceResult] = []
    with monkeypatch.context() as now:
        for module, name in STORAGE:
            now.setattr(module, name, interrupted(getattr(module, name)))
        maintenance_results.append(maintain())
    assert [item.corrupt for item in maintenance_results] == [0] * len(maintenance_results), (
        "no run reports a false alarm"
    )
    assert len(maintenance_results) == 1 + (calls[0] > call)
    persist.save([log_event(42, at(0))])
    roll_up()
    maintain()
    maintenance.maintain_log(1_000, day(-20))
    assert archived() | events_in_mysql(mysql_url) == known(
        [*events, log_event(1, at(0, 77)), log_event(42, at(0))]
    )


# ---------------------------------------------------------------- corrupt archives


def flip(body: bytes) -> bytes:
    return body[:30] + bytes([body[30] ^ 1]) + body[31:]


@pytest.mark.parametrize("what", ["part", "manifest"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "missing"])
def test_a_damaged_archive_is_reported_and_written_again_before_the_drop(
    s3: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    what: str,
    damage: str,
) -> None:
    persist.save([log_event(actor, at(10, actor)) for actor in range(1, 20)])
    persist.save([log_event(1, at(0))])
    roll_up()
    with monkeypatch.context() as now:
        now.setattr(mysql_log, "drop_unless_grown", lambda *args: False)
        maintain()
    key = next(key for key in objects_of(10) if f"/{what}-" in key)
    body = objects.get(key)
    if damage == "missing":
        s3.delete_object(Bucket=BUCKET, Key=key)
    else:
        damaged = {"flipped": flip(body), "truncated": body[:-5], "empty": b""}[damage]
        s3.put_object(Bucket=BUCKET, Key=key, Body=damaged)
    capsys.readouterr()
    result = maintain()
    if (what, damage) == ("manifest", "missing"):  # as an unfinished archive: the run resumes it
        assert (result.corrupt, days_in_mysql()) == (0, [0])
        return
    assert (result.corrupt, result.dropped, days_in_mysql()) == (1, 0, [10, 0])
    logged = read_log(capsys)
    [corrupt] = [line for line in logged if line["event"] == "archive_corrupt"]
    assert key in corrupt["what"]
    assert [line["archives_corrupt"] for line in logged if line["event"] == "log_maintained"] == [1]
    assert objects.get(key) == body, "it was written again"
    assert maintain().corrupt == 0
    assert days_in_mysql() == [0]


def test_a_damaged_older_archive_is_reported_by_each_run_of_its_day(s3: Any) -> None:
    persist.save([log_event(1, at(12)), log_event(1, at(9)), log_event(1, at(0))])
    roll_up()
    maintain()
    [manifest] = [key for key in objects_of(12) if "manifest-" in key]
    s3.put_object(Bucket=BUCKET, Key=manifest, Body=b"{}")
    persist.save([log_event(2, at(12)), log_event(2, at(0))])
    roll_up()
    for _ in range(2):  # by the run that writes a new archive, and by the one that drops the day
        assert maintenance.maintain_log(1_000, day(-1)).corrupt == 1
    assert days_in_mysql() == [0], "late events are archived nevertheless"
    with pytest.raises(s3_archive.ArchiveCorrupt):
        recount.recount_log(reaction_log.Scope())


# ---------------------------------------------------------------- concurrent consumers


def test_concurrent_consumers_lose_no_event_and_meet_no_deadlock(
    s3: Any, mysql_url: str, plaza: World
) -> None:
    """Two consumers save events of forty days while partitions are split and dropped."""
    draw = random.Random(11)
    histories = [random_history(draw, 900, days=40) for _ in range(2)]
    batches = [
        [history[start : start + 30] for start in range(0, len(history), 30)]
        for history in histories
    ]
    before, runs, dropped = deadlocks(), 0, 0
    with ExitStack() as stack:
        processes = [stack.enter_context(consumer(batch)) for batch in batches]
        for process in processes:
            go(process)
        while any(process.poll() is None for process in processes):
            roll_up()
            for ago in (20, 10, 5, 0):
                try:
                    dropped += maintenance.maintain_log(100_000, day(ago)).dropped
                except MysqlDown:
                    continue  # consumers used the log
                runs += 1
        for process in processes:
            end(process)
    assert runs > 3, "some runs were concurrent"
    assert deadlocks() == before
    assert archived() | events_in_mysql(mysql_url) == known(histories[0] + histories[1])
    persist.save([log_event(1, at(0, 1))])
    roll_up()
    maintain()
    assert archived(), "something was dropped"
    result = recount.recount_log(reaction_log.Scope())
    assert (result.differing, result.contradicting) == ([], 0)
