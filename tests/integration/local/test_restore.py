"""MySQL is restored to an earlier moment while Redis and the queues are ahead of it.

Rehearses docs/runbooks/mysql-restored.md: runs its commands in their order on a copy of MariaDB
that was made earlier, then a clean audit.
"""

from __future__ import annotations

import re
import shlex
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.paths import ROOT, TEMPLATE
from deploy.deploy import Loader
from deploy.parts import DATA
from local.stack.servers import Server, run_server
from plaza.commerce.changes import follow_binlog
from plaza.commerce.checkins import daily_checkin
from plaza.commerce.flash_sales import SUCCESS, place_order
from plaza.commerce.flash_sales.queries import read_order
from plaza.core.reactions import COLLECT, LIKE, Target, queries, react, redis_outbox
from plaza.core.reactions.sweep import sweep_outbox
from plaza.core.switches import change_switches, refresh
from plaza.core.switches.model import level_of
from plaza.infra.aws import secrets
from plaza.infra.aws.secrets import Login
from plaza.infra.derived.outbox import MAX_WAIT_US
from plaza.infra.jobs.operator_commands import Refused
from plaza.infra.mysql import migrations, mysql
from plaza.infra.mysql.database_users import PRIVILEGES, create_users
from plaza.infra.mysql.mysql import MysqlDown
from plaza.people.auth import new_session, session_end, session_lookup
from plaza.people.auth.request_erasure import erase_now
from plaza.people.follows import follow_user
from plaza.people.users import profiles
from plaza.social.content import commands
from plaza.social.content.model import Draft
from tests.support import sales
from tests.support.audits import Audit
from tests.support.functions import event, handler
from tests.support.plaza import World, forget
from tests.support.servers import copy_mysql
from tests.support.stores import add_users

AUTHOR, READER, LATER, OPERATOR = 1, 2, 3, 4
RUNBOOK = ROOT / "docs/runbooks/mysql-restored.md"
TakeBackup = Callable[[], Server]


@pytest.fixture
def back_up(mysql_server: Server, tmp_path: Path) -> Iterator[TakeBackup]:
    """Returns a copy of MySQL as it is when called, which is stopped. It may be started."""
    with ExitStack() as stack:

        def copy() -> Server:
            restored = copy_mysql(mysql_server, tmp_path / "restored" / "mysql")
            stack.callback(restored.stop)
            return restored

        yield copy


class Rehearsal:
    """An operator who follows the runbook. ``erased``: users who asked for it since the backup."""

    def __init__(
        self, plaza: World, backup: Server, patch: pytest.MonkeyPatch, *erased: int
    ) -> None:
        self._plaza, self._backup, self._patch, self._erased = plaza, backup, patch, erased
        self._document: str | None = None
        self._consumers_run = True

    def run(self) -> None:
        for command in read_commands():
            self._run(command)

    def _run(self, command: str) -> None:
        words = shlex.split(command)
        if words[:2] == ["make", "operate"]:
            _, _, environment, command, *arguments = words
            assert environment == "ENV=staging"
            given = " ".join(arguments).removeprefix("ARGS=").split()
            self._operate(command.removeprefix("COMMAND="), given)
        elif words[1:5] == ["-m", "deploy", "operate", "staging"]:
            self._operate(words[5], words[6:])
        elif words[:2] == ["make", "deploy"]:
            self._deploy(words[3].removeprefix("ARGS=").split())
        elif words[0] == "for":
            self._consumers_run = "--enabled" in words
            assert self._consumers_run or "--no-enabled" in words
            self._drain()
        else:
            assert command == ".venv/bin/python -m ops drift"
            handler("schedule/reconcile")(event("reconcile.schedule"), None)
            self._drain()

    def _deploy(self, given: list[str]) -> None:
        """The restored cluster serves, with the users and the schema of this version."""
        names = {pair.partition("=")[0] for pair in given}
        declared = [yaml.load(path.read_text(), Loader) for path in (DATA.template, TEMPLATE)]
        assert names <= {name for template in declared for name in template["Parameters"]}
        assert "MysqlRestoreFrom" in names
        assert not self._consumers_run, "they would store in the cluster that is given up"
        self._backup.start()
        self._patch.setenv("PLAZA_MYSQL_URL", self._backup.url)
        forget()
        migrations.apply_migrations()

    def _operate(self, command: str, pairs: list[str]) -> None:
        arguments = dict(pair.split("=", 1) for pair in pairs)
        known = {"OPERATOR": str(OPERATOR), "DOCUMENT": self._document or "", "staging": "local"}
        arguments = {name: known.get(value, value) for name, value in arguments.items()}
        if "document" in arguments and self._document is None:  # "without one leave it out"
            del arguments["document"]
            arguments["level"] = "normal"
        if command in ("sweep", "recover-orders"):
            self._repeat_until_nothing_is_sent(command, arguments)
            return
        if command == "flush-redis":
            self._flush(arguments)
        elif command == "erase-now":
            for user_id in self._erased:
                self._invoke(command, {"user_id": user_id})
        else:
            result = self._invoke(command, arguments)
            if command == "show-switches":
                self._document = result["mysql"]
        forget()  # a process follows switches, and misses sessions, within seconds

    def _invoke(self, command: str, arguments: dict[str, Any]) -> Any:
        while True:
            request = {"command": command, "arguments": arguments, "caller": "a-test"}
            result = handler("ops/operate")(request, None)
            if result.get("finished") is not False:
                return result

    def _flush(self, arguments: dict[str, Any]) -> None:
        """It refuses while an outbox has entries; then the step before is repeated."""
        until_s = time.monotonic() + MAX_SWEEPS_S
        while True:
            try:
                self._invoke("flush-redis", arguments)
                return
            except Refused:
                assert time.monotonic() < until_s
                self._repeat_until_nothing_is_sent("sweep", {"everything": "true"})

    def _repeat_until_nothing_is_sent(self, command: str, arguments: dict[str, Any]) -> None:
        until_s = time.monotonic() + MAX_SWEEPS_S
        while time.monotonic() < until_s:
            assert not react_is_possible(), "read_only"
            sent = self._invoke(command, arguments)
            self._drain()
            if not any(sent.values()):
                return
        pytest.fail(f"{command} sends something each time")

    def _drain(self) -> None:
        if self._consumers_run:
            self._plaza.queues.drain()


