"""A user's own passkeys: list them, and end one of them."""

from __future__ import annotations

from plaza.infra.runtime.observability import record
from plaza.people.auth import mysql_passkeys
from plaza.people.auth.passkeys import Passkey


def list_passkeys(user_id: int) -> list[Passkey]:
    """Return the passkeys of a user, the oldest first. One statement. Raises MysqlDown."""
    return mysql_passkeys.list_of_user(user_id)


def end_passkey(user_id: int, passkey_id: str) -> None:
    """End a passkey of a user; its sessions stay. Safe to repeat. One statement. Raises
    MysqlDown."""
    existed = mysql_passkeys.delete(user_id, passkey_id)
    record("passkey_ended", user_id=user_id, passkey_id=passkey_id, existed=existed)
