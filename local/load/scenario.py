"""What every scenario has: requests, what is there before them, and a comparison after them."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import closing
from typing import Any, NamedTuple

from pymysql.cursors import SSCursor

from local.load.api_reader import ApiReader
from local.load.requests import KINDS, Expectation, Reaction, Request, predict
from local.stack.servers import connect_mysql
from local.stack.stack import Stack


class Comparison(NamedTuple):
    """What is there after a replay, beside what the file says.

    ``totals``: name -> (what the file says, rows, API), of all ``of`` what; ``notes`` say what
    else was compared. ``differences`` are empty when all agree.
    """

    of: str
    totals: Mapping[str, tuple[int, int, int]]
    differences: Sequence[str]
    notes: Sequence[str] = ()


class Scenario(ABC):
    """What is played. Everybody in ``user_ids`` has a session before it begins.

    ``kinds``: of which kinds of reactions it makes events. ``after``: the reactions that must be on
    in the end, known once it is prepared.
    """

    kinds: Set[str] = frozenset()

    def __init__(
        self,
        requests: Sequence[Request],
        user_ids: Iterable[int] = (),
        keep: Callable[[Reaction], bool] | None = None,
    ) -> None:
        """``user_ids``: who takes part beside those who send; ``keep``: which rows concern it,
        None where nobody reacts."""
        self.requests = requests
        self.user_ids = sorted({request.user_id for request in requests} | set(user_ids))
        self.after: Set[Reaction] = frozenset()
        self._keep = keep

    def prepare(self, stack: Stack) -> list[Expectation]:
        """What each request must come to, by what is there already."""
        expectations, self.after = predict(self.requests, self.read(stack))
        return expectations

    def read(self, stack: Stack) -> set[Reaction]:
        """The rows of reactions that are on, of those that concern it."""
        if self._keep is None:
            return set()
        return read_reactions(stack.mysql_url, self.kinds, self._keep)

    @abstractmethod
    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """What is there now, beside what the file says. Raises LocalError."""


def read_reactions(
    mysql_url: str, kinds: Collection[str], keep: Callable[[Reaction], bool]
) -> set[Reaction]:
    """The rows of reactions of these kinds that are on, of those to ``keep``."""
    types = {KINDS[kind].of for kind in kinds}
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(
            "SELECT kind, target_id, actor_id FROM reaction"
            " WHERE target_type IN %s AND kind IN %s AND state = 1",
            (sorted(types), sorted(kinds)),
        )
        return {one for row in cursor if keep(one := Reaction(*row))}


def compare_rows(after: Set[Any], rows: Set[Any]) -> list[str]:
    """As sets, one by one: a wrong one and a missing one are two differences."""
    return [
        *(f"{one} is in the rows, not in the file" for one in sorted(rows - after)),
        *(f"{one} is in the file, not in the rows" for one in sorted(after - rows)),
    ]


def compare_list(name: str, found: Sequence[int], expected: Collection[int]) -> list[str]:
    """At most one difference: a list by the API has not what it should have, each once."""
    if sorted(found) == sorted(expected):
        return []
    wrong = sorted(set(found) ^ set(expected)) or "some twice"
    return [f"{name} by the API are wrong: {wrong}"[:200]]
