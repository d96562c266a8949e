"""A file of interactions: what is in it, what is sent for it, and what must be true after it.

A file is CSV, gzipped or not: ``user_id,item_id,rating,timestamp``. Every item is a post. A
rating of 4 and more is a like, 5 is a collect as well, 2 and less takes a like back, and
anything between is a view.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pymysql.cursors import Cursor

from local.audit import rankings
from local.load import files
from local.load.api_reader import ApiReader
from local.load.files import parse_whole_number
from local.load.requests import Expectation, Reaction, Request, duplicate, set_reaction, view
from local.load.scenario import Comparison, Scenario, compare_list, compare_rows
from local.stack.stack import Stack
from plaza import counters
from plaza.infra import mysql

COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
HIGHEST_RATING = 5.0
POST_KINDS = ("like", "collect")
_BATCH = 1000
_QUERY = 100  # the most targets one query takes
_MAX_LISTS = 20  # the most liked posts: their likers are read through the API, in both orders
_VIEWERS_PER_POST = 20  # of their likers: each is asked for their own state of all of these posts
_MAX_OWN_LISTS = 20  # the users with the most reactions: what they like and collect is read

ViewerStates = Mapping[tuple[int, int], Mapping[str, bool]]  # (user, post) -> kind -> state


class Interaction(NamedTuple):
    """One line of a file: a user gave a post a ``rating`` of 0 to 5 at ``at_s`` (since 1970)."""

    user_id: int
    item_id: int
    rating: float
    at_s: int


def read_file(path: Path, limit: int | None = None) -> list[Interaction]:
    """The first ``limit`` interactions of a file. Raises LocalError, naming the line."""
    return files.read_rows(path, COLUMNS, _read_row, limit)


def parse(lines: Iterable[str], name: str) -> Iterator[Interaction]:
    """The interactions in ``lines``, the first of which is the header. Raises LocalError."""
    return files.parse_rows(lines, name, COLUMNS, _read_row)


def write_file(path: Path, interactions: Iterable[Interaction]) -> None:
    """Write a file that ``read_file`` reads."""
    rows = ((one.user_id, one.item_id, f"{one.rating:g}", one.at_s) for one in interactions)
    files.write_rows(path, COLUMNS, rows)


def _read_row(row: Sequence[str]) -> Interaction:
    return Interaction(
        parse_whole_number("user_id", row[0]),
        parse_whole_number("item_id", row[1]),
        _read_rating(row[2]),
        parse_whole_number("timestamp", row[3], 0),
    )


def _read_rating(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST_RATING:
        raise ValueError(f"rating is {text[:40]!r}, not a number from 0 to 5")
    return value


def plan(
    interactions: Iterable[Interaction], duplicates: float = 0.0, seed: int = 0
) -> list[Request]:
    """The requests for ``interactions``, in order; a share of the changing ones sent twice."""
    requests = (request for one in interactions for request in build_requests(one))
    return duplicate(requests, duplicates, seed)


def build_requests(interaction: Interaction) -> list[Request]:
    """What a rating says."""
    user_id, item_id, rating, _ = interaction
    if rating >= 4:
        kinds = POST_KINDS if rating >= HIGHEST_RATING else POST_KINDS[:1]
        return [set_reaction(Reaction(kind, item_id, user_id)) for kind in kinds]
    if rating <= 2:
        return [set_reaction(Reaction("like", item_id, user_id), on=False)]
    return [view(user_id, item_id)]


def choose_author(item_id: int, user_ids: Sequence[int]) -> int:
    """Who wrote a post: one of ``user_ids`` (sorted), the same each time."""
    return user_ids[item_id * 2_654_435_761 % 2**32 % len(user_ids)]


class Interactions(Scenario):
    """What is played of a file of interactions."""

    kinds = frozenset(POST_KINDS)

    def __init__(
        self, interactions: Sequence[Interaction], duplicates: float = 0.0, seed: int = 0
    ) -> None:
        items = {one.item_id for one in interactions}
        requests = plan(interactions, duplicates, seed)
        super().__init__(requests, keep=lambda one: one.target_id in items)
        self._item_ids = sorted(items)
        self._seed = seed

    def prepare(self, stack: Stack) -> list[Expectation]:
        """Make the posts; what each request must come to, by what is there already."""
        create_posts(self._item_ids, self.user_ids)
        return super().prepare(stack)

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Rows, totals and likers beside what the file says, and rankings. Raises LocalError."""
        after, rows = self.after, self.read(stack)
        reported = await fetch_totals(api, self._item_ids)
        largest = find_most_liked(after)
        likers = await fetch_likers(api, largest)
        latest = await fetch_likers(api, largest, "?order=latest")
        # Of an earlier replay others may like them too, who have no session now.
        playing = set(self.user_ids)
        chosen = choose_likers(after, largest, _VIEWERS_PER_POST, self._seed)
        asked = [user_id for user_id in chosen if user_id in playing]
        viewer_states = await fetch_viewer_states(api, asked, largest)
        listing = [
            user_id for user_id in find_most_active(after, _MAX_OWN_LISTS) if user_id in playing
        ]
        lists = {kind: await fetch_own_lists(api, listing, kind) for kind in POST_KINDS}
        misplaced, ranked = await rankings.find_differences(stack, api)
        return Comparison(
            "of its posts",
            add_up(after, rows, reported),
            [
                *find_differences(after, rows, reported, likers),
                *find_wrong_orders(likers, latest),
                *find_wrong_viewer_states(after, viewer_states),
                *find_wrong_own_lists(after, lists, set(self._item_ids)),
                *misplaced,
            ],
            [
                f"all likers of the {len(likers)} most liked posts, in both orders",
                f"what {len(asked)} of these likers are answered about themselves on each",
                f"all likes and collects of the {len(listing)} users with the most",
                ranked,
            ],
        )


