"""``events``: print the events of closed days from the archive, one JSON object a line.

MySQL has the last eight days, which ``GET /ops/events`` returns. The ids are the same.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import date, timedelta

from cli.paths import CommandError
from ops.environment import use_environment
from plaza.core.event_log import s3_archive
from plaza.core.event_log.model import OutgoingEvent, make_reaction_event
from plaza.core.event_log.read_events import name_targets
from plaza.core.reaction_log import s3_archive as reactions_archive
from plaza.infra.aws.archive import ArchiveCorrupt
from plaza.infra.runtime.settings import settings


def main(args: argparse.Namespace) -> int:
    """Print the events of each day, by time. Raises CommandError for a bad day or archive."""
    try:
        first = date.fromisoformat(args.day)
        last = date.fromisoformat(args.until) if args.until else first
    except ValueError:
        raise CommandError("a day is like 2026-11-21") from None
    lines: list[str] = []
    with use_environment(args):
        if settings().archive_bucket is None:
            raise CommandError("PLAZA_ARCHIVE_BUCKET is not set")
        try:
            for number in range((last - first).days + 1):
                events = name_targets(read_day(first, number))
                lines += map(json.dumps, map(OutgoingEvent.to_dict, events))
        except ArchiveCorrupt as error:
            raise CommandError(str(error)) from None
    for line in lines:
        print(line)
    return 0


def read_day(first: date, number: int) -> list[OutgoingEvent]:
    """Return the events of a day, each once, by time. Raises ArchiveCorrupt, ObjectsDown."""
    day = first + timedelta(days=number)
    events = {event.id: event for event in (*_read_reactions(day), *s3_archive.read_day(day))}
    return sorted(events.values(), key=lambda event: event.at_us)


def _read_reactions(day: date) -> Iterator[OutgoingEvent]:
    for name in reactions_archive.list_manifests(day):
        for part in reactions_archive.read_manifest(name).parts:
            for row in reactions_archive.read_part(day, part):
                event = make_reaction_event(
                    (row.target_type, row.target_id),
                    row.kind,
                    row.actor_id,
                    row.version_us,
                    row.change,
                )
                if event is not None:
                    yield event
