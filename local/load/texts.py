"""Scenario of written texts: posts, comments and nicknames."""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing

from local.load.api_reader import ApiReader
from local.load.requests import Call, Expectation, Request, duplicate
from local.load.scenario import Comparison, Scenario, add_up, compare_totals
from local.stack.servers import connect_mysql
from local.stack.stack import Stack


def rename(user_id: int, nickname: str, avatar: str | None = None) -> Request:
    profile = {"nickname": nickname} | ({} if avatar is None else {"avatar": avatar})
    call = Call("PATCH", "/users/me", profile)
    shown = {"id": str(user_id), **profile}
    return Request(user_id, "rename", f"nickname of user {user_id}", call, writes=shown)


def write_post(
    user_id: int, key: str, title: str, body: str, images: Sequence[str] = ()
) -> Request:
    payload = {"kind": "note", "title": title, "body": body, "images": list(images)}
    text = f"post {title!r} by user {user_id}"
    call = Call("POST", "/posts", payload, key)
    return Request(user_id, "post", text, call, writes={"title": title, "body": body})


def write_comment(user_id: int, key: str, post_id: int, body: str) -> Request:
    text = f"comment on post {post_id} by user {user_id}"
    call = Call("POST", f"/posts/{post_id}/comments", {"body": body}, key)
    shown = {"post_id": str(post_id), "body": body}
    return Request(user_id, "comment", text, call, writes=shown)


def count_posts(requests: Iterable[Request]) -> Counter[int]:
    return Counter(request.user_id for request in requests if request.act == "post")


def count_comments(requests: Iterable[Request]) -> Counter[int]:
    return Counter(int(r.writes["post_id"]) for r in requests if r.act == "comment")


class Texts(Scenario):
    """Scenario of texts. The posts that are commented on exist already."""

    def __init__(self, texts: Iterable[Request], duplicates: float = 0.0, seed: int = 0) -> None:
        super().__init__(duplicate(texts, duplicates, seed))
        self._posts = count_posts(self.requests)
        self._comments = count_comments(self.requests)
        self._names = {r.user_id: r.writes["nickname"] for r in self.requests if r.act == "rename"}

    def prepare(self, stack: Stack) -> list[Expectation]:
        """Return the expectation of each request; existing texts are added to the counts."""
        stored = read_texts(stack.mysql_url)
        for expected, counts in zip((self._posts, self._comments), stored, strict=True):
            for id_ in expected:
                expected[id_] += counts[id_]
        return super().prepare(stack)

    async def compare(self, stack: Stack, api: ApiReader) -> Comparison:
        """Compare rows, totals and nicknames with the written texts. Raises CommandError."""
        users, posts = {**self._posts, **self._names}, self._comments
        profiles = await api.fetch_each("profiles", users, lambda id_: api.fetch(f"/users/{id_}"))
        pages = await api.fetch_each("posts", posts, lambda id_: api.fetch(f"/posts/{id_}"))
        totals, differences = {}, []
        for of, name, expected, counts, shown in zip(
            ("user", "post"),
            ("posts", "comments"),
            (self._posts, self._comments),
            read_texts(stack.mysql_url),
            (profiles, pages),
            strict=True,
        ):
            reported = {id_: int(shown[id_][name]) for id_ in expected}
            rows = {id_: counts[id_] for id_ in expected}
            differences += compare_totals(of, name, rows, expected.__getitem__, "in the rows")
            differences += compare_totals(of, name, reported, expected.__getitem__)
            totals[name] = add_up(reported, expected.__getitem__, counts.__getitem__)
        differences += [
            f"user {user_id} is named {profiles[user_id]['nickname']} by the API, not {name}"
            for user_id, name in self._names.items()
            if profiles[user_id]["nickname"] != name
        ]
        return Comparison("of the authors", totals, differences)


def read_texts(mysql_url: str) -> tuple[Counter[int], Counter[int]]:
    """Count the live posts of each user and the live comments on each post. Two statements."""
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
