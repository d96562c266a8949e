"""Wrong unread counters and groups are reasons by the reconciliation, and repaired while users go
on."""

from __future__ import annotations

import pytest

from plaza.core.reactions import FOLLOW, persist
from plaza.infra.derived.comparisons import Finding, Subject
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.notifications.notifications import inspection, queries, recount
from plaza.operate.reconciliation import orchestrator
from tests.integration.notifications.notifications.conftest import COMMENT, USER, like, unlike
from tests.support.consumers import make_event
from tests.support.plaza import World
from tests.support.reconciliations import findings_of, run
from tests.support.unread import OWNER, check_unread, display, group, mark, unread

DAMAGES = {
    "unread-total": "UPDATE unread_counter SET unread = unread + 2",
    "unread-blocks": "UPDATE unread_counter SET blocking = blocking + 1",
    "unread-blocks too few": "INSERT INTO user_block (blocker_id, blocked_id) VALUES (99, 5)",
    "unread-sequence": "UPDATE unread_counter SET sequence = 0",
    "unread-fresh": "UPDATE notification_group SET fresh = fresh + 1 WHERE kind = 'like'",
    "unread-fresh after": "UPDATE notification_group SET fresh_after = 0 WHERE kind = 'follow'",
    "unread-fresh closed": "UPDATE notification_group SET is_open = 0",
    "unread-fresh row": "UPDATE reaction SET state = 0 WHERE actor_id = 8",
}


def reconcile(world: World) -> dict[str, int]:
    run = orchestrator.start()
    world.queues.drain()
    return dict(orchestrator.read_report(run).reason_counts)


@pytest.fixture
def notified(world: World) -> World:
    """Unread counters of two users, one of whom a closed group as well."""
    like(7, 8, 9)
    persist.save([make_event(7, at=5, target=COMMENT), make_event(7, target=USER, kind=FOLLOW)])
    mark(display(USER.id), USER.id)
    persist.save([make_event(8, at=6, target=USER, kind=FOLLOW)])
    return world


def test_right_unread_are_no_finding(notified: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recount, "_BELLS_PER_PAGE", 1)
    monkeypatch.setattr(recount, "_GROUPS_PER_PAGE", 2)
    monkeypatch.setattr(recount, "MAX_ROWS", 2)
    assert not {name for name in reconcile(notified) if name.startswith("unread")}
    assert unread() == (2, 2)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_wrong_unread_is_found_and_repaired(damage: str, notified: World) -> None:
    mysql.write(DAMAGES[damage])
    queries.read_unread(OWNER)
    reasons = reconcile(notified)
    assert reasons.get(damage.split()[0]), reasons
    check_unread()
    assert queries.read_unread(OWNER).unread == unread()[1]
    reasons = reconcile(notified)
    assert not {name for name in reasons if name.startswith("unread")}


def test_groups_of_a_type_that_was_left_out_are_not_compared(plaza: World) -> None:
    add_group_of_songs()
    assert "unread-fresh" not in reconcile(plaza)


def test_a_finding_about_a_type_that_was_left_out_stops_no_repair(plaza: World) -> None:
    """Given a run that was open when a deploy left out the wing of the type."""
    add_group_of_songs()
    [repair] = inspection.COUNTERS.repairs
    assert repair.repair([Finding("unread-fresh", Subject("unread-like", "song", 5), "")]) == 0
    assert mysql.fetch_all("SELECT fresh FROM notification_group") == [(2,)]
    assert mysql.fetch_all("SELECT 1 FROM counter WHERE target_type = 'song'") == []


def add_group_of_songs() -> None:
    mysql.write("INSERT INTO unread_counter (user_id, sequence, unread) VALUES (7, 5, 1)")
    mysql.write(
        "INSERT INTO notification_group (user_id, kind, subject_type, subject_id, fresh,"
        " read_sequence, changed, shown_sequence, fresh_after, is_open, changed_at, changed_on)"
        " VALUES (7, 'like', 'song', 5, 2, 0, 5, 0, 2, 1, NOW(6), NOW())"
    )


