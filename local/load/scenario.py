"""Base of all scenarios: requests, the rows before them, and comparisons after them."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, NamedTuple, TypeVar

from pymysql.cursors import SSCursor

from local.load.api_reader import ApiReader
from local.load.requests import KINDS, Expectation, Reaction, Request, predict
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

Key = TypeVar("Key")


class Comparison(NamedTuple):
    """Differences between the stores and the file after a replay.

    ``totals``: name -> (file, rows, API), summed over all ``of``. ``notes``: what else was
    compared. ``differences`` is empty when all agree.
    """

    of: str
    totals: Mapping[str, tuple[int, int, int]]
    differences: Sequence[str]
    notes: Sequence[str] = ()


class Scenario(ABC):
    """Requests to play. All users in ``user_ids`` have a session before it begins.

    ``kinds``: the kinds of reactions that it changes. ``after``: the reactions that must be on
    at the end, set by ``prepare``.
    """

    kinds: Set[str] = frozenset()

    def __init__(
        self,
        requests: Sequence[Request],
        user_ids: Iterable[int] = (),
        keep: Callable[[Reaction], bool] | None = None,
    ) -> None:
        """``user_ids``: users besides the senders. ``keep``: selects rows; None selects none."""
        self.requests = requests
        self.user_ids = sorted({request.user_id for request in requests} | set(user_ids))
        self.after: Set[Reaction] = frozenset()
        self._keep = keep

    def prepare(self, stack: Stack) -> list[Expectation]:
        """Return the expectation of each request, given the current rows."""
        expectations, self.after = predict(self.requests, self.read(stack))
        return expectations

    def read(self, stack: Stack) -> set[Reaction]:
        """Return the selected reactions that are on, from MySQL. One statement."""
        if self._keep is None:
            return set()
        types = {KINDS[kind].of for kind in self.kinds}
        connection = connect_mysql(stack.mysql_url)
        with closing(connection), connection.cursor(SSCursor) as cursor:
            cursor.execute(
                "SELECT kind, target_id, actor_id FROM reaction"
                " WHERE target_type IN %s AND kind IN %s AND state = 1",
                (sorted(types), sorted(self.kinds)),
            )
            return {reaction for row in cursor if self._keep(reaction := Reaction(*row))}

    @abstractmethod
    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Compare rows and answers of the API with the file. Raises CommandError."""


def compare_rows(after: Set[Any], rows: Set[Any]) -> list[str]:
    """Return one difference for each wrong row and for each missing row."""
    return [
        *(f"{row} is in the rows, not in the file" for row in sorted(rows - after)),
        *(f"{row} is in the file, not in the rows" for row in sorted(after - rows)),
    ]


def compare_totals(
    of: str,
    name: str,
    totals: Mapping[int, int],
    expected: Callable[[int], int],
    source: str = "by the API",
) -> list[str]:
    """Return a difference for each id whose total is not the expected one."""
    return [
        f"{of} {id_} has {total} {name} {source}, {expected(id_)} by the file"
        for id_, total in totals.items()
        if total != expected(id_)
    ]


def compare_states(after: Set[Key], states: Mapping[Key, bool]) -> list[str]:
    """Return a difference for each reaction whose state by the API is wrong."""
    return [
        f"{reaction} is {'on' if state else 'off'} by the API"
        for reaction, state in states.items()
        if state is not (reaction in after)
    ]


def compare_lists(
    name: str, lists: Mapping[Key, Sequence[int]], expected: Callable[[Key], Collection[int]]
) -> list[str]:
    """Return at most one difference a list: ids missing, unexpected or repeated.

    ``name`` is a format for the key of a list.
    """
    differences = []
    for key, ids in lists.items():
        if sorted(ids) != sorted(expected(key)):
            wrong = sorted(set(ids) ^ set(expected(key))) or "some twice"
            differences.append(f"{name.format(key)} by the API are wrong: {wrong}"[:200])
    return differences


def add_up(reported: Mapping[Key, int], *stored: Callable[[Key], int]) -> tuple[int, int, int]:
    """Return the sums over the keys of ``reported``: of the file, of the rows, of the API."""
    expected, counted = (sum(map(count, reported)) for count in stored)
    return expected, counted, sum(reported.values())


def rank_ids(ids: Iterable[int], count: int) -> list[int]:
    """Return the ``count`` most frequent ids, the most frequent first, then by id."""
    counts = Counter(ids)
    return sorted(counts, key=lambda id_: (-counts[id_], id_))[:count]
