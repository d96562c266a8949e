"""Each command of each runbook runs as it is printed, while what the runbook is about is wrong.

Left out are commands that only AWS has: ``aws``, ``make deploy``, and queries of Logs Insights.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
import redis

from cli.paths import ROOT
from local.stack.parts import describe_environment
from local.stack.servers import Server, connect_mysql
from local.stack.stack import Stack
from plaza.commerce.flash_sales.redis_keys import state_key
from plaza.core.reactions.model import ReactionEvent, ReactionKey
from plaza.core.reactions.queues import REACTIONS
from plaza.core.reactions.redis_rankings import built_at_key
from tests.e2e.client import Client, wait_until
from tests.e2e.stack_runner import DEMO_POST
from tests.support.depth import choose

RUNBOOKS = ROOT / "docs" / "runbooks"
OPERATOR, USER, LEAVER = 5_920_001, 5_920_002, 5_920_003
REQUEST = "runbooks-0001"
MAX_COMMAND_S = 90
_OF_AWS = re.compile(r"(aws|make deploy|filter) ")
_BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)
CHECKOUT = quote(str(ROOT))  # in a shell
_PYTHON = re.compile(r"\.venv/bin/python -m (local|ops)")

Variables = dict[str, str]


@dataclass(frozen=True)
class World:
    """The stack, and clients of its API."""

    stack: Stack
    operator: Client
    user: Callable[[int], Client]

    def execute(self, statement: str) -> Any:
        """Run a statement; return its rows."""
        with connect_mysql(self.stack.mysql_url) as connection, connection.cursor() as cursor:
            connection.autocommit(True)
            cursor.execute(statement)
            return cursor.fetchall()

    @property
    def redis(self) -> Any:
        return redis.Redis.from_url(self.stack.redis_url, decode_responses=True)


Fault = Callable[[World], Any]


@dataclass(frozen=True)
class Case:
    """``fault``: a context with the variables of the commands. ``reports``: what commands that find
    something wrong, and end with status 1, have in them. ``check``: of the outputs, at the end."""

    fault: Fault
    reports: tuple[str, ...] = ()
    check: Callable[[World, dict[str, str]], None] | None = None


def read_commands(name: str) -> list[str]:
    """Return the commands of a runbook in order, without commands of AWS."""
    section = (RUNBOOKS / f"{name}.md").read_text().partition("## Commands")[2]
    results: list[str] = []
    for block in _BLOCK.findall(section.partition("\n## It is over")[0]):
        results += block.replace("\\\n", " ").splitlines()
    return [line for line in results if line.strip() and not _OF_AWS.match(line)]


def run(command: str, stack: Stack, variables: Variables, directory: Path) -> tuple[int, str]:
    """Run a command in a shell; return its exit status and its output. The checkout and the stack
    of the test are elsewhere than a reader's."""
    script = _PYTHON.sub(rf"{CHECKOUT}/.venv/bin/python -m \1 --dir {stack.directory}", command)
    script = script.replace("make operate", f"make --no-print-directory -C {CHECKOUT} operate")
    completed = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLAZA_DIR": str(stack.directory), **variables},
        capture_output=True,
        text=True,
        timeout=MAX_COMMAND_S,
    )
    assert "Traceback" not in completed.stderr, completed.stderr  # logs may have some
    return completed.returncode, completed.stdout + completed.stderr


# ---------------------------------------------------------------- faults


@contextmanager
def nothing(_: World) -> Iterator[Variables]:
    """The commands only look: this machine has no such fault (a budget of texts, SNS, S3)."""
    yield {}


@contextmanager
def stopped(world: World, name: str) -> Iterator[Variables]:
    """A server has ended, and a like was sent meanwhile. The runbook or the test brings it back."""
    server = world.stack.redis if name == "redis" else world.stack.mysql
    assert isinstance(server, Server)
    server.stop()
    try:
        sent = {"X-Request-Id": REQUEST}
        world.user(USER)("PUT", f"/posts/{DEMO_POST}/likes/me", headers=sent)
        yield {"REQUEST": REQUEST}
    finally:
        server.start()
        wait_until("all is up", lambda: world.operator("GET", "/ops/health").json["status"] == "up")


