"""Reader of the HTTP API: single resources, whole lists, many requests at once."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

from cli.paths import CommandError
from local.load.crowd import Client
from local.load.requests import Call

Item = TypeVar("Item")
Result = TypeVar("Result")
_PAGE = 100  # the largest page of the API


class ApiReader(Client):
    """Client that retries until it has an answer. ``on_progress`` gets a progress text."""

    def __init__(
        self,
        base_url: str,
        tokens: Mapping[int, str],
        concurrency: int,
        on_progress: Callable[[str], None],
    ) -> None:
        super().__init__(base_url, tokens, concurrency)
        self.on_progress = on_progress

    async def fetch(
        self, path: str, *, body: Any = None, user_id: int | None = None
    ) -> Mapping[str, Any]:
        """Return the body of a GET, or of a POST of ``body``, sent without a session or by
        ``user_id``.

        Raises CommandError for another status than 200.
        """
        method = "GET" if body is None else "POST"
        answer = await self.send(Call(method, path, body), user_id)
        if answer.status != 200:
            verb = "answers" if answer.status else "gives"
            raise CommandError(f"{method} {self.base_url}{path} {verb} {answer}")
        return answer.body

    async def read_list(self, path: str, user_id: int | None = None) -> list[Mapping[str, Any]]:
        """Return all items of a list, one request a page. Raises CommandError."""
        items: list[Mapping[str, Any]] = []
        cursor: str | None = ""
        first = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
        while cursor is not None:
            page = await self.fetch(f"{first}{cursor}", user_id=user_id)
            items += page["items"]
            cursor = page["next"] and f"&cursor={page['next']}"
        return items

    async def fetch_each(
        self, name: str, items: Iterable[Item], fetch: Callable[[Item], Awaitable[Result]]
    ) -> dict[Item, Result]:
        """Return item -> result of ``fetch``, in the order of ``items``; ``concurrency`` run at
        once.

        Raises CommandError.
        """
        listed = list(items)
        results: dict[Item, Result] = {}

        async def work(item: Item) -> None:
            results[item] = await fetch(item)
            if len(results) % 50 == 0:
                self.on_progress(f"{name}, {len(results):,} of {len(listed):,}")

        await self.play(listed, work)
        return {item: results[item] for item in listed}
