"""Maintain the reaction log: create partitions ahead, archive and drop the closed ones.

A partition is dropped after its archive was written to S3 and read back. A run may stop at any
point, be repeated, or overlap with another: objects are named by their content, and a partition is
dropped under a lock and only if nothing was added since it was archived.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import date

from plaza.core.reaction_log import mysql_log, s3_archive
from plaza.core.reaction_log.model import (
    ArchiveProgress,
    Checksum,
    Manifest,
    Partition,
    PartitionSums,
    is_closed,
    plan_days,
)
from plaza.core.reaction_log.mysql_log import TooMuchToMove
from plaza.core.reaction_log.s3_archive import ArchiveCorrupt
from plaza.core.reactions import reaction_log
from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.runtime import clock
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import record

MAX_RUN_S = 600.0
MAX_MOVED = 100_000
EVENTS_PER_SUM = 200_000  # a quarter of a second in MySQL
EVENTS_PER_PART = 50_000  # some megabytes in memory, some hundred kilobytes in S3


@dataclass(slots=True)
class MaintenanceResult:
    """``unsplit``: 1 if the catch-all partition is too large to split; ``behind``: number of closed
    partitions in MySQL."""

    created: int = 0
    archived: int = 0
    events: int = 0
    dropped: int = 0
    corrupt: int = 0
    unsplit: int = 0
    behind: int = 0


class _OutOfTime(Exception):
    """Ends a run; the next one resumes."""


def run_maintenance(event: Mapping[str, object]) -> dict[str, int]:
    """Maintain the log as the event of a run asks, at most ``{"max_moved": rows}``; return the
    fields of the result. Raises as ``maintain_log``."""
    return asdict(maintain_log(int(str(event.get("max_moved", MAX_MOVED)))))


def maintain_log(max_moved: int = MAX_MOVED, today: date | None = None) -> MaintenanceResult:
    """Create partitions ahead, archive and drop closed ones, for ten minutes at most.

    ``max_moved``: number of rows that may be copied while consumers wait. Raises MysqlDown, also
    when the table lock is not granted in time; ObjectsDown; the first error after both have run.
    """
    deadline, day = Deadline.in_s(MAX_RUN_S), today or clock.today()
    result = MaintenanceResult()
    try:
        run_jobs(
            {
                "create_partitions": lambda: _create_ahead(result, day, max_moved),
                "archive_partitions": lambda: _archive_closed(result, day, deadline),
            },
            run=0,
        )
    finally:
        record(
            "log_maintained",
            {
                "log_events_archived": result.events,
                "log_days_behind": result.behind,
                "log_unsplit": result.unsplit,
                "archives_corrupt": result.corrupt,
            },
            created=result.created,
            archived=result.archived,
            dropped=result.dropped,
        )
    return result


def _create_ahead(result: MaintenanceResult, today: date, max_moved: int) -> None:
    partitions = mysql_log.read_partitions()
    highest = partitions[-2].below if len(partitions) > 1 else None
    if not plan_days(highest, None, today):
        return
    try:
        result.created = mysql_log.split_catch_all(today, max_moved)
    except TooMuchToMove:
        result.unsplit = 1


def _archive_closed(result: MaintenanceResult, today: date, deadline: Deadline) -> None:
    partitions = mysql_log.read_partitions()
    mysql_log.delete_other_sums(partitions)  # of a run that ended after it dropped a partition
    closed = [partition for partition in partitions if is_closed(partition, today)]
    result.behind = len(closed)
    with suppress(_OutOfTime):
        for partition in closed:  # only the lowest may be dropped
            if not _archive(result, partition, deadline):
                return
            result.dropped += 1
            result.behind -= 1


def _archive(result: MaintenanceResult, partition: Partition, deadline: Deadline) -> bool:
    """Archive the lowest partition and drop it; return whether it was dropped.

    It is kept while a reader's watermark is below its rows, and while it has the highest seq of the
    log: MySQL continues from the highest stored seq, and must never assign one twice.
    """
    head = reaction_log.read_log_head()
    reaction_log.wait_for_log_writers()
    # From here on, the rows up to ``head`` do not change.
    highest = mysql_log.read_highest_seq(partition)
    if highest and highest == head:
        result.behind = 0  # it is dropped when a later row exists
        return False
    watermark = mysql_log.read_low_watermark()
    if highest and (watermark is None or highest > watermark):
        return False
    head, sums = _sum(partition, head, deadline)
    for day, total in sums.sums.items():
        try:
            if not _is_archived(result, partition, head, sums, day, deadline):
                _write(result, partition, day, total, head, deadline)
                if not _is_archived(result, partition, head, sums, day, deadline):
                    if partition not in mysql_log.read_partitions():
                        mysql_log.delete_sums(partition)
                        return True  # another run has dropped it
                    raise ArchiveCorrupt(f"{day}: the archive does not have MySQL's checksum")
        except ArchiveCorrupt as error:
            _report(result, day, error)
            # The next run reads the new archive back and drops the partition.
            mysql_log.delete_sums(partition)
            _write(result, partition, day, total, head, deadline, from_start=True)
            return False
    dropped = mysql_log.drop_unless_grown(partition, head)
    mysql_log.delete_sums(partition)  # of a partition that has grown they begin again
    return dropped


def _sum(partition: Partition, head: int, deadline: Deadline) -> tuple[int, PartitionSums]:
    """Return (seq, checksums of the rows up to it), which a run before may have begun."""
    head, sums = mysql_log.read_sums(partition) or (head, PartitionSums())
    while not sums.is_complete:
        _check_time(deadline)
        sums = sums.add(*mysql_log.sum_page(partition, head, sums.after, EVENTS_PER_SUM))
        mysql_log.store_sums(partition, head, sums)
    return head, sums


def _is_archived(
    result: MaintenanceResult,
    partition: Partition,
    head: int,
    sums: PartitionSums,
    day: date,
    deadline: Deadline,
) -> bool:
    """Return whether ``day`` has an archive with its checksum, after reading it back.

    Parts that a run before has read are not read again. Raises ArchiveCorrupt, ObjectsDown.
    """
    corrupt: ArchiveCorrupt | None = None
    has_parts = False
    for name in s3_archive.list_manifests(day):
        try:
            manifest = s3_archive.read_manifest(name)
        except ArchiveCorrupt as error:  # this one, or an earlier archive of that day
            corrupt = error
            continue
        if manifest.sum == sums.sums[day] and not has_parts:
            verified = sums.verified.get(name, 0)
            try:
                for part in manifest.parts[verified:]:
                    _check_time(deadline)
                    s3_archive.verify_part(day, part)
                    sums.verified[name] = verified = verified + 1
            except _OutOfTime:
                mysql_log.store_sums(partition, head, sums)
                raise
            has_parts = True
    if corrupt is not None and not has_parts:
        raise corrupt
    if corrupt is not None:
        _report(result, day, corrupt)
    return has_parts


def _report(result: MaintenanceResult, day: date, error: ArchiveCorrupt) -> None:
    result.corrupt += 1
    record("archive_corrupt", day=day.isoformat(), what=str(error))


def _write(
    result: MaintenanceResult,
    partition: Partition,
    day: date,
    total: Checksum,
    head: int,
    deadline: Deadline,
    *,
    from_start: bool = False,
) -> None:
    """Write the archive of ``day``; resume an unfinished one unless ``from_start``."""
    parts = [] if from_start else list(s3_archive.read_progress(day, total).parts)
    after = parts[-1].last if parts else None
    while lines := mysql_log.read_page(partition, day, head, after, EVENTS_PER_PART):
        _check_time(deadline)
        part = s3_archive.put_part(day, len(parts), lines)
        parts.append(part)
        after = part.last
        result.events += part.sum.events
        s3_archive.put_progress(day, ArchiveProgress(total, tuple(parts)))
    manifest = Manifest(day, tuple(parts))
    if manifest.sum == total:
        s3_archive.put_manifest(manifest)
        result.archived += 1
    else:
        s3_archive.put_progress(day, ArchiveProgress(total, ()))


def _check_time(deadline: Deadline) -> None:
    if deadline.has_passed:
        raise _OutOfTime
