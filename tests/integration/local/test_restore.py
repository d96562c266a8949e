"""MySQL is restored to an earlier moment while Redis and the queues are ahead of it.

Rehearses docs/runbooks/mysql-restored.md: its commands, then a clean audit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from plaza.auth import new_session
from plaza.checkins import daily_checkin
from plaza.content import commands
from plaza.content.model import Draft
from plaza.follows import follow_user
from plaza.infra import mysql, redis
from plaza.reactions import COLLECT, LIKE, Target, queries, react
from plaza.users import profiles
from tests.support.audits import Audit
from tests.support.functions import event, handler
from tests.support.plaza import TABLES, World, forget
from tests.support.stores import add_users

AUTHOR, READER, LATER = 1, 2, 3
Backup = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def audit(redis_url: str, mysql_url: str) -> Audit:
    return Audit(redis_url, mysql_url)


def back_up() -> Backup:
    """Return all rows of all tables."""
    return {table: mysql.fetch_all(f"SELECT * FROM {table}") for table in TABLES}


def restore(backup: Backup) -> None:
    for table, rows in backup.items():
        mysql.write(f"DELETE FROM {table}")
        if rows:
            places = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
            mysql.write(f"INSERT INTO {table} VALUES {places}", [v for row in rows for v in row])


def write(author_id: int, text_type: str, **fields: Any) -> Target:
    if text_type == "post":
        fields |= {"kind": "note", "title": "t"}
    draft = Draft(type=text_type, author_id=author_id, body="b", **fields)
    return commands.create(draft).text.target


@pytest.fixture
def posts(plaza: World) -> Iterator[list[Target]]:
    """Two posts of a user, with reactions, before the backup."""
    add_users(AUTHOR, READER)
    found = [write(AUTHOR, "post") for _ in range(2)]
    for post in found:
        react.react(LIKE, post, READER, True)
    follow_user.follow(AUTHOR, READER)
    daily_checkin.check_in(READER)
    plaza.queues.drain()
    yield found
    mysql.write("UPDATE log_gate SET epoch = 0")


def live_on(plaza: World, posts: list[Target]) -> None:
    """What happens after the backup, all of it stored."""
    add_users(LATER)
    new_session.open_session(LATER)
    react.react(LIKE, posts[0], READER, False)
    react.react(LIKE, posts[0], LATER, True)
    react.react(COLLECT, posts[1], LATER, True)
    follow_user.unfollow(AUTHOR, READER)
    follow_user.follow(READER, AUTHOR)
    write(READER, "comment", parent_id=posts[0].id)
    react.react(LIKE, write(LATER, "post"), READER, True)
    daily_checkin.check_in(LATER)
    profiles.change_profile(READER, {"nickname": "later"})
    plaza.queues.drain()
    for user_id in (AUTHOR, READER, LATER):
        profiles.read_own_profile(user_id)
        queries.list_reacted(LIKE, user_id, None, 10)


def follow_the_runbook(plaza: World) -> None:
    """Raise the epoch, empty Redis, let the functions run, reconcile."""
    mysql.write("UPDATE log_gate SET epoch = epoch + 1")
    redis.execute("FLUSHALL")
    forget()
    handler("schedule/sweep_outbox")({}, None)
    plaza.queues.drain()
    handler("schedule/reconcile")(event("reconcile.schedule"), None)
    plaza.queues.drain()


@pytest.mark.parametrize("is_queued", [False, True], ids=["queues empty", "events queued"])
def test_the_runbook_makes_the_audit_clean(
    plaza: World, posts: list[Target], audit: Audit, is_queued: bool
) -> None:
    backup = back_up()
    live_on(plaza, posts)
    if is_queued:
        react.react(LIKE, posts[1], READER, False)
        react.react(LIKE, posts[1], AUTHOR, True)
        daily_checkin.check_in(AUTHOR)
    restore(backup)
    assert not audit().clean, "Redis is ahead"
    follow_the_runbook(plaza)
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    liked_by = {READER} ^ ({AUTHOR, READER} if is_queued else set())
    for post, likers in zip(posts, ({READER}, liked_by), strict=True):
        [found] = queries.read_counts([(LIKE, post)], READER)[0]
        assert (found.total, found.viewer_state) == (len(likers), READER in likers)
    assert follow_user.follow(AUTHOR, READER).changed is False, "the follow is back"
    assert react.react(LIKE, posts[0], AUTHOR, True).total == 2
    plaza.queues.drain()
    assert audit().clean


def test_a_redis_that_is_not_emptied_keeps_check_ins_that_mysql_lost(
    plaza: World, posts: list[Target], audit: Audit
) -> None:
    """Given an operator who raises the epoch and reconciles only."""
    backup = back_up()
    live_on(plaza, posts)
    restore(backup)
    mysql.write("UPDATE log_gate SET epoch = epoch + 1")
    forget()
    handler("schedule/reconcile")(event("reconcile.schedule"), None)
    plaza.queues.drain()
    subjects = [difference.subject for difference in audit().differences]
    assert f"streak of user {LATER}" in subjects
    follow_the_runbook(plaza)
    assert audit().clean
