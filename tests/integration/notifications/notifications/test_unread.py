"""The notifications on MariaDB: what notifies, what is taken back, and what a mark leaves."""

from __future__ import annotations

import pytest

from plaza.core.reactions import COLLECT, FOLLOW, LIKE, Target, persist
from plaza.infra.mysql import mysql
from plaza.infra.mysql.participants import GroupKey
from plaza.infra.redis import redis
from plaza.infra.runtime.clock import Deadline
from plaza.notifications.notifications import (
    erasure,
    list_groups,
    mark_read,
    mysql_lists,
    purge,
    queries,
)
from plaza.people.blocks import block_user
from tests.integration.conftest import Away
from tests.integration.notifications.notifications.conftest import (
    COMMENT,
    POST,
    USER,
    like,
    notified_at,
    unlike,
)
from tests.support import content_api
from tests.support.consumers import make_event, statements
from tests.support.plaza import World
from tests.support.unread import (
    OWNER,
    check_unread,
    display,
    group,
    mark,
    turn_off,
    turn_on,
    unread,
)

pytestmark = pytest.mark.usefixtures("world")


# ---------------------------------------------------------------- what notifies


def test_a_like_notifies_once_for_the_author() -> None:
    like(7)
    assert unread() == (1, 1)
    assert group() == (1, 0, 1, 0, 1, 1)
    assert notified_at(7) == 1
    like(7)
    assert unread() == (1, 1)


def test_all_notifies_of_a_transaction_share_a_sequence() -> None:
    like(7, 8, 9)
    persist.save([make_event(7, at=50, target=COMMENT), make_event(7, at=51, kind=COLLECT)])
    assert unread() == (2, 2)
    assert group().fresh == 3
    assert group(subject=COMMENT).changed == 2


def test_collects_and_own_reactions_do_not_notify() -> None:
    persist.save([make_event(7, at=1, kind=COLLECT), make_event(OWNER, at=2)])
    assert unread() == (0, 0)
    assert mysql.fetch_all("SELECT * FROM unread_counter") == []


def test_a_follow_notifies_for_the_followed_user() -> None:
    persist.save([make_event(7, target=USER, kind=FOLLOW)])
    assert unread(USER.id) == (1, 1)
    assert group("follow", USER, USER.id).fresh == 1


def test_a_like_taken_back_while_unread_is_no_longer_new() -> None:
    like(7)
    unlike(7)
    assert unread() == (2, 0)
    assert group() == (0, 0, 1, 0, 0, 1)
    like(7)
    assert unread() == (3, 1)
    assert notified_at(7) == 3


def test_a_toggle_within_a_batch_changes_nothing() -> None:
    like(7)
    before = unread(), group()
    persist.save([make_event(7, on=False, at=10**6), make_event(7, on=True, at=10**6 + 1)])
    assert (unread(), group()) == before


def test_a_like_given_again_after_it_was_read_is_silent() -> None:
    like(7)
    mark(display())
    before = unread()
    unlike(7)
    assert unread() == before
    like(7)
    assert (unread(), group().fresh) == (before, 0)
    assert notified_at(7) == 1


def test_a_withdrawn_like_that_was_displayed_does_not_notify_again() -> None:
    """Given a like that was taken back between the list and the mark."""
    like(7)
    page = display()
    unlike(7)
    assert mark(page).state.unread == 0
    like(7)
    assert group().fresh == 0


def test_history_notifies_no_unread() -> None:
    persist.save_history([make_event(7, at=1)])
    assert (unread(), notified_at(7)) == ((0, 0), 0)
    unlike(7)
    assert unread() == (0, 0)


def test_rows_from_before_never_notify() -> None:
    turn_off()
    like(7)
    turn_on()
    like(8)
    assert group().fresh == 1
    unlike(7)
    assert group().fresh == 1


def test_the_switch_stops_notifies_and_not_takings_back() -> None:
    like(7, 8)
    turn_off()
    like(9)
    unlike(7)
    assert (unread(), group().fresh) == ((2, 1), 1)


