"""The archive of the event log in S3.

event_log/date=<YYYY-MM-DD>/<first seq>-<digest>.jsonl.gz  events of a day as JSON lines

A day has any number of objects. After a run that ended early an event may be in several, with the
same id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from plaza.core.event_log.model import LogRow, OutgoingEvent
from plaza.infra.aws import archive, objects
from plaza.infra.aws.archive import DIGEST_CHARS
from plaza.infra.aws.archive import ArchiveCorrupt as ArchiveCorrupt
from plaza.infra.runtime.codec import Undecodable, record_codec

PREFIX = "event_log/"
_NAME = re.compile(rf"\d{{19}}-([0-9a-f]{{{DIGEST_CHARS}}})\.jsonl\.gz")


class ArchivedEvent(NamedTuple):
    """A row of the event log, as the archive has it."""

    seq: int
    kind: str
    created_us: int
    actor_id: int
    target_type: str
    target_id: int
    resource_id: int
    detail: str | None
    key_id: str | None = None


ARCHIVED_EVENT = record_codec("archived_events", ArchivedEvent, {"key_id"})


def put(day: date, rows: Sequence[LogRow]) -> None:
    """Write rows of a day as one object, and read it back. Two calls. Raises ArchiveCorrupt,
    ObjectsDown."""
    lines = [ARCHIVED_EVENT.encode(_archived(row.seq, row.event)) for row in rows if row.event]
    stored = archive.put_lines(f"{_folder(day)}{rows[0].seq:019d}", lines)
    if archive.read_text(stored.key, stored.sha256, stored.bytes).splitlines() != lines:
        raise ArchiveCorrupt(f"{stored.key}: the content is not what was written")


def read_day(day: date) -> Iterator[OutgoingEvent]:
    """Yield the events of a day, one object after another. One call an object, and one for the
    list. Raises ArchiveCorrupt, ObjectsDown."""
    folder = _folder(day)
    for key in sorted(objects.list_keys(folder)):
        match = _NAME.fullmatch(key.removeprefix(folder))
        if match is None:
            continue
        for line in archive.read_text(key, match[1]).splitlines():
            try:
                yield _event(ARCHIVED_EVENT.decode(line))
            except Undecodable as error:
                raise ArchiveCorrupt(f"{key}: {error}") from None


def _archived(seq: int, event: OutgoingEvent) -> ArchivedEvent:
    return ArchivedEvent(
        seq,
        event.kind,
        event.at_us,
        event.actor_id,
        *event.target,
        event.resource_id or 0,
        event.detail,
        event.key_id,
    )


def _event(row: ArchivedEvent) -> OutgoingEvent:
    return OutgoingEvent(
        row.kind,
        row.created_us,
        row.actor_id,
        (row.target_type, row.target_id),
        row.resource_id,
        row.detail,
        row.key_id,
    )


def _folder(day: date) -> str:
    return f"{PREFIX}date={day.isoformat()}/"
