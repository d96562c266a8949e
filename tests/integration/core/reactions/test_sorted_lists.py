"""Writers sort the lists of large targets, readers the lists of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plaza.core import counters
from plaza.core.reactions import (
    COLLECT,
    FOLLOW,
    LIKE,
    Kind,
    Target,
    mysql_counts,
    mysql_rows,
    mysql_snapshots,
    persist,
    sorted_lists,
)
from plaza.core.reactions.export import SECTIONS
from plaza.core.reactions.model import ReactionEvent, Reactor
from plaza.infra.mysql import mysql
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.settings import settings as plaza_settings
from tests.support.consumers import BASE_US, make_event, statements
from tests.support.plaza import World
from tests.support.stores import POST, explain, insert_rows, rows

USER = Target("user", 12)
OTHER = Target("post", 13)
SMALL = 5


@pytest.fixture
def small_lists(plaza: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target with more than five actors is large; a transaction sorts up to 20 rows."""
    monkeypatch.setattr(sorted_lists, "MAX_UNSORTED", SMALL)
    monkeypatch.setattr(sorted_lists, "_MAX_BEGUN", 2 * SMALL)
    monkeypatch.setattr(sorted_lists, "_ROWS_AT_ONCE", 20)


def likes(
    actors: Sequence[int], on: bool = True, at: int = 0, target: Target = POST
) -> list[ReactionEvent]:
    return [make_event(actor, on=on, at=at + actor, target=target) for actor in actors]


def entries(target: Target = POST, kind: Kind = LIKE) -> dict[int, tuple[bool, int]]:
    """Return actor -> (on, version) of the entries of a list."""
    result = mysql.fetch_all(
        "SELECT actor_id, state, version FROM sorted_reaction"
        " WHERE target_type = %s AND target_id = %s AND kind = %s",
        (*target, kind.name),
    )
    assert len({actor for actor, _, _ in result}) == len(result), "an actor has one entry"
    return {actor: (state == 1, version) for actor, state, version in result}


def state_of(target: Target = POST, kind: Kind = LIKE) -> str:
    """Return ``complete``, ``filling`` or ``none``."""
    key = (*target, kind.name)
    counter = counters.run_in_transaction(lambda cursor: counters.lock_targets(cursor, [key])[key])
    if counter.has_list:
        return "complete"
    return "filling" if counter.keeps_list else "none"


def fill(target: Target, kind: Kind, count: int, off: int = 0) -> None:
    """Insert rows of actors 1 to ``count``; the last ``off`` are inactive."""
    insert_rows(
        [(target, a, int(a <= count - off), BASE_US + 7 * a) for a in range(1, count + 1)], kind
    )


def sort(target: Target = POST, kind: Kind = LIKE) -> None:
    assert sorted_lists.sort_list(kind, target, Deadline.in_s(60)) is None


def commit_past_the_list(actor: int, target: Target = POST) -> None:
    """Save a like without its entry in the sorted list."""
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " VALUES (%s, %s, 'like', %s, 1, %s)",
        (*target, actor, BASE_US + actor),
    )
    mysql.write(
        "UPDATE counter SET total = total + 1, version = version + 1"
        " WHERE target_type = %s AND target_id = %s AND kind = 'like'",
        tuple(target),
    )


# ---------------------------------------------------------------- writers


@pytest.mark.usefixtures("small_lists")
def test_a_list_begins_with_the_commit_that_makes_its_target_large(plaza: World) -> None:
    plaza.add(POST, OTHER)
    persist.save(likes(range(1, SMALL + 1)))
    assert (state_of(), entries()) == ("none", {})
    persist.save(likes([SMALL + 1]) + likes([1], target=OTHER))
    assert (state_of(), entries()) == ("complete", rows())
    assert (state_of(OTHER), entries(OTHER)) == ("none", {})


@pytest.mark.usefixtures("small_lists")
def test_a_list_has_each_commit_and_stays_when_the_target_becomes_small(plaza: World) -> None:
    plaza.add(POST)
    persist.save(likes(range(1, 9)))
    persist.save(likes([20, 21]) + likes([1, 2], on=False, at=100))
    persist.save(likes([3], on=False, at=-50) + likes([4], at=200))
    assert (state_of(), entries()) == ("complete", rows())
    assert rows()[3][0], "a late event changes nothing"
    persist.save(likes(range(1, 30), on=False, at=300))
    assert (state_of(), entries()) == ("complete", rows())
    assert not any(on for on, _ in entries().values())


