"""Comments, their deletions and deletions of posts: what each does to the unread counter of the
post's author."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from local.stack.servers import connect_mysql
from plaza.core.reactions import Target
from plaza.core.targets import refresh as targets_refresh
from plaza.core.targets.queues import TargetRefresh
from plaza.infra.mysql import mysql
from plaza.infra.redis.errors import RedisDown
from plaza.notifications.notifications import queries
from plaza.people.blocks import block_user
from plaza.social.content import refresh
from tests.integration.notifications.notifications.conftest import like, unlike
from tests.support.content_api import ask, comment, is_lock_awaited, post
from tests.support.plaza import World
from tests.support.stores import add_users, wait_for
from tests.support.unread import check_unread, display, group, mark, turn_off, turn_on, unread

AUTHOR, OTHER = 7, 8


@pytest.fixture(autouse=True)
def world(plaza: World) -> Iterator[World]:
    add_users(AUTHOR, OTHER, 9)
    turn_on()
    yield plaza
    plaza.queues.drain()
    check_unread()


@pytest.fixture
def post_id(world: World) -> str:
    """A post whose author has an unread counter."""
    made = post(AUTHOR)
    like(9, target=Target("post", int(made)))
    return made


@contextmanager
def locked_unread(mysql_url: str) -> Iterator[None]:
    """Lock the unread counter of the author, as the transaction of a consumer does."""
    with connect_mysql(mysql_url) as other, other.cursor() as cursor:
        other.begin()
        cursor.execute("SELECT 1 FROM unread_counter WHERE user_id = %s FOR UPDATE", (AUTHOR,))
        yield
        other.rollback()


def of_comments(post_id: str) -> int:
    return group("comment", ("post", int(post_id)), AUTHOR).fresh


def sequence_of(comment_id: str) -> int | None:
    [(sequence,)] = mysql.fetch_all(
        "SELECT notified_sequence FROM content WHERE content_id = %s", (comment_id,)
    )
    return None if sequence is None else int(sequence)


def delete_comment(comment_id: str, user: int = OTHER) -> None:
    assert ask("DELETE", f"/comments/{comment_id}", user=user).status == 204


def test_a_comment_notifies_for_the_author_of_the_post(post_id: str) -> None:
    made = comment(post_id)
    assert (unread(AUTHOR), of_comments(post_id), sequence_of(made)) == ((2, 2), 1, 2)
    delete_comment(made)
    assert (unread(AUTHOR), of_comments(post_id)) == ((3, 1), 0)


def test_own_comments_and_posts_do_not_notify(post_id: str) -> None:
    assert sequence_of(comment(post_id, AUTHOR)) == 0
    assert unread(AUTHOR) == (1, 1)
    assert unread(OTHER) == (0, 0)


def test_a_read_comment_is_deleted_without_a_change(post_id: str) -> None:
    made = comment(post_id)
    mark(display(AUTHOR), AUTHOR)
    before = unread(AUTHOR)
    delete_comment(made)
    assert unread(AUTHOR) == before


def test_a_comment_after_the_list_stays_unread(post_id: str) -> None:
    first = comment(post_id)
    page = display(AUTHOR)
    comment(post_id)
    delete_comment(first)
    mark(page, AUTHOR)
    assert of_comments(post_id) == 1


def test_the_first_comment_of_a_new_unread_notifies_by_the_refresh(world: World) -> None:
    made_post = post(AUTHOR)
    made = comment(made_post)
    assert sequence_of(made) is None
    world.queues.drain()
    assert (of_comments(made_post), sequence_of(made)) == (1, 1)


def test_a_comment_does_not_wait_for_a_locked_unread(
    post_id: str, world: World, mysql_url: str
) -> None:
    """Given a locked unread counter, comments stay pending, and the refresh notifies those that are
    left."""
    with locked_unread(mysql_url):
        made = [comment(post_id) for _ in range(4)]
        delete_comment(made[0])
        assert [sequence_of(made_id) for made_id in made] == [None] * 4
        assert mysql.MYSQL.breaker.fail_counter == 0
    assert queries.read_unread(AUTHOR).unread == 1
    world.queues.drain()
    assert (of_comments(post_id), unread(AUTHOR)) == (3, (2, 2))
    assert queries.read_unread(AUTHOR) == (2, 2), "the refresh projects what it notified"


def test_a_comment_that_is_not_announced_waits_for_the_unread(
    post_id: str, world: World, mysql_url: str
) -> None:
    world.queues.away = True
    with ThreadPoolExecutor() as pool, locked_unread(mysql_url):
        late = pool.submit(comment, post_id)
        wait_for(lambda: is_lock_awaited(mysql_url), "the comment waits")
    assert sequence_of(late.result()) == 2
    world.queues.away = False


def test_two_refreshes_notify_a_pending_comment_once(
    post_id: str, world: World, mysql_url: str
) -> None:
    with ThreadPoolExecutor() as pool:
        with locked_unread(mysql_url):
            made = comment(post_id)
            late = pool.submit(refresh._notify_pending, [int(made)])
            wait_for(lambda: is_lock_awaited(mysql_url), "a refresh waits for the unread counter")
        late.result()
    targets_refresh.refresh([TargetRefresh("comment", int(made))])
    assert of_comments(post_id) == 1


def test_a_pending_comment_does_not_notify_while_the_unread_is_off(
    post_id: str, world: World, mysql_url: str
) -> None:
    with locked_unread(mysql_url):
        made = comment(post_id)
    turn_off()
    world.queues.drain()
    assert (sequence_of(made), unread(AUTHOR)) == (0, (1, 1))


def test_a_pending_comment_of_a_blocked_user_does_not_notify(
    post_id: str, world: World, mysql_url: str
) -> None:
    with locked_unread(mysql_url):
        made = comment(post_id)
    block_user.block(OTHER, AUTHOR)
    world.queues.drain()
    assert (sequence_of(made), unread(AUTHOR)) == (0, (1, 1))


def test_a_deleted_post_has_nothing_new(post_id: str) -> None:
    comment(post_id)
    queries.read_unread(AUTHOR)
    assert ask("DELETE", f"/posts/{post_id}", user=AUTHOR).status == 204
    assert unread(AUTHOR) == (3, 0)
    assert queries.read_unread(AUTHOR) == (3, 0)
    like(10, target=Target("post", int(post_id)))
    unlike(9, target=Target("post", int(post_id)))
    assert unread(AUTHOR) == (3, 0)


def test_the_refresh_clears_the_groups_of_a_post_whose_deletion_ended_early(
    post_id: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a process that ended after the commit of the deletion, and a like saved since."""

    def end(*_: object) -> None:
        raise RedisDown("by the test")

    with monkeypatch.context() as patch:
        patch.setattr(refresh, "project_texts", end)
        assert ask("DELETE", f"/posts/{post_id}", user=AUTHOR).status == 204
    like(10, target=Target("post", int(post_id)))
    assert unread(AUTHOR) == (1, 1)
    world.queues.drain()
    assert unread(AUTHOR) == (2, 0)


