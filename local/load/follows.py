"""A file of follows: what is in it, what a replay sends for it, what must be true after it.

A file is CSV, gzipped or not: ``follower_id,followee_id``. Each row is a follow, of a
user by a user.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from local.load import files
from local.load.files import read_whole
from local.load.plans import Call, Copies, draw_copies, find_wrong_change

COLUMNS = ["follower_id", "followee_id"]

Pair = tuple[int, int]  # who asks, and with whom they have follows in common


class Follow(NamedTuple):
    """One line of a file, and a follow that is on."""

    follower_id: int
    followee_id: int


@dataclass(frozen=True, slots=True)
class Request:
    """``user_id`` follows somebody."""

    user_id: int
    followee_id: int
    copies: Copies = Copies.ONE

    @property
    def act(self) -> str:
        """All that such a file asks for."""
        return "follow"

    def __str__(self) -> str:
        return f"follow of user {self.followee_id} by user {self.user_id}"

    def write(self) -> Call:
        """What is sent."""
        return Call("PUT", f"/users/{self.followee_id}/followers/me")


class Forecast(NamedTuple):
    """Whether a follow ``changes`` anything; it is on afterwards in any case."""

    changes: bool

    def find_wrong(
        self, request: Request, answers: Sequence[Mapping[str, Any]], sure: bool
    ) -> list[str]:
        """What can't be true in the ``answers`` to the copies of ``request``.

        Unless it is ``sure`` how often it was done, only the state after it is known.
        """
        changes = int(self.changes) if sure else None
        return find_wrong_change(request, answers, said="following", on=True, changes=changes)


class Graph:
    """Who follows whom, from both ends."""

    def __init__(self, follows: Iterable[Follow]) -> None:
        self._followers: dict[int, set[int]] = defaultdict(set)
        self._following: dict[int, set[int]] = defaultdict(set)
        for follower_id, followee_id in follows:
            self._followers[followee_id].add(follower_id)
            self._following[follower_id].add(followee_id)

    def followers(self, user_id: int) -> Set[int]:
        """Who follows a user."""
        return self._followers.get(user_id, frozenset())

    def following(self, user_id: int) -> Set[int]:
        """Whom a user follows."""
        return self._following.get(user_id, frozenset())

    def common(self, pair: Pair) -> Set[int]:
        """Whom both follow."""
        return self.following(pair[0]) & self.following(pair[1])


@dataclass(frozen=True, slots=True)
class Seen:
    """What the API shows: (followers, following) of users, and lists of their ids.

    ``mine``: (user, other) -> whether the user is answered that they follow the other.
    """

    totals: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    followers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    following: Mapping[int, Sequence[int]] = field(default_factory=dict)
    common: Mapping[Pair, Sequence[int]] = field(default_factory=dict)
    mine: Mapping[Pair, bool] = field(default_factory=dict)


def read_file(path: Path, limit: int | None = None) -> list[Follow]:
    """The first ``limit`` follows of a file. Raises LocalError, naming the line."""
    return files.read_rows(path, COLUMNS, _read_row, limit)


def parse(lines: Iterable[str], name: str) -> Iterator[Follow]:
    """The follows in ``lines``, the first of which is the header. Raises LocalError."""
    return files.parse_rows(lines, name, COLUMNS, _read_row)


def write_file(path: Path, follows: Iterable[Follow]) -> None:
    """Write a file that ``read_file`` reads."""
    files.write_rows(path, COLUMNS, follows)


def plan(follows: Iterable[Follow], duplicates: float = 0.0, seed: int = 0) -> list[Request]:
    """The requests for ``follows``, in order; a share of them sent twice."""
    draw = draw_copies(duplicates, seed)
    return [Request(*follow, draw()) for follow in follows]


def foresee(requests: Iterable[Request], before: Set[Follow]) -> tuple[list[Forecast], set[Follow]]:
    """What each request must come to, and which follows are on after all of them.

    ``before`` holds what was on.
    """
    on = set(before)
    forecasts = []
    for request in requests:
        follow = Follow(request.user_id, request.followee_id)
        forecasts.append(Forecast(follow not in on))
        on.add(follow)
    return forecasts, on


def find_most_followed(follows: Iterable[Follow], count: int) -> list[int]:
    """The ``count`` users with the most followers, most first."""
    followers: dict[int, int] = defaultdict(int)
    for follow in follows:
        followers[follow.followee_id] += 1
    return sorted(followers, key=lambda user_id: (-followers[user_id], user_id))[:count]


def choose_pairs(follows: Iterable[Follow], count: int, seed: int = 0) -> list[Pair]:
    """``count`` pairs of users who follow somebody, by chance; fewer where there are not so many.

    Every second one is of two who follow the same one: two of all seldom have anything in common.
    """
    chance = random.Random(seed)
    everybody, fans = set(), defaultdict(list)
    for follower_id, followee_id in sorted(set(follows)):
        everybody.add(follower_id)
        fans[followee_id].append(follower_id)
    pools = [sorted(everybody)]
    shared = [of_one for of_one in fans.values() if len(of_one) > 1]
    pairs: dict[Pair, None] = {}
    for _ in range(20 * count):
        if len(pairs) == count or len(everybody) < 2:
            break
        pool = chance.choice(shared if shared and len(pairs) % 2 else pools)
        one, other = chance.sample(pool, 2)
        pairs[one, other] = None
    return list(pairs)


def choose_askers(
    follows: Iterable[Follow],
    user_ids: Sequence[int],
    followees: Sequence[int],
    count: int,
    seed: int = 0,
) -> list[Pair]:
    """(user, followee) for each of ``followees``: up to ``count`` who follow them and as many of
    ``user_ids`` who don't, by chance."""
    chance, graph = random.Random(seed), Graph(follows)
    pairs = []
    for followee_id in followees:
        fans = graph.followers(followee_id)
        others = [user_id for user_id in user_ids if user_id not in fans and user_id != followee_id]
        for pool in (sorted(fans & set(user_ids)), others):
            chosen = chance.sample(pool, min(count, len(pool)))
            pairs += [(user_id, followee_id) for user_id in chosen]
    return pairs


