"""A file of interactions as a replay plays it: its posts, its requests, and what is compared."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import closing
from functools import partial
from typing import Any

from pymysql.cursors import Cursor, SSCursor

from local.audit import rankings
from local.load.asking import Asker
from local.load.interactions import (
    Forecast,
    Interaction,
    Reaction,
    author_of,
    foresee,
    plan,
)
from local.load.plans import Comparison
from local.stack.servers import connect_mysql
from local.stack.stack import Stack
from plaza import counters
from plaza.infra import mysql

_BATCH = 1000
_QUERY = 100  # the most targets one question takes
_LISTED = 20  # the most liked posts: their likers are read through the API, in both orders
_ASKED_PER_POST = 20  # of their likers: each is asked for their own state of all of these posts
_LISTING = 20  # the users with the most reactions: what they like and collect is read

Mine = Mapping[tuple[int, int], Mapping[str, bool]]  # (user, post) -> kind -> state


class InteractionsPiece:
    """What is played of a file of interactions."""

    kinds = frozenset({"like", "collect"})

    def __init__(
        self, interactions: Iterable[Interaction], duplicates: float = 0.0, seed: int = 0
    ) -> None:
        self.requests = plan(interactions, duplicates, seed)
        self.user_ids = sorted({request.user_id for request in self.requests})
        self._item_ids = sorted({request.item_id for request in self.requests})
        self._seed = seed
        self._after: Set[Reaction] = frozenset()

    def prepare(self, stack: Stack) -> list[Forecast]:
        """Make the posts; what each request must come to, by what is there already."""
        create_posts(self._item_ids, self.user_ids)
        before = read_reactions(stack.mysql_url, set(self._item_ids))
        forecasts, self._after = foresee(self.requests, before)
        return forecasts

    async def compare(self, stack: Stack, asker: Asker, tell: Callable[[str], None]) -> Comparison:
        """Rows, totals and likers beside what the file says, and rankings. Raises LocalError."""
        rows = read_reactions(stack.mysql_url, set(self._item_ids))
        seen = await ask_totals(asker, self._item_ids, tell)
        largest = find_most_liked(self._after)
        likers = await ask_likers(asker, largest, tell)
        latest = await ask_likers(asker, largest, tell, "?order=latest")
        # Of an earlier replay others may like them too, who have no session now.
        playing = set(self.user_ids)
        chosen = choose_likers(self._after, largest, _ASKED_PER_POST, self._seed)
        asked = [user_id for user_id in chosen if user_id in playing]
        mine = await ask_mine(asker, asked, largest, tell)
        active = find_most_active(self._after, _LISTING)
        listing = [user_id for user_id in active if user_id in playing]
        lists = {
            kind: await ask_own_lists(asker, listing, kind, tell) for kind in ("like", "collect")
        }
        misplaced, ranked = await rankings.find_differences(stack, asker, tell)
        return Comparison(
            "of its posts",
            add_up(self._after, rows, seen),
            [
                *find_differences(self._after, rows, seen, likers),
                *find_wrong_orders(likers, latest),
                *find_wrong_mine(self._after, mine),
                *find_wrong_own_lists(self._after, lists, set(self._item_ids)),
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
        totals = mysql.atomically(partial(_insert, item_ids=part, user_ids=user_ids))
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
        item_id: author_of(item_id, user_ids) for item_id in item_ids if item_id not in there
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


def read_reactions(mysql_url: str, item_ids: Set[int]) -> set[Reaction]:
    """What is on of these posts."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor(SSCursor) as cursor:
        cursor.execute(
            "SELECT kind, target_id, actor_id FROM reaction"
            " WHERE target_type = 'post' AND state = 1"
        )
        return {Reaction(*row) for row in cursor if row[1] in item_ids}


