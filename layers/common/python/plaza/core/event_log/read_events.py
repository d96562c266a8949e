"""Read the events of both logs in the order of their commits, without gaps, at least once.

A row gets its seq before its transaction commits, so a reader only reads up to the head: the seqs
below which no transaction is open. Readers share the head; one of them moves it every two seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaza.core.event_log import mysql_events
from plaza.core.event_log.model import (
    DAYS_KEPT,
    MAX_OFFSET_AGE_S,
    EventOffset,
    EventPage,
    LogHead,
    OutgoingEvent,
    cut_page,
)
from plaza.core.targets import target_ids
from plaza.core.targets.types import EXTERNAL
from plaza.infra.jobs.expiry import Expiry
from plaza.infra.runtime import clock
from plaza.infra.runtime.observability import record

_DAY_US = 86_400_000_000


def read_page(after: EventOffset | None, limit: int) -> EventPage:
    """Return up to ``limit`` events after a offset; None: the oldest that MySQL has. Three
    statements; nine more if the head is moved, and what ``name_targets`` costs. Raises EventsGone,
    MysqlDown."""
    head, now_s = find_head(), int(clock.now_s())
    offset = after or EventOffset.at_start(head.epoch, now_s)
    offset.require_kept(head, now_s)
    since_us = _find_first_us()
    args = since_us, limit
    page = cut_page(
        offset,
        head,
        mysql_events.read_reactions(offset.reaction_seq, head.reaction_seq, *args),
        mysql_events.read_events(offset.event_seq, head.event_seq, *args),
        limit,
        now_s,
    )
    return page._replace(events=name_targets(page.events))


def name_targets(events: Sequence[OutgoingEvent]) -> list[OutgoingEvent]:
    """Return ``events`` with the ids of targets of the app, at the cost of
    ``target_ids.render_ids``."""
    about = [event.target for event in events if event.target[0] in EXTERNAL]
    ids = target_ids.render_ids(about)
    return [event._replace(external_id=ids.get(event.target)) for event in events]


def find_head() -> LogHead:
    """Return the head of both logs, moved if it is due. A log whose writers take too long keeps
    its head. One statement; seven more to move it. Raises MysqlDown."""
    head, is_due = mysql_events.read_head()
    if not is_due or not mysql_events.claim_head():
        return head
    reactions, event_seq = mysql_events.pass_reaction_barrier(), mysql_events.pass_event_barrier()
    if reactions is None or event_seq is None:
        record("log_barrier_busy", {"log_barriers_busy": 1})
    epoch, reaction_seq = reactions or (head.epoch, head.reaction_seq)
    if epoch != head.epoch and event_seq is None:
        return head  # the seqs of the new epoch are not known
    event_seq = head.event_seq if event_seq is None else event_seq
    return mysql_events.store_head(
        LogHead(epoch, reaction_seq, event_seq), int(clock.now_s()) // 60
    )


def find_offset(at_s: int) -> EventOffset | None:
    """Return a offset before all events that were stored from ``at_s`` on: some minutes before,
    or before all that MySQL has if its first offset is younger. None: MySQL does not have all of
    them. Two statements at most, and what moves the head. Raises MysqlDown."""
    offset = mysql_events.find_offset(at_s // 60 - 1)
    if offset is None and at_s > clock.now_s() - MAX_OFFSET_AGE_S:
        return EventOffset(find_head().epoch, 0, 0, at_s)
    return offset


def delete_expired(limit: int) -> int:
    """Delete up to ``limit`` offsets that are older than the events. One statement. Raises
    MysqlDown."""
    return mysql_events.delete_offsets(int(clock.now_s()) // 60 - (DAYS_KEPT + 1) * 24 * 60, limit)


EXPIRY = Expiry("event_offset", delete_expired)


def _find_first_us() -> int:
    """Return the time from which on all events are in MySQL: the start of a day (UTC)."""
    return (clock.now_us() // _DAY_US - DAYS_KEPT) * _DAY_US
