"""Where the time of some work goes: to each packet and statement, each script, and Python."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any
from unittest import mock

from pymysql.connections import Connection

from plaza.core.reactions import redis_keys
from plaza.infra.mysql.driver import SharedTlsConnection as Shared
from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call

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

    @property
    def python_s(self) -> float:
        """Return the time in which the thread of the work waited for nothing of these."""
        return self.took_s + self.beside_s - sum(part.took_s for part in self.by_name.values())

    @contextmanager
    def record(self) -> Iterator[None]:
        """Add the statements and scripts of the block, and its time."""
        query, run, run_all = Connection.query, Shared._run, redis.run_all
        owner = get_ident()

        def run_query(connection: Any, sql: str | bytes, unbuffered: bool = False) -> int:
            name = _name(sql)
            rows: int = self._time(name, lambda: query(connection, sql, unbuffered), owner)
            self.by_name[name].rows += rows
            return rows

        def run_packet(connection: Any, *last: str) -> Any:
            statements = [*connection._waiting, *last]
            if not statements:
                return run(connection)
            name = _name_packet(statements)
            results = self._time(name, lambda: run(connection, *last), owner)
            self.by_name[name].rows += sum(len(rows or ()) for rows in results)
            return results

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
            mock.patch.object(Shared, "_run", run_packet),
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


def _name_packet(statements: Sequence[str]) -> str:
    names = [_name(statement) for statement in statements]
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}, {len(names)} in a packet"


def _name(sql: str | bytes) -> str:
    """Return the verb and the table of a statement. A batch's has 100 kB, so its beginning is
    looked up first: it has no values."""
    beginning = sql[:_BEGINNING]
    if beginning not in _names:
        text = sql if isinstance(sql, str) else sql.decode(errors="replace")
        match = _STATEMENT.match(text)
        _names[beginning] = " ".join(match.groups()) if match else text.split(None, 1)[0]
    return _names[beginning]
