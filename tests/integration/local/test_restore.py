"""MySQL is restored to an earlier moment while Redis and the queues are ahead of it.

Runs the commands of docs/runbooks/mysql-restored.md as they are written, then a clean audit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pytest

from cli.paths import ROOT
from plaza.accounts.request_erasure import request_erasure
from plaza.auth import new_session, session_end, session_lookup
from plaza.checkins import daily_checkin
from plaza.content import commands
from plaza.content.model import Draft
from plaza.flash_sales import SUCCESS, place_order
from plaza.flash_sales.queries import read_order
from plaza.follows import follow_user
from plaza.infra.derived.outbox import MAX_WAIT_US
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.reactions import COLLECT, LIKE, Target, queries, react, redis_outbox
from plaza.switches import change_switches, refresh
from plaza.switches.model import level_of
from plaza.users import profiles
from tests.support import sales
from tests.support.audits import Audit
from tests.support.functions import event, handler
from tests.support.plaza import EMPTIED, World, forget
from tests.support.stores import add_users

AUTHOR, READER, LATER, OPERATOR = 1, 2, 3, 4
RUNBOOK = ROOT / "docs/runbooks/mysql-restored.md"
Backup = dict[str, list[tuple[Any, ...]]]


@pytest.fixture
def audit(redis_url: str, mysql_url: str) -> Audit:
    return Audit(redis_url, mysql_url)


def back_up() -> Backup:
    """Return all rows of all tables."""
    return {table: mysql.fetch_all(f"SELECT * FROM {table}") for table in EMPTIED}


def restore(backup: Backup) -> None:
    for table, rows in backup.items():
        mysql.write(f"DELETE FROM {table}")
        if rows:
            marks = ", ".join(["(" + ", ".join(["%s"] * len(rows[0])) + ")"] * len(rows))
            mysql.write(f"INSERT INTO {table} VALUES {marks}", [v for row in rows for v in row])


def write(author_id: int, text_type: str, **fields: Any) -> Target:
    if text_type == "post":
        fields |= {"kind": "note", "title": "t"}
    draft = Draft(type=text_type, author_id=author_id, body="b", **fields)
    return commands.create(draft).text.target


@pytest.fixture
def posts(plaza: World) -> Iterator[list[Target]]:
    """Two posts of a user, with reactions, before the backup."""
    add_users(AUTHOR, READER)
    results = [write(AUTHOR, "post") for _ in range(2)]
    for post in results:
        react.react(LIKE, post, READER, True)
    follow_user.follow(AUTHOR, READER)
    daily_checkin.check_in(READER)
    plaza.queues.drain()
    yield results
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


def read_commands() -> list[str]:
    """Return the commands of the runbook, in order, each as one line."""
    section = RUNBOOK.read_text().partition("## Commands")[2].partition("\n## ")[0]
    results: list[str] = []
    for block in re.findall(r"```\n(.*?)```", section, re.DOTALL):
        for line in textwrap.dedent(block).splitlines():
            if line.startswith(" "):
                results[-1] += f" {line.strip()}"
            else:
                results.append(line)
    return results


def follow_the_runbook(plaza: World, redis_url: str, *erased: int) -> None:
    """Run the commands of the runbook as they are written, after the restore. ``erased``: users who
    asked for it since the backup."""
    value = ""
    for command in read_commands():
        if "VALUE'" in command and not value:  # "without one, set the level normal"
            version = change_switches.read_newest().version
            change_switches.set_level(version, "normal", "a test", operator_id=OPERATOR)
        elif command.startswith("mysql> "):
            sql = command[7:].replace("OPERATOR", str(OPERATOR)).replace("VALUE'", f"{value}'")
            for user_id in erased if "(ID," in sql else (0,):
                mysql.write(sql.replace("(ID,", f"({user_id},"))
        elif command.endswith("FLUSHALL"):  # of a cluster, at each master
            redis.execute("FLUSHALL")
            forget()
        elif command.startswith("redis-cli "):
            url = redis_url.partition(",")[0]
            completed = subprocess.run(
                ["bash", "-ec", command],
                env={**os.environ, "REDIS_URL": url},
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            value = completed.stdout.strip() if " HGET " in command else value
            forget()  # a process reads the switches again within 2 s
        elif match := re.fullmatch(
            r"aws lambda invoke --function-name \.\.\.(\w+)\.\.\. --payload '(.*)' /dev/stdout",
            command,
        ):
            invoke_until_nothing_is_left(plaza, match[1], json.loads(match[2]))
        else:
            assert command == ".venv/bin/python -m ops drift"
            handler("schedule/reconcile")(event("reconcile.schedule"), None)
            plaza.queues.drain()


MAX_SWEEPS_S = 15.0  # a commit of the other epoch is a gap after 1 s, and hydrates its target


def invoke_until_nothing_is_left(plaza: World, function: str, payload: dict[str, Any]) -> None:
    folder = re.sub(r"\B([A-Z])", r"_\1", function).lower()
    until_s = time.monotonic() + MAX_SWEEPS_S
    while time.monotonic() < until_s:
        assert not react_is_possible(), "read_only"
        sent = handler(f"schedule/{folder}")(payload, None)
        plaza.queues.drain()
        if not any(sent.get(name) for name in ("republished", "recovered")):
            return
    pytest.fail(f"{function} sends something each time")


def react_is_possible() -> bool:
    """Return whether requests may change something."""
    return not refresh.read().read_only


@pytest.mark.parametrize("is_queued", [False, True], ids=["queues empty", "events queued"])
def test_the_runbook_makes_the_audit_clean(
    plaza: World, posts: list[Target], audit: Audit, redis_url: str, is_queued: bool
) -> None:
    backup = back_up()
    live_on(plaza, posts)
    if is_queued:
        react.react(LIKE, posts[1], READER, False)
        react.react(LIKE, posts[1], AUTHOR, True)
        daily_checkin.check_in(AUTHOR)
    restore(backup)
    assert not audit().clean, "Redis is ahead"
    follow_the_runbook(plaza, redis_url)
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    liked_by = {READER} ^ ({AUTHOR, READER} if is_queued else set())
    for post, likers in zip(posts, ({READER}, liked_by), strict=True):
        [count] = queries.read_counts([(LIKE, post)], READER)[0]
        assert (count.total, count.viewer_state) == (len(likers), READER in likers)
    assert follow_user.follow(AUTHOR, READER).changed is False, "the follow is back"
    assert react.react(LIKE, posts[0], AUTHOR, True).total == 2
    plaza.queues.drain()
    assert audit().clean


@pytest.mark.parametrize("was_set", [False, True], ids=["no switch", "level set"])
def test_what_was_answered_while_sqs_refused_survives_the_runbook(
    plaza: World, posts: list[Target], audit: Audit, redis_url: str, was_set: bool
) -> None:
    """Given answers whose second copy is in the MySQL that is lost; a sweep found one of them, and
    SQS refused it again."""
    voucher = sales.offer(stock=1)
    tokens = new_session.open_sessions([READER, READER])
    backup = back_up()
    plaza.queues.away = True
    assert react.react(LIKE, posts[0], AUTHOR, True).total == 2
    assert react.react(COLLECT, posts[1], READER, True).total == 1
    redis_outbox.sweep_all([(COLLECT, posts[1])], 0, 500, MAX_WAIT_US)
    assert follow_user.follow(READER, AUTHOR).changed is True
    order, _ = place_order.place_order(voucher.id, AUTHOR)
    assert mysql.fetch_all("SELECT COUNT(*) FROM spilled_message") == [(3,)]
    assert mysql.fetch_all("SELECT COUNT(*) FROM order_outbox") == [(1,)]
    for token in tokens:
        session_lookup.find_session(token)
    session_end.end_session(tokens[0])
    if was_set:
        change_switches.set_level(0, "relieved", "a test", operator_id=OPERATOR)
    request_erasure(LATER)
    plaza.queues.away = False
    restore(backup)
    follow_the_runbook(plaza, redis_url, LATER)
    assert queries.read_counts([(LIKE, posts[0])], AUTHOR)[0][0].viewer_state
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    assert react.react(LIKE, posts[0], AUTHOR, True).changed is False
    assert react.react(COLLECT, posts[1], READER, True).changed is False
    assert follow_user.follow(READER, AUTHOR).changed is False
    assert read_order(order.id, AUTHOR).status == SUCCESS
    assert not any(session_lookup.find_session(token) for token in tokens)
    assert level_of(refresh.read()) == ("relieved" if was_set else "normal")
    assert react_is_possible()
    assert mysql.fetch_all("SELECT user_id FROM erasure") == [(LATER,)]
    assert mysql.fetch_all("SELECT epoch FROM log_gate") == [(1,)]


def test_a_redis_that_is_not_emptied_keeps_check_ins_that_mysql_lost(
    plaza: World, posts: list[Target], audit: Audit, redis_url: str
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
    follow_the_runbook(plaza, redis_url)
    assert audit().clean
