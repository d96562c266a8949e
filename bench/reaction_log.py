"""The reaction log: events archived and recounted a second."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

from bench.figures import Figure, Peer
from bench.harness import Harness
from bench.meters import time_s
from cli.paths import CommandError
from plaza.core.reaction_log import Scope, maintenance, mysql_log, recount
from plaza.core.reaction_log.recount import LatestEvents
from plaza.infra.aws import objects
from plaza.infra.aws.objects import ObjectMissing
from plaza.infra.mysql import mysql
from plaza.infra.runtime import settings

EVENTS = 300_000
DAYS_AGO = 10
POSTS = 1_000
_DAY_US = 86_400_000_000
_AT_ONCE = 50_000
# Content too: likes of posts by other benches would count for their authors.
_TABLES = ("reaction_log", "reaction", "content", "counter", "user_counter", "watermark")


class DirectoryObjectStore:
    """A directory in the place of S3, so that the network is not measured."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bytes = 0

    def put(self, key: str, body: bytes, content_type: str) -> None:
        path = self.directory / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        self.bytes += len(body) * key.endswith(".gz")

    def get(self, key: str) -> bytes:
        try:
            return (self.directory / key).read_bytes()
        except FileNotFoundError:
            raise ObjectMissing(key) from None

    def list_keys(self, prefix: str) -> list[str]:
        keys = (str(p.relative_to(self.directory)) for p in self.directory.rglob("*.*"))
        return sorted(key for key in keys if key.startswith(prefix))


def measure(harness: Harness) -> list[Figure]:
    """Archive one day of events (write, verify, drop), then recount from the archive."""
    harness.clear()
    for table in _TABLES:
        mysql.write(f"DELETE FROM {table}")
    folder = DirectoryObjectStore(harness.directory / "s3")
    patched = {name: getattr(folder, name) for name in ("put", "get", "list_keys")}
    timeout = {"PLAZA_MYSQL_STATEMENT_TIMEOUT_S": "60"}  # the setting of MaintainLog
    try:
        with mock.patch.dict(os.environ, timeout), mock.patch.multiple(objects, **patched):
            _forget_settings()
            return _measure(harness.scale(EVENTS), folder)
    finally:
        _forget_settings()


def _forget_settings() -> None:
    settings.settings.cache_clear()
    mysql.forget_connection()


def _measure(count: int, folder: DirectoryObjectStore) -> list[Figure]:
    today = datetime.now(UTC).date()
    day = today - timedelta(days=DAYS_AGO)
    maintenance.maintain_log(today=day)  # creates the partition of that day
    _fill(count, day.isoformat())
    in_mysql_s = time_s(lambda: _recount(count, 0))
    fold_s, in_all_s = _read_log()
    archived = maintenance.MaintenanceResult()

    def archive() -> None:
        nonlocal archived
        archived = maintenance.maintain_log()

    archive_s = time_s(archive)
    if (archived.events, archived.corrupt) != (count, 0) or archived.behind:
        raise CommandError(f"the archive was not written: {archived}")
    in_s3_s = time_s(lambda: _recount(1, count))
    return [
        Figure(
            "reaction log, archived: written, read back, dropped",
            count / archive_s,
            "events/s",
            Peer("reading it with the driver alone", count / in_all_s),
        ),
        Figure("  S3 bytes per event", folder.bytes / count, "bytes"),
        Figure(
            "reaction log, rebuilt from archives, rows compared",
            count / in_s3_s,
            "events/s",
            Peer("from MySQL", count / in_mysql_s),
        ),
        Figure("  folding alone", count / fold_s, "events/s"),
    ]


def _fill(count: int, day: str) -> None:
    """Insert likes of one day with rows and counters, then one event of today."""
    since = f"UNIX_TIMESTAMP('{day}') * 1000000"
    for start in range(1, count + 1, _AT_ONCE):
        last = min(start + _AT_ONCE - 1, count)
        mysql.write(
            "INSERT INTO reaction_log"
            " (target_type, target_id, kind, actor_id, version, state, change_by, total,"
            f" db_version, create_date) SELECT 'post', 1 + MOD(seq, {POSTS}), 'like', seq,"
            f" {since} + seq, 1, 1, 1, 1, '{day}' FROM seq_{start}_to_{last}"
        )
    mysql.write(
        "INSERT INTO reaction_log"
        " (target_type, target_id, kind, actor_id, version, state, change_by, total, db_version,"
        " create_date)"
        " VALUES ('post', 1, 'like', 1000000000, UNIX_TIMESTAMP() * 1000000, 1, 1, 1, 2,"
        " UTC_DATE())"
    )
    mysql.write(
        "INSERT INTO reaction (target_type, target_id, kind, actor_id, state, version)"
        " SELECT target_type, target_id, kind, actor_id, state, version FROM reaction_log"
    )
    mysql.write(
        "INSERT INTO counter (target_type, target_id, kind, total, version)"
        " SELECT 'post', target_id, 'like', COUNT(*), 1 FROM reaction GROUP BY target_id"
    )
    mysql.write("INSERT INTO watermark (name, seq) SELECT 'likes', MAX(seq) FROM reaction_log")


def _recount(in_mysql: int, archived: int) -> None:
    recounted = recount.recount_log(Scope())
    if recounted.differing or recounted.contradicting or recounted.events_archived != archived:
        raise CommandError(f"the recount differs from the counters: {recounted}")
    if recounted.events_in_mysql < in_mysql:
        raise CommandError(f"{recounted.events_in_mysql} events were read")


def _read_log() -> tuple[float, float]:
    pages: list[Any] = []

    def read() -> None:
        with mysql_log.snapshot() as cursor:
            pages.extend(mysql_log.read_all(cursor, recount.NO_LIMIT_US))

    newest = LatestEvents()

    def replay() -> None:
        for rows in pages:
            newest.add(rows)

    read_s = time_s(read)
    return time_s(replay), read_s
