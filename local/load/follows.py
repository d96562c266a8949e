"""A file of follows: what is in it, what is sent for it, and what must be true after it.

A file is CSV, gzipped or not: ``follower_id,followee_id``. Each row is a follow, of a
user by a user.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from local.load import files
from local.load.api_reader import ApiReader
from local.load.files import parse_whole_number
from local.load.requests import Reaction, Request, duplicate, set_reaction
from local.load.scenario import Comparison, Scenario, compare_list, compare_rows
from local.stack.stack import Stack

COLUMNS = ["follower_id", "followee_id"]
_MAX_LISTS = 20  # the most followed: their lists are read through the API
_PAIRS = 200  # whose common follows are
_VIEWERS_PER_USER = 10  # followers of each of these, and as many others, asked whether they follow

Pair = tuple[int, int]  # who asks, and with whom they have follows in common


class Follow(NamedTuple):
    """One line of a file, and a follow that is on."""

    follower_id: int
    followee_id: int

    @property
    def reaction(self) -> Reaction:
        """As what is sent."""
        return Reaction("follow", self.followee_id, self.follower_id)

    def __str__(self) -> str:
        return str(self.reaction)


def read_file(path: Path, limit: int | None = None) -> list[Follow]:
    """The first ``limit`` follows of a file. Raises LocalError, naming the line."""
    return files.read_rows(path, COLUMNS, _read_row, limit)


def parse(lines: Iterable[str], name: str) -> Iterator[Follow]:
    """The follows in ``lines``, the first of which is the header. Raises LocalError."""
    return files.parse_rows(lines, name, COLUMNS, _read_row)


def write_file(path: Path, follows: Iterable[Follow]) -> None:
    """Write a file that ``read_file`` reads."""
    files.write_rows(path, COLUMNS, follows)


def _read_row(row: Sequence[str]) -> Follow:
    follow = Follow(
        parse_whole_number("follower_id", row[0]), parse_whole_number("followee_id", row[1])
    )
    if follow.follower_id == follow.followee_id:
        raise ValueError(f"user {follow.follower_id} follows themself")
    return follow


def plan(follows: Iterable[Follow], duplicates: float = 0.0, seed: int = 0) -> list[Request]:
    """The requests for ``follows``, in order; a share of them sent twice."""
    return duplicate((set_reaction(follow.reaction) for follow in follows), duplicates, seed)


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
class ApiState:
    """What the API shows: (followers, following) of users, and lists of their ids.

    ``viewer_states``: (user, other) -> whether the user is answered that they follow the other.
    """

    totals: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    followers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    following: Mapping[int, Sequence[int]] = field(default_factory=dict)
    common: Mapping[Pair, Sequence[int]] = field(default_factory=dict)
    viewer_states: Mapping[Pair, bool] = field(default_factory=dict)


class Follows(Scenario):
    """What is played of a file of follows. Its users are made with their sessions."""

    kinds = frozenset({"follow"})

    def __init__(self, follows: Sequence[Follow], duplicates: float = 0.0, seed: int = 0) -> None:
        users = {user_id for follow in follows for user_id in follow}
        requests = plan(follows, duplicates, seed)
        super().__init__(requests, users, keep=lambda one: not users.isdisjoint(one[1:]))
        self._seed = seed

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Rows, totals and lists beside what the file says. Raises LocalError."""
        after, rows = (
            {Follow(one.user_id, one.target_id) for one in reactions}
            for reactions in (self.after, self.read(stack))
        )
        users = set(self.user_ids)
        ours = [follow for follow in after if users.issuperset(follow)]
        pairs = choose_pairs(ours, _PAIRS, self._seed)
        listed = find_most_followed(ours, _MAX_LISTS)
        asked = choose_viewers(ours, self.user_ids, listed, _VIEWERS_PER_USER, self._seed)
        reported = ApiState(
            totals=await fetch_totals(api, self.user_ids),
            followers=await fetch_lists(api, listed, "followers"),
            following=await fetch_lists(api, listed, "following"),
            common=await fetch_common_follows(api, pairs),
            viewer_states=await fetch_viewer_states(api, asked),
        )
        some = sum(bool(ids) for ids in reported.common.values())
        return Comparison(
            "of its users",
            add_up(after, rows, reported),
            find_differences(after, rows, reported),
            [
                f"profiles of {len(reported.totals):,} users",
                f"all followers and following of the {len(listed)} most followed",
                f"what {len(asked)} pairs of a user and one of these are answered: follows or not",
                f"common follows of {len(pairs)} pairs, {some} of which have some",
            ],
        )