@pytest.mark.usefixtures("small_lists")
def test_a_batch_keeps_lists_of_several_kinds_and_types(plaza: World) -> None:
    plaza.add(POST, OTHER)
    pairs = [(POST, LIKE), (POST, COLLECT), (OTHER, LIKE), (USER, FOLLOW)]
    for round_ in range(8):  # one list begins in a transaction
        persist.save(
            [
                make_event(actor, on=(actor + round_) % 9 > 1, at=round_, target=target, kind=kind)
                for target, kind in pairs
                for actor in range(1, 10)
            ]
        )
    for target, kind in pairs:
        assert state_of(target, kind) == "complete"
        assert entries(target, kind) == rows(target, kind)


@pytest.mark.usefixtures("small_lists")
def test_a_target_with_too_many_rows_is_left_to_the_operator(plaza: World) -> None:
    plaza.add(POST)
    persist.save(likes(range(1, 25), on=False))
    persist.save(likes(range(1, 8), at=100))
    assert (state_of(), entries()) == ("none", {})
    fill(OTHER, LIKE, 2 * SMALL + 1)
    persist.save(likes([1], on=False, at=100, target=OTHER) + likes([50], at=1, target=OTHER))
    assert state_of(OTHER) == "none"


def test_targets_have_lists_above_two_thousand_actors(plaza: World) -> None:
    plaza.add(POST)
    fill(POST, LIKE, 2_010, off=10)
    persist.save(likes([5_001], on=False))
    assert state_of() == "none"
    persist.save(likes([5_002], at=10_000))
    assert (state_of(), entries()) == ("complete", rows())


@pytest.mark.usefixtures("small_lists")
def test_commits_without_large_targets_cost_no_statement(plaza: World) -> None:
    plaza.add(POST, OTHER)
    persist.save(likes([1]))
    fill(OTHER, LIKE, 9)
    sort(OTHER)
    counts = []
    for batch in (likes([2]), likes([30], target=OTHER), likes([30], False, 9, target=OTHER)):
        before = statements()
        persist.save(batch)
        counts.append(statements() - before)
    assert [count - counts[0] for count in counts] == [0, 1, 2]


# ---------------------------------------------------------------- a list that lacks a commit


@pytest.mark.usefixtures("small_lists")
def test_a_commit_that_a_list_lacks_ends_it_until_it_is_filled_again(
    plaza: World,
) -> None:
    plaza.add(POST)
    persist.save(likes(range(1, 8)))
    commit_past_the_list(50)
    assert state_of() == "none"
    assert read(latest=True)[0].actor_id == 50
    persist.save(likes([8]))
    assert (state_of(), entries()) == ("complete", rows())
    commit_past_the_list(51)
    persist.save(likes(range(100, 120)))
    assert state_of() == "none", "it is larger than one transaction sorts"
    sort()
    assert (state_of(), entries()) == ("complete", rows())


@pytest.mark.usefixtures("small_lists")
def test_a_commit_that_a_list_lacks_stops_its_filling(plaza: World) -> None:
    fill(POST, LIKE, 60)
    left = step(0)  # marks it
    left = step(left)
    assert (state_of(), len(entries())) == ("filling", 20)
    commit_past_the_list(5_000)
    assert state_of() == "none"
    assert step(left) == 0, "it begins again"
    sort()
    assert (state_of(), entries()) == ("complete", rows())


def step(after_id: int) -> int:
    """Run one transaction of filling a list."""
    part = partial(sorted_lists._sort_part, kind=LIKE, target=POST, after_id=after_id)
    left = counters.run_in_transaction(part)
    assert left is not None
    return left


# ---------------------------------------------------------------- filling


@pytest.mark.usefixtures("small_lists")
def test_commits_while_a_list_is_filled_are_in_it(plaza: World) -> None:
    plaza.add(POST)
    fill(POST, LIKE, 60, off=10)
    left = step(step(0))
    assert left == 20
    persist.save(likes([5, 55], at=1_000) + likes([6, 40], on=False, at=1_000) + likes([7_000]))
    assert state_of() == "filling"
    assert sorted_lists.sort_list(LIKE, POST, Deadline.in_s(60), left) is None
    assert (state_of(), entries()) == ("complete", rows())


@pytest.mark.usefixtures("small_lists")
def test_two_jobs_fill_a_list_at_once(plaza: World) -> None:
    plaza.add(POST)
    fill(POST, LIKE, 50)
    first = step(0)
    other = step(step(0))
    persist.save(likes([3], on=False, at=1_000))
    first = step(first)
    sort()
    assert sorted_lists.sort_list(LIKE, POST, Deadline.in_s(60), other) is None
    assert sorted_lists.sort_list(LIKE, POST, Deadline.in_s(60), first) is None
    assert (state_of(), entries()) == ("complete", rows())