async def ask_totals(
    asker: Asker, item_ids: Sequence[int], tell: Callable[[str], None]
) -> dict[int, dict[str, int]]:
    """The totals of posts by the API: post -> kind -> total. Raises LocalError."""
    parts = [tuple(item_ids[i : i + _QUERY]) for i in range(0, len(item_ids), _QUERY)]

    async def ask(part: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        targets = [{"type": "post", "id": str(item_id)} for item_id in part]
        answer = await asker.ask("/reactions/query", question={"targets": targets})
        items: Sequence[Mapping[str, Any]] = answer["items"]
        return items

    answers = await asker.ask_each(parts, ask, lambda text: tell(f"totals of posts, {text}"))
    return {
        item_id: {"like": said["likes"], "collect": said["collects"]}
        for part, items in answers.items()
        for item_id, said in zip(part, items, strict=True)
    }


async def ask_likers(
    asker: Asker, item_ids: Iterable[int], tell: Callable[[str], None], query: str = ""
) -> dict[int, list[int]]:
    """Who likes each of these posts, by all pages of the API. Raises LocalError."""

    async def ask(item_id: int) -> list[int]:
        likers = await asker.read_list(f"/posts/{item_id}/likers{query}")
        return [int(liker["user_id"]) for liker in likers]

    return await asker.ask_each(item_ids, ask, lambda text: tell(f"likers of posts, {text}"))


async def ask_mine(
    asker: Asker, user_ids: Sequence[int], item_ids: Sequence[int], tell: Callable[[str], None]
) -> Mine:
    """What users are answered about themselves on these posts. Raises LocalError."""
    query = {"targets": [{"type": "post", "id": str(item_id)} for item_id in item_ids]}

    async def ask(user_id: int) -> Sequence[Mapping[str, Any]]:
        answer = await asker.ask("/reactions/query", question=query, user_id=user_id)
        items: Sequence[Mapping[str, Any]] = answer["items"]
        return items

    answers = await asker.ask_each(user_ids, ask, lambda text: tell(f"own reactions, {text}"))
    return {
        (user_id, item_id): {"like": item["mine"]["liked"], "collect": item["mine"]["collected"]}
        for user_id, items in answers.items()
        for item_id, item in zip(item_ids, items, strict=True)
    }


async def ask_own_lists(
    asker: Asker, user_ids: Sequence[int], kind: str, tell: Callable[[str], None]
) -> dict[int, list[int]]:
    """The posts in each user's own list of a kind, by all pages of the API. Raises LocalError."""

    async def ask(user_id: int) -> list[int]:
        items = await asker.read_list(f"/users/me/{kind}s", user_id)
        return [int(item["id"]) for item in items if item["type"] == "post"]

    return await asker.ask_each(user_ids, ask, lambda text: tell(f"own {kind}s, {text}"))


def choose_likers(
    after: Iterable[Reaction], item_ids: Sequence[int], per_post: int, seed: int
) -> list[int]:
    """Up to ``per_post`` likers of each of these posts, by chance."""
    likers: dict[int, list[int]] = {item_id: [] for item_id in item_ids}
    for reaction in sorted(after):
        if reaction.kind == "like" and reaction.item_id in likers:
            likers[reaction.item_id].append(reaction.user_id)
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
    likes = Counter(reaction.item_id for reaction in reactions if reaction.kind == "like")
    return [item_id for item_id, _ in likes.most_common(_LISTED)]


def add_up(
    after: Set[Reaction], rows: Set[Reaction], seen: Mapping[int, Mapping[str, int]]
) -> dict[str, tuple[int, int, int]]:
    """Kind -> what the file says, COUNT(*) and what the API says, of all posts of the file."""
    expected = Counter(reaction.kind for reaction in after)
    counted = Counter(reaction.kind for reaction in rows)
    return {
        kind: (expected[kind], counted[kind], sum(totals[kind] for totals in seen.values()))
        for kind in ("like", "collect")
    }


def find_differences(
    after: Set[Reaction],
    rows: Set[Reaction],
    seen: Mapping[int, Mapping[str, int]],
    likers: Mapping[int, Sequence[int]],
) -> list[str]:
    """Where rows, the API's totals or its lists of likers are not as the file says.

    As sets, post by post and kind by kind: a wrong one and a missing one are two differences.
    """
    differences = [
        f"{kind} of post {item_id} by user {user_id} is in the rows, not in the file"
        for kind, item_id, user_id in sorted(rows - after)
    ]
    differences += [
        f"{kind} of post {item_id} by user {user_id} is in the file, not in the rows"
        for kind, item_id, user_id in sorted(after - rows)
    ]
    expected = Counter((reaction.item_id, reaction.kind) for reaction in after)
    differences += [
        f"post {item_id} has {total} {kind}s by the API, {expected[item_id, kind]} by the file"
        for item_id, totals in seen.items()
        for kind, total in totals.items()
        if total != expected[item_id, kind]
    ]
    for item_id, found in likers.items():
        should = {r.user_id for r in after if r.kind == "like" and r.item_id == item_id}
        if sorted(found) != sorted(should):
            wrong = sorted(set(found) ^ should) or "some twice"
            differences.append(f"likers of post {item_id} by the API are wrong: {wrong}"[:200])
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


def find_wrong_mine(after: Set[Reaction], mine: Mine) -> list[str]:
    """Where users are answered about themselves otherwise than the file says."""
    return [
        f"user {user_id} is answered {kind} {state} of post {item_id}"
        for (user_id, item_id), states in mine.items()
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
            should = {r.item_id for r in after if (r.kind, r.user_id) == (kind, user_id)}
            if sorted(ours) != sorted(should):
                wrong = sorted(set(ours) ^ should) or "some twice"
                differences.append(f"{kind}s of user {user_id} by the API are wrong: {wrong}"[:200])
    return differences
