"""Lists of the API: their first page, page after page, or item after item."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any, Generic, TypeVar

from typing_extensions import TypedDict


class Page(TypedDict):
    """What the pages of all lists have."""

    items: list[Any]
    next: str | None


P = TypeVar("P", bound=Page)
Item = TypeVar("Item")


class Listed(Generic[P, Item]):
    """A list. Nothing is read before it is asked for; a loop over it reads all pages."""

    def __init__(self, read: Callable[[str | None], P]) -> None:
        self._read = read

    def first(self) -> P:
        """Return the first page: ``items``, and ``next``, the ``cursor`` of the page after it."""
        return self._read(None)

    def pages(self) -> Iterator[P]:
        """Read page after page. A page may be short or empty before the end."""
        page = self._read(None)
        yield page
        while (cursor := page["next"]) is not None:
            page = self._read(cursor)
            yield page

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from page["items"]


class AsyncListed(Generic[P, Item]):
    """A list. ``await`` returns its first page; ``async for`` reads the items of all pages."""

    def __init__(self, read: Callable[[str | None], Awaitable[P]]) -> None:
        self._read = read

    def __await__(self) -> Generator[Any, None, P]:
        return self._read(None).__await__()

    async def first(self) -> P:
        """Return the first page: ``items``, and ``next``, the ``cursor`` of the page after it."""
        return await self._read(None)

    async def pages(self) -> AsyncIterator[P]:
        """Read page after page. A page may be short or empty before the end."""
        page = await self._read(None)
        yield page
        while (cursor := page["next"]) is not None:
            page = await self._read(cursor)
            yield page

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in page["items"]:
                yield item
