"""Pages that MySQL reads to store a like, when ``reaction`` is larger than the memory for pages.

A MariaDB of its own has a small buffer pool, without a change buffer as in Aurora. Tables with each
of the indexes left out grow in a large pool, then the small one is measured: likes of random actors
of random targets, 50 in a transaction, stored by the statements of the consumer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from pymysql.connections import Connection

from bench.figures import Figure, Goal, Peer
from bench.harness import Harness
from local.stack import servers
from local.stack.servers import Server, connect_mysql
from plaza.core.reactions import mysql_rows
from plaza.core.reactions.model import ReactionEvent, ReactionKey, group_events

POOL_MB, GROWING_POOL_MB = 16, 1024
RATIOS = (1, 4, 9, 16)
MAX_READS = 2.2  # of a like, at nine times the pool
_JUDGED = 9
_LIKES, _PER_TRANSACTION = 5_000, 50
_ROWS_AT_ONCE = 10_000
_MAX_ID = 10_000_000  # of targets and of actors
LAYOUTS = {
    "now": (),
    "no index": ("by_actor",),
}
"""Name -> the indexes of ``reaction`` that are left out."""


class Cost(NamedTuple):
    """What a like costs at one size, and the bytes of a row with its indexes."""

    page_reads: float
    rows_per_s: float
    row_bytes: float


def measure(harness: Harness) -> list[Figure]:
    """Measure all layouts at all ratios of table to pool."""
    pool_mb = POOL_MB // 2 if harness.quick else POOL_MB
    server = servers.prepare_mysql(harness.directory / "page-reads", for_tests=True)
    costs: dict[tuple[int, str], Cost] = {}
    random, rows = Random(1), dict.fromkeys(LAYOUTS, 0)
    with opening(server, GROWING_POOL_MB) as connection:
        create_tables(connection, harness.mysql_url)
    for ratio in RATIOS:
        with opening(server, GROWING_POOL_MB) as connection:
            for layout in LAYOUTS:
                while size_of(server, layout) < ratio * pool_mb * 2**20:
                    grow(connection, layout, rows[layout], random)
                    rows[layout] += _ROWS_AT_ONCE
        with opening(server, pool_mb) as connection:
            for layout in LAYOUTS:
                reads, rate = store_likes(connection, layout, harness.scale(_LIKES), random)
                costs[ratio, layout] = Cost(reads, rate, size_of(server, layout) / rows[layout])
    return [figure for ratio in RATIOS for figure in figures_of(ratio, costs)]


@contextmanager
def opening(server: Server, pool_mb: int) -> Iterator[Connection[Any]]:
    """Run the server with a buffer pool in the block."""
    file = server.directory / "my.cnf"
    # By default MariaDB would keep 1,536 pages free, which is more than the small pool has. Of
    # settings that are there twice, the last one counts.
    settings = (
        f"innodb-buffer-pool-size = {pool_mb}M",
        "innodb-change-buffering = none",
        "innodb-lru-scan-depth = 100",
        "innodb-stats-auto-recalc = OFF",
        "skip-log-bin",
    )
    file.write_text("\n".join([file.read_text(), *settings, ""]))
    with servers.run_server(server), closing(connect_mysql(server.url)) as connection:
        yield connection


def create_tables(connection: Connection[Any], migrated_url: str) -> None:
    """Create a table for each layout, as the migrations leave it."""
    with closing(connect_mysql(migrated_url)) as migrated, migrated.cursor() as cursor:
        cursor.execute("SHOW CREATE TABLE reaction")
        [(_, create)] = cursor.fetchall()
    with connection.cursor() as cursor:
        for layout, left_out in LAYOUTS.items():
            cursor.execute(create)
            for index in left_out:
                cursor.execute(f"DROP INDEX {index} ON reaction")
            cursor.execute(f"RENAME TABLE reaction TO {table_of(layout)}")


def table_of(layout: str) -> str:
    return "reaction_" + layout.replace(" ", "_")


def size_of(server: Server, layout: str) -> int:
    """Return the bytes of a table with its indexes."""
    return (Path(server.directory) / "data" / "plaza" / f"{table_of(layout)}.ibd").stat().st_size


def grow(connection: Connection[Any], layout: str, rows: int, random: Random) -> None:
    """Insert rows of random targets and actors, in no order of their keys."""
    span = rows + _ROWS_AT_ONCE
    seed = random.randrange(2**30)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT IGNORE INTO {table_of(layout)}
                (target_type, target_id, kind, actor_id, state, version)
            SELECT 'post', 1 + FLOOR(RAND({seed}) * {_MAX_ID}), 'like',
                   1 + FLOOR(RAND({seed + 1}) * {_MAX_ID}), 1, 1700000000000000 + seq
            FROM seq_{rows + 1}_to_{span}
            """
        )
    connection.commit()


def store_likes(
    connection: Connection[Any], layout: str, likes: int, random: Random
) -> tuple[float, float]:
    """Store new likes; return the pages read and the rows stored a second. What the pool has of
    other tables is replaced by as many likes before."""
    with connection.cursor() as cursor:
        cursor.execute(f"RENAME TABLE {table_of(layout)} TO reaction")
        try:
            store(connection, likes, random)
            before, began_s = pages_read(connection), time.perf_counter()
            store(connection, likes, random)
            took_s = time.perf_counter() - began_s
            return (pages_read(connection) - before) / likes, likes / took_s
        finally:
            cursor.execute(f"RENAME TABLE reaction TO {table_of(layout)}")


def store(connection: Connection[Any], likes: int, random: Random) -> None:
    for _ in range(likes // _PER_TRANSACTION):
        events = [
            ReactionEvent(
                ReactionKey("post", random.randint(1, _MAX_ID), "like", random.randint(1, _MAX_ID)),
                True,
                time.time_ns() // 1000,
            )
            for _ in range(_PER_TRANSACTION)
        ]
        with connection.cursor() as cursor:
            connection.begin()
            mysql_rows.read_rows(cursor, {event.key for event in events})
            rows = mysql_rows.render_rows(group_events(events))
            mysql_rows.upsert_rows(cursor, rows)
            connection.commit()


def pages_read(connection: Connection[Any]) -> int:
    """Return the pages that InnoDB has read because they were not in the pool."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_reads'")
        [(_, count)] = cursor.fetchall()
        return int(count)


def figures_of(ratio: int, costs: dict[tuple[int, str], Cost]) -> Sequence[Figure]:
    """Return the figures of one ratio, with the index by_actor and without it."""
    now, bare = costs[ratio, "now"], costs[ratio, "no index"]
    goal = Goal("at most", MAX_READS) if ratio == _JUDGED else None
    return [
        Figure(
            f"page reads a like, table {ratio} x the pool",
            now.page_reads,
            "",
            Peer("without by_actor", bare.page_reads),
            goal,
        ),
        Figure("  stored a second", now.rows_per_s, "", Peer("without", bare.rows_per_s)),
        Figure("  bytes of a row", now.row_bytes, "", Peer("without", bare.row_bytes)),
    ]