def test_a_consumer_reads_a_deletion_that_commits_while_it_waits_for_the_unread(
    post_id: str, world: World, mysql_url: str
) -> None:
    """Given a post that is deleted after the consumer began: the rule that few schedules need."""
    target = Target("post", int(post_id))
    with ThreadPoolExecutor() as pool:
        with locked_unread(mysql_url):
            late = pool.submit(like, 20, target=target)
            wait_for(
                lambda: is_lock_awaited(mysql_url), "the consumer waits for the unread counter"
            )
            with connect_mysql(mysql_url) as other, other.cursor() as cursor:
                cursor.execute(
                    "UPDATE content SET deleted_at = NOW() WHERE content_id = %s", (target.id,)
                )
        late.result()
    assert group("like", target, AUTHOR).fresh == 1
    assert unread(AUTHOR)[0] == 1, "the late like did not notify"


def test_likes_of_a_deleted_comment_are_read(post_id: str) -> None:
    made = comment(post_id)
    like(9, target=Target("comment", int(made)))
    assert unread(OTHER) == (1, 1)
    delete_comment(made)
    assert unread(OTHER) == (2, 0)


def test_a_post_is_deleted_while_its_author_has_many_groups(post_id: str) -> None:
    others = [post(AUTHOR) for _ in range(3)]
    for made in others:
        comment(made)
    assert ask("DELETE", f"/posts/{others[1]}", user=AUTHOR).status == 204
    assert unread(AUTHOR)[1] == 3


def test_a_hidden_comment_stays_new(post_id: str) -> None:
    made = comment(post_id)
    mysql.write("UPDATE content SET hidden_at = NOW() WHERE content_id = %s", (made,))
    assert of_comments(post_id) == 1