def test_the_batch_costs_four_statements_more_and_none_without_a_change() -> None:
    """Given an unread counter and a group, of which a batch changes both."""
    like(7)
    turn_off()
    like(8)
    before = statements()
    like(10)
    without = statements() - before
    turn_on()
    like(11)
    before = statements()
    events = like(12)
    assert statements() - before - without == 4
    before = statements()
    persist.save(events)
    repeated = statements() - before
    assert repeated <= without


def test_many_events_of_many_owners_are_counted() -> None:
    posts = [Target("post", 1_000 + number) for number in range(40)]
    for post in posts:
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id) VALUES ('post', %s, %s)",
            (post.id, 200 + post.id % 7),
        )
    persist.save(
        [make_event(actor, at=actor, target=post) for post in posts for actor in range(300, 330)]
    )
    assert unread(203)[1] == len([post for post in posts if post.id % 7 == 3])


def test_a_batch_changes_each_unread_by_its_own_groups(plaza: World) -> None:
    """Given owners who get two groups, lose one, get one and lose one, and keep their number."""
    two, less, both, same = range(201, 205)
    posts = [Target("post", 600 + number) for number in range(7)]
    for target, owner in zip(posts, (two, two, less, both, both, same, OWNER), strict=True):
        plaza.add(target, author_id=owner)
    first, second, lost, kept, added, again, other = posts
    persist.save(
        [make_event(7, at=1, target=target) for target in (lost, kept, again, first, other)]
    )
    persist.save([make_event(7, on=False, at=2, target=first)])
    assert [unread(owner) for owner in (two, less, both, same)] == [(2, 0), (1, 1), (1, 1), (1, 1)]
    persist.save(
        [
            *(make_event(8, at=3, target=target) for target in (first, second, added, again)),
            *(make_event(7, on=False, at=3, target=target) for target in (lost, kept)),
        ]
    )
    assert [unread(owner) for owner in (two, less, both, same)] == [(3, 2), (2, 0), (2, 1), (2, 1)]
    assert unread(OWNER) == (1, 1)
    check_unread()


# ---------------------------------------------------------------- silence


def test_a_blocked_user_notifies_no_unread() -> None:
    block_user.block(7, OWNER)
    like(7, 8)
    assert group().fresh == 1
    block_user.unblock(7, OWNER)
    unlike(7)
    like(7)
    assert group().fresh == 2


def test_a_block_before_the_first_notify_is_counted_when_the_unread_is_created() -> None:
    mysql.write(
        "INSERT INTO user_block (blocker_id, blocked_id, created_at) VALUES (%s, 7, NOW())",
        (OWNER,),
    )
    like(7)
    assert mysql.fetch_all("SELECT sequence, blocking FROM unread_counter") == [(0, 1)]


def test_a_silenced_like_forgets_its_unread_notify() -> None:
    """Given a like that notified, was taken back unread, and comes back while it may not notify."""
    like(7)
    unlike(7)
    block_user.block(7, OWNER)
    like(7)
    assert (notified_at(7), group().fresh, unread()[1]) == (0, 0, 0)


def test_a_like_of_a_deleted_post_does_not_notify() -> None:
    mysql.write("UPDATE content SET deleted_at = NOW() WHERE content_id = %s", (POST.id,))
    like(7)
    assert unread() == (0, 0)


# ---------------------------------------------------------------- lists and marks


def test_a_mark_reads_what_was_displayed_and_leaves_what_notified_since() -> None:
    like(7, 8)
    page = display()
    assert [(g.key.kind, g.fresh) for g in page.groups] == [("like", 2)]
    like(9)
    marked = mark(page)
    assert (marked.state.unread, marked.left) == (1, 0)
    assert group() == (1, 1, 2, 1, 1, 1)
    assert mark(display()).state.unread == 0


def test_a_mark_after_five_seconds_of_likes_leaves_exactly_those() -> None:
    """Given a like a second, in transactions of their own, and an unlike of each side."""
    like(*range(10, 20))
    page = display()
    for second in range(5):
        like(30 + second)
        check_unread()
    unlike(10)
    unlike(30)
    mark(page)
    assert group().fresh == 4
    unlike(31)
    unlike(11)
    assert group().fresh == 3