def create_posts(item_ids: Sequence[int], user_ids: Sequence[int]) -> None:
    """Posts that are not there yet, each by one of ``user_ids`` (sorted), and counted as theirs."""
    for start in range(0, len(item_ids), _BATCH):
        part = item_ids[start : start + _BATCH]
        totals = mysql.run_in_transaction(partial(_insert, item_ids=part, user_ids=user_ids))
        counters.project_users(totals)


def _insert(
    cursor: Cursor, item_ids: Sequence[int], user_ids: Sequence[int]
) -> dict[int, counters.UserCounter]:
    """The counters of those who have a post more by now."""
    numbers = ",".join(str(int(item_id)) for item_id in item_ids)
    cursor.execute(
        "SELECT content_id FROM content WHERE content_type = 'post'"  # noqa: S608
        f" AND content_id IN ({numbers})"
    )
    there = {item_id for (item_id,) in cursor}
    authors = {
        item_id: choose_author(item_id, user_ids) for item_id in item_ids if item_id not in there
    }
    cursor.executemany(
        "INSERT INTO content (content_type, content_id, author_id, kind, title, body, images)"
        " VALUES ('post', %s, %s, 'note', %s, %s, '[]')",
        [
            (id_, author, f"Post {id_}", f"The post {id_} of a file.")
            for id_, author in authors.items()
        ],
    )
    posts = Counter(authors.values())
    counters.add_to_users(cursor, {(author,): {"posts_total": n} for author, n in posts.items()})
    return counters.read_users_in(cursor, sorted(posts))