async def fetch_totals(api: ApiReader, user_ids: Sequence[int]) -> dict[int, tuple[int, int]]:
    """User -> (followers, following) by the API. Raises LocalError."""

    async def ask(user_id: int) -> tuple[int, int]:
        profile = await api.fetch(f"/users/{user_id}")
        return profile["followers"], profile["following"]

    return await api.fetch_each("profiles", user_ids, ask)


async def fetch_lists(api: ApiReader, user_ids: Sequence[int], name: str) -> dict[int, list[int]]:
    """User -> who is in their list ``name``, by all pages of the API. Raises LocalError."""
    return await api.fetch_each(
        name, user_ids, lambda user_id: _read_users(api, f"/users/{user_id}/{name}")
    )


async def fetch_common_follows(api: ApiReader, pairs: Sequence[Pair]) -> dict[Pair, list[int]]:
    """Pair -> whom both follow, as the first of them is told. Raises LocalError."""
    return await api.fetch_each(
        "common follows",
        pairs,
        lambda pair: _read_users(api, f"/users/{pair[1]}/common-follows", pair[0]),
    )


async def _read_users(api: ApiReader, path: str, user_id: int | None = None) -> list[int]:
    return [int(item["user"]["id"]) for item in await api.read_list(path, user_id)]


async def fetch_viewer_states(api: ApiReader, pairs: Sequence[Pair]) -> dict[Pair, bool]:
    """Pair -> whether the first follows the second, as the first is answered. Raises LocalError."""

    async def ask(pair: Pair) -> bool:
        profile = await api.fetch(f"/users/{pair[1]}", user_id=pair[0])
        return bool(profile["mine"]["following"])

    return await api.fetch_each("own follows", pairs, ask)


def find_most_followed(follows: Iterable[Follow], count: int) -> list[int]:
    """The ``count`` users with the most followers, most first."""
    followers = Counter(follow.followee_id for follow in follows)
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


def choose_viewers(
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


def find_differences(after: Set[Follow], rows: Set[Follow], reported: ApiState) -> list[str]:
    """Where rows, the API's totals or its lists are not as the file says."""
    differences = compare_rows(after, rows)
    graph = Graph(after)
    for user_id, totals in reported.totals.items():
        for name, total in zip(("followers", "following"), totals, strict=True):
            expected = len(getattr(graph, name)(user_id))
            if total != expected:
                differences.append(
                    f"user {user_id} has {total} {name} by the API, {expected} by the file"
                )
    differences += [
        f"user {user_id} is answered following {str(follows).lower()} of user {followee_id}"
        for (user_id, followee_id), follows in reported.viewer_states.items()
        if follows is not (Follow(user_id, followee_id) in after)
    ]
    for user_id, ids in reported.followers.items():
        differences += compare_list(f"followers of user {user_id}", ids, graph.followers(user_id))
    for user_id, ids in reported.following.items():
        differences += compare_list(f"following of user {user_id}", ids, graph.following(user_id))
    for pair, ids in reported.common.items():
        name = "follows that users {} and {} have in common".format(*pair)
        differences += compare_list(name, ids, graph.common(pair))
    return differences


def add_up(
    after: Set[Follow], rows: Set[Follow], reported: ApiState
) -> dict[str, tuple[int, int, int]]:
    """Name -> what the file says, what the rows are and what the API says.

    Followers and following of all users whom the API was asked about, and the common follows of
    the pairs.
    """

    def count(graph: Graph) -> tuple[int, int, int]:
        return (
            sum(len(graph.followers(user_id)) for user_id in reported.totals),
            sum(len(graph.following(user_id)) for user_id in reported.totals),
            sum(len(graph.common(pair)) for pair in reported.common),
        )

    by_api = (
        sum(followers for followers, _ in reported.totals.values()),
        sum(following for _, following in reported.totals.values()),
        sum(len(ids) for ids in reported.common.values()),
    )
    sums = zip(count(Graph(after)), count(Graph(rows)), by_api, strict=True)
    return dict(zip(("followers", "following", "common_follows"), sums, strict=True))