def write(author_id: int, text_type: str, **fields: Any) -> Target:
    if text_type == "post":
        fields |= {"kind": "note", "title": "t"}
    draft = Draft(type=text_type, author_id=author_id, body="b", **fields)
    return commands.create(draft).text.target


@pytest.fixture
def posts(plaza: World) -> list[Target]:
    """Two posts of a user, with reactions, before the backup."""
    add_users(AUTHOR, READER)
    results = [write(AUTHOR, "post") for _ in range(2)]
    for post in results:
        react.react(LIKE, post, READER, True)
    follow_user.follow(AUTHOR, READER)
    daily_checkin.check_in(READER)
    plaza.queues.drain()
    follow_binlog.follow_changes()
    return results


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
            if line.startswith((" ", "do ")):
                results[-1] = f"{results[-1].removesuffix(chr(92))} {line.strip()}"
            else:
                results.append(line)
    return results


MAX_SWEEPS_S = 15.0  # a commit of the other epoch is a gap after 1 s, and hydrates its target


def react_is_possible() -> bool:
    """Return whether requests may change something."""
    return not refresh.read().read_only


@pytest.fixture
def audit_of(redis_url: str) -> Callable[[str], Audit]:
    return lambda mysql_url: Audit(redis_url, mysql_url)


def test_the_runbook_saves_before_it_empties() -> None:
    commands = [match[1] for match in re.finditer(r"COMMAND=([a-z-]+)", "\n".join(read_commands()))]
    order = ["show-switches", "raise-epoch", "sweep", "recover-orders", "flush-redis", "erase-now"]
    assert [command for command in commands if command in order] == order


@pytest.mark.parametrize("is_queued", [False, True], ids=["queues empty", "events queued"])
def test_the_runbook_makes_the_audit_clean(
    plaza: World,
    posts: list[Target],
    back_up: TakeBackup,
    audit_of: Callable[[str], Audit],
    monkeypatch: pytest.MonkeyPatch,
    is_queued: bool,
) -> None:
    backup = back_up()
    live_on(plaza, posts)
    if is_queued:
        react.react(LIKE, posts[1], READER, False)
        react.react(LIKE, posts[1], AUTHOR, True)
        daily_checkin.check_in(AUTHOR)
    audit = audit_of(backup.url)
    with run_server(backup):
        assert not audit().clean, "Redis is ahead"
    Rehearsal(plaza, backup, monkeypatch).run()
    report = audit()
    assert (report.clean, report.differences) == (True, [])
    liked_by = {READER} ^ ({AUTHOR, READER} if is_queued else set())
    for post, likers in zip(posts, ({READER}, liked_by), strict=True):
        [count] = queries.read_counts([(LIKE, post)], READER)[0]
        assert (count.total, count.viewer_state) == (len(likers), READER in likers)
    assert mysql.fetch_all("SELECT COUNT(*) FROM binlog_offset") == [(0,)]
    assert follow_user.follow(AUTHOR, READER).changed is False, "the follow is back"
    assert react.react(LIKE, posts[0], AUTHOR, True).total == 2
    plaza.queues.drain()
    assert audit().clean


