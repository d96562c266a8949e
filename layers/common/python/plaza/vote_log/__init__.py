"""The vote log: kept in MySQL by day, archived to S3 when a day is over, counted from again."""

from plaza.vote_log.maintaining import MOST_MOVED, Maintained, maintain_log
from plaza.vote_log.mysql_totals import Counted, Scope
from plaza.vote_log.recounting import (
    EVER_US,
    NOT_IN_LOG,
    Contradiction,
    Differing,
    Recount,
    count_facts,
    find_contradictions,
    recount_log,
    recount_rows,
)
from plaza.vote_log.s3_archive import ArchiveCorrupt

__all__ = [
    "EVER_US",
    "MOST_MOVED",
    "NOT_IN_LOG",
    "ArchiveCorrupt",
    "Contradiction",
    "Counted",
    "Differing",
    "Maintained",
    "Recount",
    "Scope",
    "count_facts",
    "find_contradictions",
    "maintain_log",
    "recount_log",
    "recount_rows",
]
