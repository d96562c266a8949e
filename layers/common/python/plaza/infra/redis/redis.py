"""The client of Redis: runs commands and scripts, alone or together, on masters or replicas.

In a cluster they go to the nodes of their keys; a script that a node does not know is sent there
as text. Counts of hot keys and changes of breakers are sent along (``infra.redis.hot_keys``,
``infra.redis.breaker_reports``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError
from redis.exceptions import TimeoutError as RedisTimeoutError

from plaza.infra.redis import breaker_reports, cluster, connections, terms
from plaza.infra.redis.commands import Argument, Call, Command, NodeArguments, key_of_command
from plaza.infra.redis.connections import REDIS
from plaza.infra.redis.hot_keys import sampler
from plaza.infra.redis.scripts import Script
from plaza.infra.redis.shards import tag_of
from plaza.infra.runtime.dependencies import unreported
from plaza.infra.runtime.settings import settings


def execute(*command: Argument) -> Any:
    """Run one command; without a key, on all nodes of a cluster that it concerns.
    One round trip. Raises RedisDown."""
    reports = _take_reports((command,))
    if settings().redis_cluster and key_of_command(command) is None:
        return REDIS.call(lambda: connections.client().execute_command(*command))
    if reports or settings().redis_cluster:
        return REDIS.call(partial(_pipeline, [command], {}, reports))[0]
    return REDIS.call(partial(_execute, command))


def run(script: Script, keys: Sequence[str], args: Sequence[Argument | NodeArguments] = ()) -> Any:
    """Run ``script``. One round trip, two if Redis has not cached it. Raises RedisDown."""
    command = ("EVALSHA", script.sha, len(keys), *keys, *args)
    reports = _take_reports((command,))
    if reports or settings().redis_cluster:
        sources = {script.sha: script.source}
        return REDIS.call(partial(_pipeline, [command], sources, reports))[0]
    return REDIS.call(partial(_evaluate, command, script))


def run_all(calls: Sequence[Call], commands: Sequence[Command] = ()) -> list[Any]:
    """Run scripts, then ``commands``; return the replies in order.

    One round trip, in a cluster one to each node. Raises RedisDown if one of them failed by an
    outage; others may have run, but every script is safe to repeat, so the caller may repeat all.
    """
    sources = {call.script.sha: call.script.source for call in calls}
    sent = [("EVALSHA", c.script.sha, len(c.keys), *c.keys, *c.args) for c in calls] + [*commands]
    if not sent:
        return []
    reports = _take_reports(sent)
    return REDIS.call(partial(_pipeline, sent, sources, reports))


def run_all_on_replicas(
    first: Sequence[Command], calls: Sequence[Call], commands: Sequence[Command]
) -> list[Any]:
    """Run the commands ``first``, then scripts and ``commands``, on replicas; return all replies.

    All of them only read. One round trip, in a cluster one to each node. Raises errors of redis-py:
    the caller turns to the master.
    """
    sources = {call.script.sha: call.script.source for call in calls}
    scripts = [("EVALSHA_RO", c.script.sha, len(c.keys), *c.keys, *c.args) for c in calls]

    def send(sent: Sequence[Command]) -> list[Any]:
        if settings().redis_cluster:
            return cluster.send(connections.reader(), sent)
        return connections.exchange(connections.reader(), sent)

    try:
        return _pipeline([*first, *scripts, *commands], sources, send=send)
    except Exception:
        connections.forget_reader()
        raise


def delete_commands(keys: Iterable[str]) -> list[tuple[Argument, ...]]:
    """Return the commands that delete ``keys``: one, in a cluster one per hash tag."""
    if not settings().redis_cluster:
        return [("UNLINK", *together)] if (together := tuple(keys)) else []
    by_tag: dict[str, list[str]] = {}
    for key in keys:
        by_tag.setdefault(tag_of(key), []).append(key)
    return [("UNLINK", *together) for together in by_tag.values()]


def pipeline(commands: Sequence[Command]) -> list[Any]:
    """Run commands; return the replies in order. One round trip, in a cluster one to each node.
    Raises RedisDown."""
    return run_all((), commands)


def nodes() -> dict[str, Any]:
    """Return name -> client of each primary node. Raises RedisDown."""

    def connect_all() -> dict[str, Any]:
        if not settings().redis_cluster:
            return {"redis": connections.client()}
        return {
            node.name: connections.client().get_redis_connection(node)
            for node in connections.client().get_primaries()
        }

    return REDIS.call(connect_all)


def send_to_node(node: Any, commands: Sequence[Command]) -> list[Any]:
    """Run commands on one of the ``nodes``; return the replies in order, errors included.
    One round trip. Raises RedisDown."""

    def send() -> list[Any]:
        pipe = node.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        try:
            return list(pipe.execute(raise_on_error=False))
        except (RedisConnectionError, RedisTimeoutError):
            if settings().redis_cluster:
                cluster.refresh_topology(connections.client())
            raise

    return REDIS.call(send)


def _pipeline(
    commands: Sequence[Command],
    sources: Mapping[str, str],
    reports: Sequence[Command] = (),
    send: Callable[[Sequence[Command]], list[Any]] | None = None,
) -> list[Any]:
    """Send ``commands`` with ``reports``, whose replies are ignored; return the replies.
    A script that a node has not cached is sent there once as EVAL, in a second round trip."""
    send = send or _send
    replies = send([*commands, *reports])[: len(commands)]
    unknown = [i for i, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
    if unknown:
        again, loaded = [], set()
        for command in (commands[index] for index in unknown):
            script_on_node = (command[1], connections.name_node(command))
            new = script_on_node not in loaded
            verb = str(command[0]).replace("EVALSHA", "EVAL")
            again.append((verb, sources[str(command[1])], *command[2:]) if new else command)
            loaded.add(script_on_node)
        for index, reply in zip(unknown, send(again), strict=True):
            replies[index] = reply
    for reply in replies:
        for part in reply if isinstance(reply, list) else (reply,):
            if isinstance(part, Exception):  # a script for several targets returns one per target
                raise part
    return replies


def _send(commands: Sequence[Command]) -> list[Any]:
    """Send commands; return the replies in order, errors included."""
    if settings().redis_cluster:
        return cluster.send(connections.client(), commands, _ROLES)
    return _send_to_master(commands)


def _send_to_master(commands: Sequence[Command]) -> list[Any]:
    """Send commands to a single Redis, with ``READ_ROLE`` first when it is due."""
    if not terms.is_role_due(""):
        return connections.exchange(connections.client(), commands)
    role, *replies = connections.exchange(connections.client(), [terms.READ_ROLE, *commands])
    terms.observe_role("", role)
    return replies


def _execute(command: Command) -> Any:
    """Send one command to a single Redis; return its reply, or raise it if it is an error."""
    [reply] = _send_to_master([command])
    if isinstance(reply, Exception):
        raise reply
    return reply


def _take_reports(commands: Sequence[Command]) -> list[Command]:
    """Return what to send along with ``commands``, mostly nothing."""
    reports = sampler.sample(commands)
    if unreported and REDIS.state == "closed":
        reports += breaker_reports.take_reports(commands[0])
    return reports


def _evaluate(command: Command, script: Script) -> Any:
    """Send the EVALSHA of a script to a single Redis, as EVAL if it has not cached the script."""
    try:
        return _execute(command)
    except NoScriptError:
        return _execute(("EVAL", script.source, *command[2:]))


_ROLES = cluster.Roles(terms.READ_ROLE, terms.is_role_due, terms.observe_role)
