"""Delete groups that were read and are old."""

from __future__ import annotations

from plaza.infra.jobs.expiry import Expiry
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.notifications.notifications import mysql_lists, mysql_store

KEPT_READ_S = 365 * 86_400


def delete_expired(limit: int) -> int:
    """Delete up to ``limit`` groups that are read and did not notify a year; return their number. A
    new group of the same subject begins at the unread counter's sequence, so that nothing old is
    new. One statement and one transaction of two. Raises MysqlDown."""
    old = mysql_lists.find_old(KEPT_READ_S, limit)
    if not old:
        return 0

    def work(cursor: Cursor) -> int:
        mysql_store.lock_existing(cursor, sorted(old))
        return mysql_lists.delete_read(cursor, [key for keys in old.values() for key in keys])

    return mysql.run_in_transaction(work)


EXPIRY = Expiry("notification_group", delete_expired)
