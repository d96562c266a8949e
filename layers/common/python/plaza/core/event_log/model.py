"""Events that other systems read, and their offsets in two logs. No I/O.

The reaction log has reactions and follows; the event log has comments, orders and reports. Each log
has an order of its own. An event has the same id in MySQL and in the archive.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import merge
from typing import Any, NamedTuple

from plaza.infra.mysql.sql import from_us
from plaza.infra.runtime.errors import Gone

DAYS_KEPT = 8
"""Days of events in MySQL, as of the reaction log; older ones are in the archive."""

MAX_OFFSET_AGE_S = DAYS_KEPT * 86_400


class EventsGone(Gone):
    """The cursor is of events that MySQL no longer has, or that were lost when it was restored."""

    slug = "events-gone"
    title = "Events gone"
    example = "Events after this cursor are only in the archive; begin again without a cursor."


class EventDraft(NamedTuple):
    """An event to append. ``target``: type and id of what the resource is about: of a comment the
    post, of an order the voucher. ``detail``: a reason or an outcome. ``key_id``: the key of a
    server that moderated, for ``actor_id``."""

    kind: str
    actor_id: int
    target: tuple[str, int]
    resource_id: int
    detail: str | None = None
    key_id: str | None = None


class OutgoingEvent(NamedTuple):
    """An event as other systems read it. ``at_us``: microseconds since 1970; others as of
    ``EventDraft``, None for reactions. ``external_id``: of a target of the app, once it is named
    (``read_events.name_targets``)."""

    kind: str
    at_us: int
    actor_id: int
    target: tuple[str, int]
    resource_id: int | None = None
    detail: str | None = None
    key_id: str | None = None
    external_id: str | None = None

    @property
    def id(self) -> str:
        """Return the id: the same for each reader, at any time. It has no full stop, which
        separates the parts of what a webhook signs."""
        name = self.kind.replace(".", "_")
        if self.resource_id is not None:
            return f"{name}_{self.resource_id}_{self.at_us}"
        return f"{name}_{self.target[0]}_{self.target[1]}_{self.actor_id}_{self.at_us}"

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON: what the API and webhooks send, and the archive prints."""
        return {
            "id": self.id,
            "type": self.kind,
            "timestamp": f"{from_us(self.at_us):%Y-%m-%dT%H:%M:%S.%fZ}",
            "data": {
                "actor_id": str(self.actor_id),
                "key_id": self.key_id,
                "target": {"type": self.target[0], "id": self.external_id or str(self.target[1])},
                "id": None if self.resource_id is None else str(self.resource_id),
                "detail": self.detail,
            },
        }


class LogRow(NamedTuple):
    """A row of a log; without an event if nothing changed."""

    seq: int
    at_us: int
    event: OutgoingEvent | None


class LogHead(NamedTuple):
    """The seqs up to which both logs are complete. ``epoch``: how often MySQL was restored to an
    earlier moment, after which seqs repeat."""

    epoch: int
    reaction_seq: int
    event_seq: int


class EventOffset(NamedTuple):
    """All events up to both seqs were read. ``read_s``: a time, in seconds since 1970, after which
    all others were stored."""

    epoch: int
    reaction_seq: int
    event_seq: int
    read_s: int

    @classmethod
    def at_start(cls, epoch: int, now_s: int) -> EventOffset:
        """Return the offset before all events that MySQL has."""
        return cls(epoch, 0, 0, now_s)

    def require_kept(self, head: LogHead, now_s: int) -> None:
        """Raise EventsGone if events after this offset may have been archived or lost."""
        if self.epoch != head.epoch:
            raise EventsGone("MySQL was restored after this cursor; begin again without a cursor.")
        if self.read_s < now_s - MAX_OFFSET_AGE_S:
            raise EventsGone


class EventPage(NamedTuple):
    """Events, both seqs after each, the offset after all of them, and whether there are more."""

    events: list[OutgoingEvent]
    seqs: list[tuple[int, int]]
    next: EventOffset
    has_more: bool


def make_reaction_event(
    target: tuple[str, int], kind: str, actor_id: int, at_us: int, change: int
) -> OutgoingEvent | None:
    """Return the event of a row of the reaction log, None for one that changed nothing."""
    if not change:
        return None
    state = "added" if change > 0 else "removed"
    return OutgoingEvent(f"{kind}.{state}", at_us, actor_id, target)


def cut_page(
    after: EventOffset,
    head: LogHead,
    reactions: Sequence[LogRow],
    events: Sequence[LogRow],
    limit: int,
    now_s: int,
) -> EventPage:
    """Return the first ``limit`` events of the rows that follow in each log, up to ``limit`` rows
    of it. By time, but never against the order of a log."""
    of_logs = _tag(reactions, 0), _tag(events, 1)
    seqs = [after.reaction_seq, after.event_seq]
    left = [len(reactions), len(events)]
    page: list[OutgoingEvent] = []
    after_each: list[tuple[int, int]] = []
    for log, row in merge(*of_logs, key=lambda tagged: tagged[1].at_us):
        if len(page) == limit:
            break
        seqs[log] = row.seq
        left[log] -= 1
        if row.event is not None:
            page.append(row.event)
            after_each.append((seqs[0], seqs[1]))
    heads = head.reaction_seq, head.event_seq
    for log, rows in enumerate((reactions, events)):
        if not left[log] and len(rows) < limit:  # the log has no further row up to its head
            seqs[log] = max(seqs[log], heads[log])
    has_more = seqs[0] < heads[0] or seqs[1] < heads[1]
    read_s = after.read_s if has_more else now_s
    return EventPage(page, after_each, EventOffset(after.epoch, seqs[0], seqs[1], read_s), has_more)


def _tag(rows: Iterable[LogRow], log: int) -> list[tuple[int, LogRow]]:
    return [(log, row) for row in rows]
