"""Files of follows: their rows, the requests, and the comparison afterwards.

A file is CSV, gzipped or not: ``follower_id,followee_id``. Each row is one follow.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from cli.files import FileFormat, parse_whole_number
from local.load import unread
from local.load.api_reader import ApiReader
from local.load.requests import Reaction, Request, duplicate, set_reaction
from local.load.scenario import (
    Comparison,
    Key,
    Scenario,
    add_up,
    compare_lists,
    compare_rows,
    compare_states,
    compare_totals,
    rank_ids,
)
from local.stack.stack import Stack

_MAX_LISTS = 20  # the most followed users: their lists are read through the API
_PAIRS = 200  # pairs of users whose common follows are read
_VIEWERS_PER_USER = 10  # followers of each of these users, and as many others, whose state is read

Pair = tuple[int, int]
"""The reader, and the user with whom the reader has follows in common."""


class Follow(NamedTuple):
    """One line of a file, and a follow that is on."""

    follower_id: int
    followee_id: int

    @property
    def reaction(self) -> Reaction:
        return Reaction("follow", self.followee_id, self.follower_id)

    def __str__(self) -> str:
        return str(self.reaction)


def _parse_row(row: Sequence[str]) -> Follow:
    follow = Follow(
        parse_whole_number("follower_id", row[0]), parse_whole_number("followee_id", row[1])
    )
    if follow.follower_id == follow.followee_id:
        raise ValueError(f"user {follow.follower_id} follows themself")
    return follow


FILES = FileFormat(["follower_id", "followee_id"], _parse_row)


def plan(follows: Iterable[Follow], duplicates: float = 0.0, seed: int = 0) -> list[Request]:
    return duplicate((set_reaction(follow.reaction) for follow in follows), duplicates, seed)


class Graph:
    def __init__(self, follows: Iterable[Follow]) -> None:
        self._followers: dict[int, set[int]] = defaultdict(set)
        self._following: dict[int, set[int]] = defaultdict(set)
        for follower_id, followee_id in follows:
            self._followers[followee_id].add(follower_id)
            self._following[follower_id].add(followee_id)

    def followers(self, user_id: int) -> Set[int]:
        return self._followers.get(user_id, frozenset())

    def following(self, user_id: int) -> Set[int]:
        return self._following.get(user_id, frozenset())

    def common_follows(self, pair: Pair) -> Set[int]:
        return self.following(pair[0]) & self.following(pair[1])


@dataclass(frozen=True, slots=True)
class ApiState:
    """Answers of the API: totals of users, lists of ids, and whether follows are on."""

    follower_totals: Mapping[int, int] = field(default_factory=dict)
    following_totals: Mapping[int, int] = field(default_factory=dict)
    followers: Mapping[int, Sequence[int]] = field(default_factory=dict)
    following: Mapping[int, Sequence[int]] = field(default_factory=dict)
    common_follows: Mapping[Pair, Sequence[int]] = field(default_factory=dict)
    viewer_states: Mapping[Follow, bool] = field(default_factory=dict)


class Follows(Scenario):
    """Scenario of a file of follows. Its users are created with their sessions."""

    kinds = frozenset({"follow"})

    def __init__(self, follows: Sequence[Follow], duplicates: float = 0.0, seed: int = 0) -> None:
        users = {user_id for follow in follows for user_id in follow}
        requests = plan(follows, duplicates, seed)
        super().__init__(requests, users, keep=lambda reaction: not users.isdisjoint(reaction[1:]))
        self._seed = seed

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Compare rows, totals and lists with the file. Raises CommandError."""
        after, rows = (
            {Follow(reaction.user_id, reaction.target_id) for reaction in reactions}
            for reactions in (self.after, self.read(stack))
        )
        users = set(self.user_ids)
        ours = [follow for follow in after if users.issuperset(follow)]
        pairs = choose_pairs(ours, _PAIRS, self._seed)
        listed = rank_ids((follow.followee_id for follow in ours), _MAX_LISTS)
        checked = choose_viewers(ours, self.user_ids, listed, _VIEWERS_PER_USER, self._seed)
        profiles = await api.fetch_each(
            "profiles", self.user_ids, lambda user_id: api.fetch(f"/users/{user_id}")
        )
        reported = ApiState(
            {user_id: profile["followers"] for user_id, profile in profiles.items()},
            {user_id: profile["following"] for user_id, profile in profiles.items()},
            await fetch_lists(api, listed, "followers"),
            await fetch_lists(api, listed, "following"),
            await fetch_common_follows(api, pairs),
            await fetch_viewer_states(api, checked),
        )
        notified = await unread.fetch_unread(api, listed)
        of_users = Counter(follow.followee_id for follow in after)
        some = sum(bool(ids) for ids in reported.common_follows.values())
        return Comparison(
            "of its users",
            sum_up(after, rows, reported),
            [
                *find_differences(after, rows, reported),
                *unread.find_wrong_unread(
                    notified, lambda of, user: of_users[user] if of[0] == "follow" else None
                ),
            ],
            [
                f"profiles of {len(profiles):,} users",
                f"all followers and following of the {len(listed)} most followed",
                f"the viewer states of {len(checked)} pairs of a user and one of these",
                f"common follows of {len(pairs)} pairs, {some} of which have some",
                unread.describe(notified),
            ],
        )


