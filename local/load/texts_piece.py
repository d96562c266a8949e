"""What a crowd writes as a replay plays it: its requests, and what is compared."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing

from local.load.asking import Asker
from local.load.plans import Comparison
from local.load.texts import Forecast, Rename, Text, count_comments, count_posts, plan
from local.stack.servers import connect_mysql
from local.stack.stack import Stack

Counts = dict[int, int]


class TextsPiece:
    """What is played of texts. The posts that are commented on are there already."""

    kinds = frozenset[str]()

    def __init__(self, texts: Iterable[Text], duplicates: float = 0.0, seed: int = 0) -> None:
        self.requests = plan(texts, duplicates, seed)
        self.user_ids = sorted({request.user_id for request in self.requests})
        self._posts = count_posts(self.requests)
        self._comments = count_comments(self.requests)
        self._names = {r.user_id: r.nickname for r in self.requests if isinstance(r, Rename)}

    def prepare(self, stack: Stack) -> list[Forecast]:
        """What each request must come to. What is there already is counted in."""
        posts, comments = read_texts(stack.mysql_url)
        for expected, there in ((self._posts, posts), (self._comments, comments)):
            for id_ in expected:
                expected[id_] += there.get(id_, 0)
        return [Forecast()] * len(self.requests)

    async def compare(self, stack: Stack, asker: Asker, tell: Callable[[str], None]) -> Comparison:
        """Rows, totals and names beside what was written. Raises LocalError."""

        async def ask_user(user_id: int) -> Mapping[str, object]:
            return await asker.ask(f"/users/{user_id}")

        async def ask_post(post_id: int) -> int:
            post = await asker.ask(f"/posts/{post_id}")
            return int(post["comments"])

        posts, comments = read_texts(stack.mysql_url)
        profiles = await asker.ask_each({**self._posts, **self._names}, ask_user, tell)
        seen_posts = {user_id: int(str(profiles[user_id]["posts"])) for user_id in self._posts}
        seen_comments = await asker.ask_each(self._comments, ask_post, tell)
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


def read_texts(mysql_url: str) -> tuple[Counts, Counts]:
    """How many live posts each user has, and how many live comments each post."""
    with closing(connect_mysql(mysql_url)) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT author_id, COUNT(*) FROM content"
            " WHERE content_type = 'post' AND deleted_at IS NULL GROUP BY author_id"
        )
        posts = dict(cursor.fetchall())
        cursor.execute(
            "SELECT parent_id, COUNT(*) FROM content"
            " WHERE content_type = 'comment' AND deleted_at IS NULL GROUP BY parent_id"
        )
        return posts, dict(cursor.fetchall())


def find_differences(
    of: str, expected: Mapping[int, int], rows: Mapping[int, int], seen: Mapping[int, int]
) -> list[str]:
    """Where the rows or the API have not as many as were written."""
    differences = []
    for id_, count in expected.items():
        if rows.get(id_, 0) != count:
            differences.append(f"{of} {id_}: {rows.get(id_, 0)} in the rows, {count} written")
        if seen.get(id_, 0) != count:
            differences.append(f"{of} {id_}: {seen.get(id_, 0)} by the API, {count} written")
    return differences


def add_up(
    expected: Mapping[int, int], rows: Mapping[int, int], seen: Mapping[int, int]
) -> tuple[int, int, int]:
    """(written, rows, API), of those that were written to."""
    return (
        sum(expected.values()),
        sum(rows.get(id_, 0) for id_ in expected),
        sum(seen.get(id_, 0) for id_ in expected),
    )