def test_a_mark_without_a_checkpoint_reads_only_groups_that_did_not_notify_since() -> None:
    like(7)
    page = list_groups.list_groups(OWNER, None, 20, is_displayed=False)
    assert group().shown_sequence == 0
    like(8)
    assert mark(page).state.unread == 1
    assert group().fresh == 2


def test_an_older_mark_of_another_device_reads_what_it_displayed() -> None:
    """Given two devices whose lists displayed two, three and four likes, and one like more."""
    like(7, 8)
    first = display()
    like(9)
    second = display()
    like(10)
    third = display()
    like(11)
    assert mark(first).state.unread == 1
    assert (group().fresh, group().read_sequence) == (3, first.state.sequence)
    check_unread()
    assert mark(first).left == 0
    unlike(9)
    assert mark(second).state.unread == 1
    assert group().fresh == 2
    mark(third)
    assert group().fresh == 1
    assert mark(display()).state.unread == 0


def test_a_mark_counts_no_more_rows_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    like(7, 8)
    like(7, 8, target=COMMENT)
    page = display()
    like(9)
    like(9, target=COMMENT)
    display()
    monkeypatch.setattr(mysql_lists, "MAX_COUNTED_ROWS", 3)
    assert mark(page).left == 1
    assert sorted([group().fresh, group(subject=COMMENT).fresh]) == [1, 3]
    assert mark(page).left == 0
    assert (group().fresh, group(subject=COMMENT).fresh) == (1, 1)


def test_a_mark_of_another_device_reads_the_comments_that_it_displayed(world: World) -> None:
    made = int(content_api.post(OWNER))
    for author in (7, 8):
        content_api.comment(str(made), author)
        world.queues.drain()
    page = display()
    content_api.comment(str(made), 9)
    display()
    mark(page)
    assert group("comment", ("post", made)).fresh == 1


def test_a_mark_is_safe_to_repeat() -> None:
    like(7)
    page = display()
    marked = mark(page)
    assert mark(page) == marked
    assert unread() == (2, 0)


def test_a_mark_names_its_groups() -> None:
    like(7)
    persist.save([make_event(7, at=5, target=COMMENT)])
    page = display()
    marked = mark(page, keys=[GroupKey(OWNER, "like", *COMMENT)])
    assert marked.state.unread == 1
    assert group().fresh == 1
    assert mark(page, keys=[]) == marked


def test_a_sequence_above_the_unread_and_one_of_another_epoch_mark_nothing() -> None:
    like(7)
    version = display().state.version
    assert mark_read.mark_read(OWNER, version + 1) == ((version, 1), 0)
    mysql.write("UPDATE log_barrier SET epoch = epoch + 1")
    try:
        assert mark_read.mark_read(OWNER, version).state.unread == 1
    finally:
        mysql.write("UPDATE log_barrier SET epoch = epoch - 1")


def test_a_user_without_a_unread_has_an_empty_list() -> None:
    page = display(12345)
    assert (page.groups, page.last, page.state.unread) == ([], None, 0)
    assert mark(page, 12345).left == 0


def test_the_list_has_pages_and_the_newest_notify_first(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(7):
        target = Target("post", 500 + number)
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id) VALUES ('post', %s, %s)",
            (target.id, OWNER),
        )
        persist.save([make_event(7, target=target)])
    like(7, 8)
    persist.save([make_event(7, at=9, target=USER, kind=FOLLOW)])
    seen, after = [], None
    while True:
        page = list_groups.list_groups(OWNER, after, 3, is_displayed=True)
        seen += [g.key.subject_id for g in page.groups]
        after = page.last
        if after is None:
            break
    assert seen == [11, 506, 505, 504, 503, 502, 501, 500]
    monkeypatch.setattr("plaza.notifications.notifications.mysql_lists.MAX_MARKED", 3)
    assert mark(page).left == 5
    assert mark(page).left == 2
    assert mark(page) == (page.state._replace(version=page.state.version + 3, unread=0), 0)


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
def test_read_and_unread_groups_are_listed_in_the_order_of_their_notifies(limit: int) -> None:
    """Given six groups, of which every second one was read."""
    posts = [Target("post", 500 + number) for number in range(6)]
    for number, target in enumerate(posts):
        mysql.write(
            "INSERT INTO content (content_type, content_id, author_id) VALUES ('post', %s, %s)",
            (target.id, OWNER),
        )
        persist.save([make_event(7, at=number + 1, target=target)])
    mark(display(), keys=[GroupKey(OWNER, "like", *target) for target in posts[::2]])
    seen, after = [], None
    while True:
        page = list_groups.list_groups(OWNER, after, limit, is_displayed=False)
        seen += [(g.key.subject_id, g.fresh) for g in page.groups]
        after = page.last
        if after is None:
            break
    assert seen == [(505, 1), (504, 0), (503, 1), (502, 0), (501, 1), (500, 0)]