def find_differences(after: Set[Follow], rows: Set[Follow], seen: Seen) -> list[str]:
    """Where rows, the API's totals or its lists are not as the file says.

    As sets, follow by follow: a wrong one and a missing one are two differences.
    """
    differences = [
        f"follow of user {followee_id} by user {follower_id} is in the rows, not in the file"
        for follower_id, followee_id in sorted(rows - after)
    ]
    differences += [
        f"follow of user {followee_id} by user {follower_id} is in the file, not in the rows"
        for follower_id, followee_id in sorted(after - rows)
    ]
    graph = Graph(after)
    for user_id, (followers, following) in seen.totals.items():
        for said, total, expected in (
            ("followers", followers, len(graph.followers(user_id))),
            ("following", following, len(graph.following(user_id))),
        ):
            if total != expected:
                differences.append(
                    f"user {user_id} has {total} {said} by the API, {expected} by the file"
                )
    differences += [
        f"user {user_id} is answered following {str(follows).lower()} of user {followee_id}"
        for (user_id, followee_id), follows in seen.mine.items()
        if follows is not (Follow(user_id, followee_id) in after)
    ]
    lists: list[tuple[str, Sequence[int], Set[int]]] = [
        *((f"followers of user {u}", ids, graph.followers(u)) for u, ids in seen.followers.items()),
        *((f"following of user {u}", ids, graph.following(u)) for u, ids in seen.following.items()),
        *(
            (f"follows that users {pair[0]} and {pair[1]} have in common", ids, graph.common(pair))
            for pair, ids in seen.common.items()
        ),
    ]
    for what, found, should in lists:
        if sorted(found) != sorted(should):
            wrong = sorted(set(found) ^ should) or "some twice"
            differences.append(f"{what} by the API are wrong: {wrong}"[:200])
    return differences


def add_up(after: Set[Follow], rows: Set[Follow], seen: Seen) -> dict[str, tuple[int, int, int]]:
    """Name -> what the file says, what the rows are and what the API says.

    Followers and following of all users whom the API was asked about, and the common follows of
    the pairs.
    """
    expected, counted = Graph(after), Graph(rows)
    return {
        "followers": (
            sum(len(expected.followers(user_id)) for user_id in seen.totals),
            sum(len(counted.followers(user_id)) for user_id in seen.totals),
            sum(followers for followers, _ in seen.totals.values()),
        ),
        "following": (
            sum(len(expected.following(user_id)) for user_id in seen.totals),
            sum(len(counted.following(user_id)) for user_id in seen.totals),
            sum(following for _, following in seen.totals.values()),
        ),
        "common_follows": (
            sum(len(expected.common(pair)) for pair in seen.common),
            sum(len(counted.common(pair)) for pair in seen.common),
            sum(len(ids) for ids in seen.common.values()),
        ),
    }


def _read_row(row: Sequence[str]) -> Follow:
    follow = Follow(read_whole("follower_id", row[0]), read_whole("followee_id", row[1]))
    if follow.follower_id == follow.followee_id:
        raise ValueError(f"user {follow.follower_id} follows themself")
    return follow
