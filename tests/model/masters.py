"""The masters of a model: two nodes, of which one is master at a time, or believes to be.

The nodes are two databases of one Redis; the login for a replica may only read. A process is
connected to one of them; the endpoint leads new connections to the master. A promotion makes the
other node master, with a new term. Then the old one is its replica, or is cut off from it and goes
on as a master until the partition ends. Connections stay, or are cut. A replica gets the data of
its master as a whole, from time to time: what is written in between is lost with its master.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pytest
import redis as redis_py
from greenlet import getcurrent, greenlet
from redis.exceptions import ReadOnlyError

from plaza.infra.redis import connections, terms
from plaza.infra.redis.terms import Node
from plaza.infra.runtime import settings
from tests.model.scheduler import Scheduler
from tests.support.servers import LOGIN, REPLICA_LOGIN

TERM_AGE_S = 0.02  # at most, of a name that a process has read
# A command; one of a script, of Redis 7.0 and of later versions.
_REFUSED = re.compile("no permissions|script can't (run|access)|ACL failure in script")
# Replaces the keys of the database ARGV[2] by the keys of ARGV[1].
_COPY = """
redis.call('SELECT', ARGV[2])
local old = redis.call('KEYS', '*')
if #old > 0 then redis.call('UNLINK', unpack(old)) end
redis.call('SELECT', ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do
  if key ~= 'model:now' then redis.call('COPY', key, key, 'DB', ARGV[2]) end
end
"""


@dataclass(eq=False)
class Server:
    """One node: a database, and its term, or its master's."""

    database: int
    term: str
    predecessor: str = "0"
    is_master: bool = True


@dataclass
class Masters:
    """Two nodes, the connections of processes to them, and their promotions."""

    scheduler: Scheduler
    master: Server = field(init=False)
    other: Server = field(init=False)
    promotions: int = 0
    promoted_s: float = 0.0
    old: list[tuple[Server, Node]] = field(default_factory=list)  # outlived a promotion
    connections: MutableMapping[greenlet, tuple[Server, Node]] = field(
        default_factory=WeakKeyDictionary
    )
    _selected: tuple[int, bool] | None = None
    _admin: Any = field(init=False)

    def __post_init__(self) -> None:
        self._admin = redis_py.Redis.from_url(settings.settings().redis_url)
        self.master = Server(0, "term0")
        self.other = Server(1, "term0", is_master=False)

    # -- what happens to the nodes

    def replicate(self) -> None:
        """Copy the data of the master to its replica; not across a partition."""
        if not self.other.is_master:
            self.copy(self.master, self.other)

    def promote(self, *, cut_off: bool, keep_connections: bool) -> None:
        """Make the other node master. Its predecessor goes on as a master when it is cut off."""
        old, new = self.master, self.other
        self.promotions += 1
        self.promoted_s = self._now_s
        new.term, new.predecessor = f"term{self.promotions}", old.term
        new.is_master, old.is_master = True, cut_off
        self.master, self.other = new, old
        if not cut_off:
            self._follow()
        if keep_connections:
            self.old += list(self.connections.values())[-1:]
        else:
            self.connections.clear()

    def rejoin(self) -> None:
        """End a partition: the node that was cut off becomes a replica of the master."""
        if self.other.is_master:
            self.other.is_master = False
            self._follow()

    def _follow(self) -> None:
        self.other.term, self.other.predecessor = self.master.term, self.master.predecessor
        self.replicate()

    # -- the connections of processes

    def connect(self) -> tuple[Server, Node]:
        """Return the node that the current process is connected to, and what it knows of it.
        The checks of the model are always connected to the master."""
        process = getcurrent()
        if process is self.scheduler.main:
            return self.master, self._learn(self.master)
        if process not in self.connections:
            self.connections[process] = self.master, self._learn(self.master)
        return self.connections[process]

    def connect_to_other(self, process: greenlet) -> None:
        """Connect a process to the node that is cut off, if one is."""
        if self.other.is_master:
            self.connections[process] = self.other, self._learn(self.other)

    def replies_as_master(self, command: Sequence[Any]) -> bool:
        """Return whether the reply that the current process just got to ``command``, which names a
        term, is one of the master. One to an earlier term is not, if the process has read the
        present one along with it, and so runs the command again; nor within the time in which a
        process may not know of a promotion (docs/limits.md)."""
        server, node = self.connect()
        if server is not self.master or self.master.term in command:
            return server is self.master
        is_run_again = node.term == self.master.term
        return not is_run_again and self._now_s - self.promoted_s > TERM_AGE_S

    @property
    def _now_s(self) -> float:
        return self.scheduler.clock.now_us / 1e6

    def _learn(self, server: Server) -> Node:
        now_s = self._now_s
        return Node(self.name(server), server.predecessor, now_s, 0, now_s)

    def name(self, server: Server) -> str:
        """Return the term of a node, "" for a replica."""
        return server.term if server.is_master else ""

    def disconnect(self) -> None:
        """Close the connection of the current process."""
        self.connections.pop(getcurrent(), None)

    def observe_role(self, _: str, __: Any) -> None:
        """Replace ``terms.observe_role``: read the term from the model's node."""
        server, node = self.connect()
        term = self.name(server)
        node = node._replace(term=term, predecessor=server.predecessor, checked_s=self._now_s)
        self.connections[getcurrent()] = server, node
        if not term:
            raise ReadOnlyError("the node is a replica")

    def select(self, client: Any) -> Any:
        """Lead the connection of ``client`` to the node of the current process; return it."""
        server = self.connect()[0]
        selected = server.database, self.may_write(server)
        if selected != self._selected:
            client.execute_command("AUTH", *(LOGIN if selected[1] else REPLICA_LOGIN))
            client.execute_command("SELECT", server.database)
            self._selected = selected
        return client

    @staticmethod
    def check_refused(replies: Iterable[Any]) -> None:
        """Raise ReadOnlyError when the node refused a write, also one of a script."""
        for reply in replies:
            if isinstance(reply, list):
                Masters.check_refused(reply)
            elif isinstance(reply, Exception) and _REFUSED.search(str(reply)):
                raise ReadOnlyError("the node is a replica")

    def may_write(self, server: Server) -> bool:
        """Return whether a node accepts writes."""
        return server.is_master

    def copy(self, old: Server, new: Server) -> None:
        """Replace the data of ``new`` by the data of ``old``."""
        self._admin.eval(_COPY, 0, old.database, new.database)


class Nodes(MutableMapping[str, Node]):
    """Replaces ``terms.known_nodes``: the node of the current process."""

    def __init__(self, masters: Masters) -> None:
        self.masters = masters

    def __getitem__(self, name: str) -> Node:
        if name:
            raise KeyError(name)
        return self.masters.connect()[1]

    def __setitem__(self, name: str, node: Node) -> None:
        server, _ = self.masters.connect()
        self.masters.connections[getcurrent()] = server, node

    def __delitem__(self, name: str) -> None:
        self.masters.disconnect()

    def __iter__(self) -> Iterator[str]:
        return iter([""])

    def __len__(self) -> int:
        return 1


def hook_masters(masters: Masters, patch: pytest.MonkeyPatch) -> None:
    """Make the product see the model's nodes."""
    client = connections.client
    patch.setattr(terms, "MAX_TERM_AGE_S", TERM_AGE_S)
    patch.setattr(terms, "known_nodes", Nodes(masters))
    patch.setattr(connections, "client", lambda: masters.select(client()))
    patch.setattr(connections, "forget_client", masters.disconnect)
    patch.setattr(terms, "observe_role", masters.observe_role)
