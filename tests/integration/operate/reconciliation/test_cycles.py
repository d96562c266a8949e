"""Cycles: each run compares what changed, and a quota of everything that ends in 28 days."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plaza.core.reactions import FOLLOW, LIKE, Target, mysql_counts, react, reaction_log
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.codec import MAX_ID
from plaza.operate.reconciliation import (
    RunReport,
    cycles,
    declared,
    mysql_cycles,
    mysql_runs,
    orchestrator,
    run_steps,
)
from plaza.operate.reconciliation.model import MAX_HASTE
from plaza.operate.reconciliation.queues import COMPARISONS
from tests.support.plaza import World
from tests.support.reconciliations import run
from tests.support.stores import add_users

AUTHOR, FAN = 1, 2
POSTS = range(101, 157)  # two for each day of a cycle


@pytest.fixture
def world(plaza: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """56 posts with a like each, all compared once; a step is one post, a quota has no minimum."""
    monkeypatch.setattr(cycles, "MIN_STEPS", 1)
    monkeypatch.setattr(mysql_counts, "_MAX_COUNTERS", 1)
    add_users(AUTHOR, FAN, 3)
    for post in POSTS:
        plaza.add(Target("post", post), author_id=AUTHOR)
        react.react(LIKE, Target("post", post), FAN, True)
    plaza.queues.drain()
    mysql.write("UPDATE user_counter SET posts_total = %s WHERE user_id = 1", (len(POSTS),))
    mysql.write(
        "INSERT INTO reconciliation_cycle (name, resume_after, began_at)"
        " VALUES ('log', %s, NOW(6))",
        (reaction_log.read_log_head(),),
    )
    return plaza


def run_tomorrow(world: World) -> RunReport:
    """Let a day pass, then execute a run."""
    pass_time(1)
    return run(world)


def pass_time(days: int) -> None:
    """Move all times of the reconciliation into the past, by negative ``days`` into the future."""
    mysql.write(
        "UPDATE reconciliation SET started_at = started_at - INTERVAL %s DAY,"
        " ended_at = ended_at - INTERVAL %s DAY",
        (days, days),
    )
    mysql.write(
        "UPDATE reconciliation_cycle SET began_at = began_at - INTERVAL %s DAY,"
        " ended_at = ended_at - INTERVAL %s DAY",
        (days, days),
    )


def damage(post: int, kind: str = "like") -> None:
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total) VALUES ('post', %s, %s, 5)"
        " ON DUPLICATE KEY UPDATE total = counter.total + 5",
        (post, kind),
    )


def targets_of(report: RunReport) -> list[str]:
    return [e.finding.subject.reference for e in report.examples if e.finding.reason == "counter"]


def cursor(name: str = "targets:post") -> str:
    return mysql_cycles.read_cycles()[name].cursor


def dirty() -> list[tuple[str, int]]:
    return mysql.fetch_all("SELECT name, subject_id FROM reconciliation_dirty ORDER BY 1, 2")


# ---------------------------------------------------------------- quotas


def test_a_round_of_shares_compares_everything_in_28_days(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A step that has both counters of the last post is the last one.
    monkeypatch.setattr(mysql_counts, "_MAX_COUNTERS", 2)
    compared = []
    damage(POSTS[-1], "collect")
    for _ in range(28):
        report = run_tomorrow(world)
        compared.append(report.tally.targets)
        if report.differing:
            break
    assert sum(compared) == len(POSTS)
    assert max(compared) <= 4, "an ordinary quota is two posts, an estimate may be wrong by half"
    assert targets_of(report) == [f"post:{POSTS[-1]}"]
    assert report.repaired == report.differing == 1
    assert cursor() == "", "the cycle has ended"
    assert mysql_cycles.read_cycles()["targets:post"].ended_s == 0


def test_a_quota_is_of_targets_with_any_number_of_counters(world: World) -> None:
    before = mysql_counts.estimate_targets("post", 0)
    for post in POSTS:
        damage(post, "collect")
        damage(post, "comment")
    assert before / 2 < mysql_counts.estimate_targets("post", 0) < before * 2
    assert mysql_counts.estimate_targets("post", POSTS[-1]) <= 1
    assert run(world).tally.targets <= 4


def test_the_next_round_begins_with_the_run_after_the_last_quota(world: World) -> None:
    mysql.write(
        "INSERT INTO reconciliation_cycle (name, resume_after, compared, began_at) VALUES"
        " ('targets:post', %s, 54, NOW(6) - INTERVAL 28 DAY)",
        (POSTS[-2] - 1,),
    )
    assert run(world).tally.targets == 2
    assert cursor() == ""
    damage(POSTS[0])
    report = run_tomorrow(world)
    assert targets_of(report) == [f"post:{POSTS[0]}"]
    assert int(cursor()) in POSTS
    assert mysql_cycles.read_cycles()["targets:post"].open_s < 60


def test_a_small_table_is_compared_whole_each_night(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "MIN_STEPS", 100)
    assert [run_tomorrow(world).tally.targets for _ in range(2)] == [len(POSTS)] * 2


def test_a_run_whose_parts_have_no_share_compares_everything(world: World) -> None:
    """A quota of NULL is everything."""
    orchestrator.start()
    mysql.write("UPDATE reconciliation_part SET quota = NULL")
    world.queues.drain()
    assert orchestrator.read_reports()[0].tally.targets == len(POSTS)


# ---------------------------------------------------------------- what changed


def test_a_changed_target_is_compared_wherever_the_round_is(world: World) -> None:
    run(world)
    damage(POSTS[40])
    damage(POSTS[50])
    damage(POSTS[50], "collect")
    assert targets_of(run_tomorrow(world)) == []
    react.react(LIKE, Target("post", POSTS[50]), 3, True)
    world.queues.drain()
    report = run_tomorrow(world)
    assert targets_of(report) == [f"post:{POSTS[50]}"] * 2, "all its counters are compared"
    assert report.tally.changed == 2, "the post and its author"
    assert dirty() == []
    damage(POSTS[50])
    assert targets_of(run_tomorrow(world)) == [], "it is compared once"


def test_users_of_changed_reactions_are_compared(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_counts, "_MAX_OWNED", 1)
    mysql.write(
        "INSERT INTO reconciliation_cycle (name, resume_after, began_at)"
        " VALUES ('users', %s, NOW(6))",
        (MAX_ID - 1,),
    )
    for user_id, column in ((AUTHOR, "likes_received_total"), (FAN, "following_total"),
                            (3, "followers_total")):  # fmt: skip
        mysql.write(
            f"INSERT INTO user_counter (user_id, {column}) VALUES (%s, 7)"
            f" ON DUPLICATE KEY UPDATE {column} = user_counter.{column} + 7",
            (user_id,),
        )
    react.react(LIKE, Target("post", POSTS[0]), 3, True)
    react.react(FOLLOW, Target("user", 3), FAN, True)
    world.queues.drain()
    report = run(world)
    subjects = {(e.finding.subject.id, e.finding.subject.what) for e in report.examples}
    assert {(AUTHOR, "likes_received"), (FAN, "following"), (3, "followers")} <= subjects
    assert dirty() == []


def test_a_reaction_that_commits_during_a_run_is_compared_by_the_next(world: World) -> None:
    orchestrator.start()
    damage(POSTS[50])
    log = mysql_runs.read_part(orchestrator.read_reports()[0].run_id, cycles.LOG_PART)
    assert log is not None
    assert mysql_runs.commit_step(log, run_steps.execute(log))
    react.react(LIKE, Target("post", POSTS[50]), 3, True)
    world.queues.drain()
    assert targets_of(run_tomorrow(world)) == [f"post:{POSTS[50]}"]


def test_marks_of_many_pages_are_compared_once_each(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "_EVENTS_PER_STEP", 3)
    monkeypatch.setattr(cycles, "_DIRTY_PER_STEP", 4)
    monkeypatch.setattr(mysql_counts, "MAX_RELATIONS", 12)
    for _ in range(2):
        for post in POSTS[10:20]:
            react.react(LIKE, Target("post", post), 3, True)
            react.react(LIKE, Target("post", post), 3, False)
        world.queues.drain()
    for post in POSTS[10:20]:
        damage(post, "collect")
    report = run(world)
    assert sorted(targets_of(report)) == [f"post:{post}" for post in POSTS[10:20]]
    assert report.tally.changed == 10, "the author has more rows than a step, so the quota has it"
    assert dirty() == []


def test_a_changed_target_larger_than_a_step_is_left_to_its_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_counts, "MAX_RELATIONS", 1)
    for post in POSTS[30:33]:
        react.react(LIKE, Target("post", post), 3, True)
    world.queues.drain()
    damage(POSTS[31])
    report = run(world)
    assert (targets_of(report), report.tally.changed, dirty()) == ([], 0, [])


def test_marking_waits_for_a_transaction_with_a_lower_seq(world: World) -> None:
    began, may_commit = threading.Event(), threading.Event()

    def append_late() -> None:
        def work(cursor: Cursor) -> None:
            cursor.execute("SELECT id FROM log_barrier WHERE id = 1 LOCK IN SHARE MODE")
            _append(cursor, POSTS[3])
            began.set()
            may_commit.wait(10)

        mysql.run_in_transaction(work)

    with _thread(append_late):
        assert began.wait(10)
        mysql.run_in_transaction(lambda cursor: _append(cursor, POSTS[4]))
        after = int(cursor("log"))
        threading.Timer(0.3, may_commit.set).start()
        result = cycles.find_changes(after, declared.rolling().values())
    assert {i for name, i in result.dirty if name == "targets:post"} == {POSTS[3], POSTS[4]}


def _append(cursor: Cursor, post: int) -> None:
    cursor.execute(
        "INSERT INTO reaction_log (target_type, target_id, kind, actor_id, version, state,"
        " change_by, total, db_version, create_date)"
        " VALUES ('post', %s, 'like', 9, 1, 1, 1, 1, 1, NOW())",
        (post,),
    )


@contextmanager
def _thread(work: object) -> Iterator[None]:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]
    thread.start()
    try:
        yield
    finally:
        thread.join(15)
        assert not thread.is_alive()


# ---------------------------------------------------------------- a wing that a deploy left out


def test_an_open_run_ends_without_the_parts_of_a_wing_that_was_left_out(world: World) -> None:
    run_id = orchestrator.start()
    for name in ("songs", "changed:songs"):
        mysql_runs.add_part(run_id, name)
    mysql.write(
        "INSERT INTO reconciliation_suspect"
        " (run_id, check_kind, what, target_type, target_id, observed)"
        " VALUES (%s, 'list', 'songs', 'user', 1, '')",
        (run_id,),
    )
    assert run(world).run_id == run_id
    report = orchestrator.read_report(run_id)
    assert report.ended_at is not None
    assert report.differing == 0


def test_the_cycle_of_a_wing_that_was_left_out_is_not_late(world: World) -> None:
    mysql.write(
        "INSERT INTO reconciliation_cycle (name, resume_after, expected, compared, began_at)"
        " VALUES ('songs', '7', 9, 3, NOW(6))"
    )
    pass_time(60)
    run(world)
    assert cycles.read_progress()["cycle_late_h"] == 0


# ---------------------------------------------------------------- interruptions, clocks


def test_a_lost_message_loses_no_marks_and_no_quota(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cycles, "_EVENTS_PER_STEP", 3)
    monkeypatch.setattr(orchestrator, "MAX_RUN_S", 0)  # a message for each step
    for post in POSTS[10:20]:
        react.react(LIKE, Target("post", post), 3, True)
        damage(post, "collect")
    world.queues.drain()
    run_id = orchestrator.start()
    for number in range(1, 500):
        if orchestrator.read_report(run_id).ended_at is not None:
            break
        bodies = world.queues.take(COMPARISONS)
        kept = bodies if number % 3 else []  # SQS lost them; the next schedule sends them again
        orchestrator.process_parts([COMPARISONS.decode(str(body)) for body in kept[:2]])
        if orchestrator.read_report(run_id).ended_at is None:
            assert orchestrator.start() == run_id
    report = orchestrator.read_report(run_id)
    assert sorted(targets_of(report)) == [f"post:{post}" for post in POSTS[10:20]]
    assert report.tally.changed == 11
    assert report.tally.targets == 2, "the quota"
    assert dirty() == []


def test_a_round_that_began_in_the_future_begins_now(world: World) -> None:
    run(world)
    before = cursor()
    pass_time(-365)
    run(world)
    cycles = mysql_cycles.read_cycles()
    assert int(cursor()) > int(before), "it continues"
    assert all(-1 <= r.open_s < 60 for r in cycles.values())


def test_a_clock_that_jumps_ahead_makes_four_shares_at_most(world: World) -> None:
    run(world)
    run_tomorrow(world)
    pass_time(365)
    assert 4 <= run(world).tally.targets <= MAX_HASTE * len(POSTS) / 28 + 1
    assert cycles.read_progress()["cycle_late_h"] == (366 - 28) * 24
    for _ in range(28 // MAX_HASTE):
        run_tomorrow(world)
    assert cycles.read_progress()["cycle_late_h"] == 0


def test_progress_and_lateness_are_gauges(world: World) -> None:
    assert cycles.read_progress() == {
        "cycle_progress_pct": 100, "cycle_late_h": 0, "changes_age_h": 0,
    }  # fmt: skip
    run(world)
    first = cycles.read_progress()
    assert 0 < first["cycle_progress_pct"] < 20
    pass_time(2)
    assert cycles.read_progress() == first | {"changes_age_h": 48}
    pass_time(28)
    assert cycles.read_progress() == first | {"changes_age_h": 720, "cycle_late_h": 48}


def test_a_log_that_begins_anew_is_read_from_its_head(world: World) -> None:
    """As after MySQL was restored to an earlier moment."""
    mysql.write("UPDATE reconciliation_cycle SET resume_after = 10000000 WHERE name = 'log'")
    run(world)
    assert int(cursor("log")) == reaction_log.read_log_head()