@pytest.mark.usefixtures("small_lists")
def test_sorting_continues_where_a_deadline_ended_it(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_lists, "_COUNTERS_AT_ONCE", 2)
    targets = [Target(kind, n) for kind in ("comment", "post", "review") for n in (1, 2**63 - 1)]
    targets += [Target("post", n) for n in range(20, 25)]
    for target in targets:
        fill(target, LIKE, 45)
    fill(Target("post", 8), LIKE, SMALL)
    fill(USER, FOLLOW, 30)

    class OneTransaction:
        """A deadline that passes after each transaction."""

        asked = 0

        @property
        def has_passed(self) -> bool:
            self.asked += 1
            return self.asked > 3

    count, cursor, runs = 0, None, 0
    while runs == 0 or cursor is not None:
        deadline: Any = OneTransaction()
        sorted_now, cursor = sorted_lists.sort_all(cursor, deadline)
        count, runs = count + sorted_now, runs + 1
        assert runs < 200
    assert (count, runs > 10) == (len(targets) + 1, True)
    for target in targets:
        assert (state_of(target), entries(target)) == ("complete", rows(target))
    assert (state_of(USER, FOLLOW), state_of(Target("post", 8))) == ("complete", "none")
    assert sorted_lists.sort_all(None, Deadline.in_s(60)) == (0, None)


# ---------------------------------------------------------------- readers


def read(
    after: Reactor | None = None, latest: bool = False, limit: int = 1_000, target: Target = POST
) -> list[Reactor]:
    return mysql_rows.read_reactors(LIKE, target, after, latest, limit)


@st.composite
def histories(draw: st.DrawFn) -> list[list[ReactionEvent]]:
    """Batches of likes of few actors, late, repeated and of equal versions among them."""
    event = st.builds(
        make_event,
        st.integers(1, 14),
        on=st.booleans(),
        at=st.integers(0, 40),
        target=st.sampled_from([POST, POST, OTHER]),
    )
    return draw(st.lists(st.lists(event, min_size=1, max_size=12), min_size=1, max_size=8))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=histories(), size=st.integers(1, 6))
@pytest.mark.usefixtures("small_lists")
def test_all_readers_agree_with_the_rows(
    plaza: World, batches: list[list[ReactionEvent]], size: int
) -> None:
    for table in ("reaction", "sorted_reaction", "counter", "reaction_log"):
        mysql.write(f"DELETE FROM {table}")
    plaza.add(POST, OTHER)
    for batch in batches:
        persist.save(batch)
        for target in (POST, OTHER):
            if state_of(target) == "complete":
                assert entries(target) == rows(target)
            check_readers(target, size)


