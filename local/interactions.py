"""A file of interactions: what is in it, what a replay sends for it, what must be true after it.

A file is CSV, gzipped or not: ``user_id,item_id,rating,timestamp``. Every item is a post. A
rating of 4 and more is a like, 5 is a collect as well, 2 and less takes a like back, and
anything between is a view.
"""

import csv
import gzip
import random
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from local.paths import LocalError

COLUMNS = ["user_id", "item_id", "rating", "timestamp"]
MOST_ID = 2**63 - 1
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


class Copies(Enum):
    """How often a request is sent: what an impatient finger or a retrying network makes of it."""

    ONE = "once"
    AT_ONCE = "twice at the same moment"
    IN_A_ROW = "twice, one after the other"


@dataclass(frozen=True, slots=True)
class Request:
    """What ``user_id`` does to a post."""

    user_id: int
    item_id: int
    verb: Verb
    copies: Copies = Copies.ONE

    def __str__(self) -> str:
        return f"{self.verb.name.lower()} of post {self.item_id} by user {self.user_id}"


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


def read_file(path: Path, limit: int | None = None) -> list[Interaction]:
    """The first ``limit`` interactions of a file. Raises LocalError, naming the line."""
    try:
        with _open_text(path) as text:
            found = list(islice(parse(text, path.name), limit))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise LocalError(f"{path} can't be read: {error}") from None
    if not found:
        raise LocalError(f"{path} holds no interactions")
    return found


def parse(lines: Iterable[str], name: str) -> Iterator[Interaction]:
    """The interactions in ``lines``, the first of which is the header. Raises LocalError."""
    rows = csv.reader(lines)
    header = next(rows, [])
    if header != COLUMNS:
        raise LocalError(
            f"{name}, line 1: the header is {','.join(header)[:80]!r}, not {','.join(COLUMNS)!r}"
        )
    for row in filter(None, rows):  # an empty line is nothing
        try:
            if len(row) != len(COLUMNS):
                raise ValueError(f"{len(row)} columns, not {len(COLUMNS)}")
            yield Interaction(
                _whole("user_id", row[0], 1),
                _whole("item_id", row[1], 1),
                _rating(row[2]),
                _whole("timestamp", row[3], 0),
            )
        except ValueError as error:
            raise LocalError(f"{name}, line {rows.line_num}: {error}") from None


def write_file(path: Path, interactions: Iterable[Interaction]) -> None:
    """Write a file that ``read_file`` reads."""
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(COLUMNS)
        for user_id, item_id, rating, at_s in interactions:
            writer.writerow([user_id, item_id, f"{rating:g}", at_s])


def plan(
    interactions: Iterable[Interaction], duplicates: float = 0.0, seed: int = 0
) -> list[Request]:
    """The requests for ``interactions``, in order; a share of the changing ones sent twice.

    ``duplicates`` is that share, 0 to 1. Half of those are sent at the same moment, half in a row.
    """
    chance = random.Random(seed)

    def copies() -> Copies:
        if chance.random() >= duplicates:
            return Copies.ONE
        return chance.choice([Copies.AT_ONCE, Copies.IN_A_ROW])

    return [
        Request(one.user_id, one.item_id, verb, Copies.ONE if verb is Verb.VIEW else copies())
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


def _open_text(path: Path) -> TextIO:
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    if zipped:
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _whole(column: str, text: str, least: int) -> int:
    # int() alone would take "1_000", " 7" and digits of other scripts
    if not (text.isascii() and text.isdigit()) or not least <= int(text[:20]) <= MOST_ID:
        raise ValueError(f"{column} is {text[:40]!r}, not a whole number from {least} to 2^63-1")
    return int(text)


def _rating(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST_RATING:
        raise ValueError(f"rating is {text[:40]!r}, not a number from 0 to 5")
    return value
