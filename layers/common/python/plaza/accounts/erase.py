"""Erase accounts: hidden at once, then erased in passes until one finds nothing.

A pass calls each context. Its steps are safe to repeat, so that a process may end between any two
of them. Requests and messages that were on their way when the erasure was requested can bring a row
back: the next passes, ever further apart, find it. Afterwards a look once a day finds what an
import, a restore or a message that was redriven brought back, and opens the erasure again.
"""

from __future__ import annotations

from plaza import idempotency
from plaza.accounts import mysql_store
from plaza.accounts.model import Erasure
from plaza.auth import session_end
from plaza.bell import erasure as bell_erasure
from plaza.blocks import erasure as blocks_erasure
from plaza.checkins import erasure as checkins_erasure
from plaza.content import erasure as content_erasure
from plaza.feed import erasure as feed_erasure
from plaza.flash_sales import erasure as sales_erasure
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record
from plaza.moderation import erasure as moderation_erasure
from plaza.push import erasure as push_erasure
from plaza.reactions import erasure as reactions_erasure
from plaza.shops import erasure as shops_erasure
from plaza.users import erasure as users_erasure

MAX_RUN_S = 40
_MAX_PER_RUN = 100
_MAX_CLOSED_PER_RUN = 1_000


def run_passes(max_s: float = MAX_RUN_S) -> int:
    """Run the passes that are due, for about ``max_s`` seconds; return how many ended.

    A pass that fails or is cut off is due again; the others run. Raises MysqlDown, and the first
    error of a pass after all.
    """
    deadline = Deadline.in_s(max_s)
    ended, errors = 0, []
    if returned := mysql_store.reopen_returned(_MAX_CLOSED_PER_RUN):
        record("erasures_reopened", {"erasures_reopened": len(returned)}, user_ids=returned[:100])
    for erasure in mysql_store.find_due(_MAX_PER_RUN):
        if deadline.has_passed:
            break
        try:
            ended += _run_pass(erasure, deadline)
        except Exception as error:
            record("erasure_failed", user_id=erasure.user_id, **error_fields(error))
            errors.append(error)
    number, age_s = mysql_store.measure()
    record("erasures_advanced", {"erasures_open": number, "erasure_age_s": age_s}, passes=ended)
    if errors:
        raise errors[0]
    return ended


def _run_pass(erasure: Erasure, deadline: Deadline) -> bool:
    """Run a pass; return whether it reached its end before the deadline."""
    user_id = erasure.user_id
    erased = session_end.erase(user_id)  # first: a session could write again
    erased += shops_erasure.erase(user_id)  # before the user: a member exists when appointed
    erased += users_erasure.erase(user_id)
    erased += idempotency.delete_of_user(user_id)
    erased += blocks_erasure.erase(user_id)
    erased += moderation_erasure.erase(user_id)
    erased += content_erasure.erase(user_id, deadline)
    erased += reactions_erasure.erase(user_id, deadline)
    erased += sales_erasure.erase(user_id, deadline)
    erased += bell_erasure.erase(user_id, deadline)
    erased += push_erasure.erase(user_id)
    erased += checkins_erasure.erase(user_id)
    feed_erasure.erase(user_id)
    if deadline.has_passed:
        return False
    mysql_store.end_pass(user_id, clean=erased == 0)
    return True
