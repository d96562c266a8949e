"""Request the erasure of an account: it is closed at once, and erased after seven days unless a
sign-in opens it again. Loads only what closes it."""

from __future__ import annotations

from collections.abc import Callable

from plaza.core.reactions import erasure as reactions_erasure
from plaza.infra.mysql import mysql
from plaza.infra.mysql.mysql import Cursor
from plaza.infra.runtime.clock import Deadline
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.people.auth import session_end
from plaza.people.users import closed_users, erasures, roles
from plaza.people.users import erasure as users_erasure
from plaza.people.users.erasures import RETURN_S, SETTLE_S, Erasure, read_latest

__all__ = [
    "close_account",
    "close_account_of",
    "erase_now",
    "hide_account",
    "read_latest",
    "require_known",
]


def require_known(user_id: int) -> None:
    """Raise UserMissing for a user who does not exist and was not erased. Up to two statements.
    Raises MysqlDown."""
    if not erasures.exists(user_id):
        roles.read_role(user_id)


def close_account_of(user_id: int, operator_id: int) -> Erasure:
    """Close the account of a user for the operator ``operator_id``. Raises UserMissing for one that
    does not exist and was not erased before; otherwise as ``close_account``."""
    require_known(user_id)
    record("erasure_by_operator", user_id=user_id, operator_id=operator_id)
    return close_account(user_id)


def close_account(user_id: int) -> Erasure:
    """Close an account: the profile, the phone and the sessions go now, the texts when
    the wing operate hides them, all data after seven days. Safe to repeat. Raises MysqlDown."""

    def work(cursor: Cursor) -> Erasure:
        closed_users.close(cursor, user_id)
        # A pass begins after the last transaction that opens the account.
        return erasures.insert(cursor, user_id, RETURN_S + SETTLE_S)

    erasure = mysql.run_in_transaction(work)
    record("erasure_requested", user_id=user_id)
    hide_account(user_id)
    return erasure


def erase_now(user_id: int) -> Erasure:
    """Erase a user without the seven days, or run the next pass of an erasure. As
    ``close_account``."""
    erasure = mysql.run_in_transaction(lambda cursor: erasures.insert(cursor, user_id, 0))
    record("erasure_requested", user_id=user_id)
    steps = (reactions_erasure.hide, session_end.erase)
    _run_all(user_id, lambda of: users_erasure.erase(of, Deadline.in_s(SETTLE_S)), *steps)
    return erasure


def hide_account(user_id: int) -> None:
    """Drop a closed account from Redis, and end its sessions."""
    _run_all(user_id, users_erasure.hide, reactions_erasure.hide, session_end.end_all_of_user)


def _run_all(user_id: int, *steps: Callable[[int], object]) -> None:
    """Run ``steps``. What fails is recorded, and done by the next pass."""
    for step in steps:
        try:
            step(user_id)
        except Unavailable as error:
            record("erasure_postponed", user_id=user_id, **error_fields(error))