def without_mysql(world: World) -> Any:
    return stopped(world, "mysql")


def without_redis(world: World) -> Any:
    return stopped(world, "redis")


@contextmanager
def after_a_restart(world: World) -> Iterator[Variables]:
    """Redis came back empty."""
    with stopped(world, "redis"):
        pass
    yield {}


@contextmanager
def with_a_server_key(world: World) -> Iterator[Variables]:
    """A key of a server that liked for a user."""
    command = "server-keys make leaked --scope read --scope act"
    _, key = run(f".venv/bin/python -m ops {command}", world.stack, {}, ROOT)
    world.user(USER)
    client = Client(world.operator.base_url, key.strip())
    liked = client("PUT", f"/posts/{DEMO_POST}/likes/me", headers={"Plaza-User": str(USER)})
    assert liked.status == 200
    yield {"KEY": key.split("_")[1]}


@contextmanager
def with_a_webhook(world: World) -> Iterator[Variables]:
    """A webhook that gets no events, and an offset of some minutes ago."""
    at = datetime.now(UTC) - timedelta(minutes=5)
    world.execute(
        "INSERT IGNORE INTO event_offset (minute, epoch, reaction_seq, event_seq)"
        f" SELECT {int(at.timestamp()) // 60 - 5}, epoch, 0, 0 FROM event_head"
    )
    command = "webhooks make http://127.0.0.1:9/hook --type order.none"
    _, made = run(f".venv/bin/python -m ops {command}", world.stack, {}, ROOT)
    webhook_id = made.split()[0]
    yield {"ID": webhook_id, "SINCE": f"{at:%Y-%m-%dT%H:%MZ}"}
    run(f".venv/bin/python -m ops webhooks end {webhook_id}", world.stack, {}, ROOT)


def count_dead(world: World, name: str) -> int:
    queues = world.operator("GET", "/ops/queues").json["items"]
    return sum(queue["dead_letters"] for queue in queues if queue["name"] == name)


@contextmanager
def dead_letters(world: World, queue: str, *bodies: str) -> Iterator[Variables]:
    sqs, url = world.stack.connect("sqs"), world.stack.queues[f"{queue}_dlq"]
    sent = [sqs.send_message(QueueUrl=url, MessageBody=body)["MessageId"] for body in bodies]
    try:
        yield {"MESSAGE": sent[0], "OTHER": sent[-1], "REQUEST": REQUEST}
    finally:
        sqs.purge_queue(QueueUrl=url)


