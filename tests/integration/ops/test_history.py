"""Importing old likes: rows, log, counters and Redis are exact, also after an interruption."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.paths import LAYER, ROOT, CommandError
from ops import history
from ops.history import ImportReport, Layout, import_file
from ops.import_progress import SHOWN, Progress
from plaza.core.reactions import LIKE, Target, acknowledgement, hydration, persist, react
from plaza.core.reactions.model import Count, ReactionEvent
from plaza.core.reactions.sweep import sweep_outbox
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.redis.errors import RedisDown
from plaza.people.auth.request_erasure import erase_now
from tests.support.audits import Audit
from tests.support.consumers import statements
from tests.support.failures import Killed, failing
from tests.support.plaza import World
from tests.support.stores import (
    add_users,
    counter,
    keys,
    meta,
    read_counts,
    received,
    rows,
    total,
    wait_for,
)

LIKES = Layout("like", "post", state_column="state")
HEADER = "user_id,post_id,created_at,state\n"
OLD_S = 1_500_000_000
A, B, GONE = Target("post", 11), Target("post", 12), Target("post", 13)
LINES = [
    f"1,11,{OLD_S + 1},1",
    f"2,11,{OLD_S + 2},1",
    f"3,12,{OLD_S + 3},1",
    f"2,11,{OLD_S + 2},1",  # repeated
    f"3,12,{OLD_S + 4},0",  # removed later
    f"3,11,{OLD_S + 9},0",  # removed, and the like follows in the file
    f"3,11,{OLD_S + 5},1",
    f"4,12,{OLD_S + 6},0",  # removed without a like
    f"4,11,{OLD_S + 7},1",
]
STORED = {
    1: (True, (OLD_S + 1) * 1_000_000),
    2: (True, (OLD_S + 2) * 1_000_000),
    3: (False, (OLD_S + 9) * 1_000_000 + 1),
    4: (True, (OLD_S + 7) * 1_000_000),
}


@pytest.fixture
def people(plaza: World) -> World:
    """Users 1 to 5 and 99, who wrote two posts."""
    add_users(1, 2, 3, 4, 5, 99)
    plaza.add(A, B, author_id=99)
    mysql.write("INSERT INTO user_counter (user_id, posts_total) VALUES (99, 2)")
    return plaza


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "likes.csv"
    file.write_text(HEADER + "\n".join(LINES))
    return file


@pytest.fixture
def store(file: Path, tmp_path: Path) -> Callable[..., ImportReport]:
    """``store()`` imports the file; its options are the arguments of ``import_file``."""
    return lambda **options: import_file(file, LIKES, tmp_path / "imports", **options)


def sweep(plaza: World, *targets: Target) -> None:
    """Sweep as a minute later: targets that lack a commit are loaded again."""
    for target in targets:
        if "blocked" in meta(target):
            redis.execute("HSET", keys(target).meta, "blocked", 1)
    plaza.let_sweeps_be_due()
    sweep_outbox()
    plaza.queues.drain()


def require_exact(audit: Audit) -> None:
    """Check rows, log and counters against the file, and the audit."""
    assert rows(A) == STORED
    assert rows(B)[3] == (False, (OLD_S + 4) * 1_000_000 + 1)
    assert (counter(A), counter(B), received()) == (3, 0, 3)
    log = mysql.fetch_all("SELECT COUNT(*), COUNT(DISTINCT version, actor_id) FROM reaction_log")
    assert list(log) == [(8, 8)], "each line once, without the repeated one"
    report = audit()
    assert (report.clean, report.differences) == (True, [])


def test_a_file_is_stored_exactly_and_only_once(
    people: World, audit: Audit, store: Callable[..., ImportReport], tmp_path: Path
) -> None:
    first = store()
    assert (first.progress.stored, first.progress.changed, first.progress.bad) == (9, 6, 0)
    require_exact(audit)
    assert read_counts([(LIKE, A)], 1) == ([Count(3, True)], True), "as the API reads it"
    assert store().progress.changed == 0
    require_exact(audit)
    assert list((tmp_path / "imports").iterdir()) == []
    assert people.queues.messages == {}


def test_a_target_in_redis_gets_what_is_imported(
    people: World, audit: Audit, store: Callable[..., ImportReport]
) -> None:
    react.react(LIKE, A, 5, True)
    people.queues.drain()
    assert total(A) == 1
    store()
    assert total(A) == 4
    assert audit().clean


def test_a_newer_reaction_is_not_replaced(
    people: World, audit: Audit, store: Callable[..., ImportReport]
) -> None:
    react.react(LIKE, A, 1, True)
    react.react(LIKE, A, 1, False)
    people.queues.drain()
    store()
    assert rows(A)[1][0] is False
    assert (counter(A), total(A)) == (2, 2)
    assert audit().clean


def test_bad_lines_are_listed_and_nothing_is_stored(
    people: World, audit: Audit, file: Path, store: Callable[..., ImportReport]
) -> None:
    people.add(GONE)
    mysql.write("UPDATE content SET deleted_at = NOW(6) WHERE content_id = 13")
    bad = ["x,11,1,1", f"77,11,{OLD_S},1", f"1,14,{OLD_S},1", f"1,13,{OLD_S},1"]
    file.write_text(HEADER + "\n".join([LINES[0], *bad, *LINES[1:]]))
    with pytest.raises(CommandError) as error:
        store()
    texts = [
        "line 3: user_id is 'x', not a whole number from 1 to 2^63-1",
        "line 4: user 77 is missing",
        "line 5: post 14 is missing",
        "line 6: post 13 is deleted",
    ]
    assert str(error.value).splitlines() == [
        "4 bad lines; nothing was stored",
        *(f"  {text}" for text in texts),
    ]
    assert rows(A) == {}
    report = store(skip_bad_lines=True)
    assert (report.progress.stored, report.progress.bad, report.bad_lines) == (9, 4, texts)
    require_exact(audit)


def test_output_of_mysql_has_no_quotes(people: World, tmp_path: Path) -> None:
    """Given notes of users beside the likes, as `mysql --batch` prints them."""
    file = tmp_path / "likes.tsv"
    lines = [f"{u}\t11\t{OLD_S}\t{note}" for u, note in ((1, "nice"), (2, '"so good'), (3, "ok"))]
    file.write_text("user_id\tpost_id\tcreated_at\tnote\n" + "\n".join(lines) + "\n")
    report = import_file(file, Layout("like", "post"), tmp_path / "imports")
    assert (report.lines, report.progress.stored, report.progress.bad) == (4, 3, 0)
    assert set(rows(A)) == {1, 2, 3}


def test_a_field_that_spans_lines_is_refused_with_all_of_its_lines(
    people: World, tmp_path: Path
) -> None:
    """Given a note in which a user wrote a line that looks like a like."""
    file = tmp_path / "likes.csv"
    lines = [f'1,11,{OLD_S},"so', f"2,11,{OLD_S},good", 'yes"', f'3,11,{OLD_S},"ok"']
    file.write_text("user_id,post_id,created_at,note\n" + "\n".join(lines) + "\n")
    layout = Layout("like", "post")
    with pytest.raises(CommandError, match="line 2: a quoted field does not end on its line"):
        import_file(file, layout, tmp_path / "imports")
    report = import_file(file, layout, tmp_path / "imports", skip_bad_lines=True)
    assert (report.lines, report.progress.stored, report.progress.bad) == (5, 1, 3)
    assert report.bad_lines[1:] == [
        f"line {n}: part of the quoted field that begins in line 2" for n in (3, 4)
    ]
    assert set(rows(A)) == {3}


def test_a_file_that_grows_during_its_import_is_reported(
    people: World, file: Path, store: Callable[..., ImportReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    save = persist.save_history

    def save_and_grow(events: list[ReactionEvent]) -> int:
        with file.open("a") as out:
            out.write(f"\n5,11,{OLD_S},1\n5,12,{OLD_S},1")
        return save(events)

    monkeypatch.setattr(persist, "save_history", save_and_grow)
    with pytest.raises(CommandError, match="it changed during the import"):
        store()


def test_lines_that_repeat_an_earlier_one_are_named(
    people: World, store: Callable[..., ImportReport]
) -> None:
    report = store()
    assert (report.repeated, report.repeated_lines) == (1, [(5, 3)])


def test_reactions_of_an_erased_user_are_refused(
    people: World, store: Callable[..., ImportReport]
) -> None:
    erase_now(4)
    with pytest.raises(CommandError, match="2 bad lines") as error:
        store()
    assert "line 9: user 4 is erased" in str(error.value)


def test_thousands_of_bad_lines_are_counted_and_some_shown(
    people: World, file: Path, store: Callable[..., ImportReport]
) -> None:
    file.write_text(HEADER + "x,1,1,1\n" * 3_000)
    with pytest.raises(CommandError, match="3,000 bad lines") as error:
        store()
    assert len(str(error.value).splitlines()) == 1 + SHOWN


def test_a_kind_that_the_target_does_not_take_is_refused(people: World, file: Path) -> None:
    with pytest.raises(CommandError, match="a comment takes no follow"):
        import_file(file, Layout("follow", "comment"), file.parent)


def test_a_file_that_does_not_exist_is_reported(people: World, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"none\.csv"):
        import_file(tmp_path / "none.csv", LIKES, tmp_path)


@pytest.mark.parametrize("at", ["commit", "acknowledge", "progress"])
@pytest.mark.parametrize("loaded", [True, False])
def test_an_interrupted_import_continues(
    people: World,
    audit: Audit,
    store: Callable[..., ImportReport],
    monkeypatch: pytest.MonkeyPatch,
    at: str,
    loaded: bool,
) -> None:
    """Given a kill after the commit, the acknowledgement or the progress of the second batch."""
    monkeypatch.setattr(history, "LINES_PER_BATCH", 3)
    if loaded:
        hydration.hydrate([(LIKE, A), (LIKE, B)])
    calls = {"commit": 0, "acknowledge": 0, "progress": -1}  # it is read once by the check

    def kill_in_second(name: str, work: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object) -> object:
            calls[name] += 1
            if name == "commit" == at and calls[name] == 2:
                raise Killed
            completed = work(*args)
            if name == at and calls[name] == 2:
                raise Killed
            return completed

        return run

    with monkeypatch.context() as patch:
        patch.setattr(persist, "acknowledge", kill_in_second("commit", acknowledgement.acknowledge))
        patch.setattr(persist, "save_history", kill_in_second("acknowledge", persist.save_history))
        save = Progress.save
        patch.setattr(Progress, "save", kill_in_second("progress", save))
        with pytest.raises(Killed):
            store()
    report = store()
    assert report.resumed_after == (7 if at == "progress" else 4)
    if at == "commit" and loaded:
        sweep(people, A, B)
    require_exact(audit)


def test_an_outage_of_redis_ends_the_import_and_loses_nothing(
    people: World,
    audit: Audit,
    store: Callable[..., ImportReport],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a batch that MySQL stored and Redis did not get."""
    hydration.hydrate([(LIKE, A)])

    with monkeypatch.context() as patch:
        patch.setattr(persist, "acknowledge", failing(RedisDown("Redis is unavailable.")))
        with pytest.raises(CommandError, match="run the command again to continue"):
            store()
    assert total(A) == 0
    store()
    sweep(people, A)
    assert total(A) == 3
    require_exact(audit)