def check_readers(target: Target, size: int) -> None:
    existing = rows(target)
    on = sorted((version, actor) for actor, (is_on, version) in existing.items() if is_on)
    expected = [Reactor(actor, version) for version, actor in on]
    for latest in (False, True):
        listed: list[Reactor] = []
        while page := read(listed[-1] if listed else None, latest, size, target):
            listed += page
        assert listed == (expected[::-1] if latest else expected)
    assert mysql_rows.read_earliest(LIKE, target, size)[1] == expected[:size]
    [snapshot] = mysql_snapshots.read_snapshots([(LIKE, target, [])], size)
    assert snapshot.newest == expected[::-1][:size]
    sizes = mysql_snapshots.read_sizes([(LIKE, target)])
    [sized] = mysql_snapshots.read_snapshots([(LIKE, target, [])], size, sizes)
    assert sized == snapshot._replace(loaded_us=sized.loaded_us)
    assert snapshot.total == len(expected)
    assert snapshot.last_version_us == max((version for _, version in existing.values()), default=0)
    floor_us = expected[len(expected) // 2].version_us if expected else 1
    above = {r.actor_id: r.version_us for r in expected if r.version_us > floor_us}
    assert mysql_counts.read_newest_versions([(LIKE, target, floor_us)], 1_000) == [above]
    for floor in (0, floor_us):
        [state] = mysql_counts.read_states([(LIKE, target, floor)])
        counted = expected if floor == 0 else [r for r in expected if r.version_us > floor_us]
        assert state.newest.actors == len(counted)
        assert state.newest.ids == sum(r.actor_id for r in counted)


@pytest.mark.usefixtures("small_lists")
def test_followers_are_exported_in_the_same_order_from_both(plaza: World) -> None:
    [section] = [section for section in SECTIONS if section.name == "followers"]
    fill(USER, FOLLOW, 40, off=5)

    def read_all() -> list[Any]:
        pages = [section.read(USER.id, [], 6)]
        while pages[-1]:
            pages.append(section.read(USER.id, pages[-1][-1].key, 6))
        return [row for page in pages for row in page]

    unsorted = read_all()
    sort(USER, FOLLOW)
    mysql.write("UPDATE reaction SET version = version + 1")  # not in the list
    assert read_all() == unsorted
    assert [int(row.fields["user_id"]) for row in unsorted] == [*range(1, 36)]


# ---------------------------------------------------------------- cost


def count_rows_read(sql: str) -> int:
    """Return how many rows of tables and indexes a statement reads in the order of an index."""
    database = plaza_settings().mysql.database
    with closing(mysql.connect_dedicated(database=database)) as connection:
        cursor = connection.cursor()
        cursor.execute("FLUSH STATUS")
        cursor.execute(sql)
        cursor.execute("SHOW SESSION STATUS LIKE 'Handler_read%'")
        return sum(int(v) for name, v in cursor.fetchall() if name != "Handler_read_rnd_next")


def capture(monkeypatch: pytest.MonkeyPatch, call: Any) -> str:
    """Return the statement that ``call`` runs."""
    captured: list[str] = []

    def fetch_all(sql: str, args: Sequence[Any] = ()) -> list[Any]:
        captured.append(sql)
        return []

    with monkeypatch.context() as patch:
        patch.setattr(mysql, "fetch_all", fetch_all)
        with suppress(ValueError):  # no row has the version
            call()
    [statement] = captured
    return statement


READS = {
    "latest": lambda: read(Reactor(9, BASE_US + 7 * 1_500), True, 20),
    "first": lambda: read(None, False, 20),
    "earliest": lambda: mysql_rows.read_earliest(LIKE, POST, 20),
    "snapshot": lambda: mysql_snapshots.read_snapshots([(LIKE, POST, [])], 20),
    "newest": lambda: mysql_counts.read_newest_versions([(LIKE, POST, BASE_US + 20_500)], 20),
}


@pytest.mark.parametrize("name", READS)
def test_a_page_of_a_large_target_reads_the_rows_of_the_page(
    plaza: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(POST, LIKE, 3_000, off=50)
    fill(Target("post", POST.id + 1), LIKE, 3_000)
    sort()
    statement = capture(monkeypatch, READS[name])
    for step_ in explain(statement):
        assert "filesort" not in (step_["Extra"] or "")
        assert step_["table"] != "reaction"
    assert count_rows_read(statement) <= 20 + 20


@pytest.mark.parametrize("name", READS)
def test_a_page_of_a_small_target_reads_its_rows_only(
    plaza: World, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(POST, LIKE, 1_900, off=100)
    fill(Target("post", POST.id + 1), LIKE, 3_000)
    statement = capture(monkeypatch, READS[name])
    keys = {s["key"] for s in explain(statement) if s["table"] == "reaction"}
    assert keys <= ({"PRIMARY"})
    assert count_rows_read(statement) <= 2 * 1_900 + 60


def test_snapshots_of_known_size_read_the_rows_that_are_loaded(
    plaza: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a page of targets with a sorted list, without one, and with few actors."""
    large, middle, *small = [(LIKE, Target("post", POST.id + n)) for n in range(22)]
    fill(large[1], LIKE, 3_000, off=50)
    fill(middle[1], LIKE, 400, off=100)
    for _, target in small:
        fill(target, LIKE, 10, off=2)
    fill(Target("post", POST.id + 99), LIKE, 3_000)
    sort(large[1])
    pairs = [large, middle, *small]
    sizes, asked = mysql_snapshots.read_sizes(pairs), list[str]()
    fetch_all = mysql.fetch_all

    def record(statement: str, args: Sequence[Any] = ()) -> list[Any]:
        asked.append(statement)
        return fetch_all(statement, args)

    monkeypatch.setattr(mysql, "fetch_all", record)
    snapshots = mysql_snapshots.read_snapshots([(*pair, []) for pair in pairs], 20, sizes)
    assert [len(s.newest) for s in snapshots] == [20, 20] + [8] * 20
    assert [s.last_version_us - BASE_US for s in snapshots] == [21_000, 2_800] + [70] * 20
    [statement] = asked
    keys = {step["key"] for step in explain(statement) if step["table"] == "reaction"}
    assert keys == {"PRIMARY"}
    looked_up = 2 * len(pairs) + 20
    loaded = 20 + 20 + 8 * 20
    unsorted = 2 * (400 + 10 * 20)
    assert count_rows_read(statement) <= looked_up + loaded + unsorted + len(pairs)