async def fetch_totals(api: ApiReader, item_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """The totals of posts by the API: post -> kind -> total. Raises LocalError."""
    parts = [tuple(item_ids[i : i + _QUERY]) for i in range(0, len(item_ids), _QUERY)]
    answers = await api.fetch_each("totals of posts", parts, lambda part: _query(api, part))
    return {
        item_id: {"like": said["likes"], "collect": said["collects"]}
        for part, items in answers.items()
        for item_id, said in zip(part, items, strict=True)
    }


async def fetch_likers(
    api: ApiReader, item_ids: Iterable[int], query: str = ""
) -> dict[int, list[int]]:
    """Who likes each of these posts, by all pages of the API. Raises LocalError."""

    async def ask(item_id: int) -> list[int]:
        likers = await api.read_list(f"/posts/{item_id}/likers{query}")
        return [int(liker["user_id"]) for liker in likers]

    return await api.fetch_each("likers of posts", item_ids, ask)


async def fetch_viewer_states(
    api: ApiReader, user_ids: Sequence[int], item_ids: Sequence[int]
) -> ViewerStates:
    """What users are answered about themselves on these posts. Raises LocalError."""
    answers = await api.fetch_each(
        "own reactions", user_ids, lambda user_id: _query(api, item_ids, user_id)
    )
    return {
        (user_id, item_id): {"like": item["mine"]["liked"], "collect": item["mine"]["collected"]}
        for user_id, items in answers.items()
        for item_id, item in zip(item_ids, items, strict=True)
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
    """The posts in each user's own list of a kind, by all pages of the API. Raises LocalError."""

    async def ask(user_id: int) -> list[int]:
        items = await api.read_list(f"/users/me/{kind}s", user_id)
        return [int(item["id"]) for item in items if item["type"] == "post"]

    return await api.fetch_each(f"own {kind}s", user_ids, ask)


def choose_likers(
    after: Iterable[Reaction], item_ids: Sequence[int], per_post: int, seed: int
) -> list[int]:
    """Up to ``per_post`` likers of each of these posts, by chance."""
    likers: dict[int, list[int]] = {item_id: [] for item_id in item_ids}
    for reaction in sorted(after):
        if reaction.kind == "like" and reaction.target_id in likers:
            likers[reaction.target_id].append(reaction.user_id)
    chance = random.Random(seed)
    return sorted(
        {
            user_id
            for of_post in likers.values()
            for user_id in chance.sample(of_post, min(per_post, len(of_post)))
        }
    )


def find_most_active(after: Iterable[Reaction], count: int) -> list[int]:
    """The ``count`` users with the most reactions that are on, most first."""
    reactions = Counter(reaction.user_id for reaction in after)
    return sorted(reactions, key=lambda user_id: (-reactions[user_id], user_id))[:count]


def find_most_liked(reactions: Iterable[Reaction]) -> list[int]:
    """The posts with the most likes, most first."""
    likes = Counter(reaction.target_id for reaction in reactions if reaction.kind == "like")
    return [item_id for item_id, _ in likes.most_common(_MAX_LISTS)]


def add_up(
    after: Set[Reaction], rows: Set[Reaction], reported: Mapping[int, Mapping[str, int]]
) -> dict[str, tuple[int, int, int]]:
    """Kind -> what the file says, COUNT(*) and what the API says, of all posts of the file."""
    expected = Counter(reaction.kind for reaction in after)
    counted = Counter(reaction.kind for reaction in rows)
    return {
        kind: (expected[kind], counted[kind], sum(totals[kind] for totals in reported.values()))
        for kind in POST_KINDS
    }


def find_differences(
    after: Set[Reaction],
    rows: Set[Reaction],
    reported: Mapping[int, Mapping[str, int]],
    likers: Mapping[int, Sequence[int]],
) -> list[str]:
    """Where rows, the API's totals or its lists of likers are not as the file says."""
    differences = compare_rows(after, rows)
    expected = Counter((reaction.target_id, reaction.kind) for reaction in after)
    differences += [
        f"post {item_id} has {total} {kind}s by the API, {expected[item_id, kind]} by the file"
        for item_id, totals in reported.items()
        for kind, total in totals.items()
        if total != expected[item_id, kind]
    ]
    for item_id, found in likers.items():
        should = {r.user_id for r in after if (r.kind, r.target_id) == ("like", item_id)}
        differences += compare_list(f"likers of post {item_id}", found, should)
    return differences


def find_wrong_orders(
    earliest: Mapping[int, Sequence[int]], latest: Mapping[int, Sequence[int]]
) -> list[str]:
    """Posts whose likers, latest first, are not their likers, earliest first, from the end."""
    return [
        f"likers of post {item_id}, latest first, are not those from the end of earliest first"
        for item_id, likers in earliest.items()
        if list(latest[item_id]) != list(reversed(likers))
    ]


def find_wrong_viewer_states(after: Set[Reaction], viewer_states: ViewerStates) -> list[str]:
    """Where users are answered about themselves otherwise than the file says."""
    return [
        f"user {user_id} is answered {kind} {state} of post {item_id}"
        for (user_id, item_id), states in viewer_states.items()
        for kind, state in states.items()
        if state is not (Reaction(kind, item_id, user_id) in after)
    ]


def find_wrong_own_lists(
    after: Set[Reaction], lists: Mapping[str, Mapping[int, Sequence[int]]], item_ids: Set[int]
) -> list[str]:
    """Where a user's own list of likes or collects is not as the file says.

    What is in it beside ``item_ids`` is not of the file, which says nothing about it.
    """
    differences = []
    for kind, of_users in lists.items():
        for user_id, found in of_users.items():
            ours = [item_id for item_id in found if item_id in item_ids]
            should = {r.target_id for r in after if (r.kind, r.user_id) == (kind, user_id)}
            differences += compare_list(f"{kind}s of user {user_id}", ours, should)
    return differences
