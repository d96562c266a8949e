"""A deployment without the wing notifications: likes, comments, blocks, reports and orders work,
totals of users count, and no user is notified."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plaza.core import counters
from plaza.core.reactions import LIKE, Target, persist, queries
from plaza.core.targets import refresh as targets_refresh
from plaza.core.targets.queues import TargetRefresh
from plaza.infra.mysql import mysql, participants
from plaza.infra.queues import announcements
from plaza.notifications.push.queues import PUSHES
from plaza.people.blocks import block_user
from plaza.people.blocks import queries as block_queries
from plaza.social.moderation import reports
from plaza.social.moderation.model import ReportDraft
from tests.integration.commerce.flash_sales.test_order_lifecycle import buy
from tests.support import sales
from tests.support.consumers import make_event
from tests.support.content_api import ask, comment, post
from tests.support.plaza import World
from tests.support.stores import add_users
from tests.support.unread import turn_on
from tests.support.wings import without

OWNER, ACTOR = 7, 8


@pytest.fixture(autouse=True)
def world(plaza: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Notifications are neither stopped nor deployed; browsers have subscribed."""
    add_users(OWNER, ACTOR)
    turn_on()
    monkeypatch.setenv("PLAZA_PUSH_PUBLIC_KEY", "A" * 87)
    with without("notifications"):
        yield plaza
        plaza.queues.drain()
        assert mysql.fetch_all("SELECT * FROM unread_counter") == []
        assert mysql.fetch_all("SELECT * FROM notification_group") == []
        assert find_notified() == set()


def find_notified() -> set[int]:
    """Return the sequences of rows that notified, or that wait for it."""
    rows = mysql.fetch_all(
        "SELECT notified_sequence FROM reaction UNION SELECT notified_sequence FROM content"
    )
    return {sequence for (sequence,) in rows} - {0}


def total_of(user_id: int) -> int:
    return counters.read_users([user_id])[user_id].likes_received_total


def test_there_is_no_participant() -> None:
    assert participants.find() is None
    assert participants.projection_key() is None
    assert not announcements.is_on()


def test_a_like_counts_for_its_owner(world: World) -> None:
    target = Target("post", int(post(OWNER)))
    assert total_of(OWNER) == 0, "the total is in Redis"
    for on, total in ((True, 1), (False, 0)):
        persist.save([make_event(ACTOR, on, 2 - total, target)])
        [count], _ = queries.read_counts([(LIKE, target)], ACTOR)
        assert (count.total, count.viewer_state, total_of(OWNER)) == (total, on, total)


def test_a_comment_is_counted_refreshed_and_deleted(world: World) -> None:
    post_id = post(OWNER)
    made = comment(post_id, ACTOR)
    mysql.write("UPDATE content SET notified_sequence = NULL WHERE content_id = %s", (made,))
    targets_refresh.refresh([TargetRefresh("comment", int(made))])
    assert find_notified() == set(), "a comment that waited for an unread counter waits no longer"
    assert counters.read_comments([int(post_id)]) == {int(post_id): 1}
    assert ask("DELETE", f"/comments/{made}", user=ACTOR).status == 204
    assert counters.read_comments([int(post_id)]) == {int(post_id): 0}


def test_a_post_is_deleted() -> None:
    post_id = post(OWNER)
    assert ask("DELETE", f"/posts/{post_id}", user=OWNER).status == 204
    assert ask("GET", f"/posts/{post_id}").status == 410


def test_a_block_ends_when_it_is_taken_back() -> None:
    assert block_user.block(ACTOR, OWNER)
    assert block_queries.read_blocked(OWNER) == {ACTOR}
    assert block_user.unblock(ACTOR, OWNER)
    assert block_queries.read_blocked(OWNER) == set()


def test_a_report_is_resolved() -> None:
    draft = ReportDraft(ACTOR, Target("post", int(post(OWNER))), "spam", None)
    report = reports.create(draft, str(draft.target.id))
    assert reports.resolve(report.id, "upheld", operator_id=1).outcome == "upheld"


def test_an_order_succeeds_without_a_message(world: World) -> None:
    voucher = sales.offer(stock=1)
    buy(world, voucher.id, ACTOR)
    assert world.queues.messages[PUSHES] == []
