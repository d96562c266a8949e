"""Builds: what is filled from MySQL in the background, page by page, beside the one in use.

Its scripts include scripts/build.inc.lua: a build has a name, one build of a thing is under way at
a time, and one that does nothing for a while may be taken over. Whoever walks it takes a bounded
step and then goes on where that ended: with the next message of a queue, or in the next run.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from plaza.infra.clock import Deadline
from plaza.infra.observability import record

T = TypeVar("T")

BEGUN, FILLED, FINISHED = "BEGUN", "FILLED", "FINISHED"  # codes of scripts; others end a build


@dataclass(frozen=True, slots=True)
class Builder(Generic[T]):
    """How one thing is built; ``name`` names it in the log.

    ``begin`` begins the build of a name, ``fill`` adds a page to it, the last or not: both return
    the code of their script. ``read`` returns at most so many items behind an id, in the order of
    ``id_of``; fewer than that are the last.
    """

    name: str
    begin: Callable[[str], str]
    read: Callable[[int, int], Sequence[T]]
    fill: Callable[[str, Sequence[T], bool], str]
    id_of: Callable[[T], int]


class BuildProgress(NamedTuple):
    """How far a build is: its name, the id of the last item it has, and how many a step added.

    ``code`` is that of the last script; with FILLED there is more.
    """

    build: str
    after_id: int
    code: str
    added: int


def advance(
    builder: Builder[T],
    build: str,
    after_id: int,
    page: int,
    max_pages: int,
    deadline: Deadline | None = None,
) -> BuildProgress:
    """Take ``build`` further, or begin one if it is '': ``max_pages`` pages, or until ``deadline``.

    At least one page. One read and one fill a page. Raises what the builder raises.
    """
    name, code, added = build or secrets.token_hex(8), FILLED, 0
    if not build and (code := builder.begin(name)) != BEGUN:
        record("build_refused", builder=builder.name, code=code)
        return BuildProgress(name, after_id, code, 0)
    for _ in range(max_pages):
        items = builder.read(after_id, page)
        code = builder.fill(name, items, len(items) < page)
        added += len(items)
        if items:
            after_id = builder.id_of(items[-1])
        if code != FILLED or (deadline and deadline.has_passed):
            break
    record(
        "build_advanced", {"items_built": added}, builder=builder.name, code=code, after_id=after_id
    )
    return BuildProgress(name, after_id, code, added)