# ---------------------------------------------------------------- deletions


def test_a_purged_group_begins_at_the_sequence_of_the_unread() -> None:
    """Given likes that notified before the group was deleted."""
    like(7, 8)
    mark(display())
    mysql.write("UPDATE notification_group SET changed_on = CURDATE() - INTERVAL 2 YEAR")
    assert purge.delete_expired(1_000) == 1
    assert purge.delete_expired(1_000) == 0
    like(9)
    assert (group().fresh, unread()[1]) == (1, 1)
    unlike(7)
    assert group().fresh == 1


def test_an_unread_group_is_not_purged() -> None:
    like(7)
    mysql.write("UPDATE notification_group SET changed_on = CURDATE() - INTERVAL 2 YEAR")
    assert purge.delete_expired(1_000) == 0


def test_an_erased_recipient_has_no_group_and_a_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    like(7, 8)
    persist.save([make_event(7, at=5, target=COMMENT)])
    monkeypatch.setattr(erasure, "_PAGE", 1)
    assert erasure.erase(OWNER, Deadline.in_s(10)) == 2
    assert unread() == (4, 0)
    assert mysql.fetch_all("SELECT * FROM notification_group") == []
    assert erasure.erase(OWNER, Deadline.in_s(10)) == 0
    unlike(7)
    assert unread() == (4, 0), "a late unlike finds no group"
    like(9)
    assert group().fresh == 1


# ---------------------------------------------------------------- the projection


def test_neither_a_consumer_nor_a_mark_stores_a_unread_that_no_reader_has_asked_for() -> None:
    like(7)
    mark(display())
    assert redis.execute("HGET", queries.unread_key(OWNER), "value") is None
    assert queries.read_unread(OWNER) == unread()
    like(8)
    assert redis.execute("HGET", queries.unread_key(OWNER), "value") == "1"


def test_readers_get_the_unread_and_consumers_update_it() -> None:
    assert queries.read_unread(OWNER) == (0, 0)
    like(7)
    assert queries.read_unread(OWNER) == (1, 1)
    page = display()
    mark(page)
    assert queries.read_unread(OWNER) == (2, 0)


def test_a_reader_stores_nothing_if_its_fence_was_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given a consumer that passed between the read of MySQL and the store, after Redis lost its
    data: nothing would correct what the reader stores."""
    read_states = mysql_lists.read_states

    def read_and_lose(user_ids: list[int]) -> object:
        states = read_states(user_ids)
        redis.execute("FLUSHALL")
        monkeypatch.undo()
        like(7)
        return states

    monkeypatch.setattr(mysql_lists, "read_states", read_and_lose)
    assert queries.read_unread(OWNER) == (0, 0)
    turn_on()
    assert queries.read_unread(OWNER) == (1, 1)


def test_a_unread_is_read_without_redis(redis_away: Away) -> None:
    like(7)
    with redis_away():
        assert queries.read_unread(OWNER) == (1, 1)


def test_likes_are_taken_back_by_an_erasure_of_the_actor(world: World) -> None:
    like(7)
    persist.save([make_event(7, on=False, at=10**7)])
    assert (unread()[1], LIKE.notifies) == (0, True)
