"""The test bed of the benches: servers of its own, and data in bulk."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from local.stack.bed import run_bed
from plaza.infra.mysql import mysql
from plaza.infra.redis import redis
from plaza.infra.runtime.process import clear_caches


@dataclass(frozen=True, slots=True)
class Harness:
    """The servers that Plaza in this process uses; ``quick``: a tenth of the work."""

    directory: Path
    redis_port: int
    redis_url: str
    mysql_url: str
    quick: bool

    def scale(self, count: int) -> int:
        """Return ``count``, or a tenth of it if ``quick``."""
        return count // 10 if self.quick else count

    def clear(self) -> None:
        """Empty Redis and the caches of this process."""
        redis.execute("FLUSHALL", "ASYNC")
        clear_caches()

    def add_posts(self, ids: Iterable[int], authors: int = 500) -> None:
        values = (f"('post',{i},{1 + i % authors})" for i in ids)
        insert_rows("content (content_type, content_id, author_id)", values)

    def add_users(self, ids: Iterable[int]) -> None:
        insert_rows("user (id, nickname)", (f"({i},'ada')" for i in ids))


def insert_rows(into: str, values: Iterable[str]) -> None:
    """Insert missing rows into ``table (columns)``, a thousand a statement."""
    rows = iter(values)
    while batch := list(islice(rows, 1000)):
        mysql.write(f"INSERT IGNORE INTO {into} VALUES {','.join(batch)}")


@contextlib.contextmanager
def start_harness(quick: bool) -> Iterator[Harness]:
    """Yield a test bed; end and remove all of it afterwards. Raises CommandError."""
    with tempfile.TemporaryDirectory(prefix="plaza-bench-") as name:
        directory = Path(name)
        with run_bed(directory) as (redis_server, mysql_server):
            port, url = redis_server.port, redis_server.url
            yield Harness(directory, port, url, mysql_server.url, quick)
