"""Asking the HTTP API for what there is: answers, lists to their end, and many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar

import aiohttp

from local.load.players import LATER, MOST_TRIES, draw_wait_s, open_session, read_retry_after_s
from local.paths import LocalError

Item = TypeVar("Item")
Said = TypeVar("Said")
_PAGE = 100  # the most a page holds


class Asker:
    """Asks as a patient client does: what is refused for now is asked again.

    ``tokens``: user id -> session token, of those who ask.
    """

    def __init__(self, base_url: str, tokens: Mapping[int, str], concurrency: int) -> None:
        self._base_url = base_url
        self._tokens = tokens
        self._concurrency = concurrency
        self._session = open_session(concurrency)

    async def __aenter__(self) -> "Asker":
        await self._session.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._session.__aexit__(*error)

    async def ask(
        self, path: str, *, question: Any = None, user_id: int | None = None
    ) -> Mapping[str, Any]:
        """The answer to a GET, or to a POST of ``question``; to nobody unless ``user_id`` asks.

        Raises LocalError.
        """
        method = "GET" if question is None else "POST"
        headers = {"Authorization": f"Bearer {self._tokens[user_id]}"} if user_id else {}
        url = self._base_url + path
        for tries in range(1, MOST_TRIES + 1):
            wait_s = draw_wait_s(tries)
            try:
                async with self._session.request(
                    method, url, json=question, headers=headers
                ) as response:
                    if response.status == 200:
                        answer: dict[str, Any] = await response.json()
                        return answer
                    said = f"answers {response.status}: {(await response.text())[:300]}"
                    if response.status not in LATER:
                        break
                    wait_s += read_retry_after_s(response.headers)
            except (aiohttp.ClientError, TimeoutError) as error:
                said = f"gives no answer: {type(error).__name__} {error}"
            await asyncio.sleep(wait_s)
        raise LocalError(f"{method} {url} {said}")

    async def read_list(self, path: str, user_id: int | None = None) -> list[Mapping[str, Any]]:
        """All items of a list, page by page. Raises LocalError."""
        items: list[Mapping[str, Any]] = []
        cursor: str | None = ""
        first = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}"
        while cursor is not None:
            page = await self.ask(f"{first}{cursor}", user_id=user_id)
            items += page["items"]
            cursor = page["next"] and f"&cursor={page['next']}"
        return items

    async def ask_each(
        self,
        items: Iterable[Item],
        ask: Callable[[Item], Awaitable[Said]],
        tell: Callable[[str], None],
    ) -> dict[Item, Said]:
        """What ``ask`` says of each of ``items``, in their order, some of them at a time.

        ``tell`` hears how far it is. Raises LocalError.
        """
        wanted = list(items)
        waiting = iter(wanted)
        said: dict[Item, Said] = {}

        async def work() -> None:
            for item in waiting:
                said[item] = await ask(item)
                if len(said) % 50 == 0:
                    tell(f"{len(said):,} of {len(wanted):,}")

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._concurrency, len(wanted))):
                    group.create_task(work())
        except* LocalError as errors:
            raise errors.exceptions[0] from None
        return {item: said[item] for item in wanted}
