"""Files of interactions: their rows, the requests, and the comparison afterwards.

A file is CSV, gzipped or not: ``user_id,item_id,rating,timestamp``. Every item is a post. A
rating of 4 or more is a like, 5 is a collect as well, 2 or less removes a like, and anything
between is a view.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

from pymysql.cursors import Cursor

from cli.files import FileFormat, parse_whole_number
from local.load import pictures, rankings, unread
from local.load.api_reader import ApiReader
from local.load.requests import KINDS, Expectation, Reaction, Request, duplicate, set_reaction, view
from local.load.scenario import (
    Comparison,
    Scenario,
    add_up,
    compare_lists,
    compare_rows,
    compare_states,
    compare_totals,
    rank_ids,
)
from local.stack.stack import Stack
from plaza.core import counters
from plaza.infra.mysql import mysql

HIGHEST_RATING = 5.0
POST_KINDS = ("like", "collect")
_BATCH = 1000
_QUERY = 100  # targets of the largest query
_MAX_LISTS = 20  # the most liked posts: their likers are read through the API, in both orders
_VIEWERS_PER_POST = 20  # likers of each of these posts, who read their viewer states of all
_MAX_OWN_LISTS = 20  # the users with the most reactions: their own lists are read
_TITLES = (
    "Morning light over the harbour",
    "The last tram from the old town",
    "Rain at the market, and we all stayed",
    "Bread and coffee by the lake",
    "A long walk up the hills",
    "Lost and found on the night train",
    "Music under the bridge",
    "Where the river bends",
    "Two chairs, one window",
    "A door painted blue",
    "Lanterns before the parade",
)
_BODIES = (
    "I came for ten minutes and stayed until the lights went on.",
    "Take the small street behind the church. You will know it by the smell of cinnamon.",
    "An old man sold me a map of a town that is not there any more. I bought two.",
    "Best seen before seven, when only the bakers and the gulls are awake.",
    "A band played the same four bars all evening. They are still in my head.",
    "We missed every connection and had the best day of the trip.",
    "Bring a coat, bring a friend, and leave the camera in the bag for once.",
)

Totals = Mapping[str, Mapping[int, int]]
"""Kind -> post -> total."""


class Interaction(NamedTuple):
    """One line of a file: a user gave a post a ``rating`` of 0 to 5 at ``at_s`` (since 1970)."""

    user_id: int
    item_id: int
    rating: float
    at_s: int


def _parse_row(row: Sequence[str]) -> Interaction:
    return Interaction(
        parse_whole_number("user_id", row[0]),
        parse_whole_number("item_id", row[1]),
        _parse_rating(row[2]),
        parse_whole_number("timestamp", row[3], 0),
    )


def _parse_rating(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST_RATING:
        raise ValueError(f"rating is {text[:40]!r}, not a number from 0 to 5")
    return value


FILES = FileFormat(["user_id", "item_id", "rating", "timestamp"], _parse_row)


def plan(
    interactions: Iterable[Interaction], duplicates: float = 0.0, seed: int = 0
) -> list[Request]:
    requests = (request for interaction in interactions for request in build_requests(interaction))
    return duplicate(requests, duplicates, seed)


def build_requests(interaction: Interaction) -> list[Request]:
    """Return the requests of a rating: one or two."""
    user_id, item_id, rating, _ = interaction
    if rating >= 4:
        kinds = POST_KINDS if rating >= HIGHEST_RATING else POST_KINDS[:1]
        return [set_reaction(Reaction(kind, item_id, user_id)) for kind in kinds]
    if rating <= 2:
        return [set_reaction(Reaction("like", item_id, user_id), on=False)]
    return [view(user_id, item_id)]


def choose_author(item_id: int, user_ids: Sequence[int]) -> int:
    """Return a post's author: one of ``user_ids`` (sorted), the same on each call."""
    return user_ids[item_id * 2_654_435_761 % 2**32 % len(user_ids)]


