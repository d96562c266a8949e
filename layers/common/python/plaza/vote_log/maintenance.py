"""Maintaining the log: partitions for the days to come, archives for those that are over.

Nothing leaves MySQL before it is in S3 and was read back from there. A run may end anywhere and be
repeated, or be at it twice: what is written is named for its content, and a partition is dropped
under a lock by whoever finds it as it was archived.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import date

from plaza.infra import clock, sql
from plaza.infra.clock import Deadline
from plaza.infra.observability import record
from plaza.reactions import reaction_log
from plaza.vote_log import mysql_log, s3_archive
from plaza.vote_log.model import (
    ArchiveProgress,
    Checksum,
    Manifest,
    Partition,
    is_closed,
    plan_days,
)
from plaza.vote_log.mysql_log import TooMuchToMove
from plaza.vote_log.s3_archive import ArchiveCorrupt

MAX_RUN_S = 600.0
MAX_MOVED = 100_000
EVENTS_PER_PART = (
    50_000  # events of an object: some megabytes in memory, some hundred kilobytes in S3
)


@dataclass(slots=True)
class MaintenanceResult:
    """What a run has done. ``behind``: days that are over and still in MySQL."""

    created: int = 0
    archived: int = 0
    events: int = 0
    dropped: int = 0
    corrupt: int = 0
    unsplit: int = 0
    behind: int = 0

    def to_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


class _OutOfTime(Exception):
    """What is left is for the next run."""


def maintain_log(max_moved: int = MAX_MOVED, today: date | None = None) -> MaintenanceResult:
    """Create partitions ahead, archive and drop what is over, for ten minutes at most.

    ``max_moved``: as many rows may be copied while consumers wait. Raises MysqlDown, also when the
    log is in use for longer than consumers may wait; ObjectsDown.
    """
    deadline = Deadline.in_s(MAX_RUN_S)
    today = today or sql.from_us(clock.now_us()).date()
    done = MaintenanceResult()
    try:
        _create_ahead(done, today, max_moved)
        _archive_closed(done, today, deadline)
    except _OutOfTime:
        pass
    finally:
        record(
            "log_maintained",
            {
                "log_events_archived": done.events,
                "log_days_behind": done.behind,
                "log_unsplit": done.unsplit,
                "archives_corrupt": done.corrupt,
            },
            created=done.created,
            archived=done.archived,
            dropped=done.dropped,
        )
    return done


def _create_ahead(done: MaintenanceResult, today: date, max_moved: int) -> None:
    found = mysql_log.read_partitions()
    highest = found[-2].below if len(found) > 1 else None
    if not plan_days(highest, None, today):
        return
    try:
        done.created = mysql_log.split_catch_all(today, max_moved)
    except TooMuchToMove:
        done.unsplit = 1


def _archive_closed(done: MaintenanceResult, today: date, deadline: Deadline) -> None:
    closed = [p for p in mysql_log.read_partitions() if is_closed(p, today)]
    done.behind = len(closed)
    for partition in closed:  # the lowest first: only that one is ever dropped
        if not _archive(done, partition, deadline):
            return
        done.dropped += 1
        done.behind -= 1


def _archive(done: MaintenanceResult, partition: Partition, deadline: Deadline) -> bool:
    """Archive what is in the lowest partition and drop it; whether it is gone.

    It stays when a reader of the log has not come so far, and while the highest seq of all is in
    it: MySQL counts on from the highest there is, and must never give a seq again.
    """
    head = reaction_log.read_log_head()
    reaction_log.wait_for_log_writers()
    # From here on what is in the log up to ``head`` stays as it is.
    highest = mysql_log.read_highest_seq(partition)
    if highest and highest == head:
        done.behind = 0  # nothing came after it: it goes when something does
        return False
    read = mysql_log.read_low_watermark()
    if highest and (read is None or highest > read):
        return False
    for day, total in mysql_log.read_checksums(partition, head).items():
        try:
            if not _is_archived(done, day, total, deadline):
                _write(done, partition, day, total, head, deadline)
                if not _is_archived(done, day, total, deadline):
                    if partition not in mysql_log.read_partitions():
                        return True  # another run was quicker
                    raise ArchiveCorrupt(f"{day}: what was read is not what MySQL counted")
        except ArchiveCorrupt as error:
            _report(done, day, error)
            # All of it again. It is read back in the next run, and goes then.
            _write(done, partition, day, total, head, deadline, again=True)
            return False
    return mysql_log.drop_unless_grown(partition, head)


def _is_archived(done: MaintenanceResult, day: date, total: Checksum, deadline: Deadline) -> bool:
    """Whether there is an archive of ``day`` that comes to ``total``; all of it was read back.

    Raises ArchiveCorrupt, ObjectsDown.
    """
    broken: ArchiveCorrupt | None = None
    found = False
    for name in s3_archive.list_manifests(day):
        try:
            manifest = s3_archive.read_manifest(name)
        except ArchiveCorrupt as error:  # of this archive, or of an earlier one of that day
            broken = error
            continue
        if manifest.sum == total and not found:
            for part in manifest.parts:
                _check_time(deadline)
                s3_archive.verify_part(day, part)
            found = True
    if broken is not None and not found:
        raise broken
    if broken is not None:
        _report(done, day, broken)
    return found


def _report(done: MaintenanceResult, day: date, error: ArchiveCorrupt) -> None:
    done.corrupt += 1
    record("archive_corrupt", day=day.isoformat(), what=str(error))


def _write(
    done: MaintenanceResult,
    partition: Partition,
    day: date,
    total: Checksum,
    head: int,
    deadline: Deadline,
    *,
    again: bool = False,
) -> None:
    """Write the archive of ``day``, from where a run before stopped unless all of it ``again``."""
    parts = [] if again else list(s3_archive.read_progress(day, total).parts)
    after = parts[-1].last if parts else None
    while lines := mysql_log.read_page(partition, day, head, after, EVENTS_PER_PART):
        _check_time(deadline)
        part = s3_archive.put_part(day, len(parts), lines)
        parts.append(part)
        after = part.last
        done.events += part.sum.events
        s3_archive.put_progress(day, ArchiveProgress(total, tuple(parts)))
    manifest = Manifest(day, tuple(parts))
    if manifest.sum == total:
        s3_archive.put_manifest(manifest)
        done.archived += 1
    else:
        s3_archive.put_progress(day, ArchiveProgress(total, ()))


def _check_time(deadline: Deadline) -> None:
    if deadline.has_passed:
        raise _OutOfTime
