"""Where the time of some work goes: to each kind of statement, to each script, to Python."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from pymysql.connections import Connection

from plaza.infra.redis import redis
from plaza.infra.redis.commands import Call

_STATEMENT = re.compile(
    r"\s*(\w+)\b.*?\b(?:FROM|INTO|STRAIGHT_JOIN|UPDATE)\s+(?!JSON_TABLE)(\w+)", re.DOTALL
)


@dataclass(slots=True)
class Part:
    """Statements or script runs of one kind. ``rows``: of statements; of scripts, their keys."""

    took_s: float = 0.0
    calls: int = 0
    rows: int = 0


@dataclass(slots=True)
class Parts:
    """The parts of some work by name, and the time of all of it, ``took_s``."""

    took_s: float = 0.0
    by_name: dict[str, Part] = field(default_factory=dict)

    @property
    def python_s(self) -> float:
        """Return the time outside of statements and scripts."""
        return self.took_s - sum(part.took_s for part in self.by_name.values())

    @contextmanager
    def record(self) -> Iterator[None]:
        """Add the statements and scripts of the block, and its time."""
        query, begin, commit = Connection.query, Connection.begin, Connection.commit
        run_all = redis.run_all

        def run_query(connection: Any, sql: str | bytes, unbuffered: bool = False) -> int:
            name = _name(sql if isinstance(sql, str) else sql.decode(errors="replace"))
            rows: int = self._time(name, lambda: query(connection, sql, unbuffered))
            self.by_name[name].rows += rows
            return rows

        def run_scripts(calls: Sequence[Call], commands: Sequence[Any] = ()) -> list[Any]:
            if not (calls or commands):
                return []
            names = {call.script.name for call in calls} or {str(c[0]) for c in commands}
            name = f"Redis: {' '.join(sorted(names))}"
            replies: list[Any] = self._time(
                name, lambda: run_all(calls, commands), len(calls) + len(commands)
            )
            self.by_name[name].rows += sum(len(call.keys) for call in calls)
            return replies

        with (
            mock.patch.object(Connection, "query", run_query),
            mock.patch.object(Connection, "begin", lambda c: self._time("BEGIN", lambda: begin(c))),
            mock.patch.object(
                Connection, "commit", lambda c: self._time("COMMIT", lambda: commit(c))
            ),
            mock.patch.object(redis, "run_all", run_scripts),
        ):
            began_s = time.perf_counter()
            yield
            self.took_s += time.perf_counter() - began_s

    def _time(self, name: str, work: Callable[[], Any], calls: int = 1) -> Any:
        part = self.by_name.setdefault(name, Part())
        began_s = time.perf_counter()
        result = work()
        part.took_s += time.perf_counter() - began_s
        part.calls += calls
        return result


def _name(sql: str) -> str:
    match = _STATEMENT.match(sql)
    return " ".join(match.groups()) if match else sql.split(None, 1)[0]
