"""Background builds: fill a structure in Redis from MySQL, page by page, beside the one in use.

Scripts include build.inc.lua. A build has a name; one build of a structure runs at a
time, and another may replace it when it has been idle for its timeout. Each step is bounded; the
next message of a queue or the next scheduled run continues where it ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

T = TypeVar("T")

BEGUN, FILLED, FINISHED = "BEGUN", "FILLED", "FINISHED"  # script codes; any other ends a build


@dataclass(frozen=True, slots=True)
class Builder(Generic[T]):
    """The functions that build one structure, and its ``name`` in the log.

    ``begin(build)`` begins a build and ``fill(build, items, is_last)`` adds a page; both return the
    code of their script. ``read(after_id, limit)`` returns items in the order of ``id_of``; fewer
    than ``limit`` are the last.
    """

    name: str
    begin: Callable[[str], str]
    read: Callable[[int, int], Sequence[T]]
    fill: Callable[[str, Sequence[T], bool], str]
    id_of: Callable[[T], int]


class BuildProgress(NamedTuple):
    """The name of a build, its last id, the code of the last script, and the items a step added.
    After FILLED there are more pages."""

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
    """Fill up to ``max_pages`` pages of ``build``, which begins if it is ''; return the progress.

    Stops after ``deadline``, but fills at least one page. One read and one fill a page. Raises what
    the builder raises.
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
