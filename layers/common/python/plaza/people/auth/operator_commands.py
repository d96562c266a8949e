"""What operators do with passkeys, sessions and keys of servers."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from plaza.infra.jobs.operator_commands import OPERATOR, Id, Refused, Result, command
from plaza.people.auth import new_session, operate_passkeys, operate_server_keys, session_end
from plaza.people.auth.server_keys import (
    KEY_ID_PATTERN,
    MAX_REQUESTS_PER_S,
    NAME_PATTERN,
    Scope,
)
from plaza.people.users import roles

SMOKE_SESSION_S = 900
SMOKE_NICKNAME = "smoke test"
_MAX_SESSIONS_S = 40.0
_SCOPE = f"({'|'.join(get_args(Scope))})"


@command
def make_passkey_code(*, user_id: Id) -> Result:
    """Make a code with which a user with a role enrolls a passkey within an hour, once, in the
    console; it is shown this once."""
    if roles.read_role(user_id) == "user":
        raise Refused("the user has the role user, which needs no passkey; see set-role")
    code, expires_in_s = operate_passkeys.make_passkey_code(user_id, operator_id=OPERATOR)
    return {"user_id": user_id, "code": code, "expires_in_s": expires_in_s}


@command
def end_passkeys(*, user_id: Id) -> Result:
    """End all passkeys and all sessions of a user, such as one whose device was lost."""
    return {"user_id": user_id, "ended": operate_passkeys.end_passkeys(user_id, OPERATOR)}


@command
def open_smoke_session() -> Result:
    """Create an admin without a phone for `make smoke`, which deletes the account; return a token
    that ends after 15 minutes."""
    user_id = roles.create_admin(SMOKE_NICKNAME)
    return {"user_id": user_id, "token": new_session.open_session(user_id, SMOKE_SESSION_S)}


@command
def end_sessions() -> Result:
    """End the sessions of all users. Repeat it until it has finished."""
    ended, finished = session_end.end_every_session(_MAX_SESSIONS_S)
    return {"ended": ended, "finished": finished}


@command
def make_server_key(
    *,
    name: Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")],
    scopes: Annotated[str, Field(pattern=f"^{_SCOPE}(,{_SCOPE})*$")],
    requests_per_s: Annotated[int, Field(ge=1, le=MAX_REQUESTS_PER_S)] = 100,
) -> Result:
    """Make a key of a server, with scopes such as read,act; it is shown this once. A name has two
    valid keys at most."""
    key_id, key = operate_server_keys.make_server_key(
        name, scopes.split(","), requests_per_s, operator_id=OPERATOR
    )
    return {"key_id": key_id, "key": key}


@command
def end_server_key(*, key_id: Annotated[str, Field(pattern=f"^{KEY_ID_PATTERN}$")]) -> Result:
    """End a key of a server. It is refused within a minute."""
    operate_server_keys.end_server_key(key_id, operator_id=OPERATOR)
    return {"key_id": key_id, "ended": True}


@command
def list_server_keys() -> Result:
    """List the keys of servers: scopes, rates, and when each was used last."""
    return {"keys": operate_server_keys.list_server_keys()}
