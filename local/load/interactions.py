"""A file of interactions: what is in it, what a replay sends for it, what must be true after it.

A file is CSV, gzipped or not: ``user_id,item_id,rating,timestamp``. Every item is a post. A
rating of 4 and more is a like, 5 is a collect as well, 2 and less takes a like back, and
anything between is a view.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from local.load import files
from local.load.files import read_whole
from local.load.plans import Call, Copies, draw_copies, find_wrong_change

COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
HIGHEST_RATING = 5.0


class Interaction(NamedTuple):
    """One line of a file: a user gave a post a ``rating`` of 0 to 5 at ``at_s`` (since 1970)."""

    user_id: int
    item_id: int
    rating: float
    at_s: int


class Verb(Enum):
    """What one request does. The values are (kind of reaction, on or off); a view has neither."""

    LIKE = ("like", True)
    UNLIKE = ("like", False)
    COLLECT = ("collect", True)
    VIEW = ("", None)


_METHODS = {Verb.LIKE: "PUT", Verb.UNLIKE: "DELETE", Verb.COLLECT: "PUT"}


@dataclass(frozen=True, slots=True)
class Request:
    """What ``user_id`` does to a post."""

    user_id: int
    item_id: int
    verb: Verb
    copies: Copies = Copies.ONE

    @property
    def act(self) -> str:
        """The verb as a word."""
        return self.verb.name.lower()

    def __str__(self) -> str:
        return f"{self.act} of post {self.item_id} by user {self.user_id}"

    def write(self) -> Call:
        """What is sent."""
        if self.verb is Verb.VIEW:
            question = {"targets": [{"type": "post", "id": str(self.item_id)}]}
            return Call("POST", "/reactions/query", question)
        kind, _ = self.verb.value
        return Call(_METHODS[self.verb], f"/posts/{self.item_id}/{kind}s/me")


class Reaction(NamedTuple):
    """A reaction that is on."""

    kind: str
    item_id: int
    user_id: int


class Forecast(NamedTuple):
    """What must be seen when a request is done alone and in its turn.

    ``changes`` for a change: whether it changes anything. ``liked`` and ``collected``: what the
    user has of the post when it is done.
    """

    changes: bool
    liked: bool
    collected: bool

    def find_wrong(
        self, request: Request, answers: Sequence[Mapping[str, Any]], sure: bool
    ) -> list[str]:
        """What can't be true in the ``answers`` to the copies of ``request``.

        Unless it is ``sure`` how often it was done, only the state after it is known.
        """
        if request.verb is not Verb.VIEW:
            kind, on = request.verb.value
            said = "liked" if kind == "like" else "collected"
            changes = int(self.changes) if sure else None
            return find_wrong_change(request, answers, said=said, on=on, changes=changes)
        expected = {"liked": self.liked, "collected": self.collected}
        seen = [
            (answer.get("items") or [{}])[0].get("mine")
            for answer in answers
            if answer.get("exact") is not False
        ]
        return [f"{request}: mine is {mine}, not {expected}" for mine in seen if mine != expected]


def read_file(path: Path, limit: int | None = None) -> list[Interaction]:
    """The first ``limit`` interactions of a file. Raises LocalError, naming the line."""
    return files.read_rows(path, COLUMNS, _read_row, limit)


def parse(lines: Iterable[str], name: str) -> Iterator[Interaction]:
    """The interactions in ``lines``, the first of which is the header. Raises LocalError."""
    return files.parse_rows(lines, name, COLUMNS, _read_row)


def write_file(path: Path, interactions: Iterable[Interaction]) -> None:
    """Write a file that ``read_file`` reads."""
    rows = ((one.user_id, one.item_id, f"{one.rating:g}", one.at_s) for one in interactions)
    files.write_rows(path, COLUMNS, rows)


def plan(
    interactions: Iterable[Interaction], duplicates: float = 0.0, seed: int = 0
) -> list[Request]:
    """The requests for ``interactions``, in order; a share of the changing ones sent twice."""
    draw = draw_copies(duplicates, seed)
    return [
        Request(one.user_id, one.item_id, verb, Copies.ONE if verb is Verb.VIEW else draw())
        for one in interactions
        for verb in verbs_of(one.rating)
    ]


def verbs_of(rating: float) -> tuple[Verb, ...]:
    """What a rating says."""
    if rating >= HIGHEST_RATING:
        return Verb.LIKE, Verb.COLLECT
    if rating >= 4:
        return (Verb.LIKE,)
    return (Verb.UNLIKE,) if rating <= 2 else (Verb.VIEW,)


def foresee(
    requests: Sequence[Request], before: Set[Reaction]
) -> tuple[list[Forecast], set[Reaction]]:
    """What each request must come to, and which reactions are on after all of them.

    ``before`` holds what was on. Users act in any order among each other: it changes nothing.
    """
    on = set(before)
    forecasts = []
    for request in requests:
        kind, wanted = request.verb.value
        reaction = Reaction(kind, request.item_id, request.user_id)
        changes = wanted is not None and wanted != (reaction in on)
        if changes:
            on ^= {reaction}
        liked = reaction._replace(kind="like") in on
        collected = reaction._replace(kind="collect") in on
        forecasts.append(Forecast(changes, liked, collected))
    return forecasts, on


def author_of(item_id: int, user_ids: Sequence[int]) -> int:
    """Who wrote a post: one of ``user_ids`` (sorted), the same each time."""
    return user_ids[item_id * 2_654_435_761 % 2**32 % len(user_ids)]


def _read_row(row: Sequence[str]) -> Interaction:
    return Interaction(
        read_whole("user_id", row[0]),
        read_whole("item_id", row[1]),
        _read_rating(row[2]),
        read_whole("timestamp", row[3], 0),
    )


def _read_rating(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST_RATING:
        raise ValueError(f"rating is {text[:40]!r}, not a number from 0 to 5")
    return value