class Interactions(Scenario):
    """Scenario of a file of interactions."""

    kinds = frozenset(POST_KINDS)

    def __init__(
        self, interactions: Sequence[Interaction], duplicates: float = 0.0, seed: int = 0
    ) -> None:
        items = {entry.item_id for entry in interactions}
        requests = plan(interactions, duplicates, seed)
        super().__init__(requests, keep=lambda entry: entry.target_id in items)
        self._item_ids = sorted(items)
        self._seed = seed

    def prepare(self, stack: Stack) -> list[Expectation]:
        """Create the posts. Returns the expectation of each request, given the current rows."""
        create_posts(self._item_ids, self.user_ids)
        return super().prepare(stack)

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Compare rows, totals, lists and rankings with the file. Raises CommandError."""
        after, rows, items = self.after, self.read(stack), set(self._item_ids)
        reported = await fetch_totals(api, self._item_ids)
        largest = rank_ids((r.target_id for r in after if r.kind == "like"), _MAX_LISTS)
        likers = await fetch_likers(api, largest)
        latest = await fetch_likers(api, largest, "?order=latest")
        # Likers of an earlier replay have no session.
        playing = set(self.user_ids)
        chosen = choose_likers(after, largest, _VIEWERS_PER_POST, self._seed)
        viewers = [user_id for user_id in chosen if user_id in playing]
        states = await fetch_viewer_states(api, viewers, largest)
        active = rank_ids((reaction.user_id for reaction in after), _MAX_OWN_LISTS)
        listing = [user_id for user_id in active if user_id in playing]
        own = {kind: await fetch_own_lists(api, listing, kind) for kind in POST_KINDS}
        authors = {int((await api.fetch(f"/posts/{id_}"))["author"]["id"]) for id_ in largest}
        notified = await unread.fetch_unread(api, sorted(authors & playing))
        misplaced, ranked = await rankings.find_differences(stack, api)
        totals = {
            kind: add_up(reported[kind], *(_count(state, kind) for state in (after, rows)))
            for kind in POST_KINDS
        }
        return Comparison(
            "of its posts",
            totals,
            [
                *find_differences(after, rows, reported, likers),
                *find_wrong_orders(likers, latest),
                *compare_states(after, states),
                *find_wrong_own_lists(after, own, items),
                *unread.find_wrong_unread(notified, _count_of_others(after, items)),
                *misplaced,
            ],
            [
                f"all likers of the {len(likers)} most liked posts, in both orders",
                f"the viewer states of {len(viewers)} of these likers on each",
                f"all likes and collects of the {len(listing)} users with the most reactions",
                unread.describe(notified),
                ranked,
            ],
        )


def _count_of_others(after: Set[Reaction], items: Set[int]) -> unread.Total:
    likes = _count(after, "like")

    def count(subject: unread.Subject, author_id: int) -> int | None:
        *kind, post_id = subject
        if kind != ["like", "post"] or post_id not in items:
            return None
        return likes(post_id) - (Reaction("like", post_id, author_id) in after)

    return count


def create_posts(item_ids: Sequence[int], user_ids: Sequence[int]) -> None:
    """Insert missing posts by authors of ``user_ids`` (sorted), and count them."""
    for start in range(0, len(item_ids), _BATCH):
        part = item_ids[start : start + _BATCH]
        totals = mysql.run_in_transaction(partial(_insert, item_ids=part, user_ids=user_ids))
        counters.project_users(totals)


def _insert(
    cursor: Cursor, item_ids: Sequence[int], user_ids: Sequence[int]
) -> dict[int, counters.UserCounter]:
    """Insert the missing posts. Returns the counters of their authors."""
    numbers = ",".join(str(int(item_id)) for item_id in item_ids)
    cursor.execute(
        "SELECT content_id FROM content WHERE content_type = 'post'"  # noqa: S608
        f" AND content_id IN ({numbers})"
    )
    existing = {item_id for (item_id,) in cursor}
    authors = {id_: choose_author(id_, user_ids) for id_ in item_ids if id_ not in existing}
    cursor.executemany(
        "INSERT INTO content (content_type, content_id, author_id, kind, title, body, images)"
        " VALUES ('post', %s, %s, 'note', %s, %s, %s)",
        [
            (id_, author, title, _BODIES[id_ % len(_BODIES)], json.dumps(pictures.of_title(title)))
            for id_, author in authors.items()
            for title in [_TITLES[id_ % len(_TITLES)]]
        ],
    )
    posts = Counter(authors.values())
    counters.add_to_users(cursor, {(author,): {"posts_total": n} for author, n in posts.items()})
    return counters.read_users_in(cursor, sorted(posts))


async def fetch_totals(api: ApiReader, item_ids: Sequence[int]) -> dict[str, dict[int, int]]:
    """Return kind -> post -> total by the API. Raises CommandError."""
    parts = [tuple(item_ids[i : i + _QUERY]) for i in range(0, len(item_ids), _QUERY)]
    answers = await api.fetch_each("totals of posts", parts, lambda part: _query(api, part))
    pairs = [pair for part, items in answers.items() for pair in zip(part, items, strict=True)]
    return {kind: {item_id: item[f"{kind}s"] for item_id, item in pairs} for kind in POST_KINDS}


async def fetch_likers(
    api: ApiReader, item_ids: Iterable[int], query: str = ""
) -> dict[int, list[int]]:
    """Return post -> likers, from all pages of the API. Raises CommandError."""

    async def fetch(item_id: int) -> list[int]:
        likers = await api.read_list(f"/posts/{item_id}/likers{query}")
        return [int(liker["user_id"]) for liker in likers]

    return await api.fetch_each("likers of posts", item_ids, fetch)


async def fetch_viewer_states(
    api: ApiReader, user_ids: Sequence[int], item_ids: Sequence[int]
) -> dict[Reaction, bool]:
    """Return reaction -> whether it is on, of users to posts, by the API. Raises CommandError."""
    answers = await api.fetch_each(
        "own reactions", user_ids, lambda user_id: _query(api, item_ids, user_id)
    )
    return {
        Reaction(kind, item_id, user_id): item["mine"][KINDS[kind].state_field]
        for user_id, items in answers.items()
        for item_id, item in zip(item_ids, items, strict=True)
        for kind in POST_KINDS
    }


async def _query(
    api: ApiReader, item_ids: Sequence[int], user_id: int | None = None
) -> Sequence[Mapping[str, Any]]:
    targets = [{"type": "post", "id": str(item_id)} for item_id in item_ids]
    answer = await api.fetch("/reactions/query", body={"targets": targets}, user_id=user_id)
    items: Sequence[Mapping[str, Any]] = answer["items"]
    return items


async def fetch_own_lists(
    api: ApiReader, user_ids: Sequence[int], kind: str
) -> dict[int, list[int]]:
    """Return user -> posts in the user's own list of a kind. Raises CommandError."""

    async def fetch(user_id: int) -> list[int]:
        items = await api.read_list(f"/users/me/{kind}s", user_id)
        return [int(item["id"]) for item in items if item["type"] == "post"]

    return await api.fetch_each(f"own {kind}s", user_ids, fetch)


