"""Requests of a scenario, how often each is sent, and the expected outcome. No I/O."""

import random
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple


class Copies(Enum):
    """How often a request is sent: a user clicks twice, or a network retries."""

    ONE = "once"
    AT_ONCE = "twice at the same moment"
    IN_A_ROW = "twice, one after the other"


class Call(NamedTuple):
    """Method, path and body. Creations with the same idempotency ``key`` are one."""

    method: str
    path: str
    body: Mapping[str, Any] | None = None
    key: str | None = None


class Kind(NamedTuple):
    """A kind of reaction: type of its targets, list in its route, field in answers."""

    of: str
    members: str
    state_field: str


KINDS = {
    "like": Kind("post", "likes", "liked"),
    "collect": Kind("post", "collects", "collected"),
    "follow": Kind("user", "followers", "following"),
}


class Reaction(NamedTuple):
    """A reaction that is on."""

    kind: str
    target_id: int
    user_id: int

    def __str__(self) -> str:
        return f"{self.kind} of {KINDS[self.kind].of} {self.target_id} by user {self.user_id}"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a user: ``act`` in one word, ``text`` as a phrase.

    ``sets``: the reaction that it turns on or off. ``reads``: the reactions whose state it reads.
    ``writes``: the written values by the names that they have in answers.
    """

    user_id: int
    act: str
    text: str
    call: Call
    sets: tuple[Reaction, bool] | None = None
    reads: Sequence[Reaction] = ()
    writes: Mapping[str, Any] = field(default_factory=dict)
    copies: Copies = Copies.ONE

    def __str__(self) -> str:
        return self.text


class Expectation(NamedTuple):
    """The outcome of a request that is executed alone and in order.

    Whether it ``changes`` a reaction, and the values that each answer ``shows``.
    """

    changes: bool
    shows: Mapping[str, Any]

    def find_wrong(
        self, request: Request, answers: Sequence[Mapping[str, Any]], certain: bool
    ) -> list[str]:
        """Return a description of each impossible value in the ``answers`` to ``request``.

        Unless it is ``certain`` how often the request was executed, only the state is compared.
        """
        shown = answers
        if request.reads:  # an inexact answer may be outdated
            exact = [answer for answer in answers if answer.get("exact") is not False]
            shown = [(answer.get("items") or [{}])[0] for answer in exact]
        wrong = [
            f"{request}: {name} is {value.get(name)!r}"
            for value in shown
            for name, expected in self.shows.items()
            if value.get(name) != expected
        ]
        changed = sum(answer.get("changed") is True for answer in answers)
        if request.sets and certain and changed != self.changes:
            wrong.append(f"{request}: changed {changed} times, not {int(self.changes)}")
        made = {str(answer.get("id")) for answer in answers if request.call.key}
        if len(made) > 1:
            wrong.append(f"{request}: made {len(made)} times: {', '.join(sorted(made))}")
        return wrong


def set_reaction(reaction: Reaction, on: bool = True) -> Request:
    kind, prefix = KINDS[reaction.kind], "" if on else "un"
    path = f"/{kind.of}s/{reaction.target_id}/{kind.members}/me"
    return Request(
        user_id=reaction.user_id,
        act=f"{prefix}{reaction.kind}",
        text=f"{prefix}{reaction}",
        call=Call("PUT" if on else "DELETE", path),
        sets=(reaction, on),
    )


def view(user_id: int, post_id: int) -> Request:
    targets = [{"type": "post", "id": str(post_id)}]
    return Request(
        user_id=user_id,
        act="view",
        text=f"view of post {post_id} by user {user_id}",
        call=Call("POST", "/reactions/query", {"targets": targets}),
        reads=[Reaction(kind, post_id, user_id) for kind in ("like", "collect")],
    )


def duplicate(requests: Iterable[Request], share: float, seed: int) -> list[Request]:
    """Send a ``share``, 0 to 1, of the requests that write twice.

    Half of those at the same moment, half one after the other.
    """
    chance = random.Random(seed)

    def draw() -> Copies:
        if chance.random() >= share:
            return Copies.ONE
        return chance.choice([Copies.AT_ONCE, Copies.IN_A_ROW])

    return [request if request.reads else replace(request, copies=draw()) for request in requests]


def predict(
    requests: Iterable[Request], before: Set[Reaction]
) -> tuple[list[Expectation], set[Reaction]]:
    """Return the expectation of each request, and the reactions that are on after all.

    ``before``: the reactions that were on. The order among users does not matter.
    """
    on = set(before)
    expectations = []
    for request in requests:
        changes, shows = False, request.writes
        if request.sets:
            reaction, is_on = request.sets
            changes = is_on != (reaction in on)
            if changes:
                on ^= {reaction}
            shows = {KINDS[reaction.kind].state_field: is_on}
        elif request.reads:
            shows = {"mine": {KINDS[read.kind].state_field: read in on for read in request.reads}}
        expectations.append(Expectation(changes, shows))
    return expectations, on
