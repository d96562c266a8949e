"""What people write: posts, comments and their own names; what is sent, what must come of it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from local.load.api_reader import ApiReader
from local.load.requests import Call, Expectation, Request, duplicate
from local.load.scenario import Comparison, Scenario
from local.stack.servers import connect_mysql
from local.stack.stack import Stack


def rename(user_id: int, nickname: str) -> Request:
    """A user takes a nickname."""
    call = Call("PATCH", "/users/me", {"nickname": nickname})
    shown = {"id": str(user_id), "nickname": nickname}
    return Request(user_id, "rename", f"nickname of user {user_id}", call, writes=shown)


def write_post(user_id: int, key: str, title: str, body: str) -> Request:
    """A user writes a note; ``key`` is of this one alone."""
    payload = {"kind": "note", "title": title, "body": body, "images": []}
    text = f"post {title!r} by user {user_id}"
    call = Call("POST", "/posts", payload, key)
    return Request(user_id, "post", text, call, writes={"title": title, "body": body})


def write_comment(user_id: int, key: str, post_id: int, body: str) -> Request:
    """A user comments on a post; ``key`` is of this one alone."""
    text = f"comment on post {post_id} by user {user_id}"
    call = Call("POST", f"/posts/{post_id}/comments", {"body": body}, key)
    shown = {"post_id": str(post_id), "body": body}
    return Request(user_id, "comment", text, call, writes=shown)


def count_posts(requests: Iterable[Request]) -> Counter[int]:
    """How many posts each user writes."""
    return Counter(request.user_id for request in requests if request.act == "post")


def count_comments(requests: Iterable[Request]) -> Counter[int]:
    """How many comments each post gets."""
    return Counter(int(r.writes["post_id"]) for r in requests if r.act == "comment")


class Texts(Scenario):
    """What is played of texts. The posts that are commented on are there already."""

    def __init__(self, texts: Iterable[Request], duplicates: float = 0.0, seed: int = 0) -> None:
        super().__init__(duplicate(texts, duplicates, seed))
        self._posts = count_posts(self.requests)
        self._comments = count_comments(self.requests)
        self._names = {r.user_id: r.writes["nickname"] for r in self.requests if r.act == "rename"}

    def prepare(self, stack: Stack) -> list[Expectation]:
        """What each request must come to. What is there already is counted in."""
        for expected, there in zip(
            (self._posts, self._comments), read_texts(stack.mysql_url), strict=True
        ):
            for id_ in expected:
                expected[id_] += there[id_]
        return super().prepare(stack)

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Rows, totals and names beside what was written. Raises LocalError."""

        async def ask_user(user_id: int) -> Mapping[str, Any]:
            return await api.fetch(f"/users/{user_id}")

        async def ask_post(post_id: int) -> int:
            return int((await api.fetch(f"/posts/{post_id}"))["comments"])

        posts, comments = read_texts(stack.mysql_url)
        profiles = await api.fetch_each("profiles", {**self._posts, **self._names}, ask_user)
        seen_posts = {user_id: int(profiles[user_id]["posts"]) for user_id in self._posts}
        seen_comments = await api.fetch_each("posts", self._comments, ask_post)
        differences = [
            *find_differences("posts of user", self._posts, posts, seen_posts),
            *find_differences("comments of post", self._comments, comments, seen_comments),
            *(
                f"user {user_id} is named {profiles[user_id]['nickname']} by the API, not {name}"
                for user_id, name in self._names.items()
                if profiles[user_id]["nickname"] != name
            ),
        ]
        totals = {
            "posts": add_up(self._posts, posts, seen_posts),
            "comments": add_up(self._comments, comments, seen_comments),
        }
        return Comparison("of who wrote", totals, differences)


def read_texts(mysql_url: str) -> tuple[Counter[int], Counter[int]]:
    """How many live posts each user has, and how many live comments each post."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT author_id, COUNT(*) FROM content"
            " WHERE content_type = 'post' AND deleted_at IS NULL GROUP BY author_id"
        )
        posts = Counter(dict(cursor.fetchall()))
        cursor.execute(
            "SELECT parent_id, COUNT(*) FROM content"
            " WHERE content_type = 'comment' AND deleted_at IS NULL GROUP BY parent_id"
        )
        return posts, Counter(dict(cursor.fetchall()))


def find_differences(
    of: str, expected: Mapping[int, int], rows: Mapping[int, int], reported: Mapping[int, int]
) -> list[str]:
    """Where the rows or the API have not as many as were written."""
    return [
        f"{of} {id_}: {counts.get(id_, 0)} {where}, {count} written"
        for id_, count in expected.items()
        for where, counts in (("in the rows", rows), ("by the API", reported))
        if counts.get(id_, 0) != count
    ]


def add_up(
    expected: Mapping[int, int], rows: Mapping[int, int], reported: Mapping[int, int]
) -> tuple[int, int, int]:
    """(written, rows, API), of those that were written to."""
    return (
        sum(expected.values()),
        sum(rows.get(id_, 0) for id_ in expected),
        sum(reported.get(id_, 0) for id_ in expected),
    )