def choose_likers(
    after: Iterable[Reaction], item_ids: Sequence[int], per_post: int, seed: int
) -> list[int]:
    """Draw up to ``per_post`` likers of each of these posts."""
    likers = _group((r.target_id, r.user_id) for r in sorted(after) if r.kind == "like")
    chance = random.Random(seed)
    return sorted(
        {
            user_id
            for item_id in item_ids
            for user_id in chance.sample(likers[item_id], min(per_post, len(likers[item_id])))
        }
    )


def find_differences(
    after: Set[Reaction],
    rows: Set[Reaction],
    reported: Totals,
    likers: Mapping[int, Sequence[int]],
) -> list[str]:
    """Return where rows, totals or lists of likers differ from the file."""
    expected = _group((r.target_id, r.user_id) for r in after if r.kind == "like")
    return [
        *compare_rows(after, rows),
        *(
            difference
            for kind, totals in reported.items()
            for difference in compare_totals("post", f"{kind}s", totals, _count(after, kind))
        ),
        *compare_lists("likers of post {}", likers, expected.__getitem__),
    ]


def find_wrong_orders(
    earliest: Mapping[int, Sequence[int]], latest: Mapping[int, Sequence[int]]
) -> list[str]:
    """Return posts whose likers, latest first, are not the reverse of earliest first."""
    return [
        f"likers of post {item_id}, latest first, are not the reverse of earliest first"
        for item_id, likers in earliest.items()
        if list(latest[item_id]) != list(reversed(likers))
    ]


def find_wrong_own_lists(
    after: Set[Reaction], lists: Mapping[str, Mapping[int, Sequence[int]]], item_ids: Set[int]
) -> list[str]:
    """Return where a user's own list differs from the file, among the posts ``item_ids``."""
    differences = []
    for kind, of_users in lists.items():
        ours = {user: [id_ for id_ in ids if id_ in item_ids] for user, ids in of_users.items()}
        targets = _group((r.user_id, r.target_id) for r in after if r.kind == kind)
        differences += compare_lists(f"{kind}s of user {{}}", ours, targets.__getitem__)
    return differences


def _count(reactions: Iterable[Reaction], kind: str) -> Callable[[int], int]:
    """Return a function of a post: its reactions of a kind."""
    return Counter(
        reaction.target_id for reaction in reactions if reaction.kind == kind
    ).__getitem__


def _group(pairs: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Return key -> values; empty for a missing key."""
    groups: dict[int, list[int]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups
