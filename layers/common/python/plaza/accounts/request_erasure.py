"""Request the erasure of an account. Loads only what hides it."""

from __future__ import annotations

from plaza.accounts import mysql_store
from plaza.accounts.model import Erasure
from plaza.accounts.mysql_store import read_latest
from plaza.auth import session_end
from plaza.infra.runtime.errors import Unavailable
from plaza.infra.runtime.observability import error_fields, record
from plaza.reactions import erasure as reactions_erasure
from plaza.users import erasure as users_erasure
from plaza.users import roles

__all__ = ["read_latest", "request_erasure", "request_erasure_of", "require_known"]


def require_known(user_id: int) -> None:
    """Raise UserMissing for a user who does not exist and was not erased. Up to two statements.
    Raises MysqlDown."""
    if not mysql_store.exists(user_id):
        roles.read_role(user_id)


def request_erasure_of(user_id: int, operator_id: int) -> Erasure:
    """Erase a user for the operator ``operator_id``. Raises UserMissing for one that does not exist
    and was not erased before; otherwise as ``request_erasure``."""
    require_known(user_id)
    record("erasure_by_operator", user_id=user_id, operator_id=operator_id)
    return request_erasure(user_id)


def request_erasure(user_id: int) -> Erasure:
    """Erase a user: the profile, the phone and the sessions now, the rest by ``erase.run_passes``.

    What fails after the request is stored is recorded, and done by the first pass. Safe to repeat.
    Raises MysqlDown.
    """
    erasure = mysql_store.insert(user_id)
    record("erasure_requested", user_id=user_id)
    for hide in (users_erasure.erase, reactions_erasure.hide, session_end.erase):
        try:
            hide(user_id)
        except Unavailable as error:
            record("erasure_postponed", user_id=user_id, **error_fields(error))
    return erasure