def test_a_like_after_the_repair_of_a_sequence_notifies(notified: World) -> None:
    mark(display())
    mysql.write("UPDATE unread_counter SET sequence = 0")
    reconcile(notified)
    like(6)
    assert (unread()[1], group().fresh) == (1, 1)


@pytest.mark.parametrize(
    "command",
    [("HSET", "value", "9"), ("HINCRBY", "version", 1), ("HSET", "value", "many")],
    ids=["unread", "version", "text"],
)
def test_a_wrong_unread_in_redis_is_found_and_dropped(
    notified: World, command: tuple[str, str, str]
) -> None:
    queries.read_unread(OWNER)
    name, *arguments = command
    redis.execute(name, queries.unread_key(OWNER), *arguments)
    finding = ("list", "unread-cache", f"user:{OWNER}")
    assert finding in findings_of(run(notified))
    assert redis.execute("EXISTS", queries.unread_key(OWNER)) == 0
    assert queries.read_unread(OWNER) == unread()
    assert finding not in findings_of(run(notified))


def test_a_closed_group_is_compared_in_turn(
    notified: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a group that was closed with rows that notification: one of 100 is compared."""
    monkeypatch.setattr(recount, "SAMPLED", 1)
    mysql.write("UPDATE notification_group SET is_open = 0, fresh = 0 WHERE kind = 'like'")
    reconcile(notified)
    assert (group().fresh, group().is_open) == (3, 1)
    assert mark(display()).state.unread == 0


def test_a_repair_after_a_roll_back_counts_what_the_version_before_took_back(
    notified: World,
) -> None:
    """Given a version without the unread counter, which turns rows off and leaves ``fresh``."""
    mysql.write("UPDATE reaction SET state = 0 WHERE actor_id IN (7, 9) AND target_id = %s", (11,))
    reconcile(notified)
    assert group().fresh == 1
    unlike(8)
    assert group().fresh == 0


def test_pages_end_at_a_bound_of_rows(notified: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a user with three groups, of five rows, and one with a group of two."""
    monkeypatch.setattr(recount, "SAMPLED", 1)
    sizes = {}
    for max_rows in (4, 100):
        monkeypatch.setattr(recount, "MAX_ROWS", max_rows)
        sizes[max_rows] = [(page.compared, page.users) for page in pages()]
    assert sum(compared for compared, _ in sizes[100]) == sum(count_groups().values())
    assert len(sizes[100]) == 1
    assert len(sizes[4]) > 1
    assert sum(users for _, users in sizes[4]) == len(count_groups())
    assert recount.compare_unread(10**6) == ([], 0, 10**6, True)


@pytest.mark.parametrize("page", [1, 2, 3, 100])
def test_each_wrong_group_of_a_large_user_is_found_in_time(
    page: int, notified: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a user with more groups than a page compares: each is in the sample of some round."""
    monkeypatch.setattr(recount, "_GROUPS_PER_PAGE", page)
    monkeypatch.setattr(recount, "MAX_COMPARED", 1)
    mysql.write("UPDATE notification_group SET fresh = fresh + 1")
    wrong = set()
    for _ in range(100):
        round_ = pages()
        assert all(len(part.wrong) <= 1 for part in round_)
        assert sum(part.users for part in round_) == len(count_groups())
        wrong |= {group.key for part in round_ for group in part.wrong}
    mysql.write("UPDATE notification_group SET fresh = fresh - 1")  # right again: each test ends so
    assert len(wrong) == sum(count_groups().values())


def pages() -> list[recount.ComparedGroups]:
    """Return the pages of a round."""
    compared = [recount.compare_groups(0)]
    while not compared[-1].is_last:
        compared.append(recount.compare_groups(compared[-1].last_id))
    return compared


def count_groups() -> dict[int, int]:
    return dict(
        mysql.fetch_all("SELECT user_id, COUNT(*) FROM notification_group GROUP BY user_id")
    )
