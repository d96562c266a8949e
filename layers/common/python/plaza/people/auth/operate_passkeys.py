"""Passkeys for operators: make the code of the first one, and end all of a user. Used by the
function Operate."""

from __future__ import annotations

from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_passkeys, session_end
from plaza.people.auth.passkeys import CODE_TTL_S, hash_code, make_code


def make_passkey_code(user_id: int, operator_id: str) -> tuple[str, int]:
    """Return a code with which a user enrolls one passkey, and for how many seconds; the code
    before is void. One statement. Raises MysqlDown."""
    code = make_code()
    mysql_passkeys.replace_code(user_id, hash_code(code), CODE_TTL_S)
    record("passkey_code_made", user_id=user_id, operator_id=operator_id)
    return code, CODE_TTL_S


def end_passkeys(user_id: int, operator_id: str) -> int:
    """End all passkeys and all sessions of a user, such as one whose device was lost; return how
    many passkeys and codes there were. Safe to repeat. Raises MysqlDown, RedisDown."""
    ended = mysql_passkeys.delete_of_user(user_id)
    session_end.end_all_of_user(user_id)
    record("passkeys_ended", user_id=user_id, operator_id=operator_id, ended=ended)
    return ended
