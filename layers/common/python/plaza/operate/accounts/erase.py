"""Erase accounts: closed at once, and after seven days erased in passes until one finds nothing.

Before that the texts of a closed account are hidden, and shown when it opens again.

A pass runs ``erase`` of each manifest. Its steps are safe to repeat, so that a process may end
between any two of them. Requests and messages that were on their way when the erasure was requested
can bring a row back: the next passes, ever further apart, find it. Afterwards a look once a day
finds what an import, a restore or a message that was redriven brought back (``remains`` of
manifests), and opens the erasure again.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from plaza.infra.contexts import offers
from plaza.infra.jobs.scheduled_jobs import run_jobs
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.auth import request_erasure, session_end
from plaza.people.users import closed_users, erasures
from plaza.people.users.closed_users import ClosedUser
from plaza.people.users.erasures import SETTLE_S, Erasure

MAX_RUN_S = 40
_MAX_PER_RUN = 100
_MAX_CLOSED_PER_RUN = 1_000


def run_passes(max_s: float = MAX_RUN_S) -> int:
    """Hide and show texts of closed and reopened accounts, then run the passes that are due, for
    about ``max_s`` seconds; return how many ended.

    What fails or is cut off is due again; the others run. Raises MysqlDown, and the first error
    after all.
    """
    deadline = Deadline.in_s(max_s)
    ended, errors = 0, []
    remains = [condition for _, condition in offers("remains")]
    if returned := erasures.reopen_returned(remains, _MAX_CLOSED_PER_RUN):
        record("erasures_reopened", {"erasures_reopened": len(returned)}, user_ids=returned[:100])
    work: list[tuple[int, Callable[[], bool]]] = [
        (closed.user_id, partial(_settle, closed, deadline))
        for closed in closed_users.find_unsettled(_MAX_PER_RUN)
    ]
    work += [
        (erasure.user_id, partial(_run_pass, erasure, deadline))
        for erasure in erasures.find_due(_MAX_PER_RUN)
    ]
    for user_id, run in work:
        if deadline.has_passed:
            break
        try:
            ended += run()
        except Exception as error:
            record("erasure_failed", user_id=user_id, **error_fields(error))
            errors.append(error)
    number, age_s = erasures.measure()
    record("erasures_advanced", {"erasures_open": number, "erasure_age_s": age_s}, passes=ended)
    if errors:
        raise errors[0]
    return ended


def _settle(closed: ClosedUser, deadline: Deadline) -> bool:
    """Hide the texts of a closed account, or show a reopened one's texts; return False: this is
    no pass. It is repeated until requests from before the account closed are over."""
    changed = 0
    if closed.is_reopened:
        for _, show in offers("show"):
            changed += show(closed.user_id, closed.closed_at, deadline)
    else:
        request_erasure.hide_account(closed.user_id)
        for _, hide in offers("hide"):
            changed += hide(closed.user_id, deadline)
    if not changed and not deadline.has_passed:
        closed_users.settle(closed, SETTLE_S)
    return False


def _run_pass(erasure: Erasure, deadline: Deadline) -> bool:
    """Run a pass; return whether it reached its end before the deadline. Raises the first error
    after all contexts have run."""
    user_id = erasure.user_id
    erased = session_end.erase(user_id)  # first: a session could write again
    # From the top wing down: rows are erased before the rows that they need. A context that fails
    # keeps no other one from erasing: the profile is among the last.
    jobs = {name: partial(erase, user_id, deadline) for name, erase in reversed([*offers("erase")])}
    erased += sum(run_jobs(jobs, run=0).values())
    if deadline.has_passed:
        return False
    erasures.end_pass(user_id, clean=erased == 0)
    return True