async def fetch_lists(api: ApiReader, user_ids: Sequence[int], name: str) -> dict[int, list[int]]:
    """Return user -> ids of the list ``name``, from all pages. Raises CommandError."""
    return await api.fetch_each(
        name, user_ids, lambda user_id: _read_users(api, f"/users/{user_id}/{name}")
    )


async def fetch_common_follows(api: ApiReader, pairs: Sequence[Pair]) -> dict[Pair, list[int]]:
    """Return pair -> users that both follow, as read by the first. Raises CommandError."""
    return await api.fetch_each(
        "common follows",
        pairs,
        lambda pair: _read_users(api, f"/users/{pair[1]}/common-follows", pair[0]),
    )


async def _read_users(api: ApiReader, path: str, user_id: int | None = None) -> list[int]:
    return [int(item["user"]["id"]) for item in await api.read_list(path, user_id)]


async def fetch_viewer_states(api: ApiReader, follows: Sequence[Follow]) -> dict[Follow, bool]:
    """Return follow -> whether it is on, as read by the follower. Raises CommandError."""

    async def fetch(follow: Follow) -> bool:
        profile = await api.fetch(f"/users/{follow.followee_id}", user_id=follow.follower_id)
        return bool(profile["mine"]["following"])

    return await api.fetch_each("own follows", follows, fetch)


def choose_pairs(follows: Iterable[Follow], count: int, seed: int = 0) -> list[Pair]:
    """Draw up to ``count`` pairs of users with follows.

    Every second pair follows the same user: two random users seldom have a follow in common.
    """
    chance = random.Random(seed)
    users, followers = set(), defaultdict(list)
    for follower_id, followee_id in sorted(set(follows)):
        users.add(follower_id)
        followers[followee_id].append(follower_id)
    pools = [sorted(users)]
    shared = [of_one for of_one in followers.values() if len(of_one) > 1]
    pairs: dict[Pair, None] = {}
    for _ in range(20 * count):
        if len(pairs) == count or len(users) < 2:
            break
        pool = chance.choice(shared if shared and len(pairs) % 2 else pools)
        first, other = chance.sample(pool, 2)
        pairs[first, other] = None
    return list(pairs)


def choose_viewers(
    follows: Iterable[Follow],
    user_ids: Sequence[int],
    followees: Sequence[int],
    count: int,
    seed: int = 0,
) -> list[Follow]:
    """Draw up to ``count`` followers of each followee, and as many ``user_ids`` who are not."""
    chance, graph = random.Random(seed), Graph(follows)
    chosen = []
    for followee_id in followees:
        followers = graph.followers(followee_id) & set(user_ids)
        others = [id_ for id_ in user_ids if id_ not in followers and id_ != followee_id]
        for pool in (sorted(followers), others):
            some = chance.sample(pool, min(count, len(pool)))
            chosen += [Follow(user_id, followee_id) for user_id in some]
    return chosen


def find_differences(after: Set[Follow], rows: Set[Follow], reported: ApiState) -> list[str]:
    """Return where rows, totals, lists or states differ from the file."""
    graph = Graph(after)
    common = "follows that users {0[0]} and {0[1]} have in common"
    return [
        *compare_rows(after, rows),
        *compare_totals("user", "followers", reported.follower_totals, _size(graph.followers)),
        *compare_totals("user", "following", reported.following_totals, _size(graph.following)),
        *compare_states(after, reported.viewer_states),
        *compare_lists("followers of user {}", reported.followers, graph.followers),
        *compare_lists("following of user {}", reported.following, graph.following),
        *compare_lists(common, reported.common_follows, graph.common_follows),
    ]


def sum_up(
    after: Set[Follow], rows: Set[Follow], reported: ApiState
) -> dict[str, tuple[int, int, int]]:
    """Return name -> (file, rows, API): totals of all users, and common follows of all pairs."""
    graphs = Graph(after), Graph(rows)
    common = {pair: len(ids) for pair, ids in reported.common_follows.items()}
    return {
        "followers": add_up(
            reported.follower_totals, *(_size(graph.followers) for graph in graphs)
        ),
        "following": add_up(
            reported.following_totals, *(_size(graph.following) for graph in graphs)
        ),
        "common_follows": add_up(common, *(_size(graph.common_follows) for graph in graphs)),
    }


def _size(members: Callable[[Key], Set[int]]) -> Callable[[Key], int]:
    return lambda key: len(members(key))
