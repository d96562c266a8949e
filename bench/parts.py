"""Where the time of some work goes: to each kind of statement, to each script, to Python."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any
from unittest import mock

from pymysql.connections import Connection

from plaza.infra.mysql.driver import SharedTlsConnection as Shared
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call
from plaza.reactions import redis_keys

_STATEMENT = re.compile(
    r"\s*(\w+)\b.*?\b(?:FROM|INTO|STRAIGHT_JOIN|UPDATE)\s+(?!JSON_TABLE)(\w+)", re.DOTALL
)
_BEGINNING = 100
_names: dict[str | bytes, str] = {}


@dataclass(slots=True)
class Part:
    """Statements or script runs of one kind. ``took_s``: what Python waited for them. ``rows``: of
    statements; of scripts, their keys."""

    took_s: float = 0.0
    calls: int = 0
    rows: int = 0


@dataclass(slots=True)
class Parts:
    """The parts of some work by name, and the time of all of it, ``took_s``. ``beside_s``: of the
    parts that other threads waited for meanwhile."""

    took_s: float = 0.0
    beside_s: float = 0.0
    by_name: dict[str, Part] = field(default_factory=dict)
    _sent: str = ""

    @property
    def python_s(self) -> float:
        """Return the time in which the thread of the work waited for nothing of these."""
        return self.took_s + self.beside_s - sum(part.took_s for part in self.by_name.values())

    @contextmanager
    def record(self) -> Iterator[None]:
        """Add the statements and scripts of the block, and its time."""
        query, begin, commit = Connection.query, Connection.begin, Connection.commit
        send, receive, run_all = Shared.send, Shared.receive, redis.run_all
        owner = get_ident()

        def run_query(connection: Any, sql: str | bytes, unbuffered: bool = False) -> int:
            connection.receive()
            name = _name(sql)
            rows: int = self._time(name, lambda: query(connection, sql, unbuffered), owner)
            self.by_name[name].rows += rows
            return rows

        def send_write(connection: Any, sql: str) -> None:
            connection.receive()
            self._sent = _name(sql)
            self._time(self._sent, lambda: send(connection, sql), owner)

        def read_reply(connection: Any) -> None:
            if connection._is_pending:
                self._time(self._sent, lambda: receive(connection), owner, calls=0)
                self.by_name[self._sent].rows += connection.affected_rows()

        def run_commit(connection: Any) -> None:
            connection.receive()
            self._time("COMMIT", lambda: commit(connection), owner)

        def run_scripts(calls: Sequence[Call], commands: Sequence[Any] = ()) -> list[Any]:
            if not (calls or commands):
                return []
            names = {call.script.name for call in calls} or {str(c[0]) for c in commands}
            name = f"Redis: {' '.join(sorted(names))}"
            replies: list[Any] = self._time(
                name, lambda: run_all(calls, commands), owner, len(calls) + len(commands)
            )
            self.by_name[name].rows += sum(len(call.keys) for call in calls)
            return replies

        on_known_nodes = redis_keys.run_on_known_nodes
        with (
            mock.patch.object(Connection, "query", run_query),
            mock.patch.object(
                Connection, "begin", lambda c: self._time("BEGIN", lambda: begin(c), owner)
            ),
            mock.patch.object(Connection, "commit", run_commit),
            mock.patch.object(Shared, "send", send_write),
            mock.patch.object(Shared, "receive", read_reply),
            mock.patch.object(redis, "run_all", run_scripts),
            mock.patch.object(on_known_nodes, "__defaults__", ((), run_scripts)),
        ):
            began_s = time.perf_counter()
            yield
            self.took_s += time.perf_counter() - began_s

    def _time(self, name: str, work: Callable[[], Any], owner: int, calls: int = 1) -> Any:
        part = self.by_name.setdefault(name, Part())
        began_s = time.perf_counter()
        result = work()
        took_s = time.perf_counter() - began_s
        part.took_s += took_s
        part.calls += calls
        if get_ident() != owner:
            self.beside_s += took_s
        return result


def _name(sql: str | bytes) -> str:
    """Return the verb and the table of a statement. A batch's has 100 kB, so its beginning is
    looked up first: it has no values."""
    beginning = sql[:_BEGINNING]
    if beginning not in _names:
        text = sql if isinstance(sql, str) else sql.decode(errors="replace")
        match = _STATEMENT.match(text)
        _names[beginning] = " ".join(match.groups()) if match else text.split(None, 1)[0]
    return _names[beginning]
