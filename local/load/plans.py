"""What a replay plays: requests, how often each is sent, and what must come of it. No I/O."""

import random
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol


class Copies(Enum):
    """How often a request is sent: what an impatient finger or a retrying network makes of it."""

    ONE = "once"
    AT_ONCE = "twice at the same moment"
    IN_A_ROW = "twice, one after the other"


class Call(NamedTuple):
    """What goes over the wire; ``key`` makes several of the same creation one."""

    method: str
    path: str
    question: Mapping[str, Any] | None = None
    key: str | None = None


class Request(Protocol):
    """What a user does through the API; as text, in words."""

    @property
    def user_id(self) -> int:
        """Who does it."""

    @property
    def copies(self) -> Copies:
        """How often it is sent."""

    @property
    def act(self) -> str:
        """What it is, in one word: ``like``."""

    def write(self) -> Call:
        """What is sent."""


class Forecast(Protocol):
    """What must be seen when a request is done alone and in its turn."""

    @property
    def changes(self) -> bool:
        """Whether it changes anything."""

    def find_wrong(
        self, request: Any, answers: Sequence[Mapping[str, Any]], sure: bool
    ) -> list[str]:
        """What can't be true in the ``answers`` to the copies of ``request``.

        Unless it is ``sure`` how often it was done, only the state after it is known.
        """


class Comparison(NamedTuple):
    """What is there after a replay, beside what the file says.

    ``totals``: name -> (what the file says, rows, API), of all ``of`` what; ``notes`` say what
    else was compared. ``differences`` are empty when all agree.
    """

    of: str
    totals: Mapping[str, tuple[int, int, int]]
    differences: Sequence[str]
    notes: Sequence[str] = ()


def draw_copies(duplicates: float, seed: int) -> Callable[[], Copies]:
    """Says of one request after the other how often it is sent.

    ``duplicates`` is the share that is sent twice, 0 to 1: half of those at the same moment, half
    in a row.
    """
    chance = random.Random(seed)

    def draw() -> Copies:
        if chance.random() >= duplicates:
            return Copies.ONE
        return chance.choice([Copies.AT_ONCE, Copies.IN_A_ROW])

    return draw


def find_wrong_change(
    request: Request,
    answers: Sequence[Mapping[str, Any]],
    *,
    said: str,
    on: bool,
    changes: int | None,
) -> list[str]:
    """Answers that don't say that what ``said`` names is ``on``, or not how often it changed.

    ``changes`` is how often it must, None when that can't be known.
    """
    wrong = [
        f"{request}: {said} is {answer.get(said)}" for answer in answers if answer.get(said) != on
    ]
    changed = sum(answer.get("changed") is True for answer in answers)
    if changes is not None and changed != changes:
        wrong.append(f"{request}: changed {changed} times, not {int(changes)}")
    return wrong
