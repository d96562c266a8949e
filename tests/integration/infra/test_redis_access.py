"""The user of the functions at Redis may do what they do, and nothing that harms others.

The integration tests log in with its rules, so a script that needs more fails there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import redis as redis_py

from cli.paths import LAYER
from local.stack.servers import prepare_redis, run_server
from tests.support.servers import read_redis_access

HARMFUL = {"@admin", "@blocking", "@dangerous", "@pubsub"}
ALLOWED_HARMFUL = {"info"}  # which node it is


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A connection of the administrator to a Redis that has the user."""
    directory = tmp_path_factory.mktemp("access") / "redis"
    user = f"user plaza {read_redis_access()} >plaza"
    with (
        run_server(prepare_redis(directory, settings=[user])) as started,
        redis_py.Redis.from_url(started.url, decode_responses=True) as client,
    ):
        client.response_callbacks.clear()
        yield client


def list_commands(server: Any) -> dict[str, tuple[int, set[str]]]:
    """Name of a command, or ``name|subcommand`` -> the number of its words, its categories."""
    commands = {}
    for (
        name,
        arity,
        _flags,
        _first,
        _last,
        _step,
        categories,
        _tips,
        _keys,
        parts,
    ) in server.execute_command("COMMAND"):
        for entry in parts or [(name, arity, 0, 0, 0, 0, categories)]:
            commands[entry[0]] = abs(entry[1]), set(entry[6])
    return commands


def is_allowed(server: Any, name: str, words: int) -> bool:
    command = name.split("|")
    command += ["x"] * (words - len(command))
    return bool(server.execute_command("ACL", "DRYRUN", "plaza", *command) == "OK")


def find_used(known: dict[str, Any]) -> set[str]:
    """Return the commands that code and scripts of the layer name, in capital letters."""
    files = [*(LAYER / "plaza").rglob("*.lua"), *(LAYER / "plaza").rglob("*.py")]
    texts = {text for file in files for text in re.findall(r"['\"]([A-Z]+)['\"]", file.read_text())}
    return {text.lower() for text in texts} & set(known)


def test_each_command_of_the_functions_is_allowed(server: Any) -> None:
    commands = list_commands(server)
    used = find_used(commands)
    assert {"evalsha", "zadd", "hmget", "bitfield"} <= used
    assert {name for name in used if not is_allowed(server, name, commands[name][0])} == set()
    for name in ("memory|usage", "cluster|info", "cluster|slots"):
        assert is_allowed(server, name, commands[name][0]), name


def test_no_command_that_harms_others_is_allowed(server: Any) -> None:
    """No configuration, no deletion of all data, no waiting, no messages to other clients."""
    commands = list_commands(server)
    harmful = {name for name, (_, categories) in commands.items() if categories & HARMFUL}
    assert {"flushall", "keys", "config|set", "client|kill", "blpop", "publish"} <= harmful
    allowed = {name for name in harmful if is_allowed(server, name, commands[name][0])}
    assert allowed == ALLOWED_HARMFUL


def test_scripts_are_sent_with_the_call_only(server: Any) -> None:
    """A library of functions would outlive its version; a debugger stops the server."""
    commands = list_commands(server)
    scripting = {name for name, (_, categories) in commands.items() if "@scripting" in categories}
    allowed = {name for name in scripting if is_allowed(server, name, commands[name][0])}
    assert allowed == {"eval", "eval_ro", "evalsha", "evalsha_ro"}
