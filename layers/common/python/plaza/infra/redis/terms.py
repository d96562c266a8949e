"""Terms and clocks of the nodes that this process is connected to."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from redis.exceptions import ReadOnlyError

from plaza.infra.redis.commands import Command
from plaza.infra.runtime import clock
from plaza.infra.runtime.process import on_reset
from plaza.infra.runtime.settings import settings

MAX_CLOCK_LEAD_US = 1_000_000  # of a node's clock over this process's
MAX_TERM_AGE_S = 1.0  # a term is read again with the next command after this time
# Lower case: redis-py parses the reply to INFO, and would read a term of digits as a number.
READ_ROLE: Command = ("info", "replication")


class Node(NamedTuple):
    """A master that this process is connected to: its term and its clock.

    ``term`` is its ``master_replid``: each promotion and each restart makes a new one. Of a
    promoted replica, ``predecessor`` is the term of the master before it. Both were read at
    ``checked_s`` of this process's monotonic clock.
    ``clock_offset_us`` is a lower bound of the node's TIME minus this process's monotonic clock,
    measured at ``measured_s``.
    """

    term: str
    predecessor: str
    checked_s: float
    clock_offset_us: int
    measured_s: float

    def deadline_us(self, until_s: float) -> int:
        """Return the time ``until_s`` of this process's monotonic clock by the node's clock.

        A node whose clock is ahead of this process's by more than ``MAX_CLOCK_LEAD_US`` gets an
        earlier time, which it may have passed: it must not order changes by its clock.
        """
        left_us = int((until_s - clock.monotonic_s()) * 1e6)
        last_us = clock.now_us() + left_us + MAX_CLOCK_LEAD_US
        return min(self.clock_offset_us + int(until_s * 1e6), last_us)


known_nodes: dict[str, Node] = {}
"""Name -> node; a single Redis has the name ""."""

on_reset(known_nodes.clear)


def read_node_info(connection: Any) -> None:
    """Read the clock and the term of a newly connected node. One round trip. Raises
    ReadOnlyError for a replica, unless it is one of a cluster."""
    asked = [("TIME",), READ_ROLE]
    connection.send_packed_command(connection.pack_commands(asked), check_health=False)
    seconds, microseconds = connection.read_response()
    now_s = clock.monotonic_s()
    role = connection.read_response()
    clock_offset_us = int(seconds) * 1_000_000 + int(microseconds) - int(now_s * 1e6)
    name = f"{connection.host}:{connection.port}" if settings().redis_cluster else ""
    known_nodes[name] = Node("", "", 0.0, clock_offset_us, now_s)
    observe_role(name, role)


def _read_field(name: str, info: str | bytes) -> str:
    """Return the value of a field in a reply of INFO, "" without it."""
    text = info if isinstance(info, str) else info.decode()
    match = re.search(rf"^{name}:(\w+)", text, re.MULTILINE)
    return match[1] if match else ""


def is_role_due(name: str) -> bool:
    """Return whether the next commands to a node have to be sent with ``READ_ROLE`` first."""
    node = known_nodes.get(name)
    return node is not None and (
        not node.term or clock.monotonic_s() - node.checked_s >= MAX_TERM_AGE_S
    )


def observe_role(name: str, info: str | bytes | Exception) -> None:
    """Use a node's reply to ``READ_ROLE``, unless it is an error. A replica has no term; in a
    cluster it redirects commands. Raises ReadOnlyError for a single Redis that became one, so that
    the client is closed."""
    if isinstance(info, Exception):  # BUSY: the commands after it get the same error
        return
    node, is_replica = known_nodes[name], _read_field("role", info) == "slave"
    known_nodes[name] = node._replace(
        term="" if is_replica else _read_field("master_replid", info),
        predecessor=_read_field("master_replid2", info),
        checked_s=clock.monotonic_s(),
    )
    if is_replica and not settings().redis_cluster:
        raise ReadOnlyError("the node is a replica")
