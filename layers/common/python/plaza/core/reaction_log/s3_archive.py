"""The archive of the reaction log in S3.

reaction_log/date=<YYYY-MM-DD>/part-<number>-<digest>.jsonl.gz  events as JSON lines
reaction_log/date=<YYYY-MM-DD>/manifest-<digest>.json           the parts of one archive
reaction_log/date=<YYYY-MM-DD>/progress.json                    the parts of an unfinished archive

The digest is of the content, so repeated, late and concurrent writes never replace an object with
another. A day may have several archives; its events are the union of all of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from datetime import date

from plaza.core.reaction_log.model import (
    MANIFEST,
    PROGRESS,
    ArchiveLine,
    ArchivePart,
    ArchiveProgress,
    Checksum,
    LoggedEvent,
    Manifest,
    checksum,
    last_key,
    read_lines,
)
from plaza.infra.aws import archive, objects
from plaza.infra.aws.archive import DIGEST_CHARS
from plaza.infra.aws.archive import ArchiveCorrupt as ArchiveCorrupt
from plaza.infra.aws.objects import ObjectMissing
from plaza.infra.runtime.codec import Undecodable

PREFIX = "reaction_log/"
_MANIFEST = re.compile(
    rf"{PREFIX}date=(\d{{4}}-\d\d-\d\d)/manifest-[0-9a-f]{{{DIGEST_CHARS}}}\.json"
)
_JSON = "application/json"


def put_part(day: date, number: int, lines: Sequence[ArchiveLine]) -> ArchivePart:
    """Write ``lines``, in the order of the primary key, as one object. Raises ObjectsDown."""
    folder = _folder(day)
    stored = archive.put_lines(f"{folder}part-{number:05d}", (line.text for line in lines))
    versions = [line.version_us for line in lines]
    return ArchivePart(
        name=stored.key.removeprefix(folder),
        sum=checksum(lines),
        bytes=stored.bytes,
        sha256=stored.sha256,
        min_version_us=min(versions),
        max_version_us=max(versions),
        last=last_key(lines),
    )


def read_part(day: date, part: ArchivePart) -> list[LoggedEvent]:
    """Return the events of a part. Raises ArchiveCorrupt, ObjectsDown."""
    try:
        rows = read_lines(_read_text(day, part))
    except Undecodable as error:
        raise ArchiveCorrupt(f"{_folder(day)}{part.name}: {error}") from None
    if len(rows) != part.sum.events:
        raise ArchiveCorrupt(f"{_folder(day)}{part.name}: {len(rows)} events")
    return rows


def verify_part(day: date, part: ArchivePart) -> None:
    """Read a part and compare its size, SHA-256 and number of lines with its manifest.

    Equal bytes have equal events, so these are not decoded. Raises ArchiveCorrupt, ObjectsDown.
    """
    lines = _read_text(day, part).count("\n")
    if lines != part.sum.events:
        raise ArchiveCorrupt(f"{_folder(day)}{part.name}: {lines} lines")


def put_manifest(manifest: Manifest) -> None:
    """Write the manifest, which makes the archive complete. Raises ObjectsDown."""
    text = MANIFEST.encode(manifest)
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    objects.put(f"{_folder(manifest.day)}manifest-{digest}.json", text.encode(), _JSON)


def list_manifests(day: date | None = None) -> list[str]:
    """Return the names of all manifests of ``day``, or of all days, by day. Raises ObjectsDown."""
    prefix = PREFIX if day is None else f"{_folder(day)}manifest-"
    return [key for key in objects.list_keys(prefix) if _MANIFEST.fullmatch(key)]


def read_manifest(name: str) -> Manifest:
    """Return the manifest of that name. Raises ArchiveCorrupt, ObjectsDown."""
    try:
        body = objects.get(name)
        digest = hashlib.sha256(body).hexdigest()[:DIGEST_CHARS]
        if not name.endswith(f"-{digest}.json"):
            raise ArchiveCorrupt(f"{name}: the content is not what was written")
        return MANIFEST.decode(body.decode())
    except (ObjectMissing, ValueError) as error:
        raise ArchiveCorrupt(f"{name}: {type(error).__name__}") from None


def day_in(name: str) -> date:
    """Return the day of the manifest of that name. Raises ValueError."""
    match = _MANIFEST.fullmatch(name)
    if match is None:
        raise ValueError(f"{name} is not a manifest")
    return date.fromisoformat(match[1])


def put_progress(day: date, progress: ArchiveProgress) -> None:
    """Store the parts of an unfinished archive. Raises ObjectsDown."""
    objects.put(f"{_folder(day)}progress.json", PROGRESS.encode(progress).encode(), _JSON)


def read_progress(day: date, goal: Checksum) -> ArchiveProgress:
    """Return the progress of the archive of ``day`` with checksum ``goal``; empty without a
    readable one. Raises ObjectsDown."""
    try:
        progress = PROGRESS.decode(objects.get(f"{_folder(day)}progress.json").decode())
    except (ObjectMissing, ValueError):
        return ArchiveProgress(goal, ())
    return progress if progress.goal == goal else ArchiveProgress(goal, ())


def _folder(day: date) -> str:
    return f"{PREFIX}date={day.isoformat()}/"


def _read_text(day: date, part: ArchivePart) -> str:
    return archive.read_text(_folder(day) + part.name, part.sha256, part.bytes)