def with_dead_reactions(world: World) -> Any:
    """A like that waited too long, and two messages that no version can read."""
    key = ReactionKey("post", DEMO_POST, "like", USER)
    event = REACTIONS.encode(ReactionEvent(key, True, time.time_ns() // 1000))
    return dead_letters(world, "reactions", "unreadable", event, "unreadable, too")


def with_a_dead_comparison(world: World) -> Any:
    return dead_letters(world, "comparisons", "unreadable")


@contextmanager
def with_a_dead_order(world: World) -> Iterator[Variables]:
    """The consumer dead-letters it again after the redrive, because no version can read it."""

    with dead_letters(world, "orders_dlq", "unreadable") as variables:
        yield variables
        wait_until("it is dead again", lambda: count_dead(world, "orders_dlq") > 0)


@contextmanager
def hanging(world: World, statement: str) -> Iterator[Variables]:
    """A process hangs in a transaction."""
    with connect_mysql(world.stack.mysql_url) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute(statement)
        cursor.execute("SELECT CONNECTION_ID()")
        [(thread,)] = cursor.fetchall()
        yield {"THREAD": str(thread)}


def with_a_reader_of_the_log(world: World) -> Any:
    return hanging(world, "SELECT seq FROM reaction_log LIMIT 1")


def with_a_held_gate(world: World) -> Any:
    return hanging(world, "SELECT epoch FROM log_barrier WHERE id = 1 LOCK IN SHARE MODE")


@contextmanager
def with_a_slow_statement(world: World) -> Iterator[Variables]:
    """A program reads a table for ever, until the command ends it."""
    statement = "SELECT SLEEP(60), nickname FROM user"
    program = f'mysql "$MYSQL_DATABASE" -e "{statement}"'
    script = "\n".join([*describe_environment(world.stack), program])
    silent = subprocess.DEVNULL
    with subprocess.Popen(["bash", "-c", script], stdout=silent, stderr=silent) as reader:
        find = f"SELECT id FROM information_schema.processlist WHERE info = '{statement}'"
        [(thread,)] = wait_until("the statement runs", lambda: world.execute(find))
        yield {"THREAD": str(thread)}
        assert reader.wait(timeout=30) == 1


@contextmanager
def without_the_log(world: World) -> Iterator[Variables]:
    """MySQL has no binlog at the offset any more."""
    world.execute("UPDATE binlog_offset SET log_file = 'binlog.000000'")
    yield {}


@contextmanager
def with_a_wrong_counter(world: World) -> Iterator[Variables]:
    world.execute(
        f"UPDATE counter SET total = total + 5 WHERE target_id = {DEMO_POST} AND kind = 'like'"
    )
    yield {}


@contextmanager
def with_an_erasure(world: World) -> Iterator[Variables]:
    assert world.user(LEAVER)("DELETE", "/users/me").status == 202
    yield {"USER_ID": str(LEAVER)}


@contextmanager
def in_read_only(world: World) -> Iterator[Variables]:
    newest = world.operator("GET", "/ops/switches").json["version"]
    body = {"level": "read_only", "version": newest, "reason": "A test."}
    changed = world.operator("PUT", "/ops/switches/level", body)
    assert changed.status == 200
    yield {"VERSION": str(changed.json["version"])}


@contextmanager
def with_held_readers(world: World) -> Iterator[Variables]:
    newest = world.operator("GET", "/ops/switches").json["version"]
    yield {"VERSION": str(newest)}


@contextmanager
def with_a_large_key(world: World) -> Iterator[Variables]:
    world.redis.sadd("{5}:large", *range(20_000))
    yield {}
    world.redis.unlink("{5}:large")


@contextmanager
def with_a_ranking_ahead(world: World) -> Iterator[Variables]:
    """As after a restore of MySQL without a new epoch."""
    world.redis.set(built_at_key("week"), AHEAD_US)
    yield {}


AHEAD_US = 8 * 10**18


@contextmanager
def after_a_kill(world: World) -> Iterator[Variables]:
    """A consumer ended, perhaps between its commit and Redis."""
    for worker in world.stack.find_workers("SaveReactions"):
        worker.kill()
    yield {}


@contextmanager
def with_a_sale_that_differs(world: World) -> Iterator[Variables]:
    """Redis has a unit more than MySQL."""
    kind = {"name": "Runbooks", "icon": "https://app.example/icon.png", "sort": 0}
    type_id = world.operator("POST", "/shop-types", kind).json["id"]
    shop = {"name": "Runbooks", "type_id": type_id, "place": {"x": 0, "y": 0}, "images": []}
    now = datetime.now(UTC)
    terms = {
        "shop_id": world.operator("POST", "/shops", shop).json["id"],
        "title": "Runbooks",
        "price_cents": 1,
        "stock": 3,
        "opens_at": (now - timedelta(minutes=1)).isoformat(),
        "closes_at": (now + timedelta(hours=1)).isoformat(),
    }
    created = world.operator("POST", "/vouchers", terms)
    assert created.status == 201, created.json
    voucher_id = created.json["id"]
    order = world.user(USER)("POST", f"/vouchers/{voucher_id}/orders")
    assert order.status in (200, 202), order.json
    path = f"/orders/{order.json['order_id']}"
    wait_until("it is sold", lambda: world.user(USER)("GET", path).json["status"] == "success")
    key = state_key(int(voucher_id))
    stock, rest = world.redis.hget(key, "counts").split(":", 1)
    world.redis.hset(key, "counts", f"{int(stock) + 1}:{rest}")
    yield {"VOUCHER": voucher_id}
    world.redis.unlink(key)


# ---------------------------------------------------------------- when it is over


def no_letter_is_left(world: World, _: dict[str, str]) -> None:
    wait_until("the DLQ is empty", lambda: count_dead(world, "reactions") == 0)


def the_ranking_is_of_now(world: World, _: dict[str, str]) -> None:
    assert int(world.redis.get(built_at_key("week"))) < AHEAD_US


def writes_are_accepted(world: World, _: dict[str, str]) -> None:
    path = f"/posts/{DEMO_POST}/likes/me"
    wait_until("the level is normal", lambda: world.user(USER)("PUT", path).status == 200)


def readers_are_served(world: World, outputs: dict[str, str]) -> None:
    [started] = (outputs[command] for command in outputs if "operate" in command)
    assert "started" in parse(started)

    def is_over() -> bool:
        level = world.operator("GET", "/ops/switches").json["level"]
        return bool(level == "normal")

    wait_until("WarmUp has ended", is_over)
    path = f"/posts/{DEMO_POST}"
    wait_until("readers are served", lambda: world.user(USER)("GET", path).status == 200)


def the_sale_was_dropped(_: World, outputs: dict[str, str]) -> None:
    shown, closed = (outputs[command] for command in outputs if "operate" in command)
    assert parse(shown)["state"]["counts"].startswith("3:0:")
    assert parse(closed)["existed"]


def parse(output: str) -> Any:
    """Return the JSON that an output begins with; lines of the error output may follow."""
    return json.JSONDecoder().raw_decode(output)[0]


STATUS, QUEUES, AUDIT, LETTERS = "local status", "ops queues", "local audit", "ops dlq list"
CASES = {
    "api-errors": Case(without_mysql, (STATUS,)),
    "archive-corrupt": Case(nothing),
    "binlog": Case(without_the_log),
    "canary": Case(nothing),
    "code-budget": Case(nothing),
    "dead-letters": Case(with_dead_reactions, (LETTERS,), no_letter_is_left),
    "drift": Case(with_a_wrong_counter),
    "erasures": Case(with_an_erasure),
    "failover": Case(after_a_restart, (AUDIT,)),
    "issuers": Case(nothing),
    "key-leaked": Case(with_a_server_key),
    "levels": Case(in_read_only, (), writes_are_accepted),
    "limits-unchecked": Case(without_redis),
    "missed-commits": Case(after_a_kill, (AUDIT,)),
    "mysql-load": Case(with_a_slow_statement),
    "orders-late": Case(without_mysql),
    "orders-undecided": Case(with_a_dead_order, (AUDIT, "logs --request")),
    "outbox": Case(without_mysql),
    "warm-up": Case(with_held_readers, (QUEUES,), readers_are_served),
    "pushes": Case(nothing),
    "queue-behind": Case(without_mysql, (STATUS,)),
    "reaction-log": Case(with_a_reader_of_the_log),
    "reconciliation-stopped": Case(with_a_dead_comparison, (QUEUES,)),
    "redis-keys": Case(with_a_large_key, ("ops keys",)),
    "roll-up": Case(with_a_held_gate),
    "sale-differs": Case(with_a_sale_that_differs, (AUDIT,), the_sale_was_dropped),
    "schedules": Case(with_a_ranking_ahead, (), the_ranking_is_of_now),
    "silence": Case(nothing),
    "sms-errors": Case(nothing),
    "unavailable": Case(without_redis, (STATUS,)),
    "webhook-disabled": Case(with_a_webhook),
}
ELSEWHERE = {
    "mysql-restored": "tests/integration/local/test_restore.py restores MySQL and follows it",
    "region-lost": "it deploys to another region of AWS",
}


@pytest.fixture
def world(base_url: str, stack: Stack, sign_in: Callable[..., str]) -> World:
    operator = Client(base_url, sign_in(OPERATOR, role="admin"))
    tokens = {user_id: sign_in(user_id) for user_id in (USER, LEAVER)}  # before an outage
    world = World(stack, operator, lambda user_id: Client(base_url, tokens[user_id]))
    for client in (operator, world.user(USER)):  # then Redis has their sessions
        assert client("GET", "/users/me").status == 200
    return world


def test_each_runbook_with_commands_has_a_case() -> None:
    names = {file.stem for file in RUNBOOKS.glob("*.md") if read_commands(file.stem)}
    assert names - set(ELSEWHERE) == set(CASES)


@pytest.mark.outage
@pytest.mark.sampled
@pytest.mark.parametrize("name", choose([n for n, c in CASES.items() if c.check], [*CASES]))
def test_the_commands_of_a_runbook_run_under_its_fault(
    world: World, sign_in: Callable[..., str], tmp_path: Path, name: str
) -> None:
    case, outputs = CASES[name], dict[str, str]()
    known = {"URL": world.stack.base_url, "TOKEN": sign_in(OPERATOR, role="admin")}
    with case.fault(world) as variables:
        for command in read_commands(name):
            status, output = run(command, world.stack, known | variables, tmp_path)
            outputs[command] = output
            may_report = any(part in command for part in case.reports)
            assert status in ((0, 1) if may_report else (0,)), f"{command}\n{output}"
            assert not re.search(r"^plaza: |/problems/", output, re.M), f"{command}\n{output}"
        if case.check:
            case.check(world, outputs)


# ---------------------------------------------------------------- other commands in an outage


@pytest.mark.outage
@pytest.mark.parametrize("part", ["redis", "mysql"])
def test_commands_of_operators_do_not_need_the_part_that_is_down(
    world: World, tmp_path: Path, part: str
) -> None:
    """What cannot work says which part is down; nothing says to delete all data."""
    of_mysql, of_redis = f"local token --user {USER}", "ops keys"
    works = ["ops queues", "ops dlq list", "local env", "local logs --minutes 1"]
    works.append(of_redis if part == "mysql" else of_mysql)
    explains = ["local audit", of_redis if part == "redis" else of_mysql]
    with stopped(world, part):
        for command in works:
            status, output = run(f".venv/bin/python -m {command}", world.stack, {}, tmp_path)
            assert status == 0, f"{command}\n{output}"
        for command in explains:
            status, output = run(f".venv/bin/python -m {command}", world.stack, {}, tmp_path)
            assert status == 1, f"{command}\n{output}"
            assert re.match("plaza: .*(redis|mysql)", output, re.IGNORECASE), output
            assert not re.search("make down|is broken", output), output
        command = f".venv/bin/python -m local start {part}"
        assert run(command, world.stack, {}, tmp_path) == (0, f"{part} is up\n")


def test_the_environment_leads_to_the_stores(world: World, tmp_path: Path) -> None:
    command = (
        'eval "$(.venv/bin/python -m local env)"; curl -s $URL/health; echo;'
        ' mysql --batch --skip-column-names "$MYSQL_DATABASE" -e "SELECT 41 + 1"; echo $REDIS_URL'
    )
    status, output = run(command, world.stack, {}, tmp_path)
    health, answer, redis_url = output.splitlines()
    assert (status, json.loads(health)["status"], answer) == (0, "up", "42")
    assert redis_url == world.stack.redis_url


def test_a_wrong_command_says_what_is_wrong(world: World, tmp_path: Path) -> None:
    for command, text in {
        "local operate no-such-command": "there is no such command",
        "local operate set-role user_id": "is not name=value",
        "local operate set-role user_id=1x role=admin": "it is no id",
        "local invoke Nothing": "no single part is called Nothing",
        "local invoke SweepOutbox everything": "is not JSON",
        "ops dlq purge reactions --id never-was": "not found: never-was",
    }.items():
        status, output = run(f".venv/bin/python -m {command}", world.stack, {}, tmp_path)
        assert status == 1, output
        assert text in output