def test_the_statements_of_a_batch_do_not_depend_on_its_size(
    people: World, file: Path, store: Callable[..., ImportReport]
) -> None:
    add_users(*range(100, 1_100))
    used = []
    store()
    for users in (range(100, 110), range(110, 1_100)):
        lines = [f"{user},{11 + user % 2},{OLD_S + user},1" for user in users]
        file.write_text(HEADER + "\n".join(lines))
        before = statements()
        assert store().progress.changed == len(users)
        used.append(statements() - before)
    assert used[0] == used[1] <= 16


def test_a_killed_process_is_continued_by_the_next(
    people: World, audit: Audit, file: Path, tmp_path: Path
) -> None:
    add_users(*range(100, 2_600))
    lines = [f"{user},{11 + user % 2},{OLD_S + user},1" for user in range(100, 2_600)]
    file.write_text(HEADER + "\n".join(lines))
    command = [sys.executable, "-m", "ops", "--dir", str(tmp_path), "--environment"]
    command += ["import", str(file), "--json"]
    env = os.environ | {"PYTHONPATH": f"{ROOT}:{LAYER}"}
    progress = tmp_path / "imports"

    def read_line() -> int:
        return max((json.loads(f.read_text())["line"] for f in progress.glob("*.json")), default=0)

    process = subprocess.Popen(
        [*command, "--rate", "500"], cwd=ROOT, env=env, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: read_line() > 1_000, "two batches")
    finally:
        process.kill()
        process.wait()
    assert rows(A)
    completed = subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=True
    )
    report = json.loads(completed.stdout)
    assert report["resumed_after"] > 1_000
    assert (report["stored"], counter(A), counter(B), received()) == (2_500, 1_250, 1_250, 2_500)
    assert audit().clean


