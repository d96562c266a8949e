"""Delete the groups of an erased user."""

from __future__ import annotations

from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline
from plaza.notifications.notifications import mysql_lists, mysql_store, redis_store

_PAGE = 1_000


def erase(user_id: int, deadline: Deadline) -> int:
    """Return how many groups were deleted. The unread counter stays with its sequence: a later one
    would begin at 0, where reactions of before would be new. Ends at the deadline. Safe to repeat.
    Raises MysqlDown, RedisDown."""

    def work(cursor: Cursor) -> int:
        counter = mysql_store.lock_existing(cursor, [user_id]).get(user_id)
        if counter is None:
            return 0
        mysql.send(cursor, mysql_store.render_recount(user_id))
        deleted = mysql_lists.delete_groups(cursor, user_id, _PAGE)
        if not deleted:
            return 0
        unread = mysql_lists.count_unread(cursor, [user_id])[user_id]
        mysql_store.store(cursor, {}, {user_id: unread - counter.unread})
        return deleted

    total = 0
    while not deadline.has_passed:
        deleted = mysql.run_in_transaction(work)
        total += deleted
        if deleted < _PAGE:
            break
    redis_store.drop_unread([user_id])
    return total
