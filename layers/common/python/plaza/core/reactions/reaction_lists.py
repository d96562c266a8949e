"""Lists of reactions for readers: what contexts with texts of targets offer for them, and the
caller's reactions. The number of round trips does not grow with the length of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from plaza.core.reactions import queries
from plaza.core.reactions.kinds import Kind
from plaza.core.reactions.model import ReactedTarget, Target
from plaza.core.targets import target_ids
from plaza.infra.contexts import offers
from plaza.infra.http.responses import format_time
from plaza.infra.mysql.sql import from_us

if TYPE_CHECKING:
    from plaza.infra.http.schemas import ResponseModel


class Listed(Protocol):
    """A module with the texts of targets of some ``TYPES`` in lists of reactions.

    ``ABSENT``: the JSON fields of an item without a text.
    """

    TYPES: Collection[str]
    ABSENT: str

    def require_visible(self, target: Target, reader_id: int | None) -> None:
        """Raise what reading a target would: NotFound, Gone, TargetHidden, Unavailable."""

    def encode_texts(
        self, targets: Sequence[Target], reader_id: int
    ) -> tuple[Mapping[Target, str], Target | None]:
        """Return target -> its JSON fields in an item, and the first target whose text does not
        fit into the response."""

    def find_schema(self) -> type[ResponseModel]:
        """Return the model of these fields."""


def list_offered() -> list[Listed]:
    """Return the modules that contexts offer. Loads them."""
    return [listed for _, listed in offers("listed")]


def require_visible(target: Target, actor_id: int | None) -> None:
    """Raise what reading the target would: NotFound, Gone, TargetHidden, Unavailable. One round
    trip unless this process read its text within 1 s; none for a type without texts."""
    for listed in list_offered():
        if target.type in listed.TYPES:
            listed.require_visible(target, actor_id)


def list_reacted(
    kind: Kind,
    actor_id: int,
    after: ReactedTarget | None,
    limit: int,
    types: Collection[str] | None,
) -> tuple[list[str], ReactedTarget | None]:
    """Return a page of the actor's reactions, latest first, each a ``ReactionListItem`` as JSON,
    and the next page's ``after``.

    As ``queries.list_reacted``. Targets of ``types`` (None: all) have their texts: it adds the
    round trips of ``Listed.encode_texts``, and shortens the page to what fits into a response.
    ``target_ids.render_ids`` adds what it costs.
    """
    page, last = queries.list_reacted(kind, actor_id, after, limit)
    ids = target_ids.render_ids(reacted.target for reacted in page)
    targets = [reacted.target for reacted in page]
    fields: dict[Target, list[str]] = {target: [] for target in targets}
    for listed in list_offered():
        encoded, excess = _encode_texts(listed, targets, types, actor_id)
        for target in targets:
            fields[target].append(encoded.get(target, listed.ABSENT))
        if excess is not None:
            targets = targets[: targets.index(excess)]
            last = page[len(targets) - 1]
    shown = page[: len(targets)]
    return [encode_item(r, ids[r.target], fields[r.target]) for r in shown], last


def _encode_texts(
    listed: Listed, targets: Sequence[Target], types: Collection[str] | None, actor_id: int
) -> tuple[Mapping[Target, str], Target | None]:
    shown = [t for t in targets if t.type in listed.TYPES and (types is None or t.type in types)]
    return listed.encode_texts(shown, actor_id) if shown else ({}, None)


def encode_item(reacted: ReactedTarget, target_id: str, texts: Iterable[str]) -> str:
    """Encode a ``ReactionListItem``. ``texts``: the JSON fields of each ``Listed``."""
    own = [
        f'"type":"{reacted.target.type}"',
        f'"id":"{target_id}"',
        f'"at":"{format_time(from_us(reacted.version_us))}"',
    ]
    return f"{{{','.join([*own, *texts])}}}"