def test_the_report_compares_each_target_with_the_source(
    people: World, store: Callable[..., ImportReport]
) -> None:
    report = store()
    assert (report.targets, report.differing) == (2, [])
    react.react(LIKE, A, 5, True)
    people.queues.drain()
    report = store()
    assert [tuple(count) for count in report.differing] == [(A.id, 3, 4)]
    assert report.to_json()["differing"] == [{"target_id": A.id, "source": 3, "plaza": 4}]


def test_follows_are_imported_reach_feeds_and_notify_no_unread(
    people: World, audit: Audit, tmp_path: Path
) -> None:
    layout = Layout("follow", "user", id_column="followed_id")
    file = tmp_path / "follows.csv"
    lines = [f"1,2,{OLD_S + 1}", f"3,2,{OLD_S + 2}", f"1,3,{OLD_S + 3}"]
    file.write_text("user_id,followed_id,created_at\n" + "\n".join(lines))
    for changed in (3, 0):
        report = import_file(file, layout, tmp_path / "imports")
        assert (report.progress.changed, report.targets, report.differing) == (changed, 2, [])
    assert people.queues.messages["follows"] != []
    people.queues.drain()
    assert mysql.fetch_all("SELECT COUNT(*) FROM notification_group") == [(0,)]
    assert audit().clean
    file.write_text(f"user_id,followed_id,created_at\n1,1,{OLD_S}")
    with pytest.raises(CommandError, match="follows itself"):
        import_file(file, layout, tmp_path / "imports")