@pytest.mark.parametrize("was_set", [False, True], ids=["no switch", "level set"])
def test_what_was_answered_while_sqs_refused_survives_the_runbook(
    plaza: World,
    posts: list[Target],
    back_up: TakeBackup,
    audit_of: Callable[[str], Audit],
    monkeypatch: pytest.MonkeyPatch,
    was_set: bool,
) -> None:
    """Given answers whose second copy is in the MySQL that is given up; a sweep found one of them,
    and SQS refused it again."""
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
    erase_now(LATER)
    plaza.queues.away = False
    Rehearsal(plaza, backup, monkeypatch, LATER).run()
    assert queries.read_counts([(LIKE, posts[0])], AUTHOR)[0][0].viewer_state
    report = audit_of(backup.url)()
    assert (report.clean, report.differences) == (True, [])
    assert react.react(LIKE, posts[0], AUTHOR, True).changed is False
    assert react.react(COLLECT, posts[1], READER, True).changed is False
    assert follow_user.follow(READER, AUTHOR).changed is False
    assert read_order(order.id, AUTHOR).status == SUCCESS
    assert not any(session_lookup.find_session(token) for token in tokens)
    assert level_of(refresh.read()) == ("relieved" if was_set else "normal")
    assert react_is_possible()
    assert mysql.fetch_all("SELECT user_id FROM erasure") == [(LATER,)]
    assert mysql.fetch_all("SELECT epoch FROM log_barrier") == [(1,)]


def test_a_like_that_was_spilled_before_the_backup_survives_the_runbook(
    plaza: World,
    posts: list[Target],
    back_up: TakeBackup,
    audit_of: Callable[[str], Audit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given a spilled row of the backup, whose event was stored and confirmed after the backup: no
    outbox has it any more."""
    plaza.queues.away = True
    react.react(LIKE, posts[0], AUTHOR, True)
    plaza.queues.away = False
    backup = back_up()
    sweep_outbox()
    plaza.queues.drain()
    assert mysql.fetch_all("SELECT COUNT(*) FROM spilled_message") == [(0,)]
    Rehearsal(plaza, backup, monkeypatch).run()
    assert mysql.fetch_all("SELECT COUNT(*) FROM spilled_message") == [(0,)]
    [count] = queries.read_counts([(LIKE, posts[0])], AUTHOR)[0]
    assert (count.total, count.viewer_state) == (2, True)
    assert audit_of(backup.url)().clean


def test_functions_log_in_at_an_older_copy_after_its_users_were_created(
    plaza: World, back_up: TakeBackup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given a rotation after the backup."""
    passwords = {"password": "before"}
    for user in PRIVILEGES:
        monkeypatch.setenv(f"PLAZA_MYSQL_{user}_SECRET_ID", user)
    monkeypatch.setattr(
        secrets, "read_login", lambda user: Login(f"restored_{user}".lower(), passwords["password"])
    )
    try:
        create_users()
        backup = back_up()
    finally:
        for user in PRIVILEGES:
            mysql.write("DROP USER IF EXISTS %s@'%%'", (f"restored_{user}".lower(),))
    passwords["password"] = "after"
    backup.start()
    monkeypatch.setenv("PLAZA_MYSQL_URL", backup.url)
    forget()
    for user in PRIVILEGES:
        with pytest.raises(MysqlDown):
            mysql.check_login(secrets.read_login(user))
    forget()
    create_users()
    for user in PRIVILEGES:
        mysql.check_login(secrets.read_login(user))


def test_a_redis_that_is_not_emptied_keeps_users_that_mysql_lost(
    plaza: World,
    posts: list[Target],
    back_up: TakeBackup,
    audit_of: Callable[[str], Audit],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Given an operator who raises the epoch and reconciles only."""
    backup = back_up()
    live_on(plaza, posts)
    backup.start()
    monkeypatch.setenv("PLAZA_MYSQL_URL", backup.url)
    forget()
    mysql.write("UPDATE log_barrier SET epoch = epoch + 1")
    handler("schedule/reconcile")(event("reconcile.schedule"), None)
    plaza.queues.drain()
    subjects = [difference.subject for difference in audit_of(backup.url)().differences]
    assert subjects == [f"follow user:{LATER}", f"like {posts[1]}"], "versions without the epoch"
    Rehearsal(plaza, backup, monkeypatch).run()
    assert audit_of(backup.url)().clean
