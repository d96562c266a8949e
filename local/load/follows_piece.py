"""A file of follows as a replay plays it: its requests, and what is compared."""

from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import closing

from pymysql.cursors import SSCursor

from local.load.asking import Asker
from local.load.follows import (
    Follow,
    Forecast,
    Pair,
    Seen,
    add_up,
    choose_askers,
    choose_pairs,
    find_differences,
    find_most_followed,
    foresee,
    plan,
)
from local.load.plans import Comparison
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

_LISTED = 20  # the most followed: their lists are read through the API
_PAIRS = 200  # whose common follows are
_ASKED_PER_USER = 10  # followers of each of these, and as many others, asked whether they follow


class FollowsPiece:
    """What is played of a file of follows."""

    kinds = frozenset({"follow"})

    def __init__(self, follows: Iterable[Follow], duplicates: float = 0.0, seed: int = 0) -> None:
        self.requests = plan(follows, duplicates, seed)
        self.user_ids = sorted(
            {user_id for r in self.requests for user_id in (r.user_id, r.followee_id)}
        )
        self._seed = seed
        self._after: Set[Follow] = frozenset()

    def prepare(self, stack: Stack) -> list[Forecast]:
        """What each request must come to, by what is there already. Its users are made with
        their sessions."""
        before = read_follows(stack.mysql_url, set(self.user_ids))
        forecasts, self._after = foresee(self.requests, before)
        return forecasts

    async def compare(self, stack: Stack, asker: Asker, tell: Callable[[str], None]) -> Comparison:
        """Rows, totals and lists beside what the file says. Raises LocalError."""
        users = set(self.user_ids)
        rows = read_follows(stack.mysql_url, users)
        ours = [follow for follow in self._after if users.issuperset(follow)]
        pairs = choose_pairs(ours, _PAIRS, self._seed)
        listed = find_most_followed(ours, _LISTED)
        asked = choose_askers(ours, self.user_ids, listed, _ASKED_PER_USER, self._seed)
        seen = Seen(
            totals=await ask_totals(asker, self.user_ids, tell),
            followers=await ask_lists(asker, listed, "followers", tell),
            following=await ask_lists(asker, listed, "following", tell),
            common=await ask_common(asker, pairs, tell),
            mine=await ask_mine(asker, asked, tell),
        )
        some = sum(bool(ids) for ids in seen.common.values())
        return Comparison(
            "of its users",
            add_up(self._after, rows, seen),
            find_differences(self._after, rows, seen),
            [
                f"profiles of {len(seen.totals):,} users",
                f"all followers and following of the {len(listed)} most followed",
                f"what {len(asked)} pairs of a user and one of these are answered: follows or not",
                f"common follows of {len(pairs)} pairs, {some} of which have some",
            ],
        )


def read_follows(mysql_url: str, user_ids: Set[int]) -> set[Follow]:
    """The follows that are on, of and by these users."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(
            "SELECT actor_id, target_id FROM reaction"
            " WHERE target_type = 'user' AND kind = 'follow' AND state = 1"
        )
        return {Follow(*row) for row in cursor if not user_ids.isdisjoint(row)}


async def ask_totals(
    asker: Asker, user_ids: Sequence[int], tell: Callable[[str], None]
) -> dict[int, tuple[int, int]]:
    """User -> (followers, following) by the API. Raises LocalError."""

    async def ask(user_id: int) -> tuple[int, int]:
        profile = await asker.ask(f"/users/{user_id}")
        return profile["followers"], profile["following"]

    return await asker.ask_each(user_ids, ask, lambda text: tell(f"profiles, {text}"))


async def ask_lists(
    asker: Asker, user_ids: Sequence[int], name: str, tell: Callable[[str], None]
) -> dict[int, list[int]]:
    """User -> who is in their list ``name``, by all pages of the API. Raises LocalError."""

    async def ask(user_id: int) -> list[int]:
        items = await asker.read_list(f"/users/{user_id}/{name}")
        return [int(item["user"]["id"]) for item in items]

    return await asker.ask_each(user_ids, ask, lambda text: tell(f"{name}, {text}"))


async def ask_common(
    asker: Asker, pairs: Sequence[Pair], tell: Callable[[str], None]
) -> dict[Pair, list[int]]:
    """Pair -> whom both follow, as the first of them is told. Raises LocalError."""

    async def ask(pair: Pair) -> list[int]:
        path = f"/users/{pair[1]}/common-follows"
        items = await asker.read_list(path, pair[0])
        return [int(item["user"]["id"]) for item in items]

    return await asker.ask_each(pairs, ask, lambda text: tell(f"common follows, {text}"))


async def ask_mine(
    asker: Asker, pairs: Sequence[Pair], tell: Callable[[str], None]
) -> dict[Pair, bool]:
    """Pair -> whether the first follows the second, as the first is answered. Raises LocalError."""

    async def ask(pair: Pair) -> bool:
        profile = await asker.ask(f"/users/{pair[1]}", user_id=pair[0])
        return bool(profile["mine"]["following"])

    return await asker.ask_each(pairs, ask, lambda text: tell(f"own follows, {text}"))
