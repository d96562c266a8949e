"""What the feed is made of: entries, timelines, and what is asked of its consumers. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from plaza.content import Place
from plaza.infra.queues import BadRecord

MOST_ID = 2**63 - 1
MOST_PAIRS = 1_000
MOST_TIMELINES = 100
BEGINNING_US = 1  # the floor of a timeline that is whole to its end
NOWHERE_US = 2**53 - 1  # the floor of one that says nothing
INBOX = "inbox"
POSTS = "posts"


class Entry(NamedTuple):
    """A post in a timeline. Sorts as its place does."""

    created_us: int
    id: int
    author_id: int

    @property
    def place(self) -> Place:
        """Where it stands."""
        return Place(self.created_us, self.id)


class Timeline(NamedTuple):
    """A user's inbox (what those they follow posted), or the newest posts of their own."""

    kind: str
    user_id: int

    @property
    def cap(self) -> int:
        """How many entries it keeps."""
        return 1_000 if self.kind == INBOX else 200


class Followee(NamedTuple):
    """Somebody whom a user follows, and whether they are a star."""

    user_id: int
    star: bool


@dataclass(frozen=True, slots=True)
class FanOut:
    """A post is to be pushed to its author's followers whose id is above ``after_id``.

    ``announce``: the author has become a star, and that is pushed with it.
    """

    post_id: int
    after_id: int = 0
    announce: bool = False

    def to_json(self) -> str:
        """As it stands on the queue."""
        said: dict[str, Any] = {"post_id": self.post_id}
        if self.after_id:
            said |= {"after_id": self.after_id, "announce": self.announce}
        return json.dumps(said, separators=(",", ":"))

    @classmethod
    def from_json(cls, body: str) -> FanOut:
        """What ``to_json`` or content (``PostPublished``) wrote. Raises BadRecord."""
        said = _read(body, dict)
        fan_out = cls(said.get("post_id"), said.get("after_id", 0), said.get("announce", False))
        ids = (fan_out.post_id, fan_out.after_id)
        if not (all(type(i) is int and 0 <= i <= MOST_ID for i in ids) and fan_out.post_id):
            raise BadRecord("no ids of a fan-out")
        if type(fan_out.announce) is not bool:
            raise BadRecord("announce is neither true nor false")
        return fan_out


def read_pairs(body: str) -> list[tuple[int, int]]:
    """(who, whom) of follows that changed. Raises BadRecord."""
    said = _read(body, list)
    pairs = [tuple(pair) if type(pair) is list else () for pair in said]
    good = all(len(p) == 2 and all(type(i) is int and 0 < i <= MOST_ID for i in p) for p in pairs)
    if not good or not 0 < len(pairs) <= MOST_PAIRS:
        raise BadRecord("no pairs of users")
    return pairs


def write_timelines(timelines: Iterable[Timeline]) -> str:
    """Timelines that are to be rebuilt, as they stand on the queue."""
    return json.dumps(list(timelines), separators=(",", ":"))


def read_timelines(body: str) -> list[Timeline]:
    """What ``write_timelines`` wrote. Raises BadRecord."""
    said = _read(body, list)
    good = all(
        type(one) is list
        and len(one) == 2
        and one[0] in (INBOX, POSTS)
        and type(one[1]) is int
        and 0 < one[1] <= MOST_ID
        for one in said
    )
    if not good or not 0 < len(said) <= MOST_TIMELINES:
        raise BadRecord("no timelines")
    return [Timeline(*one) for one in said]


def merge(
    found: Iterable[Sequence[Entry]], floor_us: int, after: Place | None, count: int
) -> list[Entry]:
    """The newest ``count`` entries of ``found`` above the floor and past ``after``, each once."""
    entries = {
        entry.id: entry
        for entries in found
        for entry in entries
        if entry.created_us > floor_us and (after is None or entry.place < after)
    }
    return sorted(entries.values(), reverse=True)[:count]


def floor_of(newest: Sequence[Entry], count: int) -> int:
    """The time above which ``newest`` is whole, when ``count`` were asked for."""
    return newest[-1].created_us if len(newest) == count else BEGINNING_US


def by_author(entries: Iterable[Entry]) -> Mapping[int, list[Entry]]:
    """The entries of each author, in the order in which they come."""
    found: dict[int, list[Entry]] = {}
    for entry in entries:
        found.setdefault(entry.author_id, []).append(entry)
    return found


def _read(body: str, shape: type) -> Any:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"no JSON: {type(error).__name__} {error}") from None
    if type(said) is not shape:
        raise BadRecord(f"no {shape.__name__}")
    return said
